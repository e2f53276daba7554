#include "engine/ir/arena.h"

#include <algorithm>
#include <array>
#include <new>

#include <fmt/format.h>

#include "engine/ir/derive.h"
#include "engine/ir/print.h"
#include "engine/ir/provenance.h"

namespace beamline {
namespace {

constexpr uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 32);
}
constexpr uint64_t hash_text(std::string_view s) {
  uint64_t h = s.size();
  for (char c : s) h = mix(h, static_cast<unsigned char>(c));
  return h;
}
// Names, not ordinals: the hash orders structures, and what it orders may reach text.
constexpr auto op_hashes = [] {
  std::array<uint64_t, op_count> h{};
  for (size_t i = 0; i < op_count; i++) h[i] = hash_text(op_names[i]);
  return h;
}();
constexpr std::array<std::string_view, dtype_count> dtype_texts = {
#define X(name, text, bytes, kind) text,
    BEAMLINE_FOR_EACH_DTYPE(X)
#undef X
};
constexpr auto dtype_hashes = [] {
  std::array<uint64_t, dtype_count> h{};
  for (size_t i = 0; i < dtype_count; i++) h[i] = hash_text(dtype_texts[i]);
  return h;
}();

// What a node has of its own. A RANGE's and a REDUCE's value hold an enum: by name, too.
uint64_t local_hash(Op op, DType t, int64_t val, const Extra* ext) {
  uint64_t h = op_hashes[static_cast<size_t>(op)] ^ (dtype_hashes[static_cast<size_t>(t)] << 1);
  if (op == Op::RANGE)
    h = mix(mix(h, static_cast<uint64_t>(val >> 8)),
            hash_text(axis_type_name(static_cast<AxisType>(val & 255))));
  else if (op == Op::REDUCE || op == Op::ALLREDUCE)
    h = mix(mix(h, static_cast<uint64_t>(val >> 8)), op_hashes[static_cast<size_t>(val & 255)]);
  else
    h = mix(h, static_cast<uint64_t>(val));
  return ext ? mix(h, static_cast<const InternedExtra*>(ext)->hash) : h;
}

// Where the table keeps a node: of the operands' addresses, so that a look-up need not read them.
// Nothing but the place in the table depends on it. Products of odd constants add up, which a
// processor does side by side, and one more product mixes their sum.
[[gnu::always_inline]] inline uint64_t key_of(Op op, DType t, std::span<const UOp> src, int64_t val,
                                              const Extra* ext) {
  const auto word = [](UOp u) { return reinterpret_cast<uintptr_t>(u.node()); };
  uint64_t h = (static_cast<uint64_t>(op) << 8 | static_cast<uint64_t>(t)) * 0x9e3779b97f4a7c15ull;
  h += static_cast<uint64_t>(val) * 0xc2b2ae3d27d4eb4full;
  h += reinterpret_cast<uintptr_t>(ext) * 0x165667b19e3779f9ull;
  uint64_t odd = 0xff51afd7ed558ccdull;
  for (UOp s : src) {
    h += word(s) * odd;
    odd = odd * 5 + 2;  // stays odd
  }
  const auto wide = static_cast<unsigned __int128>(h) * 0xd6e8feb86659fd93ull;
  return static_cast<uint64_t>(wide) ^ static_cast<uint64_t>(wide >> 64);
}

[[gnu::always_inline]] inline bool same(const Node* n, Op op, DType t, std::span<const UOp> src,
                                        int64_t val, const Extra* ext) {
  if (n->op != op || n->dtype != t || n->nsrc != src.size() || n->val != val || n->ext != ext)
    return false;
  for (size_t i = 0; i < src.size(); i++)
    if (n->src[i] != src[i].node()) return false;  // identity of operands, never their hashes
  return true;
}

// Whether the operands of a commutative op change places: what is cheap to see is seen here.
bool out_of_order(UOp a, UOp b) {
  if (a.is_const() != b.is_const()) return a.is_const();
  return compare_structure(a, b) > 0;
}

}  // namespace

Arena::Slot::Slot(const Node* n, uint64_t key)
    : bits(reinterpret_cast<uintptr_t>(n) | (key >> 48 << 48)) {
  static_assert(sizeof(void*) == 8);
  CHECK(reinterpret_cast<uintptr_t>(n) >> 48 == 0);
}

Arena::Arena(const Arena* base)
    : base_(base), next_id_(base ? base->next_id_ : 0), table_(1 << 10) {
  CHECK(base == nullptr || base->frozen_);
}

void Arena::reset() {
  std::fill(table_.begin(), table_.end(), Slot());
  count_ = bytes_ = used_ = left_ = 0;
  next_id_ = base_ ? base_->next_id_ : 0;
  extras_.clear();
  extra_store_.clear();
}

inline const Node* Arena::find(uint64_t key, Op op, DType t, std::span<const UOp> src, int64_t val,
                               const Extra* ext) const {
  const Slot* table = table_.data();
  const size_t mask = table_.size() - 1;
  for (size_t i = key & mask;; i = (i + 1) & mask) {
    const Slot s = table[i];
    if (s.may_be(key) && same(s.node(), op, t, src, val, ext)) return s.node();
    if (s.is_free()) return nullptr;
  }
}

UOp Arena::make(Op op, DType dtype, std::span<const UOp> src, int64_t val, const Extra* ext) {
  UOp swapped[2];
  if (src.size() == 2 && ops::commutative.has(op) && out_of_order(src[0], src[1])) {
    swapped[0] = src[1], swapped[1] = src[0];
    src = swapped;
  }
  const uint64_t key = key_of(op, dtype, src, val, ext);
  if (const Node* n = find(key, op, dtype, src, val, ext)) return UOp(n);
  for (const Arena* a = base_; a; a = a->base_)
    if (const Node* n = a->find(key, op, dtype, src, val, ext)) return UOp(n);
  return create(key, op, dtype, src, val, ext);
}

UOp Arena::create(uint64_t key, Op op, DType dtype, std::span<const UOp> src, int64_t val,
                  const Extra* ext) {
  CHECK(!frozen_);
  uint64_t h = local_hash(op, dtype, val, ext);
  for (UOp s : src) h = mix(h, s.node()->hash);
  Derived d = derive(op, dtype, src, val, ext);
  if (!d.error.empty()) std::fprintf(stderr, "%s\n", d.error.c_str());
  CHECK(d.error.empty());
  if ((count_ + 1) * 2 > table_.size()) grow();
  Node* n = new (allocate(sizeof(Node) + src.size() * sizeof(const Node*))) Node;
  n->op = op, n->dtype = dtype, n->addrspace = d.addrspace, n->shaped = d.shaped;
  n->nsrc = static_cast<uint16_t>(src.size());
  CHECK(src.size() < 65536);
  n->ndim = d.shared_shape ? d.shared_shape->ndim : static_cast<uint16_t>(d.shape.size());
  n->id = next_id_++;
  n->val = val, n->ext = ext, n->hash = h, n->vmin = d.vmin, n->vmax = d.vmax;
  uint64_t bools = dtype == DType::Bool && op != Op::CONST ? UOp::bool_bit(h) : 0;
  for (size_t i = 0; i < src.size(); i++) {
    const_cast<const Node**>(n->src)[i] = src[i].node();
    n->src_ops = n->src_ops | src[i].op();
    bools |= src[i].node()->bools;
  }
  n->bools = bools;
  n->shape = d.shared_shape ? d.shared_shape->shape : nullptr;
  if (!d.shape.empty()) {
    auto* shape = static_cast<int64_t*>(allocate(d.shape.size() * sizeof(int64_t)));
    std::copy(d.shape.begin(), d.shape.end(), shape);
    n->shape = shape;
  }
  if (d.shared_ranges) {
    n->nrange = d.shared_ranges->nrange, n->ranges = d.shared_ranges->ranges;
  } else {
    if (op == Op::RANGE) d.ranges.push_back(n);
    n->nrange = static_cast<uint32_t>(d.ranges.size());
    n->ranges = nullptr;
    for (UOp s : src)  // the same as an operand's: share them
      if (std::ranges::equal(s.ranges(), d.ranges)) n->ranges = s.ranges().data();
    if (!n->ranges && !d.ranges.empty()) {
      auto* r = static_cast<const Node**>(allocate(d.ranges.size() * sizeof(const Node*)));
      std::copy(d.ranges.begin(), d.ranges.end(), r);
      n->ranges = r;
    }
  }
  put(n, key);
  count_++;
  if (Provenance* p = Provenance::current()) p->created(n);
  return UOp(n);
}

const Extra* Arena::intern(Extra e) {
  const std::string key = extra_text(e);
  for (const Arena* a = this; a; a = a->base_)
    if (const Extra* x = a->find_extra(key)) return x;
  CHECK(!frozen_);
  extra_store_.emplace_back(std::move(e), key, hash_text(key));
  extras_.emplace(key, &extra_store_.back());
  return &extra_store_.back();
}
const Extra* Arena::find_extra(const std::string& key) const {
  const auto it = extras_.find(key);
  return it == extras_.end() ? nullptr : it->second;
}

void Arena::put(const Node* n, uint64_t key) {
  size_t i = key & (table_.size() - 1);
  while (!table_[i].is_free()) i = (i + 1) & (table_.size() - 1);
  table_[i] = Slot(n, key);
}
void Arena::grow() {
  std::vector<Slot> old(table_.size() * 2);
  old.swap(table_);
  for (const Slot& s : old) {
    if (s.is_free()) continue;
    const Node* n = s.node();
    const auto* src = reinterpret_cast<const UOp*>(n->src);
    put(n, key_of(n->op, n->dtype, {src, n->nsrc}, n->val, n->ext));
  }
}
void* Arena::allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  while (left_ < bytes) {
    if (used_ == blocks_.size()) {
      const size_t size = std::max(block_bytes, bytes);
      blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    }
    ptr_ = blocks_[used_].memory.get();
    left_ = blocks_[used_].bytes;
    used_++;
  }
  void* p = ptr_;
  ptr_ += bytes, left_ -= bytes, bytes_ += bytes;
  return p;
}

}  // namespace beamline
