// The operations of the one IR, written once, and the sets of them that rules and passes name.
// Text uses the names below; nothing that reaches text or a key depends on the enum's order.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace beamline {

// clang-format off
#define BEAMLINE_FOR_EACH_OP(X)                                                                   \
  /* definition */ X(SPECIAL) X(BUFFER) X(NOOP) X(REWRITE_ERROR) X(PARAM) X(FUNCTION) X(CALL)      \
  /* program   */ X(PROGRAM) X(LINEAR) X(SOURCE) X(BINARY)                                         \
  /* structure */ X(SINK) X(AFTER) X(GROUP) X(STACK) X(TUPLE) X(GETTUPLE) X(GETADDR)               \
  /* memory    */ X(INDEX) X(SHRINK) X(LOAD) X(STORE) X(WMMA)                                      \
  /* unary     */ X(CAST) X(BITCAST) X(EXP2) X(LOG2) X(SIN) X(SQRT) X(RECIPROCAL) X(NEG) X(TRUNC)  \
  /* binary    */ X(ADD) X(MUL) X(SHL) X(SHR) X(CDIV) X(MAX) X(CMOD) X(CMPLT) X(CMPNE) X(CMPEQ)    \
                  X(XOR) X(OR) X(AND) X(THREEFRY) X(SUB) X(FDIV) X(POW) X(FLOORDIV) X(FLOORMOD)    \
  /* ternary   */ X(WHERE) X(MULACC)                                                               \
  /* control   */ X(BARRIER) X(RANGE) X(IF) X(END) X(ENDIF) X(WAIT)                                \
  /* leaves    */ X(CONST) X(CUSTOM) X(CUSTOMI) X(INS)                                             \
  /* tensor    */ X(CONTIGUOUS) X(CONTIGUOUS_BACKWARD) X(DETACH) X(STAGE) X(COPY) X(MSELECT)       \
                  X(MSTACK) X(CUSTOM_FUNCTION) X(RESHAPE) X(PERMUTE) X(EXPAND) X(PAD) X(FLIP)      \
                  X(UNSHARD) X(REDUCE) X(ALLREDUCE)
// clang-format on

enum class Op : uint8_t {
#define X(name) name,
  BEAMLINE_FOR_EACH_OP(X)
#undef X
      Count
};

inline constexpr size_t op_count = static_cast<size_t>(Op::Count);
inline constexpr std::array<std::string_view, op_count> op_names = {
#define X(name) #name,
    BEAMLINE_FOR_EACH_OP(X)
#undef X
};
constexpr std::string_view op_name(Op op) { return op_names[static_cast<size_t>(op)]; }
constexpr std::optional<Op> op_from_name(std::string_view name) {
  for (size_t i = 0; i < op_count; i++)
    if (op_names[i] == name) return static_cast<Op>(i);
  return std::nullopt;
}

/// A set of ops; two words, since there are more than 64.
struct OpSet {
  uint64_t low = 0, high = 0;
  constexpr OpSet() = default;
  constexpr OpSet(Op op) {
    const auto i = static_cast<unsigned>(op);
    (i < 64 ? low : high) = uint64_t{1} << (i % 64);
  }
  constexpr bool has(Op op) const {
    const auto i = static_cast<unsigned>(op);
    return ((i < 64 ? low : high) >> (i % 64) & 1) != 0;
  }
  constexpr bool subset_of(OpSet o) const { return (low & ~o.low) == 0 && (high & ~o.high) == 0; }
  constexpr bool empty() const { return low == 0 && high == 0; }
  constexpr int count() const { return __builtin_popcountll(low) + __builtin_popcountll(high); }
  constexpr bool single() const { return count() == 1; }
  constexpr Op first() const {
    return static_cast<Op>(low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high));
  }
  friend constexpr OpSet operator|(OpSet a, OpSet b) {
    a.low |= b.low, a.high |= b.high;
    return a;
  }
  friend constexpr OpSet operator&(OpSet a, OpSet b) {
    a.low &= b.low, a.high &= b.high;
    return a;
  }
  friend constexpr bool operator==(OpSet, OpSet) = default;
};
constexpr OpSet operator|(Op a, Op b) { return OpSet(a) | OpSet(b); }

namespace ops {
inline constexpr OpSet unary =
    Op::EXP2 | Op::LOG2 | Op::SIN | Op::SQRT | Op::RECIPROCAL | Op::NEG | Op::TRUNC;
inline constexpr OpSet comparison = Op::CMPLT | Op::CMPNE | Op::CMPEQ;
inline constexpr OpSet commutative =
    Op::ADD | Op::MUL | Op::MAX | Op::CMPNE | Op::CMPEQ | Op::XOR | Op::AND | Op::OR;
inline constexpr OpSet associative = Op::ADD | Op::MUL | Op::AND | Op::OR | Op::MAX;
inline constexpr OpSet idempotent = Op::OR | Op::AND | Op::MAX;
inline constexpr OpSet shifts = Op::SHL | Op::SHR;
inline constexpr OpSet binary = commutative | shifts | Op::CDIV | Op::CMOD | Op::CMPLT |
                                Op::THREEFRY | Op::SUB | Op::FDIV | Op::POW | Op::FLOORDIV |
                                Op::FLOORMOD;
inline constexpr OpSet ternary = Op::WHERE | Op::MULACC;
inline constexpr OpSet alu = unary | binary | ternary;
inline constexpr OpSet elementwise = alu | Op::CAST | Op::BITCAST;
inline constexpr OpSet movement =
    Op::RESHAPE | Op::PERMUTE | Op::EXPAND | Op::PAD | Op::SHRINK | Op::FLIP;
inline constexpr OpSet reduce = Op::ADD | Op::MUL | Op::MAX;
inline constexpr OpSet control = Op::STORE | Op::END | Op::SINK | Op::GROUP | Op::BARRIER | Op::IF |
                                 Op::ENDIF | Op::NOOP | Op::LINEAR | Op::WAIT;
constexpr OpSet all_ops() {
  OpSet s;
  for (size_t i = 0; i < op_count; i++) s = s | OpSet(static_cast<Op>(i));
  return s;
}
inline constexpr OpSet all = all_ops();
}  // namespace ops

}  // namespace beamline
