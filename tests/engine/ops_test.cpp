// The ops that tensor programs and kernels of one device do not use: functions, programs, and what
// several devices need. Each has a dtype and a shape, is read back as it was printed, and is
// refused when it is put together wrongly; graphs over several devices are refused by name.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rules/verify.h"

namespace beamline {
namespace {

// x, y: f32 of (2,3); n: i32 of (4); u: an address space of one scalar.
constexpr std::string_view leaves =
    "uop 1\n"
    "%0=CONST:weakint()[value=2]\n"
    "%1=CONST:weakint()[value=3]\n"
    "%2=STACK:weakint(%0,%1)\n"
    "%3=PARAM:f32(%2)[slot=0]\n"
    "%4=PARAM:f32(%2)[slot=1]\n"
    "%5=CONST:weakint()[value=4]\n"
    "%6=STACK:weakint(%5)\n"
    "%7=PARAM:i32(%6)[slot=2]\n"
    "%8=TUPLE:void(%3,%7)\n";

struct Row {
  std::string_view op, node, type;  // type: dtype and shape, or what the refusal says
};
const Row well_formed[] = {
    {"TUPLE", "TUPLE:void(%3,%4)", "void"},
    {"FUNCTION", "FUNCTION:f32(%3,%4)", "f32(2,3)"},
    {"FUNCTION", "FUNCTION:void(%8,%4)", "void"},
    {"CALL", "CALL:void(%3,%4)", "void"},
    {"GETTUPLE", "GETTUPLE:f32(%8)[index=0]", "f32(2,3)"},
    {"GETTUPLE", "GETTUPLE:i32(%8)[index=1]", "i32(4)"},
    {"GETADDR", "GETADDR:u64(%3)", "u64(2,3)"},
    {"PROGRAM", "PROGRAM:void(%8)", "void"},
    {"LINEAR", "LINEAR:void(%3,%4)", "void"},
    {"SOURCE", "SOURCE:void()[name=\"int f();\"]", "void"},
    {"BINARY", "BINARY:void()[name=\"7f454c46\"]", "void"},
    {"CUSTOM", "CUSTOM:void(%3)[name=\"f(%0);\"]", "void"},
    {"CUSTOMI", "CUSTOMI:f32(%3)[name=\"f(%0)\"]", "f32()"},
    {"CUSTOM_FUNCTION", "CUSTOM_FUNCTION:void(%3)[name=\"f\"]", "void"},
    {"INS", "INS:void()[name=\"s_nop 0\"]", "void"},
    {"WAIT", "WAIT:void(%3)", "void"},
    {"REWRITE_ERROR", "REWRITE_ERROR:f32(%3)", "f32(2,3)"},
    {"CONTIGUOUS_BACKWARD", "CONTIGUOUS_BACKWARD:f32(%3)", "f32(2,3)"},
    {"DETACH", "DETACH:i32(%7)", "i32(4)"},
    {"COPY", "COPY:f32(%3)", "f32(2,3)"},
    {"MSELECT", "MSELECT:f32(%3)[index=1]", "f32(2,3)"},
    {"MSTACK", "MSTACK:f32(%3,%4)", "f32(2,3)"},
    {"ALLREDUCE", "ALLREDUCE:f32(%3)[op=MAX]", "f32(2,3)"},
    {"UNSHARD", "UNSHARD:f32(%3)[axes=(1,4)]", "f32(2,12)"},
};
const Row malformed[] = {
    {"FUNCTION", "FUNCTION:i32(%3,%4)", "FUNCTION of these operands is f32, not i32"},
    {"FUNCTION", "FUNCTION:f32()", "FUNCTION needs operands"},
    {"CALL", "CALL:f32(%3)", "CALL of these operands is void, not f32"},
    {"GETTUPLE", "GETTUPLE:f32(%8)[index=2]", "GETTUPLE: element 2 of 2"},
    {"GETTUPLE", "GETTUPLE:f32(%8)[index=1]", "GETTUPLE: element 1 is i32"},
    {"GETTUPLE", "GETTUPLE:f32(%3)[index=0]", "GETTUPLE: of PARAM, no TUPLE"},
    {"GETADDR", "GETADDR:f32(%3)", "GETADDR of these operands is u64, not f32"},
    {"SOURCE", "SOURCE:i32()[name=\"\"]", "SOURCE of these operands is void, not i32"},
    {"PROGRAM", "PROGRAM:void()", "PROGRAM needs operands"},
    {"MSELECT", "MSELECT:f32(%3)[index=-1]", "MSELECT: selects no device"},
    {"MSTACK", "MSTACK:f32(%3,%7)", "MSTACK: copies differ in shape"},
    {"ALLREDUCE", "ALLREDUCE:f32(%3)[op=SUB]", "ALLREDUCE: not a reduce op"},
    {"ALLREDUCE", "ALLREDUCE:f32(%8)[op=ADD]", "ALLREDUCE: an operand without a value"},
    {"UNSHARD", "UNSHARD:f32(%3)[axes=(2,4)]", "UNSHARD: axis out of range"},
    {"UNSHARD", "UNSHARD:f32(%3)[axes=(0,0)]", "UNSHARD: needs a device"},
    {"UNSHARD", "UNSHARD:f32(%3)", "UNSHARD: "},
    {"WAIT", "WAIT:f32(%3)", "WAIT is void"},
};

class Ops : public ::testing::Test {
 protected:
  static std::variant<UOp, ParseError> read(std::string_view node) {
    return parse_uops(fmt::format("{}%9={}\n", leaves, node));
  }
  static std::string type_of(UOp u) {
    std::string s(dtype_name(u.dtype()));
    if (u.has_shape()) s += fmt::format("({})", fmt::join(u.shape(), ","));
    return s;
  }
  Arena arena;
  Arena::Scope scope{arena};
};

TEST_F(Ops, HaveADTypeAndAShape) {
  for (const Row& row : well_formed) {
    const auto parsed = read(row.node);
    ASSERT_TRUE(std::holds_alternative<UOp>(parsed))
        << row.node << ": " << std::get<ParseError>(parsed).message;
    const UOp u = std::get<UOp>(parsed);
    EXPECT_EQ(op_name(u.op()), row.op);
    EXPECT_EQ(type_of(u), row.type) << row.node;
    EXPECT_TRUE(std::get<UOp>(parse_uops(print_uops(u))) == u) << print_uops(u);
    Arena other;
    const Arena::Scope inner(other);
    EXPECT_EQ(print_uops(std::get<UOp>(read(row.node))), print_uops(u));
  }
}
TEST_F(Ops, MalformedOnesAreRefused) {
  for (const Row& row : malformed) {
    const auto parsed = read(row.node);
    ASSERT_TRUE(std::holds_alternative<ParseError>(parsed)) << row.node;
    EXPECT_NE(std::get<ParseError>(parsed).message.find(row.type), std::string::npos)
        << row.node << ": " << std::get<ParseError>(parsed).message;
  }
}
TEST_F(Ops, SeveralDevicesAreNotScheduledYet) {
  int refused = 0;
  for (const Row& row : well_formed) {
    const UOp u = std::get<UOp>(read(row.node));
    if (!u.has_shape()) continue;
    const auto error = verify(make(Op::SINK, DType::Void, {u}), Stage::Tensor, 1);
    if (row.op == "DETACH") {
      EXPECT_FALSE(error) << *error;
      continue;
    }
    ASSERT_TRUE(error) << row.node;
    refused += error->find("graphs over several are not scheduled yet") != std::string::npos;
  }
  EXPECT_EQ(refused, 5);
}

}  // namespace
}  // namespace beamline
