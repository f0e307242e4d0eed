// Projections to queries, keys and values: which become one product, and that results stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kBatch = 2, kRows = 5, kHeads = 3, kDepth = 4, kWidth = kHeads * kDepth;

// Self-attention as models write it; members say what differs.
struct Projections {
  std::vector<std::string> sources = {"x", "x", "x"};
  bool biases = true;
  bool constant = true;       // weights are parameters
  bool open = true;           // dimensions of batch and rows are not known
  int64_t features = kWidth;  // of what is projected
  std::string also_fetched = "";
  ProgramBuilder b = {};
  std::vector<heddle::Feed> feeds = {};
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();

  void Var(const std::string& name, Shape shape) {
    if (open) shape[0] = -1;
    b.Var(name, DType::kF32, shape);
  }
  void Weight(const std::string& name, const Shape& shape, uint32_t seed) {
    if (constant) {
      b.Param(name, DType::kF32, shape);
      // Sums are of one size, however many features there are.
      const float bound = std::sqrt(static_cast<float>(kWidth) / static_cast<float>(features));
      scope->Set(name, Value(RandomF32(shape, seed, bound)));
    } else {
      b.Feed(name, DType::kF32, shape);
      feeds.push_back({name, RandomF32(shape, seed)});
    }
  }
  std::string Operand(const std::string& name, const std::string& from, uint32_t seed) {
    Weight("w_" + name, {features, kWidth}, seed);
    Var(name + "0", {kBatch, kRows, kWidth});
    b.Op("matmul_v2", {{"X", {from}}, {"Y", {"w_" + name}}}, {{"Out", {name + "0"}}});
    std::string last = name + "0";
    if (biases) {
      Weight("b_" + name, {kWidth}, seed + 10);
      Var(name + "1", {kBatch, kRows, kWidth});
      b.Op("elementwise_add", {{"X", {last}}, {"Y", {"b_" + name}}}, {{"Out", {name + "1"}}});
      last = name + "1";
    }
    Var(name + "2", {kBatch, kRows, kHeads, kDepth});
    b.Op("reshape2", {{"X", {last}}}, {{"Out", {name + "2"}}},
         {{"shape", Ints{0, 0, kHeads, kDepth}}});
    Var(name, {kBatch, kHeads, kRows, kDepth});
    b.Op("transpose2", {{"X", {name + "2"}}}, {{"Out", {name}}}, {{"axis", Ints{0, 2, 1, 3}}});
    return name;
  }
  Program Build() {
    for (const char* name : {"x", "other"}) {
      b.Feed(name, DType::kF32, {open ? -1 : kBatch, kRows, features});
      feeds.push_back(
          {name, RandomF32({kBatch, kRows, features}, static_cast<uint32_t>(feeds.size()) + 50)});
    }
    Operand("q", sources[0], 1);
    Operand("k", sources[1], 2);
    Operand("v", sources[2], 3);
    Var("scores", {kBatch, kHeads, kRows, kRows});
    b.Op("matmul_v2", {{"X", {"q"}}, {"Y", {"k"}}}, {{"Out", {"scores"}}}, {{"trans_y", true}});
    Var("weights", {kBatch, kHeads, kRows, kRows});
    b.Op("softmax", {{"X", {"scores"}}}, {{"Out", {"weights"}}});
    Var("mixed", {kBatch, kHeads, kRows, kDepth});
    b.Op("matmul_v2", {{"X", {"weights"}}, {"Y", {"v"}}}, {{"Out", {"mixed"}}});
    Var("y", {kBatch, kRows, kHeads, kDepth});
    b.Op("transpose2", {{"X", {"mixed"}}}, {{"Out", {"y"}}}, {{"axis", Ints{0, 2, 1, 3}}});
    b.Fetch("y");
    if (!also_fetched.empty()) b.Fetch(also_fetched);
    return b.Build();
  }
};

// Products with weights that level 2 leaves, after it was seen that the results are those of level
// 0.
int Products(Projections p) {
  const Program program = p.Build();
  Executor executor({.threads = 2});
  std::vector<Tensor> results[2];
  for (int level : {0, 2})
    results[level / 2] =
        MustRun(executor, MustCompile(executor, program, p.scope, {.opt_level = level}), p.feeds);
  for (size_t i = 0; i < results[0].size(); ++i) {
    const auto plain = Floats(results[0][i]), merged = Floats(results[1][i]);
    EXPECT_EQ(plain.size(), merged.size());
    for (size_t k = 0; k < plain.size() && k < merged.size(); ++k)
      EXPECT_NEAR(plain[k], merged[k], 1e-5 * (1 + std::abs(plain[k]))) << i << ", " << k;
  }
  OptimizeOptions options{2, {}, {}};
  options.passes.check_unchanged = true;
  options.passes.disable = {"merge_products"};  // which takes what is left
  const auto optimized = passes::Optimize(program.impl(), p.scope, options);
  EXPECT_TRUE(optimized.ok()) << optimized.status().ToString();
  int count = 0;
  for (const ir::Op& op : optimized->program->blocks[0].ops)
    count += op.type() == "matmul_v2" || op.type() == "fused_matmul";
  return count;
}

TEST(MergeMatmul, ThreeProjectionsAreOneProduct) {
  EXPECT_EQ(Products({}), 1);
  EXPECT_EQ(Products({.biases = false}), 1);
  EXPECT_EQ(Products({.open = false}), 1);
}

TEST(MergeMatmul, KeysAndValuesOfAnotherTensor) {
  EXPECT_EQ(Products({.sources = {"x", "other", "other"}}), 2);
  EXPECT_EQ(Products({.sources = {"x", "other", "x"}}), 2);
  EXPECT_EQ(Products({.sources = {"x", "x", "other"}}), 2);
}

TEST(MergeMatmul, LargeWeightsStay) {
  const int64_t most = (256 << 10) / 4 / (3 * kWidth);
  EXPECT_EQ(Products({.features = most}), 1);
  EXPECT_EQ(Products({.features = most + 1}), 3);
}

// Expects the number of products that are left of three.
TEST(MergeMatmul, ProjectionsThatMustStayAreNotMerged) {
  EXPECT_EQ(Products({.constant = false}), 3);
  // Queries whose projection is fetched stay alone; keys and values go together.
  EXPECT_EQ(Products({.also_fetched = "q0"}), 2);
  EXPECT_EQ(Products({.also_fetched = "q2"}), 2);
  EXPECT_EQ(Products({.also_fetched = "v1"}), 2);
}

}  // namespace
}  // namespace heddle::testing
