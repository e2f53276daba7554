// Tensor cores: the tables, what a TC opt is refused for, and the products they give, run by the
// interpreter, whose lane maps do not come from the tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include <fmt/format.h>

#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/ir/tensor_core.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/prepare.h"

namespace beamline {
namespace {

struct Sizes {
  int64_t m, n, k;
};

UOp operand(int64_t slot, DType t, int64_t elements) {
  ParamArg a;
  a.slot = slot;
  const int64_t shape[] = {elements};
  return param(a, t, shape);
}
UOp element(UOp memory, UOp at) { return make(Op::INDEX, memory.dtype(), {memory, at}); }

// c[m, n] = sum of a[m, k] * b[k, n], factors widened to the type of the sum.
UOp product_kernel(DType in, DType second, DType out, Sizes s) {
  const UOp m = range(s.m, 0, AxisType::WEAK), n = range(s.n, 1, AxisType::WEAK),
            k = range(s.k, 2, AxisType::REDUCE);
  const UOp a = element(operand(1, in, s.m * s.k), m * iconst(s.k) + k);
  const UOp b = element(operand(2, second, s.k * s.n), k * iconst(s.n) + n);
  const UOp steps[] = {k};
  const UOp sum = reduce(Op::ADD, cast(a, out) * cast(b, out), steps, 0);
  const UOp c = element(operand(0, out, s.m * s.n), m * iconst(s.n) + n);
  const UOp store = make(Op::STORE, DType::Void, {c, sum});
  const UOp sink = make(Op::SINK, DType::Void, {make(Op::END, DType::Void, {store, m, n})});
  return prepare(sink).ast;
}

UOp product_kernel(DType in, DType out, Sizes s) { return product_kernel(in, in, out, s); }

double number(const InterpreterBuffer& b, size_t i) {
  return is_float(b.dtype) ? b.floats[i] : static_cast<double>(b.ints[i]);
}

// Runs the kernel on small whole numbers, whose sums are exact; the first wrong element as text.
std::string run_product(const TensorCore& core, const Target& target, Sizes s,
                        const std::string& opts_after, int use, int* products = nullptr) {
  const DType factors = core.factor(1);  // of two that differ the second's
  const UOp ast = product_kernel(factors, core.out, s);
  int64_t select = 0;
  for (const TensorCore* t : tensor_cores(target)) {
    if (t == &core) break;
    select++;
  }
  const std::string text = fmt::format("TC:0:({},2,{}){}", select, use, opts_after);
  LowerOptions checked;
  checked.check = 1;
  const auto lowered = lower(ast, std::get<Opts>(parse_opts(text)), target, checked);
  if (const auto* r = std::get_if<OptRefusal>(&lowered)) return "refused: " + r->reason;
  const auto& kernel = std::get<LinearKernel>(lowered);
  if (products)
    for (UOp u : kernel.list) *products += u.op() == Op::WMMA;
  std::mt19937 random(5);
  std::vector<InterpreterBuffer> memory;
  memory.push_back(make_buffer(core.out, static_cast<size_t>(s.m * s.n)));
  for (int64_t n : {s.m * s.k, s.k * s.n}) {
    memory.push_back(make_buffer(factors, static_cast<size_t>(n)));
    for (size_t i = 0; i < static_cast<size_t>(n); i++) {
      const int v = static_cast<int>(random() % 3) - 1;
      if (is_float(factors))
        memory.back().floats[i] = v;
      else
        memory.back().ints[i] = v;
    }
  }
  const auto error =
      interpret(kernel.list, memory, {kernel.grid.threads, kernel.grid.global, kernel.grid.local});
  if (error) return *error;
  for (int64_t m = 0; m < s.m; m++)
    for (int64_t n = 0; n < s.n; n++) {
      double want = 0;
      for (int64_t k = 0; k < s.k; k++)
        want += number(memory[1], static_cast<size_t>(m * s.k + k)) *
                number(memory[2], static_cast<size_t>(k * s.n + n));
      const double have = number(memory[0], static_cast<size_t>(m * s.n + n));
      if (have != want) return fmt::format("element {}, {} is {}, not {}", m, n, have, want);
    }
  return "";
}

Target allowing(std::string_view name) {
  Target t = *emulated_target(name);
  t.allow_tf32 = true;
  return t;
}

class EveryTensorCore : public testing::TestWithParam<const TensorCore*> {};

TEST_P(EveryTensorCore, GivesTheProduct) {
  Arena arena;
  const Arena::Scope scope(arena);
  const TensorCore& core = *GetParam();
  const int64_t m = core.shape->m, n = core.shape->n, k = core.shape->k;
  struct Case {
    Sizes sizes;
    const char* opts;
  };
  const Case cases[] = {
      {{m, n, k}, ""},
      {{2 * m, 3 * n, 2 * k}, ""},
      {{4 * m, 4 * n, 4 * k}, ";UPCAST:0:2;UPCAST:1:2;UNROLL:0:2"},
      {{2 * m, 4 * n, k}, ";LOCAL:1:2"},
      {{m - 1, n, k}, ""},
      {{m, n + 1, k}, ""},
      {{m, n, k + 3}, ""},
      {{m / 2 + 1, 2 * n - 3, 2 * k - 1}, ""},
      {{2 * m - 1, n, k / 2}, ";UPCAST:0:2"},
  };
  std::set<std::string_view> ran;
  for (std::string_view name : emulated_targets()) {
    const Target target = allowing(name);
    const auto cores = tensor_cores(target);
    if (std::ranges::find(cores, &core) == cores.end()) continue;
    const bool first = ran.empty();  // others differ in their limits only
    ran.insert(name);
    for (const Case& c : std::span(cases).first(first ? std::size(cases) : 2)) {
      const std::string what = fmt::format("{} on {}: m={} n={} k={} opts {}", core.name(), name,
                                           c.sizes.m, c.sizes.n, c.sizes.k, c.opts);
      int products = 0;
      EXPECT_EQ(run_product(core, target, c.sizes, c.opts, 1, &products), "") << what;
      EXPECT_GT(products, 0) << what;
      if (c.sizes.m == m && c.sizes.n == n) continue;  // one of each size will do
      products = 0;
      EXPECT_EQ(run_product(core, target, c.sizes, c.opts, 2, &products), "") << what << ", shape";
      EXPECT_EQ(products, 0) << what;
    }
  }
  EXPECT_FALSE(ran.empty()) << core.name() << " belongs to no target";
}

std::vector<const TensorCore*> pointers() {
  std::vector<const TensorCore*> out;
  for (const TensorCore& t : all_tensor_cores())
    if (!t.shape->by_lane()) out.push_back(&t);
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, EveryTensorCore, testing::ValuesIn(pointers()), [](const auto& p) {
  std::string s = p.param->name();
  std::ranges::replace(s, ' ', '_');
  return s;
});

// N*M = 2^(lanes + registers), and a swizzle names every bit once.
TEST(TensorCores, TablesAreConsistent) {
  std::set<std::string> names;
  for (const TensorCore& t : all_tensor_cores()) {
    const MatrixShape& s = *t.shape;
    EXPECT_TRUE(names.insert(t.name()).second) << t.name();
    EXPECT_EQ(tensor_core(t.name()), &t);
    EXPECT_EQ(s.n * s.m, s.threads * s.elements[2]) << t.name();
    if (s.by_lane()) {  // nothing but lanes
      EXPECT_EQ(s.m, 1) << t.name();
      for (int i : {0, 1}) EXPECT_EQ(s.elements[i], s.n * s.k) << t.name();
      continue;
    }
    EXPECT_EQ(s.bits_of(0).size() + s.bits_of(1).size(),
              static_cast<size_t>(s.lanes()) + s.element_bits(2).size());
    EXPECT_EQ(1 << s.bits_of(0).size(), s.n) << t.name();
    EXPECT_EQ(1 << s.bits_of(1).size(), s.m) << t.name();
    for (int i = 0; i < 2; i++) {
      std::set<std::pair<int, int>> seen;
      const int counts[] = {s.lanes(), static_cast<int>(s.element_bits(2).size()), s.steps()};
      for (int kind = 0; kind < 3; kind++)
        for (int b = 0; b < counts[kind]; b++) {
          const MatrixBit at = s.held_at(i, {static_cast<BitKind>(kind), b});
          EXPECT_LT(at.i, counts[static_cast<int>(at.kind)]) << t.name();
          EXPECT_TRUE(seen.emplace(static_cast<int>(at.kind), at.i).second) << t.name();
        }
    }
  }
  EXPECT_EQ(tensor_core("cuda 9x9x9 f16 f32"), nullptr);
  EXPECT_TRUE(tensor_cores(Target{}).empty());
}

// A processor that has them all, with vectors of so many bytes.
Target processor(int vector_bytes) {
  Target t;
  t.vector_bytes = vector_bytes;
  t.vector_registers = vector_bytes == 64 ? 32 : 16;
  t.instructions = "sse2 fma f16c avx2 avx512bw avx512vnni avx512bf16";
  t.threads = 2;
  return t;
}

// Lanes along columns, along the reduction, or none; tiles, tails of every axis, packed operands.
TEST(ProductsByLane, GiveTheProductWithAnyOtherOpts) {
  Arena arena;
  const Arena::Scope scope(arena);
  struct Case {
    Sizes sizes;
    const char* opts;
  };
  const Case cases[] = {
      {{1, 1, 8}, ""},
      {{3, 5, 16}, ""},
      {{3, 5, 7}, ""},
      {{8, 32, 16}, ";UPCAST:1:16;UPCAST:0:4"},
      {{8, 32, 16}, ";UPCAST:1:16;UPCAST:0:4;UNROLL:0:2"},
      {{8, 32, 4}, ";UPCAST:1:16"},
      {{7, 19, 12}, ";UPCAST:1:16;UPCAST:0:3"},
      {{7, 19, 13}, ";UPCAST:1:8;UPCAST:0:3;UNROLL:0:2"},
      {{7, 19, 13}, ";UPCAST:1:12;UPCAST:0:3"},
      {{9, 3, 30}, ";UPCAST:1:2;UNROLL:0:3"},
      {{5, 3, 64}, ";UNROLL:0:16;UPCAST:0:2"},
      {{5, 3, 61}, ";UNROLL:0:8"},
      {{12, 40, 16}, ";UPCAST:1:16;UPCAST:0:4;SWAP:0:1;PACK:2:1"},
      {{12, 40, 15}, ";UPCAST:1:16;UPCAST:0:4;SWAP:0:1;PACK:2:1"},
      {{12, 40, 15}, ";UPCAST:1:16;UPCAST:0:3;UNROLL:0:2;PACK:1:1"},
      {{12, 40, 16}, ";UPCAST:0:12;THREAD:0:2;TILE:0:4;PACK:1:1"},
      {{40, 12, 16}, ";TILE:0:8;UPCAST:0:4;UPCAST:1:4;THREAD:0:2"},
  };
  int found[2] = {};
  for (const TensorCore& core : all_tensor_cores()) {
    if (!core.shape->by_lane()) continue;
    const Target target = processor(core.shape->n * 4);
    for (const Case& c : cases)
      for (int use : {1, 2}) {
        const std::string what = fmt::format("{}: m={} n={} k={} opts {} use {}", core.name(),
                                             c.sizes.m, c.sizes.n, c.sizes.k, c.opts, use);
        int products = 0;
        std::string wrong = run_product(core, target, c.sizes, c.opts, use, &products);
        if (wrong.starts_with("refused: ") && use == 2) continue;  // PACK may tell them apart
        EXPECT_EQ(wrong, "") << what;
        EXPECT_EQ(products > 0, use == 1) << what;
        found[use - 1]++;
      }
  }
  EXPECT_GT(found[0], 100);
  EXPECT_GT(found[1], 100);
}

// Lanes are those of what is summed, also where one step is the whole sum and the result is narrow.
TEST(ProductsByLane, AreOfWholeVectorsOfSums) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp m = range(16, 0, AxisType::WEAK), k = range(2, 1, AxisType::REDUCE);
  const UOp a = element(operand(1, DType::BF16, 32), m * iconst(2) + k),
            b = element(operand(2, DType::BF16, 2), k);
  const UOp steps[] = {k};
  const UOp sum = reduce(Op::ADD, cast(a, DType::F32) * cast(b, DType::F32), steps, 0);
  const UOp store = make(Op::STORE, DType::Void,
                         {element(operand(0, DType::BF16, 16), m), cast(sum, DType::BF16)});
  const UOp ast =
      prepare(make(Op::SINK, DType::Void, {make(Op::END, DType::Void, {store, m})})).ast;
  LowerOptions checked;
  checked.check = 1;  // the verifier counts the lanes
  const auto lowered =
      lower(ast, std::get<Opts>(parse_opts("TC:0:(-1,2,1);UPCAST:0:8")), processor(16), checked);
  ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered));
  for (UOp u : std::get<LinearKernel>(lowered).list)
    if (u.op() == Op::WMMA) {
      EXPECT_EQ(u.shape()[0], 4);
    }
}

// What stands in a line of lanes: neighbours of a packed or contiguous operand are one load.
TEST(ProductsByLane, ReadNeighboursTogether) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto loads = [](UOp ast, const char* opts) {
    const auto lowered = lower(ast, std::get<Opts>(parse_opts(opts)), processor(64));
    EXPECT_TRUE(std::holds_alternative<LinearKernel>(lowered)) << opts;
    std::string out;
    for (UOp u : std::get<LinearKernel>(lowered).list)
      if (u.op() == Op::LOAD && u.dtype() != DType::F32)
        out += fmt::format("{}{} ", memory_of(u.src(0)).op() == Op::BUFFER ? "packed " : "",
                           u.shape().empty() ? 1 : u.shape()[0]);
    return out;
  };
  const UOp ast = product_kernel(DType::BF16, DType::F32, {8, 64, 32});
  EXPECT_EQ(loads(ast, "TC:0:(-1,0,1);UPCAST:1:16"), "2 16 16 ");
  EXPECT_EQ(loads(ast, "TC:0:(-1,0,1);UPCAST:1:16;SWAP:0:1;PACK:2:1"), "16 16 2 packed 32 ");
  EXPECT_EQ(loads(ast, "TC:0:(-1,0,1)"), "2 1 1 ");
}

// Of factors of one sign, the bytes of one are moved by 128 to what the instruction wants.
TEST(ProductsByLane, ExtremeBytesOfAnySign) {
  Arena arena;
  const Arena::Scope scope(arena);
  const Sizes s{4, 17, 27};
  for (const auto& [a, b] : {std::pair(DType::I8, DType::I8),
                             {DType::U8, DType::U8},
                             {DType::U8, DType::I8},
                             {DType::I8, DType::U8}})
    for (const char* opts :
         {"", ";UPCAST:1:16;UPCAST:0:2;UNROLL:0:2", ";UPCAST:1:16;SWAP:0:1;PACK:2:1"}) {
      const UOp ast = product_kernel(a, b, DType::I32, s);
      size_t left = 1;  // the slot of a, which prepare() may have given another
      for (UOp u : toposort(ast))
        if (u.op() == Op::PARAM && u.numel() == s.m * s.k)
          left = static_cast<size_t>(u.param().slot);
      if (left != 1 && std::string_view(opts).ends_with("PACK:2:1")) continue;
      const auto lowered = lower(
          ast, std::get<Opts>(parse_opts(fmt::format("TC:0:(-1,2,1){}", opts))), processor(64));
      ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered))
          << std::get<OptRefusal>(lowered).reason << opts;
      const auto& list = std::get<LinearKernel>(lowered).list;
      const auto product = std::ranges::find(list, Op::WMMA, &UOp::op);
      ASSERT_TRUE(product != list.end());
      EXPECT_EQ(product->text(), "x86 16x1x4 u8 i8 i32");
      std::mt19937 random(7);
      std::vector<InterpreterBuffer> memory(3);
      memory[0] = make_buffer(DType::I32, 4 * 17);
      InterpreterBuffer &x = memory[left], &y = memory[3 - left];
      x = make_buffer(a, 4 * 27), y = make_buffer(b, 27 * 17);
      for (InterpreterBuffer* m : {&x, &y})
        for (int64_t& v : m->ints) v = random() % 2 ? dtype_min(m->dtype) : dtype_max(m->dtype);
      const auto error = interpret(list, memory, {1, {}, {}});
      ASSERT_FALSE(error.has_value()) << *error;
      for (int64_t m = 0; m < s.m; m++)
        for (int64_t n = 0; n < s.n; n++) {
          int64_t want = 0;
          for (int64_t k = 0; k < s.k; k++)
            want +=
                x.ints[static_cast<size_t>(m * s.k + k)] * y.ints[static_cast<size_t>(k * s.n + n)];
          ASSERT_EQ(memory[0].ints[static_cast<size_t>(m * s.n + n)], want) << opts;
        }
    }
}

std::string refusal(UOp ast, const char* opts, const Target& target) {
  const auto s = apply_opts(ast, std::get<Opts>(parse_opts(opts)), target);
  if (const auto* r = std::get_if<OptRefusal>(&s)) return r->reason;
  return "applied " + opts_text(std::get<KernelSchedule>(s).applied());
}

TEST(TensorCores, SayWhyNot) {
  Arena arena;
  const Arena::Scope scope(arena);
  const Target sm80 = *emulated_target("emulator:sm_80");
  const UOp half = product_kernel(DType::F16, DType::F32, {32, 32, 32});
  const UOp odd = product_kernel(DType::F16, DType::F32, {30, 32, 32});
  const UOp tiny = product_kernel(DType::F16, DType::F32, {3, 32, 32});
  const UOp single = product_kernel(DType::F32, DType::F32, {32, 32, 32});
  const UOp twice = product_kernel(DType::F64, DType::F64, {32, 32, 32});
  const UOp brain = product_kernel(DType::BF16, DType::F32, {32, 32, 32});
  const UOp bytes = product_kernel(DType::I8, DType::I32, {32, 32, 32});
  const UOp steps = product_kernel(DType::I8, DType::I32, {32, 32, 3});
  const Target avx512 = processor(64);
  Target avx2 = processor(32);
  avx2.instructions = "sse2 fma f16c avx2";
  Target off = sm80, tf32 = sm80;
  off.tensor_cores = TensorCoreUse::Off;
  tf32.allow_tf32 = true;
  struct Case {
    UOp ast;
    const char* opts;
    const Target* target;
    const char* expected;
  };
  const Target cpu;
  const Case cases[] = {
      {half, "TC:0:(-1,0,1)", &sm80, "applied TC:0:(0,0,1)"},
      {half, "TC:0:(3,0,2)", &sm80, "applied TC:0:(3,0,2)"},
      {half, "TC:0:(-1,0,1)", &cpu, "this target has no tensor cores"},
      {half, "TC:0:(-1,0,1)", &off, "tensor cores are switched off"},
      {brain, "TC:0:(-1,0,1)", &avx512, "applied TC:0:(0,0,1)"},
      {bytes, "TC:0:(-1,0,1)", &avx512, "applied TC:0:(1,0,1)"},
      {bytes, "TC:0:(-1,0,1)", &avx2, "applied TC:0:(0,0,1)"},
      {brain, "TC:1:(-1,0,1)", &avx512, "choice 1 does not exist, there are 1"},
      {brain, "TC:0:(1,0,1)", &avx512, "no tensor core here multiplies f32 and f32 into f32"},
      {single, "TC:0:(-1,2,1)", &avx512, "no tensor core here multiplies f32 and f32 into f32"},
      {steps, "TC:0:(-1,1,1)", &avx512,
       "x86 16x1x2 i16 i32 needs multiples of 2, 3 is none; level 2 pads"},
      {steps, "TC:0:(-1,2,1)", &avx512, "applied TC:0:(1,2,1)"},
      {half, "UPCAST:0:2;TC:0:(-1,0,1)", &sm80, "TC comes before every other opt"},
      {half, "TC:0:(6,0,1)", &sm80,
       "tensor core 6 does not exist, there are 6; -1 is the first that fits"},
      {half, "TC:0:(-2,0,1)", &sm80,
       "tensor core -2 does not exist, there are 6; -1 is the first that fits"},
      {half, "TC:0:(0,3,1)", &sm80, "level 3 is none of 0, 1, 2"},
      {half, "TC:0:(0,0,0)", &sm80, "use 0 is neither 1 (real) nor 2 (shape)"},
      {half, "TC:0:(1,0,1)", &sm80,
       "tensor core 1 (cuda 8x16x16 bf16 f32) does not multiply f32 and f32 into f32"},
      {half, "TC:1:(-1,0,1)", &sm80, "choice 1 does not exist, there are 1"},
      {half, "TC:0:(-1,0,1);GROUP:0:2", &sm80,
       "a warp that uses its tensor cores has no group to reduce across"},
      {half, "TC:0:(-1,0,1);PADTO:2:64", &sm80, "axis 2 is WARP; PADTO takes a loop"},
      {half, "TC:0:(-1,0,1);LOCAL:2:2", &sm80, "axis 2 is WARP; LOCAL takes an output axis"},
      {odd, "TC:0:(0,1,1)", &sm80,
       "cuda 8x16x16 f16 f32 needs multiples of 8x16x16, 30 is none; level 2 pads"},
      {odd, "TC:0:(0,2,1)", &sm80, "applied TC:0:(0,2,1)"},
      {tiny, "TC:0:(0,2,1)", &sm80, "3 would be padded to 16, fourfold or more"},
      {single, "TC:0:(-1,0,1)", &sm80,
       "cuda 8x16x8 tf32 f32 rounds its factors; --allow-tf32 permits it"},
      {single, "TC:0:(-1,0,1)", &tf32, "applied TC:0:(5,0,1)"},
      {twice, "TC:0:(-1,0,1)", &sm80, "no tensor core here multiplies f64 and f64 into f64"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(c.ast, c.opts, *c.target), c.expected) << c.opts;
}

TEST(TensorCores, AxesAndGridAreTold) {
  Arena arena;
  const Arena::Scope scope(arena);
  const Target target = *emulated_target("emulator:sm_80");
  const UOp ast = product_kernel(DType::F16, DType::F32, {64, 48, 32});
  const auto applied = apply_opts(ast, std::get<Opts>(parse_opts("TC:0:(0,0,1)")), target);
  std::string axes;
  for (UOp r : std::get<KernelSchedule>(applied).axes())
    axes += fmt::format("{} {}, ", KernelSchedule::size(r), axis_type_name(r.axis_type()));
  EXPECT_EQ(axes,
            "4 GLOBAL, 6 GLOBAL, 32 WARP, 2 UPCAST, 2 UPCAST, 2 REDUCE, 2 UNROLL, 2 UNROLL, "
            "2 UNROLL, 2 UNROLL, ");
  const auto lowered = lower(ast, std::get<Opts>(parse_opts("TC:0:(0,0,1);LOCAL:0:2")), target);
  const auto& kernel = std::get<LinearKernel>(lowered);
  EXPECT_EQ(kernel.grid.local, (std::vector<int64_t>{32, 2}));
  EXPECT_EQ(kernel.grid.global, (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(opts_text(kernel.opts), "TC:0:(0,0,1);LOCAL:0:2");
}

// Also over steps that are written out: nothing is left for the threads to add.
TEST(TensorCores, AddWhatTheyMultiply) {
  Arena arena;
  const Arena::Scope scope(arena);
  const Target target = *emulated_target("emulator:sm_80");
  const UOp ast = product_kernel(DType::F16, DType::F32, {16, 8, 64});
  const std::pair<const char*, int> rows[] = {
      {"TC:0:(0,0,1)", 1}, {"TC:0:(0,0,1);UNROLL:0:2", 2}, {"TC:0:(0,0,1);UNROLL:0:4", 4}};
  for (const auto& [opts, products] : rows) {
    const auto lowered = lower(ast, std::get<Opts>(parse_opts(opts)), target);
    int sums = 0, found = 0;
    for (UOp u : std::get<LinearKernel>(lowered).list) {
      sums += u.op() == Op::ADD && u.dtype() == DType::F32;
      found += u.op() == Op::WMMA;
    }
    EXPECT_EQ(sums, 0) << opts;
    EXPECT_EQ(found, products) << opts;
    const TensorCore& core = *tensor_core("cuda 8x16x16 f16 f32");
    EXPECT_EQ(run_product(core, target, {16, 8, 64}, std::string(opts).substr(12), 1), "") << opts;
  }
}

TEST(TensorCores, TextReadsBackAndMistakesAreRefused) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp ast = product_kernel(DType::F16, DType::F32, {32, 32, 32});
  const auto opts = std::get<Opts>(parse_opts("TC:0:(0,0,1)"));
  const Target target = *emulated_target("emulator:sm_80");
  const auto lowered = lower(ast, opts, target);
  const std::string text = print_linear(std::get<LinearKernel>(lowered).list);
  const auto error_of = [](const std::string& t) {
    const auto parsed = parse_uops(t);
    const auto* e = std::get_if<ParseError>(&parsed);
    return e ? e->message : "";
  };
  EXPECT_EQ(error_of(text), "");
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string t = text;
    return t.replace(t.find(from), from.size(), to);
  };
  EXPECT_EQ(error_of(with("cuda 8x16x16 f16 f32", "cuda 9x9x9 f16 f32")),
            "unknown tensor core 'cuda 9x9x9 f16 f32'");
  EXPECT_EQ(error_of(with("cuda 8x16x16 f16 f32", "cuda 8x16x16 f16 f16")),
            "cuda 8x16x16 f16 f16 gives f16");
  // A kernel that comes from outside has no matrix products yet; a scheduled one may.
  const auto schedule = apply_opts(ast, opts, target);
  const UOp scheduled = std::get<KernelSchedule>(schedule).ast();
  EXPECT_EQ(verify(scheduled, Stage::Scheduled), std::nullopt);
  EXPECT_EQ(verify(scheduled, Stage::Kernel).value_or("").substr(0, 9), "kernel-op");
}

TEST(TensorCores, OneBitOfMantissaThatTf32DoesNotHaveIsLost) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp ast = product_kernel(DType::F32, DType::F32, {16, 8, 8});
  const auto lowered =
      lower(ast, std::get<Opts>(parse_opts("TC:0:(-1,0,1)")), allowing("emulator:sm_80"));
  const auto& kernel = std::get<LinearKernel>(lowered);
  std::vector<InterpreterBuffer> memory{make_buffer(DType::F32, 128), make_buffer(DType::F32, 128),
                                        make_buffer(DType::F32, 64)};
  memory[1].floats[0] = 1 + 0x1p-10 + 0x1p-13, memory[2].floats[0] = 1;
  const auto error = interpret(kernel.list, memory, {1, kernel.grid.global, kernel.grid.local});
  EXPECT_FALSE(error.has_value()) << *error;
  EXPECT_EQ(memory[0].floats[0], 1 + 0x1p-10);
}

// What a user of a GPU expects of a kernel that nobody has tuned.
TEST(GroupHeuristic, ChoosesTensorCoresTilesGroupsAndThreads) {
  Arena arena;
  const Arena::Scope scope(arena);
  const Target sm80 = *emulated_target("emulator:sm_80"), sm75 = *emulated_target("emulator:sm_75"),
               metal = *emulated_target("emulator:metal");
  Target off = sm80, shape = sm80;
  off.tensor_cores = TensorCoreUse::Off;
  shape.tensor_cores = TensorCoreUse::Shape;
  const auto half = [](Sizes s) { return product_kernel(DType::F16, DType::F32, s); };
  const auto single = [](Sizes s) { return product_kernel(DType::F32, DType::F32, s); };
  struct Case {
    UOp ast;
    const Target* target;
    const char* expected;
  };
  const char* warps = "TC:0:(0,0,1);UPCAST:0:4;UPCAST:1:4;LOCAL:1:4";
  const char* tiles = "UPCAST:1:4;UPCAST:0:4;UNROLL:0:4;LOCAL:0:8;LOCAL:1:16";
  const Case cases[] = {
      {half({512, 512, 512}), &sm80, warps},
      {half({512, 512, 512}), &sm75, warps},
      {half({512, 512, 512}), &shape, "TC:0:(0,0,2);UPCAST:0:4;UPCAST:1:4;LOCAL:1:4"},
      {half({512, 512, 512}), &off, tiles},
      {half({500, 512, 512}), &sm80, "UPCAST:1:4;UPCAST:0:4;UNROLL:0:4;LOCAL:1:16"},
      {single({512, 512, 512}), &sm80, tiles},
      {single({512, 512, 512}), &metal, warps},
      {single({4096, 1, 4096}), &sm80, "GROUP:0:8;LOCAL:0:4;UPCAST:0:4"},
      {single({1, 1, 4096}), &sm80, "GROUPTOP:0:16"},
      {single({16, 16, 4096}), &sm80, "GROUPTOP:0:16"},
      {single({97, 89, 83}), &sm80, ""},
      {single({1, 1, 1}), &sm80, ""},
  };
  for (const Case& c : cases) EXPECT_EQ(opts_text(heuristic(c.ast, *c.target)), c.expected);
}

}  // namespace
}  // namespace beamline
