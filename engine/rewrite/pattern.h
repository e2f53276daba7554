// Patterns over UOps: small constexpr values, written in C++ operators.
//   x + 0            any node plus the constant 0        (either operand order)
//   x*c0 + x*c1      the same name is the same node;  c0 c1 match a bare CONST
//   node(Op::SHL | Op::SHR, x, 0)      an op set         any("gate"), p.as("m")   ad-hoc names
//   p.ints()  p.floats()  p.dtype(t)   element type      node(Op::SINK).tail()    further operands
//   allowed
// A two-operand node of commutative ops matches both orders; ordered(p) opts out.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "engine/ir/uop.h"

namespace beamline {

enum class TypeClass : uint8_t { Any, Int, Float, Bool, Exact };

/// One node of a pattern, in preorder.
struct Step {
  OpSet ops = ops::all;
  int64_t value = 0;
  std::string_view capture{};
  int8_t slot = -1;
  uint8_t nsrc = 0;
  bool has_value = false;  // a CONST equal to `value`
  bool any_src = true;     // operands are not looked at
  bool tail = false;       // more operands than named are fine
  bool commute = false;
  TypeClass type = TypeClass::Any;
  DType exact = DType::Void;
};

struct Pat {
  static constexpr size_t max_steps = 14;
  std::array<Step, max_steps> steps{};
  uint8_t size = 1;

  constexpr Pat() = default;
  constexpr Pat(int v) {
    steps[0].ops = Op::CONST;
    steps[0].value = v;
    steps[0].has_value = true;
  }
  template <std::same_as<Pat>... P>
  constexpr explicit Pat(OpSet o, const P&... src) {
    Step& s = steps[0];
    s.ops = o;
    s.any_src = false;
    s.nsrc = sizeof...(src);
    s.commute = s.nsrc == 2 && o.subset_of(ops::commutative);
    (append(src), ...);
  }
  constexpr Pat as(std::string_view name) const {
    Pat p = *this;
    p.steps[0].capture = name;
    return p;
  }
  constexpr Pat tail() const {
    Pat p = *this;
    p.steps[0].tail = true;
    return p;
  }
  constexpr Pat of(TypeClass c) const {
    Pat p = *this;
    p.steps[0].type = c;
    return p;
  }
  constexpr Pat ints() const { return of(TypeClass::Int); }
  constexpr Pat floats() const { return of(TypeClass::Float); }
  constexpr Pat bools() const { return of(TypeClass::Bool); }
  constexpr Pat dtype(DType t) const {
    Pat p = of(TypeClass::Exact);
    p.steps[0].exact = t;
    return p;
  }

 private:
  constexpr void append(const Pat& p) {
    if (size + p.size > max_steps) throw "pattern has too many nodes";
    for (uint8_t i = 0; i < p.size; i++) steps[size++] = p.steps[i];
  }
};

constexpr Pat any(std::string_view name = "") { return Pat().as(name); }
constexpr Pat cst(std::string_view name = "") {
  Pat p;
  p.steps[0].ops = Op::CONST;
  return p.as(name);
}
template <class... P>
constexpr Pat node(OpSet o, const P&... src) {
  return Pat(o, Pat(src)...);
}
template <class... P>
constexpr Pat node(Op o, const P&... src) {
  return Pat(OpSet(o), Pat(src)...);
}
constexpr Pat ordered(Pat p) {
  p.steps[0].commute = false;
  return p;
}
constexpr Pat operator+(const Pat& a, const Pat& b) { return Pat(OpSet(Op::ADD), a, b); }
constexpr Pat operator*(const Pat& a, const Pat& b) { return Pat(OpSet(Op::MUL), a, b); }
constexpr Pat operator/(const Pat& a, const Pat& b) { return Pat(OpSet(Op::FLOORDIV), a, b); }
constexpr Pat operator%(const Pat& a, const Pat& b) { return Pat(OpSet(Op::FLOORMOD), a, b); }
constexpr Pat operator^(const Pat& a, const Pat& b) { return Pat(OpSet(Op::XOR), a, b); }
constexpr Pat operator&(const Pat& a, const Pat& b) { return Pat(OpSet(Op::AND), a, b); }
constexpr Pat operator|(const Pat& a, const Pat& b) { return Pat(OpSet(Op::OR), a, b); }
constexpr Pat operator<(const Pat& a, const Pat& b) { return Pat(OpSet(Op::CMPLT), a, b); }

}  // namespace beamline
