#include "devices/cpu/topology.h"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <tuple>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <fmt/format.h>

namespace beamline {
namespace {

struct TopologyFree {
  void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyFree>;

struct BitmapFree {
  void operator()(hwloc_bitmap_s* b) const { hwloc_bitmap_free(b); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapFree>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw std::runtime_error("hwloc_topology_init failed");
  Topology t(raw);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(raw) != 0) {
    throw std::runtime_error(
        fmt::format("hwloc cannot read this machine: {}", std::strerror(errno)));
  }
  return t;
}

// hwloc's allowed set knows the cgroup; the affinity mask may be narrower still (taskset).
Bitmap allowed_pus(hwloc_topology_t t) {
  Bitmap set(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(t)));
  const Bitmap bound(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(t, bound.get(), HWLOC_CPUBIND_PROCESS) == 0) {
    hwloc_bitmap_and(set.get(), set.get(), bound.get());
  }
  return set;
}

// "max 100000" or "150000 100000"; the tightest of the own group and its parents.
double read_quota() {
  std::ifstream self("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(self, line)) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  double quota = 0;
  for (;;) {
    std::ifstream in("/sys/fs/cgroup" + path + "/cpu.max");
    std::string limit;
    double period = 0;
    if (in >> limit >> period && limit != "max" && period > 0) {
      const double cpus = std::strtod(limit.c_str(), nullptr) / period;
      if (cpus > 0) quota = quota == 0 ? cpus : std::min(quota, cpus);
    }
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return quota;
    path.resize(slash);
  }
}

char cache_kind(hwloc_obj_cache_type_t type) {
  return type == HWLOC_OBJ_CACHE_DATA ? 'd' : type == HWLOC_OBJ_CACHE_INSTRUCTION ? 'i' : 'u';
}

std::vector<CpuCache> read_caches(hwloc_topology_t t, hwloc_const_bitmap_t allowed) {
  std::map<std::tuple<int, char, uint64_t, int, int>, int> found;
  for (int depth = 0; depth < hwloc_topology_get_depth(t); depth++) {
    for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_by_depth(t, depth, o)) != nullptr;) {
      if (!hwloc_obj_type_is_cache(o->type) && !hwloc_obj_type_is_icache(o->type)) break;
      if (!hwloc_bitmap_intersects(o->cpuset, allowed)) continue;
      const auto& c = o->attr->cache;
      const int sharing = hwloc_bitmap_weight(o->complete_cpuset);
      found[{static_cast<int>(c.depth), cache_kind(c.type), c.size, static_cast<int>(c.linesize),
             sharing}]++;
    }
  }
  std::vector<CpuCache> out;
  for (const auto& [key, count] : found) {
    const auto& [level, kind, bytes, line, sharing] = key;
    out.push_back({level, kind, bytes, line, sharing, count});
  }
  return out;
}

}  // namespace

CpuTopology read_topology() {
  const Topology topology = load_topology();
  hwloc_topology_t t = topology.get();
  const Bitmap allowed = allowed_pus(t);
  CpuTopology out;
  std::vector<std::pair<int, unsigned>> order;  // rank within the core, then hwloc's own order
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, core));) {
    int rank = 0;
    unsigned pu = 0;
    hwloc_bitmap_foreach_begin(pu, core->cpuset) if (hwloc_bitmap_isset(allowed.get(), pu))
        order.emplace_back(rank++, pu);
    hwloc_bitmap_foreach_end();
    out.cores += rank > 0;
    out.threads_per_core =
        std::max(out.threads_per_core, hwloc_bitmap_weight(core->complete_cpuset));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [rank, pu] : order) out.pus.push_back(pu);
  if (out.pus.empty()) {  // a machine whose cores hwloc does not see
    unsigned pu = 0;
    hwloc_bitmap_foreach_begin(pu, allowed.get()) out.pus.push_back(pu);
    hwloc_bitmap_foreach_end();
    out.cores = static_cast<int>(out.pus.size());
  }
  if (out.pus.empty()) throw std::runtime_error("no processor is allowed to this process");
  for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PACKAGE, o));) {
    out.packages += hwloc_bitmap_intersects(o->cpuset, allowed.get());
  }
  for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o));) {
    out.numa_nodes += hwloc_bitmap_intersects(o->cpuset, allowed.get());
  }
  out.caches = read_caches(t, allowed.get());
  out.quota_cpus = read_quota();
  return out;
}

bool CpuModel::has(const std::string& feature) const {
  return std::find(isa.begin(), isa.end(), feature) != isa.end();
}

CpuModel read_cpu_model() {
  CpuModel m;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  __cpuid(0, a, b, c, d);
  char vendor[13] = {};
  std::memcpy(vendor, &b, 4), std::memcpy(vendor + 4, &d, 4), std::memcpy(vendor + 8, &c, 4);
  m.vendor = vendor;
  __cpuid(1, a, b, c, d);
  const int family = (a >> 8) & 15;
  m.family = family == 15 ? family + static_cast<int>((a >> 20) & 255) : family;
  m.model = static_cast<int>((a >> 4) & 15);
  if (family == 6 || family == 15) m.model += static_cast<int>(((a >> 16) & 15) << 4);
  m.stepping = static_cast<int>(a & 15);
  __builtin_cpu_init();
#define ISA(name) \
  if (__builtin_cpu_supports(name)) m.isa.push_back(name)
  // clang-format off
  ISA("sse4.1"); ISA("sse4.2"); ISA("avx"); ISA("f16c"); ISA("fma"); ISA("avx2"); ISA("bmi2");
  ISA("avx512f"); ISA("avx512bw"); ISA("avx512dq"); ISA("avx512vl"); ISA("avx512vnni");
  ISA("avx512bf16");
  // clang-format on
#undef ISA
#else
  m.vendor = "unknown";
#endif
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; m.name.empty() && std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 <= line.size()) m.name = line.substr(colon + 2);
  }
  return m;
}

BindReport bind_process(const std::vector<unsigned>& pus) {
  BindReport report;
  if (pus.empty()) {
    report.note = "no PUs named";
    return report;
  }
  const Topology topology = load_topology();
  const Bitmap set(hwloc_bitmap_alloc()), nodes(hwloc_bitmap_alloc());
  for (const unsigned pu : pus) hwloc_bitmap_set(set.get(), pu);
  report.cpu = hwloc_set_cpubind(topology.get(), set.get(), HWLOC_CPUBIND_PROCESS) == 0;
  if (!report.cpu) report.note = fmt::format("cpu binding refused: {}", std::strerror(errno));
  hwloc_cpuset_to_nodeset(topology.get(), set.get(), nodes.get());
  report.memory = hwloc_set_membind(topology.get(), nodes.get(), HWLOC_MEMBIND_BIND,
                                    HWLOC_MEMBIND_BYNODESET) == 0;
  if (!report.memory) {
    report.note += fmt::format("{}memory binding refused: {}", report.note.empty() ? "" : "; ",
                               std::strerror(errno));
  }
  return report;
}

bool bind_thread(unsigned pu) {
  cpu_set_t* set = CPU_ALLOC(pu + 1);
  if (set == nullptr) return false;
  const size_t bytes = CPU_ALLOC_SIZE(pu + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(pu, bytes, set);
  const bool ok = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return ok;
}

}  // namespace beamline
