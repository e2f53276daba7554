// Workload files: every mistake with its place, expansion, names, overrides, selection, content
// hashes.
#include "workloads/workload_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "workloads/builder.h"
#include "workloads/selection.h"

#include "test_paths.h"

namespace beamline::workloads {
namespace {

// All mistakes of a text: of the file, then of its instances, then of their graphs.
std::vector<WorkloadError> mistakes(const std::string& text) {
  LoadedFile f = parse_workload_file("w.toml", text);
  if (!f.errors.empty()) return f.errors;
  std::vector<WorkloadError> errors;
  std::vector<Instance> all;
  for (const WorkloadDef& d : f.workloads)
    for (Instance& in : expand(d, {}, errors)) all.push_back(std::move(in));
  return errors.empty() ? check(all) : errors;
}

const std::string head = "[[workload]]\nname = \"w\"\n";                           // lines 1, 2
const std::string tail = "inputs = { x = \"f32[4]\" }\ncompute = \"return x\"\n";  // needs no more

struct Mistake {
  std::string text;
  int line, column;
  std::string message, expected;  // parts of them
};

// clang-format off
const Mistake file_mistakes[] = {
    // TOML itself
    {"[[workload]\n", 1, 12, "", ""},
    {"[[workload]]\nname = \"w\nx", 2, 10, "", ""},
    {"[[workload]]\nname = \"w\"\nname = \"v\"\n", 3, 8, "cannot redefine", ""},
    {"", 1, 1, "no workload", "at least one [[workload]]"},
    {"\xff\xfe", 1, 1, "", ""},
    // top level
    {"title = 3\n", 1, 1, "unknown key 'title'", "[[workload]] tables only"},
    {"[[workloads]]\nname = \"w\"\n", 1, 3, "unknown key 'workloads'; did you mean 'workload'?", ""},
    {"[workload]\nname = \"w\"\n", 1, 2, "'workload' is a table", "[[workload]] tables"},
    {"workload = [1, 2]\n", 1, 1, "'workload' is an array", "[[workload]] tables"},
    // missing and unknown keys
    {"[[workload]]\n" + tail, 1, 1, "key 'name' is missing", "name = "},
    {head + "compute = \"return 1\"\n", 1, 1, "key 'inputs' is missing", "inputs = "},
    {head + "inputs = { x = \"f32[4]\" }\n", 1, 1, "key 'compute' is missing", "compute = "},
    {head + tail + "wieght = 2.0\n", 5, 1, "unknown key 'wieght'; did you mean 'weight'?", "name, params"},
    {head + tail + "Repeat = 2\n", 5, 1, "did you mean 'repeat'?", ""},
    // wrong types and values
    {"[[workload]]\nname = 3\n" + tail, 2, 8, "'name' is an integer", "a string"},
    {"[[workload]]\nname = \"a b\"\n" + tail, 2, 8, "name 'a b' is not a plain word", "letters"},
    {"[[workload]]\nname = \"\"\n" + tail, 2, 8, "not a plain word", ""},
    {head + tail + head + tail, 6, 8, "workload 'w' is defined twice, first at line 1", "a unique name"},
    {head + tail + "weight = \"1\"\n", 5, 10, "'weight' is a string", "a number >= 0"},
    {head + tail + "weight = -1.0\n", 5, 10, "'weight' is -1", "a number >= 0"},
    {head + tail + "weight = inf\n", 5, 10, "'weight' is inf", ""},
    {head + tail + "repeat = 1.5\n", 5, 10, "'repeat' is a float", "an integer >= 1"},
    {head + tail + "repeat = 0\n", 5, 10, "'repeat' is 0", "an integer >= 1"},
    {head + tail + "tolerance = true\n", 5, 13, "'tolerance' is a boolean", ""},
    {head + tail + "tags = \"a\"\n", 5, 8, "'tags' is a string", "an array of strings"},
    {head + tail + "tags = [\"a\", 3]\n", 5, 14, "a tag is an integer", "a string"},
    {head + tail + "math = \"fast\"\n", 5, 8, "unknown value 'fast'", "\"strict\" or \"relaxed\""},
    {head + tail + "math = \"relaxd\"\n", 5, 8, "did you mean 'relaxed'?", ""},
    {head + tail + "expand = \"zop\"\n", 5, 10, "did you mean 'zip'?", "\"product\" or \"zip\""},
    {head + tail + "weight = 1979-05-27\n", 5, 10, "'weight' is a date or time", ""},
    // params
    {head + tail + "params = 3\n", 5, 10, "'params' is an integer", "a table"},
    {head + tail + "params = { M = 1.5 }\n", 5, 16, "a value of 'M' is a float", "an integer or an array of integers"},
    {head + tail + "params = { M = [1, \"2\"] }\n", 5, 20, "a value of 'M' is a string", ""},
    {head + tail + "params = { M = [] }\n", 5, 16, "'M' has no values", ""},
    {head + tail + "params = { \"a b\" = 1 }\n", 5, 12, "a param 'a b' is not a name", ""},
    {head + tail + "params = { inf = 1 }\n", 5, 12, "'inf' is reserved", "another name"},
    {head + tail + "params = { x = 1 }\n", 3, 12, "'x' is a param already", "another name"},
    {head + tail + "params = { M = [1, 2], expand = \"zip\" }\n", 5, 24, "'expand' stands among the params", "beside 'params'"},
    {head + tail + "expand = \"zip\"\nparams = { M = [1, 2], N = [1, 2, 3] }\n", 6, 24, "'N' has 3 values, 'M' has 2", "zip"},
    {head + tail + "params = { M = [1, 2, 1] }\n", 5, 12, "instance 'w/M=1' appears twice", "distinct"},
    // inputs
    {head + "inputs = 3\ncompute = \"return 1\"\n", 3, 10, "'inputs' is an integer", "a table"},
    {head + "inputs = { x = 3 }\ncompute = \"return x\"\n", 3, 16, "'x' is an integer", "dtype"},
    {head + "inputs = { true = \"f32\" }\ncompute = \"return 1\"\n", 3, 12, "'true' is reserved", ""},
    {head + "inputs = { f32 = \"f32\" }\ncompute = \"return 1\"\n", 3, 12, "'f32' is reserved", ""},
    {head + "inputs = { x = \"f23[4]\" }\ncompute = \"return x\"\n", 3, 17, "unknown dtype 'f23'; did you mean 'f32'?", "bool, i8"},
    {head + "inputs = { x = \"weakint[4]\" }\ncompute = \"return x\"\n", 3, 17, "unknown dtype 'weakint'", ""},
    {head + "inputs = { x = \"f32[4\" }\ncompute = \"return x\"\n", 3, 20, "'[' is never closed", ""},
    {head + "inputs = { x = \"f32[4] 5\" }\ncompute = \"return x\"\n", 3, 24, "unexpected '5'", "the end"},
    {head + "inputs = { x = \"f32(4)\" }\ncompute = \"return x\"\n", 3, 20, "unexpected '('", ""},
    {head + "inputs = { x = \"\" }\ncompute = \"return x\"\n", 3, 17, "unexpected end of text", "a dtype and dims"},
    {head + "inputs = { x = \"f32[N]\" }\ncompute = \"return x\"\n", 3, 21, "unknown param 'N'", "there are no params"},
    {head + "params = { N = 4 }\ninputs = { x = \"f32[M, N]\" }\ncompute = \"return x\"\n", 4, 21, "unknown param 'M'", "N"},
    {head + "inputs = { x = \"f32[2, 3 - 4]\" }\ncompute = \"return x\"\n", 3, 26, "dim (3 - 4) is -1", "a dim >= 0"},
    {head + "inputs = { x = \"f32[7 / 2]\" }\ncompute = \"return x\"\n", 3, 23, "dim (7 / 2) is no integer", "'//'"},
    {head + "inputs = { x = \"f32[4 // 0]\" }\ncompute = \"return x\"\n", 3, 23, "division by zero", ""},
    {head + "inputs = { x = \"f32[1048576, 1048576, 2]\" }\ncompute = \"return x\"\n", 3, 39, "the input is too large", "2^40"},
    {head + "inputs = { x = { dist = \"ones\" } }\ncompute = \"return x\"\n", 3, 12, "key 'dtype' is missing", ""},
    {head + "inputs = { x = { dtype = \"f32[4]\", dits = \"ones\" } }\ncompute = \"return x\"\n", 3, 36, "unknown key 'dits'; did you mean 'dist'?", "dtype, dist or const"},
    {head + "inputs = { x = { dtype = \"f32[4]\", const = 1 } }\ncompute = \"return x\"\n", 3, 44, "'const' is an integer", "true or false"},
    {head + "inputs = { x = { dtype = 4 } }\ncompute = \"return x\"\n", 3, 26, "'dtype' is an integer", ""},
    {head + "inputs = { x = { dtype = \"f32[4]\", dist = \"gauss 0 1\" } }\ncompute = \"return x\"\n", 3, 44, "unknown dist 'gauss'", "int LO..HI"},
    {head + "inputs = { x = { dtype = \"f32[4]\", dist = \"uniform\" } }\ncompute = \"return x\"\n", 3, 51, "'uniform' without a range", "uniform LO..HI"},
    {head + "inputs = { x = { dtype = \"f32[4]\", dist = \"uniform 1..-1\" } }\ncompute = \"return x\"\n", 3, 52, "the range 1..-1 is empty", "LO <= HI"},
    {head + "inputs = { x = { dtype = \"f32[4]\", dist = \"normal 0\" } }\ncompute = \"return x\"\n", 3, 51, "'normal' needs two numbers", ""},
    {head + "inputs = { x = { dtype = \"f32[4]\", dist = \"normal 0 -1\" } }\ncompute = \"return x\"\n", 3, 53, "the deviation is -1", ">= 0"},
    {head + "inputs = { x = { dtype = \"f16[4]\", dist = \"uniform 0..1e6\" } }\ncompute = \"return x\"\n", 3, 55, "1000000 is no finite f16", ""},
    {head + "inputs = { x = { dtype = \"i32[4]\", dist = \"normal 0 1\" } }\ncompute = \"return x\"\n", 3, 44, "a normal dist makes no i32", "int LO..HI"},
    {head + "inputs = { x = { dtype = \"u8[4]\", dist = \"int 0..256\" } }\ncompute = \"return x\"\n", 3, 50, "256 does not fit u8", ""},
    {head + "inputs = { x = { dtype = \"i32[4]\", dist = \"int 0..1.5\" } }\ncompute = \"return x\"\n", 3, 51, "bound 1.5 is no integer", ""},
    {head + "inputs = { x = { dtype = \"i32[4]\", dist = \"int 0..V-1\" } }\ncompute = \"return x\"\n", 3, 51, "unknown param 'V'", ""},
    {head + "inputs = { x = { dtype = \"f32[4]\", dist = \"file\" } }\ncompute = \"return x\"\n", 3, 48, "'file' without a path", ".npy"},
    {head + "inputs = { x = { dtype = \"f32[4]\", dist = \"ones 3\" } }\ncompute = \"return x\"\n", 3, 49, "unexpected '3' after 'ones'", ""},
    // compute: positions inside the four notations of strings
    {head + "inputs = {}\ncompute = 3\n", 4, 11, "'compute' is an integer", "statements"},
    {head + "inputs = {}\ncompute = \"return y\"\n", 4, 19, "unknown name 'y'", ""},
    {head + "inputs = {}\ncompute = 'return y'\n", 4, 19, "unknown name 'y'", ""},
    {head + "inputs = {}\ncompute = '''\na = 1\nreturn a + y\n'''\n", 6, 12, "unknown name 'y'", ""},
    {head + "inputs = {}\ncompute = '''return y'''\n", 4, 21, "unknown name 'y'", ""},
    {head + "inputs = {}\ncompute = \"\"\"\r\na = 1\r\n  return a + y\r\n\"\"\"\n", 6, 14, "unknown name 'y'", ""},
    {head + "inputs = {}\ncompute = \"a = 1\\nreturn y\"\n", 4, 26, "unknown name 'y'", ""},
    {head + "inputs = {}\ncompute = \"\"\"a = 1 \\\n    + y\nreturn a\"\"\"\n", 5, 7, "unknown name 'y'", ""},
    {head + "inputs = {}\ncompute = \"# \\u00e9\xc3\xa9\\nreturn y\"\n", 4, 30, "unknown name 'y'", ""},
    {head + "inputs = {}\ncompute = \"return 1 +\"\n", 4, 22, "unexpected end of text", ""},
};
// clang-format on

TEST(WorkloadFile, MistakesHavePlaces) {
  for (const Mistake& m : file_mistakes) {
    const std::vector<WorkloadError> errors = mistakes(m.text);
    ASSERT_FALSE(errors.empty()) << m.text;
    const WorkloadError& e = errors[0];
    EXPECT_EQ(e.file, "w.toml");
    EXPECT_EQ((SourcePos{e.line, e.column}), (SourcePos{m.line, m.column})) << m.text << "\n"
                                                                            << to_string(e);
    EXPECT_NE(e.message.find(m.message), std::string::npos) << m.text << "\n" << to_string(e);
    EXPECT_NE(e.expected.find(m.expected), std::string::npos) << m.text << "\n" << to_string(e);
    EXPECT_FALSE(e.message.empty());
  }
}

TEST(WorkloadFile, ReportsAllMistakesInOrder) {
  const std::vector<WorkloadError> e = mistakes(
      "[[workload]]\nname = \"w\"\nwieght = 1\nrepeat = 0\ninputs = { x = \"f99\" }\ncompute = "
      "\"return x +\"\nmath = 1\n");
  ASSERT_EQ(e.size(), 5U);
  for (size_t i = 0; i < e.size(); i++)
    EXPECT_EQ(e[i].line, static_cast<int>(i) + 3) << to_string(e[i]);
  EXPECT_EQ(e[0].field, "w.wieght");
  EXPECT_EQ(to_string(e[1]), "w.toml:4:10: w.repeat: 'repeat' is 0 (expected an integer >= 1)");
}

WorkloadDef only(const std::string& text) {
  LoadedFile f = parse_workload_file("w.toml", text);
  EXPECT_TRUE(f.errors.empty()) << (f.errors.empty() ? "" : to_string(f.errors[0]));
  return f.workloads.at(0);
}
std::vector<std::string> names_of(const std::string& text,
                                  const std::vector<ParamOverride>& overrides = {}) {
  std::vector<WorkloadError> errors;
  std::vector<std::string> names;
  for (const Instance& in : expand(only(text), overrides, errors)) names.push_back(in.name);
  for (const WorkloadError& e : errors) names.push_back(to_string(e));
  return names;
}
using Names = std::vector<std::string>;

TEST(WorkloadFile, ExpandsInFileOrder) {
  EXPECT_EQ(names_of(head + tail), Names{"w"});
  EXPECT_EQ(names_of(head + tail + "params = { }\n"), Names{"w"});
  // Z before A in the file, before A in the name; the last param runs fastest.
  EXPECT_EQ(names_of(head + tail + "params = { Z = [3, 1], A = [7, 8] }\n"),
            (Names{"w/Z=3,A=7", "w/Z=3,A=8", "w/Z=1,A=7", "w/Z=1,A=8"}));
  EXPECT_EQ(names_of(head + tail + "[workload.params]\nb = -2\na = [1]\n"), Names{"w/b=-2,a=1"});
  EXPECT_EQ(
      names_of(head + tail + "expand = \"zip\"\nparams = { M = [1, 2], K = 9, N = [4, 4] }\n"),
      (Names{"w/M=1,K=9,N=4", "w/M=2,K=9,N=4"}));
  EXPECT_EQ(
      names_of(head + tail + "params = { M = [1, 2], N = [4, 5] }\n", {{"M", {6}}, {"Q", {1}}}),
      (Names{"w/M=6,N=4", "w/M=6,N=5"}));
  EXPECT_EQ(names_of(head + tail + "expand = \"zip\"\nparams = { M = [1, 2], N = [4, 5] }\n",
                     {{"N", {7}}}),
            (Names{"w/M=1,N=7", "w/M=2,N=7"}));
  EXPECT_EQ(names_of(head + tail + "expand = \"zip\"\nparams = { M = [1, 2], N = [4, 5] }\n",
                     {{"N", {7, 8, 9}}}),
            Names{"w.toml:6:24: w.params.N: 3 values beside 2 (expected arrays of one length with "
                  "expand = \"zip\")"});
  std::string many = "params = { ";
  for (char c = 'a'; c < 'o'; c++) many += std::string(c == 'a' ? "" : ", ") + c + " = [1, 2]";
  EXPECT_NE(names_of(head + tail + many + " }\n").at(0).find("too many instances"),
            std::string::npos);
}

TEST(WorkloadFile, ReadsEveryField) {
  const WorkloadDef d = only(R"([[workload]]
name = "gemm"
params = { M = [128, 512], N = 8 }
inputs = { a = "f16[M, N * 2 - 1]", ids = { dtype = "i64[N]", dist = "int -N..M // 2", const = true }, s = "f32", e = "f32[0, N]" }
compute = 'return a'
weight = 2
repeat = 3
tags = ["x", "y"]
tolerance = 1e-2
math = "relaxed"
)");
  std::vector<WorkloadError> errors;
  const std::vector<Instance> all = expand(d, {}, errors);
  ASSERT_TRUE(errors.empty());
  ASSERT_EQ(all.size(), 2U);
  const Instance& in = all[1];
  EXPECT_EQ(in.name, "gemm/M=512,N=8");
  EXPECT_EQ(in.params, (Params{{"M", 512}, {"N", 8}}));
  EXPECT_EQ(in.weight, 2);
  EXPECT_EQ(in.repeat, 3);
  EXPECT_EQ(in.tags, (Names{"x", "y"}));
  EXPECT_EQ(in.tolerance, 1e-2);
  EXPECT_TRUE(in.relaxed);
  ASSERT_EQ(in.inputs.size(), 4U);
  EXPECT_EQ(in.inputs[0].name, "a");
  EXPECT_EQ(in.inputs[0].dtype, DType::F16);
  EXPECT_EQ(in.inputs[0].shape, (std::vector<int64_t>{512, 15}));
  EXPECT_EQ(in.inputs[0].bytes(), 512 * 15 * 2);
  EXPECT_EQ(in.inputs[0].dist.kind, DistKind::Uniform);
  EXPECT_EQ(in.inputs[0].dist.first, -1);
  EXPECT_TRUE(in.inputs[1].constant);
  EXPECT_EQ(in.inputs[1].dist.kind, DistKind::Int);
  EXPECT_EQ(in.inputs[1].dist.lowest, -8);
  EXPECT_EQ(in.inputs[1].dist.highest, 256);
  EXPECT_TRUE(in.inputs[2].shape.empty());
  EXPECT_EQ(in.inputs[3].elements(), 0);
}

TEST(WorkloadFile, ContentHash) {
  const auto hash = [](const std::string& text) {
    std::vector<WorkloadError> errors;
    return expand(only(text), {}, errors).at(0).content_hash;
  };
  const auto make = [&](const char* name, const char* input, const char* compute,
                        const char* rest) {
    return hash(std::string("[[workload]]\nname = \"") + name +
                "\"\nparams = { M = 4 }\ninputs = { x = \"" + input + "\" }\ncompute = '''" +
                compute + "'''\n" + rest);
  };
  const std::string base = make("a", "f32[M]", "return x*2", "");
  EXPECT_EQ(base.size(), 64U);
  EXPECT_EQ(base, make("b", "f32[4]", "\n# other words\nreturn ( x * 2 )\n",
                       "weight = 7\nrepeat = 2\ntags = [\"t\"]\ntolerance = 0.1\n"));
  EXPECT_NE(base, make("a", "f16[M]", "return x*2", ""));
  EXPECT_NE(base, make("a", "f32[M + 1]", "return x*2", ""));
  EXPECT_NE(base, make("a", "f32[M]", "return x*3", ""));
  EXPECT_NE(base, make("a", "f32[M]", "return x*2.0", ""));
  EXPECT_NE(base, make("a", "f32[M]", "return x*2", "math = \"relaxed\"\n"));
}

TEST(WorkloadFile, ParamOverrides) {
  const auto good = parse_param_override("M=128,-4");
  ASSERT_TRUE(std::holds_alternative<ParamOverride>(good));
  EXPECT_EQ(std::get<ParamOverride>(good).name, "M");
  EXPECT_EQ(std::get<ParamOverride>(good).values, (std::vector<int64_t>{128, -4}));
  for (const char* bad :
       {"", "M", "=3", "M=", "M=1,", "M=1.5", "M=x", "a b=1", "M=9223372036854775808"})
    EXPECT_TRUE(std::holds_alternative<std::string>(parse_param_override(bad))) << bad;
  EXPECT_NE(std::get<std::string>(parse_param_override("M=1,x")).find("column 5"),
            std::string::npos);
}

class SelectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::temp_directory_path() /
           ("beamline_workloads_" + std::to_string(getpid()) + "_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(dir_ / "sub");
    write("a.toml", head + tail + "params = { M = [1, 2], N = [10, 20] }\n");
    write("sub/b.toml", "[[workload]]\nname = \"v\"\n" + tail);
    write("note.txt", "no workload");
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  static Names names(const Selection& s) {
    Names out;
    for (const Instance& in : s.instances) out.push_back(in.name);
    for (const WorkloadError& e : s.errors) out.push_back(e.message);
    return out;
  }
  std::filesystem::path dir_;
};

TEST_F(SelectionTest, FilesDirectoriesGlobs) {
  EXPECT_EQ(names(select({path("sub/b.toml")})), Names{"v"});
  EXPECT_EQ(names(select({dir_.string()})),
            (Names{"w/M=1,N=10", "w/M=1,N=20", "w/M=2,N=10", "w/M=2,N=20", "v"}));
  EXPECT_EQ(names(select({path("a.toml") + ":w/M=2*"})), (Names{"w/M=2,N=10", "w/M=2,N=20"}));
  EXPECT_EQ(names(select({path("a.toml") + ":*N=?0", path("a.toml") + ":w/M=1,N=10"})).size(), 4U)
      << "each once";
  EXPECT_EQ(names(select({path("a.toml") + ":w/M=3*"})), Names{"no instance matches 'w/M=3*'"});
  EXPECT_EQ(names(select({path("a.toml") + ":w/M=1,N=11"})).at(0),
            "no instance matches 'w/M=1,N=11'; did you mean 'w/M=1,N=10'?");
  EXPECT_EQ(names(select({path("none.toml")})), Names{"no such file or directory"});
  EXPECT_EQ(names(select({path("note.txt")})), Names{"not a workload file"});
  EXPECT_TRUE(is_workload_argument(path("a.toml") + ":w*"));
  EXPECT_FALSE(is_workload_argument(path("k.uop")));
  EXPECT_EQ(names(select({path("a.toml")}, {{"M", {5}}})), (Names{"w/M=5,N=10", "w/M=5,N=20"}));
  EXPECT_EQ(names(select({path("sub/b.toml")}, {{"M", {5}}})).back(),
            "no selected workload has a param 'M'");
  std::filesystem::create_directories(dir_ / "empty");
  EXPECT_EQ(names(select({path("empty")})), Names{"no .toml file in the directory"});
}

// Whatever is done to a good file, reading it ends, and says something or nothing; it does not
// crash.
TEST(WorkloadFile, MutationsNeverCrash) {
  const std::string good = R"([[workload]]
name = "gemm_bias_gelu"
params = { M = [128, 512], N = 64, K = 32 }
inputs = { a = "f32[M, K]", b = { dtype = "f32[K, N]", dist = "uniform -1..1", const = true }, bias = "f32[N * 2 // 2]" }
compute = '''
h = matmul(a, b) + bias[newaxis, :]   # comment
p, q = split(h, 2, axis=-1)
r = where(p < 0.5, softmax(q, axis=[0, 1]), -q ** 2) @ ones([N // 2, 3])
return reshape(r, [-1]), tril(h)[::-2, 1:-1], sum(h, axis=1, keepdims=true), concat(p, q, axis=1)
'''
weight = 1.5
tags = ["a"]
)";
  ASSERT_TRUE(mistakes(good).empty()) << to_string(mistakes(good)[0]);
  const std::string pieces[] = {"(",    ")",       "[",   "]",          "'''",  "\"",   "\n",  "=",
                                ",",    "-1",      "0",   "9999999999", "inf",  "**",   "..",  ":",
                                "none", "newaxis", "...", "\\",         "\xff", "sum(", "f16", " "};
  std::mt19937 rng(7);
  size_t wrong = 0;
  for (int i = 0; i < 4000; i++) {
    std::string s = good;
    for (unsigned k = rng() % 3; k < 3; k++) {
      const size_t at = rng() % s.size();
      switch (rng() % 4) {
        case 0: s.erase(at, 1 + rng() % 6); break;
        case 1: s.insert(at, pieces[rng() % std::size(pieces)]); break;
        case 2: s[at] = static_cast<char>(rng() % 256); break;
        default: s.insert(at, s.substr(rng() % s.size(), rng() % 20));
      }
      if (s.empty()) s = " ";
    }
    for (const WorkloadError& e : mistakes(s)) {
      EXPECT_FALSE(e.message.empty());
      EXPECT_GE(e.line, 1);
      EXPECT_GE(e.column, 1);
      wrong++;
    }
  }
  EXPECT_GT(wrong, 1000U);  // the mutations do reach the checks
}

TEST(WorkloadFile, ShippedFilesAreGood) {
  const Selection s = select({std::string(BEAMLINE_SOURCE_DIR) + "/workloads"});
  for (const WorkloadError& e : s.errors) ADD_FAILURE() << to_string(e);
  for (const WorkloadError& e : check(s.instances)) ADD_FAILURE() << to_string(e);
  Names names;
  for (const Instance& in : s.instances) names.push_back(in.name);
  for (const char* n : {"matmul/M=512,N=512,K=512", "matmul_odd/M=127,N=129,K=131",
                        "elementwise/N=4194304", "rowsum/R=2048,C=2048", "softmax/R=1024,C=1024"})
    EXPECT_NE(std::find(names.begin(), names.end(), n), names.end()) << n;
}

}  // namespace
}  // namespace beamline::workloads
