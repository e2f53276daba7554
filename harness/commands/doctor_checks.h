// What the facts of a machine mean for measuring on it. A pure function, so that other machines'
// facts can be judged in tests.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "devices/cpu/topology.h"

namespace beamline::cli {

struct DoctorCheck {
  std::string check;   // governor, smt, quota, huge_pages, ...
  std::string value;   // as found; "unknown" where it cannot be read
  std::string state;   // ok, warning, unknown
  std::string advice;  // what it costs and what to do; "" when ok
};

/// `environment` as read_environment() gives it, `load` as read_load().
std::vector<DoctorCheck> judge_machine(const CpuTopology& topology,
                                       const nlohmann::json& environment,
                                       const nlohmann::json& load);

}  // namespace beamline::cli
