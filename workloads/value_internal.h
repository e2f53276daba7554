// Values of the compute language while a graph is built, and a call in progress. Private to the
// builder.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/uop.h"
#include "engine/tensor/tensor_ops.h"
#include "workloads/number.h"

namespace beamline::workloads {

struct Value {
  enum class Kind { Poison, None, Number, Tensor, Text, List, Type, NewAxis, Ellipsis, Slice };
  Kind kind = Kind::Poison;  // Poison: follows from a mistake reported already
  SourcePos at;
  Number number;
  UOp tensor;
  std::string text;
  std::vector<Value> list;  // Slice: begin, end, step, None where left out
  DType type = DType::Void;
  bool is(Kind k) const { return kind == k; }
  static Value of(UOp u) {
    Value v;
    v.kind = u ? Kind::Tensor : Kind::Poison, v.tensor = u;
    return v;
  }
};
/// How a message names a value: "a tensor of shape (2, 3)", "a list".
std::string describe(const Value& v);
/// A tensor or a number as an operand: numbers are weak constants; null for anything else.
UOp as_operand(const Value& v);
/// The bounds of a slice along an axis of n elements, as Python's slice.indices gives them.
struct Span {
  int64_t first, count, step;
};
Span resolve_slice(std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step,
                   int64_t n);
UOp take_span(TensorOps& ops, UOp x, size_t axis, const Span& s);

struct Function;

/// One call: its bound arguments, and the first mistake found in them. Accessors of arguments of a
/// wrong kind record it and return something harmless; the result of a call with a mistake is not
/// used.
class Call {
 public:
  Call(TensorOps& ops_, const Function& function, SourcePos at, std::vector<Value> args);
  TensorOps& ops;

  bool given(std::string_view name) const;  // present and not `none`
  const Value& value(std::string_view name) const;
  UOp operand(std::string_view name);  // a number stays weak
  UOp tensor(std::string_view name);   // a number becomes a scalar of its own type
  std::optional<UOp> optional_tensor(std::string_view name);
  int64_t integer(std::string_view name, int64_t fallback);
  double real(std::string_view name, double fallback);
  bool flag(std::string_view name, bool fallback);
  Ints integers(std::string_view name);                                   // a list, or one integer
  TensorOps::Pair pair(std::string_view name, TensorOps::Pair fallback);  // one integer, or two
  Number number(std::string_view name, Number fallback);
  TensorOps::Axes axes(std::string_view name,
                       std::optional<int64_t> fallback);  // all without a fallback
  DType type(std::string_view name);
  std::vector<UOp> rest();  // the arguments of a variadic parameter
  void fail(SourcePos at, std::string message, std::string expected = "");
  const std::optional<Diagnostic>& mistake() const { return mistake_; }

 private:
  void wrong(const Value& v, std::string_view name, std::string expected);
  const Function& function_;
  SourcePos at_;
  std::vector<Value> args_;  // by parameter; variadic ones follow
  std::optional<Diagnostic> mistake_;
};

struct Parameter {
  std::string name;
  bool required = false;
  bool rest = false;  // takes all positional arguments; comes first
};
struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  Value (*build)(Call& c) = nullptr;
};
const Function* find_function(std::string_view name);
/// Binds arguments to parameters: by position, then by keyword.
std::variant<std::vector<Value>, Diagnostic> bind(const Function& f, SourcePos at,
                                                  std::vector<Value> positional,
                                                  std::vector<std::pair<Keyword, Value>> keywords);

}  // namespace beamline::workloads
