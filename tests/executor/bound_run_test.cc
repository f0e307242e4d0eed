// Feeds and outputs bound once: where results lie, and who keeps them.
#include "heddle/bound_run.h"

#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr Schedule kSchedules[] = {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes,
                                   Schedule::kAuto};

// y = 2 x, z = 3 y; the input itself is fetched too.
ProgramBuilder TwoOutputs() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  b.Scale("x", "y", 2).Scale("y", "z", 3).Fetch("y").Fetch("z").Fetch("x");
  return b;
}

TEST(BoundRun, GivesTheResultsOfThePresentContents) {
  for (const Schedule schedule : kSchedules) {
    SCOPED_TRACE(ScheduleName(schedule));
    Executor executor({.threads = 2});
    std::vector<float> data = {1, 2, 3};
    const Tensor x = Tensor::Wrap(data.data(), DType::kF32, {3});
    BoundRun run(MustCompile(executor, TwoOutputs().Build(), nullptr, {.schedule = schedule}),
                 {{"x", x}});
    ASSERT_TRUE(run.Run().ok());
    EXPECT_EQ(Floats(run.outputs()[1].tensor()), (std::vector<float>{6, 12, 18}));
    const Value kept = run.outputs()[1];
    data = {5, 6, 7};
    ASSERT_TRUE(run.Run().ok());
    EXPECT_EQ(Floats(run.outputs()[1].tensor()), (std::vector<float>{30, 36, 42}));
    EXPECT_EQ(Floats(kept.tensor()), (std::vector<float>{6, 12, 18}));
    run.feeds()[0].value = F32({2}, {1, 1});
    ASSERT_TRUE(run.Run().ok());
    EXPECT_EQ(Floats(run.outputs()[1].tensor()), (std::vector<float>{6, 6}));
  }
}

TEST(BoundRun, WritesToTheMemoryBoundToAnOutput) {
  for (const Schedule schedule : kSchedules) {
    SCOPED_TRACE(ScheduleName(schedule));
    Executor executor({.threads = 2});
    std::vector<float> y(3), z(3), same(3);
    BoundRun run(MustCompile(executor, TwoOutputs().Build(), nullptr, {.schedule = schedule}),
                 {{"x", F32({3}, {1, 2, 3})}});
    for (auto [i, memory] : {std::pair(0, &y), std::pair(1, &z), std::pair(2, &same)})
      ASSERT_TRUE(
          run.BindOutput(static_cast<size_t>(i), Tensor::Wrap(memory->data(), DType::kF32, {3}))
              .ok());
    for (int k = 0; k < 3; ++k) {
      y = z = same = {0, 0, 0};
      ASSERT_TRUE(run.Run().ok());
      EXPECT_EQ(y, (std::vector<float>{2, 4, 6}));
      EXPECT_EQ(z, (std::vector<float>{6, 12, 18}));
      EXPECT_EQ(same, (std::vector<float>{1, 2, 3}));
      EXPECT_EQ(run.outputs()[1].tensor().raw(), z.data());
    }
    ASSERT_TRUE(run.BindOutput(1, Tensor()).ok());
    ASSERT_TRUE(run.Run().ok());
    EXPECT_NE(run.outputs()[1].tensor().raw(), z.data());
  }
}

// y would be written where x still has to be read for z.
TEST(BoundRun, AFeedsOwnMemoryMayTakeAResult) {
  for (const Schedule schedule : kSchedules) {
    SCOPED_TRACE(ScheduleName(schedule));
    Executor executor({.threads = 2});
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {-1});
    b.Scale("x", "y", 2).Scale("x", "z", 3).Fetch("y").Fetch("z");
    std::vector<float> data = {1, 2, 3};
    const Tensor x = Tensor::Wrap(data.data(), DType::kF32, {3});
    BoundRun run(MustCompile(executor, b.Build(), nullptr, {.schedule = schedule}), {{"x", x}});
    ASSERT_TRUE(run.BindOutput(0, x).ok());
    ASSERT_TRUE(run.Run().ok());
    EXPECT_EQ(data, (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(Floats(run.outputs()[1].tensor()), (std::vector<float>{3, 6, 9}));
  }
}

TEST(BoundRun, RefusesMemoryThatDoesNotFit) {
  Executor executor({.threads = 1});
  BoundRun run(MustCompile(executor, TwoOutputs().Build()), {{"x", F32({3}, {1, 2, 3})}});
  std::vector<float> memory(4);
  EXPECT_EQ(run.BindOutput(3, Tensor::Wrap(memory.data(), DType::kF32, {3})).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(run.BindOutput(0, Tensor::WrapStrided(memory.data(), DType::kF32, {2}, {2})).code(),
            StatusCode::kInvalidArgument);
  ASSERT_TRUE(run.BindOutput(0, Tensor::Wrap(memory.data(), DType::kF32, {4})).ok());
  const Status status = run.Run();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.ToString().find("'y'"), std::string::npos) << status.ToString();
  EXPECT_TRUE(run.outputs().empty());
  ASSERT_TRUE(run.BindOutput(0, Tensor()).ok());
  EXPECT_TRUE(run.Run().ok());
}

}  // namespace
}  // namespace heddle::testing
