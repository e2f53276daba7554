#include "engine/rangeify/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "engine/base/check.h"

namespace beamline {
namespace {

constexpr int64_t alignment = 256;

// The holes below the arena's end, by place and by size.
class Holes {
 public:
  /// The place of a block; the arena grows where no hole holds it.
  int64_t take(int64_t size) {
    auto fit = by_size_.lower_bound({size, 0});
    if (fit == by_size_.end()) return grow(size);
    const auto [hole, at] = *fit;
    remove(at, hole);
    if (hole > size) insert(at + size, hole - size);
    return at;
  }
  void give(int64_t at, int64_t size) {
    auto next = by_place_.lower_bound(at);
    if (next != by_place_.end() && next->first == at + size) {
      size += next->second;
      remove(next->first, next->second);
    }
    next = by_place_.lower_bound(at);
    if (next != by_place_.begin()) {
      const auto [before, length] = *std::prev(next);
      if (before + length == at) {
        remove(before, length);
        at = before, size += length;
      }
    }
    insert(at, size);
  }
  int64_t end() const { return end_; }

 private:
  // A hole at the end becomes part of the block.
  int64_t grow(int64_t size) {
    int64_t at = end_;
    if (!by_place_.empty()) {
      const auto [place, length] = *by_place_.rbegin();
      if (place + length == end_) {
        remove(place, length);
        at = place;
      }
    }
    end_ = at + size;
    return at;
  }
  void insert(int64_t at, int64_t size) { by_place_[at] = size, by_size_.insert({size, at}); }
  void remove(int64_t at, int64_t size) { by_place_.erase(at), by_size_.erase({size, at}); }

  std::map<int64_t, int64_t> by_place_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> buffers) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size(), 0);
  std::vector<size_t> born(buffers.size());
  std::iota(born.begin(), born.end(), size_t{0});
  // Of those that are born together the largest chooses first.
  std::ranges::stable_sort(born, [&](size_t a, size_t b) {
    if (buffers[a].first != buffers[b].first) return buffers[a].first < buffers[b].first;
    return buffers[a].bytes > buffers[b].bytes;
  });
  std::multimap<size_t, size_t> dying;  // last kernel -> buffer
  Holes holes;
  const auto size_of = [&](size_t i) {
    return (buffers[i].bytes + alignment - 1) / alignment * alignment;
  };
  for (size_t i : born) {
    CHECK(buffers[i].bytes > 0 && buffers[i].first <= buffers[i].last);
    while (!dying.empty() && dying.begin()->first < buffers[i].first) {
      const size_t dead = dying.begin()->second;
      holes.give(plan.offsets[dead], size_of(dead));
      dying.erase(dying.begin());
    }
    plan.offsets[i] = holes.take(size_of(i));
    dying.emplace(buffers[i].last, i);
  }
  plan.bytes = holes.end();
  return plan;
}

}  // namespace beamline
