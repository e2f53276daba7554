// Opt: one scheduling decision on a kernel, and the text of a sequence of them (product.md "Opt
// text"):
//   opts = "" | opt *(";" opt);  opt = NAME [":" axis [":" arg]];  arg = integer | "(" integers ")"
// An axis is the index in the list that the opt's kind names, at the moment it is applied. PACK has
// a buffer slot in its place, and the number of output loops around the packing.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

enum class OptKind : uint8_t {
  TC,
  UPCAST,
  UNROLL,
  LOCAL,
  THREAD,
  GROUP,
  GROUPTOP,
  NOLOCALS,
  PADTO,
  SWAP,
  TILE,
  PACK,
  Count
};
std::string_view opt_kind_name(OptKind k);
std::optional<OptKind> opt_kind_from_name(std::string_view name);

struct Opt {
  OptKind kind = OptKind::UPCAST;
  int64_t axis = 0;
  Ints arg;  // one amount; TC: select, level, use; NOLOCALS: none
  int64_t amount() const { return arg.empty() ? 0 : arg[0]; }
  friend bool operator==(const Opt&, const Opt&) = default;
};
using Opts = std::vector<Opt>;

std::string opts_text(const Opts& opts);

struct OptError {
  int position = 0;  // 1-based character in the text
  std::string message;
};
/// Syntax only: unknown name, wrong arity, not a number. Legality is the schedule's.
std::variant<Opts, OptError> parse_opts(std::string_view text);

}  // namespace beamline
