#include "engine/lower/sine.h"

#include <cmath>
#include <vector>

#include "engine/base/check.h"

namespace beamline {
namespace {

UOp wide(double v) { return fconst(v, DType::F64); }
UOp word(uint64_t v) { return iconst(static_cast<int64_t>(v), DType::U64); }
UOp as(UOp x, DType t) { return make(Op::CAST, t, {x}); }
UOp shift_right(UOp x, UOp by) { return alu(Op::SHR, {x, by}); }
UOp shift_left(UOp x, UOp by) { return alu(Op::SHL, {x, by}); }

// x = k pi/2 + r with |r| <= pi/4; of k only the two low bits count.
struct Reduced {
  UOp quarter, rest;
};

// Cody and Waite: pi/2 in three parts whose products with k are exact up to |x| = 2^20.
Reduced reduce_small(UOp x) {
  const UOp scaled = x * wide(M_2_PI);
  const UOp k = as(scaled + where(scaled < wide(0), wide(-0.5), wide(0.5)), DType::I64);
  const UOp whole = cast(k, DType::F64);
  UOp r = x;
  for (double part : {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34, 0x1.3198a2e037073p-69})
    r = r - whole * wide(part);
  return {k, r};
}

// The bits of 2/pi behind the point, after 64 zeros.
constexpr uint32_t two_over_pi[] = {
    0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08};

// `count` words of 2/pi from word `first` on, first in [0, 2^levels): halves of the table are
// chosen bit by bit of `first`.
std::vector<UOp> words_from(UOp first, size_t levels, size_t count) {
  std::vector<UOp> words;
  for (size_t i = 0; i < (size_t{1} << levels) + count - 1; i++)
    words.push_back(word(i < std::size(two_over_pi) ? two_over_pi[i] : 0));
  for (size_t level = levels; level-- > 0;) {
    const size_t half = size_t{1} << level;
    const UOp upper = ne(first & word(half), word(0));
    for (size_t i = 0; i < half + count - 1; i++)
      words[i] = where(upper, words[i + half], words[i]);
    words.resize(half + count - 1);
  }
  return words;
}

// Payne and Hanek: |x| = m 2^e with a whole m. Bits of 2/pi whose product with |x| is a multiple of
// 4 are left out; from the 128 that follow comes x * 2/pi modulo 4, as 2 + 62 bits.
Reduced reduce_large(UOp x) {
  const UOp bits = make(Op::BITCAST, DType::U64, {x});
  const UOp biased = shift_right(bits, word(52)) & word(0x7ff);
  const UOp m = (bits & word((uint64_t{1} << 52) - 1)) | word(uint64_t{1} << 52);
  // e = biased - 1075; the first bit is number e + 62 of the table. Below 2^20 it does not matter.
  const UOp low = word(1013);
  const UOp at = where(biased < low, low, biased) + word(static_cast<uint64_t>(-1013));
  const UOp index = shift_right(at, word(5));
  const UOp by = at & word(31);
  constexpr size_t count = 5;
  const std::vector<UOp> raw = words_from(index, 6, count);
  const UOp mask = word(0xffffffff), back = word(32) - by;
  std::vector<UOp> w;  // shifted into place, 32 bits each
  for (size_t i = 0; i + 1 < count; i++)
    w.push_back((shift_left(raw[i], by) | shift_right(raw[i + 1], back)) & mask);
  const UOp upper = shift_left(w[0], word(32)) | w[1];
  // Modulo 2^64: the upper 64 bits of the 128 that m times the words come to.
  const UOp high = shift_right(m, word(32)), bottom = m & mask;
  UOp turns = m * upper + high * w[2] + shift_right(bottom * w[2], word(32));
  turns = turns + shift_right(high * w[3], word(32));
  const UOp k = shift_right(turns + word(uint64_t{1} << 61), word(62));
  const UOp rest = as(turns - shift_left(k, word(62)), DType::I64);
  const UOp r = cast(rest, DType::F64) * wide(M_PI_2 * 0x1p-62);
  const UOp negative = x < wide(0), quarter = as(k, DType::I64);
  return {where(negative, quarter * iconst(-1, DType::I64), quarter),
          where(negative, r * wide(-1), r)};
}

// The sum of (-z)^i / (2i + first)!: Taylor series, (pi/4)^19/19! < 1e-19.
UOp series(UOp z, int first) {
  double c = 1;
  for (int i = 2; i <= 18 + first; i++) c /= i;
  UOp p = wide(c * -1);
  for (int i = 8; i >= 0; i--) {
    c *= (2 * i + 1 + first) * (2 * i + 2 + first);
    p = p * z + wide(i % 2 == 0 ? c : -c);
  }
  return p;
}

// sin(x + quarters pi/2).
UOp sine_of_double(UOp x, int quarters) {
  const UOp bound = wide(0x1p20);
  const UOp large = ne((x < bound) & (x * wide(-1) < bound), bool_const(true));
  const Reduced near = reduce_small(x), far = reduce_large(x);
  const UOp r = where(large, far.rest, near.rest);
  UOp k = where(large, far.quarter, near.quarter);
  if (quarters != 0) k = k + iconst(quarters, DType::I64);
  const UOp z = r * r;
  const auto bit = [&](int64_t m) { return ne(k & iconst(m, DType::I64), iconst(0, DType::I64)); };
  const UOp value = where(bit(1), series(z, 0), r * series(z, 1));
  // Infinity minus itself is NaN.
  return where(bit(2), value * wide(-1), value) + (x - x);
}

// 1/(2 pi) in parts of 29 bits, whose products with a float are exact in f64, and a last one that
// stays below 2^-21 turns for the largest float.
constexpr double per_turn[] = {0x1.45f306dp-3,  0x1.9391054p-32,  0x1.4fe13abp-61,
                               0x1.d1f534dp-90, 0x1.b81b6c5p-119, 0x1.5993c439041fep-150};

// Of a float. Whole turns are left out of every product, quarters of their sum: what stays is as
// exact as f64 is. The series are f32: r^9/9! and r^10/10! are their last terms.
UOp sine_of_float(UOp x, int quarters) {
  const UOp v = as(x, DType::F64);
  std::vector<UOp> turns;
  for (double part : per_turn) {
    const UOp t = v * wide(part);
    turns.push_back(turns.size() + 1 == std::size(per_turn) ? t : t - alu(Op::TRUNC, {t}));
  }
  UOp sum = turns[0];
  for (size_t i = 1; i + 1 < turns.size(); i++) sum = sum + turns[i];
  // A sum with 1.5 * 2^52 has no fraction, and its lowest bits are the number of quarters.
  const UOp shifted = sum * wide(4) + wide(0x1.8p52), quarter = shifted + wide(-0x1.8p52);
  UOp rest = quarter * wide(-0.25) + turns[0];
  for (size_t i = 1; i < turns.size(); i++) rest = rest + turns[i];
  UOp k = as(make(Op::BITCAST, DType::I64, {shifted}), DType::I32);
  if (quarters != 0) k = k + iconst(quarters, DType::I32);
  const UOp r = as(rest * wide(2 * M_PI), DType::F32), z = r * r;
  const auto f = [](double c) { return fconst(c, DType::F32); };
  const auto polynomial = [&](std::initializer_list<double> inverse) {
    UOp p;
    for (double n : inverse) p = p ? p * z + f(1 / n) : f(1 / n);
    return p;
  };
  const UOp sine = polynomial({362880, -5040, 120, -6}) * (r * z) + r;
  const UOp cosine = polynomial({-3628800, 40320, -720, 24, -2}) * z + f(1);
  const auto bit = [&](int64_t m) { return ne(k & iconst(m, DType::I32), iconst(0, DType::I32)); };
  const UOp value = where(bit(1), cosine, sine);
  return where(bit(2), value * f(-1), value);
}

UOp sine(UOp x, int quarters) {
  CHECK(x.dtype() == DType::F32 || x.dtype() == DType::F64);
  return x.dtype() == DType::F64 ? sine_of_double(x, quarters) : sine_of_float(x, quarters);
}

}  // namespace

UOp decompose_sin(UOp x) { return sine(x, 0); }
UOp decompose_cos(UOp x) { return sine(x, 1); }

}  // namespace beamline
