#include "harness/commands/assembly.h"

#include <fmt/format.h>

#include <stdexcept>

#include "harness/cli/errors.h"
#include "harness/messages.h"
#include "harness/process_pool.h"

namespace beamline::cli {

std::string assembly_of(const std::string& ast, const std::string& opts,
                        const std::string& target) {
  Worker compiler({.command = {helper_path("beamline-compile")}});
  CompileRequest request{.ast = ast, .opts = opts, .target = target, .want_assembly = true};
  Outcome o = compiler.call(to_frame(request), std::chrono::minutes(5));
  auto reply = o.ok() ? read_message<CompileReply>(o.reply) : std::nullopt;
  if (!reply) throw std::runtime_error(fmt::format("the compiler gave no answer: {}", o.error));
  if (reply->status != "ok") throw UsageError(fmt::format("{}: {}", reply->status, reply->error));
  return reply->assembly;
}

}  // namespace beamline::cli
