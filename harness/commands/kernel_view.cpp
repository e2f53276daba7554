#include "harness/commands/kernel_view.h"

#include <chrono>

#include "engine/base/sha256.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/opt/heuristic.h"
#include "engine/render/render_kernel.h"
#include "harness/messages.h"
#include "harness/process_pool.h"

namespace beamline::cli {
namespace {

constexpr std::chrono::minutes compile_limit{2};

// Axes and the heuristic's opts; false where the stored texts mean nothing to this engine.
bool read_schedule(const ViewRequest& request, const Target& target, KernelView& view) {
  Arena arena;
  Arena::Scope scope(arena);
  auto ast = parse_uops(request.ast);
  if (!std::holds_alternative<UOp>(ast)) {
    view.code.note = "This engine cannot read the stored AST.";
    return false;
  }
  view.heuristic_opts = opts_text(heuristic(std::get<UOp>(ast), target));
  view.has_heuristic = true;
  auto opts = parse_opts(request.opts);
  if (!std::holds_alternative<Opts>(opts)) {
    view.code.note = "This engine cannot read the stored opts.";
    return false;
  }
  auto schedule = apply_opts(std::get<UOp>(ast), std::get<Opts>(opts), target);
  if (const auto* refusal = std::get_if<OptRefusal>(&schedule)) {
    view.code.note = "This engine refuses the stored opts: " + refusal->reason;
    return false;
  }
  for (UOp r : std::get<KernelSchedule>(schedule).axes())
    view.axes.push_back({KernelSchedule::size(r), std::string(axis_type_name(r.axis_type()))});
  return true;
}

std::string relation(const ViewRequest& request, const std::string& source_hash,
                     const std::string& code_hash) {
  const std::string made = "Made anew from the stored AST and opts";
  if (!request.code_hash.empty() && request.code_hash == code_hash)
    return made + ": the same machine code as was measured (by its hash).";
  if (!request.source_hash.empty() && request.source_hash == source_hash)
    return made + ": the same source as was measured (by its hash).";
  if (request.source_hash.empty() || source_hash.empty()) return made + ".";
  return made + ". It differs from what was measured: the engine has changed since.";
}

void compiled(const ViewRequest& request, const Outcome& outcome, reports::CodeView& code) {
  auto reply = outcome.ok() ? read_message<CompileReply>(outcome.reply) : std::nullopt;
  if (!reply || reply->status != "ok") {
    code.note = "It cannot be compiled: " + (reply ? reply->error : outcome.error);
    return;
  }
  code.ir = std::move(reply->source);
  code.assembly = std::move(reply->assembly);
  code.note = relation(request, reply->source_hash, reply->code_hash);
}

void rendered(const ViewRequest& request, const Target& target, reports::CodeView& code) {
  auto result =
      render_kernel({.ast_text = request.ast, .opts_text = request.opts, .target = target});
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    code.note = "It cannot be rendered: " + refusal->reason;
    return;
  }
  code.ir = std::move(std::get<RenderedKernel>(result).source);
  code.note =
      relation(request, sha256_hex(code.ir), "") + " Machine code is shown on its device only.";
}

}  // namespace

std::vector<KernelView> view_kernels(const std::vector<ViewRequest>& requests, const Target& target,
                                     const ViewOptions& options) {
  std::vector<KernelView> views(requests.size());
  std::unique_ptr<Pool> pool;
  if (options.source && options.compilers > 0 && !requests.empty())
    pool = std::make_unique<Pool>(WorkerOptions{.command = {helper_path("beamline-compile")}},
                                  options.compilers);
  for (size_t i = 0; i < requests.size(); ++i) {
    const ViewRequest& r = requests[i];
    if (!read_schedule(r, target, views[i]) || !options.source) continue;
    if (!pool) {
      rendered(r, target, views[i].code);
      continue;
    }
    CompileRequest request{.ast = r.ast,
                           .opts = r.opts,
                           .target = target_text(target),
                           .want_source = true,
                           .want_assembly = true};
    pool->submit(to_frame(request), compile_limit,
                 [&r, &view = views[i]](Outcome o) { compiled(r, o, view.code); });
  }
  if (pool) pool->run();
  return views;
}

}  // namespace beamline::cli
