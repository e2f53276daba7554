#include <cmath>

#include <fmt/format.h>

#include "workloads/expression.h"

namespace beamline::workloads {
namespace {

std::string number_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return "inf";
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".e") == s.npos) s += ".0";
  return s;
}

std::string list_text(const std::vector<std::string>& done, const std::vector<int>& args,
                      size_t from) {
  std::string s;
  for (size_t i = from; i < args.size(); i++)
    s += (i == from ? "" : ", ") + done[static_cast<size_t>(args[i])];
  return s;
}

std::string expr_text(const Expr& e, std::vector<std::string>& done) {
  const auto arg = [&](size_t i) -> const std::string& {
    return done[static_cast<size_t>(e.args[i])];
  };
  switch (e.kind) {
    case ExprKind::Int: return fmt::format("{}", e.integer);
    case ExprKind::Float: return number_text(e.number);
    case ExprKind::Bool: return e.integer ? "true" : "false";
    case ExprKind::None: return "none";
    case ExprKind::Text: {
      const char quote = e.text.find('"') == e.text.npos ? '"' : '\'';
      return quote + e.text + quote;
    }
    case ExprKind::Name: return e.text;
    case ExprKind::NewAxis: return "newaxis";
    case ExprKind::Ellipsis: return "...";
    case ExprKind::List: return "[" + list_text(done, e.args, 0) + "]";
    case ExprKind::Unary: return fmt::format("({}{})", operator_text(e.op), arg(0));
    case ExprKind::Binary: return fmt::format("({} {} {})", arg(0), operator_text(e.op), arg(1));
    case ExprKind::Subscript: return arg(0) + "[" + list_text(done, e.args, 1) + "]";
    case ExprKind::Slice: {
      const auto part = [&](size_t i) { return e.args[i] < 0 ? std::string() : arg(i); };
      return part(0) + ":" + part(1) + (e.args[2] < 0 ? "" : ":" + part(2));
    }
    case ExprKind::Call: {
      std::string s = e.text + "(" + list_text(done, e.args, 0);
      for (const Keyword& k : e.keywords)
        s += (s.back() == '(' ? "" : ", ") + k.name + "=" + done[static_cast<size_t>(k.value)];
      return s + ")";
    }
  }
  return "";
}

std::vector<std::string> texts(const Program& p, int first, int last) {
  std::vector<std::string> done(static_cast<size_t>(last) + 1);
  for (int i = first; i <= last; i++) {
    const Expr& e = p.exprs[static_cast<size_t>(i)];
    done[static_cast<size_t>(i)] = expr_text(e, done);
    // Each node has one user: what it printed is no longer needed.
    for (int a : e.args)
      if (a >= 0) std::string().swap(done[static_cast<size_t>(a)]);
  }
  return done;
}

}  // namespace

std::string print(const Program& p, int node) {
  return texts(p, 0, node)[static_cast<size_t>(node)];
}

std::string print(const Program& p) {
  std::string out;
  for (const Statement& s : p.statements) {
    const std::vector<std::string> done = texts(p, s.first, s.last);
    for (size_t i = 0; i < s.targets.size(); i++) out += (i ? ", " : "") + s.targets[i].name;
    out += s.targets.empty() ? "return " : " = ";
    out += list_text(done, s.values, 0) + "\n";
  }
  return out;
}

}  // namespace beamline::workloads
