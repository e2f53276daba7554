#include "harness/execute.h"

#include <fmt/format.h>

#include <cstring>

#include "harness/memory_file.h"
#include "harness/messages.h"

namespace beamline {
namespace {

CompileReply garbled(const Outcome& outcome) {
  CompileReply r;
  r.status = outcome.ok() ? "crashed" : outcome.status();
  r.error = outcome.ok() ? "garbled answer" : outcome.error;
  return r;
}

// Every kernel at once: equal ones with equal opts are compiled once by whoever caches.
std::vector<CompileReply> compile_all(const KernelProgram& program,
                                      const std::vector<std::string>& opts, Pool& compilers,
                                      const ExecuteOptions& options) {
  std::vector<CompileReply> replies(program.kernels.size());
  for (size_t i = 0; i < replies.size(); ++i)
    compilers.submit(to_frame(CompileRequest{
                         .ast = program.kernels[i].ast, .opts = opts[i], .target = options.target}),
                     milliseconds(options.timeout_s), [&replies, i](Outcome outcome) {
                       auto read =
                           outcome.ok() ? read_message<CompileReply>(outcome.reply) : std::nullopt;
                       replies[i] = read ? std::move(*read) : garbled(outcome);
                     });
  compilers.run();
  return replies;
}

class Execute {
 public:
  Execute(const KernelProgram& program, const ExecuteOptions& options, Execution& out)
      : program_(program),
        options_(options),
        out_(out),
        arena_(static_cast<size_t>(program.arena_bytes)),
        runner_({.command = {helper_path("beamline-runner")}}) {}

  bool run(int index, const CompileReply& code) {
    const ProgramKernel& k = program_.kernels[static_cast<size_t>(index)];
    SetupRequest setup{.buffers = {}, .pus = options_.pus};
    std::vector<MemoryFile> files;
    files.reserve(k.buffers.size());
    for (size_t i = 0; i < k.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[static_cast<size_t>(k.buffers[i])];
      BufferSpec s{.dtype = b.dtype,
                   .elements = b.elements,
                   .role = k.written[i] ? "out" : "in",
                   .init = {},
                   .expected = {},
                   .expected_dtype = {}};
      if (!k.written[i]) {
        files.emplace_back(contents(k.buffers[i]));
        s.init.path = files.back().path();
      }
      setup.buffers.push_back(std::move(s));
    }
    const std::string id = fmt::format("k{}", index);
    if (!accept(index, to_frame(setup)) ||
        !accept(index, to_frame(LoadRequest{id, code.code, code.entry_offset, code.threads,
                                            code.layouts})))
      return false;
    Outcome o = runner_.call(to_frame(RunRequest{id}), milliseconds(options_.timeout_s));
    auto ran = o.ok() ? read_message<RunReply>(o.reply) : std::nullopt;
    if (!ran)
      return failed(index, o.ok() ? "crashed" : o.status(), o.ok() ? "garbled answer" : o.error);
    if (ran->status != "ok") return failed(index, ran->status, ran->error);
    size_t next = 0;
    for (size_t i = 0; i < k.buffers.size(); ++i) {
      if (!k.written[i]) continue;
      if (next >= ran->outputs.size()) return failed(index, "crashed", "an output is missing");
      const std::string& bytes = ran->outputs[next++];
      if (program_.buffers[static_cast<size_t>(k.buffers[i])].offset < 0)
        out_.buffers[static_cast<size_t>(k.buffers[i])].resize(bytes.size());
      const std::span<std::byte> buffer = contents(k.buffers[i]);
      if (bytes.size() != buffer.size()) return failed(index, "crashed", "an output is cut off");
      if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
    }
    return true;
  }
  bool failed(int kernel, const std::string& status, const std::string& error) {
    out_.failure = {kernel, status, error};
    return false;
  }

 private:
  // Where a buffer's bytes are: temporaries share the arena.
  std::span<std::byte> contents(int buffer) {
    const ProgramBuffer& b = program_.buffers[static_cast<size_t>(buffer)];
    if (b.offset < 0) return out_.buffers[static_cast<size_t>(buffer)];
    const auto size = static_cast<size_t>(b.elements * dtype_bytes(*dtype_from_name(b.dtype)));
    return std::span(arena_).subspan(static_cast<size_t>(b.offset), size);
  }
  bool accept(int kernel, const Frame& frame) {
    Outcome o = runner_.call(frame, milliseconds(options_.timeout_s));
    auto reply = o.ok() ? read_message<Reply>(o.reply) : std::nullopt;
    if (!reply)
      return failed(kernel, o.ok() ? "crashed" : o.status(), o.ok() ? "garbled answer" : o.error);
    return reply->status == "ok" || failed(kernel, reply->status, reply->error);
  }

  const KernelProgram& program_;
  const ExecuteOptions& options_;
  Execution& out_;
  std::vector<std::byte> arena_;
  Worker runner_;
};

}  // namespace

Execution execute(const KernelProgram& program, const std::vector<std::string>& opts,
                  const std::vector<std::vector<std::byte>>& inputs, Pool& compilers,
                  const ExecuteOptions& options) {
  Execution out;
  out.buffers.resize(program.buffers.size());
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].input >= 0)
      out.buffers[i] = inputs[static_cast<size_t>(program.buffers[i].input)];
  const std::vector<CompileReply> code = compile_all(program, opts, compilers, options);
  Execute run(program, options, out);
  for (size_t i = 0; i < code.size(); ++i) {
    out.opts.push_back(code[i].status == "ok" ? code[i].opts : opts[i]);
    const int kernel = static_cast<int>(i);
    if (!out.failure && code[i].status != "ok") run.failed(kernel, code[i].status, code[i].error);
  }
  for (size_t i = 0; i < code.size() && !out.failure; ++i)
    if (!run.run(static_cast<int>(i), code[i])) break;
  return out;
}

}  // namespace beamline
