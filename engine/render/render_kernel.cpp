#include "engine/render/render_kernel.h"

#include <fmt/format.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/ir/provenance.h"
#include "engine/render/c_style.h"
#include "engine/render/llvm.h"

namespace beamline {
namespace {

RenderedKernel rendered(const LinearKernel& k, const CDialect* dialect, std::string& error) {
  RenderedKernel out;
  out.entry = "beamline_kernel";
  out.source = dialect ? render_c(k, *dialect, out.entry, error) : render_llvm(k, out.entry, error);
  for (const LinearArg& a : k.args)
    out.args.push_back(
        {static_cast<int>(a.slot), std::string(dtype_name(a.dtype)), a.elements, a.written});
  for (const LinearLayout& l : k.layouts)
    out.layouts.push_back({static_cast<int>(l.slot), rendered(l.kernel, dialect, error)});
  out.estimates = k.estimates;
  out.threads = static_cast<int>(k.grid.threads);
  out.global = k.grid.global, out.local = k.grid.local;
  out.opts_text = opts_text(k.opts);
  return out;
}

}  // namespace

std::variant<RenderedKernel, Refusal> render_kernel(const RenderRequest& request) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto parsed = parse_uops(request.ast_text);
  if (const auto* e = std::get_if<ParseError>(&parsed))
    return Refusal{"compile_error", fmt::format("kernel text, line {} column {}: {}", e->line,
                                                e->column, e->message)};
  const UOp ast = std::get<UOp>(parsed);
  if (const auto error = verify(ast, Stage::Kernel))
    return Refusal{"compile_error", "kernel text: " + *error};
  Provenance provenance;
  const Provenance::Scope tracing(request.origins.empty() ? nullptr : &provenance);
  if (!request.origins.empty()) provenance.restore(ast, request.origins);
  const auto opts = parse_opts(request.opts_text);
  if (const auto* e = std::get_if<OptError>(&opts))
    return Refusal{"rejected", fmt::format("opts, character {}: {}", e->position, e->message)};
  const std::string_view own = default_renderer(request.target);
  const std::string_view renderer = request.renderer.empty() ? own : request.renderer;
  if (renderer != "llvm" && !c_dialect(renderer))
    return Refusal{"compile_error", fmt::format("there is no renderer '{}'", renderer)};
  if ((renderer == "llvm" || renderer == "c") == request.target.has_local)
    return Refusal{"compile_error", fmt::format("renderer '{}' is not for kernels of {}", renderer,
                                                request.target.name)};
  LowerOptions options;
  options.reference = request.reference;
  const auto lowered = lower(ast, std::get<Opts>(opts), request.target, options);
  if (const auto* r = std::get_if<OptRefusal>(&lowered))
    return Refusal{"rejected", fmt::format("opt {}: {}", r->index + 1, r->reason)};
  std::string error;
  RenderedKernel out = rendered(std::get<LinearKernel>(lowered), c_dialect(renderer), error);
  if (!error.empty()) return Refusal{"compile_error", error};
  return out;
}

}  // namespace beamline
