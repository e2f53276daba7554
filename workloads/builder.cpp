#include "workloads/builder.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "engine/ir/arena.h"
#include "engine/ir/derive.h"
#include "engine/ir/provenance.h"
#include "workloads/dist.h"
#include "workloads/value_internal.h"

namespace beamline::workloads {
namespace {

using Kind = Value::Kind;

class Builder {
 public:
  explicit Builder(const Instance& in) : in_(in) {}

  std::variant<TensorGraph, std::vector<WorkloadError>> run() {
    for (const auto& [name, value] : in_.params) names_[name] = number(Number::of(value));
    for (size_t i = 0; i < in_.inputs.size(); i++) {
      const InputSpec& spec = in_.inputs[i];
      ParamArg arg;
      arg.slot = static_cast<int64_t>(i), arg.constant = spec.constant, arg.name = spec.name;
      names_[spec.name] = Value::of(param(arg, spec.dtype, spec.shape));
    }
    TensorGraph g;
    for (const Statement& s : in_.program->statements) {
      values_.resize(in_.program->exprs.size());
      for (int i = s.first; i <= s.last; i++) {
        const Expr& e = in_.program->exprs[static_cast<size_t>(i)];
        const Provenance::At here(Provenance::current() ? origin_of(e) : "");
        Value v = evaluate(e);
        v.at = e.at;
        values_[static_cast<size_t>(i)] = std::move(v);
      }
      if (!s.targets.empty())
        assign(s);
      else
        g = finish(s);
    }
    if (!errors_.empty()) return std::move(errors_);
    return g;
  }

 private:
  // "12 softmax": the line and what is done there; empty for what computes nothing.
  static std::string origin_of(const Expr& e) {
    switch (e.kind) {
      case ExprKind::Call: return fmt::format("{} {}", e.at.line, e.text);
      case ExprKind::Unary:
      case ExprKind::Binary: return fmt::format("{} {}", e.at.line, operator_text(e.op));
      case ExprKind::Subscript: return fmt::format("{} []", e.at.line);
      default: return "";
    }
  }
  const Value& at(int node) const { return values_[static_cast<size_t>(node)]; }
  static Value number(Number n) {
    Value v;
    v.kind = Kind::Number, v.number = n;
    return v;
  }
  Value fail(SourcePos at, std::string message, std::string expected = "") {
    errors_.push_back(located({at, std::move(message), std::move(expected)}, in_.file,
                              in_.workload + ".compute"));
    return {};
  }
  // The value of an operation of TensorOps, or its refusal at this place.
  Value settle(SourcePos at, Value v, const std::string& prefix) {
    if (!ops_.ok()) return fail(at, prefix + ops_.take_error());
    return v.is(Kind::Poison) ? fail(at, prefix + "no value") : v;
  }

  void assign(const Statement& s) {
    const Value& v = at(s.values[0]);
    if (s.targets.size() == 1) {
      if (v.is(Kind::List) && !v.list.empty() && v.list[0].is(Kind::Tensor))
        fail(s.targets[0].at, fmt::format("{} parts for one name", v.list.size()),
             "as many names as parts");
      names_[s.targets[0].name] = v;
      return;
    }
    const bool fits = v.is(Kind::List) && v.list.size() == s.targets.size();
    if (!fits && !v.is(Kind::Poison))
      fail(s.targets[0].at,
           v.is(Kind::List)
               ? fmt::format("{} parts for {} names", v.list.size(), s.targets.size())
               : fmt::format("{} cannot be unpacked into {} names", describe(v), s.targets.size()),
           "as many names as parts of split(x, n, axis)");
    for (size_t i = 0; i < s.targets.size(); i++)
      names_[s.targets[i].name] = fits ? v.list[i] : Value{};
  }

  TensorGraph finish(const Statement& s) {
    TensorGraph g;
    std::vector<UOp> outs;
    for (int node : s.values) {
      const Value& v = at(node);
      if (v.is(Kind::Poison)) continue;
      const UOp u = as_operand(v);
      if (!u) {
        fail(v.at, fmt::format("{} is returned", describe(v)), "a tensor or a number");
        continue;
      }
      const Value out =
          settle(v.at, Value::of(ops_.full(Ints(u.shape().begin(), u.shape().end()), u)), "");
      if (!out.is(Kind::Tensor)) continue;
      outs.push_back(out.tensor);
      g.outputs.push_back(
          {out.tensor.dtype(), {out.tensor.shape().begin(), out.tensor.shape().end()}});
    }
    g.sink = make(Op::SINK, DType::Void, outs);
    return g;
  }

  Value evaluate(const Expr& e) {
    Value v;
    for (int a : e.args)
      if (a >= 0 && at(a).is(Kind::Poison)) return v;
    for (const Keyword& k : e.keywords)
      if (at(k.value).is(Kind::Poison)) return v;
    switch (e.kind) {
      case ExprKind::Int: return number(Number::of(e.integer));
      case ExprKind::Float: return number(Number::of(e.number));
      case ExprKind::Bool: return number(Number::boolean(e.integer != 0));
      case ExprKind::None: v.kind = Kind::None; return v;
      case ExprKind::NewAxis: v.kind = Kind::NewAxis; return v;
      case ExprKind::Ellipsis: v.kind = Kind::Ellipsis; return v;
      case ExprKind::Text: v.kind = Kind::Text, v.text = e.text; return v;
      case ExprKind::Name: return name(e);
      case ExprKind::List:
      case ExprKind::Slice:
        v.kind = e.kind == ExprKind::List ? Kind::List : Kind::Slice;
        for (int a : e.args) {
          Value none;
          none.kind = Kind::None;
          v.list.push_back(a >= 0 ? at(a) : none);
        }
        return v;
      case ExprKind::Unary: return unary(e, at(e.args[0]));
      case ExprKind::Binary: return binary(e, at(e.args[0]), at(e.args[1]));
      case ExprKind::Subscript: return subscript(e);
      case ExprKind::Call: return call(e);
    }
    return v;
  }

  Value name(const Expr& e) {
    if (const auto it = names_.find(e.text); it != names_.end()) return it->second;
    if (const auto t = storable_dtype(e.text)) {
      Value v;
      v.kind = Kind::Type, v.type = *t;
      return v;
    }
    std::vector<std::string> known;
    for (const auto& [n, value] : names_) known.push_back(n);
    for (const char* literal : {"true", "false", "none", "inf", "nan"}) known.emplace_back(literal);
    const bool function = find_function(e.text) != nullptr;
    return fail(
        e.at,
        fmt::format("unknown name '{}'{}", e.text,
                    function ? "; it is a function" : did_you_mean(e.text, known)),
        function ? fmt::format("{}(...)", e.text) : "an input, a param or a name assigned before");
  }

  Value unary(const Expr& e, const Value& a) {
    if (a.is(Kind::Number)) return settle_number(e, apply(e.op, a.number));
    if (!a.is(Kind::Tensor))
      return fail(e.at, fmt::format("'{}' of {}", operator_text(e.op), describe(a)),
                  "a tensor or a number");
    return settle(
        e.at, Value::of(e.op == Operator::Neg ? ops_.neg(a.tensor) : ops_.invert(a.tensor)), "");
  }

  Value settle_number(const Expr& e, const NumberResult& r) {
    if (const auto* why = std::get_if<std::string>(&r)) return fail(e.at, *why);
    return number(std::get<Number>(r));
  }

  Value binary(const Expr& e, const Value& l, const Value& r) {
    if (l.is(Kind::Number) && r.is(Kind::Number))
      return settle_number(e, apply(e.op, l.number, r.number));
    const UOp a = as_operand(l), b = as_operand(r);
    if (!a || !b)
      return fail(e.at,
                  fmt::format("'{}' of {} and {}", operator_text(e.op), describe(l), describe(r)),
                  "tensors or numbers");
    return settle(e.at, Value::of(tensor_binary(e.op, a, b)),
                  fmt::format("'{}': ", operator_text(e.op)));
  }

  UOp tensor_binary(Operator op, UOp a, UOp b) {
    switch (op) {
      case Operator::Add: return ops_.add(a, b);
      case Operator::Sub: return ops_.sub(a, b);
      case Operator::Mul: return ops_.mul(a, b);
      case Operator::Div: return ops_.div(a, b);
      case Operator::FloorDiv: return ops_.floordiv(a, b);
      case Operator::Mod: return ops_.mod(a, b);
      case Operator::Pow: return ops_.pow(a, b);
      case Operator::MatMul: return ops_.matmul(a, b);
      case Operator::Or: return ops_.bitwise(Op::OR, a, b);
      case Operator::Xor: return ops_.bitwise(Op::XOR, a, b);
      case Operator::And: return ops_.bitwise(Op::AND, a, b);
      case Operator::Lt: return ops_.lt(a, b);
      case Operator::Le: return ops_.le(a, b);
      case Operator::Gt: return ops_.lt(b, a);
      case Operator::Ge: return ops_.le(b, a);
      case Operator::Eq: return ops_.eq(a, b);
      case Operator::Ne: return ops_.ne(a, b);
      default: return {};
    }
  }

  Value call(const Expr& e) {
    const Function* f = find_function(e.text);
    if (!f)
      return fail(
          e.at,
          fmt::format("unknown function '{}'{}", e.text, did_you_mean(e.text, function_names())),
          "a function of the language");
    std::vector<Value> positional;
    for (int a : e.args) positional.push_back(at(a));
    std::vector<std::pair<Keyword, Value>> keywords;
    for (const Keyword& k : e.keywords) keywords.emplace_back(k, at(k.value));
    auto bound = bind(*f, e.at, std::move(positional), std::move(keywords));
    if (const auto* d = std::get_if<Diagnostic>(&bound))
      return fail(d->at, d->message, d->expected);
    Call c(ops_, *f, e.at, std::move(std::get<std::vector<Value>>(bound)));
    Value v = f->build(c);
    if (c.mistake()) {
      ops_.take_error();
      return fail(c.mistake()->at, c.mistake()->message, c.mistake()->expected);
    }
    return settle(e.at, std::move(v), e.text == "matmul" ? "" : e.text + ": ");
  }

  static std::optional<int64_t> bound_of(const Value& v, bool& good) {
    if (v.is(Kind::None)) return std::nullopt;
    if (v.is(Kind::Number) && v.number.kind == Number::Kind::Int) return v.number.integer;
    good = false;
    return std::nullopt;
  }

  Value subscript(const Expr& e) {
    const Value& base = at(e.args[0]);
    if (!base.is(Kind::Tensor))
      return fail(e.at, fmt::format("{} cannot be indexed", describe(base)), "a tensor");
    UOp x = base.tensor;
    size_t consumed = 0, ellipses = 0;
    for (size_t i = 1; i < e.args.size(); i++) {
      const Value& item = at(e.args[i]);
      ellipses += item.is(Kind::Ellipsis);
      consumed += !item.is(Kind::Ellipsis) && !item.is(Kind::NewAxis);
    }
    if (ellipses > 1) return fail(e.at, "more than one '...' in an index", "at most one");
    const size_t rank = x.shape().size();
    if (consumed > rank)
      return fail(e.at, fmt::format("{} indices for shape {}", consumed, shape_text(x.shape())),
                  fmt::format("at most {}", rank));
    if (std::ranges::any_of(e.args.begin() + 1, e.args.end(),
                            [&](int a) { return at(a).is(Kind::Tensor); }))
      return tensor_subscript(e, x, rank - consumed);
    size_t axis = 0;
    Ints shape;  // of the result: dims of x that stay, and new ones
    for (size_t i = 1; i < e.args.size() && x; i++) {
      const Value& item = at(e.args[i]);
      if (item.is(Kind::NewAxis)) {
        shape.push_back(1);
      } else if (item.is(Kind::Ellipsis)) {
        for (size_t k = rank - consumed; k > 0; k--) shape.push_back(x.shape()[axis++]);
      } else if (item.is(Kind::Number) && item.number.kind == Number::Kind::Int) {
        const int64_t n = x.shape()[axis], index = item.number.integer;
        if (index < -n || index >= n)
          return fail(item.at, fmt::format("index {} of an axis of {}", index, n),
                      n == 0 ? "" : fmt::format("{}..{}", -n, n - 1));
        x = take_span(ops_, x, axis++, {index < 0 ? index + n : index, 1, 1});
      } else if (item.is(Kind::Slice)) {
        const auto s = span_of(item, x.shape()[axis]);
        if (!s) return {};
        x = take_span(ops_, x, axis++, *s);
        shape.push_back(s->count);
      } else {
        return wrong_index(item);
      }
    }
    if (x)
      for (; axis < rank; axis++) shape.push_back(x.shape()[axis]);
    return settle(e.at, Value::of(ops_.reshape(x, shape)), "");
  }

  // An index that holds tensors: slices and new axes first, then the tensors (and integers, which
  // count as tensors of no dims beside them) together. Their joint shape stands where the first of
  // them stood if nothing stands between them, else in front: NumPy's rule.
  Value tensor_subscript(const Expr& e, UOp x, size_t hidden) {
    std::vector<UOp> index;
    Ints indexed;  // their axes in x
    size_t axis = 0, groups = 0;
    bool adjacent = false;
    for (size_t i = 1; i < e.args.size() && x; i++) {
      const Value& item = at(e.args[i]);
      const bool integer = item.is(Kind::Number) && item.number.kind == Number::Kind::Int;
      if (integer || item.is(Kind::Tensor)) {
        const int64_t n = x.shape()[axis];
        if (integer && (item.number.integer < -n || item.number.integer >= n))
          return fail(item.at, fmt::format("index {} of an axis of {}", item.number.integer, n),
                      n == 0 ? "" : fmt::format("{}..{}", -n, n - 1));
        index.push_back(integer ? iconst(item.number.integer, DType::I64) : item.tensor);
        indexed.push_back(static_cast<int64_t>(axis++));
        groups += !adjacent, adjacent = true;
        continue;
      }
      adjacent = false;
      if (item.is(Kind::NewAxis)) {
        x = ops_.unsqueeze(x, {static_cast<int64_t>(axis++)});
      } else if (item.is(Kind::Ellipsis)) {
        axis += hidden;
      } else if (item.is(Kind::Slice)) {
        const auto s = span_of(item, x.shape()[axis]);
        if (!s) return {};
        x = take_span(ops_, x, axis++, *s);
      } else {
        return wrong_index(item);
      }
    }
    if (!x) return settle(e.at, Value::of(x), "");
    Ints order, joint, end = indexed;
    const int64_t first = groups == 1 ? indexed[0] : 0;
    for (size_t d = 0; d < x.shape().size(); d++)
      if (std::ranges::find(indexed, static_cast<int64_t>(d)) == indexed.end())
        order.push_back(static_cast<int64_t>(d));
    order.insert(order.begin() + first, indexed.begin(), indexed.end());
    for (UOp u : index) {
      Ints next;
      if (!broadcast_shapes(joint, u.shape(), next))
        return fail(e.at, fmt::format("indices of shapes {} and {} do not broadcast",
                                      shape_text(joint), shape_text(u.shape())));
      joint = next;
    }
    for (UOp& u : index) u = ops_.full(joint, u);
    return settle(
        e.at, Value::of(ops_.take_joint(ops_.permute(x, order), index, static_cast<size_t>(first))),
        "");
  }

  Value wrong_index(const Value& item) {
    return fail(item.at, fmt::format("an index is {}", describe(item)),
                "an integer, a slice, a tensor, '...' or newaxis");
  }
  // The elements that a slice takes of an axis of n; nothing after a mistake, which is reported.
  std::optional<Span> span_of(const Value& item, int64_t n) {
    bool good = true;
    const auto begin = bound_of(item.list[0], good), end = bound_of(item.list[1], good),
               step = bound_of(item.list[2], good);
    if (!good) fail(item.at, "a bound of the slice is no integer", "integers");
    if (good && step == 0)
      good = false, fail(item.at, "the step of the slice is 0", "a step other than 0");
    if (!good) return std::nullopt;
    return resolve_slice(begin, end, step.value_or(1), n);
  }

  const Instance& in_;
  TensorOps ops_;
  std::map<std::string, Value> names_;
  std::vector<Value> values_;  // by node
  std::vector<WorkloadError> errors_;
};

}  // namespace

std::variant<TensorGraph, std::vector<WorkloadError>> build(const Instance& instance) {
  return Builder(instance).run();
}

std::vector<WorkloadError> check(const std::vector<Instance>& instances) {
  std::vector<WorkloadError> out;
  Arena arena;
  for (const Instance& in : instances) {
    const Arena::Scope scope(arena);
    const auto r = build(in);
    if (const auto* errors = std::get_if<std::vector<WorkloadError>>(&r))
      for (const WorkloadError& e : *errors)
        if (std::ranges::find(out, e) == out.end()) out.push_back(e);
    arena.reset();
  }
  return out;
}

}  // namespace beamline::workloads
