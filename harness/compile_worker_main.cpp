// beamline-compile: (AST, Opts, Target) or LLVM IR in, one blob of machine code out. It alone links
// LLVM and runs no candidate. Whatever is wrong with a request is part of its answer. Arguments: a
// folder for compiled programs and its limit in bytes (compilers.h); without them nothing is kept.
#include <elf.h>
#include <link.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "devices/cache/program_cache.h"
#include "devices/cpu/clang_compiler.h"
#include "devices/cpu/llvm_compiler.h"
#include "engine/base/check.h"
#include "engine/base/sha256.h"
#include "engine/render/render_kernel.h"
#include "harness/messages.h"
#include "harness/serve.h"
#include "harness/version.h"

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

// The code of a layout, beside that of the kernel that reads it.
CompileReply with_layout(CompileReply reply, const RenderedLayout& layout, const Target& target) {
  const RenderedKernel& kernel = layout.kernel;
  CompileReply made;
  made.entry = kernel.entry;
  made = compile_source(std::move(made), kernel.source, is_c(target), target, false);
  if (made.status != "ok") return failed(std::move(reply), made.status, "layout: " + made.error);
  const RenderedArg& written = kernel.args.at(0);
  const auto bytes = static_cast<size_t>(written.elements) *
                     static_cast<size_t>(dtype_bytes(*dtype_from_name(written.dtype)));
  reply.layouts.push_back(
      {static_cast<size_t>(layout.slot), bytes, std::move(made.code), made.entry_offset});
  reply.code_hash = sha256_hex(reply.code_hash + made.code_hash);
  reply.source_hash = sha256_hex(reply.source_hash + made.source_hash);
  reply.compile_ms += made.compile_ms;
  if (!reply.source.empty())
    reply.source += fmt::format("\n; layout of operand {}\n{}", layout.slot, kernel.source);
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
  reply = compile_source(std::move(reply), kernel.source, is_c(*target), *target,
                         request.want_assembly);
  for (const RenderedLayout& l : kernel.layouts)
    if (reply.status == "ok") reply = with_layout(std::move(reply), l, *target);
  return reply;
}

CompileReply compile_text(const CompileIrRequest& request) {
  CompileReply reply;
  reply.entry = request.entry;
  const auto target = parse_target(request.target);
  if (!target) return failed(reply, "rejected", "unreadable target: " + request.target);
  reply.toolchain = toolchain_of(*target);
  return compile_source(std::move(reply), request.ir, false, *target, request.want_assembly);
}

// Of this executable, as the linker noted it: the engine changes more often than its version.
const std::string& build_id() {
  static const std::string id = [] {
    std::string found;
    const auto look = [](dl_phdr_info* object, size_t, void* out) {
      for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)& part = object->dlpi_phdr[i];
        if (part.p_type != PT_NOTE) continue;
        const auto padded = [](uint32_t n) { return (n + 3) & ~uint32_t{3}; };
        const char* at = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
        const char* const end = at + part.p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
          const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
          const char* const name = at + sizeof *note;
          const char* const bytes = name + padded(note->n_namesz);
          if (note->n_type == NT_GNU_BUILD_ID && std::string_view(name, 3) == "GNU")
            for (uint32_t b = 0; b < note->n_descsz; b++)
              *static_cast<std::string*>(out) +=
                  fmt::format("{:02x}", static_cast<unsigned char>(bytes[b]));
          at = bytes + padded(note->n_descsz);
        }
      }
      return 1;  // the first object is the executable
    };
    dl_iterate_phdr(look, &found);
    CHECK(!found.empty());  // linked with --build-id
    return found;
  }();
  return id;
}

std::unique_ptr<ProgramCache> cache;  // null: none is wanted

std::string program_key(const CompileRequest& request, const Target& target) {
  static const std::string host = native_processor();
  return ProgramKey{.kernel = request.ast,
                    .opts = request.opts,
                    .target = request.target,
                    .flags = request.reference ? "reference" : "",
                    .engine = fmt::format("{} {}", engine_version, build_id()),
                    .toolchain = toolchain_of(target),
                    .host = host}
      .hash();
}

// Only what compiled well is kept; what is wrong may be better next time. Whoever wants to look at
// the code sees it being made.
CompileReply compile_or_recall(const CompileRequest& request) {
  const auto target = parse_target(request.target);
  if (!cache || !target || request.want_source || request.want_assembly)
    return compile_kernel(request);
  const std::string key = program_key(request, *target);
  const ProgramCache::Found found = request.fresh ? ProgramCache::Found{} : cache->find(key);
  if (found.contents) {
    FrameDecoder decoder;
    decoder.feed(*found.contents);
    const auto frame = decoder.next();
    auto reply = std::holds_alternative<Frame>(frame)
                     ? read_message<CompileReply>(std::get<Frame>(frame))
                     : std::nullopt;
    if (reply) {
      reply->cached = true;
      return *std::move(reply);
    }
  }
  CompileReply reply = compile_kernel(request);
  std::string warning = found.contents
                            ? "compiled programs: " + key + " holds none; it is compiled again"
                            : found.warning;
  if (reply.status == "ok") {
    const std::string kept = cache->put(key, encode_frame(to_frame(reply)));
    if (warning.empty()) warning = kept;
  }
  reply.cache_warning = std::move(warning);
  return reply;
}

Frame handle(const Frame& frame) {
  if (const auto m = read_message<CompileRequest>(frame)) return to_frame(compile_or_recall(*m));
  if (const auto m = read_message<CompileIrRequest>(frame)) return to_frame(compile_text(*m));
  return error_frame("unknown or malformed request: " + frame.kind());
}

}  // namespace
}  // namespace beamline

int main(int argc, char** argv) {
  if (argc == 3)
    beamline::cache =
        std::make_unique<beamline::ProgramCache>(argv[1], std::strtoull(argv[2], nullptr, 10));
  beamline::serve_frames({{"toolchain", beamline::llvm_toolchain()}}, beamline::handle);
}
