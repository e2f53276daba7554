#include "devices/cpu/launcher.h"

#include <algorithm>
#include <atomic>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "devices/cpu/topology.h"
#include "engine/base/check.h"

namespace beamline {
namespace {

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

constexpr int kSpins = 20'000;  // about half a millisecond: longer than the gaps within a session

struct Job {
  KernelFn kernel = nullptr;
  void* const* buffers = nullptr;
  int first = 0, step = 1, threads = 0;

  void run() const {
    for (int id = first; id < threads; id += step) kernel(buffers, id);
  }
};

}  // namespace

// A helper has its own mailbox, so a kernel with few threads waits for no other helper.
struct alignas(128) Launcher::Helper {
  explicit Helper(unsigned pu) : thread([this, pu] { work(pu); }) {}
  ~Helper() {
    post({});
    thread.join();
  }

  void post(const Job& j) {
    job = j;
    posted.fetch_add(1, std::memory_order_release);
    posted.notify_one();
  }
  void wait() const {
    for (int spin = 0;
         done.load(std::memory_order_acquire) != posted.load(std::memory_order_relaxed); spin++) {
      // Somebody else may sit on the helper's PU; give way in the long run.
      if (spin < kSpins)
        relax();
      else
        std::this_thread::yield();
    }
  }

  void work(unsigned pu) {
    bind_thread(pu);
    set_float_mode();
    for (uint32_t seen = 0;; seen++) {
      for (int spin = 0; spin < kSpins && posted.load(std::memory_order_acquire) == seen; spin++)
        relax();
      posted.wait(seen, std::memory_order_acquire);
      if (job.kernel == nullptr) return;
      job.run();
      done.store(seen + 1, std::memory_order_release);
    }
  }

  Job job;
  std::atomic<uint32_t> posted{0};
  alignas(128) std::atomic<uint32_t> done{0};
  std::thread thread;  // last: it uses the others
};

Launcher::Launcher(std::vector<unsigned> pus) : pus_(std::move(pus)) { CHECK(!pus_.empty()); }
Launcher::~Launcher() = default;

void Launcher::run(KernelFn kernel, void* const* buffers, int threads) {
  const int workers = std::min(threads, static_cast<int>(pus_.size()));
  while (static_cast<int>(helpers_.size()) + 1 < workers) {
    helpers_.push_back(std::make_unique<Helper>(pus_[helpers_.size() + 1]));
  }
  for (int i = 1; i < workers; i++) {
    helpers_[static_cast<size_t>(i - 1)]->post({kernel, buffers, i, workers, threads});
  }
  Job{kernel, buffers, 0, std::max(workers, 1), threads}.run();
  for (int i = 1; i < workers; i++) helpers_[static_cast<size_t>(i - 1)]->wait();
}

uint32_t set_float_mode() {
#if defined(__x86_64__)
  _mm_setcsr(0x1F80);
  return _mm_getcsr();
#else
  return 0;
#endif
}

}  // namespace beamline
