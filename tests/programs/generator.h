// Random programs of the compute language. A program grows statement by statement; each is built
// and evaluated at once, so that the next can ask what shapes, types and values there are. Steps
// (floor, comparisons, casts to integers, positions of the greatest, ...) are only asked of values
// that are exact in every order of evaluation; functions are kept away from where they are steep.
#pragma once
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "tests/programs/program.h"

namespace beamline::fuzz {

struct Var {
  std::string name;
  TensorValue typed;
  bool exact = true;  // rounding after each node changed nothing
  bool used = false;
  DType dtype() const { return typed.dtype; }
  const Ints& shape() const { return typed.shape; }
  size_t rank() const { return typed.shape.size(); }
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  Program program();

  // For the choices (choices.cpp).
  int64_t number(int64_t lowest, int64_t highest);
  bool chance(int percent) { return number(0, 99) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + number(0, static_cast<int64_t>(list.size()) - 1));
  }
  using Wish = bool (*)(const Var&);
  /// A variable for which `wish` holds, recent and unused ones more often; a fresh input if none
  /// is.
  const Var& pick(Wish wish, DType otherwise = DType::F32, size_t least_rank = 0);
  /// The name of a new input. Values are exact in every type and order: multiples of 1/8, or small
  /// integers.
  std::string fresh(DType t, const Ints& shape, int64_t least = -12);
  /// The text of a value that broadcasts with x: a variable that `wish` allows, a number, or x.
  std::string partner(const Var& x, Wish wish, bool numbers = true);
  Ints some_shape(size_t least_rank, size_t most_rank);
  int64_t axis(const Var& x) {
    return number(-static_cast<int64_t>(x.rank()), static_cast<int64_t>(x.rank()) - 1);
  }
  std::string axes(const Var& x);  // ", axis=..." or nothing

 private:
  bool add(const std::string& expression, bool two);

  std::mt19937_64 random_;
  Program p_;
  std::deque<Var> vars_;  // references stay good while it grows
};

/// One way to write an expression; an empty text when it does not fit what there is. "split" texts
/// give two values.
struct Choice {
  const char* name;
  std::string (*make)(Generator& g);
};
const std::vector<Choice>& choices();

}  // namespace beamline::fuzz
