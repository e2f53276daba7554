// beamline: the command line program. It links no LLVM and runs no candidate.
#include "harness/cli/app.h"

int main(int argc, char** argv) { return beamline::cli::run_app({argv + 1, argv + argc}); }
