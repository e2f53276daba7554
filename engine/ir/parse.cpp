// Reader of UOp text. Everything a line says is checked before a node is made, so that garbage from
// a file, a worker or a database is refused with its place.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "engine/ir/derive.h"
#include "engine/ir/print.h"
#include "engine/ir/tensor_core.h"

namespace beamline {
namespace {

struct Failure {
  ParseError error;
};

class Line {
 public:
  Line(std::string_view text, int number) : text_(text), number_(number) {}
  [[noreturn]] void fail(std::string message) const {
    throw Failure{{number_, static_cast<int>(at_) + 1, std::move(message)}};
  }
  bool done() const { return at_ == text_.size(); }
  bool take(char c) {
    if (at_ < text_.size() && text_[at_] == c) return at_++, true;
    return false;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string_view until(std::string_view stops) {
    const size_t from = at_;
    while (at_ < text_.size() && stops.find(text_[at_]) == std::string_view::npos) at_++;
    return text_.substr(from, at_ - from);
  }
  int64_t integer() {
    int64_t v = 0;
    const auto [end, ec] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (ec != std::errc()) fail("expected a 64-bit integer");
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }
  std::string quoted() {
    expect('"');
    std::string out;
    while (!take('"')) {
      if (done()) fail("string is not closed");
      char c = text_[at_++];
      if (c == '\\') {
        if (done()) fail("string is not closed");
        c = text_[at_++];
        if (c == 'n') c = '\n';
      }
      out += c;
    }
    return out;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  int number_;
};

struct Args {
  std::map<std::string, std::string, std::less<>> text;  // as written, strings unquoted
  const Line& line;
  int64_t integer(std::string_view key, std::optional<int64_t> fallback = std::nullopt) const {
    const auto it = text.find(key);
    if (it == text.end()) {
      if (fallback) return *fallback;
      line.fail(fmt::format("argument '{}' is missing", key));
    }
    int64_t v = 0;
    const auto* end = it->second.data() + it->second.size();
    if (const auto [p, ec] = std::from_chars(it->second.data(), end, v);
        ec != std::errc() || p != end)
      line.fail(fmt::format("'{}' is not an integer", it->second));
    return v;
  }
  std::string string(std::string_view key, std::string fallback) const {
    const auto it = text.find(key);
    return it == text.end() ? fallback : it->second;
  }
};

double parse_float(const Line& line, const std::string& s) {
  if (s == "nan") return NAN;
  if (s == "inf" || s == "-inf") return s[0] == '-' ? -INFINITY : INFINITY;
  char* end = nullptr;
  const double v = std::strtod(s.c_str(), &end);
  if (s.empty() || *end) line.fail(fmt::format("'{}' is not a float", s));
  return v;
}

Args read_args(Line& line) {
  Args a{{}, line};
  if (!line.take('[')) return a;
  do {
    const std::string key(line.until("=],"));
    line.expect('=');
    std::string value;
    if (line.take('(')) {
      value = line.until(")");
      line.expect(')');
    } else {
      Line probe = line;
      value = probe.take('"') ? line.quoted() : std::string(line.until(",]"));
    }
    if (!a.text.emplace(key, value).second)
      line.fail(fmt::format("argument '{}' is given twice", key));
  } while (line.take(','));
  line.expect(']');
  return a;
}

struct Parts {
  int64_t val = 0;
  const Extra* ext = nullptr;
};

Parts read_parts(const Line& line, Op op, DType dtype, const Args& a, size_t nsrc) {
  Parts p;
  const auto allow = [&](std::initializer_list<std::string_view> keys) {
    for (const auto& [k, v] : a.text)
      if (std::ranges::find(keys, std::string_view(k)) == keys.end())
        line.fail(fmt::format("{} has no argument '{}'", op_name(op), k));
  };
  switch (op) {
    case Op::CONST:
      allow({"value"});
      if (dtype == DType::Invalid) return p;
      if (!is_float(dtype)) {
        if (!is_int(dtype) && dtype != DType::Bool) line.fail("a constant needs a value type");
        p.val = a.integer("value");
      } else {
        const UOp c = fconst(parse_float(line, a.string("value", "")), dtype);
        p.val = c.node()->val;
      }
      return p;
    case Op::RANGE: {
      allow({"id", "type"});
      const auto type = axis_type_from_name(a.string("type", ""));
      if (!type) line.fail(fmt::format("unknown axis type '{}'", a.string("type", "")));
      const int64_t id = a.integer("id");
      if (id < 0 || id > (int64_t{1} << 40)) line.fail("range id out of bounds");
      if (!is_int(dtype)) line.fail("a RANGE is an integer");
      p.val = id << 8 | static_cast<int64_t>(*type);
      return p;
    }
    case Op::REDUCE: {
      allow({"op", "n"});
      const auto r = op_from_name(a.string("op", ""));
      const int64_t n = a.integer("n", 0);
      if (!r || n < 0 || n > 64) line.fail("REDUCE needs op=ADD|MUL|MAX and n in 0..64");
      p.val = n << 8 | static_cast<int64_t>(*r);
      return p;
    }
    case Op::PARAM:
    case Op::BUFFER: {
      allow({"slot", "vmin", "vmax", "multiple_of", "name", "addrspace", "const"});
      ParamArg arg;
      arg.slot = a.integer("slot");
      arg.vmin = a.integer("vmin", 0), arg.vmax = a.integer("vmax", 0);
      arg.multiple_of = a.integer("multiple_of", 1);
      arg.name = a.string("name", "");
      arg.constant = a.integer("const", 0) != 0;
      const auto space = addrspace_from_name(a.string("addrspace", "global"));
      if (!space) line.fail(fmt::format("unknown address space '{}'", a.string("addrspace", "")));
      if (arg.vmin > arg.vmax || arg.multiple_of < 1) line.fail("bounds are empty");
      arg.addrspace = *space;
      p.ext = intern(std::move(arg));
      return p;
    }
    case Op::ALLREDUCE: {
      allow({"op"});
      const auto r = op_from_name(a.string("op", ""));
      if (!r) line.fail("ALLREDUCE needs op=ADD|MUL|MAX");
      p.val = static_cast<int64_t>(*r);
      return p;
    }
    case Op::GETTUPLE:
    case Op::MSELECT:
      allow({"index"});
      p.val = a.integer("index");
      return p;
    case Op::UNSHARD:
    case Op::PERMUTE:
    case Op::FLIP: {
      allow({"axes"});
      Ints axes;
      const std::string text = a.string("axes", "");
      Line list(text, 0);
      while (!list.done()) {
        axes.push_back(Args{{{"v", std::string(list.until(","))}}, line}.integer("v"));
        list.take(',');
      }
      p.ext = intern(std::move(axes));
      return p;
    }
    case Op::SINK:
      allow({"name"});
      if (!a.text.empty()) p.ext = intern(KernelInfo{a.string("name", "")});
      return p;
    case Op::WMMA: {
      allow({"name"});
      const std::string name = a.string("name", "");
      const TensorCore* core = tensor_core(name);
      if (!core) line.fail(fmt::format("unknown tensor core '{}'", name));
      if (core->out != dtype) line.fail(fmt::format("{} gives {}", name, dtype_name(core->out)));
      p.ext = intern(name);
      return p;
    }
    case Op::SPECIAL:
    case Op::CUSTOM:
    case Op::CUSTOMI:
    case Op::CUSTOM_FUNCTION:
    case Op::SOURCE:
    case Op::BINARY:
    case Op::INS:
      allow({"name"});
      p.ext = intern(a.string("name", ""));
      return p;
    default:
      allow({});
      if (nsrc == 0 && op != Op::STACK && op != Op::NOOP && op != Op::BARRIER)
        line.fail(fmt::format("{} needs operands", op_name(op)));
      return p;
  }
}

// The dtype a node must have, given its operands; nothing where the text decides.
void check_dtype(const Line& line, Op op, DType dtype, std::span<const UOp> src) {
  if ((ops::elementwise.has(op) || op == Op::WHERE) && op != Op::CAST && op != Op::BITCAST) {
    const DType want = derive_dtype(op, src, dtype);
    if (want != dtype)
      line.fail(fmt::format("{} of these operands is {}, not {}", op_name(op), dtype_name(want),
                            dtype_name(dtype)));
    if (op == Op::WHERE && src[0].dtype() != DType::Bool && !src[0].is_invalid())
      line.fail("the condition of WHERE is not bool");
  }
  if ((op == Op::LOAD || op == Op::REDUCE || op == Op::INDEX || op == Op::AFTER) &&
      src[0].dtype() != dtype)
    line.fail(fmt::format("{} of {} is not {}", op_name(op), dtype_name(src[0].dtype()),
                          dtype_name(dtype)));
  constexpr OpSet structural = Op::FUNCTION | Op::CALL | Op::TUPLE | Op::GETADDR | Op::PROGRAM |
                               Op::SOURCE | Op::BINARY | Op::INS | Op::COPY | Op::MSELECT |
                               Op::MSTACK | Op::ALLREDUCE | Op::UNSHARD | Op::REWRITE_ERROR |
                               Op::CONTIGUOUS_BACKWARD;
  if (const DType want = derive_dtype(op, src, dtype); structural.has(op) && want != dtype)
    line.fail(fmt::format("{} of these operands is {}, not {}", op_name(op), dtype_name(want),
                          dtype_name(dtype)));
  if (ops::control.has(op) && dtype != DType::Void)
    line.fail(fmt::format("{} is void", op_name(op)));
  if (op == Op::STORE && (src.size() < 2 || !src[1].has_shape()))
    line.fail("STORE needs an index and a value");
}

}  // namespace

std::variant<UOp, ParseError> parse_uops(std::string_view text) {
  std::vector<UOp> nodes;
  int number = 0;
  bool header = false;
  try {
    while (!text.empty()) {
      number++;
      const size_t end = text.find('\n');
      std::string_view raw = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
      if (raw.empty() || raw[0] == '#') continue;
      Line line(raw, number);
      if (!header) {
        if (raw != "uop 1") line.fail("expected the header 'uop 1'");
        header = true;
        continue;
      }
      line.expect('%');
      if (line.integer() != static_cast<int64_t>(nodes.size()))
        line.fail(fmt::format("nodes are numbered in order; expected %{}", nodes.size()));
      line.expect('=');
      const std::string_view name = line.until(":");
      const auto op = op_from_name(name);
      if (!op) line.fail(fmt::format("unknown op '{}'", name));
      line.expect(':');
      const std::string_view type = line.until("(");
      const auto dtype = dtype_from_name(type);
      if (!dtype) line.fail(fmt::format("unknown dtype '{}'", type));
      line.expect('(');
      std::vector<UOp> src;
      if (!line.take(')')) {
        do {
          line.expect('%');
          const int64_t ref = line.integer();
          if (ref < 0 || ref >= static_cast<int64_t>(nodes.size()))
            line.fail(fmt::format("%{} is not defined yet", ref));
          src.push_back(nodes[static_cast<size_t>(ref)]);
        } while (line.take(','));
        line.expect(')');
      }
      if (src.size() > 60000) line.fail("too many operands");
      const Args args = read_args(line);
      if (!line.done()) line.fail("unexpected text after the node");
      const Parts p = read_parts(line, *op, *dtype, args, src.size());
      if (const Derived d = derive(*op, *dtype, src, p.val, p.ext); !d.error.empty())
        line.fail(d.error);
      check_dtype(line, *op, *dtype, src);
      nodes.push_back(make(*op, *dtype, src, p.val, p.ext));
    }
    if (nodes.empty()) Line("", number).fail(header ? "no nodes" : "expected the header 'uop 1'");
  } catch (const Failure& f) {
    return f.error;
  }
  return nodes.back();
}

}  // namespace beamline
