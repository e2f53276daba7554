#include "workloads/selection.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "workloads/onnx/import.h"

namespace beamline::workloads {
namespace {

namespace fs = std::filesystem;

struct Argument {
  std::string path, glob;  // glob empty: everything
};

Argument split(const std::string& argument) {
  std::error_code ignored;
  if (fs::exists(argument, ignored)) return {argument, ""};
  // A glob may hold colons; a path seldom does: the first ".toml:" or ".onnx:" ends the path.
  const size_t at = std::min(argument.find(".toml:"), argument.find(".onnx:"));
  if (at == std::string::npos) return {argument, ""};
  return {argument.substr(0, at + 5), argument.substr(at + 6)};
}

WorkloadError whole_file(const std::string& file, std::string message, std::string expected = "") {
  return {file, 0, 0, "", std::move(message), std::move(expected)};
}

std::vector<std::string> files_of(const std::string& path, std::vector<WorkloadError>& errors) {
  std::error_code e;
  if (!fs::is_directory(path, e)) return {path};
  std::vector<std::string> files;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, e);
  while (!e && it != fs::recursive_directory_iterator()) {
    if (std::error_code ignored; it->path().extension() == ".toml" && it->is_regular_file(ignored))
      files.push_back(it->path().string());
    it.increment(e);
  }
  std::ranges::sort(files);
  if (e)
    errors.push_back(whole_file(path, "cannot read the directory: " + e.message()));
  else if (files.empty())
    errors.push_back(whole_file(path, "no .toml file in the directory"));
  return files;
}

std::optional<std::string> contents(const std::string& file, std::vector<WorkloadError>& errors) {
  std::error_code e;
  if (!fs::exists(file, e)) {
    errors.push_back(whole_file(file, "no such file or directory"));
    return std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) {
    errors.push_back(whole_file(file, "cannot read the file"));
    return std::nullopt;
  }
  return text;
}

// The text of a workload file; a model is one once it is imported.
std::optional<std::string> workload_text(const std::string& file,
                                         std::vector<WorkloadError>& errors) {
  if (fs::path(file).extension() != ".onnx") return contents(file, errors);
  auto imported = onnx::import_model(file);
  if (auto* text = std::get_if<std::string>(&imported)) return std::move(*text);
  for (WorkloadError& e : std::get<1>(imported)) errors.push_back(std::move(e));
  return std::nullopt;
}

}  // namespace

bool is_workload_argument(const std::string& argument) {
  const Argument a = split(argument);
  std::error_code ignored;
  const fs::path extension = fs::path(a.path).extension();
  return fs::is_directory(a.path, ignored) || extension == ".toml" || extension == ".onnx";
}

bool matches_glob(const std::string& glob, const std::string& name) {
  return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

Selection select(const std::vector<std::string>& arguments,
                 const std::vector<ParamOverride>& overrides) {
  Selection out;
  std::set<std::string> known_params;
  std::set<std::pair<std::string, std::string>> taken;  // file, instance
  for (const std::string& argument : arguments) {
    const auto [path, glob] = split(argument);
    if (!is_workload_argument(argument)) {
      std::error_code ignored;
      const bool there = fs::exists(path, ignored);
      out.errors.push_back(whole_file(path,
                                      there ? "not a workload file" : "no such file or directory",
                                      "a .toml or .onnx file, a directory or FILE:INSTANCE-GLOB"));
      continue;
    }
    std::vector<std::string> names;
    bool any = false, read = true;
    for (const std::string& file : files_of(path, out.errors)) {
      const std::optional<std::string> text = workload_text(file, out.errors);
      if (!text) {
        read = false;
        continue;
      }
      LoadedFile loaded = parse_workload_file(file, *text);
      out.errors.insert(out.errors.end(), loaded.errors.begin(), loaded.errors.end());
      if (!loaded.errors.empty()) {
        read = false;
        continue;
      }
      for (const WorkloadDef& def : loaded.workloads) {
        std::vector<WorkloadError> errors;
        bool used = false;
        for (Instance& in : expand(def, overrides, errors)) {
          names.push_back(in.name);
          if (!glob.empty() && !matches_glob(glob, in.name)) continue;
          used = true;
          if (taken.insert({file, in.name}).second) out.instances.push_back(std::move(in));
        }
        any |= used;
        if (used)
          for (const ParamDef& p : def.params) known_params.insert(p.name);
        if (used || glob.empty()) out.errors.insert(out.errors.end(), errors.begin(), errors.end());
      }
    }
    if (!any && read && !glob.empty())
      out.errors.push_back(whole_file(
          path, fmt::format("no instance matches '{}'{}", glob, did_you_mean(glob, names)),
          names.empty() ? "" : fmt::format("a glob of names like '{}'", names.front())));
  }
  const std::vector<std::string> params(known_params.begin(), known_params.end());
  if (out.errors.empty())
    for (const ParamOverride& o : overrides)
      if (!known_params.contains(o.name))
        out.errors.push_back(whole_file("--param",
                                        fmt::format("no selected workload has a param '{}'{}",
                                                    o.name, did_you_mean(o.name, params)),
                                        params.empty() ? "" : one_of(params)));
  return out;
}

}  // namespace beamline::workloads
