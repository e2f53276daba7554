// Opt: one scheduling decision on a kernel, and the text of a sequence of them (product.md "Opt
// text"):
//   opts = "" | opt *(";" opt);  opt = NAME [":" axis [":" arg]];  arg = integer | "(" integers ")"
//   UPCAST  an output axis in steps of k, written out: lanes of a vector, or rows held in registers
//   UNROLL  a reduce axis in steps of k, written out: several partial sums, or steps an iteration
//   THREAD  an output axis in k parts, one a thread
//   TILE    an output loop in blocks of k, the loop over the block innermost: it stays in a cache;
//           or a reduction in blocks of k: the loop over the blocks becomes the outermost output
//           loop, and what is summed up so far lies in the result
//   SWAP    two loops change places
//   PACK    an operand's tile copied into a buffer of the thread's own
//   LAYOUT  a constant operand laid out ahead of time in the order in which the loops read it: a
//           kernel of its own writes it once, before this one runs
//   STREAM  whole vectors are stored past the caches; the results are not read again soon
//   SKIP    steps of a reduce axis that read nothing but padding are not taken: what they are
//           multiplied by may then be infinite
//   PREFETCH  the results of a register tile are fetched for writing before its reduction starts;
//           or, of an operand, its next tile while this one is computed with
//   TC      a sum of products given to matrix units, or on processors to instructions that multiply
//           and add up neighbours of the reduction, a lane each (tensor_core.h)
//   LOCAL, GROUP, GROUPTOP, NOLOCALS, PADTO: for targets with local memory or without masks
// An axis is the index in the list that the opt's kind names, at the moment it is applied. PACK has
// a buffer slot in its place, and the number of output loops around the packing; LAYOUT a slot
// alone, SKIP an axis alone, and PREFETCH a slot, or nothing for the results.
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
  LAYOUT,
  STREAM,
  PREFETCH,
  SKIP,
  Count
};
/// Numbers behind the name: none where it says something about the kernel, one where it names an
/// operand or an axis alone. PREFETCH has none where its axis, a slot, is 0.
int numbers_of(OptKind k);
std::string_view opt_kind_name(OptKind k);
std::optional<OptKind> opt_kind_from_name(std::string_view name);

struct Opt {
  OptKind kind = OptKind::UPCAST;
  int64_t axis = 0;
  Ints arg;  // one amount; TC: select, level, use; none where there are fewer than two numbers
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
