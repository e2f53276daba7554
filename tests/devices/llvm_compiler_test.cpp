#include "devices/cpu/llvm_compiler.h"

#include <gtest/gtest.h>

#include "devices/cpu/blob.h"
#include "devices/cpu/topology.h"

namespace beamline {
namespace {

CompiledBlob must_compile(const std::string& ir, const IrOptions& options = {}) {
  auto r = compile_ir(ir, "kernel", options);
  if (const auto* e = std::get_if<CompileError>(&r)) {
    ADD_FAILURE() << e->reason;
    return {};
  }
  return std::get<CompiledBlob>(r);
}

std::string error_of(const std::string& ir, const std::string& entry = "kernel",
                     const IrOptions& options = {}) {
  const auto r = compile_ir(ir, entry, options);
  const auto* e = std::get_if<CompileError>(&r);
  return e == nullptr ? "" : e->reason;
}

void call(const CompiledBlob& blob, void* const* buffers, int64_t core = 0) {
  auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
  ASSERT_TRUE(std::holds_alternative<CodeBlob>(mapped));
  std::get<CodeBlob>(mapped).entry()(buffers, core);
}

const char* const kAxpy = R"(
define void @kernel(ptr %buffers, i64 %core) {
entry:
  %x.slot = getelementptr ptr, ptr %buffers, i64 1
  %x = load ptr, ptr %x.slot
  %y = load ptr, ptr %buffers
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %xp = getelementptr float, ptr %x, i64 %i
  %yp = getelementptr float, ptr %y, i64 %i
  %xv = load <8 x float>, ptr %xp, align 4
  %yv = load <8 x float>, ptr %yp, align 4
  %m = fmul <8 x float> %xv, <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0>
  %s = fadd <8 x float> %m, %yv
  store <8 x float> %s, ptr %yp, align 4
  %next = add i64 %i, 8
  %more = icmp ult i64 %next, 32
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
)";

TEST(LlvmCompiler, VectorsAndConstants) {
  const CompiledBlob blob = must_compile(kAxpy);
  float x[32], y[32];
  for (int i = 0; i < 32; i++) x[i] = static_cast<float>(i), y[i] = 1;
  void* buffers[] = {y, x};
  call(blob, buffers);
  for (int i = 0; i < 32; i++) EXPECT_EQ(y[i], static_cast<float>(i * (i % 8 + 1) + 1)) << i;
}

TEST(LlvmCompiler, AssemblyOnRequestAndFusedMultiplyAdd) {
  EXPECT_TRUE(must_compile(kAxpy).assembly.empty());
  const CompiledBlob blob = must_compile(kAxpy, {"native", "", true});
  EXPECT_NE(blob.assembly.find("kernel:"), std::string::npos);
  const CompiledBlob wide = must_compile(kAxpy, {"x86-64-v3", "", true});
  EXPECT_NE(wide.assembly.find("vfmadd"), std::string::npos);
  const CompiledBlob none = must_compile(kAxpy, {"x86-64-v3", "-fma", true});
  EXPECT_EQ(none.assembly.find("vfmadd"), std::string::npos);
}

TEST(LlvmCompiler, TheSameTextIsTheSameCode) {
  const CompiledBlob a = must_compile(kAxpy), b = must_compile(kAxpy, {"native", "", true});
  EXPECT_EQ(a.code, b.code);
  EXPECT_EQ(a.entry_offset, b.entry_offset);
}

// A call between functions, a table in read-only data, and a switch.
TEST(LlvmCompiler, RelocatesCallsAndTables) {
  std::string cases, bodies;
  for (int i = 0; i < 16; i++) {
    cases += "    i64 " + std::to_string(i) + ", label %c" + std::to_string(i) + "\n";
    bodies += "c" + std::to_string(i) + ":\n  store volatile i64 " + std::to_string(i * i + 100) +
              ", ptr %out\n  br label %done\n";
  }
  const std::string ir = R"(
@table = constant [4 x i64] [i64 3, i64 5, i64 7, i64 11]
define void @helper(ptr %out, i64 %core) noinline {
  switch i64 %core, label %done [
)" + cases + "  ]\n" + bodies +
                         R"(
done:
  ret void
}
define void @kernel(ptr %buffers, i64 %core) {
  %out = load ptr, ptr %buffers
  call void @helper(ptr %out, i64 %core)
  %index = and i64 %core, 3
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %index
  %t = load i64, ptr %p
  %second = getelementptr i64, ptr %out, i64 1
  store i64 %t, ptr %second
  ret void
}
)";
  const CompiledBlob blob = must_compile(ir);
  const int64_t table[] = {3, 5, 7, 11};
  for (int64_t core = 0; core < 16; core++) {
    int64_t out[2] = {};
    void* buffers[] = {out};
    call(blob, buffers, core);
    EXPECT_EQ(out[0], core * core + 100);
    EXPECT_EQ(out[1], table[core & 3]);
  }
}

struct BadIr {
  const char* what;
  const char* ir;
  const char* error;  // a part of it
};

// clang-format off
const BadIr kBad[] = {
    {"syntax", "define void @kernel(ptr %b, i64 %c) {\n  %x = fadd float 1.0\n  ret void\n}", "3:3: expected ','"},
    {"not IR", "hello", "expected top-level entity"},
    {"empty", "", "no function @kernel"},
    {"wrong entry", "define void @other(ptr %b, i64 %c) { ret void }", "no function @kernel"},
    {"only declared", "declare void @kernel(ptr, i64)", "no function @kernel"},
    {"wrong type", "define void @kernel(ptr %b) { ret void }", "not void (ptr, i64)"},
    {"wrong result", "define i64 @kernel(ptr %b, i64 %c) { ret i64 %c }", "not void (ptr, i64)"},
    {"does not verify", "define void @kernel(ptr %b, i64 %c) {\n  br label %e\nd:\n  %x = add i64 %c, 1\n  br label %e\n"
                        "e:\n  store i64 %x, ptr %b\n  ret void\n}", "dominate"},
    {"call outside", "declare float @sinf(float)\ndefine void @kernel(ptr %b, i64 %c) {\n"
                     "  %x = call float @sinf(float 1.5)\n  store float %x, ptr %b\n  ret void\n}", "unresolved symbol sinf"},
    {"memset of libc", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\ndefine void @kernel(ptr %b, i64 %c) {\n"
                       "  call void @llvm.memset.p0.i64(ptr %b, i8 0, i64 %c, i1 false)\n  ret void\n}", "unresolved symbol memset"},
    {"outside data", "@g = external global i64\ndefine void @kernel(ptr %b, i64 %c) {\n  %x = load i64, ptr @g\n"
                     "  store i64 %x, ptr %b\n  ret void\n}", "g"},
    {"writable data", "@g = global i64 5\ndefine void @kernel(ptr %b, i64 %c) {\n  store volatile i64 1, ptr @g\n  ret void\n}",
                      "writable static data"},
    {"zeroed data", "@g = global i64 0\ndefine void @kernel(ptr %b, i64 %c) {\n  store volatile i64 1, ptr @g\n  ret void\n}",
                    "writable static data"},
    {"thread local", "@g = thread_local global i64 0\ndefine void @kernel(ptr %b, i64 %c) {\n  store volatile i64 1, ptr @g\n  ret void\n}",
                     "static data"},
    {"absolute address", "@g = constant i64 5\n@p = constant ptr @g\ndefine void @kernel(ptr %b, i64 %c) {\n"
                         "  %x = load volatile ptr, ptr @p\n  store ptr %x, ptr %b\n  ret void\n}", "static data"},
    {"bad assembly", "define void @kernel(ptr %b, i64 %c) {\n  call void asm \"no such instruction\", \"\"()\n  ret void\n}",
                     "inline asm"},
};
// clang-format on

TEST(LlvmCompiler, DefectsAreValues) {
  for (const BadIr& bad : kBad) {
    const std::string error = error_of(bad.ir);
    EXPECT_NE(error.find(bad.error), std::string::npos) << bad.what << ": " << error;
  }
  EXPECT_NE(error_of(kAxpy, "kernel", {"no-such-cpu", "", false}).find("no-such-cpu"),
            std::string::npos);
  must_compile(kAxpy);  // and it goes on
}

TEST(LlvmCompiler, NamesItsVersion) { EXPECT_EQ(llvm_toolchain().rfind("llvm 19.", 0), 0u); }

}  // namespace
}  // namespace beamline
