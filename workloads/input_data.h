// The contents of an instance's inputs. Generated values depend only on (seed, input's name, dtype,
// dist, element number): the same on every machine and for any order of generation. No NaN, Inf or
// denormal.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "workloads/workload_file.h"

namespace beamline::workloads {

/// The bytes of the input in C order, or what is wrong with its file.
std::variant<std::vector<std::byte>, std::string> input_data(const InputSpec& spec, uint64_t seed);

}  // namespace beamline::workloads
