#include "harness/commands/commands.h"

namespace beamline::cli {

std::vector<Command> all_commands() {
  std::vector<Command> all{tune_command(), bench_command(), best_command(), kernels_command(),
                           run_command()};
  for (Command& c : workloads_commands()) all.push_back(std::move(c));
  all.push_back(workloads_import_command());
  all.push_back(verdict_command());
  for (Command& c : report_commands()) all.push_back(std::move(c));
  all.push_back(devices_command());
  all.push_back(doctor_command());
  for (auto* group : {pin_commands, db_commands, db_care_commands, db_key_commands})
    for (Command& c : group()) all.push_back(std::move(c));
  all.push_back(ir_lower_command());
  all.push_back(ir_simplify_command());
  all.push_back(ir_rules_command());
  all.push_back(ir_trace_command());
  return all;
}

}  // namespace beamline::cli
