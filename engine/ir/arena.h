// Arena: owner and interner of nodes, in two layers. A frozen base (a kernel, common constants) is
// read by any number of threads without locks; each thread creates in a scratch arena over it,
// which is reset() between candidates. An Arena itself is confined to one thread until frozen.
// `Arena::Scope` makes an arena current for this thread; it must not outlive an asynchronous
// suspension.
#pragma once
#include <deque>
#include <memory>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/ir/uop.h"

namespace beamline {

class Arena {
 public:
  explicit Arena(const Arena* base = nullptr);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// The node with this op, dtype, operands and arg; created when it is not there yet.
  UOp make(Op op, DType dtype, std::span<const UOp> src, int64_t val, const Extra* ext);
  const Extra* intern(Extra e);

  size_t size() const { return count_; }   // nodes of this layer
  size_t bytes() const { return bytes_; }  // bytes those use
  void freeze() { frozen_ = true; }        // from here on read only
  void reset();                            // forgets every node, keeps the memory

  static Arena& current() {
    CHECK(tls_ != nullptr);
    return *tls_;
  }
  class Scope {
   public:
    explicit Scope(Arena& a) : prev_(tls_) { tls_ = &a; }
    ~Scope() { tls_ = prev_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena* prev_;
  };

 private:
  friend struct NodeBuilder;
  // A node's address in the low 48 bits, the top of its key's hash above; 0: free. Half the size of
  // hash and pointer, so that twice as many nodes stay in a cache.
  struct Slot {
    uint64_t bits = 0;
    Slot() = default;
    Slot(const Node* n, uint64_t key);
    bool is_free() const { return bits == 0; }
    bool may_be(uint64_t key) const { return (bits ^ key) >> 48 == 0 && bits; }
    const Node* node() const { return reinterpret_cast<const Node*>(bits << 16 >> 16); }
  };
  const Node* find(uint64_t key, Op op, DType t, std::span<const UOp> src, int64_t val,
                   const Extra* ext) const;
  UOp create(uint64_t key, Op op, DType t, std::span<const UOp> src, int64_t val, const Extra* ext);
  const Extra* find_extra(const std::string& key) const;
  void put(const Node* n, uint64_t key);
  void grow();
  void* allocate(size_t bytes);

  static constexpr size_t block_bytes = size_t{1} << 16;
  const Arena* base_;
  uint32_t next_id_;
  bool frozen_ = false;
  std::vector<Slot> table_;
  size_t count_ = 0, bytes_ = 0;
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes;
  };
  std::vector<Block> blocks_;
  size_t used_ = 0, left_ = 0;
  std::byte* ptr_ = nullptr;
  std::unordered_map<std::string, const Extra*> extras_;
  std::deque<InternedExtra> extra_store_;
  static inline thread_local Arena* tls_ = nullptr;
};

}  // namespace beamline
