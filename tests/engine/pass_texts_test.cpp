// What each pass of lowering makes of a small kernel, as text in tests/golden/passes.txt: to read,
// and so that a change shows. UPDATE_GOLDEN=1 writes the file anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/opt.h"
#include "test_paths.h"

namespace beamline {
namespace {

// Kernels of buffers of 16 elements: 0 is written, 1 and 2 are read. i is the output's loop, k one
// that is reduced.
const std::string start = R"(uop 1
%0=CONST:weakint()[value=16]
%1=STACK:weakint(%0)
%2=PARAM:f32(%1)[slot=0]
%3=PARAM:f32(%1)[slot=1]
%4=CONST:weakint()[value=4]
)";
const std::string increment = start + R"(%5=RANGE:weakint(%0)[id=0,type=WEAK]
%6=INDEX:f32(%2,%5)
%7=INDEX:f32(%3,%5)
%8=CONST:f32()[value=0x1p+0]
%9=ADD:f32(%7,%8)
%10=STORE:void(%6,%9)
%11=END:void(%10,%5)
%12=SINK:void(%11)
)";
const std::string inverse = start + R"(%5=RANGE:weakint(%0)[id=0,type=WEAK]
%6=INDEX:f32(%2,%5)
%7=INDEX:f32(%3,%5)
%8=RECIPROCAL:f32(%7)
%9=STORE:void(%6,%8)
%10=END:void(%9,%5)
%11=SINK:void(%10)
)";
const std::string row_sums = start + R"(%5=RANGE:weakint(%4)[id=0,type=WEAK]
%6=INDEX:f32(%2,%5)
%7=RANGE:weakint(%4)[id=1,type=REDUCE]
%8=MUL:weakint(%5,%4)
%9=ADD:weakint(%7,%8)
%10=INDEX:f32(%3,%9)
%11=REDUCE:f32(%10,%7)[op=ADD]
%12=STORE:void(%6,%11)
%13=END:void(%12,%5)
%14=SINK:void(%13)
)";
// The transposed matrix; the outer loop's part of the address stands last.
const std::string transposed = start + R"(%5=RANGE:weakint(%4)[id=0,type=WEAK]
%6=RANGE:weakint(%4)[id=1,type=WEAK]
%7=MUL:weakint(%5,%4)
%8=ADD:weakint(%6,%7)
%9=INDEX:f32(%2,%8)
%10=MUL:weakint(%6,%4)
%11=ADD:weakint(%5,%10)
%12=INDEX:f32(%3,%11)
%13=STORE:void(%9,%12)
%14=END:void(%13,%5,%6)
%15=SINK:void(%14)
)";
// Columns of one row, scaled: the row is read again for every i.
const std::string row_again = start + R"(%5=PARAM:f32(%1)[slot=2]
%6=RANGE:weakint(%4)[id=0,type=WEAK]
%7=RANGE:weakint(%4)[id=1,type=WEAK]
%8=MUL:weakint(%6,%4)
%9=ADD:weakint(%7,%8)
%10=INDEX:f32(%2,%9)
%11=INDEX:f32(%3,%7)
%12=INDEX:f32(%5,%6)
%13=MUL:f32(%11,%12)
%14=STORE:void(%10,%13)
%15=END:void(%14,%6,%7)
%16=SINK:void(%15)
)";
// Sums over the first of three dims whose order is turned round.
const std::string turned = start + R"(%5=RANGE:weakint(%4)[id=0,type=WEAK]
%6=CONST:weakint()[value=2]
%7=RANGE:weakint(%6)[id=1,type=WEAK]
%8=MUL:weakint(%5,%6)
%9=ADD:weakint(%7,%8)
%10=INDEX:f32(%2,%9)
%11=RANGE:weakint(%6)[id=2,type=REDUCE]
%12=CONST:weakint()[value=8]
%13=MUL:weakint(%11,%12)
%14=MUL:weakint(%7,%4)
%15=ADD:weakint(%13,%14)
%16=ADD:weakint(%15,%5)
%17=INDEX:f32(%3,%16)
%18=REDUCE:f32(%17,%11)[op=ADD]
%19=STORE:void(%10,%18)
%20=END:void(%19,%5,%7)
%21=SINK:void(%20)
)";
const std::string pair_sums = start + R"(%5=CONST:weakint()[value=8]
%6=RANGE:weakint(%5)[id=0,type=WEAK]
%7=INDEX:f32(%2,%6)
%8=CONST:weakint()[value=2]
%9=MUL:weakint(%6,%8)
%10=INDEX:f32(%3,%9)
%11=CONST:weakint()[value=1]
%12=ADD:weakint(%9,%11)
%13=INDEX:f32(%3,%12)
%14=ADD:f32(%10,%13)
%15=STORE:void(%7,%14)
%16=END:void(%15,%6)
%17=SINK:void(%16)
)";
const std::string each_thrice = start + R"(%5=RANGE:weakint(%0)[id=0,type=WEAK]
%6=INDEX:f32(%2,%5)
%7=CONST:weakint()[value=3]
%8=FLOORDIV:weakint(%5,%7)
%9=INDEX:f32(%3,%8)
%10=STORE:void(%6,%9)
%11=END:void(%10,%5)
%12=SINK:void(%11)
)";
const std::string from_variable = start + R"(%5=RANGE:weakint(%4)[id=0,type=WEAK]
%6=INDEX:f32(%2,%5)
%7=PARAM:weakint()[slot=-1,vmin=0,vmax=12,name="first",addrspace=alu]
%8=ADD:weakint(%5,%7)
%9=INDEX:f32(%3,%8)
%10=STORE:void(%6,%9)
%11=END:void(%10,%5)
%12=SINK:void(%11)
)";
// A loop inside of the grid with a reduction of its own; both stores are ended by the grid.
const std::string two_stores = start + R"(%5=PARAM:f32(%1)[slot=2]
%6=RANGE:weakint(%4)[id=0,type=WEAK]
%7=INDEX:f32(%2,%6)
%8=INDEX:f32(%3,%6)
%9=STORE:void(%7,%8)
%10=RANGE:weakint(%4)[id=1,type=WEAK]
%11=MUL:weakint(%6,%4)
%12=ADD:weakint(%10,%11)
%13=INDEX:f32(%5,%12)
%14=RANGE:weakint(%4)[id=2,type=REDUCE]
%15=MUL:weakint(%10,%4)
%16=ADD:weakint(%14,%15)
%17=INDEX:f32(%3,%16)
%18=REDUCE:f32(%17,%14)[op=ADD]
%19=STORE:void(%13,%18)
%20=END:void(%19,%10)
%21=GROUP:void(%9,%20)
%22=END:void(%21,%6)
%23=SINK:void(%22)
)";

// Sums of three neighbours, with nothing on both sides of them.
const std::string neighbours = start + R"(%5=RANGE:weakint(%4)[id=0,type=WEAK]
%6=INDEX:f32(%2,%5)
%7=CONST:weakint()[value=3]
%8=RANGE:weakint(%7)[id=1,type=REDUCE]
%9=ADD:weakint(%5,%8)
%10=CONST:weakint()[value=0]
%11=CMPLT:bool(%10,%9)
%12=CONST:weakint()[value=5]
%13=CMPLT:bool(%9,%12)
%14=AND:bool(%11,%13)
%15=CONST:weakint()[value=-1]
%16=ADD:weakint(%9,%15)
%17=CONST:invalid()
%18=WHERE:weakint(%14,%16,%17)
%19=INDEX:f32(%3,%18)
%20=REDUCE:f32(%19,%8)[op=ADD]
%21=STORE:void(%6,%20)
%22=END:void(%21,%5)
%23=SINK:void(%22)
)";

struct Case {
  const char* pass;
  const std::string& kernel;
  const char* target;
  const char* opts;
};
const Case cases[] = {
    {"apply opts", increment, "cpu", "UPCAST:0:6"},
    {"add loads", increment, "cpu", "UPCAST:0:6"},
    {"overlap tails", increment, "cpu", "UPCAST:0:6"},
    {"stage operands", row_again, "cpu", "PACK:1:0"},
    {"group reduces", row_sums, "emulator:sm_80", "GROUP:0:2"},
    {"choose lanes", increment, "cpu", "UPCAST:0:8"},
    {"skip padding", neighbours, "cpu", "SKIP:1"},
    {"remove reduces", row_sums, "cpu", ""},
    {"add grid", increment, "emulator:sm_80", "LOCAL:0:4"},
    {"expand", increment, "cpu", "UPCAST:0:8"},
    {"symbolic", transposed, "cpu", "UPCAST:0:2"},
    {"order index sums", turned, "cpu", ""},
    {"coalesce accesses", pair_sums, "emulator:sm_80", ""},
    {"lower index dtypes", increment, "cpu", ""},
    {"magic division", each_thrice, "emulator:sm_80", ""},
    {"decompositions", inverse, "cpu", ""},
    {"number params", from_variable, "cpu", ""},
    {"implicit barriers", two_stores, "emulator:sm_80", "GROUP:0:2"},
    {"linearize", row_sums, "cpu", ""},
};

TEST(PassTexts, AreThoseOfTheFile) {
  std::string now;
  for (std::string_view pass : pass_names()) {
    const auto c = std::ranges::find(cases, pass, &Case::pass);
    ASSERT_NE(c, std::end(cases)) << "no kernel shows what '" << pass << "' does";
    Arena arena;
    const Arena::Scope scope(arena);
    const auto parsed = parse_uops(c->kernel);
    ASSERT_TRUE(std::holds_alternative<UOp>(parsed))
        << pass << ": line " << std::get<ParseError>(parsed).line << ", "
        << std::get<ParseError>(parsed).message;
    std::string before = print_uops(std::get<UOp>(parsed)), after;
    LowerOptions options;
    options.check = 2;
    options.after_pass = [&](std::string_view name, UOp graph, double) {
      if (!after.empty()) return;
      (name == pass ? after : before) = print_uops(graph);
    };
    const auto target = emulated_target(c->target).value_or(Target{});
    const auto lowered =
        lower(std::get<UOp>(parsed), std::get<Opts>(parse_opts(c->opts)), target, options);
    ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered))
        << pass << ": " << std::get<OptRefusal>(lowered).reason;
    if (pass == "linearize") after = print_linear(std::get<LinearKernel>(lowered).list);
    // This one decides about the next.
    EXPECT_EQ(before == after, pass == "choose lanes") << pass << "\n" << after;
    now += "== " + std::string(pass) + ": " + c->target + " '" + c->opts + "'\nbefore " + before +
           "after " + after + "\n";
  }
  const std::string path = BEAMLINE_SOURCE_DIR "/tests/golden/passes.txt";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << now;
  std::stringstream want;
  want << std::ifstream(path).rdbuf();
  EXPECT_EQ(now, want.str()) << "UPDATE_GOLDEN=1 writes " << path << " anew";
}

}  // namespace
}  // namespace beamline
