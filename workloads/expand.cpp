#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/sha256.h"
#include "workloads/dist.h"
#include "workloads/workload_file.h"

namespace beamline::workloads {
namespace {

constexpr size_t most_instances = 10'000;
constexpr int64_t most_elements = int64_t{1} << 40;

std::string instance_name(const WorkloadDef& def, const Params& params) {
  std::string s = def.name;
  for (size_t i = 0; i < params.size(); i++)
    s += fmt::format("{}{}={}", i == 0 ? "/" : ",", params[i].first, params[i].second);
  return s;
}

// A bound is printed as the value that was read; a path as it is written in the file.
std::string dist_text(const Dist& d, const std::string& path) {
  switch (d.kind) {
    case DistKind::Uniform: return fmt::format("uniform {} {}", d.first, d.second);
    case DistKind::Normal: return fmt::format("normal {} {}", d.first, d.second);
    case DistKind::Int: return fmt::format("int {} {}", d.lowest, d.highest);
    case DistKind::Ones: return "ones";
    case DistKind::File: return "file " + path;
  }
  return "";
}

std::string canonical_text(const WorkloadDef& def, const Instance& in) {
  std::string s = "workload 1\n";
  for (const auto& [name, value] : in.params) s += fmt::format("param {} {}\n", name, value);
  for (size_t i = 0; i < in.inputs.size(); i++) {
    const InputSpec& spec = in.inputs[i];
    s += fmt::format("input {} {}[{}] {}{}\n", spec.name, dtype_name(spec.dtype),
                     fmt::join(spec.shape, ","), dist_text(spec.dist, def.inputs[i].path),
                     spec.constant ? " const" : "");
  }
  s += fmt::format("math {}\n", in.relaxed ? "relaxed" : "strict");
  return s + print(*in.program);
}

class Expander {
 public:
  Expander(const WorkloadDef& def, const std::vector<ParamOverride>& overrides,
           std::vector<WorkloadError>& errors)
      : def_(def), errors_(errors) {
    for (const ParamDef& p : def.params) {
      values_.push_back(p.values);
      for (const ParamOverride& o : overrides)
        if (o.name == p.name) values_.back() = o.values;
    }
  }

  std::vector<Instance> run() {
    std::vector<Instance> out;
    std::set<std::string> seen;
    const std::optional<size_t> count = def_.zip ? rows() : product();
    if (!count) return out;
    for (size_t i = 0; i < *count; i++) {
      Params params;
      size_t rest = i;
      for (size_t k = values_.size(); k-- > 0;) {
        const size_t n = values_[k].size();
        params.emplace_back(def_.params[k].name,
                            values_[k][def_.zip ? (n == 1 ? 0 : i) : rest % n]);
        rest /= n;
      }
      std::ranges::reverse(params);
      Instance in = instance(params);
      if (!seen.insert(in.name).second)
        error(def_.params.front().at, "params", fmt::format("instance '{}' appears twice", in.name),
              "distinct values");
      else
        out.push_back(std::move(in));
    }
    return out;
  }

 private:
  void error(SourcePos at, const std::string& field, std::string message, std::string expected) {
    add({def_.file, at.line, at.column, def_.name + "." + field, std::move(message),
         std::move(expected)});
  }
  void error(const Diagnostic& d, const std::string& field) {
    add(located(d, def_.file, def_.name + "." + field));
  }
  // The same mistake in every instance is one mistake.
  void add(WorkloadError e) {
    if (std::ranges::find(errors_, e) == errors_.end()) errors_.push_back(std::move(e));
  }

  std::optional<size_t> product() {
    size_t n = 1;
    for (const auto& v : values_) {
      n *= v.size();
      if (n > most_instances) {
        error(def_.at, "params", "the params expand to too many instances",
              fmt::format("at most {}", most_instances));
        return std::nullopt;
      }
    }
    return n;
  }
  std::optional<size_t> rows() {
    size_t n = 1;
    for (size_t k = 0; k < values_.size(); k++) {
      const size_t len = values_[k].size();
      if (n != 1 && len != 1 && len != n) {
        error(def_.params[k].at, "params." + def_.params[k].name,
              fmt::format("{} values beside {}", len, n),
              "arrays of one length with expand = \"zip\"");
        return std::nullopt;
      }
      n = std::max(n, len);
    }
    return n;
  }

  Instance instance(const Params& params) {
    Instance in;
    in.file = def_.file, in.workload = def_.name, in.name = instance_name(def_, params),
    in.at = def_.at;
    in.params = params, in.program = def_.program, in.weight = def_.weight, in.repeat = def_.repeat;
    in.tags = def_.tags, in.tolerance = def_.tolerance, in.relaxed = def_.relaxed;
    for (const InputDef& d : def_.inputs) {
      InputSpec spec;
      spec.name = d.name, spec.at = d.at, spec.dtype = d.dtype, spec.constant = d.constant;
      dims(d, params, spec.shape);
      if (const auto why = evaluate_dist(d, params, spec.dist))
        error(*why, "inputs." + d.name + ".dist");
      if (spec.dist.kind == DistKind::File)
        spec.dist.path = (std::filesystem::path(def_.file).parent_path() / d.path).string();
      in.inputs.push_back(std::move(spec));
    }
    in.content_hash = sha256_hex(canonical_text(def_, in));
    return in;
  }

  void dims(const InputDef& d, const Params& params, std::vector<int64_t>& shape) {
    const std::string field = "inputs." + d.name;
    int64_t elements = 1;
    for (int node : d.dims.statements.front().values) {
      const SourcePos at = d.dims.exprs[static_cast<size_t>(node)].at;
      const std::string text = print(d.dims, node);
      const auto v = evaluate(d.dims, node, params);
      if (const auto* why = std::get_if<Diagnostic>(&v)) return error(*why, field);
      const Number n = std::get<Number>(v);
      if (n.kind != Number::Kind::Int)
        return error(
            {at, fmt::format("dim {} is no integer", text), "an integer; '//' divides integers"},
            field);
      if (n.integer < 0)
        return error({at, fmt::format("dim {} is {}", text, n.integer), "a dim >= 0"}, field);
      if (__builtin_mul_overflow(elements, n.integer, &elements) || elements > most_elements)
        return error({at, "the input is too large", "at most 2^40 elements"}, field);
      shape.push_back(n.integer);
    }
  }

  const WorkloadDef& def_;
  std::vector<WorkloadError>& errors_;
  std::vector<std::vector<int64_t>> values_;  // of each param, overrides applied
};

}  // namespace

int64_t InputSpec::elements() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

std::variant<ParamOverride, std::string> parse_param_override(std::string_view text) {
  const size_t equals = text.find('=');
  ParamOverride o;
  o.name = std::string(text.substr(0, equals));
  if (equals == text.npos || !is_identifier(o.name))
    return fmt::format("--param '{}': expected NAME=INTEGER or NAME=INTEGER,INTEGER,...", text);
  for (size_t begin = equals + 1;;) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, comma - begin);
    int64_t v = 0;
    const auto r = std::from_chars(word.data(), word.data() + word.size(), v);
    if (r.ec != std::errc{} || r.ptr != word.data() + word.size() || word.empty())
      return fmt::format("--param '{}', column {}: '{}' is no 64-bit integer", text, begin + 1,
                         word);
    o.values.push_back(v);
    if (comma == text.size()) return o;
    begin = comma + 1;
  }
}

std::vector<Instance> expand(const WorkloadDef& def, const std::vector<ParamOverride>& overrides,
                             std::vector<WorkloadError>& errors) {
  return Expander(def, overrides, errors).run();
}

}  // namespace beamline::workloads
