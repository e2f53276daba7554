// UOp: the one node of the IR. A handle of 8 bytes to an immutable, interned node of an Arena.
// Equality is identity: `a == b` iff op, dtype, arg and operands are the same. There is no
// ordering. Everything derived (shape, ranges, bounds, address space) is computed when the node is
// created. Lifetime: a UOp is valid until its arena is reset or destroyed; it never leaves a
// candidate. Thread safety: nodes are read-only; a frozen base arena may be read by many threads.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "engine/ir/dtype.h"
#include "engine/ir/ops.h"

namespace beamline {

enum class AxisType : uint8_t {
  DEVICE,
  GLOBAL,
  WARP,
  LOCAL,
  WEAK,
  GROUP_REDUCE,
  REDUCE,
  UPCAST,
  UNROLL,
  THREAD,
  PLACEHOLDER,
  LOOP,
  Count
};
std::string_view axis_type_name(AxisType t);
std::optional<AxisType> axis_type_from_name(std::string_view name);

/// Where a pointer points: device memory, memory shared by a workgroup, registers, or no memory (a
/// value).
enum class AddrSpace : uint8_t { None, Global, Local, Reg, Alu, Count };
std::string_view addrspace_name(AddrSpace s);
std::optional<AddrSpace> addrspace_from_name(std::string_view name);

/// Argument of PARAM and BUFFER. A bounded variable is a PARAM of address space Alu with a name.
struct ParamArg {
  int64_t slot = 0;
  int64_t vmin = 0, vmax = 0;  // bounds of a variable; unused for buffers
  int64_t multiple_of = 1;
  AddrSpace addrspace = AddrSpace::Global;
  bool constant = false;  // an input that never changes (weights)
  std::string name;       // not part of the kernel key
  friend bool operator==(const ParamArg&, const ParamArg&) = default;
};
/// Argument of a kernel's SINK; not part of the kernel key.
struct KernelInfo {
  std::string name;
  friend bool operator==(const KernelInfo&, const KernelInfo&) = default;
};
using Ints = std::vector<int64_t>;
using Extra = std::variant<Ints, std::string, ParamArg, KernelInfo>;
/// An Extra as an arena holds it; every `ext` of a node points to one.
struct InternedExtra : Extra {
  InternedExtra(Extra e, std::string t, uint64_t h)
      : Extra(std::move(e)), text(std::move(t)), hash(h) {}
  std::string text;  // extra_text; it orders extras
  uint64_t hash;     // of the text
};

/// What interning compares comes last, next to the operands: a look-up touches one line of the
/// cache.
struct Node {
  const int64_t* shape;
  const Node* const* ranges;  // open RANGE nodes, by id
  int64_t vmin, vmax;         // bounds of an integer or bool value, inclusive
  uint64_t bools;             // Bloom filter of the bool nodes from here down, constants left out
  uint64_t hash;              // of the structure below: free of addresses and of the enums' order
  OpSet src_ops;
  uint32_t nrange;  // open ranges
  uint16_t ndim;
  AddrSpace addrspace;
  bool shaped;  // has a shape (possibly of no dims); control ops have none
  uint32_t id;  // creation order in the arena, continuing its base's
  uint16_t nsrc;
  Op op;
  DType dtype;
  int64_t val;  // CONST: integer value or the bits of a double; RANGE: id and type; REDUCE: op and
                // n; ALLREDUCE: op; GETTUPLE, MSELECT: index
  const Extra* ext;
  const Node* src[];  // trailing operands
};

class UOp {
 public:
  constexpr UOp() = default;
  constexpr explicit UOp(const Node* n) : n_(n) {}
  Op op() const { return n_->op; }
  DType dtype() const { return n_->dtype; }
  uint32_t id() const { return n_->id; }
  OpSet src_ops() const { return n_->src_ops; }
  size_t nsrc() const { return n_->nsrc; }
  UOp src(size_t i) const { return UOp(n_->src[i]); }
  std::vector<UOp> srcs() const;
  bool has_shape() const { return n_->shaped; }
  std::span<const int64_t> shape() const { return {n_->shape, n_->ndim}; }
  int64_t numel() const;  // product of the dims
  int64_t vmin() const { return n_->vmin; }
  int64_t vmax() const { return n_->vmax; }
  AddrSpace addrspace() const { return n_->addrspace; }
  std::span<const Node* const> ranges() const { return {n_->ranges, n_->nrange}; }
  bool has_range(UOp r) const;
  /// False: the bool node b is surely neither u nor below it.
  bool may_hold(UOp b) const { return (n_->bools & bool_bit(b.n_->hash)) != 0; }
  static constexpr uint64_t bool_bit(uint64_t hash) { return uint64_t{1} << (hash >> 58); }
  const Node* node() const { return n_; }

  bool is_const() const { return n_->op == Op::CONST; }
  bool is_const(int64_t v) const;  // a CONST of that value, integer, bool or float
  bool is_invalid() const { return n_->op == Op::CONST && n_->dtype == DType::Invalid; }
  int64_t ival() const { return n_->val; }                        // integer CONST
  double fval() const { return std::bit_cast<double>(n_->val); }  // float CONST
  double number() const { return is_float(n_->dtype) ? fval() : static_cast<double>(ival()); }
  int64_t range_id() const { return n_->val >> 8; }  // RANGE
  AxisType axis_type() const { return static_cast<AxisType>(n_->val & 255); }
  Op reduce_op() const { return static_cast<Op>(n_->val & 255); }  // REDUCE, ALLREDUCE
  size_t reduce_dims() const { return static_cast<size_t>(n_->val >> 8); }
  const ParamArg& param() const { return std::get<ParamArg>(*n_->ext); }
  const Ints& ints() const { return std::get<Ints>(*n_->ext); }
  const std::string& text() const { return std::get<std::string>(*n_->ext); }

  explicit operator bool() const { return n_ != nullptr; }
  friend bool operator==(UOp a, UOp b) { return a.n_ == b.n_; }

 private:
  const Node* n_ = nullptr;
};
static_assert(sizeof(UOp) == 8 && std::is_trivially_copyable_v<UOp>);

struct UOpHash {
  size_t operator()(UOp u) const { return u ? u.node()->hash : 0; }
};

// Builders; all work in the current arena (Arena::Scope). Operands of commutative ops are put into
// canonical order: a total structural order with constants last.
UOp make(Op op, DType dtype, std::span<const UOp> src, int64_t val = 0, const Extra* ext = nullptr);
UOp make(Op op, DType dtype, std::initializer_list<UOp> src, int64_t val = 0,
         const Extra* ext = nullptr);
/// A node like u with other operands; the dtype follows them where it is derived.
UOp rebuild(UOp u, std::span<const UOp> src);
const Extra* intern(Extra e);

UOp iconst(int64_t v, DType t = DType::WeakInt);
UOp fconst(double v, DType t);     // rounded to t
UOp const_like(UOp u, int64_t v);  // a constant of u's dtype
UOp bool_const(bool v);
UOp invalid();
UOp alu(Op op, std::initializer_list<UOp> src);  // dtype derived
UOp cast(UOp u, DType t);
UOp range(int64_t end, int64_t id, AxisType type);
UOp range(UOp end, int64_t id, AxisType type);
UOp variable(const std::string& name, int64_t vmin, int64_t vmax, DType t = DType::WeakInt);
UOp param(ParamArg arg, DType t, std::span<const int64_t> shape);
UOp buffer(ParamArg arg, DType t, std::span<const int64_t> shape);
UOp stack(std::span<const UOp> elements);
UOp dims(std::span<const int64_t> values);  // a STACK of index constants: the shape operand
UOp reduce(Op op, UOp value, std::span<const UOp> ranges, size_t leading_dims);
/// What a reduction of nothing gives: 0, 1 or the lowest value.
UOp reduce_identity(Op op, DType t);
UOp where(UOp c, UOp a, UOp b);
UOp operator+(UOp a, UOp b);
UOp operator-(UOp a, UOp b);  // a + b * -1
UOp operator*(UOp a, UOp b);
UOp operator/(UOp a, UOp b);  // FLOORDIV
UOp operator%(UOp a, UOp b);  // FLOORMOD
UOp operator&(UOp a, UOp b);
UOp operator|(UOp a, UOp b);
UOp operator^(UOp a, UOp b);
UOp operator<(UOp a, UOp b);  // CMPLT
UOp ne(UOp a, UOp b);
UOp logical_not(UOp b);
UOp maximum(UOp a, UOp b);

/// The PARAM, BUFFER or STAGE (a row that is kept) that an address of a kernel lies in.
UOp memory_of(UOp address);

/// Two-visit post-order from the roots, sources first, in source order; iterative.
std::vector<UOp> toposort(UOp root);
/// A total, address-free order of structures: <0, 0, >0. Constants come last, then op and dtype by
/// name, arg and operands decide; what is equal many levels down is told apart by its hash, so that
/// building a graph takes linear time whatever its shape.
int compare_structure(UOp a, UOp b);
/// Dtype that `op` gives its operands; explicit ops (CONST, CAST, PARAM, ...) return `fallback`.
DType derive_dtype(Op op, std::span<const UOp> src, DType fallback);

}  // namespace beamline
