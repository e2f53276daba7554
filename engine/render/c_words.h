// Types and numbers as a dialect of C spells them.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/render/c_style.h"

namespace beamline {

/// What the renderer throws for an op or dtype that the dialect has no code for.
struct Unsupported {
  std::string what;
};

/// Vector types that were asked for are declared by `declarations`. One thread at a time.
class CWords {
 public:
  explicit CWords(const CDialect& d) : dialect_(d) {}

  /// Vectors are only moved; their lanes are computed one by one.
  bool splits() const { return !dialect_.vector_struct.empty(); }
  std::string_view scalar_type(DType t) const;
  /// In memory a bool is a byte.
  std::string_view memory_type(DType t) const;
  std::string vector_of(std::string_view lane, int64_t w);
  /// What memory holds of w elements, where vectors are only moved.
  std::string moved_type(DType t, int64_t w);
  std::string type(DType t, int64_t w);  // of a value; w = 0: a scalar
  /// A signed integer as wide as t: what a comparison of vectors of t gives.
  std::string mask_type(DType t, int64_t w);
  std::string literal(UOp c) const;  // without its type
  std::string whole(int64_t v) const;
  std::string scalar_literal(UOp c);
  std::string element(const std::string& vector, int64_t k) const;
  std::string converted(const std::string& v, const std::string& t) const;
  std::vector<std::string> lanes_of_struct(const std::string& name, DType t, int64_t w) const;
  /// Float to integer: NaN is 0, what is out of range is the nearest end.
  std::string saturate(const std::string& v, DType from, DType to);
  std::string declarations() const;  // of the vector types that were asked for

 protected:
  const CDialect& dialect_;

 private:
  std::set<std::string> types_;
};

}  // namespace beamline
