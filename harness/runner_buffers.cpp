#include "harness/runner_buffers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "devices/compare.h"
#include "engine/base/sha256.h"

namespace beamline {
namespace {

DType read_dtype(const std::string& name) {
  const auto t = dtype_from_name(name);
  if (!t || dtype_bytes(*t) == 0 || is_weak(*t)) throw std::runtime_error("unknown dtype " + name);
  return *t;
}

size_t byte_size(int64_t elements, DType t) {
  if (elements < 0 || elements > (int64_t{1} << 48))
    throw std::runtime_error("impossible element count");
  return static_cast<size_t>(elements) * static_cast<size_t>(dtype_bytes(t));
}

}  // namespace

Contents::Contents(const Data& data, size_t bytes, const std::string& what)
    : owned_(data.bytes), bytes_(bytes) {
  if (data.path.empty()) {
    if (owned_.size() != bytes) {
      throw std::runtime_error(
          fmt::format("{}: {} bytes instead of {}", what, owned_.size(), bytes));
    }
    data_ = owned_.data();
    return;
  }
  const int fd = open(data.path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat s = {};
  if (fd < 0 || fstat(fd, &s) != 0 || static_cast<size_t>(s.st_size) != bytes) {
    const std::string why =
        fd < 0 ? std::strerror(errno) : fmt::format("{} bytes instead of {}", s.st_size, bytes);
    if (fd >= 0) close(fd);
    throw std::runtime_error(fmt::format("{}: {}: {}", what, data.path, why));
  }
  if (bytes > 0) mapped_ = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  close(fd);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    throw std::runtime_error(fmt::format("{}: cannot map {}", what, data.path));
  }
  data_ = mapped_;
}

Contents::~Contents() {
  if (mapped_ != nullptr) munmap(mapped_, bytes_);
}

RunnerBuffers::RunnerBuffers(const SetupRequest& request) {
  for (size_t i = 0; i < request.buffers.size(); i++) {
    const BufferSpec& b = request.buffers[i];
    const std::string what = fmt::format("buffer {}", i);
    if (b.role != "in" && b.role != "out" && b.role != "inout") {
      throw std::runtime_error(what + ": unknown role " + b.role);
    }
    const DType dtype = read_dtype(b.dtype);
    const DType expected = b.expected_dtype.empty() ? dtype : read_dtype(b.expected_dtype);
    const size_t bytes = byte_size(b.elements, dtype);
    Slot slot = {b.role,  dtype,  expected,  b.elements,
                 b.rtol,  0,      b.zero_ok, GuardedBuffer(bytes, request.huge_pages),
                 nullptr, nullptr};
    if (b.role != "out") {
      slot.init = std::make_unique<Contents>(b.init, bytes, what);
      has_inputs_ = true;
    }
    if (slot.written() && !(b.expected.absent() && b.elements > 0)) {
      if (!comparable(dtype, expected)) {
        throw std::runtime_error(
            fmt::format("{}: {} cannot be compared with {}", what, b.dtype, b.expected_dtype));
      }
      slot.expected = std::make_unique<Contents>(b.expected, byte_size(b.elements, expected),
                                                 what + " expected");
      slot.rms = rms_of(slot.expected->data(), expected, b.elements);
    }
    pointers_.push_back(slot.memory.data());
    slots_.push_back(std::move(slot));
  }
  reset(/*poison_outputs=*/false);
}

Spans RunnerBuffers::spans() const {
  Spans out;
  for (const Slot& s : slots_) out.emplace_back(s.memory.data(), s.memory.bytes());
  return out;
}

void RunnerBuffers::reset(bool poison_outputs) {
  turn_++;
  for (Slot& s : slots_) {
    if (s.init != nullptr)
      std::memcpy(s.memory.data(), s.init->data(), s.memory.bytes());
    else if (poison_outputs)
      poison(s.memory.data(), s.dtype, s.elements, turn_);
    else
      std::memset(s.memory.data(), 0, s.memory.bytes());
    s.memory.restore_canary();
  }
}

std::string RunnerBuffers::trespass() const {
  for (size_t i = 0; i < slots_.size(); i++) {
    const Slot& s = slots_[i];
    if (const auto at = s.memory.damage()) {
      return fmt::format("wrote outside of buffer {} ({} bytes) at byte {}", i, s.memory.bytes(),
                         *at);
    }
    if (!s.written() && std::memcmp(s.memory.data(), s.init->data(), s.memory.bytes()) != 0) {
      return fmt::format("wrote to input buffer {}", i);
    }
  }
  return {};
}

CheckReply RunnerBuffers::check(double mistrust_above) const {
  CheckReply reply;
  reply.status = "ok";
  std::string outputs;
  bool collapsed = false;
  for (size_t i = 0; i < slots_.size(); i++) {
    const Slot& s = slots_[i];
    if (!s.written()) continue;
    outputs.append(static_cast<const char*>(s.memory.data()), s.memory.bytes());
    if (s.expected == nullptr)
      throw std::runtime_error(fmt::format("nothing is expected of buffer {}", i));
    const Comparison c = compare_output(s.memory.data(), s.dtype, s.expected->data(),
                                        s.expected_dtype, s.elements, s.rtol, s.rms, turn_);
    reply.max_err = std::max(reply.max_err, c.max_err);
    const bool zeros = c.all_zero && s.elements > 0;
    reply.all_zero |= zeros;
    // Zeros that are right prove nothing where inputs could have made them something else.
    collapsed |= zeros && has_inputs_ && is_float(s.dtype) && s.elements > 1 && !s.zero_ok;
    if (c.ok || reply.slot >= 0) continue;
    reply.status = "wrong_result";
    reply.slot = static_cast<int>(i);
    reply.first_bad = c.first_bad;
    reply.bad = c.bad;
    reply.got = c.got;
    reply.want = c.want;
    reply.error = fmt::format(
        "buffer {}: {} of {} elements differ{}, first [{}]: got {}, want {}", i, c.bad, s.elements,
        c.unwritten > 0 ? fmt::format(" ({} never written)", c.unwritten) : "", c.first_bad, c.got,
        c.want);
  }
  if (const std::string where = trespass(); !where.empty()) {
    reply.error = reply.status == "ok" ? where : reply.error + "; " + where;
    reply.status = "wrong_result";
  }
  if (reply.status == "ok" && collapsed) {
    reply.status = "mistrusted";
    reply.error = "all outputs are zero";
  } else if (reply.status == "ok" && mistrust_above > 0 && reply.max_err > mistrust_above) {
    reply.status = "mistrusted";
    reply.error = fmt::format("error {:.3g} is far above that of the plain kernel ({:.3g} allowed)",
                              reply.max_err, mistrust_above);
  }
  reply.output_hash = sha256_hex(outputs);
  return reply;
}

std::vector<std::string> RunnerBuffers::outputs() const {
  std::vector<std::string> out;
  for (const Slot& s : slots_) {
    if (s.written()) out.emplace_back(static_cast<const char*>(s.memory.data()), s.memory.bytes());
  }
  return out;
}

nlohmann::json RunnerBuffers::facts() const {
  nlohmann::json out = nlohmann::json::array();
  for (const Slot& s : slots_) {
    const auto address = reinterpret_cast<uintptr_t>(s.memory.data());
    out.push_back({{"bytes", s.memory.bytes()},
                   {"address_mod_4096", address % 4096},
                   {"address_mod_2m", address % (uintptr_t{2} << 20)},
                   {"rms", s.rms}});
  }
  return out;
}

}  // namespace beamline
