// A trace as one self-contained HTML page, in which one steps through passes and rewrites and sees
// the graph change. It loads nothing.
#pragma once
#include <string>

#include "engine/rewrite/trace.h"

namespace beamline::cli {

struct TracePageFacts {
  std::string name, key, opts, device;
};
std::string trace_page(const RecordedTrace& trace, const TracePageFacts& facts);

}  // namespace beamline::cli
