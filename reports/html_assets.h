// The page's style sheet and script.
#pragma once

namespace beamline::reports {

extern const char* const html_style;
extern const char* const html_script;

}  // namespace beamline::reports
