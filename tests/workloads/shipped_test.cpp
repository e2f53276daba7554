// The shipped workload files: every instance builds and falls into kernels that hold together.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/ir/arena.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
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

// One line a kernel of a file: "FILE KEY NAME". A change of a key is a change of the engine: it
// raises engine_version (harness/version.h). UPDATE_GOLDEN=1 writes the file anew.
TEST(Shipped, KernelKeysAreThoseOfTheList) {
  const std::filesystem::path list = BEAMLINE_SOURCE_DIR "/tests/golden/keys.txt";
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
        if (seen.insert(k.key).second)
          now += file.filename().string() + " " + k.key + " " + k.name + "\n";
    }
  }
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(list) << now;
  std::stringstream golden;
  golden << std::ifstream(list).rdbuf();
  std::istringstream want(golden.str()), have(now);
  int changed = 0;
  for (std::string a, b; changed < 5;) {
    const bool more_a = !!std::getline(want, a), more_b = !!std::getline(have, b);
    if (!more_a && !more_b) break;
    if (!more_a) a = "(nothing)";
    if (!more_b) b = "(nothing)";
    if (a != b) changed++, ADD_FAILURE() << "listed: " << a << "\nnow:    " << b;
  }
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
