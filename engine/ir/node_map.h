// A map from nodes to values for graph walks: open addressing, keyed by the node's id, no removal.
// Order of iteration is not offered: ids would leak into results.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/ir/uop.h"

namespace beamline {

template <class V>
class NodeMap {
 public:
  /// The value of n, or null.
  V* find(const Node* n) {
    for (size_t i = slot(n);; i = (i + 1) & (table_.size() - 1)) {
      if (table_[i].first == n) return &table_[i].second;
      if (!table_[i].first) return nullptr;
    }
  }
  /// The value of u, which must be there.
  const V& at(UOp u) {
    const V* v = find(u.node());
    CHECK(v != nullptr);
    return *v;
  }
  void emplace(UOp u, V v) { insert(u.node(), std::move(v)); }
  /// Inserts v unless n is there; true when inserted. Invalidates pointers to values.
  bool insert(const Node* n, V v) {
    if (find(n)) return false;
    if (2 * (count_ + 1) > table_.size()) grow();
    put(n, std::move(v));
    count_++;
    return true;
  }
  size_t size() const { return count_; }

 private:
  size_t slot(const Node* n) const {
    return (n->id * uint64_t{0x9e3779b97f4a7c15} >> 20) & (table_.size() - 1);
  }
  void put(const Node* n, V v) {
    size_t i = slot(n);
    while (table_[i].first) i = (i + 1) & (table_.size() - 1);
    table_[i] = {n, std::move(v)};
  }
  void grow() {
    auto old = std::move(table_);
    table_ = std::vector<std::pair<const Node*, V>>(old.size() * 2);
    for (auto& [n, v] : old)
      if (n) put(n, std::move(v));
  }

  std::vector<std::pair<const Node*, V>> table_{64};
  size_t count_ = 0;
};

}  // namespace beamline
