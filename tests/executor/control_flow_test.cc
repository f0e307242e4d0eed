// while and conditional_block, inside each other, with arrays.
#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

struct Setting {
  int threads;
  Schedule schedule;
  int opt_level;
};

class ControlFlow : public ::testing::TestWithParam<Setting> {
 protected:
  ControlFlow() : executor_({.threads = GetParam().threads}) {}
  CompiledProgram Compile(const ProgramBuilder& b, std::shared_ptr<Scope> scope = nullptr) {
    return MustCompile(executor_, b.Build(), std::move(scope),
                       {.opt_level = GetParam().opt_level, .schedule = GetParam().schedule});
  }
  Executor executor_;
};

INSTANTIATE_TEST_SUITE_P(
    All, ControlFlow,
    ::testing::Values(Setting{1, Schedule::kSerial, 0}, Setting{1, Schedule::kParallel, 2},
                      Setting{2, Schedule::kParallel, 0}, Setting{8, Schedule::kParallel, 2},
                      Setting{2, Schedule::kLanes, 0}, Setting{3, Schedule::kLanes, 2},
                      Setting{2, Schedule::kAuto, 2}),
    [](const auto& info) {
      return std::to_string(static_cast<int>(info.param.schedule)) + "T" +
             std::to_string(info.param.threads) + "Opt" + std::to_string(info.param.opt_level);
    });

// for (i = 0; i < limit; ++i) { body }: the caller fills the body, then calls EndFor.
int For(ProgramBuilder& b, const std::string& i, const std::string& limit) {
  b.Fill(i, {1}, 0).Binary("less_than", i, limit, "go_" + i);
  const int body = b.Block(b.current());
  b.In(body);
  return body;
}
void EndFor(ProgramBuilder& b, const std::string& i, const std::string& limit, int outer, int body,
            std::vector<std::string> reads, std::vector<std::string> writes) {
  b.Increment(i).Binary("less_than", i, limit, "go_" + i).In(outer);
  reads.push_back(i);
  reads.push_back(limit);
  writes.push_back(i);
  writes.push_back("go_" + i);
  b.Op("while", {{"X", reads}, {"Condition", {"go_" + i}}}, {{"Out", writes}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{body}}});
}

// sum = 0; for i < n: for j < m: if (i < j) sum += x
ProgramBuilder ThreeDeep() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kF32, {1}).Feed("m", DType::kF32, {1});
  b.Scale("x", "sum", 0);
  const int outer = For(b, "i", "n");
  const int inner = For(b, "j", "m");
  b.Binary("less_than", "i", "j", "smaller");
  const int taken = b.Block(inner);
  b.In(taken).Binary("elementwise_add", "sum", "x", "sum").In(inner);
  b.Op("conditional_block", {{"Cond", {"smaller"}}, {"Input", {"sum", "x"}}},
       {{"Out", {"sum"}}, {"Scope", {}}},
       {{"sub_block", BlockRef{taken}}, {"is_scalar_condition", true}});
  EndFor(b, "j", "m", outer, inner, {"sum", "x", "i"}, {"sum"});
  EndFor(b, "i", "n", 0, outer, {"sum", "x", "m"}, {"sum"});
  b.Scale("sum", "y", 1).Fetch("y").Fetch("i");
  return b;
}

// for i < n: for j < m: if i < j: sum += x
TEST_P(ControlFlow, ABranchInALoopInALoop) {
  auto compiled = Compile(ThreeDeep());
  for (const auto& [n, m] : {std::pair{3, 4}, {0, 5}, {5, 0}, {1, 1}, {6, 6}, {3, 4}}) {
    int times = 0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < m; ++j) times += i < j;
    const auto out = MustRun(executor_, compiled,
                             {{"x", F32({2}, {1, 10})},
                              {"n", F32({1}, {static_cast<float>(n)})},
                              {"m", F32({1}, {static_cast<float>(m)})}});
    const auto t = static_cast<float>(times);
    EXPECT_EQ(Floats(out[0]), (Rows{t, 10 * t})) << n << " " << m;
    EXPECT_EQ(Floats(out[1]), (Rows{static_cast<float>(n)}));
  }
  EXPECT_EQ(executor_.plans_built(), 1);
}

TEST_P(ControlFlow, OtherShapesInTheSameLoop) {
  auto compiled = Compile(ThreeDeep());
  for (int64_t size : {1, 1000, 3}) {
    const auto out = MustRun(executor_, compiled,
                             {{"x", F32({size}, Rows(static_cast<size_t>(size), 2.f))},
                              {"n", F32({1}, {2})},
                              {"m", F32({1}, {3})}});
    EXPECT_EQ(Floats(out[0]), Rows(static_cast<size_t>(size), 6.f));
  }
}

TEST_P(ControlFlow, AnArrayKeepsWhatWasWrittenWhenItsSourceGoesOn) {
  ProgramBuilder b;
  b.Feed("n", DType::kF32, {1}).Array("items");
  b.Fill("v", {1}, 10).Fill("at", {1}, 0, DType::kI64);
  const int body = For(b, "i", "n");
  b.Op("write_to_array", {{"X", {"v"}}, {"I", {"at"}}}, {{"Out", {"items"}}});
  b.Increment("at").Increment("v");
  EndFor(b, "i", "n", 0, body, {"v", "at", "items"}, {"items", "v", "at"});
  b.Unary("lod_array_length", "items", "length").Fetch("items").Fetch("length").Fetch("v");
  auto compiled = Compile(b);
  for (int n : {4, 10, 4, 0, 1}) {
    auto out = executor_.RunValues(compiled, {{"n", F32({1}, {static_cast<float>(n)})}});
    if (n == 0) {  // nothing was written: an error, or an array of none
      if (out.ok()) {
        EXPECT_TRUE((*out)[0].array().empty());
      }
      continue;
    }
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ASSERT_TRUE((*out)[0].is_array());
    ASSERT_EQ((*out)[0].array().size(), static_cast<size_t>(n));
    for (int k = 0; k < n; ++k)
      EXPECT_EQ(Floats((*out)[0].array()[static_cast<size_t>(k)]),
                (Rows{10.f + static_cast<float>(k)}));
    EXPECT_EQ((*out)[1].tensor().data<int64_t>()[0], n);
    EXPECT_EQ(Floats((*out)[2].tensor()), (Rows{10.f + static_cast<float>(n)}));
  }
}

TEST_P(ControlFlow, AnUntakenBlockLeavesItsOutputsAlone) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("flag", DType::kBool, {1});
  b.Scale("x", "y", 2);
  const int taken = b.Block(0);
  b.In(taken).Scale("x", "local", 10).Scale("local", "y", 10).In(0);
  b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"x"}}}, {{"Out", {"y"}}, {"Scope", {}}},
       {{"sub_block", BlockRef{taken}}, {"is_scalar_condition", true}});
  b.Scale("y", "z", 1).Fetch("z").Fetch("y");
  auto compiled = Compile(b);
  for (int round = 0; round < 4; ++round) {
    const bool flag = round % 2 == 1;
    const auto out = MustRun(executor_, compiled, {{"x", F32({1}, {3})}, {"flag", Bool(flag)}});
    EXPECT_EQ(Floats(out[0]), (Rows{flag ? 300.f : 6.f}));
    EXPECT_EQ(Floats(out[1]), (Rows{flag ? 300.f : 6.f}));
  }
}

TEST_P(ControlFlow, ParametersAreWrittenInsideALoop) {
  ProgramBuilder b;
  b.Feed("n", DType::kF32, {1}).Param("w", DType::kF32, {1});
  const int body = For(b, "i", "n");
  b.Scale("w", "w", 2);
  EndFor(b, "i", "n", 0, body, {"w"}, {"w"});
  b.Scale("w", "y", 1).Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({1}, {1}));
  auto compiled = Compile(b, scope);
  float w = 1;
  for (int n : {3, 0, 2}) {
    for (int k = 0; k < n; ++k) w *= 2;
    EXPECT_EQ(Floats(MustRun(executor_, compiled, {{"n", F32({1}, {static_cast<float>(n)})}})[0]),
              (Rows{w}));
    EXPECT_EQ(Floats(scope->Find("w")->tensor()), (Rows{w}));
  }
}

TEST_P(ControlFlow, ALoopThatNeverRunsReadsNothing) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("go", DType::kBool, {1});
  const int body = b.Block(0);
  b.Scale("x", "y", 1);
  b.In(body).Binary("elementwise_add", "y", "x", "y").Unary("logical_not", "go", "go").In(0);
  b.Op("while", {{"X", {"x", "y"}}, {"Condition", {"go"}}},
       {{"Out", {"y", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("y").Fetch("go");
  auto compiled = Compile(b);
  Tensor no = Bool(false), yes = Bool(true);
  EXPECT_EQ(Floats(MustRun(executor_, compiled, {{"x", F32({1}, {3})}, {"go", no}})[0]), (Rows{3}));
  EXPECT_EQ(Floats(MustRun(executor_, compiled, {{"x", F32({1}, {3})}, {"go", yes}})[0]),
            (Rows{6}));
  EXPECT_TRUE(*yes.data<bool>());  // the caller's condition is the caller's
}

// An array that a branch wrote in one run is in the next as if no run had been before.
TEST(ControlFlow, ArraysHoldNothingWhereNoBranchOfTheRunWroteThem) {
  for (const char* reader :
       {"lod_array_length", "assign", "select_input", "tensor_array_to_tensor"}) {
    SCOPED_TRACE(reader);
    const std::string type = reader;
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2}).Feed("go", DType::kBool, {1}).Array("a");
    b.Fill("i", {1}, 0, DType::kI64).Fill("mask", {1}, 0, DType::kI32);
    const int body = b.Block(0);
    b.In(body).Op("write_to_array", {{"X", {"x"}}, {"I", {"i"}}}, {{"Out", {"a"}}});
    b.In(0).Op("conditional_block", {{"Cond", {"go"}}, {"Input", {"x", "i"}}},
               {{"Out", {"a"}}, {"Scope", {}}},
               {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
    if (type == "assign" || type == "select_input") b.Array("y");
    if (type == "select_input")
      b.Op(type, {{"X", {"a"}}, {"Mask", {"mask"}}}, {{"Out", {"y"}}});
    else
      b.Unary(type, "a", "y");
    b.Fetch("y");
    const auto feeds = [](bool go) {
      Tensor flag = Tensor::Zeros(DType::kBool, {1});
      flag.mutable_data<bool>()[0] = go;
      return std::vector<heddle::Feed>{{"x", F32({2}, {1, 2})}, {"go", flag}};
    };
    Executor executor({.threads = 1});
    auto fresh = MustCompile(executor, b.Build(), nullptr);
    auto used = MustCompile(executor, b.Build(), nullptr);
    const auto before = executor.RunValues(fresh, feeds(false));
    const auto taken = executor.RunValues(used, feeds(true));
    EXPECT_TRUE(taken.ok()) << taken.status().ToString();
    const auto after = executor.RunValues(used, feeds(false));
    EXPECT_EQ(before.status().ToString(), after.status().ToString());
    if (!before.ok() || !after.ok()) continue;
    EXPECT_EQ((*before)[0].kind(), (*after)[0].kind());
  }
}

}  // namespace
}  // namespace heddle::testing
