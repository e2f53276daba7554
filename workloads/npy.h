// NumPy .npy files, versions 1 to 3, little endian, C order. Types NumPy lacks travel as unsigned
// integers of their width: bf16 as <u2, fp8 as |u1 (also as |V2 and |V1, which ml_dtypes writes).
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/ir/dtype.h"

namespace beamline::workloads {

/// The bytes of an array that must have this dtype and shape, or what is wrong with the text or the
/// file.
std::variant<std::vector<std::byte>, std::string> parse_npy(std::string_view file, DType dtype,
                                                            std::span<const int64_t> shape);
std::variant<std::vector<std::byte>, std::string> read_npy(const std::string& path, DType dtype,
                                                           std::span<const int64_t> shape);
/// A version 1 file.
std::string npy_text(std::span<const std::byte> data, DType dtype, std::span<const int64_t> shape);

}  // namespace beamline::workloads
