// An ONNX model as plain data, read from its file. Only model.cpp sees protobuf. What is read is
// checked for its own sake (types that are known, data as long as its shape asks); what operators
// make of it is not.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/ir/dtype.h"

namespace beamline::onnx {

struct Tensor {
  std::string name;
  DType dtype = DType::Void;  // Void: one that is not supported
  std::string type_name;      // as ONNX calls it
  std::vector<int64_t> dims;
  std::string bytes;         // C order, little endian
  std::string missing;       // why there are none; empty: they are there
  int64_t elements() const;  // -1: negative dims, or more than 2^40
};

struct Attribute {
  enum class Kind { None, Int, Float, Text, Ints, Floats, Tensor, Other };
  Kind kind = Kind::None;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  Tensor tensor;
};

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "" where left out
  std::map<std::string, Attribute> attributes;
  size_t index = 0;
};

struct ValueInfo {
  std::string name;
  DType dtype = DType::Void;
  std::string type_name;
  bool has_shape = false;
  std::vector<std::variant<int64_t, std::string>> dims;  // a number, or a name ("" where unknown)
};

struct Model {
  std::string producer;
  int64_t opset = 0;  // of the default domain
  std::vector<Node> nodes;
  std::vector<Tensor> initialisers;
  std::vector<ValueInfo> inputs, outputs;
};

/// The model, or why it cannot be read. Data that lies in other files is read too; where it is
/// missing, Tensor::missing says so.
std::variant<Model, std::string> read_model(const std::string& path);

/// The bytes of an initialiser, or of the output of a Constant node, of that dtype and shape. Reads
/// little more than that tensor. `reference` is "PATH.onnx:NAME".
bool is_tensor_reference(const std::string& reference);
std::variant<std::vector<std::byte>, std::string> read_tensor(const std::string& reference,
                                                              DType dtype,
                                                              const std::vector<int64_t>& shape);

}  // namespace beamline::onnx
