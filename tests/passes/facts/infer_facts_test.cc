// What shape functions tell of operands with open dimensions holds for every size that these take.
#include "passes/facts/infer_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/op_registry.h"
#include "core/programs/ir.h"

namespace heddle::passes {
namespace {

std::optional<Fact> SumOf(const Shape& x, const Shape& y) {
  ir::Op op = ir::MakeOp(*FindOp("elementwise_add"));
  op.inputs[op.def->FindInput("X")] = {0};
  op.inputs[op.def->FindInput("Y")] = {1};
  op.outputs[op.def->FindOutput("Out")] = {2};
  const Fact a{DType::kF32, x}, b{DType::kF32, y};
  std::vector<std::optional<Fact>> outputs;
  FactInference inference;
  if (!inference.Infer(op, {{.fact = &a}, {.fact = &b}}, &outputs)) return std::nullopt;
  return outputs[0];
}

TEST(InferFacts, AnOpenDimensionBesideAKnownOneLeavesItKnown) {
  const auto sum = SumOf({-1, 17, 64}, {-1, -1, 64});
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(sum->shape, Shape({-1, 17, 64}));
}

// Shapes with open dimensions, and sizes for these with which they broadcast.
TEST(InferFacts, HoldForAllSizesOfOpenDimensions) {
  std::mt19937 random(5);
  const auto one_of = [&](std::initializer_list<int64_t> sizes) {
    return sizes.begin()[random() % sizes.size()];
  };
  int known = 0;
  for (int i = 0; i < 3000; ++i) {
    const int rank = static_cast<int>(one_of({1, 2, 3, 4}));
    Shape full, x, y, declared_x, declared_y;
    for (int d = 0; d < rank; ++d) {
      const int64_t size = one_of({1, 2, 5, 17});
      full.push_back(size);
      x.push_back(one_of({1, 0}) == 0 ? size : int64_t{1});
      y.push_back(x[d] == size ? one_of({1, size}) : size);
      declared_x.push_back(one_of({0, 1, 2}) == 0 ? -1 : x[d]);
      declared_y.push_back(one_of({0, 1, 2}) == 0 ? -1 : y[d]);
    }
    const auto sum = SumOf(declared_x, declared_y);
    if (!sum) continue;
    ASSERT_EQ(sum->shape.rank(), rank);
    for (int d = 0; d < rank; ++d) {
      const int64_t is = std::max(x[d], y[d]);
      known += sum->shape[d] >= 0;
      ASSERT_TRUE(sum->shape[d] < 0 || sum->shape[d] == is)
          << declared_x.ToString() << " + " << declared_y.ToString() << ": "
          << sum->shape.ToString() << " for " << x.ToString() << " + " << y.ToString();
    }
  }
  EXPECT_GT(known, 2000);
}

}  // namespace
}  // namespace heddle::passes
