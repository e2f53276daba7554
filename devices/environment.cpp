#include "devices/environment.h"

#include <sys/utsname.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace beamline {
namespace {

struct Fact {
  const char* name;
  const char* path;
};

// clang-format off
constexpr Fact kFacts[] = {
    {"governor",      "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
    {"min_khz",       "/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq"},
    {"max_khz",       "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"},
    {"boost",         "/sys/devices/system/cpu/cpufreq/boost"},
    {"no_turbo",      "/sys/devices/system/cpu/intel_pstate/no_turbo"},
    {"smt",           "/sys/devices/system/cpu/smt/control"},
    {"huge_pages",    "/sys/kernel/mm/transparent_hugepage/enabled"},
    {"clock_source",  "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
    {"aslr",          "/proc/sys/kernel/randomize_va_space"},
    {"command_line",  "/proc/cmdline"},
};
// clang-format on

std::string first_line(const char* path, std::string& error) {
  errno = 0;
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) error = errno != 0 ? std::strerror(errno) : "empty";
  return line;
}

// The value of the first "key : value" line of /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (line.rfind(key, 0) == 0 && colon != std::string::npos && colon + 2 <= line.size()) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

}  // namespace

nlohmann::json read_environment() {
  nlohmann::json out = nlohmann::json::object(), unreadable = nlohmann::json::object();
  for (const Fact& f : kFacts) {
    std::string error;
    const std::string value = first_line(f.path, error);
    if (error.empty()) {
      out[f.name] = value;
    } else {
      out[f.name] = nullptr;
      unreadable[f.name] = error;
    }
  }
  struct utsname u;
  if (uname(&u) == 0) {
    out["kernel"] = std::string(u.sysname) + " " + u.release;
    out["host"] = u.nodename;
  }
  const std::string microcode = cpuinfo("microcode");
  out["microcode"] = microcode.empty() ? nlohmann::json() : nlohmann::json(microcode);
  if (microcode.empty()) unreadable["microcode"] = "not in /proc/cpuinfo";
  out["hypervisor"] = (" " + cpuinfo("flags") + " ").find(" hypervisor ") != std::string::npos;
  out["unreadable"] = unreadable;
  return out;
}

nlohmann::json read_load() {
  nlohmann::json out = {{"loadavg", nullptr}, {"steal_ticks", nullptr}};
  std::ifstream load("/proc/loadavg");
  double a = 0, b = 0, c = 0;
  if (load >> a >> b >> c) out["loadavg"] = {a, b, c};
  std::ifstream stat("/proc/stat");
  std::string cpu;
  long long field = 0;
  if (stat >> cpu) {
    for (int i = 0; i < 8 && stat >> field; i++) {
      if (i == 7) out["steal_ticks"] = field;
    }
  }
  return out;
}

}  // namespace beamline
