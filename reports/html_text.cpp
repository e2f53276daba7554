#include "reports/html_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace beamline::reports {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Bytes of the UTF-8 character at the start of `s`; 0 where there is none.
size_t character_size(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  const size_t size = first < 0x80             ? 1
                      : (first & 0xE0) == 0xC0 ? 2
                      : (first & 0xF0) == 0xE0 ? 3
                      : (first & 0xF8) == 0xF0 ? 4
                                               : 0;
  if (size == 0 || size > s.size()) return 0;
  uint32_t code = size == 1 ? first : first & (0xFFU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  const bool forbidden = code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return code < smallest[size] || surrogate || forbidden ? 0 : size;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t size = character_size(text);
    const char c = text[0];
    const bool control =
        static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
    if (size == 0 || control) {
      out += replacement;
      text.remove_prefix(1);
      continue;
    }
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

std::string first_lines(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = text.rfind('\n', most);
  if (end == std::string::npos) end = most;
  const auto left = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  return fmt::format("{}\n... {} lines are left out\n", text.substr(0, end), left);
}

}  // namespace beamline::reports
