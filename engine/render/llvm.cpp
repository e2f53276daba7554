#include "engine/render/llvm.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/render/llvm_body.h"

namespace beamline {
namespace {

// The whole module. Stores past the caches need whole aligned vectors, and lines that are written
// by nothing else; where not every store is one, STREAM changes nothing. Otherwise there are two
// bodies, and the entry looks at the addresses of what is written.
std::string whole_module(const LinearKernel& kernel, const std::string& entry, bool streaming) {
  std::string params, call, loads, written = "0";
  const bool scales = has_instruction(kernel.instructions, "avx512vl");
  LlvmBody body(kernel, streaming, scales);
  for (UOp u : kernel.list) body.add(u);
  if (streaming && body.ordinary_stores()) return whole_module(kernel, entry, false);
  for (const LinearArg& a : kernel.args) {
    const std::string sep = params.empty() ? "" : ", ";
    params += fmt::format("{}ptr noalias {}%p{}", sep, a.written ? "" : "readonly ", a.slot);
    call += fmt::format("{}ptr %p{}", sep, a.slot);
    loads += fmt::format(
        "  %q{0} = getelementptr ptr, ptr %buffers, i64 {0}\n  %p{0} = load ptr, ptr %q{0}\n",
        a.slot);
  }
  const std::string sep = params.empty() ? "" : ", ";
  params += sep + "i64 %core_id", call += sep + "i64 %core_id";
  std::string text = fmt::format("; {}\n{}", kernel.name, body.function("body", params));
  std::string calls = fmt::format("  call void @body({})\n", call);
  if (streaming) {
    LlvmBody plain(kernel, false, scales);
    for (UOp u : kernel.list) plain.emit(u);
    text += plain.function("plain", params);
    body.declared().merge(plain.declared());
    for (const LinearArg& a : kernel.args)
      if (a.written) {
        loads += fmt::format("  %b{0} = ptrtoint ptr %p{0} to i64\n  %w{0} = or i64 %b{0}, {1}\n",
                             a.slot, written);
        written = fmt::format("%w{}", a.slot);
      }
    // Others see what was stored past the caches only after a fence.
    calls = fmt::format(
        "  %low = and i64 {0}, {1}\n  %aligned = icmp eq i64 %low, 0\n"
        "  br i1 %aligned, label %stream, label %store\nstream:\n  call void @body({2})\n"
        "  fence seq_cst\n  ret void\nstore:\n  call void @plain({2})\n",
        written, LlvmBody::stream_align - 1, call);
  }
  text +=
      fmt::format("define void @{}(ptr %buffers, i64 %core_id) nounwind {{\n{}{}  ret void\n}}\n",
                  entry, loads, calls);
  for (const std::string& d : body.declared()) text += d;
  return text + (streaming ? "!0 = !{i32 1}\n" : "");
}

}  // namespace

std::string render_llvm(const LinearKernel& kernel, const std::string& entry, std::string& error) {
  try {
    const bool streaming =
        std::ranges::find(kernel.opts, OptKind::STREAM, &Opt::kind) != kernel.opts.end();
    return whole_module(kernel, entry, streaming);
  } catch (const llvm_words::Unsupported& u) {
    error = fmt::format("LLVM renderer: no code for {}", u.what);
    return "";
  }
}

}  // namespace beamline
