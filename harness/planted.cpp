#include "harness/planted.h"

namespace beamline {

const std::vector<std::string>& plant_names() {
  static const std::vector<std::string> names{"wrong", "crash", "hang"};
  return names;
}

std::optional<std::string> planted_source(const std::string& name) {
  // Writes one byte of the first buffer; an output is left as the check poisoned it.
  if (name == "wrong")
    return R"(define void @planted(ptr %buffers, i64 %core) {
  %first = load ptr, ptr %buffers
  store i8 77, ptr %first
  ret void
}
)";
  if (name == "crash")
    return R"(define void @planted(ptr %buffers, i64 %core) {
  %nowhere = inttoptr i64 16 to ptr
  store volatile i32 1, ptr %nowhere
  ret void
}
)";
  if (name == "hang")
    return R"(define void @planted(ptr %buffers, i64 %core) {
  br label %loop
loop:
  %seen = load volatile ptr, ptr %buffers
  br label %loop
}
)";
  return {};
}

}  // namespace beamline
