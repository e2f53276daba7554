// The shipped workload files: every instance builds and falls into kernels that hold together.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "engine/base/sha256.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"
#include "engine/rules/verify.h"
#include "test_paths.h"
#include "workloads/builder.h"

namespace beamline::workloads {
namespace {

std::vector<Instance> instances_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const LoadedFile f = parse_workload_file(path.string(), text.str());
  std::vector<WorkloadError> errors = f.errors;
  std::vector<Instance> out;
  for (const WorkloadDef& def : f.workloads)
    for (Instance& in : expand(def, {}, errors)) out.push_back(std::move(in));
  for (const WorkloadError& e : errors) ADD_FAILURE() << to_string(e);
  return out;
}

TEST(Shipped, EveryInstanceFallsIntoSoundKernels) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(BEAMLINE_SOURCE_DIR "/workloads"))
    if (entry.path().extension() == ".toml") files.insert(entry.path().filename().string());
  for (const char* file : {"quickstart.toml", "gemm.toml", "conv.toml", "reduce.toml",
                           "elementwise.toml", "attention.toml", "resnet50.toml", "bert_base.toml",
                           "llama_7b_decode.toml", "deepbench.toml"})
    EXPECT_TRUE(files.contains(file)) << file;
  for (const std::string& file : files) {
    for (const Instance& in : instances_of(BEAMLINE_SOURCE_DIR "/workloads/" + file)) {
      SCOPED_TRACE(file + ": " + in.name);
      Arena arena;
      const Arena::Scope scope(arena);
      const auto built = build(in);
      if (const auto* errors = std::get_if<std::vector<WorkloadError>>(&built)) {
        ADD_FAILURE() << to_string(errors->at(0));
        continue;
      }
      const KernelGraph g = make_kernels(std::get<TensorGraph>(built).sink);
      EXPECT_FALSE(g.kernels.empty());
      for (const KernelAst& k : g.kernels)  // level 2: every access is within its buffer
        if (const auto error = verify(k.ast, Stage::Kernel, 2)) ADD_FAILURE() << *error;
    }
  }
}

// What the heuristic chooses is legal, lowers soundly, and fits a group, for every kernel on every
// emulated GPU.
TEST(Shipped, EveryKernelLowersOnEveryEmulatedGpu) {
  std::set<std::string> seen;
  size_t products = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BEAMLINE_SOURCE_DIR "/workloads")) {
    if (entry.path().extension() != ".toml") continue;
    for (const Instance& in : instances_of(entry.path())) {
      Arena arena;
      const Arena::Scope scope(arena);
      const auto built = build(in);
      if (built.index() != 0) continue;
      for (const KernelAst& k : make_kernels(std::get<0>(built).sink).kernels) {
        if (!seen.insert(k.key).second) continue;
        for (std::string_view name : emulated_targets()) {
          Target target = *emulated_target(name);
          target.allow_tf32 = true;
          const Opts opts = heuristic(k.ast, target);
          const std::string what = in.name + " " + k.name + " on " + std::string(name) +
                                   " with opts '" + opts_text(opts) + "'";
          LowerOptions options;
          options.check = 0;
          bool scheduled = false;
          options.after_pass = [&](std::string_view pass, UOp graph, double) {
            const Stage stage = std::exchange(scheduled, true) ? Stage::Lowered : Stage::Scheduled;
            if (const auto error = verify(graph, stage, 1))
              ADD_FAILURE() << what << ": after " << pass << ": " << *error;
          };
          const auto lowered = lower(k.ast, opts, target, options);
          if (const auto* r = std::get_if<OptRefusal>(&lowered)) {
            ADD_FAILURE() << what << ": " << r->reason;
            continue;
          }
          const auto& kernel = std::get<LinearKernel>(lowered);
          if (const auto error = verify_linear(kernel.list)) ADD_FAILURE() << what << *error;
          int64_t threads = 1;
          for (int64_t n : kernel.grid.local) threads *= n;
          EXPECT_LE(threads, target.local_max) << what;
          products += std::ranges::any_of(kernel.list, [](UOp u) { return u.op() == Op::WMMA; });
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(products, 0U);
  std::printf("%zu kernels; %zu times tensor cores are used\n", seen.size(), products);
}

// What a golden list says of every kernel of the shipped files, one call a kernel of a file.
using Describe = std::function<std::string(const std::string& file, const KernelAst& k)>;
std::string list_of_kernels(const Describe& describe) {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(BEAMLINE_SOURCE_DIR "/workloads"))
    if (entry.path().extension() == ".toml") files.insert(entry.path());
  std::string now;
  for (const auto& file : files) {
    std::set<std::string> seen;
    for (const Instance& in : instances_of(file)) {
      Arena arena;
      const Arena::Scope scope(arena);
      const auto built = build(in);
      if (const auto* errors = std::get_if<1>(&built)) {
        ADD_FAILURE() << to_string(errors->at(0));
        continue;
      }
      for (const KernelAst& k : make_kernels(std::get<0>(built).sink).kernels)
        if (seen.insert(k.key).second) now += describe(file.filename().string(), k);
    }
  }
  return now;
}

// Compares a list with tests/golden/NAME, whose lines that differ are named; UPDATE_GOLDEN=1 writes
// the file anew.
void expect_golden(const std::string& name, const std::string& now) {
  const std::filesystem::path path = BEAMLINE_SOURCE_DIR "/tests/golden/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << now;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  const auto lines = [](const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  };
  const std::vector<std::string> want = lines(golden.str()), have = lines(now);
  const std::set<std::string> listed(want.begin(), want.end()), made(have.begin(), have.end());
  std::string missing, added;
  size_t changed = 0;
  constexpr size_t most = 40;
  for (const std::string& line : have)
    if (!listed.contains(line) && ++changed <= most) added += "  now    " + line + "\n";
  for (const std::string& line : want)
    if (!made.contains(line) && changed <= most) missing += "  listed " + line + "\n";
  EXPECT_TRUE(want == have) << changed << " lines of " << name
                            << " changed (UPDATE_GOLDEN=1 accepts):\n"
                            << missing << added;
}

// One line a kernel of a file: "FILE KEY NAME". A change of a key is a change of the engine: it
// raises engine_version (harness/version.h).
TEST(Shipped, KernelKeysAreThoseOfTheList) {
  expect_golden("keys.txt", list_of_kernels([](const std::string& file, const KernelAst& k) {
                  return file + " " + k.key + " " + k.name + "\n";
                }));
}

// What the kernels become with the heuristic's opts, a column a target: the first digits of the
// key, and of the hashes of the sources. A change that is meant to keep the code keeps this file;
// one that is not shows whom it concerns.
TEST(Shipped, SourcesAreThoseOfTheList) {
  Target wide;
  wide.vector_bytes = 64, wide.vector_registers = 32;
  Target c = wide;
  c.name = "cpu:c";
  const std::pair<std::string, Target> targets[] = {
      {"cpu-64", wide},
      {"cpu-32", Target()},
      {"c-64", c},
      {"sm_80", *emulated_target("emulator:sm_80")},
      {"metal", *emulated_target("emulator:metal")},
      {"rdna3", *emulated_target("emulator:rdna3")},
  };
  std::string head = "# name key";
  for (const auto& [name, target] : targets) head += " " + name;
  std::set<std::string> seen;
  const auto line = [&](const std::string&, const KernelAst& k) -> std::string {
    if (!seen.insert(k.key).second) return "";
    std::string hashes;
    for (const auto& [name, t] : targets) {
      const auto out = render_kernel({print_uops(k.ast), opts_text(heuristic(k.ast, t)), t, false});
      const auto* kernel = std::get_if<RenderedKernel>(&out);
      hashes += " " + (kernel ? sha256_hex(kernel->source).substr(0, 8) : "refused");
    }
    return k.name + " " + k.key.substr(0, 8) + hashes + "\n";
  };
  expect_golden("sources.txt", head + "\n" + list_of_kernels(line));
}

TEST(Shipped, NamesDoNotMatterToKeysButTypesAndSizesDo) {
  const auto keys = [](const std::string& inputs, const std::string& compute) {
    const LoadedFile f =
        parse_workload_file("w.toml", "[[workload]]\nname = \"w\"\ninputs = { " + inputs +
                                          " }\ncompute = \"" + compute + "\"\n");
    std::vector<WorkloadError> errors;
    Arena arena;
    const Arena::Scope scope(arena);
    const auto built = build(expand(f.workloads.at(0), {}, errors).at(0));
    std::vector<std::string> out;
    for (const KernelAst& k : make_kernels(std::get<TensorGraph>(built).sink).kernels)
      out.push_back(k.key);
    return out;
  };
  const auto base = keys("a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "return a @ b");
  EXPECT_EQ(base, keys("x = \"f32[8, 16]\", y = \"f32[16, 4]\"", "z = matmul(x, y)\\nreturn z"));
  // Nor does the order in which inputs and operands are named.
  EXPECT_EQ(base, keys("b = \"f32[16, 4]\", a = \"f32[8, 16]\"", "return a @ b"));
  const auto sum =
      keys("a = \"f32[8]\", b = \"f32[6, 8]\", c = \"f32[6, 1]\"", "return max(a * b + c, axis=0)");
  EXPECT_EQ(sum, keys("c = \"f32[6, 1]\", b = \"f32[6, 8]\", a = \"f32[8]\"",
                      "return max(c + b * a, axis=0)"));
  EXPECT_EQ(sum, keys("b = \"f32[6, 8]\", unused = \"f32[3]\", c = \"f32[6, 1]\", a = \"f32[8]\"",
                      "return max(b * a + c, axis=0)"));
  EXPECT_NE(base, keys("a = \"f16[8, 16]\", b = \"f16[16, 4]\"", "return a @ b"));
  EXPECT_NE(base, keys("a = \"f32[16, 8]\", b = \"f32[16, 4]\"", "return transpose(a) @ b"));
  EXPECT_NE(base, keys("a = \"f32[9, 16]\", b = \"f32[16, 4]\"", "return a @ b"));
  EXPECT_NE(base, keys("a = \"f32[8, 32]\", b = \"f32[16, 4]\"", "return a[:, ::2] @ b"));
}

}  // namespace
}  // namespace beamline::workloads
