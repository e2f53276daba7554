#include "engine/ir/target.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace beamline {
namespace {

bool read_int(std::string_view s, int& out) {
  const auto [p, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
  return ec == std::errc() && p == s.data() + s.size() && out >= 0;
}

// Limits of a group that the vendors publish: threads, and bytes of shared memory without opt-in.
struct Emulated {
  std::string_view name;
  int local_max, shared_bytes;
};
constexpr std::string_view use_names[] = {"off", "on", "shape"};

constexpr Emulated emulated[] = {
    {"emulator:sm_75", 1024, 49152}, {"emulator:sm_80", 1024, 49152},
    {"emulator:sm_89", 1024, 49152}, {"emulator:sm_90", 1024, 49152},
    {"emulator:rdna3", 1024, 65536}, {"emulator:rdna4", 1024, 65536},
    {"emulator:cdna3", 1024, 65536}, {"emulator:cdna4", 1024, 65536},
    {"emulator:metal", 1024, 32768},
};

}  // namespace

bool has_instruction(std::string_view instructions, std::string_view name) {
  while (!instructions.empty()) {
    const std::string_view word = instructions.substr(0, instructions.find(' '));
    if (word == name) return true;
    instructions.remove_prefix(std::min(instructions.size(), word.size() + 1));
  }
  return false;
}

std::string target_text(const Target& t) {
  return fmt::format(
      "name={};cpu={};features={};instructions={};vector_bytes={};vector_registers={};threads={};"
      "has_local={};"
      "local_max={};shared_bytes={};masked_tails={};index_dtype={};magic_division={};"
      "tensor_cores={};allow_tf32={}",
      t.name, t.cpu, t.features, t.instructions, t.vector_bytes, t.vector_registers, t.threads,
      int{t.has_local}, t.local_max, t.shared_bytes, int{t.masked_tails}, dtype_name(t.index_dtype),
      int{t.magic_division}, use_names[static_cast<size_t>(t.tensor_cores)], int{t.allow_tf32});
}

std::optional<TensorCoreUse> tensor_core_use(std::string_view name) {
  for (size_t i = 0; i < std::size(use_names); i++)
    if (use_names[i] == name) return static_cast<TensorCoreUse>(i);
  return std::nullopt;
}

std::optional<Target> parse_target(std::string_view text) {
  Target t;
  int flag = 0;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t eq = item.find('=');
    if (eq == std::string_view::npos) return std::nullopt;
    const std::string_view key = item.substr(0, eq), value = item.substr(eq + 1);
    bool ok = true;
    if (key == "name")
      t.name = value;
    else if (key == "cpu")
      t.cpu = value;
    else if (key == "features")
      t.features = value;
    else if (key == "instructions")
      t.instructions = value;
    else if (key == "vector_bytes")
      ok = read_int(value, t.vector_bytes);
    else if (key == "vector_registers")
      ok = read_int(value, t.vector_registers);
    else if (key == "threads")
      ok = read_int(value, t.threads);
    else if (key == "has_local")
      ok = read_int(value, flag), t.has_local = flag != 0;
    else if (key == "local_max")
      ok = read_int(value, t.local_max);
    else if (key == "shared_bytes")
      ok = read_int(value, t.shared_bytes);
    else if (key == "masked_tails")
      ok = read_int(value, flag), t.masked_tails = flag != 0;
    else if (key == "index_dtype") {
      const auto d = dtype_from_name(value);
      ok = d.has_value() && is_int(*d);
      if (ok) t.index_dtype = *d;
    } else if (key == "magic_division") {
      ok = read_int(value, flag), t.magic_division = flag != 0;
    } else if (key == "tensor_cores") {
      const auto use = tensor_core_use(value);
      ok = use.has_value();
      if (ok) t.tensor_cores = *use;
    } else if (key == "allow_tf32")
      ok = read_int(value, flag), t.allow_tf32 = flag != 0;
    else
      ok = false;
    if (!ok) return std::nullopt;
  }
  if (t.vector_bytes < 1 || t.vector_registers < 1 || t.threads < 1) return std::nullopt;
  return t;
}

std::optional<Target> emulated_target(std::string_view name) {
  for (const Emulated& e : emulated)
    if (e.name == name) {
      Target t;
      t.name = name;
      t.vector_bytes = 16;
      t.vector_registers = 64;  // 256 registers of 4 bytes a thread
      t.has_local = true;
      t.local_max = e.local_max;
      t.shared_bytes = e.shared_bytes;
      t.masked_tails = false;
      t.magic_division = true;
      return t;
    }
  return std::nullopt;
}

std::vector<std::string_view> emulated_targets() {
  std::vector<std::string_view> names;
  for (const Emulated& e : emulated) names.push_back(e.name);
  return names;
}

}  // namespace beamline
