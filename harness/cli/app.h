// The program `beamline` behind main(): finds the command, parses, runs, and maps failures to exit
// codes.
#pragma once
#include <string>
#include <vector>

namespace beamline::cli {

/// `arguments` without the program's name. Never throws.
int run_app(const std::vector<std::string>& arguments);

}  // namespace beamline::cli
