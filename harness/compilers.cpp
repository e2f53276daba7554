#include "harness/compilers.h"

#include <fmt/format.h>

#include <cstdlib>

namespace beamline {

std::string default_cache_folder() {
  const auto env = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string(v ? v : "");
  };
  if (std::string folder = env("BEAMLINE_CACHE"); !folder.empty()) return folder;
  std::string cache = env("XDG_CACHE_HOME");
  if (cache.empty() || cache[0] != '/') {  // as XDG says
    if (env("HOME").empty()) return {};
    cache = env("HOME") + "/.cache";
  }
  return cache + "/beamline/programs";
}

void CacheUse::see(const Frame& reply) {
  if (reply.kind() != "compiled") return;
  const std::string warning = reply.header.value("cache_warning", "");
  if (!warning.empty() && warned_.insert(warning).second && warn_) warn_(warning);
  if (reply.header.value("status", "") != "ok") return;
  programs_++;
  hits_ += reply.header.value("cached", false);
}

std::string CacheUse::text() const {
  return fmt::format("{} of {} programs came from the cache", hits_, programs_);
}

WorkerOptions compiler_options(const CacheSettings& settings, CacheUse& use) {
  WorkerOptions o{.command = {helper_path("beamline-compile")}};
  if (!settings.folder.empty() && settings.bytes > 0) {
    o.command.push_back(settings.folder);
    o.command.push_back(fmt::format("{}", settings.bytes));
  }
  o.on_reply = [&use](const Frame& reply) { use.see(reply); };
  return o;
}

}  // namespace beamline
