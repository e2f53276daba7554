// beamline-runner: the only process that runs candidate code. A candidate that crashes ends this
// process, and that is all it ends.
#include "harness/runner.h"
#include "harness/serve.h"

int main() {
  beamline::Runner runner;
  beamline::serve_frames({},
                         [&](const beamline::Frame& request) { return runner.handle(request); });
}
