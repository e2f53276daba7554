// Versions that reach users and database rows.
#pragma once

namespace beamline {

inline constexpr char beamline_version[] = "0.1.0";
/// Changes with every commit that changes a kernel's key or the code an opt sequence gives.
inline constexpr char engine_version[] = "6";

}  // namespace beamline
