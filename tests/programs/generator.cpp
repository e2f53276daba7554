#include "tests/programs/generator.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ir/arena.h"

namespace beamline::fuzz {
namespace {

constexpr int64_t most_elements = 240, most_work = 30000;

double largest(DType t) {
  switch (t) {
    case DType::Fp8e4m3:
    case DType::Fp8e5m2: return 100;
    case DType::F16: return 4000;
    case DType::BF16:
    case DType::F32: return 1e4;
    case DType::F64: return 1e6;
    case DType::I32:
    case DType::U32:
    case DType::I64:
    case DType::U64: return 1e7;
    default: return 1e9;  // narrow integers wrap
  }
}

// Neither nothing but special values nor numbers that overflow soon.
bool is_tame(const TensorValue& v) {
  size_t special = 0;
  for (size_t i = 0; i < v.size(); i++) {
    const double x = v.number(i);
    if (!std::isfinite(x))
      special++;
    else if (std::fabs(x) > largest(v.dtype))
      return false;
  }
  return special * 3 <= v.size();
}
bool same(const TensorValue& a, const TensorValue& b) {
  for (size_t i = 0; i < a.size(); i++) {
    const double x = a.number(i), y = b.number(i);
    if (x != y && !(std::isnan(x) && std::isnan(y))) return false;
    if (std::isfinite(x) && std::fabs(x) > 1 << 16) return false;  // sums of it may round
  }
  return true;
}

bool broadcasts(const Ints& a, const Ints& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++) {
    const int64_t x = a[a.size() - 1 - i], y = b[b.size() - 1 - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

}  // namespace

int64_t Generator::number(int64_t lowest, int64_t highest) {
  return lowest + static_cast<int64_t>(random_() % static_cast<uint64_t>(highest - lowest + 1));
}

Ints Generator::some_shape(size_t least_rank, size_t most_rank) {
  Ints s(static_cast<size_t>(
      number(static_cast<int64_t>(least_rank), static_cast<int64_t>(most_rank))));
  for (int64_t& d : s) d = chance(2) ? 0 : chance(15) ? 1 : number(2, 5);
  return s;
}

std::string Generator::fresh(DType t, const Ints& shape, int64_t least) {
  const std::string name = fmt::format("x{}", p_.inputs.size());
  TensorValue v(t, shape);
  for (size_t i = 0; i < v.size(); i++) {
    const int64_t n = number(least, 12);
    if (is_float(t))
      v.reals[i] = round_to(t, static_cast<double>(n) / (dtype_bytes(t) == 1 ? 4 : 8));
    else if (t == DType::Bool)
      v.wholes[i] = n & 1;
    else
      v.wholes[i] = is_unsigned(t) ? std::abs(n) : n;
  }
  p_.inputs.push_back({name, v});
  Var var;
  var.name = name, var.typed = std::move(v), var.used = true;
  vars_.push_back(std::move(var));
  return name;
}

const Var& Generator::pick(Wish wish, DType otherwise, size_t least_rank) {
  std::vector<size_t> fit, better;
  for (size_t i = 0; i < vars_.size(); i++) {
    if (!wish(vars_[i]) || vars_[i].rank() < least_rank) continue;
    fit.push_back(i);
    if (!vars_[i].used) better.push_back(i);
  }
  if (fit.empty()) {
    fresh(otherwise, some_shape(least_rank, std::max<size_t>(least_rank, 3)));
    return vars_.back();
  }
  const std::vector<size_t>& from = !better.empty() && chance(75) ? better : fit;
  return vars_[from[static_cast<size_t>(number(0, static_cast<int64_t>(from.size()) - 1))]];
}

std::string Generator::partner(const Var& x, Wish wish, bool numbers) {
  std::vector<std::string> fit;
  for (const Var& v : vars_)
    if (wish(v) && broadcasts(v.shape(), x.shape())) fit.push_back(v.name);
  if (numbers && (fit.empty() || chance(25))) {
    if (is_float(x.dtype()) && chance(60))
      return one_of<std::string>({"0.5", "1.5", "-0.25", "3.0"});
    return one_of<std::string>({"1", "2", "3"});
  }
  if (fit.empty()) return x.name;
  return fit[static_cast<size_t>(number(0, static_cast<int64_t>(fit.size()) - 1))];
}

std::string Generator::axes(const Var& x) {
  if (x.rank() == 0 || chance(15)) return "";
  if (x.rank() < 2 || chance(60)) return fmt::format(", axis={}", axis(x));
  Ints all(x.rank());
  for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<int64_t>(i);
  std::shuffle(all.begin(), all.end(), random_);
  all.resize(static_cast<size_t>(number(1, static_cast<int64_t>(all.size()))));
  return fmt::format(", axis=[{}]", fmt::join(all, ", "));
}

bool Generator::add(const std::string& expression, bool two) {
  Program trial = p_;
  const std::string name = fmt::format("t{}", p_.statements.size());
  trial.statements.push_back({two ? name + ", " + name + "b" : name, expression, {}});
  trial.results = two ? std::vector{name, name + "b"} : std::vector{name};
  Arena arena;
  const Arena::Scope scope(arena);
  const Graph g = build(trial);
  if (!g.error.empty()) return false;
  for (const auto& o : g.graph.outputs) {
    int64_t n = 1;
    for (int64_t d : o.shape) n *= d;
    if (n > most_elements || o.shape.size() > 5) return false;
  }
  if (evaluation_work(g.graph.sink) > most_work) return false;
  std::vector<TensorValue> inputs;
  for (const Input& i : p_.inputs) inputs.push_back(i.value);
  auto typed = evaluate_tensors(g.graph.sink, inputs, Rounding::Typed);
  const auto wide = evaluate_tensors(g.graph.sink, inputs, Rounding::Wide);
  for (const TensorValue& v : typed)
    if (!is_tame(v)) return false;
  std::string text = " " + expression + " ";
  for (Var& v : vars_)
    for (size_t at = text.find(v.name); at != std::string::npos; at = text.find(v.name, at + 1))
      if (!std::isalnum(static_cast<unsigned char>(text[at - 1])) &&
          !std::isalnum(static_cast<unsigned char>(text[at + v.name.size()])))
        v.used = true;
  for (size_t i = 0; i < typed.size(); i++) {
    Var v;
    v.name = trial.results[i];
    v.exact = same(typed[i], wide[i]);
    v.typed = std::move(typed[i]);
    vars_.push_back(std::move(v));
  }
  p_ = std::move(trial);
  return true;
}

Program Generator::program() {
  p_ = {}, vars_.clear();
  const std::vector<Choice>& all = choices();
  fresh(DType::F32, some_shape(1, 3));
  fresh(one_of({DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16, DType::Fp8e4m3,
                DType::Fp8e5m2}),
        some_shape(0, 3));
  fresh(one_of({DType::I32, DType::I64, DType::U8, DType::I8, DType::I16, DType::U16, DType::U32,
                DType::U64}),
        some_shape(0, 3));
  for (Var& v : vars_) v.used = false;
  const auto statements = static_cast<size_t>(number(8, 16));
  for (int tries = 0; p_.statements.size() < statements && tries < 400; tries++) {
    const Choice& c = all[static_cast<size_t>(number(0, static_cast<int64_t>(all.size()) - 1))];
    const Program before = p_;  // a choice that comes to nothing leaves no inputs behind
    const std::deque<Var> vars = vars_;
    const std::string expression = c.make(*this);
    if (!expression.empty() && add(expression, expression.starts_with("split("))) continue;
    p_ = before, vars_ = vars;
  }
  p_.results.clear();
  for (size_t i = vars_.size(); i-- > 0 && p_.results.size() < 3;)
    if (vars_[i].name[0] == 't' && (!vars_[i].used || p_.results.empty()))
      p_.results.push_back(vars_[i].name);
  return without_dead_code(p_);
}

}  // namespace beamline::fuzz
