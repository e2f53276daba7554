// ^C and SIGTERM ask; a second one kills. A command that can stop in between polls interrupted().
#pragma once

namespace beamline::cli {

/// From here on the first SIGINT or SIGTERM only sets the flag.
void catch_interrupts();
bool interrupted();

}  // namespace beamline::cli
