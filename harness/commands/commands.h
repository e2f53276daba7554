// The commands, one file each. A command that is not here does not exist.
#pragma once
#include <vector>

#include "harness/cli/command.h"

namespace beamline::cli {

Command tune_command();
Command best_command();
Command kernels_command();
Command run_command();
std::vector<Command> workloads_commands();  // list, show, check
Command workloads_import_command();
std::vector<Command> report_commands();
Command devices_command();
Command doctor_command();
Command bench_command();
Command verdict_command();
std::vector<Command> pin_commands();      // accept, pin, unpin
std::vector<Command> db_care_commands();  // backup, prune, merge
std::vector<Command> db_key_commands();   // migrate, explain-key
std::vector<Command> db_commands();
Command ir_lower_command();
Command ir_simplify_command();
Command ir_rules_command();
Command ir_trace_command();

/// In the order of the overview.
std::vector<Command> all_commands();

}  // namespace beamline::cli
