// What is said in frames, as plain values. `to_frame` writes, `read_*` reads: a frame that does not
// say what it should is nullopt (a garbled answer). A helper's {"kind": "error"} reads as a reply
// of status `launch_error` (runner) or `compile_error` (compiler) with its text.
//
// Statuses are those of a trial: ok rejected compile_error launch_error timeout wrong_result
// crashed mistrusted. Times are ns unless the name says ms.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "devices/cpu/laid_operands.h"
#include "harness/protocol.h"

namespace beamline {

// ---- compiler ----

struct CompileRequest {           // kind "compile": (AST, opts, target) to machine code
  std::string ast, opts, target;  // texts of the engine; target as target_text writes it
  bool reference = false;         // the f64 reference of the kernel
  bool want_source = false, want_assembly = false;
  bool fresh = false;  // what the cache has is not trusted, but replaced
};

struct CompileIrRequest {  // kind "compile_ir": LLVM IR as it is, also how tests plant bad
                           // candidates
  std::string ir, entry, target;
  bool want_assembly = false;
};

struct KernelArg {
  int slot = 0;
  std::string dtype;
  int64_t elements = 0;
  bool written = false;
};

struct CompileReply {
  std::string status, error;
  std::string code;  // payload: the blob
  std::vector<LayoutCode> layouts;
  std::string entry;
  uint64_t entry_offset = 0;
  std::string code_hash, source_hash;  // SHA-256 of blob and source, those of layouts included
  std::string toolchain;
  std::string opts;  // as the engine prints them
  std::vector<KernelArg> args;
  double flops = 0, bytes = 0;
  int threads = 1;
  double lower_ms = 0, compile_ms = 0;  // as they were, of what comes from the cache
  bool cached = false;                  // it was compiled before
  std::string cache_warning;            // why it is not, or will not be, in the cache
  std::string source, assembly;         // where wanted
};

// ---- runner ----

struct Data {  // contents: a file that is mapped, or bytes sent along; neither = absent
  std::string path, bytes;
  bool absent() const { return path.empty() && bytes.empty(); }
};

struct BufferSpec {
  std::string dtype;
  int64_t elements = 0;
  std::string role = "in";  // "in", "out", "inout" (starts as `init`, ends as `expected`)
  Data init, expected;
  std::string expected_dtype;  // as dtype, or "f64" for any float
  double rtol = 0;
  bool zero_ok = false;  // all zeros is the right answer by design, not by a collapsed input
};

struct SetupRequest {  // kind "setup": (re)places all buffers; loaded kernels stay, but are
                       // unchecked
  std::vector<BufferSpec> buffers;  // in slot order
  std::vector<unsigned> pus;        // first setup only; empty = as inherited
  bool huge_pages = true;
};

struct LoadRequest {  // kind "load"
  std::string id, code;
  uint64_t entry_offset = 0;
  int threads = 1;
  std::vector<LayoutCode> layouts = {};
};

struct CheckRequest {  // kind "check": one call on restored inputs and poisoned outputs
  std::string id;
  double mistrust_above = 0;  // a larger max_err within tolerance is `mistrusted`; 0 = off
};

struct TimeRequest {  // kind "time": one session, all ids checked before
  std::vector<std::string> ids;
  int sweeps = 10;
  std::string mode = "warm";  // or "cold"
  double min_batch_ns = 20'000;
  double kill_factor = 0, limit_ns = 0;  // killed when min > kill_factor * limit_ns; 0 = never
  int kill_after = 2;
  double floor_ns = 0;
  uint64_t seed = 0;
  bool unchecked = false;  // allow contestants without a passed check
};

struct RunRequest {  // kind "run": inputs restored, outputs zeroed, one call; no check
  std::string id;
};

struct UnloadRequest {  // kind "unload"
  std::string id;
};

struct Reply {  // to setup, load and unload
  std::string status, error;
  nlohmann::json facts;  // setup: binding, MXCSR, addresses
};

struct CheckReply {
  std::string status, error;
  double max_err = 0;  // in units of |ref| + rms(ref), over all outputs
  int slot = -1;       // of the first bad output, with the index of its first bad element
  int64_t first_bad = -1, bad = 0;
  std::string got, want;
  bool all_zero = false;    // an output of zeros only
  std::string output_hash;  // SHA-256 of all outputs
};

struct TimedContestant {
  std::string id, status, error;
  std::vector<double> ns;  // per call, one a sweep
  std::vector<int> positions;
  int calls_per_sample = 1;
  bool killed = false;
};

struct TimeReply {
  std::string status, error;
  std::vector<TimedContestant> contestants;  // as in the request
  nlohmann::json session;  // timer, overhead, canaries, switches, faults, load, seed, mode
};

struct RunReply {
  std::string status, error;
  std::vector<std::string> outputs;  // bytes of each out or inout buffer, in slot order
};

Frame to_frame(const CompileRequest& m);
Frame to_frame(const CompileIrRequest& m);
Frame to_frame(const CompileReply& m);
Frame to_frame(const SetupRequest& m);
Frame to_frame(const LoadRequest& m);
Frame to_frame(const CheckRequest& m);
Frame to_frame(const TimeRequest& m);
Frame to_frame(const RunRequest& m);
Frame to_frame(const UnloadRequest& m);
Frame to_frame(const Reply& m);
Frame to_frame(const CheckReply& m);
Frame to_frame(const TimeReply& m);
Frame to_frame(const RunReply& m);

/// Message: any type above. Defined for all of them.
template <class Message>
std::optional<Message> read_message(const Frame& frame);

}  // namespace beamline
