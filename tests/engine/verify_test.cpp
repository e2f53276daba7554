// The verifier names what is wrong; the trace names which rule did what.
#include "engine/rules/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/rewrite/trace.h"

namespace beamline {
namespace {

using testing::HasSubstr;

const char* const sound = R"(uop 1
%0=CONST:weakint()[value=8]
%1=STACK:weakint(%0)
%2=PARAM:f32(%1)[slot=0]
%3=RANGE:weakint(%0)[id=0,type=WEAK]
%4=INDEX:f32(%2,%3)
%5=PARAM:f32(%1)[slot=1]
%6=INDEX:f32(%5,%3)
%7=STORE:void(%4,%6)
%8=END:void(%7,%3)
%9=SINK:void(%8)
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
std::string failure(const std::string& text, int level = 1) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto parsed = parse_uops(text);
  if (const auto* e = std::get_if<ParseError>(&parsed)) return "parse: " + e->message;
  return verify(std::get<UOp>(parsed), Stage::Kernel, level).value_or("");
}

TEST(Verify, ASoundKernelPassesAtEveryLevel) {
  for (int level = 0; level <= 2; level++) EXPECT_EQ(failure(sound, level), "");
}

TEST(Verify, EachKindOfDamageIsNamed) {
  const std::string s = sound;
  const std::pair<std::string, const char*> rows[] = {
      {with(s, "%8=END:void(%7,%3)\n%9=SINK:void(%8)", "%8=SINK:void(%7)"), "sink-closed"},
      {with(s, "%7=STORE:void(%4,%6)", "%7=STORE:void(%6,%0)"), ""},
      {with(s, "%7=STORE:void(%4,%6)", "%7=STORE:void(%0,%6)"), "store-index"},
      {with(s, "slot=1", "slot=-7"), "param-slot"},
      {with(s, "%5=PARAM:f32(%1)[slot=1]", "%5=PARAM:i32(%1)[slot=1]"), "parse"},
      {with(s, "%8=END:void(%7,%3)", "%8=END:void(%7)"), "end-ranges"},
      {with(s, "%9=SINK:void(%8)", "%9=GROUP:void(%8)"), "root"},
      {with(s, "%5=PARAM:f32(%1)[slot=1]", "%5=BUFFER:f32(%1)[slot=1,addrspace=reg]"), "kernel-op"},
      {with(s, "%9=SINK:void(%8)", "%9=SINK:void(%0)"), "sink-stores"},
      {with(s, "%3=RANGE:weakint", "%3=RANGE:i64"), "range-dtype"},
      {with(s, "type=WEAK", "type=DEVICE"),
       "one-device-loop: %3 RANGE: expected a loop of one device"},
  };
  for (const auto& [text, expected] : rows) EXPECT_THAT(failure(text), HasSubstr(expected)) << text;
}

TEST(Verify, DimsThatOnlyHaveTheSameBound) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto tensor = [](int64_t slot, UOp dim) {
    ParamArg a;
    a.slot = slot;
    return make(Op::PARAM, DType::F32, {stack(std::vector<UOp>{dim})}, 0, intern(a));
  };
  const UOp n = variable("n", 1, 8, DType::WeakInt), m = variable("m", 1, 8, DType::WeakInt);
  const auto failure_of = [&](UOp a, UOp b) {
    return verify(make(Op::SINK, DType::Void, {tensor(0, a) + tensor(1, b)}), Stage::Tensor)
        .value_or("");
  };
  EXPECT_EQ(failure_of(n, n), "");
  EXPECT_EQ(failure_of(n, iconst(1)), "");
  EXPECT_THAT(failure_of(n, m), HasSubstr("ADD: expected dims that are equal"));
}

TEST(Verify, TwoBuffersInOneSlotAndAccessOutOfBounds) {
  std::string two = with(sound, "%5=PARAM:f32(%1)[slot=1]", "%5=PARAM:f32(%1)[slot=0,const=1]");
  EXPECT_THAT(failure(two), HasSubstr("one-buffer-per-slot"));
  // A range of 9 over buffers of 8 elements: only level 2 looks at bounds.
  std::string far = R"(uop 1
%0=CONST:weakint()[value=8]
%1=STACK:weakint(%0)
%2=PARAM:f32(%1)[slot=0]
%3=CONST:weakint()[value=9]
%4=RANGE:weakint(%3)[id=0,type=WEAK]
%5=INDEX:f32(%2,%4)
%6=CONST:f32()[value=0x1p+0]
%7=STORE:void(%5,%6)
%8=END:void(%7,%4)
%9=SINK:void(%8)
)";
  EXPECT_EQ(failure(far, 1), "");
  EXPECT_THAT(failure(far, 2), HasSubstr("index-bounds"));
}

TEST(Verify, ALinearListMustNestAndBeOrdered) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto lowered = lower(std::get<UOp>(parse_uops(sound)), {}, {});
  ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered));
  std::vector<UOp> list = std::get<LinearKernel>(lowered).list;
  EXPECT_EQ(verify_linear(list).value_or(""), "");
  std::vector<UOp> reversed(list.rbegin(), list.rend());
  EXPECT_THAT(verify_linear(reversed).value_or(""), HasSubstr("order"));
  std::vector<UOp> open;
  for (UOp u : list)
    if (u.op() != Op::END && u.op() != Op::SINK) open.push_back(u);
  EXPECT_THAT(verify_linear(open).value_or(""), HasSubstr("nesting"));
}

TEST(Trace, NamesPassesRulesAndTheirPlace) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp ast = std::get<UOp>(parse_uops(sound));
  TextTrace trace;
  LowerOptions options;
  options.trace = &trace;
  options.after_pass = [&](std::string_view pass, UOp graph, double ns) {
    trace.pass(pass, graph, ns);
  };
  const auto lowered = lower(ast, std::get<Opts>(parse_opts("UPCAST:0:3")), {}, options);
  ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered));
  EXPECT_THAT(trace.text(), HasSubstr("expand: "));
  EXPECT_THAT(trace.text(), HasSubstr("symbolic: "));
  EXPECT_GT(trace.rewrites(), 0u);
  EXPECT_THAT(trace.text(), testing::ContainsRegex(
                                "[a-z-]+ [a-z]+[.]cpp:[0-9]+ #[0-9]+ [A-Z]+ -> #[0-9]+ [A-Z]+"));
}

}  // namespace
}  // namespace beamline
