#include "tests/bench/network_run.h"

#include <array>
#include <utility>

namespace beamline::bench {
namespace {

std::array<std::function<void(int64_t)>, call_slots> calls;

template <size_t slot>
void enter(void* const*, int64_t core_id) {
  calls[slot](core_id);
}

template <size_t... slots>
constexpr std::array<KernelFn, call_slots> entries(std::index_sequence<slots...>) {
  return {enter<slots>...};
}

}  // namespace

KernelFn bind_call(size_t slot, std::function<void(int64_t)> call) {
  calls.at(slot) = std::move(call);
  return entries(std::make_index_sequence<call_slots>())[slot];
}

NetworkRun::NetworkRun(const Network& network, const std::vector<std::string>& opts,
                       const Target& target, const Buffers& buffers) {
  for (size_t i = 0; i < network.kernels.size(); i++) {
    Step step{compile(network.kernels[i], opts.at(i), target), {}, {}};
    for (size_t b : network.slots[i]) step.pointers.push_back(buffers.pointers()[b]);
    step.pointers = step.laid.pointers(step.program.layouts, step.pointers);
    threads_ = std::max(threads_, step.program.threads);
    steps_.push_back(std::move(step));
  }
}

void NetworkRun::meet() {
  if (threads_ == 1 || steps_.size() == 1) return;
  const int now = generation_.load();
  if (arrived_.fetch_add(1) + 1 == threads_) {
    arrived_.store(0);
    generation_.store(now + 1);
    return;
  }
  while (generation_.load() == now) {
  }
}

void NetworkRun::call(int64_t core_id) {
  for (const Step& s : steps_) {
    if (core_id < s.program.threads) s.program.blob.entry()(s.pointers.data(), core_id);
    meet();
  }
}

std::string NetworkRun::opts_text() const {
  std::string text;
  for (const Step& s : steps_) text += (text.empty() ? "" : " | ") + s.program.opts;
  return text;
}

}  // namespace beamline::bench
