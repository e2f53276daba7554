// Statements of a kernel in C: names of values, and what moves between them and memory.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/render/c_words.h"

namespace beamline {

/// The statements so far, and how the values they computed are called. One thread at a time.
class CBody : public CWords {
 public:
  using CWords::CWords;

  static int64_t lanes_of(UOp u) { return u.shape().empty() ? 0 : u.shape()[0]; }
  // 0: a scalar, as every lane is while it is computed alone.
  int64_t width(UOp u) const { return alone_ ? 0 : lanes_of(u); }

  using CWords::type;
  std::string type(UOp u) { return type(u.dtype(), width(u)); }

  /// A line; a line that names a value of type t.
  template <class... A>
  void put(fmt::format_string<A...> f, A&&... a) {
    text_ += indent_ + fmt::format(f, std::forward<A>(a)...) + "\n";
  }
  template <class... A>
  std::string let(const std::string& t, fmt::format_string<A...> f, A&&... a) {
    const std::string name = fmt::format("v{}", next_++);
    put("{} {} = {};", t, name, fmt::format(f, std::forward<A>(a)...));
    return name;
  }

  /// The value of u in w lanes (0: as a scalar).
  std::string value(UOp u, int64_t w);
  /// Lane k of u, as a scalar; of a bool, 0 or 1.
  std::string lane(UOp u, int64_t k);
  static std::string pointer(UOp buffer);
  /// Of lane k of an access.
  std::string place(UOp at, int64_t k);
  std::string_view space(UOp memory) const;
  /// Neighbours that one instruction of a GPU moves: their place is a multiple of their size.
  static bool moves_whole(UOp at, int64_t w);
  /// The value of a LOAD: its name, or those of its lanes where vectors are split.
  std::string load(UOp u);
  std::vector<std::string> load_lanes(UOp u);
  /// A struct of the lanes of u.
  std::string gathered(UOp u, DType t, int64_t w);
  void store(UOp u);
  /// Into the first cache for writing, into the second for reading.
  void prefetch(UOp at, bool written);

 protected:
  std::string text_, indent_ = "  ";
  std::unordered_map<UOp, std::string, UOpHash> names_;
  std::unordered_map<UOp, std::vector<std::string>, UOpHash> lanes_;  // where vectors are split
  std::optional<size_t> alone_;                                       // the lane that is computed
  size_t next_ = 0;
};

}  // namespace beamline
