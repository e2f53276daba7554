// A command: what it is called, what it takes, what it does. The registry is the list in
// commands.h; app.cpp finds, parses and runs one, and turns what goes wrong into exit codes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/cli/arguments.h"
#include "harness/cli/terminal.h"

namespace beamline::cli {

struct GlobalOptions {
  std::vector<std::string> databases;  // --db, in order; never empty
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  Color color = Color::Auto;
};

/// What a command runs with. Results go to stdout, everything else to `log`.
struct Context {
  GlobalOptions global;
  Log log;
  std::string command_line;  // as stored with a run

  /// One JSON document on stdout; numbers that are no numbers are null.
  void print_json(const nlohmann::ordered_json& document) const;
  void print(const std::string& text) const;
};

struct Command {
  std::string name;       // "tune", "workloads list"
  std::string arguments;  // for the usage line: "WORKLOAD..."
  size_t min_arguments = 0, max_arguments = 0;
  std::string summary;  // one line
  std::string details;  // further help: behaviour, the shape of the JSON document, exit codes
  std::vector<OptionSpec> options;
  std::function<int(Context&, const Arguments&)> run;
};

inline constexpr size_t any_number = ~size_t{0};

}  // namespace beamline::cli
