// Rules: name, pattern, replacement; checked when compiled, kept as constant data.
//   rule("mul-factor", x*c0 + x*c1, [](X x, C0 a, C1 b) { return x * (a + b); })
// A replacement's parameter *types* name the captures it takes; a name the pattern does not bind is
// a compile error on the rule's line. It may take a context first (`Ctx&`); it may not capture. It
// returns a null UOp, or the node itself, to decline: then the next operand order and the next rule
// are tried. Tables: `Rules<>`; a + b tries a's rules first. `Matcher` freezes a table into per-op
// buckets and is safe to share between threads.
#pragma once
#include <atomic>
#include <memory>
#include <source_location>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/rewrite/pattern.h"

namespace beamline {

template <size_t N>
struct FixedString {
  char s[N];
  constexpr FixedString(const char (&t)[N]) { std::copy_n(t, N, s); }
};
template <FixedString Name>
struct Cap : UOp {
  static constexpr std::string_view name{Name.s};
  explicit Cap(UOp u) : UOp(u) {}
};

inline constexpr size_t max_captures = 8;
using Slots = std::array<int8_t, max_captures>;
struct Bindings {
  std::array<const Node*, max_captures> slot{};
  UOp at(int8_t i) const { return UOp(slot[static_cast<size_t>(i)]); }
};
using RuleFn = UOp (*)(void* ctx, const Bindings&, const Slots&);

namespace detail {
template <class F>
struct Sig;
template <class C, class R, class... A>
struct Sig<R (C::*)(A...) const> {
  using Args = std::tuple<A...>;
};
template <class T>
concept IsCap = requires {
  T::name;
};
template <class F, class Args>
struct Call;
template <class F, class... A>
requires(IsCap<A>&&...) struct Call<F, std::tuple<A...>> {
  using Ctx = void;
  static constexpr std::array<std::string_view, sizeof...(A)> names{A::name...};
  template <size_t... I>
  static UOp go(const Bindings& b, const Slots& at, std::index_sequence<I...>) {
    return F{}(A(b.at(at[I]))...);
  }
  static UOp call(void*, const Bindings& b, const Slots& at) {
    return go(b, at, std::index_sequence_for<A...>{});
  }
};
template <class F, class C, class... A>
requires(!IsCap<C> && (IsCap<A> && ...)) struct Call<F, std::tuple<C, A...>> {
  using Ctx = std::remove_reference_t<C>;
  static constexpr std::array<std::string_view, sizeof...(A)> names{A::name...};
  template <size_t... I>
  static UOp go(void* c, const Bindings& b, const Slots& at, std::index_sequence<I...>) {
    return F{}(*static_cast<Ctx*>(c), A(b.at(at[I]))...);
  }
  static UOp call(void* c, const Bindings& b, const Slots& at) {
    return go(c, b, at, std::index_sequence_for<A...>{});
  }
};
}  // namespace detail

/// What a rule may change of floats: nothing; their rounding; NaN and Inf too (math = "relaxed").
enum class RuleClass : uint8_t { Exact, Rounds, Relaxed };

/// A rule ready to match: slots resolved, early-reject set computed.
struct Rule {
  std::string_view name;
  Pat pat;
  OpSet need{};       // ops that must be among the direct operands
  uint8_t swaps = 0;  // commutative nodes of the pattern
  Slots at{};
  RuleFn fn = nullptr;
  std::source_location where{};
  bool law =
      false;  // both sides have equal value, dtype and shape: a result that has not is declined
  RuleClass kind = RuleClass::Exact;
};
template <class Ctx>
struct RuleOf : Rule {};

template <class F>
consteval auto rule(std::string_view name, Pat p, F,
                    std::source_location where = std::source_location::current()) {
  static_assert(std::is_empty_v<F>,
                "a rule's lambda may not capture; pass state through the context");
  using K = detail::Call<F, typename detail::Sig<decltype(&F::operator())>::Args>;
  RuleOf<typename K::Ctx> r{{name, p, {}, 0, {}, &K::call, where}};
  std::array<std::string_view, max_captures> seen{};
  int8_t n = 0;
  for (uint8_t i = 0; i < r.pat.size; i++) {
    Step& s = r.pat.steps[i];
    r.swaps = static_cast<uint8_t>(r.swaps + s.commute);
    if (s.capture.empty()) continue;
    for (int8_t k = 0; k < n; k++)
      if (seen[static_cast<size_t>(k)] == s.capture) s.slot = k;
    if (s.slot < 0) {
      if (n == static_cast<int8_t>(max_captures)) throw "too many captures";
      seen[static_cast<size_t>(n)] = s.capture;
      s.slot = n++;
    }
  }
  for (size_t i = 0; i < K::names.size(); i++) {
    r.at[i] = -1;
    for (int8_t k = 0; k < n; k++)
      if (seen[static_cast<size_t>(k)] == K::names[i]) r.at[i] = k;
    if (r.at[i] < 0) throw "the lambda names a capture the pattern does not bind";
  }
  uint8_t i = 1;
  for (uint8_t c = 0; c < r.pat.steps[0].nsrc; c++) {
    if (r.pat.steps[i].ops.single()) r.need = r.need | r.pat.steps[i].ops;
    for (int open = 1; open > 0; i++)
      open += r.pat.steps[i].nsrc - 1;  // over this operand's subtree
  }
  return r;
}

template <class Ctx = void>
class Rules {
 public:
  constexpr Rules() = default;
  template <size_t N>
  Rules(const RuleOf<Ctx> (&r)[N]) {
    for (const auto& x : r) list_.push_back(&x);
  }
  template <class C>
  requires(std::is_void_v<C> && !std::is_void_v<Ctx>) Rules(const Rules<C>& o) : list_(o.list()) {}
  const std::vector<const Rule*>& list() const& { return list_; }
  const std::vector<const Rule*>& list() && = delete;
  void append(const std::vector<const Rule*>& o) { list_.insert(list_.end(), o.begin(), o.end()); }

 private:
  std::vector<const Rule*> list_;
};
template <class A, class B>
requires(std::is_void_v<A> || std::is_void_v<B> || std::is_same_v<A, B>) auto operator+(
    const Rules<A>& a, const Rules<B>& b) {
  Rules<std::conditional_t<std::is_void_v<A>, B, A>> r;
  r.append(a.list());
  r.append(b.list());
  return r;
}

/// What became of a rule's attempts.
struct RuleCount {
  uint64_t tried = 0;    // nodes of its ops that were compared with the pattern
  uint64_t matched = 0;  // the pattern fitted
  uint64_t applied = 0;  // and the rule gave a result
  double ns = 0;         // spent in all of it
};

/// Receives every applied rewrite, with the ns that matching and replacing took. Not thread safe.
struct Trace {
  virtual void rewrote(const Rule&, UOp before, UOp after, double ns) = 0;
  /// Where attempts are counted, or null: counting reads the clock for every attempt.
  virtual RuleCount* count(const Rule&) { return nullptr; }
  virtual ~Trace() = default;
};

class MatcherBase {
 public:
  explicit MatcherBase(const std::vector<const Rule*>& rules);
  /// The first rule's result for u, or null. `fired` receives the rule.
  UOp rewrite(UOp u, void* ctx, Trace* trace, const Rule** fired = nullptr) const;
  const std::vector<const Rule*>& rules() const { return all_; }

 private:
  UOp traced(UOp u, void* ctx, Trace& trace, const Rule** fired) const;

  std::vector<const Rule*> all_;
  // Per op and kind of type what early reject looks at, densely; the rule itself only when it
  // passes.
  struct Entry {
    OpSet need;
    const Rule* rule;
  };
  static constexpr size_t type_groups = 3;  // integers, floats, the rest
  static constexpr size_t type_group(DType t) { return is_int(t) ? 0 : is_float(t) ? 1 : 2; }
  const std::vector<Entry>& bucket(UOp u) const {
    return bucket_[static_cast<size_t>(u.op())][type_group(u.dtype())];
  }
  std::array<std::array<std::vector<Entry>, type_groups>, op_count> bucket_;
};
/// Why the rule does not rewrite u, in words: "operand 1 of ADD #7: expected MUL, found CONST #3".
/// The step named is the farthest that any order of operands reached. Empty when it rewrites u.
std::string explain(const Rule& rule, UOp u, void* ctx = nullptr);

template <class Ctx = void>
struct Matcher : MatcherBase {
  explicit Matcher(const Rules<Ctx>& r) : MatcherBase(r.list()) {}
};

namespace pat {
using X = Cap<"x">;
using Y = Cap<"y">;
using Z = Cap<"z">;
using B = Cap<"b">;
using C0 = Cap<"c0">;
using C1 = Cap<"c1">;
inline constexpr Pat x = any("x"), y = any("y"), z = any("z"), c0 = cst("c0"), c1 = cst("c1");
inline constexpr Pat b = any("b").bools();
inline constexpr Pat xi = any("x").ints(), xw = any("x").dtype(DType::WeakInt);
}  // namespace pat

}  // namespace beamline
