#include "devices/identity.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/sha256.h"

namespace beamline {
namespace {

std::string cache_text(const CpuCache& c) {
  return fmt::format("L{}{}:{}:{}:{}x{}", c.level, c.kind, c.bytes, c.line_bytes, c.pus_sharing,
                     c.count);
}

// The level decides which vectors and instructions opts were chosen for.
std::string isa_level(const CpuModel& m) {
  for (const char* level : {"avx512f", "avx2", "avx", "sse4.2"}) {
    if (m.has(level)) return level;
  }
  return "base";
}

}  // namespace

std::string identity_text(const std::string& backend, const CpuModel& model,
                          const CpuTopology& topology, int threads) {
  std::string text =
      fmt::format("device-id 1\nbackend={}\nvendor={}\nfamily={}\nmodel={}\nstepping={}\n", backend,
                  model.vendor, model.family, model.model, model.stepping);
  text += fmt::format("isa={}\n", fmt::join(model.isa, ","));
  // How many PUs, not which: the scheduler of a cluster hands out other numbers every night.
  text += fmt::format("pus={}\ncores={}\npackages={}\nnuma={}\nsmt={}\n", topology.pus.size(),
                      topology.cores, topology.packages, topology.numa_nodes,
                      topology.threads_per_core);
  for (const CpuCache& c : topology.caches) text += "cache=" + cache_text(c) + "\n";
  return text + fmt::format("threads={}\n", threads);
}

DeviceIdentity identify_cpu(const std::string& backend, const CpuModel& model,
                            const CpuTopology& topology, int threads) {
  DeviceIdentity id;
  id.backend = backend;
  id.name = model.name.empty() ? model.vendor : model.name;
  std::string prefix = backend;
  std::replace(prefix.begin(), prefix.end(), ':', '_');
  const std::string hash = sha256_hex(identity_text(backend, model, topology, threads));
  id.device_id = prefix + "-" + hash.substr(0, 16);
  id.arch =
      fmt::format("x86_64-{}-f{}m{}-{}", model.vendor, model.family, model.model, isa_level(model));

  nlohmann::json caches = nlohmann::json::array();
  for (const CpuCache& c : topology.caches) {
    caches.push_back({{"level", c.level},
                      {"kind", std::string(1, c.kind)},
                      {"bytes", c.bytes},
                      {"line_bytes", c.line_bytes},
                      {"pus_sharing", c.pus_sharing},
                      {"count", c.count}});
  }
  id.facts = {{"fixed",
               {{"backend", backend},
                {"vendor", model.vendor},
                {"family", model.family},
                {"model", model.model},
                {"stepping", model.stepping},
                {"isa", model.isa},
                {"pus", topology.pus.size()},
                {"cores", topology.cores},
                {"packages", topology.packages},
                {"numa_nodes", topology.numa_nodes},
                {"threads_per_core", topology.threads_per_core},
                {"caches", caches},
                {"threads", threads}}},
              {"name", id.name},
              {"pu_numbers", topology.pus},
              {"quota_cpus", topology.quota_cpus}};
  return id;
}

}  // namespace beamline
