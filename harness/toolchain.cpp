#include "harness/toolchain.h"

#include "harness/messages.h"
#include "harness/process_pool.h"

namespace beamline {

Toolchain ask_toolchain(const Target& target) {
  Worker compiler({.command = {helper_path("beamline-compile")}});
  // A broken request is enough: every answer says whose it is.
  const Outcome o = compiler.call(
      to_frame(CompileIrRequest{.ir = "", .entry = "none", .target = target_text(target)}),
      std::chrono::seconds(60));
  const auto reply = o.ok() ? read_message<CompileReply>(o.reply) : std::nullopt;
  if (reply && !reply->toolchain.empty()) return {reply->toolchain, {}};
  if (reply && target.name == "cpu:c")
    return {{}, "device cpu:c needs clang, which is not on the PATH"};
  return {{},
          "beamline-compile does not work: " +
              (o.ok() ? reply ? reply->error : std::string("garbled answer") : o.error)};
}

}  // namespace beamline
