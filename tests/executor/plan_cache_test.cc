// Which runs share a plan, and when a plan is out of date.
#include "executor/plan_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;

ProgramBuilder Chain() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2});
  b.Scale("x", "t", 2).Scale("t", "y", 1, 1).Fetch("y");
  return b;
}
Tensor Ones(int64_t rows) { return F32({rows, 2}, Rows(static_cast<size_t>(rows) * 2, 1.f)); }

TEST(PlanCache, TheSameSignatureBuildsOnePlan) {
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, Chain().Build());
  for (int k = 0; k < 5; ++k) MustRun(executor, compiled, {{"x", Ones(3)}});
  EXPECT_EQ(executor.plans_built(), 1);
  MustRun(executor, compiled, {{"x", Ones(4)}});
  EXPECT_EQ(executor.plans_built(), 2);
  for (int k = 0; k < 5; ++k)
    EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", Ones(3 + k % 2)}})[0]).front(), 3.f);
  EXPECT_EQ(executor.plans_built(), 2);
}

TEST(PlanCache, PrepareBuildsThePlanThatRunUses) {
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, Chain().Build());
  auto stats = executor.Prepare(compiled, {{"x", Ones(3)}});
  ASSERT_TRUE(stats.ok()) << stats.status().ToString();
  EXPECT_TRUE(stats->static_shapes);
  EXPECT_GE(stats->arena_bytes, stats->arena_bound_bytes);
  MustRun(executor, compiled, {{"x", Ones(3)}});
  EXPECT_EQ(executor.plans_built(), 1);
  auto text = executor.PlanText(compiled, {{"x", Ones(3)}});
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("fetch"), std::string::npos);
}

TEST(PlanCache, TheLeastRecentlyUsedPlanGoes) {
  Executor executor({.threads = 1, .plan_cache_capacity = 2});
  auto compiled = MustCompile(executor, Chain().Build());
  auto run = [&](int64_t rows) {
    EXPECT_EQ(MustRun(executor, compiled, {{"x", Ones(rows)}})[0].dim(0), rows);
    return executor.plans_built();
  };
  EXPECT_EQ(run(1), 1);
  EXPECT_EQ(run(2), 2);
  EXPECT_EQ(run(1), 2);
  EXPECT_EQ(run(3), 3);  // 2 goes
  EXPECT_EQ(run(1), 3);
  EXPECT_EQ(run(2), 4);  // 3 goes
  EXPECT_EQ(run(1), 4);
  EXPECT_EQ(run(3), 5);
}

TEST(PlanCache, TwoProgramsDoNotShare) {
  Executor executor({.threads = 1});
  ProgramBuilder other = Chain();
  other.desc().mutable_blocks(0)->mutable_ops(1)->mutable_attrs(0)->set_f(5);
  auto a = MustCompile(executor, Chain().Build()), c = MustCompile(executor, other.Build());
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(Floats(MustRun(executor, a, {{"x", Ones(1)}})[0]), (Rows{3, 3}));
    EXPECT_EQ(Floats(MustRun(executor, c, {{"x", Ones(1)}})[0]), (Rows{6, 6}));
  }
}

// The hash of the file's bytes finds the plan, whoever has parsed and compiled them.
TEST(PlanCache, EqualBytesScopeAndFetchesShare) {
  ProgramBuilder b = Chain();
  b.Param("w", DType::kF32, {2}).Scale("w", "twice", 2);
  b.Binary("elementwise_add", "y", "twice", "z").Fetch("z");
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {1, 10}));
  const auto run = [&](const Program& program, const CompileOptions& options,
                       const std::shared_ptr<Scope>& where) {
    const auto compiled = MustCompile(executor, program, where, options);
    return Floats(MustRun(executor, compiled, {{"x", Ones(1)}}).back());
  };
  for (int level : {0, 2}) {
    const int64_t before = executor.plans_built();
    EXPECT_EQ(run(b.Build(), {.opt_level = level}, scope), (Rows{5, 23}));
    EXPECT_EQ(run(b.Build(), {.opt_level = level}, scope), (Rows{5, 23}));
    EXPECT_EQ(executor.plans_built(), before + 1) << level;
  }
  int64_t before = executor.plans_built();
  // Each is another plan: fetches, passes, scopes, a parameter that was folded.
  run(b.Build(), {.fetches = {"z"}, .opt_level = 2}, scope);
  EXPECT_EQ(executor.plans_built(), ++before);
  run(b.Build(), {.opt_level = 2, .passes = {.disable = {"fuse_elementwise"}}}, scope);
  EXPECT_EQ(executor.plans_built(), ++before);
  run(b.Build(), {.opt_level = 2}, std::make_shared<Scope>(scope));
  EXPECT_EQ(executor.plans_built(), ++before);
  scope->Set("w", F32({2}, {2, 20}));
  EXPECT_EQ(run(b.Build(), {.opt_level = 2}, scope), (Rows{7, 43}));
  EXPECT_EQ(executor.plans_built(), ++before);
}

// The hash of a rewritten program is that of the file.
TEST(PlanCache, ARewrittenProgramIsAnother) {
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  const Program program = Chain().Build();
  CustomPass pass;
  pass.name = "five";
  pass.run = [](ProgramEditor& editor) -> Result<bool> {
    OpSpec spec = editor.op(0, 0);
    for (auto& [name, value] : spec.attributes)
      if (name == "scale") {
        if (value == AttributeValue(5.0)) return false;
        value = 5.0;
      }
    if (Status s = editor.Replace(0, 0, spec); !s.ok()) return s;
    return true;
  };
  auto rewritten = OptimizeModel({program, scope}, {.level = 1, .passes = {.custom = {pass}}});
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
  EXPECT_EQ(rewritten->model.program.hash(), program.hash());
  const auto run = [&](const Program& p) {
    return Floats(MustRun(executor, MustCompile(executor, p, scope), {{"x", Ones(1)}})[0]);
  };
  EXPECT_EQ(run(program), (Rows{3, 3}));
  EXPECT_EQ(run(rewritten->model.program), (Rows{6, 6}));
}

// Paddle: persistable variables that do not exist are made in the tree's root.
TEST(Scopes, NewVariablesGoToTheRoot) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {2}).Fill("w", {2}, 3);
  b.Feed("x", DType::kF32, {2}).Binary("elementwise_add", "x", "w", "y").Fetch("y");
  auto root = std::make_shared<Scope>();
  auto kid = std::make_shared<Scope>(std::make_shared<Scope>(root));
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build(), kid);
  EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({2}, {1, 2})}})[0]), (Rows{4, 5}));
  EXPECT_EQ(root->Names(), std::vector<std::string>{"w"});
  EXPECT_TRUE(kid->Names().empty());
  EXPECT_EQ(&kid->write_mutex(), &root->write_mutex());
}

TEST(PlanCache, TrimWaitsForNoPlanThatIsBeingBuilt) {
  PlanCache cache(4);
  std::future<void> trimmed, found;
  const auto building = cache.EntryOf(1, "one");
  MutexLock held(building->mutex);  // goes before the futures do, which wait for their threads
  trimmed = std::async(std::launch::async, [&] { cache.Trim(); });
  constexpr std::chrono::seconds kMost(20);
  EXPECT_EQ(trimmed.wait_for(kMost), std::future_status::ready);
  found = std::async(std::launch::async, [&] { cache.EntryOf(2, "two"); });
  EXPECT_EQ(found.wait_for(kMost), std::future_status::ready);
}

TEST(PlanCache, FeedsInAnyOrder) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("y", DType::kF32, {-1});
  b.Binary("elementwise_sub", "x", "y", "z").Fetch("z");
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Build());
  const heddle::Feed x{"x", F32({1}, {5})}, y{"y", F32({1}, {3})};
  EXPECT_EQ(Floats(MustRun(executor, compiled, {x, y})[0]), (Rows{2}));
  EXPECT_EQ(Floats(MustRun(executor, compiled, {y, x})[0]), (Rows{2}));
}

TEST(PlanCache, OneExecutorManyScopes) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Binary("elementwise_add", "x", "w", "y").Fetch("y");
  const Program program = b.Build();
  Executor executor({.threads = 1});
  for (int k = 0; k < 20; ++k) {
    auto scope = std::make_shared<Scope>();
    scope->Set("w", F32({1}, {static_cast<float>(k)}));
    auto compiled = MustCompile(executor, program, scope);
    EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({1}, {0.5f})}})[0]),
              (Rows{static_cast<float>(k) + 0.5f}));
  }
}

// y = (2w) + x, where 2w may be computed ahead, and z = x * W, whose weight may be packed.
class Parameters : public ::testing::TestWithParam<int> {
 protected:
  Parameters() : executor_({.threads = 2}), scope_(std::make_shared<Scope>()) {
    ProgramBuilder b;
    b.Param("w", DType::kF32, {2})
        .Param("matrix", DType::kF32, {2, 2})
        .Feed("x", DType::kF32, {-1, 2});
    b.Scale("w", "twice", 2).Binary("elementwise_add", "x", "twice", "y");
    b.Binary("matmul_v2", "x", "matrix", "z").Fetch("y").Fetch("z");
    program_ = b.Build();
    Set(1);
    compiled_ = std::make_unique<CompiledProgram>(
        MustCompile(executor_, program_, scope_, {.opt_level = GetParam()}));
  }
  void Set(float w) {
    scope_->Set("w", F32({2}, {w, w}));
    scope_->Set("matrix", F32({2, 2}, {w, 0, 0, w}));
  }
  void Expect(float w) {
    const auto out = MustRun(executor_, *compiled_, {{"x", Ones(1)}});
    EXPECT_EQ(Floats(out[0]), (Rows{1 + 2 * w, 1 + 2 * w}));
    EXPECT_EQ(Floats(out[1]), (Rows{w, w}));
  }
  Executor executor_;
  std::shared_ptr<Scope> scope_;
  Program program_;
  std::unique_ptr<CompiledProgram> compiled_;
};
INSTANTIATE_TEST_SUITE_P(Opt, Parameters, ::testing::Values(0, 2));

TEST_P(Parameters, ReplacedOnesAreUsedByTheNextRun) {
  Expect(1);
  for (int k = 2; k < 6; ++k) {
    Set(static_cast<float>(k));
    Expect(static_cast<float>(k));
    Expect(static_cast<float>(k));
  }
}

TEST_P(Parameters, ReplacedManyTimesBetweenRuns) {
  Expect(1);
  // The allocator gives a later value the place of an earlier one.
  for (int k = 2; k < 40; ++k) {
    Set(static_cast<float>(k) + 0.5f);
    if (k % 3 == 0) Set(static_cast<float>(k) + 0.25f);
    Set(static_cast<float>(k));
    Expect(static_cast<float>(k));
  }
}

TEST_P(Parameters, SetAgainWithOtherContentsInTheSameMemory) {
  Tensor w = F32({2}, {1, 1}), matrix = F32({2, 2}, {1, 0, 0, 1});
  for (int k = 1; k < 4; ++k) {
    const auto v = static_cast<float>(k);
    w.mutable_data<float>()[0] = w.mutable_data<float>()[1] = v;
    matrix.mutable_data<float>()[0] = matrix.mutable_data<float>()[3] = v;
    scope_->Set("w", w);
    scope_->Set("matrix", matrix);
    Expect(v);
  }
}

TEST_P(Parameters, ErasedOnesAreMissedAndMayComeBack) {
  Expect(1);
  scope_->Erase("w");
  auto out = executor_.Run(*compiled_, {{"x", Ones(1)}});
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().message().find("'w'"), std::string::npos) << out.status().ToString();
  Set(4);
  Expect(4);
}

TEST_P(Parameters, AnotherShapeIsNoticed) {
  Expect(1);
  scope_->Set("w", F32({1}, {10}));
  const auto out = MustRun(executor_, *compiled_, {{"x", Ones(1)}});
  EXPECT_EQ(Floats(out[0]), (Rows{21, 21}));
}

TEST_P(Parameters, AnotherProgramThatWritesThemIsNoticed) {
  ProgramBuilder step;
  step.Param("w", DType::kF32, {2}).Feed("d", DType::kF32, {1});
  step.Binary("elementwise_add", "w", "d", "w").Fetch("w");
  auto training = MustCompile(executor_, step.Build(), scope_);
  ProgramBuilder twice;
  twice.Param("matrix", DType::kF32, {2, 2}).Feed("d", DType::kF32, {1});
  twice.Scale("matrix", "matrix", 2).Fetch("matrix");
  auto doubling = MustCompile(executor_, twice.Build(), scope_);
  Expect(1);
  MustRun(executor_, training, {{"d", F32({1}, {1})}});
  MustRun(executor_, doubling, {{"d", F32({1}, {0})}});
  Expect(2);
  MustRun(executor_, training, {{"d", F32({1}, {2})}});
  MustRun(executor_, doubling, {{"d", F32({1}, {0})}});
  Expect(4);
}

TEST(WrittenParameters, ErasedOrReplacedBetweenRuns) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {-1}).Feed("x", DType::kF32, {-1});
  b.Binary("elementwise_add", "w", "x", "w").Scale("w", "y", 2).Fetch("y");
  for (Schedule schedule : {Schedule::kSerial, Schedule::kParallel}) {
    Executor executor({.threads = 2});
    auto scope = std::make_shared<Scope>();
    scope->Set("w", F32({2}, {1, 2}));
    auto compiled = MustCompile(executor, b.Build(), scope, {.schedule = schedule});
    const std::vector<heddle::Feed> feeds = {{"x", F32({1}, {1})}};
    EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (Rows{4, 6}));
    EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (Rows{6, 8}));
    scope->Set("w", F32({4}, {0, 1, 2, 3}));  // another size
    EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (Rows{2, 4, 6, 8}));
    scope->Erase("w");
    EXPECT_FALSE(executor.Run(compiled, feeds).ok());
    scope->Set("w", F32({1}, {7}));
    EXPECT_EQ(Floats(MustRun(executor, compiled, feeds)[0]), (Rows{16}));
    EXPECT_EQ(Floats(scope->Find("w")->tensor()), (Rows{8}));
  }
}

TEST(WrittenParameters, ABroadcastThatWouldGrowOneIsRightOrRefused) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {-1}).Feed("x", DType::kF32, {-1});
  b.Binary("elementwise_add", "w", "x", "w").Scale("w", "y", 2).Fetch("y");
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({1}, {1}));
  auto compiled = MustCompile(executor, b.Build(), scope);
  auto out = executor.Run(compiled, {{"x", F32({3}, {1, 2, 3})}});
  if (out.ok()) {
    EXPECT_EQ(Floats((*out)[0]), (Rows{4, 6, 8}));
  }
}

TEST(Scopes, ParametersOfAParentScopeAreSeen) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Param("v", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Binary("elementwise_add", "x", "w", "y").Binary("elementwise_add", "y", "v", "v").Fetch("v");
  auto parent = std::make_shared<Scope>();
  parent->Set("w", F32({1}, {10}));
  parent->Set("v", F32({1}, {100}));
  auto child = std::make_shared<Scope>(parent);
  child->Set("v", F32({1}, {1000}));
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, b.Build(), child);
  for (int k = 1; k < 3; ++k)
    EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({1}, {1})}})[0]),
              (Rows{1000 + 11.f * static_cast<float>(k)}));
  EXPECT_EQ(Floats(parent->Find("v")->tensor()), (Rows{100}));
  parent->Set("w", F32({1}, {20}));
  EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({1}, {1})}})[0]), (Rows{1043}));
}

// A plan's own writes do not make it look at the scope again; those of others do.
TEST(PlanCache, WhatOthersSetBetweenRunsThatWriteIsSeen) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {-1}).Param("c", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Binary("elementwise_add", "w", "x", "w").Scale("c", "twice", 2);
  b.Binary("elementwise_mul", "w", "twice", "y").Fetch("y");
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({1}, {0}));
  scope->Set("c", F32({1}, {1}));
  const auto compiled = MustCompile(executor, b.Build(), scope);
  const auto run = [&] { return Floats(MustRun(executor, compiled, {{"x", F32({1}, {1})}})[0]); };
  EXPECT_EQ(run(), (Rows{2}));
  EXPECT_EQ(run(), (Rows{4}));
  const int64_t plans = executor.plans_built();
  EXPECT_EQ(run(), (Rows{6}));
  EXPECT_EQ(executor.plans_built(), plans);
  scope->Set("c", F32({1}, {10}));  // a value that was computed ahead
  EXPECT_EQ(run(), (Rows{80}));
  scope->Set("w", F32({2}, {1, 2}));  // another shape
  EXPECT_EQ(run(), (Rows{40, 60}));
  EXPECT_EQ(run(), (Rows{60, 80}));
}

}  // namespace
}  // namespace heddle::testing
