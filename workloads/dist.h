// The little languages of an input: its dtype's name and its `dist`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "workloads/workload_file.h"

namespace beamline::workloads {

/// Dtypes that an input or a cast can have, by the name files use.
const std::vector<std::string>& dtype_names();
std::optional<DType> storable_dtype(std::string_view name);

/// "int LO..HI, uniform LO..HI, normal MEAN DEVIATION, ones or file PATH"
std::string dist_grammar();
/// Reads a dist into d; bounds stay expressions of the params.
std::vector<Diagnostic> parse_dist(const SourceText& text, InputDef& d);
/// uniform -1..1 for floats, int 0..9 for integers, int 0..1 for bool.
void default_dist(InputDef& d);
/// Evaluates the dist of an instance and checks that its values fit the dtype.
std::optional<Diagnostic> evaluate_dist(const InputDef& d, const Params& params, Dist& out);

}  // namespace beamline::workloads
