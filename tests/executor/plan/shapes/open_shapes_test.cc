// What a plan knows of values that grow in a loop, and of what is made of them: random operators
// give what they give where all shapes of the body are found while running.
#include "executor/plan/shapes/open_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

[[maybe_unused]] const bool kInstalled = InstallTestOps();

// A loop of n turns in which `all` grows along one axis. A turn makes random things of it, and of
// their sum the value `h` that the next turn begins with.
class OpenProgram {
 public:
  explicit OpenProgram(uint32_t seed) : rng_(seed) {
    const int rank = 1 + Pick(3), axis = Pick(rank);
    Shape all, piece;
    for (int d = 0; d < rank; ++d) {
      first_.push_back(d == axis ? Pick(4) : 1 + Pick(4));
      all.push_back(d == axis ? -1 : first_[d]);
      piece.push_back(d == axis ? 1 + Pick(2) : first_[d]);
    }
    auto& b = builder_;
    b.Feed("x", DType::kF32, all).Feed("p", DType::kF32, piece).Feed("n", DType::kI64, {1});
    b.Var("all", DType::kF32, all).Unary("assign", "x", "all");
    b.Fill("h", {1}, 0.25).Fill("i", {1}, 0, DType::kI64).Binary("less_than", "i", "n", "go");
    piece_ = piece;
    const int body = b.Block(0);
    b.In(body);
    Value at{"all", Dims(all.begin(), all.end())};
    for (int count = 1 + Pick(5); count > 0; --count) at = Step(at);
    b.Op("reduce_sum", {{"X", {at.name}}}, {{"Out", {"sum"}}}, {{"reduce_all", true}});
    b.Reshape("sum", "sum1", {1}).Scale("sum1", "part", 0.0625).Unary("tanh", "part", "small");
    b.Binary("elementwise_add", "h", "small", "sum_h").Unary("tanh", "sum_h", "next");
    b.Binary("elementwise_add", "p", "next", "row");
    b.Op("concat", {{"X", {"all", "row"}}}, {{"Out", {"more"}}}, {{"axis", int64_t{axis}}});
    b.Unary("assign", "more", "all").Unary("assign", "next", "h");
    b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
    b.Op("while", {{"X", {"all", "h", "p", "i", "n"}}, {"Condition", {"go"}}},
         {{"Out", {"all", "h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
    b.Fetch("h").Fetch("all");
  }

  Program Build() const { return builder_.Build(); }
  std::vector<heddle::Feed> Feeds(int64_t turns, uint32_t seed) const {
    return {{"x", RandomF32(first_, seed)},
            {"p", RandomF32(piece_, seed + 1)},
            {"n", I64({1}, {turns})}};
  }

 private:
  using Dims = std::vector<int64_t>;
  // -1: it grows.
  struct Value {
    std::string name;
    Dims dims;
  };
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  std::string Fresh() { return "v" + std::to_string(names_++); }
  Value Op(const std::string& type, const Slots& inputs, Dims dims, const Attrs& attrs = {},
           const std::string& out = "Out") {
    Value v{Fresh(), std::move(dims)};
    builder_.Op(type, inputs, {{out, {v.name}}}, attrs);
    return v;
  }

  Value Step(const Value& x) {
    const int rank = static_cast<int>(x.dims.size());
    const Slots in = {{"X", {x.name}}};
    if (rank == 0) return Op("relu", in, x.dims);
    const int d = Pick(rank);
    Dims dims = x.dims;
    switch (Pick(18)) {
      case 0:
        return Op("relu", in, dims);
      case 1:
        return Op("scale", in, dims, {{"scale", 0.5}, {"bias", 0.125}});
      case 2: {
        Ints perm;
        for (int k = 0; k < rank; ++k) perm.push_back(k);
        std::shuffle(perm.begin(), perm.end(), rng_);
        for (int k = 0; k < rank; ++k) dims[k] = x.dims[static_cast<size_t>(perm[k])];
        return Op("transpose2", in, dims, {{"axis", perm}});
      }
      case 3:
        dims[d] = 1;
        return Op(Pick(2) ? "reduce_sum" : "reduce_mean", in, dims,
                  {{"dim", Ints{d}}, {"keep_dim", true}});
      case 4:
        dims.erase(dims.begin() + d);
        return Op("reduce_sum", in, dims, {{"dim", Ints{d}}, {"keep_dim", false}});
      case 5:
        return Op("softmax", in, dims, {{"axis", int64_t{d}}});
      case 6:
        if (dims[d] > 0) dims[d] *= 2;
        return Op("concat", {{"X", {x.name, x.name}}}, dims, {{"axis", int64_t{d}}});
      case 7: {  // some from the front, or the last
        const int64_t most = 1 + Pick(3);
        dims[d] = dims[d] < 0 ? -1 : std::min(dims[d], most);
        const bool front = Pick(2);
        return Op("slice", {{"Input", {x.name}}}, dims,
                  {{"axes", Ints{d}},
                   {"starts", Ints{front ? 0 : -most}},
                   {"ends", Ints{front ? most : 1000}}});
      }
      case 8:
        if (rank > 3) return x;
        dims.insert(dims.begin() + d, 1);
        return Op("unsqueeze2", in, dims, {{"axes", Ints{d}}});
      case 9:
        if (rank > 3) return x;
        dims.insert(dims.begin() + d, 2);
        return Op("stack", {{"X", {x.name, x.name}}}, dims, {{"axis", int64_t{d}}}, "Y");
      case 10:
        return Op("reshape2", in, {-1}, {{"shape", Ints{-1}}});
      case 11: {  // x^T x or x x^T of the last two dimensions
        if (rank < 2) return x;
        const bool first = Pick(2);
        dims[rank - (first ? 2 : 1)] = dims[rank - (first ? 1 : 2)];
        return Op("matmul_v2", {{"X", {x.name}}, {"Y", {x.name}}}, dims,
                  {{"trans_x", first}, {"trans_y", !first}});
      }
      case 12:
        return Op("cumsum", in, dims, {{"axis", int64_t{d}}});
      case 13: {
        const Value shape = Op("shape", {{"Input", {x.name}}}, {rank});
        return Op("cast", {{"X", {shape.name}}}, {rank},
                  {{"in_dtype", int64_t{2}}, {"out_dtype", int64_t{5}}});
      }
      case 14:
        return Op("flip", in, dims, {{"axis", Ints{d}}});
      case 15:
        return Op("elementwise_add", {{"X", {x.name}}, {"Y", {"h"}}}, dims);
      case 16: {
        dims.erase(dims.begin() + d);
        const Value at = Op("arg_max", in, dims, {{"axis", int64_t{d}}, {"keepdims", false}});
        return Op("cast", {{"X", {at.name}}}, dims,
                  {{"in_dtype", int64_t{3}}, {"out_dtype", int64_t{5}}});
      }
      default:
        return Op("fill_any_like", in, dims, {{"value", 0.5}, {"dtype", int64_t{-1}}});
    }
  }

  std::mt19937 rng_;
  Shape first_, piece_;
  ProgramBuilder builder_;
  int names_ = 0;
};

int CountKnown(Executor& executor, const CompiledProgram& compiled,
               const std::vector<heddle::Feed>& feeds) {
  const auto plan = executor.DescribePlan(compiled, feeds);
  if (!plan.ok()) return 0;
  return static_cast<int>(std::count_if(plan->instructions.begin(), plan->instructions.end(),
                                        [](const auto& in) { return in.mode != "dynamic"; }));
}

TEST(OpenShapes, RandomOperatorsOnValuesThatGrow) {
  constexpr uint32_t kFirst = 1, kCount = 250;
  int known = 0, succeeded = 0;
  for (uint32_t seed = kFirst; seed < kFirst + kCount; ++seed) {
    const OpenProgram random(seed);
    const Program program = random.Build();
    Executor executor({.threads = 1 + static_cast<int>(seed % 2), .poison = true});
    for (const int level : {0, 2}) {
      const auto open = MustCompile(executor, program, nullptr, {.opt_level = level});
      const auto dynamic =
          MustCompile(executor, program, nullptr, {.opt_level = level, .dynamic_bodies = true});
      for (const int64_t turns : {4, 0, 2, 7}) {
        SCOPED_TRACE(std::to_string(seed) + " level " + std::to_string(level) + ", " +
                     std::to_string(turns) + " turns");
        const auto feeds = random.Feeds(turns, seed);
        const auto got = executor.Run(open, feeds), expected = executor.Run(dynamic, feeds);
        ASSERT_EQ(got.ok(), expected.ok()) << got.status().ToString() << '\n'
                                           << expected.status().ToString();
        if (!got.ok()) continue;
        ++succeeded;
        for (size_t k = 0; k < expected->size(); ++k) {
          ASSERT_EQ((*got)[k].shape(), (*expected)[k].shape());
          const auto a = Floats((*got)[k]), b = Floats((*expected)[k]);
          for (size_t i = 0; i < a.size(); ++i)
            ASSERT_TRUE(std::fabs(a[i] - b[i]) <= 1e-5F || (std::isnan(a[i]) && std::isnan(b[i])))
                << k << ' ' << i << ": " << a[i] << ' ' << b[i];
        }
      }
      if (level == 0) known += CountKnown(executor, open, random.Feeds(4, seed));
    }
  }
  EXPECT_GT(succeeded, static_cast<int>(7 * kCount));
  EXPECT_GT(known, static_cast<int>(10 * kCount));
}

// Attention over keys that grow: what it mixes has one shape.
TEST(OpenShapes, WhatAGrowingValueIsReducedToIsStatic) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, 8}).Feed("n", DType::kI64, {1}).Unary("assign", "x", "h");
  b.Unary("assign", "x", "all").Fill("i", {1}, 0, DType::kI64).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body);
  b.Op("concat", {{"X", {"all", "h"}}}, {{"Out", {"more"}}}, {{"axis", int64_t{0}}});
  b.Op("matmul_v2", {{"X", {"h"}}, {"Y", {"more"}}}, {{"Out", {"scores"}}}, {{"trans_y", true}});
  b.Op("softmax", {{"X", {"scores"}}}, {{"Out", {"p"}}}, {{"axis", int64_t{-1}}});
  b.Op("matmul_v2", {{"X", {"p"}}, {"Y", {"more"}}}, {{"Out", {"mixed"}}});
  b.Unary("tanh", "mixed", "next").Scale("next", "scaled", 0.5);
  b.Unary("assign", "more", "all").Unary("assign", "scaled", "h");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"all", "h", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"all", "h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("h");
  Executor executor({.threads = 1, .poison = true});
  const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
  const std::vector<heddle::Feed> feeds = {{"x", RandomF32({1, 8}, 3)}, {"n", I64({1}, {3})}};
  const auto plan = executor.DescribePlan(compiled, feeds);
  ASSERT_TRUE(plan.ok());
  std::map<std::string, int> dynamic;
  for (const auto& in : plan->instructions)
    if (in.block == body && in.mode == "dynamic") ++dynamic[in.op];
  EXPECT_EQ(dynamic, (std::map<std::string, int>{
                         {"assign", 1}, {"concat", 1}, {"matmul_v2", 2}, {"softmax", 1}}));
}

// An operator makes another shape of one size than of all others, which asking it for some sizes
// does not tell: the run is made again by a plan that goes by no open shapes.
TEST(OpenShapes, AMisjudgedShapeIsFoundWhileRunning) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("n", DType::kI64, {1}).Unary("assign", "x", "all");
  b.Fill("h", {1}, 0).Fill("i", {1}, 0, DType::kI64).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body);
  b.Op("test_jump", {{"X", {"all"}}}, {{"Out", {"some"}}}).Scale("some", "twice", 2);
  b.Op("reduce_sum", {{"X", {"twice"}}}, {{"Out", {"sum"}}}, {{"reduce_all", true}});
  b.Reshape("sum", "sum1", {1}).Binary("elementwise_add", "h", "sum1", "next");
  b.Op("concat", {{"X", {"all", "x"}}}, {{"Out", {"more"}}}, {{"axis", int64_t{0}}});
  b.Unary("assign", "more", "all").Unary("assign", "next", "h");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"all", "h", "x", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"all", "h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("h");
  for (const int threads : {1, 2}) {
    Executor executor({.threads = threads, .poison = true});
    const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = 0});
    const auto known = [&] {
      return CountKnown(executor, compiled, {{"x", F32({1}, {1})}, {"n", I64({1}, {1})}});
    };
    const int before = known();
    // Of 1 to n elements; of seven, it takes two.
    for (const int64_t n : {3, 6, 9, 3, 7}) {
      const auto out = MustRun(executor, compiled, {{"x", F32({1}, {1})}, {"n", I64({1}, {n})}});
      EXPECT_EQ(Floats(out[0])[0], static_cast<float>(2 * n + (n >= 7 ? 2 : 0))) << n;
    }
    EXPECT_LT(known(), before);
  }
}

}  // namespace
}  // namespace heddle::testing
