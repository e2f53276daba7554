// How beamline-compile is started, and what its cache of compiled programs did meanwhile. Only
// whole programs are kept: what is asked for its source or assembly, or compiled from text, never
// is.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "harness/process_pool.h"

namespace beamline {

struct CacheSettings {
  std::string folder;  // empty: no cache
  uint64_t bytes = 0;  // its limit
};
inline constexpr uint64_t default_cache_bytes = uint64_t{512} << 20;

/// $BEAMLINE_CACHE, else $XDG_CACHE_HOME/beamline/programs, else the same in ~/.cache; empty where
/// there is no home.
std::string default_cache_folder();

/// Counts of one command. Lives as long as the pool whose answers it sees.
class CacheUse {
 public:
  /// `warn` is told each warning once.
  explicit CacheUse(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  void see(const Frame& reply);
  int64_t programs() const { return programs_; }  // that compiled well, now or before
  int64_t hits() const { return hits_; }
  /// "12 of 30 programs came from the cache".
  std::string text() const;

 private:
  std::function<void(const std::string&)> warn_;
  std::set<std::string> warned_;
  int64_t programs_ = 0, hits_ = 0;
};

/// Borrows `use`.
WorkerOptions compiler_options(const CacheSettings& settings, CacheUse& use);

}  // namespace beamline
