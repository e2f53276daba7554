// The moves a search may make from a schedule.
#pragma once
#include "engine/opt/schedule.h"

namespace beamline {

/// Every opt of the action table that is legal after `so_far`, in a fixed order; deterministic.
/// Sequences that are not legal themselves give nothing.
Opts legal_actions(UOp ast, const Opts& so_far, const Target& target);

/// Identifies the action table: changes when the table does, so that stored searches can be told
/// apart.
std::string_view action_set_name();

}  // namespace beamline
