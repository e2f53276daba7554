// SHA-256 of a byte string, as 64 hex digits. The only use of libcrypto in the tree.
#pragma once
#include <string>
#include <string_view>

namespace beamline {

std::string sha256_hex(std::string_view bytes);

}  // namespace beamline
