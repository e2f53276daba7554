// How many random cases the tests run, and from which seed on.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace beamline::fuzz {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t programs = 150;  // the build with checks takes as long for these
#else
constexpr uint64_t programs = 2000;
#endif

inline uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace beamline::fuzz
