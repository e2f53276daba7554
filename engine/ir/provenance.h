// Where nodes come from, kept beside the graph so that it takes no part in identity: a table from
// nodes to the place in a workload that made them. While a table is in scope on a thread, every
// operation created there is entered: with the origin that `At` or `Of` names, else with that of
// its newest operand that has one. A node found again keeps its first origin; leaves (constants,
// params, ranges, shapes) have none: they are shared. Rewriting hands on the origin of what it
// replaces. A table is used by one thread, and is valid until an arena it has nodes of is reset.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/ir/node_map.h"

namespace beamline {

class Provenance {
 public:
  /// Makes a table (or none) current for this thread.
  class Scope {
   public:
    explicit Scope(Provenance* table) : before_(current_) { current_ = table; }
    ~Scope() { current_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Provenance* before_;
  };
  /// While it lives, what the current table is told of comes from here. Without a table: nothing.
  class At {
   public:
    explicit At(const std::string& origin) : At(current_ ? current_->id(origin) : 0) {}

   protected:
    explicit At(uint32_t id) : table_(current_), before_(table_ ? table_->now_ : 0) {
      if (table_ && id != 0) table_->now_ = id;
    }

   public:
    ~At() {
      if (table_) table_->now_ = before_;
    }
    At(const At&) = delete;
    At& operator=(const At&) = delete;

   private:
    Provenance* table_;
    uint32_t before_;
  };
  /// The same, from where u comes; as before when that is not known.
  class Of : public At {
   public:
    explicit Of(UOp u) : At(current_ ? current_->origin_id(u) : 0) {}
  };

  static Provenance* current() { return current_; }

  /// Empty when it is not known.
  const std::string& origin(UOp u) { return names_[origin_id(u)]; }
  /// Of every node from root down, in the order of its text: what a text of the graph needs beside
  /// it.
  std::vector<std::string> by_node(UOp root);
  /// The other way, into a graph that was read from its text.
  void restore(UOp root, std::span<const std::string> by_node);
  /// Those of all nodes from root down, each once, in the order in which they were first named.
  std::vector<std::string> origins(UOp root);
  /// Called by the arena for every node it creates.
  void created(const Node* n);

 private:
  uint32_t id(const std::string& origin);
  uint32_t origin_id(UOp u) {
    const uint32_t* found = of_.find(u.node());
    return found ? *found : 0;
  }

  NodeMap<uint32_t> of_;
  std::vector<std::string> names_{""};
  std::unordered_map<std::string, uint32_t> ids_;
  uint32_t now_ = 0;
  static inline thread_local Provenance* current_ = nullptr;
};

}  // namespace beamline
