// A rendered kernel of a processor, compiled and run once: laid out operands first, then on every
// core id in turn.
#pragma once
#include <cstddef>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "devices/cpu/blob.h"
#include "devices/cpu/clang_compiler.h"
#include "devices/cpu/laid_operands.h"
#include "devices/cpu/llvm_compiler.h"
#include "engine/ir/dtype.h"
#include "engine/render/render_kernel.h"

namespace beamline::test {

/// `buffers` by slot. Empty, or why it could not run.
inline std::string run_rendered(const RenderedKernel& kernel, const Target& target,
                                const std::vector<void*>& buffers) {
  const auto compiled = [&](const RenderedKernel& k) {
    return target.name == "cpu:c"
               ? compile_c(k.source, k.entry)
               : compile_ir(k.source, k.entry, {target.cpu, target.features, false});
  };
  std::vector<LayoutCode> layouts;
  for (const RenderedLayout& l : kernel.layouts) {
    auto made = compiled(l.kernel);
    if (const auto* e = std::get_if<CompileError>(&made)) return "layout: " + e->reason;
    const auto& blob = std::get<CompiledBlob>(made);
    const RenderedArg& a = l.kernel.args.at(0);
    layouts.push_back({static_cast<size_t>(l.slot),
                       static_cast<size_t>(a.elements * dtype_bytes(*dtype_from_name(a.dtype))),
                       blob.code, blob.entry_offset});
  }
  const auto made = compiled(kernel);
  if (const auto* e = std::get_if<CompileError>(&made)) return e->reason + "\n" + kernel.source;
  const auto& blob = std::get<CompiledBlob>(made);
  const auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
  if (const auto* why = std::get_if<std::string>(&mapped)) return *why;
  LaidOperands laid;
  std::vector<void*> pointers;
  try {
    pointers = laid.pointers(layouts, buffers);
  } catch (const std::exception& e) {
    return e.what();
  }
  for (int64_t core = 0; core < kernel.threads; core++)
    std::get<CodeBlob>(mapped).entry()(pointers.data(), core);
  return "";
}

}  // namespace beamline::test
