// The helper's side: a loop that answers frames on one file descriptor until its parent is gone.
#pragma once
#include <functional>
#include <string>

#include "harness/protocol.h"

namespace beamline {

/// The descriptor on which a helper talks; its stdin, stdout and stderr are not the protocol's.
inline constexpr int helper_fd = 3;

using FrameHandler = std::function<Frame(const Frame&)>;

/// Sends `hello` ("kind" is set here), then answers each frame with the handler's. An exception of
/// the handler is answered with {"kind": "error", "error": text}. When the parent closes its end,
/// the whole process group ends at once, also out of a handler that never returns. Does not return
/// otherwise either: garbage ends the process with exit code 2.
[[noreturn]] void serve_frames(nlohmann::json hello, const FrameHandler& handler);

/// {"kind": "error", "error": reason}.
Frame error_frame(const std::string& reason);

}  // namespace beamline
