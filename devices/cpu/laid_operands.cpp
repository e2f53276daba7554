#include "devices/cpu/laid_operands.h"

#include <stdexcept>
#include <variant>

#include <fmt/format.h>

#include "devices/cpu/blob.h"

namespace beamline {

std::vector<void*> LaidOperands::pointers(const std::vector<LayoutCode>& layouts,
                                          std::span<void* const> given) {
  std::vector<void*> out(given.begin(), given.end());
  for (const LayoutCode& l : layouts) {
    if (l.slot >= given.size())
      throw std::runtime_error(
          fmt::format("layout of buffer {}: there are {}", l.slot, given.size()));
    const std::pair key(l.slot, l.code);
    auto at = made_.find(key);
    if (at == made_.end()) {
      const auto mapped = CodeBlob::map(l.code, l.entry_offset);
      if (const auto* why = std::get_if<std::string>(&mapped))
        throw std::runtime_error(fmt::format("layout of buffer {}: {}", l.slot, *why));
      at = made_.emplace(key, GuardedBuffer(l.bytes, /*huge_pages=*/true)).first;
      void* const both[] = {at->second.data(), given[l.slot]};
      std::get<CodeBlob>(mapped).entry()(both, 0);
      if (const auto damage = at->second.damage()) {
        made_.erase(at);
        throw std::runtime_error(
            fmt::format("wrote outside of the layout of buffer {} ({} bytes) at byte {}", l.slot,
                        l.bytes, *damage));
      }
      // Kernels share it: one that writes here must not be the ruin of the next.
      at->second.seal();
    }
    out[l.slot] = at->second.data();
  }
  return out;
}

size_t LaidOperands::bytes() const {
  size_t sum = 0;
  for (const auto& [key, memory] : made_) sum += memory.bytes();
  return sum;
}

std::vector<std::pair<const void*, size_t>> LaidOperands::spans() const {
  std::vector<std::pair<const void*, size_t>> out;
  for (const auto& [key, memory] : made_) out.emplace_back(memory.data(), memory.bytes());
  return out;
}

}  // namespace beamline
