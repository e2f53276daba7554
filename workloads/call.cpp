#include <algorithm>

#include <fmt/format.h>

#include "workloads/value_internal.h"

namespace beamline::workloads {
namespace {

// "matmul(a, b)", "softmax(x, axis=...)"
std::string signature(const Function& f) {
  std::string s;
  for (const Parameter& p : f.parameters)
    s += (s.empty() ? "" : ", ") + p.name + (p.rest ? ", ..." : p.required ? "" : "=...");
  return f.name + "(" + s + ")";
}

}  // namespace

std::string describe(const Value& v) {
  switch (v.kind) {
    case Value::Kind::Poison: return "a mistake";
    case Value::Kind::None: return "none";
    case Value::Kind::Number:
      if (v.number.kind == Number::Kind::Bool) return v.number.integer ? "true" : "false";
      return v.number.is_float() ? fmt::format("the number {}", v.number.real)
                                 : fmt::format("the integer {}", v.number.integer);
    case Value::Kind::Tensor:
      return fmt::format("a tensor of {} and shape {}", dtype_name(v.tensor.dtype()),
                         shape_text(v.tensor.shape()));
    case Value::Kind::Text: return fmt::format("the string \"{}\"", v.text);
    case Value::Kind::List: return "a list";
    case Value::Kind::Type: return fmt::format("the dtype {}", dtype_name(v.type));
    case Value::Kind::NewAxis: return "newaxis";
    case Value::Kind::Ellipsis: return "'...'";
    case Value::Kind::Slice: return "a slice";
  }
  return "";
}

UOp as_operand(const Value& v) {
  if (v.is(Value::Kind::Tensor)) return v.tensor;
  if (!v.is(Value::Kind::Number)) return {};
  if (v.number.kind == Number::Kind::Bool) return bool_const(v.number.integer != 0);
  return v.number.is_float() ? fconst(v.number.real, DType::WeakFloat) : iconst(v.number.integer);
}

Span resolve_slice(std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step,
                   int64_t n) {
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? n : n - 1;
  const auto place = [&](int64_t i) { return std::clamp(i < 0 ? i + n : i, lowest, highest); };
  const int64_t first = begin ? place(*begin) : step > 0 ? lowest : highest;
  const int64_t last = end ? place(*end) : step > 0 ? highest : lowest;
  const int64_t room = step > 0 ? last - first : first - last;
  if (room <= 0) return {0, 0, step > 0 ? 1 : -1};
  // Steps longer than the room take one element.
  const int64_t size = std::min(step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step, room);
  return {first, (room + size - 1) / size, step > 0 ? size : -size};
}

UOp take_span(TensorOps& ops, UOp x, size_t axis, const Span& s) {
  if (!x) return {};
  Ints begin(x.shape().size(), 0), end(x.shape().begin(), x.shape().end());
  const int64_t last = s.first + (s.count - 1) * s.step;
  begin[axis] = s.count == 0 ? 0 : std::min(s.first, last);
  end[axis] = s.count == 0 ? 0 : std::max(s.first, last) + 1;
  x = ops.shrink(x, begin, end);
  return s.count < 2 ? x : ops.stride(x, axis, s.step);
}

Call::Call(TensorOps& ops_, const Function& function, SourcePos at, std::vector<Value> args)
    : ops(ops_), function_(function), at_(at), args_(std::move(args)) {}

const Value& Call::value(std::string_view name) const {
  const auto it = std::ranges::find(function_.parameters, name, &Parameter::name);
  return args_[static_cast<size_t>(it - function_.parameters.begin())];
}
bool Call::given(std::string_view name) const { return !value(name).is(Value::Kind::None); }

void Call::fail(SourcePos at, std::string message, std::string expected) {
  if (!mistake_)
    mistake_ = Diagnostic{at.line > 0 ? at : at_, std::move(message), std::move(expected)};
}
void Call::wrong(const Value& v, std::string_view name, std::string expected) {
  fail(v.at, fmt::format("{}: '{}' is {}", function_.name, name, describe(v)), std::move(expected));
}

UOp Call::operand(std::string_view name) {
  const UOp u = as_operand(value(name));
  if (!u) wrong(value(name), name, "a tensor or a number");
  return u;
}
UOp Call::tensor(std::string_view name) {
  const UOp u = operand(name);
  return u ? ops.full(Ints(u.shape().begin(), u.shape().end()), u) : u;
}
std::optional<UOp> Call::optional_tensor(std::string_view name) {
  if (!given(name)) return std::nullopt;
  return tensor(name);
}
int64_t Call::integer(std::string_view name, int64_t fallback) {
  const Value& v = value(name);
  if (!given(name)) return fallback;
  if (v.is(Value::Kind::Number) && v.number.kind == Number::Kind::Int) return v.number.integer;
  wrong(v, name, "an integer");
  return fallback;
}
double Call::real(std::string_view name, double fallback) {
  const Value& v = value(name);
  if (!given(name)) return fallback;
  if (v.is(Value::Kind::Number) && v.number.kind != Number::Kind::Bool) return v.number.value();
  wrong(v, name, "a number");
  return fallback;
}
bool Call::flag(std::string_view name, bool fallback) {
  const Value& v = value(name);
  if (!given(name)) return fallback;
  if (v.is(Value::Kind::Number) && v.number.kind == Number::Kind::Bool)
    return v.number.integer != 0;
  wrong(v, name, "true or false");
  return fallback;
}
Ints Call::integers(std::string_view name) {
  const Value& v = value(name);
  Ints out;
  const auto add = [&](const Value& e) {
    if (e.is(Value::Kind::Number) && e.number.kind == Number::Kind::Int)
      out.push_back(e.number.integer);
    else
      wrong(e, name, "an integer or a list of integers");
  };
  if (!v.is(Value::Kind::List))
    add(v);
  else
    for (const Value& e : v.list) add(e);
  return out;
}
TensorOps::Pair Call::pair(std::string_view name, TensorOps::Pair fallback) {
  if (!given(name)) return fallback;
  const Ints v = integers(name);
  if (v.size() == 1) return {v[0], v[0]};
  if (v.size() == 2) return {v[0], v[1]};
  if (!mistake_) wrong(value(name), name, "an integer or [height, width]");
  return fallback;
}
Number Call::number(std::string_view name, Number fallback) {
  const Value& v = value(name);
  if (!given(name)) return fallback;
  if (v.is(Value::Kind::Number) && v.number.kind != Number::Kind::Bool) return v.number;
  wrong(v, name, "a number");
  return fallback;
}
TensorOps::Axes Call::axes(std::string_view name, std::optional<int64_t> fallback) {
  if (given(name)) return {integers(name), false};
  return fallback ? TensorOps::Axes{{*fallback}, false} : TensorOps::Axes{{}, true};
}
DType Call::type(std::string_view name) {
  const Value& v = value(name);
  if (v.is(Value::Kind::Type)) return v.type;
  wrong(v, name, "a dtype, e.g. f16");
  return DType::F32;
}
std::vector<UOp> Call::rest() {
  std::vector<UOp> out;
  for (size_t i = function_.parameters.size(); i < args_.size(); i++) {
    const UOp u = as_operand(args_[i]);
    if (!u) wrong(args_[i], function_.parameters[0].name, "a tensor");
    out.push_back(u ? ops.full(Ints(u.shape().begin(), u.shape().end()), u) : u);
  }
  return out;
}

std::variant<std::vector<Value>, Diagnostic> bind(const Function& f, SourcePos at,
                                                  std::vector<Value> positional,
                                                  std::vector<std::pair<Keyword, Value>> keywords) {
  const size_t n = f.parameters.size();
  std::vector<Value> args(n);
  std::vector<bool> bound(n, false);
  for (Value& v : args) v.kind = Value::Kind::None;
  const bool variadic = n > 0 && f.parameters[0].rest;
  const std::string expected = signature(f);
  if (variadic) {
    bound[0] = !positional.empty();
    args.insert(args.end(), positional.begin(), positional.end());
  } else {
    if (positional.size() > n)
      return Diagnostic{
          positional[n].at,
          fmt::format("{} takes at most {} arguments, {} are given", f.name, n, positional.size()),
          expected};
    for (size_t i = 0; i < positional.size(); i++) args[i] = positional[i], bound[i] = true;
  }
  for (auto& [k, v] : keywords) {
    const auto it = std::ranges::find_if(
        f.parameters, [&](const Parameter& p) { return p.name == k.name && !p.rest; });
    if (it == f.parameters.end()) {
      std::vector<std::string> names;
      for (const Parameter& p : f.parameters)
        if (!p.rest) names.push_back(p.name);
      return Diagnostic{
          k.at,
          fmt::format("{} has no parameter '{}'{}", f.name, k.name, did_you_mean(k.name, names)),
          expected};
    }
    const auto i = static_cast<size_t>(it - f.parameters.begin());
    if (bound[i])
      return Diagnostic{k.at, fmt::format("{}: '{}' is given twice", f.name, k.name), expected};
    args[i] = std::move(v), bound[i] = true;
  }
  for (size_t i = 0; i < n; i++)
    if ((f.parameters[i].required || f.parameters[i].rest) && !bound[i])
      return Diagnostic{
          at, fmt::format("{}: argument '{}' is missing", f.name, f.parameters[i].name), expected};
  return args;
}

}  // namespace beamline::workloads
