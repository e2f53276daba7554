// What the operators of a model are translated with: values that are known as far as numbers and
// shapes go, and the text that grows. Private to workloads/onnx.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/diagnostic.h"
#include "workloads/onnx/dim.h"
#include "workloads/onnx/model.h"

namespace beamline::onnx {

/// An element whose value is known: a whole number over params, or a float.
struct Element {
  Dim whole;
  double real = 0;
  bool is_real = false;
  std::string text() const;  // an operand of the compute language
  std::optional<double> number() const;
  friend bool operator==(const Element&, const Element&) = default;
};
using Elements = std::vector<Element>;

struct Value {
  std::string onnx_name;
  DType dtype = DType::Void;
  Dims shape;
  std::optional<Elements> elements;  // where few and known; then `text` is made when asked for
  std::string text;                  // name in the program
  const Tensor* data = nullptr;      // of the model
  int input = -1;                    // index of the workload's input that it is
  size_t rank() const { return shape.size(); }
};
using ValueRef = std::shared_ptr<Value>;

struct InputLine {
  std::string name, onnx_name;
  DType dtype = DType::Void;
  Dims shape;
  std::string dist;  // "" = the default
  bool constant = false;
};

/// The program while it grows.
struct Program {
  int64_t opset = 0;
  std::string reference;
  bool generated = false;
  std::vector<InputLine> inputs;
  std::vector<std::string> lines;                    // statements
  std::vector<std::string> line_nodes;               // the node of each
  std::set<std::string> names;                       // taken
  std::unordered_map<std::string, ValueRef> values;  // by ONNX name

  /// An identifier made of `wanted` that nothing else has.
  std::string fresh(const std::string& wanted);
};

/// One node in translation. After a mistake everything returns something harmless; the first one is
/// kept.
class NodeContext {
 public:
  NodeContext(Program& p, const Node& node);
  const Node& node;
  int64_t opset() const { return program_.opset; }

  // Attributes.
  int64_t integer(const char* name, int64_t fallback);
  double number(const char* name, double fallback);
  std::string word(const char* name, const char* fallback);
  std::optional<std::vector<int64_t>> integers(const char* name);
  const Attribute* attribute(const char* name) const;

  // Inputs.
  bool has(size_t i) const;
  ValueRef input(size_t i);  // the mistake is made if it is absent
  size_t input_count() const { return node.inputs.size(); }
  bool wants(size_t output) const;
  /// The integers of an input that shapes depend on, or of the attribute that older opsets have.
  std::optional<Dims> dims(size_t i, const char* what);
  std::optional<std::vector<int64_t>> numbers(size_t i, const char* what);
  /// By attribute before `since`, by input i from there; nothing where absent.
  std::optional<std::vector<int64_t>> axes(const char* name, size_t i, int64_t since);
  int64_t axis(int64_t a, size_t rank);  // 0 <= result < rank
  int64_t constant(const Dim& d, const char* what);

  // Texts. An operand with a known single value is a literal where `rank` dims stand beside it.
  std::string text(const ValueRef& v);
  std::string operand(const ValueRef& v, size_t rank);
  /// Names an expression, so that it is written once.
  std::string let(const std::string& expression);

  // Results.
  ValueRef result(size_t i, DType t, Dims shape);
  void emit(size_t i, const std::string& expression, DType t, Dims shape);
  void emit(const std::string& expression, DType t, Dims shape) {
    emit(0, expression, t, std::move(shape));
  }
  void know(size_t i, DType t, Dims shape, Elements elements);
  void same(size_t i, const ValueRef& v);  // the output is that value

  Dims broadcast(const Dims& a, const Dims& b);
  void fail(std::string message, std::string expected = "");
  bool ok() const { return !mistake_; }
  const std::optional<workloads::Diagnostic>& mistake() const { return mistake_; }
  void bound_input(const ValueRef& v, const Dim& n);  // v indexes an axis of n elements

 private:
  Program& program_;
  std::optional<workloads::Diagnostic> mistake_;
};

/// "node 3 'Conv_3' (Conv)"
std::string describe(const Node& n);

constexpr size_t most_known = 64;  // elements of a value that are kept

/// The elements of a tensor that are worth knowing: a few integers, or one float.
std::optional<Elements> known_elements(const Tensor& t);

using Handler = void (*)(NodeContext&);
struct Operator {
  std::string name;
  Handler translate;
};
// The tables: one source each.
const std::vector<Operator>& elementwise_operators();
const std::vector<Operator>& shape_operators();
const std::vector<Operator>& selection_operators();
const std::vector<Operator>& layer_operators();
const std::vector<Operator>& window_operators();

/// Broadcast elementwise arithmetic on known elements; nothing where it depends on a param.
std::optional<Elements> fold(const std::string& op, const std::vector<ValueRef>& operands,
                             DType result);

}  // namespace beamline::onnx
