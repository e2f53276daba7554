// beamline-compile: (AST, Opts, Target) or LLVM IR in, one blob of machine code out. It alone links
// LLVM and runs no candidate. Whatever is wrong with a request is part of its answer.
#include <chrono>

#include "devices/cpu/clang_compiler.h"
#include "devices/cpu/llvm_compiler.h"
#include "engine/base/sha256.h"
#include "engine/render/render_kernel.h"
#include "harness/messages.h"
#include "harness/serve.h"

namespace beamline {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool is_c(const Target& target) { return target.name == "cpu:c"; }
std::string toolchain_of(const Target& target) {
  return is_c(target) ? clang_toolchain() : llvm_toolchain();
}

CompileReply failed(CompileReply reply, const std::string& status, const std::string& error) {
  reply.status = status;
  reply.error = error;
  return reply;
}

// Fills in what comes of the source: code, hash, times.
CompileReply compile_source(CompileReply reply, const std::string& source, bool is_c,
                            const Target& target, bool want_assembly) {
  reply.source_hash = sha256_hex(source);
  const auto start = Clock::now();
  const IrOptions options{target.cpu, target.features, want_assembly};
  auto result =
      is_c ? compile_c(source, reply.entry, options) : compile_ir(source, reply.entry, options);
  reply.compile_ms = ms_since(start);
  if (const auto* error = std::get_if<CompileError>(&result)) {
    return failed(std::move(reply), "compile_error", error->reason);
  }
  CompiledBlob& blob = std::get<CompiledBlob>(result);
  reply.status = "ok";
  reply.entry_offset = blob.entry_offset;
  reply.code_hash = sha256_hex(blob.code);
  reply.code = std::move(blob.code);
  reply.assembly = std::move(blob.assembly);
  return reply;
}

CompileReply compile_kernel(const CompileRequest& request) {
  CompileReply reply;
  reply.opts = request.opts;
  const auto target = parse_target(request.target);
  if (!target) return failed(reply, "rejected", "unreadable target: " + request.target);
  reply.toolchain = toolchain_of(*target);
  const auto start = Clock::now();
  auto result = render_kernel({request.ast, request.opts, *target, request.reference});
  reply.lower_ms = ms_since(start);
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    return failed(reply, refusal->stage, refusal->reason);
  }
  RenderedKernel& kernel = std::get<RenderedKernel>(result);
  reply.entry = kernel.entry;
  reply.opts = kernel.opts_text;
  reply.flops = kernel.estimates.flops;
  reply.bytes = kernel.estimates.bytes;
  reply.threads = kernel.threads;
  for (const RenderedArg& a : kernel.args)
    reply.args.push_back({a.slot, a.dtype, a.elements, a.written});
  if (request.want_source) reply.source = kernel.source;
  return compile_source(std::move(reply), kernel.source, is_c(*target), *target,
                        request.want_assembly);
}

CompileReply compile_text(const CompileIrRequest& request) {
  CompileReply reply;
  reply.entry = request.entry;
  const auto target = parse_target(request.target);
  if (!target) return failed(reply, "rejected", "unreadable target: " + request.target);
  reply.toolchain = toolchain_of(*target);
  return compile_source(std::move(reply), request.ir, false, *target, request.want_assembly);
}

Frame handle(const Frame& frame) {
  if (const auto m = read_message<CompileRequest>(frame)) return to_frame(compile_kernel(*m));
  if (const auto m = read_message<CompileIrRequest>(frame)) return to_frame(compile_text(*m));
  return error_frame("unknown or malformed request: " + frame.kind());
}

}  // namespace
}  // namespace beamline

int main() {
  beamline::serve_frames({{"toolchain", beamline::llvm_toolchain()}}, beamline::handle);
}
