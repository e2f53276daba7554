// A kernel's schedule: the prepared AST whose ranges change type and are split as Opts are applied.
// Every opt reduces to one step, shift_to: split a range in two and give the new part another type.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/ir/target.h"
#include "engine/opt/opt.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {

struct Product;
struct TensorCore;

/// Why an opt is not legal here: the expected refusal.
struct OptRefusal {
  size_t index = 0;  // which opt of the sequence
  std::string reason;
};

/// One operand's tile in a buffer of the thread's own, in the order in which the inner loops read
/// it: copied once inside the loops `outer`, read many times by what lies deeper.
struct Packing {
  // Of the buffer: a range of the tile, or several that move over the same elements, as the steps
  // of a window and of what it moves along do. `place` is where they are, the first of `ranges`
  // goes one element a step, and `used` elements are copied. Elements that lie `phases` apart lie
  // side by side: what lanes read with a stride.
  struct Dim {
    std::vector<UOp> ranges;
    UOp place;
    int64_t used = 0, size = 0, phases = 1;
  };
  int64_t slot = 0;
  std::vector<UOp> outer;  // ranges open around the copy
  std::vector<Dim> dims;   // last one fastest
  int64_t elements() const;
};

/// A constant operand in the order in which the loops read it. `copy` is a kernel that writes it:
/// slot 0, from the operand as it is given: slot 1.
struct Layout {
  int64_t slot = 0;
  UOp copy;
};

/// Steps of a reduction that read padding alone. Of a loop: the first step that is taken, how many,
/// and what of the gates always holds then; of an axis that is written out: what decides.
struct Skipping {
  UOp range, begin, count;  // begin: null where it is written out
  std::vector<UOp> gates;
};

constexpr int64_t line_bytes = 64;  // of the caches

/// Where in an operand the lines lie that are fetched in each step of the reduction that reads it:
/// of its next tile; beyond the last one, of that again.
struct Prefetch {
  int64_t slot = 0;
  std::vector<UOp> at;  // elements
};

class KernelSchedule {
 public:
  /// `ast`: a prepared kernel (SINK). Lives in the current arena, which must outlive the schedule's
  /// use.
  KernelSchedule(UOp ast, const Target& target);

  /// Applies one opt, or says why not; a refused opt changes nothing. An amount of 0 (the whole
  /// axis) is recorded as the number.
  std::optional<std::string> apply(const Opt& opt);

  /// The opt as it would be recorded, or nothing where it is not legal: cheaper than to apply it.
  std::optional<Opt> legal(const Opt& opt) const;

  UOp ast() const { return ast_; }
  const Opts& applied() const { return applied_; }
  /// What PACK asked for; the AST does not show it, lowering carries it out.
  const std::vector<Packing>& packings() const { return packings_; }
  /// What LAYOUT asked for; the AST reads the new places already.
  const std::vector<Layout>& layouts() const { return layouts_; }
  /// What SKIP asked for; lowering carries it out, too.
  const std::vector<Skipping>& skippings() const { return skippings_; }
  /// What PREFETCH of operands asked for; so is that.
  const std::vector<Prefetch>& prefetches() const { return prefetches_; }
  /// Ids of the loops over blocks of n and of m that a TC opt left.
  std::pair<int64_t, int64_t> matrix_axes() const { return matrix_axes_; }
  /// Ranges of size above 1, ordered by type (outer first), then id: what axes count.
  std::vector<UOp> axes() const;
  /// The list that a kind's axis indexes: reduce axes for UNROLL and GROUP, all axes otherwise.
  std::vector<UOp> axes_for(OptKind kind) const;
  /// Size of an axis: the number of its iterations.
  static int64_t size(UOp range);

 private:
  // Splits r into r' * k + new (or new * ceil(n / k) + r' when `top`); returns the new range. A k
  // that does not divide gives masked accesses and, in reductions, the identity.
  UOp shift_to(UOp r, int64_t k, AxisType type, bool top);
  // r becomes `value`, whose ranges end where r did: `parts` in its place, `last` (may be null) as
  // the innermost loop. What lies outside of r is gated unless it `divides`. Not simplified yet;
  // `follow` is a node, and then what became of it.
  struct Split {
    UOp range, value;
    std::vector<UOp> parts;
    UOp last;
    bool divides = true;
  };
  void replace(const Split& split, UOp* follow = nullptr);
  std::optional<std::string> check_split(const Opt& opt, UOp r, int64_t amount) const;
  void split(OptKind kind, UOp r, int64_t amount);
  // Of targets with local memory, in locals.cpp.
  void recompute_rows();
  void globalize();
  void split_ranges();
  std::optional<std::string> disable_locals(const Opt& opt);
  static std::optional<std::string> check_padding(int64_t size, int64_t multiple);
  Split padding(UOp r, int64_t multiple) const;
  std::optional<std::string> pad_to(const Opt& opt, UOp r);
  std::optional<std::string> check_local(const Opt& opt, UOp r, int64_t amount) const;
  std::optional<std::string> check_shared_bytes(int64_t amount, int64_t new_groups,
                                                UOp grouped = {}) const;
  std::optional<std::string> check_registers(UOp r, int64_t amount) const;
  std::optional<std::string> swap_loops(const Opt& opt);
  // In tensor_core.cpp.
  std::optional<std::string> use_tensor_core(const Opt& opt);
  // Axes n, m, k become blocks, and the bits of the core's lanes, registers and steps; then, if so
  // asked, the matrix product takes the sum's place.
  void split_for(const TensorCore& core, UOp sum, std::array<UOp, 3> axes, bool multiply);
  // The same on a processor, in lane_products.cpp: k becomes blocks and the steps of a lane.
  std::optional<std::string> use_lane_products(const Opt& opt, const Product& product,
                                               const std::vector<const TensorCore*>& cores);
  // The only place that reads an operand which nobody writes; where PACK and LAYOUT can have it; or
  // why not.
  std::variant<UOp, std::string> read_of(const Opt& opt) const;
  std::variant<UOp, std::string> only_read(const Opt& opt) const;
  // Written out axes last, and last of these the one that may become lanes.
  void sort_tile(std::vector<UOp>& tile, UOp index, DType given) const;
  // The tile of an operand that is read at `index`: ranges that overlap share a dimension.
  std::vector<Packing::Dim> dims_of(std::vector<UOp> tile, UOp index, DType t) const;
  std::optional<std::string> pack(const Opt& opt);
  std::optional<std::string> lay_out(const Opt& opt);
  std::optional<std::string> stream(const Opt& opt);
  // In prefetch.cpp.
  std::optional<std::string> prefetch(const Opt& opt);
  std::optional<std::string> prefetch_operand(const Opt& opt);
  // In skip_padding.cpp.
  std::optional<std::string> skip(const Opt& opt);
  // In reduce_blocks.cpp: TILE of a reduction.
  std::optional<std::string> check_blocks() const;
  void reduce_in_blocks(UOp r, int64_t k);
  bool over_blocks(UOp r) const;  // the loop that this left

  UOp ast_;
  Target target_;
  Opts applied_;
  std::vector<Packing> packings_;
  std::vector<Layout> layouts_;
  std::vector<Skipping> skippings_;
  std::vector<Prefetch> prefetches_;
  bool no_locals_ = false;
  bool in_blocks_ = false;   // the reduction
  bool only_asked_ = false;  // see legal(): the graph is not needed any more
  std::pair<int64_t, int64_t> matrix_axes_{-1, -1};
};

/// Its steps are written out: UPCAST and UNROLL.
bool is_written_out(UOp range);

/// Opts that split work among the threads of a group: LOCAL, GROUP, GROUPTOP, and NOLOCALS.
bool needs_local(OptKind kind);

/// Replays a whole sequence.
std::variant<KernelSchedule, OptRefusal> apply_opts(UOp ast, const Opts& opts,
                                                    const Target& target);

/// One line an axis: index, size, type, as people read opts; colours by type when asked.
std::string describe_axes(const KernelSchedule& s, bool color);

/// The place among all steps of `ranges`, last one fastest; steps of those that `renamed` has count
/// as those of what they became.
UOp place_among(const std::vector<UOp>& ranges, const Substitution& renamed = {});
/// The index without its gates; `valid` receives them, or null.
UOp split_gate(UOp index, UOp& valid);
/// What all holds where the gate does.
void conjuncts(UOp gate, std::vector<UOp>& out);
/// The same of an expression that is a sum of multiples of ranges and of what r does not move: true
/// for steps beyond those of r, too.
std::optional<int64_t> linear_stride(UOp index, UOp r);
/// By how much the flat index moves per step of r, if always by the same known number of elements.
std::optional<int64_t> stride_along(UOp index, UOp r);
/// r numbers what a lane of a processor's matrix product adds up at once.
bool step_of_lanes(UOp ast, UOp r);
/// True when, with r free, the flat index moves by exactly one element per step of r.
bool unit_stride(UOp index, UOp r);

}  // namespace beamline
