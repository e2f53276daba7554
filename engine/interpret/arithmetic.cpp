#include "engine/interpret/arithmetic.h"

#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/ir/derive.h"

namespace beamline {

double real_arithmetic(Op op, double a, double b, double c) {
  switch (op) {
    case Op::ADD: return a + b;
    case Op::SUB: return a - b;
    case Op::MUL: return a * b;
    case Op::MULACC: return a * b + c;
    case Op::FDIV: return a / b;
    case Op::MAX:
      return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN()
                                            : std::max(a, b);
    case Op::POW: return std::pow(a, b);
    case Op::EXP2: return std::exp2(a);
    case Op::LOG2: return std::log2(a);
    case Op::SIN: return std::sin(a);
    case Op::SQRT: return std::sqrt(a);
    case Op::RECIPROCAL: return 1 / a;
    case Op::NEG: return -a;
    case Op::TRUNC: return std::trunc(a);
    default: CHECK(false && "no meaning for floats"); return 0;
  }
}

std::optional<int64_t> whole_arithmetic(Op op, DType t, int64_t a, int64_t b, int64_t c) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  uint64_t r = 0;
  switch (op) {
    case Op::ADD: r = ua + ub; break;
    case Op::SUB: r = ua - ub; break;
    case Op::MUL: r = ua * ub; break;
    case Op::MULACC: r = ua * ub + static_cast<uint64_t>(c); break;
    case Op::NEG: r = 0 - ua; break;
    case Op::SHL:
      if (ub > 63) return std::nullopt;
      r = ua << ub;
      break;
    case Op::SHR:
      if (ub > 63) return std::nullopt;
      r = t == DType::U64 ? ua >> ub : static_cast<uint64_t>(a >> ub);
      break;
    case Op::MAX:
      r = t == DType::U64 ? std::max(ua, ub) : static_cast<uint64_t>(std::max(a, b));
      break;
    case Op::FLOORDIV:
    case Op::FLOORMOD:
    case Op::CDIV:
    case Op::CMOD: {
      if (b == 0) return std::nullopt;
      const bool quotient = op == Op::FLOORDIV || op == Op::CDIV;
      if (t == DType::U64)
        r = quotient ? ua / ub : ua % ub;
      else if (b == -1)
        r = quotient ? 0 - ua : 0;
      else if (op == Op::CDIV || op == Op::CMOD)
        r = static_cast<uint64_t>(quotient ? a / b : a % b);
      else
        r = static_cast<uint64_t>(quotient ? floor_div(a, b) : floor_mod(a, b));
      break;
    }
    case Op::THREEFRY: r = threefry(ua, ub); break;
    default: {
      const auto folded = fold_int(op, a, b, c);
      if (!folded) return std::nullopt;
      r = static_cast<uint64_t>(*folded);
    }
  }
  return wrap_to(t, static_cast<int64_t>(r));
}

bool compare_wholes(Op op, DType t, int64_t a, int64_t b) {
  if (op == Op::CMPLT)
    return t == DType::U64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
  return (op == Op::CMPNE) == (a != b);
}

int64_t saturated(double v, DType t) {
  if (std::isnan(v)) return 0;
  if (t == DType::U64) {
    if (v >= 0x1p64) return -1;
    return v <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(v));
  }
  const double lo = static_cast<double>(dtype_min(t)), hi = static_cast<double>(dtype_max(t));
  return v <= lo ? dtype_min(t) : v >= hi ? dtype_max(t) : static_cast<int64_t>(v);
}

uint64_t threefry(uint64_t counter, uint64_t key) {
  // Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): Threefry-2x32, 20 rounds.
  constexpr uint32_t parity = 0x1BD11BDA;
  constexpr int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t k[3] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
                         static_cast<uint32_t>(key) ^ static_cast<uint32_t>(key >> 32) ^ parity};
  uint32_t x0 = static_cast<uint32_t>(counter) + k[0],
           x1 = static_cast<uint32_t>(counter >> 32) + k[1];
  for (uint32_t round = 0; round < 20; round++) {
    x0 += x1;
    x1 = std::rotl(x1, rotations[round % 8]) ^ x0;
    if (round % 4 != 3) continue;
    const uint32_t group = round / 4 + 1;
    x0 += k[group % 3];
    x1 += k[(group + 1) % 3] + group;
  }
  return uint64_t{x1} << 32 | x0;
}

}  // namespace beamline
