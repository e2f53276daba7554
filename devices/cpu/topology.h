// What the processors are that this process may use: allowed PUs (affinity and cgroup aware),
// caches, NUMA nodes, and the identity of the processor. Reading is thread safe; values are plain
// data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace beamline {

struct CpuCache {
  int level = 0;
  char kind = 'u';  // d data, i instruction, u unified
  uint64_t bytes = 0;
  int line_bytes = 0;
  int pus_sharing = 0;  // PUs under one such cache, allowed or not
  int count = 0;        // caches of this kind that the allowed PUs reach
};

struct CpuTopology {
  std::vector<unsigned> pus;  // OS numbers, one of each core first, then the SMT siblings
  int cores = 0;              // that have an allowed PU
  int packages = 0;
  int numa_nodes = 0;
  int threads_per_core = 1;
  double quota_cpus = 0;  // of the cgroup; 0 = none
  std::vector<CpuCache> caches;
};

struct CpuModel {
  std::string vendor;  // "AuthenticAMD"
  std::string name;    // marketing name; not part of an identity's decision in virtual machines
  int family = 0, model = 0, stepping = 0;
  std::vector<std::string>
      isa;  // features kernels use, in a fixed order: "avx", "avx2", "fma", ...

  bool has(const std::string& feature) const;
};

/// Throws std::runtime_error when hwloc cannot read this machine.
CpuTopology read_topology();
CpuModel read_cpu_model();

/// What binding achieved; a refusal by the system (containers forbid memory policies) is a note.
struct BindReport {
  bool cpu = false;
  bool memory = false;
  std::string note;
};

/// Binds all threads of the calling process to `pus` and its future memory to their NUMA nodes.
BindReport bind_process(const std::vector<unsigned>& pus);
/// Binds the calling thread to one PU; false when the system refuses.
bool bind_thread(unsigned pu);

}  // namespace beamline
