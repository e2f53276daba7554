#include "tests/workloads/onnx_models.h"

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>

namespace beamline::test {
namespace {

void fill(onnx::TensorProto& t, const onnx::ValueInfoProto& input) {
  t.set_name(input.name());
  t.set_data_type(onnx::TensorProto::FLOAT);
  int64_t n = 1;
  for (const auto& d : input.type().tensor_type().shape().dim()) {
    t.add_dims(d.dim_value());
    n *= d.dim_value();
  }
  uint64_t state = 88172645463325252u;
  for (unsigned char c : input.name()) state = state * 31 + c;
  for (int64_t i = 0; i < n; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    t.add_float_data(static_cast<float>(state >> 40) / static_cast<float>(1 << 24) - 0.5f);
  }
}

// The files of this process; they go when it ends.
struct Files {
  std::set<std::string> paths;
  ~Files() {
    std::error_code ignored;
    for (const std::string& p : paths) std::filesystem::remove(p, ignored);
  }
};

void write(const onnx::ModelProto& m, const std::string& path) {
  static Files files;
  files.paths.insert(path);
  std::ofstream out(path, std::ios::binary);
  if (!m.SerializeToOstream(&out)) std::abort();
}

}  // namespace

std::string write_model(const std::string& file, const std::string& graph, int opset) {
  const std::string text =
      "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" + graph;
  onnx::ModelProto m;
  const auto status = onnx::OnnxParser::Parse(m, text.c_str());
  if (!status.IsOK()) {
    ADD_FAILURE() << graph << "\n" << status.ErrorMessage();
    std::abort();
  }
  auto& g = *m.mutable_graph();
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
  for (const auto& i : g.input()) {
    if (i.name().rfind("w_", 0) == 0)
      fill(*g.add_initializer(), i);
    else
      *inputs.Add() = i;
  }
  g.mutable_input()->Swap(&inputs);
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / (file + std::to_string(::getpid()) + ".onnx"))
          .string();
  write(m, path);
  return path;
}

void damage(const std::string& path, Damage kind) {
  onnx::ModelProto m;
  std::ifstream in(path, std::ios::binary);
  if (!m.ParseFromIstream(&in)) std::abort();
  auto& g = *m.mutable_graph();
  auto* type =
      g.input_size() > 0 ? g.mutable_input(0)->mutable_type()->mutable_tensor_type() : nullptr;
  onnx::TensorProto* first = g.initializer_size() > 0 ? g.mutable_initializer(0) : nullptr;
  switch (kind) {
    case Damage::ExternalData:
    case Damage::ExternalOutside: {
      first->clear_float_data();
      first->set_data_location(onnx::TensorProto::EXTERNAL);
      auto* e = first->add_external_data();
      e->set_key("location");
      e->set_value(kind == Damage::ExternalData ? "weights.bin" : "../weights.bin");
      break;
    }
    case Damage::ShortData: {
      std::string bytes(first->float_data_size() * 4 - 1, '\1');
      first->clear_float_data();
      first->set_raw_data(bytes);
      break;
    }
    case Damage::SameInitialiser: *g.add_initializer() = g.initializer(0); break;
    case Damage::SameOutput:
      g.mutable_node(g.node_size() - 1)->set_output(0, g.node(0).output(0));
      break;
    case Damage::GiantDims:
      for (auto& d : *type->mutable_shape()->mutable_dim()) d.set_dim_value(int64_t{1} << 40);
      break;
    case Damage::NegativeDim: type->mutable_shape()->mutable_dim(0)->set_dim_value(-3); break;
    case Damage::NoShape: type->clear_shape(); break;
    case Damage::StringInput: type->set_elem_type(onnx::TensorProto::STRING); break;
    case Damage::NoOpset: m.clear_opset_import(); break;
    case Damage::NoOutputs: g.clear_output(); break;
    case Damage::BackwardOrder:
      for (int i = 0, j = g.node_size() - 1; i < j; i++, j--) g.mutable_node()->SwapElements(i, j);
      break;
    case Damage::ForeignDomain: g.mutable_node(0)->set_domain("com.example"); break;
  }
  write(m, path);
}

}  // namespace beamline::test
