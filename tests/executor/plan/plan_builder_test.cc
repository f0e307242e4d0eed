// What plans say besides what to do.
#include "executor/plan/plan_builder.h"

#include <gtest/gtest.h>

#include "memory/pool_allocator.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

class OneThread final : public IntraOp {
 public:
  int threads() const override { return 1; }
  void ParallelFor(int64_t n, int64_t, FunctionRef<void(int64_t, int64_t)> fn) override {
    if (n > 0) fn(0, n);
  }
};

// A product knows the beginning of the next one's packed matrix.
TEST(PlanBuilder, KernelsKnowWhatIsReadBehindThem) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {16, 64})
      .Param("v", DType::kF32, {64, 64})
      .Param("w", DType::kF32, {64, 50});
  b.Op("fused_matmul", {{"X", {"x"}}, {"Y", {"v"}}}, {{"Out", {"y"}}});
  b.Op("fused_matmul", {{"X", {"y"}}, {"Y", {"w"}}}, {{"Out", {"z"}}});
  b.Scale("z", "out", 2).Fetch("out");
  const Program program = b.Build();
  auto scope = std::make_shared<Scope>();
  scope->Set("v", Value(RandomF32({64, 64}, 1)));
  scope->Set("w", Value(RandomF32({64, 50}, 2)));
  PoolAllocator pool;
  OneThread intra;
  Services services;
  services.allocator = &pool;
  services.intra = &intra;
  PlanRequest request;
  request.program = program.impl();
  request.scope = request.root_scope = scope;
  request.packs = std::make_shared<PackCache>();
  services.packs = request.packs.get();
  request.feeds = {{"x", Value::Kind::kTensor, DType::kF32, {16, 64}}};
  request.fetches = {program.ir().Find(0, "out")};
  request.services = &services;
  const auto plan = BuildPlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const auto& ins = (*plan)->blocks[0].instructions;
  ASSERT_EQ(ins.size(), 3u);
  const auto next = ins[1].state->facts().prefetch;
  EXPECT_GE(next.size(), 64u * 16 * sizeof(float));  // a panel of one vector at least
  EXPECT_EQ(ins[0].op.ahead.data(), next.data());
  EXPECT_EQ(ins[0].op.ahead.size(), next.size());
  EXPECT_NE(ins[0].state->facts().prefetch.data(), next.data());
  EXPECT_TRUE(ins[1].op.ahead.empty());
}

}  // namespace
}  // namespace heddle::testing
