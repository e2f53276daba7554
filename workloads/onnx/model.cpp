#include "workloads/onnx/model.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/onnx_pb.h>

namespace beamline::onnx {
namespace {

namespace fs = std::filesystem;
namespace pb = ::onnx;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::FileInputStream;

DType dtype_of(int32_t t) {
  switch (t) {
    case pb::TensorProto::FLOAT: return DType::F32;
    case pb::TensorProto::UINT8: return DType::U8;
    case pb::TensorProto::INT8: return DType::I8;
    case pb::TensorProto::UINT16: return DType::U16;
    case pb::TensorProto::INT16: return DType::I16;
    case pb::TensorProto::INT32: return DType::I32;
    case pb::TensorProto::INT64: return DType::I64;
    case pb::TensorProto::BOOL: return DType::Bool;
    case pb::TensorProto::FLOAT16: return DType::F16;
    case pb::TensorProto::DOUBLE: return DType::F64;
    case pb::TensorProto::UINT32: return DType::U32;
    case pb::TensorProto::UINT64: return DType::U64;
    case pb::TensorProto::BFLOAT16: return DType::BF16;
    default: return DType::Void;
  }
}
std::string type_text(int32_t t) {
  return pb::TensorProto_DataType_IsValid(t)
             ? pb::TensorProto_DataType_Name(static_cast<pb::TensorProto_DataType>(t))
             : fmt::format("type {}", t);
}

// The low `width` bytes of every number.
template <class Field>
std::string packed(const Field& numbers, size_t width) {
  std::string out(static_cast<size_t>(numbers.size()) * width, '\0');
  for (int i = 0; i < numbers.size(); i++) {
    const auto v = numbers.Get(i);
    std::memcpy(out.data() + static_cast<size_t>(i) * width, &v, width);
  }
  return out;
}

std::variant<std::string, std::monostate> external_bytes(const pb::TensorProto& t,
                                                         const fs::path& folder, std::string& why) {
  std::string location;
  uint64_t offset = 0, length = UINT64_MAX;
  try {
    for (const auto& e : t.external_data()) {
      if (e.key() == "location") location = e.value();
      if (e.key() == "offset") offset = std::stoull(e.value());
      if (e.key() == "length") length = std::stoull(e.value());
    }
  } catch (const std::exception&) {
    why = "its external data has no proper offset and length";
    return std::monostate{};
  }
  const fs::path relative = fs::path(location).lexically_normal();
  if (location.empty() || relative.is_absolute() || *relative.begin() == "..") {
    why = fmt::format("its external data lies at '{}', not beside the model", location);
    return std::monostate{};
  }
  std::error_code e;
  const uint64_t size = fs::file_size(folder / relative, e);
  if (e) {
    why = fmt::format("its external data is missing: {}: {}", (folder / relative).string(),
                      e.message());
    return std::monostate{};
  }
  if (offset > size || (length != UINT64_MAX && length > size - offset)) {
    why = fmt::format("its external data is cut off: {} holds {} bytes, {} from {} are named",
                      (folder / relative).string(), size, length, offset);
    return std::monostate{};
  }
  if (length == UINT64_MAX) length = size - offset;
  std::ifstream in(folder / relative, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::string bytes(length, '\0');
  if (!in.read(bytes.data(), static_cast<std::streamsize>(length))) {
    why = fmt::format("{} cannot be read", (folder / relative).string());
    return std::monostate{};
  }
  return bytes;
}

Tensor tensor_of(pb::TensorProto& t, const fs::path& folder) {
  Tensor out;
  out.name = t.name();
  out.dtype = dtype_of(t.data_type());
  out.type_name = type_text(t.data_type());
  out.dims.assign(t.dims().begin(), t.dims().end());
  if (out.dtype == DType::Void) {
    out.missing = fmt::format("{} is not supported", out.type_name);
    return out;
  }
  const auto width = static_cast<size_t>(dtype_bytes(out.dtype));
  if (t.data_location() == pb::TensorProto::EXTERNAL) {
    auto bytes = external_bytes(t, folder, out.missing);
    if (!out.missing.empty()) return out;
    out.bytes = std::move(std::get<std::string>(bytes));
  } else if (t.has_raw_data()) {
    out.bytes = std::move(*t.mutable_raw_data());
  } else if (t.float_data_size() > 0) {
    out.bytes = packed(t.float_data(), sizeof(float));
  } else if (t.double_data_size() > 0) {
    out.bytes = packed(t.double_data(), sizeof(double));
  } else if (t.int32_data_size() > 0) {
    out.bytes = packed(t.int32_data(), std::min<size_t>(width, 4));
  } else if (t.int64_data_size() > 0) {
    out.bytes = packed(t.int64_data(), 8);
  } else if (t.uint64_data_size() > 0) {
    out.bytes = packed(t.uint64_data(), width);
  }
  const int64_t n = out.elements();
  if (n < 0)
    out.missing = fmt::format("shape [{}] is none", fmt::join(out.dims, ", "));
  else if (out.bytes.size() != static_cast<size_t>(n) * width)
    out.missing =
        fmt::format("it holds {} bytes of data, shape [{}] of {} needs {}", out.bytes.size(),
                    fmt::join(out.dims, ", "), out.type_name, static_cast<size_t>(n) * width);
  return out;
}

Attribute attribute_of(pb::AttributeProto& a, const fs::path& folder) {
  Attribute out;
  using Kind = Attribute::Kind;
  switch (a.type()) {
    case pb::AttributeProto::INT: out.kind = Kind::Int, out.integer = a.i(); break;
    case pb::AttributeProto::FLOAT:
      out.kind = Kind::Float, out.number = static_cast<double>(a.f());
      break;
    case pb::AttributeProto::STRING: out.kind = Kind::Text, out.text = a.s(); break;
    case pb::AttributeProto::INTS:
      out.kind = Kind::Ints, out.integers.assign(a.ints().begin(), a.ints().end());
      break;
    case pb::AttributeProto::FLOATS:
      out.kind = Kind::Floats, out.numbers.assign(a.floats().begin(), a.floats().end());
      break;
    case pb::AttributeProto::TENSOR:
      out.kind = Kind::Tensor, out.tensor = tensor_of(*a.mutable_t(), folder);
      break;
    default: out.kind = Kind::Other;
  }
  return out;
}

ValueInfo value_of(const pb::ValueInfoProto& v) {
  ValueInfo out;
  out.name = v.name();
  if (!v.type().has_tensor_type()) {
    out.type_name = "no tensor";
    return out;
  }
  const auto& t = v.type().tensor_type();
  out.dtype = dtype_of(t.elem_type());
  out.type_name = type_text(t.elem_type());
  out.has_shape = t.has_shape();
  for (const auto& d : t.shape().dim()) {
    if (d.has_dim_value())
      out.dims.emplace_back(d.dim_value());
    else
      out.dims.emplace_back(d.dim_param());
  }
  return out;
}

// Protobuf prints to stderr what read_model() returns.
void silence_protobuf() {
  static const bool once = (google::protobuf::SetLogHandler(nullptr), true);
  static_cast<void>(once);
}

struct File {
  explicit File(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd;
};

// Numbers of fields: onnx.proto.
constexpr int model_graph = 7, graph_node = 1, graph_initializer = 5, tensor_name = 8;
constexpr uint32_t length_delimited = 2;

// Calls visit(field, length) for every length-delimited field of the message up to the current
// limit; visit consumes it and returns true to go on.
template <class F>
bool each_field(CodedInputStream& in, F visit) {
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t length = 0;
    uint64_t number = 0;
    switch (tag & 7) {
      case 0:
        if (!in.ReadVarint64(&number)) return false;
        break;
      case 1:
        if (!in.Skip(8)) return false;
        break;
      case 5:
        if (!in.Skip(4)) return false;
        break;
      case length_delimited:
        if (!in.ReadVarint32(&length) || length > INT32_MAX) return false;
        if (!visit(static_cast<int>(tag >> 3), static_cast<int>(length))) return false;
        break;
      default: return false;
    }
  }
  return true;
}

// Walks the file for the tensor of that name; its data is read only if it is the one.
class TensorFinder {
 public:
  TensorFinder(int fd, const std::string& name) : stream_(fd), in_(&stream_), name_(name) {}

  std::optional<pb::TensorProto> run() {
    each_field(in_, [&](int field, int length) {
      if (field != model_graph) return in_.Skip(length);
      const auto limit = in_.PushLimit(length);
      const bool more = each_field(in_, [&](int f, int n) {
        return f == graph_initializer ? initialiser(n) : f == graph_node ? node(n) : in_.Skip(n);
      });
      in_.PopLimit(limit);
      return more && !found_ && at_ == 0;
    });
    return std::move(found_);
  }
  /// Where run() met an initialiser of that name: its place and length in the file.
  std::pair<int, int> place() const { return {at_, length_}; }

 private:
  bool initialiser(int length) {
    const int begin = in_.CurrentPosition();
    const auto limit = in_.PushLimit(length);
    std::string name;
    const bool good = each_field(in_, [&](int field, int n) {
      return field == tensor_name ? in_.ReadString(&name, n) : in_.Skip(n);
    });
    in_.PopLimit(limit);
    if (good && name == name_) at_ = begin, length_ = length;
    return good && at_ == 0;
  }
  bool node(int length) {
    std::string bytes;
    pb::NodeProto n;
    if (!in_.ReadString(&bytes, length) || !n.ParseFromString(bytes)) return false;
    if (n.op_type() != "Constant" || n.output_size() != 1 || n.output(0) != name_) return true;
    for (auto& a : *n.mutable_attribute())
      if (a.has_t()) found_ = std::move(*a.mutable_t());
    return !found_;
  }

  FileInputStream stream_;
  CodedInputStream in_;
  const std::string& name_;
  std::optional<pb::TensorProto> found_;
  int at_ = 0, length_ = 0;
};

constexpr std::string_view separator = ".onnx:";

}  // namespace

int64_t Tensor::elements() const {
  constexpr int64_t most = int64_t{1} << 40;
  int64_t n = 1;
  for (int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(n, d, &n) || n > most) return -1;
  return n;
}

std::variant<Model, std::string> read_model(const std::string& path) {
  silence_protobuf();
  std::error_code e;
  if (!fs::exists(path, e)) return std::string("no such file or directory");
  if (!fs::is_regular_file(path, e)) return std::string("not a file");
  if (fs::file_size(path, e) == 0) return std::string("the file is empty");
  const File file(path);
  pb::ModelProto m;
  if (file.fd < 0) return std::string("cannot read the file");
  if (!m.ParseFromFileDescriptor(file.fd)) return std::string("not an ONNX model, or cut off");
  if (!m.has_graph()) return std::string("not an ONNX model: it holds no graph");
  const fs::path folder = fs::path(path).parent_path();
  Model out;
  out.producer = m.producer_name();
  for (const auto& o : m.opset_import())
    if (o.domain().empty() || o.domain() == "ai.onnx") out.opset = o.version();
  auto& g = *m.mutable_graph();
  if (g.sparse_initializer_size() > 0) return std::string("sparse initialisers are not supported");
  for (auto& n : *g.mutable_node()) {
    Node node;
    node.name = n.name(), node.op = n.op_type(), node.domain = n.domain();
    node.inputs.assign(n.input().begin(), n.input().end());
    node.outputs.assign(n.output().begin(), n.output().end());
    for (auto& a : *n.mutable_attribute()) node.attributes[a.name()] = attribute_of(a, folder);
    node.index = out.nodes.size();
    out.nodes.push_back(std::move(node));
  }
  for (auto& t : *g.mutable_initializer()) out.initialisers.push_back(tensor_of(t, folder));
  for (const auto& v : g.input()) out.inputs.push_back(value_of(v));
  for (const auto& v : g.output()) out.outputs.push_back(value_of(v));
  return out;
}

bool is_tensor_reference(const std::string& reference) {
  return reference.find(separator) != std::string::npos;
}

std::variant<std::vector<std::byte>, std::string> read_tensor(const std::string& reference,
                                                              DType dtype,
                                                              const std::vector<int64_t>& shape) {
  silence_protobuf();
  const size_t at = reference.find(separator) + separator.size() - 1;
  const std::string path = reference.substr(0, at), name = reference.substr(at + 1);
  const auto fail = [&](const std::string& why) { return fmt::format("{}: {}", path, why); };
  const File file(path);
  if (file.fd < 0) return fail(std::strerror(errno));
  TensorFinder finder(file.fd, name);
  std::optional<pb::TensorProto> proto = finder.run();
  if (const auto [begin, length] = finder.place(); begin > 0) {
    std::string bytes(static_cast<size_t>(length), '\0');
    const ssize_t got = ::pread(file.fd, bytes.data(), bytes.size(), begin);
    proto.emplace();
    if (got != length || !proto->ParseFromString(bytes)) return fail("the file is cut off");
  }
  if (!proto) return fail(fmt::format("holds no tensor '{}'", name));
  const Tensor t = tensor_of(*proto, fs::path(path).parent_path());
  if (!t.missing.empty()) return fail(fmt::format("tensor '{}': {}", name, t.missing));
  if (t.dtype != dtype || t.dims != shape)
    return fail(fmt::format("tensor '{}' is {}[{}], the input {}[{}]", name, dtype_name(t.dtype),
                            fmt::join(t.dims, ", "), dtype_name(dtype), fmt::join(shape, ", ")));
  std::vector<std::byte> out(t.bytes.size());
  if (!out.empty()) std::memcpy(out.data(), t.bytes.data(), out.size());
  return out;
}

}  // namespace beamline::onnx
