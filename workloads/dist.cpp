#include "workloads/dist.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace beamline::workloads {
namespace {

bool blank(char c) { return c == ' ' || c == '\t'; }

SourceText trimmed(const SourceText& t, size_t begin, size_t end) {
  while (begin < end && blank(t.text()[begin])) begin++;
  while (end > begin && blank(t.text()[end - 1])) end--;
  return t.sub(begin, end);
}

void read_bound(const SourceText& text, Program& out, std::vector<Diagnostic>& errors) {
  ParsedProgram p = parse_expression(text);
  errors.insert(errors.end(), p.errors.begin(), p.errors.end());
  out = std::move(p.program);
}

Program constant(int64_t v) {
  Program p;
  Expr e;
  e.kind = ExprKind::Int, e.integer = v;
  p.exprs.push_back(std::move(e));
  p.statements.push_back({{}, {}, 0, 0, {0}});
  return p;
}

std::variant<Number, Diagnostic> value_of(const Program& p, const Params& params) {
  return evaluate(p, p.statements.front().values.front(), params);
}
SourcePos place(const InputDef& d, const Program& p) {
  const SourcePos at = p.statements.front().at;
  return at.line > 0 ? at : d.dist_at;
}

std::optional<Diagnostic> check_floats(const InputDef& d, Dist& out) {
  if (!is_float(d.dtype))
    return Diagnostic{
        d.dist_at,
        fmt::format("a {} dist makes no {}", out.kind == DistKind::Normal ? "normal" : "uniform",
                    dtype_name(d.dtype)),
        "int LO..HI, ones or file PATH"};
  if (out.kind == DistKind::Normal && out.second < 0)
    return Diagnostic{place(d, d.second), fmt::format("the deviation is {}", out.second),
                      "a number >= 0"};
  if (out.kind == DistKind::Uniform && out.first > out.second)
    return Diagnostic{place(d, d.first),
                      fmt::format("the range {}..{} is empty", out.first, out.second), "LO <= HI"};
  for (const auto& [v, p] : {std::pair{out.first, &d.first}, std::pair{out.second, &d.second}})
    if (!std::isfinite(v) || !std::isfinite(round_to(d.dtype, v)))
      return Diagnostic{place(d, *p), fmt::format("{} is no finite {}", v, dtype_name(d.dtype)),
                        "finite bounds"};
  return std::nullopt;
}

std::optional<Diagnostic> check_integers(const InputDef& d, Dist& out) {
  if (out.lowest > out.highest)
    return Diagnostic{place(d, d.first),
                      fmt::format("the range {}..{} is empty", out.lowest, out.highest),
                      "LO <= HI"};
  for (const auto& [v, p] : {std::pair{out.lowest, &d.first}, std::pair{out.highest, &d.second}}) {
    const bool fits = is_float(d.dtype) ? std::isfinite(round_to(d.dtype, static_cast<double>(v)))
                                        : v >= dtype_min(d.dtype) && v <= dtype_max(d.dtype);
    if (!fits)
      return Diagnostic{place(d, *p), fmt::format("{} does not fit {}", v, dtype_name(d.dtype)),
                        "bounds of the dtype"};
  }
  return std::nullopt;
}

}  // namespace

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names = {"bool",    "i8",  "i16",  "i32", "i64",
                                                 "u8",      "u16", "u32",  "u64", "fp8e4m3",
                                                 "fp8e5m2", "f16", "bf16", "f32", "f64"};
  return names;
}

std::optional<DType> storable_dtype(std::string_view name) {
  if (std::ranges::find(dtype_names(), name) == dtype_names().end()) return std::nullopt;
  return dtype_from_name(name);
}

std::string dist_grammar() {
  return "int LO..HI, uniform LO..HI, normal MEAN DEVIATION, ones or file PATH";
}

std::vector<Diagnostic> parse_dist(const SourceText& text, InputDef& d) {
  std::vector<Diagnostic> errors;
  const std::string& s = text.text();
  size_t begin = 0;
  while (begin < s.size() && blank(s[begin])) begin++;
  size_t end = begin;
  while (end < s.size() && !blank(s[end])) end++;
  const std::string word = s.substr(begin, end - begin);
  const SourceText rest = trimmed(text, end, s.size());
  d.dist_at = text.at(begin);
  d.first = d.second = {};
  if (word == "ones") {
    d.dist = DistKind::Ones;
    if (rest.size() > 0)
      errors.push_back(
          {rest.at(0), fmt::format("unexpected '{}' after 'ones'", rest.text()), "nothing"});
  } else if (word == "file") {
    d.dist = DistKind::File, d.path = rest.text();
    if (rest.size() == 0)
      errors.push_back(
          {text.at(end), "'file' without a path", "the path of a .npy file, or MODEL.onnx:TENSOR"});
  } else if (word == "int" || word == "uniform") {
    d.dist = word == "int" ? DistKind::Int : DistKind::Uniform;
    const size_t dots = rest.text().find("..");
    if (dots == std::string::npos) {
      errors.push_back(
          {rest.at(0), fmt::format("'{}' without a range", word), fmt::format("{} LO..HI", word)});
    } else {
      read_bound(trimmed(rest, 0, dots), d.first, errors);
      read_bound(trimmed(rest, dots + 2, rest.size()), d.second, errors);
    }
  } else if (word == "normal") {
    d.dist = DistKind::Normal;
    const size_t gap = rest.text().find_first_of(" \t");
    if (gap == std::string::npos) {
      errors.push_back({rest.at(0), "'normal' needs two numbers", "normal MEAN DEVIATION"});
    } else {
      read_bound(trimmed(rest, 0, gap), d.first, errors);
      read_bound(trimmed(rest, gap, rest.size()), d.second, errors);
    }
  } else {
    errors.push_back({d.dist_at,
                      fmt::format("unknown dist '{}'{}", word,
                                  did_you_mean(word, {"int", "uniform", "normal", "ones", "file"})),
                      dist_grammar()});
  }
  return errors;
}

void default_dist(InputDef& d) {
  d.dist = is_float(d.dtype) ? DistKind::Uniform : DistKind::Int;
  d.first = constant(is_float(d.dtype) ? -1 : 0);
  d.second = constant(is_float(d.dtype) || d.dtype == DType::Bool ? 1 : 9);
}

std::optional<Diagnostic> evaluate_dist(const InputDef& d, const Params& params, Dist& out) {
  out.kind = d.dist, out.path = d.path;
  if (d.dist == DistKind::Ones || d.dist == DistKind::File) return std::nullopt;
  const auto a = value_of(d.first, params), b = value_of(d.second, params);
  for (const auto* v : {&a, &b})
    if (const auto* why = std::get_if<Diagnostic>(v)) return *why;
  const Number first = std::get<Number>(a), second = std::get<Number>(b);
  if (d.dist != DistKind::Int) {
    out.first = first.value(), out.second = second.value();
    return check_floats(d, out);
  }
  for (const auto& [n, p] : {std::pair{first, &d.first}, std::pair{second, &d.second}})
    if (n.is_float())
      return Diagnostic{place(d, *p), fmt::format("bound {} is no integer", n.real), "an integer"};
  out.lowest = first.integer, out.highest = second.integer;
  return check_integers(d, out);
}

}  // namespace beamline::workloads
