#include "harness/program_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "workloads/elements.h"
#include "workloads/input_data.h"

namespace beamline {
namespace {

DType dtype_of(const std::string& name) { return dtype_from_name(name).value_or(DType::Void); }

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }

// Expected values in f64 to what a kernel that reads them finds in memory.
std::vector<std::byte> narrowed(std::span<const std::byte> doubles, DType t, int64_t elements) {
  std::vector<std::byte> out(static_cast<size_t>(elements) * static_cast<size_t>(dtype_bytes(t)));
  for (size_t i = 0; i < static_cast<size_t>(elements); ++i) {
    double v = 0;
    std::memcpy(&v, doubles.data() + i * sizeof v, sizeof v);
    workloads::store(out, t, i, v);
  }
  return out;
}

bool all_zero(std::span<const std::byte> bytes, DType t, int64_t elements) {
  for (size_t i = 0; i < static_cast<size_t>(elements); ++i)
    if (workloads::load(bytes, t, i) != 0) return false;
  return true;
}

}  // namespace

ProgramData::ProgramData(const KernelProgram& program, Pool& compilers, ReferenceOptions options)
    : program_(program), compilers_(compilers), options_(std::move(options)) {}

std::variant<std::vector<BufferSpec>, std::string> ProgramData::buffers(int kernel, int input_set) {
  const ProgramKernel& k = program_.kernels[static_cast<size_t>(kernel)];
  if (auto why = need_expected(kernel, input_set)) return *why;
  std::vector<BufferSpec> specs;
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    int id = k.buffers[i];
    const ProgramBuffer& b = program_.buffers[static_cast<size_t>(id)];
    BufferSpec s{
        .dtype = b.dtype, .elements = b.elements, .init = {}, .expected = {}, .expected_dtype = {}};
    if (!k.written[i]) {
      if (auto why = need_contents(id, input_set)) return *why;
      s.init.path = contents_.at({id, input_set}).path();
    } else {
      const Expected& e = expected_.at({id, input_set});
      s.role = "out";
      s.expected.path = e.file.path();
      s.expected_dtype = e.dtype;
      s.rtol = k.rtol;
      // Zeros are right by design where they are right for other inputs, too.
      if (e.all_zero && !need_expected(kernel, 1 - input_set))
        s.zero_ok = expected_.at({id, 1 - input_set}).all_zero;
    }
    specs.push_back(std::move(s));
  }
  return specs;
}

std::variant<ProgramData::Contents, std::string> ProgramData::expected(int buffer, int input_set) {
  const int producer = program_.buffers[static_cast<size_t>(buffer)].producer;
  if (producer < 0) return fmt::format("buffer {} is not written", buffer);
  if (auto why = need_expected(producer, input_set)) return *why;
  const Expected& e = expected_.at({buffer, input_set});
  return Contents{e.dtype, e.file.bytes()};
}

void ProgramData::forget(int kernel) {
  suspects_.insert(kernel);
  for (int b : program_.kernels[static_cast<size_t>(kernel)].buffers)
    for (int set : {0, 1})
      if (program_.buffers[static_cast<size_t>(b)].producer == kernel) {
        expected_.erase({b, set});
        contents_.erase({b, set});
      }
}

std::optional<std::string> ProgramData::need_contents(int buffer, int input_set) {
  if (contents_.contains({buffer, input_set})) return {};
  const ProgramBuffer& b = program_.buffers[static_cast<size_t>(buffer)];
  if (b.input >= 0) {
    const auto& spec = program_.instance.inputs[static_cast<size_t>(b.input)];
    auto data = workloads::input_data(spec, options_.seed + static_cast<uint64_t>(input_set));
    if (const auto* why = std::get_if<std::string>(&data))
      return fmt::format("input {}: {}", spec.name, *why);
    contents_.emplace(Key{buffer, input_set}, MemoryFile(std::get<0>(data)));
    return {};
  }
  if (b.producer < 0) return fmt::format("buffer {} is neither an input nor written", buffer);
  if (auto why = need_expected(b.producer, input_set)) return why;
  const Expected& e = expected_.at({buffer, input_set});
  if (e.dtype == b.dtype) {
    contents_.emplace(Key{buffer, input_set}, MemoryFile(e.file.bytes()));
  } else {
    contents_.emplace(Key{buffer, input_set},
                      MemoryFile(narrowed(e.file.bytes(), dtype_of(b.dtype), b.elements)));
  }
  return {};
}

std::optional<std::string> ProgramData::need_expected(int kernel, int input_set) {
  // Producers first, without recursion: a deep network is a long chain.
  std::vector<int> stack{kernel};
  while (!stack.empty()) {
    int at = stack.back();
    const ProgramKernel& k = program_.kernels[static_cast<size_t>(at)];
    bool known = true;
    std::vector<int> missing;
    for (size_t i = 0; i < k.buffers.size(); ++i) {
      int b = k.buffers[i], producer = program_.buffers[static_cast<size_t>(b)].producer;
      if (k.written[i]) {
        known &= expected_.contains({b, input_set});
      } else if (producer >= 0 && producer != at && !expected_.contains({b, input_set})) {
        missing.push_back(producer);
      }
    }
    if (known || missing.empty()) stack.pop_back();
    if (known) continue;
    if (!missing.empty()) {
      stack.insert(stack.end(), missing.begin(), missing.end());
      continue;
    }
    if (auto why = run_reference(at, input_set)) return why;
  }
  return {};
}

CompileReply ProgramData::compile_reference(int kernel) {
  CompileRequest request{.ast = program_.kernels[static_cast<size_t>(kernel)].ast,
                         .opts = "",
                         .target = options_.target,
                         .reference = true,
                         .fresh = suspects_.contains(kernel)};
  CompileReply reply;
  compilers_.submit(to_frame(request), milliseconds(options_.timeout_s), [&](Outcome outcome) {
    auto read = outcome.ok() ? read_message<CompileReply>(outcome.reply) : std::nullopt;
    if (read) {
      reply = std::move(*read);
    } else {
      reply.status = outcome.ok() ? "crashed" : outcome.status();
      reply.error = outcome.ok() ? "garbled answer" : outcome.error;
    }
  });
  compilers_.run();
  return reply;
}

std::optional<std::string> ProgramData::run_reference(int kernel, int input_set) {
  const ProgramKernel& k = program_.kernels[static_cast<size_t>(kernel)];
  auto failed = [&](const std::string& status, const std::string& error) {
    return fmt::format("reference of {}: {}: {}", k.name, status, error);
  };
  CompileReply code = compile_reference(kernel);
  if (code.status != "ok") return failed(code.status, code.error);
  if (code.args.size() != k.buffers.size())
    return failed("compile_error",
                  fmt::format("{} arguments for {} buffers", code.args.size(), k.buffers.size()));

  SetupRequest setup{.buffers = {}, .pus = options_.pus};
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    BufferSpec s{.dtype = code.args[i].dtype,
                 .elements = code.args[i].elements,
                 .init = {},
                 .expected = {},
                 .expected_dtype = {}};
    if (k.written[i]) {
      s.role = "out";
    } else {
      if (auto why = need_contents(k.buffers[i], input_set)) return why;
      s.init.path = contents_.at({k.buffers[i], input_set}).path();
    }
    setup.buffers.push_back(std::move(s));
  }
  Worker runner({.command = {helper_path("beamline-runner")}});
  auto ask = [&](const Frame& frame) {
    return runner.call(frame, milliseconds(options_.timeout_s));
  };
  for (const Frame& frame :
       {to_frame(setup),
        to_frame(LoadRequest{"reference", code.code, code.entry_offset, code.threads})}) {
    Outcome o = ask(frame);
    if (!o.ok()) return failed(o.status(), o.error);
    auto reply = read_message<Reply>(o.reply);
    if (!reply || reply->status != "ok")
      return failed("launch_error", reply ? reply->error : "garbled answer");
  }
  Outcome o = ask(to_frame(RunRequest{"reference"}));
  if (!o.ok()) return failed(o.status(), o.error);
  auto ran = read_message<RunReply>(o.reply);
  if (!ran || ran->status != "ok")
    return failed(ran ? ran->status : "crashed", ran ? ran->error : "garbled answer");

  size_t next = 0;
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    if (!k.written[i]) continue;
    if (next >= ran->outputs.size()) return failed("crashed", "an output is missing");
    const std::string& output = ran->outputs[next++];
    const std::string& dtype = code.args[i].dtype;
    auto bytes = bytes_of(output);
    bool zero = all_zero(bytes, dtype_of(dtype), code.args[i].elements);
    expected_.insert_or_assign({k.buffers[i], input_set}, Expected{dtype, MemoryFile(bytes), zero});
  }
  return {};
}

}  // namespace beamline
