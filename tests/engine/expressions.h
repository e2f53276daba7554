// Random well-typed scalar expressions, and random values for their leaves.
#pragma once
#include <fmt/format.h>

#include <random>
#include <string>

#include "engine/interpret/scalar.h"
#include "engine/ir/arena.h"

namespace beamline::testing {

class Expressions {
 public:
  explicit Expressions(uint64_t seed) : rng_(seed) {}

  uint64_t below(uint64_t n) { return n == 0 ? 0 : rng_() % n; }
  int64_t between(int64_t lo, int64_t hi) {
    return lo +
           static_cast<int64_t>(below(static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1));
  }
  bool coin() { return below(2) != 0; }
  template <class T, size_t N>
  T any_of(const T (&choices)[N]) {
    return choices[below(N)];
  }
  /// Small values most of the time.
  int64_t number() {
    if (below(40) == 0) return coin() ? INT64_MAX - between(0, 2) : INT64_MIN + between(0, 2);
    if (below(12) == 0) return between(-1000, 1000);
    return between(-9, 9);
  }
  UOp constant(DType t) {
    static constexpr double reals[] = {0.0,   -0.0, 1.0,   -1.0,     2.0,       0.5,
                                       -3.25, 1e30, -1e30, INFINITY, -INFINITY, NAN};
    if (is_float(t)) return fconst(reals[below(std::size(reals))], t);
    if (t == DType::Bool) return bool_const(coin());
    return iconst(wrap_to(t, number()), t);
  }
  /// One of few variables of type t; bounds differ from one to the next.
  UOp variable_of(DType t) {
    static constexpr int64_t bounds[][2] = {{0, 7}, {-3, 3}, {0, 31}, {5, 9}, {-20, -1}, {0, 1000}};
    const uint64_t i = below(4);
    const std::string name = fmt::format("v{}_{}", i, dtype_name(t));
    if (t == DType::Bool) return variable(name, 0, 1, t);
    if (is_float(t)) return variable(name, 0, 0, t);
    if (is_unsigned(t))
      return i == 3 ? variable(name, dtype_min(t), dtype_max(t), t)
                    : variable(name, static_cast<int64_t>(i), 40, t);
    if (t != DType::WeakInt && i == 3) return variable(name, dtype_min(t), dtype_max(t), t);
    if (t == DType::WeakInt && coin()) {
      const int64_t end = std::initializer_list<int64_t>{4, 8, 16, 512}.begin()[i];
      return range(end, static_cast<int64_t>(i), AxisType::LOOP);
    }
    const auto& b = bounds[below(std::size(bounds))];
    return variable(fmt::format("{}_{}", name, &b - bounds), b[0], b[1], t);
  }
  UOp leaf(DType t) { return below(3) == 0 ? constant(t) : variable_of(t); }
  UOp of(DType t, int depth) {
    if (depth <= 0 || below(8) == 0) return leaf(t);
    if (below(10) == 0)
      return where(of(DType::Bool, depth - 1), of(t, depth - 1), of(t, depth - 1));
    if (t == DType::Bool) return condition(depth);
    if (is_float(t)) return real_op(t, depth);
    if (below(9) == 0) return idiom(t, depth);
    static constexpr Op ring[] = {Op::ADD, Op::ADD, Op::ADD, Op::MUL, Op::MUL,
                                  Op::MAX, Op::SUB, Op::AND, Op::OR,  Op::XOR};
    switch (below(7)) {
      case 0:
        return alu(coin() ? Op::FLOORDIV : Op::FLOORMOD, {of(t, depth - 1), divisor(t, depth)});
      case 1: return alu(coin() ? Op::FLOORDIV : Op::FLOORMOD, {of(t, depth - 1), divisor(t, 0)});
      case 2: return of(t, depth - 1) * constant(t);
      case 3:
        if (below(4) == 0)
          return alu(coin() ? Op::SHL : Op::SHR, {of(t, depth - 1), iconst(between(0, 5), t)});
        if (below(3) == 0) return cast(of(DType::Bool, depth - 1), t);
        return of(t, depth - 1) + constant(t);
      default: return alu(ring[below(std::size(ring))], {of(t, depth - 1), of(t, depth - 1)});
    }
  }
  /// Values within the bounds of every leaf of `root`.
  Assignment values(UOp root) {
    Assignment a;
    for (UOp u : toposort(root)) {
      if (u.op() == Op::RANGE) {
        const auto end = evaluate(u.src(0), a);
        const int64_t n = end && end->whole > 0
                              ? static_cast<int64_t>(std::min<__int128>(end->whole, INT64_MAX))
                              : 1;
        a[u] = whole(between(0, n - 1));
      } else if (u.op() == Op::PARAM || u.op() == Op::SPECIAL) {
        static constexpr double reals[] = {0.0,   1.0,      -1.0,      3.5, -2.25, 1e20,
                                           -1e20, INFINITY, -INFINITY, NAN, 0.125};
        if (is_float(u.dtype()))
          a[u] = real(round_to(u.dtype(), reals[below(std::size(reals))]));
        else
          a[u] =
              whole(below(4) == 0 ? (coin() ? u.vmin() : u.vmax()) : between(u.vmin(), u.vmax()));
      }
    }
    return a;
  }

 private:
  UOp divisor(DType t, int depth) {
    if (depth > 0 && below(3) == 0) return of(t, depth - 2);
    static constexpr int64_t d[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 32, -1, -2, -3, -4, 64, 0};
    return iconst(wrap_to(t, d[below(std::size(d))]), t);
  }
  // Sums as index math makes them: the parts of one quotient, two selections under one condition,
  // min.
  UOp idiom(DType t, int depth) {
    const UOp x = of(t, depth - 2), m = iconst(between(1, 4), t);
    const int64_t d = between(2, 8), e = between(2, 4);
    const UOp cd = iconst(d, t), scale = iconst(d * m.ival(), t);
    switch (below(6)) {
      case 4: {
        UOp sum = x / cd * m;
        for (int64_t k = 1; k < d; k++) sum = sum + (x + iconst(k, t)) / cd * m;
        return sum;
      }
      case 0: return x % cd * m + x / cd * scale;
      case 1: return x % cd * m + x / cd % iconst(e, t) * scale;
      case 2: {
        const UOp c = of(DType::Bool, depth - 2), y = of(t, depth - 2);
        const UOp a = where(c, x, constant(t)),
                  b = coin() ? where(c, constant(t), y) : where(c, y, constant(t));
        return coin() ? a * m + b : alu(coin() ? Op::MAX : Op::AND, {a, where(c, y, constant(t))});
      }
      case 3: {
        const UOp y = coin() ? of(t, depth - 2) : constant(t);
        return coin() ? where(x < y, x, y) : where(x < y, y, x);
      }
      default: return (x * scale + variable_of(t) * m + constant(t)) / iconst(d * m.ival() * e, t);
    }
  }
  UOp condition(int depth) {
    static constexpr DType types[] = {DType::WeakInt, DType::WeakInt, DType::WeakInt,
                                      DType::I32,     DType::F32,     DType::Bool};
    static constexpr Op joins[] = {Op::AND, Op::OR, Op::XOR, Op::AND, Op::OR, Op::CMPNE, Op::CMPEQ};
    switch (below(5)) {
      case 0: return logical_not(of(DType::Bool, depth - 1));
      case 2: {  // bounds of one range, as guards have them
        const UOp r = range(coin() ? 8 : 512, coin(), AxisType::LOOP), k = iconst(between(-1, 9));
        return coin() ? r < k : coin() ? k < r : alu(coin() ? Op::CMPEQ : Op::CMPNE, {r, k});
      }
      case 1:
        return alu(joins[below(std::size(joins))],
                   {of(DType::Bool, depth - 1), of(DType::Bool, depth - 1)});
      default: {
        const DType t = types[below(std::size(types))];
        static constexpr Op compares[] = {Op::CMPLT, Op::CMPLT, Op::CMPNE, Op::CMPEQ};
        return alu(compares[below(4)], {of(t, depth - 1), coin() ? constant(t) : of(t, depth - 1)});
      }
    }
  }
  UOp real_op(DType t, int depth) {
    static constexpr Op two[] = {Op::ADD, Op::MUL, Op::MAX, Op::FDIV, Op::SUB};
    static constexpr Op one[] = {Op::NEG, Op::TRUNC, Op::RECIPROCAL, Op::SQRT};
    switch (below(6)) {
      case 0: return alu(one[below(std::size(one))], {of(t, depth - 1)});
      case 1: return cast(of(coin() ? DType::I32 : DType::Bool, depth - 1), t);
      case 2: return of(t, depth - 1) * constant(t);
      default: return alu(two[below(std::size(two))], {of(t, depth - 1), of(t, depth - 1)});
    }
  }

  std::mt19937_64 rng_;
};

}  // namespace beamline::testing
