#include "workloads/onnx/import.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/builder.h"
#include "workloads/onnx/importer_internal.h"

namespace beamline::onnx {
namespace {

using workloads::WorkloadError;

constexpr int64_t oldest_opset = 7, newest_opset = 17;

const std::map<std::string, Handler>& handlers() {
  static const std::map<std::string, Handler> table = [] {
    std::map<std::string, Handler> t;
    for (const auto* part : {&elementwise_operators(), &shape_operators(), &selection_operators(),
                             &layer_operators(), &window_operators()})
      for (const Operator& o : *part) t.emplace(o.name, o.translate);
    return t;
  }();
  return table;
}

std::string toml_string(const std::string& s) {
  std::string out = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", static_cast<char>(c));
    else if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04x}", c);
    else
      out += static_cast<char>(c);
  }
  return out + "\"";
}

// Numbers like those of the data: of its mean and deviation, and within its range, so that what is
// positive stays so.
std::string generated_dist(const Tensor& t) {
  const auto width = static_cast<size_t>(dtype_bytes(t.dtype));
  const size_t count = t.bytes.size() / width;
  if (!t.missing.empty() || count == 0) {
    if (!is_float(t.dtype)) return "";
    return t.dims.size() < 2 ? "uniform 0..1" : "uniform -0.1..0.1";
  }
  double least = INFINITY, most = -INFINITY, sum = 0, squares = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t bits = 0;
    std::copy_n(t.bytes.data() + i * width, width, reinterpret_cast<char*>(&bits));
    const double v = is_float(t.dtype)
                         ? float_from_bits(t.dtype, bits)
                         : static_cast<double>(wrap_to(t.dtype, static_cast<int64_t>(bits)));
    if (!std::isfinite(v)) continue;
    least = std::min(least, v), most = std::max(most, v);
    sum += v, squares += v * v;
  }
  if (!std::isfinite(least)) return is_float(t.dtype) ? "uniform 0..1" : "";
  if (!is_float(t.dtype))
    return std::max(std::fabs(least), std::fabs(most)) < 0x1p53
               ? fmt::format("int {}..{}", static_cast<int64_t>(least), static_cast<int64_t>(most))
               : "";
  const double mean = sum / static_cast<double>(count);
  const double deviation =
      std::sqrt(std::max(squares / static_cast<double>(count) - mean * mean, 0.0));
  const double reach = std::sqrt(3.0) * deviation;  // of a uniform distribution
  return fmt::format("uniform {}..{}", std::max(least, mean - reach), std::min(most, mean + reach));
}

class Importer {
 public:
  Importer(const std::string& path, const ImportOptions& options)
      : path_(path), options_(options) {}

  std::variant<std::string, std::vector<WorkloadError>> run() {
    auto read = read_model(path_);
    if (const auto* why = std::get_if<std::string>(&read)) {
      mistake("", *why, "an ONNX model");
      return std::move(errors_);
    }
    model_ = std::move(std::get<Model>(read));
    program_.opset = model_.opset;
    program_.reference = options_.reference.empty() ? path_ : options_.reference;
    program_.generated = options_.generated;
    if (model_.opset < oldest_opset || model_.opset > newest_opset)
      mistake("",
              model_.opset == 0 ? "no opset of the default domain is named"
                                : fmt::format("opset {}", model_.opset),
              fmt::format("opset {} to {}", oldest_opset, newest_opset));
    if (model_.outputs.empty()) mistake("", "the graph has no outputs", "at least one");
    refuse_unknown_operators();
    if (errors_.empty()) translate();
    if (errors_.empty()) {
      const std::string text = workload_text();
      if (errors_.empty()) check(text);
      if (errors_.empty()) return text;
    }
    return std::move(errors_);
  }

 private:
  void mistake(std::string field, std::string message, std::string expected = "") {
    errors_.push_back({path_, 0, 0, std::move(field), std::move(message), std::move(expected)});
  }

  // All of them at once, each with the first node that needs it.
  void refuse_unknown_operators() {
    std::map<std::string, std::pair<const Node*, size_t>> unknown;
    std::vector<std::string> order;
    for (const Node& n : model_.nodes) {
      const bool standard = n.domain.empty() || n.domain == "ai.onnx";
      if (standard && handlers().contains(n.op)) continue;
      auto& [first, count] = unknown[n.domain + "." + n.op];
      if (count++ == 0) first = &n, order.push_back(n.domain + "." + n.op);
    }
    for (const std::string& name : order) {
      const auto& [node, count] = unknown[name];
      mistake(describe(*node),
              fmt::format("operator {} is not supported{}{}", node->op,
                          node->domain.empty() ? "" : " (domain " + node->domain + ")",
                          count > 1 ? fmt::format("; {} nodes are of it", count) : ""));
    }
  }

  void translate() {
    for (const Tensor& t : model_.initialisers) {
      auto v = std::make_shared<Value>();
      v->onnx_name = t.name, v->dtype = t.dtype, v->data = &t;
      if (t.elements() < 0) v->dtype = DType::Void;
      v->shape.assign(t.dims.begin(), t.dims.end());
      v->elements = t.dtype == DType::Void ? std::nullopt : known_elements(t);
      if (t.name.empty()) mistake("", "an initialiser has no name");
      if (!program_.values.emplace(t.name, std::move(v)).second)
        mistake("", fmt::format("two initialisers are called '{}'", t.name));
    }
    std::set<std::string> seen;
    for (const ValueInfo& v : model_.inputs) {
      if (!seen.insert(v.name).second)
        mistake("", fmt::format("two inputs are called '{}'", v.name));
      else if (!program_.values.contains(v.name))  // an initialiser is its own default
        input(v);
    }
    if (!errors_.empty()) return;
    for (const Node& n : model_.nodes) {
      NodeContext context(program_, n);
      handlers().at(n.op)(context);
      if (!context.mistake()) continue;
      mistake(describe(n), context.mistake()->message, context.mistake()->expected);
      return;  // what follows depends on it
    }
    returns();
  }

  void input(const ValueInfo& v) {
    if (v.dtype == DType::Void) {
      mistake("input '" + v.name + "'", fmt::format("is {}", v.type_name),
              "a tensor of bool, integers or floats");
      return;
    }
    if (!v.has_shape) {
      mistake("input '" + v.name + "'", "has no shape", "a shape; dims may be names");
      return;
    }
    auto value = std::make_shared<Value>();
    value->onnx_name = v.name, value->dtype = v.dtype;
    value->text = program_.fresh(v.name);
    for (size_t i = 0; i < v.dims.size(); i++) {
      if (const auto* n = std::get_if<int64_t>(&v.dims[i])) {
        if (*n < 0) mistake("input '" + v.name + "'", fmt::format("dim {} is {}", i, *n), "a dim");
        value->shape.emplace_back(*n);
        continue;
      }
      const std::string& name = std::get<std::string>(v.dims[i]);
      value->shape.push_back(
          Dim::param(param(name.empty() ? fmt::format("{}_dim{}", v.name, i) : name)));
    }
    value->input = static_cast<int>(program_.inputs.size());
    program_.inputs.push_back({value->text, v.name, v.dtype, value->shape, "", false});
    program_.values.emplace(v.name, std::move(value));
  }

  // The name of the param for a dim's name.
  std::string param(const std::string& name) {
    for (const auto& [from, to] : params_)
      if (from == name) return to;
    params_.emplace_back(name, program_.fresh(name));
    return params_.back().second;
  }

  void returns() {
    const Node end{"", "output", "", {}, {}, {}, 0};
    for (const ValueInfo& o : model_.outputs) {
      const auto it = program_.values.find(o.name);
      if (it == program_.values.end()) {
        mistake("output '" + o.name + "'", "is made by no node");
        continue;
      }
      NodeContext context(program_, end);
      results_.push_back(context.text(it->second));
      if (context.mistake()) mistake("output '" + o.name + "'", context.mistake()->message);
    }
  }

  std::string params_text() {
    std::map<std::string, std::string> values;
    for (const auto& [from, to] : params_) values[to] = "1";
    for (const workloads::ParamOverride& o : options_.params) {
      if (!values.contains(o.name)) {
        std::vector<std::string> names;
        for (const auto& [from, to] : params_) names.push_back(to);
        mistake("--param",
                fmt::format("the model has no dim '{}'{}", o.name,
                            workloads::did_you_mean(o.name, names)),
                workloads::one_of(names));
        continue;
      }
      values[o.name] = o.values.size() == 1 ? fmt::format("{}", o.values[0])
                                            : fmt::format("[{}]", fmt::join(o.values, ", "));
    }
    std::string s;
    for (const auto& [from, to] : params_) s += (s.empty() ? "" : ", ") + to + " = " + values[to];
    return s.empty() ? "" : "params  = { " + s + " }\n";
  }

  std::string input_text(const InputLine& in) {
    const std::string shape = in.shape.empty() ? "" : list_text(in.shape);
    const std::string type = fmt::format("\"{}{}\"", dtype_name(in.dtype), shape);
    std::string dist = in.dist;
    if (in.constant)
      dist = program_.generated ? generated_dist(*program_.values.at(in.onnx_name)->data)
                                : fmt::format("file {}:{}", program_.reference, in.onnx_name);
    std::string s = type;
    if (in.constant || !dist.empty())
      s = fmt::format("{{ dtype = {}{}{} }}", type,
                      dist.empty() ? "" : ", dist = " + toml_string(dist),
                      in.constant ? ", const = true" : "");
    return fmt::format("inputs.{} = {}\n", in.name, s);
  }

  std::string workload_text() {
    std::string name =
        options_.name.empty() ? std::filesystem::path(path_).stem().string() : options_.name;
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
    if (name.empty()) name = "model";
    std::string s = fmt::format(
        "# Imported from {}: opset {}, {} nodes, {} initialisers{}.\n[[workload]]\n"
        "name    = \"{}\"\n",
        std::filesystem::path(path_).filename().string(), model_.opset, model_.nodes.size(),
        model_.initialisers.size(), program_.generated ? " (generated)" : "", name);
    s += params_text();
    for (const InputLine& in : program_.inputs) s += input_text(in);
    if (program_.inputs.empty()) s += "inputs  = {}\n";
    s += "compute = '''\n";
    first_line_ = static_cast<int>(std::ranges::count(s, '\n')) + 1;
    for (const std::string& line : program_.lines) s += line + "\n";
    return s + fmt::format("return {}\n'''\n", fmt::join(results_, ", "));
  }

  // The text has to build; what does not is told by the node it comes from.
  void check(const std::string& text) {
    workloads::LoadedFile file = workloads::parse_workload_file(path_, text);
    std::vector<WorkloadError> found = file.errors;
    if (found.empty()) {
      const std::vector<workloads::Instance> instances =
          workloads::expand(file.workloads.at(0), {}, found);
      if (found.empty()) found = workloads::check(instances);
    }
    for (WorkloadError& e : found) {
      const int line = e.line - first_line_;
      const bool known_line = line >= 0 && line < static_cast<int>(program_.line_nodes.size());
      mistake(known_line ? program_.line_nodes[static_cast<size_t>(line)] : e.field, e.message,
              e.expected);
    }
  }

  const std::string& path_;
  const ImportOptions& options_;
  Model model_;
  Program program_;
  std::vector<std::pair<std::string, std::string>> params_;  // dim's name, param's name
  std::vector<std::string> results_;
  int first_line_ = 0;
  std::vector<WorkloadError> errors_;
};

}  // namespace

std::variant<std::string, std::vector<WorkloadError>> import_model(const std::string& path,
                                                                   const ImportOptions& options) {
  return Importer(path, options).run();
}

std::vector<std::string> operator_names() {
  std::vector<std::string> out;
  for (const auto& [name, handler] : handlers()) out.push_back(name);
  return out;
}

}  // namespace beamline::onnx
