// A parent to be killed: starts a helper that hangs, prints its pid, and waits for it for ever.
// Argument: path of the helper.
#include <cstdio>

#include "harness/process_pool.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  beamline::WorkerOptions options;
  options.command = {argv[1]};
  beamline::Worker worker(options);
  const auto first = worker.call({{{"do", "child"}}, {}}, std::chrono::seconds(60));
  if (!first.ok()) return 1;
  std::printf("%d %d\n", static_cast<int>(worker.pid()), first.reply.header.at("child").get<int>());
  std::fflush(stdout);
  worker.call({{{"do", "spin"}}, {}}, std::chrono::hours(1));
  return 0;
}
