// Operators from outside: their contract, shape functions, kernels and creators, and what heddle
// says of those that are wrong.
#include "executor/own_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "core/own_ops/own_registry.h"
#include "heddle/heddle.h"
#include "heddle/operators.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Adds an operator with input X and output Out once, however often a test runs.
void AddOnce(OwnOperator op) {
  if (op.inputs.empty()) op.inputs = {{.name = "X"}};
  if (op.outputs.empty()) op.outputs = {{.name = "Out"}};
  if (FindOwnOp(op.name) != nullptr) return;
  const Status added = AddOperator(std::move(op));
  ASSERT_TRUE(added.ok()) << added.ToString();
}

// Out = X + by
OwnKernel Adds(float by) {
  return [by](OwnKernelCall& call) {
    const Tensor& x = call.input("X");
    float* const to = call.output("Out").mutable_data<float>();
    call.ParallelFor(x.numel(), 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = x.data<float>()[i] + by;
    });
    return Status::Ok();
  };
}

Program ProgramOf(const std::string& type, const Attrs& attrs = {}, DType dtype = DType::kF32) {
  ProgramBuilder b;
  b.Feed("x", dtype, {-1});
  b.Op("scale", {{"X", {"x"}}}, {{"Out", {"h"}}}, {{"scale", 1.0}});
  b.Op(type, {{"X", {"h"}}}, {{"Out", {"y"}}}, attrs);
  b.Fetch("y");
  return b.Build();
}

Result<Tensor> RunOp(const std::string& type, const Tensor& x, const ExecutorOptions& options = {},
                     const Attrs& attrs = {}, int level = 2) {
  Executor executor(options);
  CompileOptions compile;
  compile.opt_level = level;
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(ProgramOf(type, attrs, x.dtype()), nullptr, compile));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, executor.Run(compiled, {{"x", x}}));
  return outputs[0];
}

std::string ErrorOf(const std::string& type, const Tensor& x) {
  std::string text;
  for (const int level : {0, 2}) {
    const auto made = RunOp(type, x, {.threads = 2}, {}, level);
    EXPECT_FALSE(made.ok());
    if (made.ok()) return "";
    text = made.status().ToString();
    EXPECT_THAT(text, HasSubstr("(" + type + " -> y)")) << level;
  }
  return text;
}

TEST(OwnOperator, RunsLikeAnother) {
  AddOnce({.name = "own_adds",
           .doc = "adds something",
           .attributes = {{"by", 2.5}, {"how", std::string("fast")}},
           .kernel = [](OwnKernelCall& call) {
             EXPECT_EQ(call.attribute<std::string>("how"), "fast");
             return Adds(static_cast<float>(call.attribute<double>("by")))(call);
           }});
  for (const int level : {0, 1, 2})
    for (const int64_t n : {0, 1, 3, 1000}) {
      const Tensor x = RandomF32({n}, 1);
      const auto made = RunOp("own_adds", x, {.threads = 2}, {{"by", 3.0}}, level);
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(Floats(*made)[i], x.data<float>()[i] + 3);
    }
  EXPECT_EQ(Floats(*RunOp("own_adds", F32({1}, {1}))), std::vector<float>{3.5});
  EXPECT_THAT(*DescribeOp("own_adds"),
              AllOf(HasSubstr("adds something"), HasSubstr("by: float = 2.5")));
  EXPECT_EQ(FactsOfOp("own_adds")->file, "");
  EXPECT_THAT(SupportedOps(), ::testing::Contains("own_adds"));
}

TEST(OwnOperator, ComesFromThePublicBuilderAndIsComputedAheadOfRuns) {
  static std::atomic<int> calls{0};
  AddOnce({.name = "own_counted", .kernel = [](OwnKernelCall& call) {
             ++calls;
             return Adds(1)(call);
           }});
  heddle::ProgramBuilder b("built");
  const auto x = b.Parameter("w", F32({2}, {1, 2}));
  const auto y = b.Apply("own_counted", {{"X", {*x}}});
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  EXPECT_EQ(b.Info(*y)->shape, Shape({2}));
  ASSERT_TRUE(b.Fetch(*y).ok());
  const auto model = std::move(b).Finish();
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(*model);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  for (int k = 0; k < 3; ++k) {
    const auto made = executor.Run(*compiled, {});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    EXPECT_EQ(Floats((*made)[0]), (std::vector<float>{2, 3}));
  }
  EXPECT_EQ(calls, 1);
}

TEST(OwnOperator, ASideEffectHappensInEachRun) {
  static std::atomic<int> calls{0};
  AddOnce({.name = "own_effect",
           .kernel =
               [](OwnKernelCall& call) {
                 ++calls;
                 return Adds(0)(call);
               },
           .side_effect = true});
  ProgramBuilder b;
  b.Param("w", DType::kF32, {2});
  b.Op("own_effect", {{"X", {"w"}}}, {{"Out", {"unread"}}});
  b.Scale("w", "y", 2);
  b.Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {1, 2}));
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build(), scope);
  for (int k = 0; k < 3; ++k) MustRun(executor, compiled, {});
  EXPECT_EQ(calls, 3);
}

// The elements that are greater than zero, whose number only the kernel knows.
TEST(OwnOperator, MayLeaveShapesToItsKernel) {
  const auto kernel = [](OwnKernelCall& call) {
    std::vector<float> kept;
    for (const float v : Floats(call.input("X")))
      if (v > 0) kept.push_back(v);
    Tensor& out = call.Allocate("Out", DType::kF32, {static_cast<int64_t>(kept.size())});
    std::copy(kept.begin(), kept.end(), out.mutable_data<float>());
    return Status::Ok();
  };
  AddOnce({.name = "own_positive", .like_first_input = false, .kernel = kernel});
  AddOnce({.name = "own_positive_said",
           .shapes =
               [](OwnShapeCall& call) {
                 call.SetOutput("Out", call.dtype("X"), {-1});
                 return Status::Ok();
               },
           .kernel = kernel});
  for (const std::string type : {"own_positive", "own_positive_said"}) {
    EXPECT_EQ(Floats(*RunOp(type, F32({4}, {1, -1, 0, 3}))), (std::vector<float>{1, 3})) << type;
    EXPECT_EQ(RunOp(type, F32({2}, {-1, 0}))->shape(), Shape({0})) << type;
    const Program program = ProgramOf(type);
    Executor executor({.threads = 1});
    const auto compiled = MustCompile(executor, program);
    for (const int n : {5, 2, 5}) {  // of one plan after another
      std::vector<float> x(static_cast<size_t>(n), 7);
      x[0] = -7;
      EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({n}, x)}})[0]),
                std::vector<float>(static_cast<size_t>(n) - 1, 7));
    }
  }
}

TEST(OwnOperator, ItsContractIsChecked) {
  AddOnce({.name = "own_floats",
           .inputs = {{.name = "X", .dtypes = {DType::kF32, DType::kF64}},
                      {.name = "Y", .optional = true, .same_as = "X"}},
           .kernel = Adds(0)});
  EXPECT_THAT(ErrorOf("own_floats", I64({2}, {1, 2})),
              HasSubstr("X has dtype int64, expected float32|float64"));
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("y", DType::kF64, {-1});
  b.Op("own_floats", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"z"}}});
  b.Fetch("z");
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build());
  const auto made =
      executor.Run(compiled, {{"x", F32({1}, {1})}, {"y", Tensor::Zeros(DType::kF64, {1})}});
  EXPECT_THAT(made.status().ToString(), HasSubstr("Y has dtype float64, expected float32 as X"));
}

TEST(OwnOperator, WhatItDoesWrongIsOneError) {
  const auto says = [](const std::string& name, OwnKernel kernel, const std::string& expected) {
    AddOnce({.name = name, .kernel = std::move(kernel)});
    EXPECT_THAT(ErrorOf(name, F32({2}, {1, 2})), HasSubstr(expected));
  };
  says(
      "own_fails", [](OwnKernelCall&) { return Status(StatusCode::kOutOfRange, "too far"); },
      "OUT_OF_RANGE");
  says(
      "own_throws", [](OwnKernelCall&) -> Status { throw std::runtime_error("what"); },
      "the kernel threw: what");
  says(
      "own_throws_int", [](OwnKernelCall&) -> Status { throw 7; }, "no std::exception");
  says(
      "own_exchanges",
      [](OwnKernelCall& call) {
        call.output("Out") = F32({3}, {1, 2, 3});
        return Status::Ok();
      },
      "the kernel exchanged output 'Out', float32 [2], for another tensor, float32 [3]");
  says(
      "own_allocates",
      [](OwnKernelCall& call) {
        call.Allocate("Out", DType::kF32, {2});
        return Status::Ok();
      },
      "whose shape the shape function has said");
  says(
      "own_misnames",
      [](OwnKernelCall& call) {
        call.input("Y");
        return Status::Ok();
      },
      "operator 'own_misnames' declares no input 'Y'");
  says(
      "own_misreads",
      [](OwnKernelCall& call) {
        call.input("X").data<int64_t>();
        return Status::Ok();
      },
      "the kernel: ");
  AddOnce({.name = "own_allocates_none", .like_first_input = false, .kernel = [](OwnKernelCall&) {
             return Status::Ok();
           }});
  EXPECT_THAT(ErrorOf("own_allocates_none", F32({2}, {1, 2})),
              HasSubstr("did not allocate output 'Out'"));
}

TEST(OwnOperator, WhatItsShapeFunctionDoesWrongIsOneError) {
  const auto says = [](const std::string& name, std::function<Status(OwnShapeCall&)> shapes,
                       const std::string& expected) {
    AddOnce({.name = name, .shapes = std::move(shapes), .kernel = [](OwnKernelCall& call) {
               if (call.op() == "own_allocates_other") call.Allocate("Out", DType::kF32, {2, 2});
               return Status::Ok();
             }});
    EXPECT_THAT(ErrorOf(name, F32({2}, {1, 2})), HasSubstr(expected));
  };
  says(
      "own_says_nothing", [](OwnShapeCall&) { return Status::Ok(); },
      "the shape function says nothing of output 'Out'");
  says(
      "own_shape_throws", [](OwnShapeCall&) -> Status { throw std::logic_error("why"); },
      "the shape function threw: why");
  says(
      "own_negative",
      [](OwnShapeCall& call) {
        call.SetOutput("Out", DType::kF32, {-3});
        return Status::Ok();
      },
      "has a negative dimension");
  says(
      "own_allocates_other",
      [](OwnShapeCall& call) {
        call.SetOutput("Out", DType::kF32, {-1, 3});
        return Status::Ok();
      },
      "the kernel allocated output 'Out' as float32 [2, 2]; the shape function said float32");
}

TEST(OwnOperator, CreatorsMakeKernels) {
  AddOnce({.name = "own_bare", .attributes = {{"by", int64_t{1}}}});
  AddOnce({.name = "own_kerneled", .kernel = Adds(100)});
  const Tensor x = F32({2}, {1, 2});
  EXPECT_THAT(RunOp("own_bare", x).status().ToString(),
              AllOf(HasSubstr("(own_bare -> y)"), HasSubstr("has no kernel"),
                    HasSubstr("there is no creator")));
  const auto makes = [](float by) {
    return [by](const OwnNode& node) -> Result<OwnKernel> {
      if (node.op != "own_bare" && by < 50) return OwnKernel();
      EXPECT_GE(node.index, 1);
      float factor = 1;
      for (const auto& [name, value] : node.attributes)
        if (name == "by") factor = static_cast<float>(std::get<int64_t>(value));
      return OwnKernel(Adds(by * factor));
    };
  };
  SetKernelCreator(makes(10));
  EXPECT_EQ(Floats(*RunOp("own_bare", x, {}, {{"by", int64_t{2}}})), (std::vector<float>{21, 22}));
  EXPECT_EQ(Floats(*RunOp("own_kerneled", x)), (std::vector<float>{101, 102}));
  // One executor's comes first, for its programs alone.
  const ExecutorOptions own = {.threads = 1, .kernel_creator = makes(50)};
  EXPECT_EQ(Floats(*RunOp("own_bare", x, own)), (std::vector<float>{51, 52}));
  EXPECT_EQ(Floats(*RunOp("own_kerneled", x, own)), (std::vector<float>{51, 52}));
  EXPECT_EQ(Floats(*RunOp("own_bare", x)), (std::vector<float>{11, 12}));
  SetKernelCreator([](const OwnNode&) -> Result<OwnKernel> { throw std::runtime_error("no"); });
  EXPECT_THAT(
      RunOp("own_bare", x).status().ToString(),
      AllOf(HasSubstr("(own_bare -> y)"), HasSubstr("the creator of its kernel threw: no")));
  SetKernelCreator(nullptr);
  EXPECT_FALSE(RunOp("own_bare", x).ok());
}

TEST(OwnOperator, BoundKernelsLiveWithTheirProgram) {
  AddOnce({.name = "own_bound"});
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = alive;
  ExecutorOptions options{.threads = 1};
  options.kernel_creator = [alive = std::move(alive)](const OwnNode&) {
    return Result<OwnKernel>(OwnKernel(
        [held = alive](OwnKernelCall& call) { return Adds(static_cast<float>(*held))(call); }));
  };
  auto executor = std::make_unique<Executor>(options);
  options = {};
  {
    const auto compiled = MustCompile(*executor, ProgramOf("own_bound"));
    EXPECT_EQ(Floats(MustRun(*executor, compiled, {{"x", F32({1}, {5})}})[0])[0], 5);
  }
  const auto again = MustCompile(*executor, ProgramOf("own_bound"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k)
        EXPECT_EQ(Floats(MustRun(*executor, again, {{"x", F32({1 + k % 3}, {5, 6, 7})}})[0])[0], 5);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(watch.expired());
}

TEST(OwnOperator, DefinitionsThatContradictThemselvesAreRefused) {
  const auto error = [](OwnOperator op) { return AddOperator(std::move(op)).ToString(); };
  const OwnKernel none = Adds(0);
  EXPECT_THAT(error({.name = ""}), HasSubstr("must have a name"));
  EXPECT_THAT(error({.name = "relu", .inputs = {{.name = "X"}}, .outputs = {{.name = "Out"}}}),
              HasSubstr("there is an operator 'relu' already"));
  EXPECT_THAT(error({.name = "own_a", .inputs = {{.name = "X"}, {.name = "X"}}}),
              HasSubstr("there are two inputs 'X'"));
  EXPECT_THAT(error({.name = "own_a", .inputs = {{.name = "X", .same_as = "Y"}}}),
              HasSubstr("is like 'Y', which is no input before it"));
  EXPECT_THAT(error({.name = "own_a", .inputs = {{.name = "X"}}}),
              HasSubstr("has neither an output nor a side effect"));
  EXPECT_THAT(error({.name = "own_a", .outputs = {{.name = "Out"}}}),
              HasSubstr("has no shape function"));
  EXPECT_EQ(FindOwnOp("own_a"), nullptr);
}

}  // namespace
}  // namespace heddle::testing
