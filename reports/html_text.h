// Text inside HTML, SVG and XML. Nothing that came from a user reaches a document except through
// escaped().
#pragma once
#include <string>
#include <string_view>

namespace beamline::reports {

/// For element content and quoted attributes: & < > " ' become entities; control characters that
/// XML forbids and bytes that are no UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

/// At most `most` bytes in whole lines, with a line that says how many are left out.
std::string first_lines(const std::string& text, size_t most);

}  // namespace beamline::reports
