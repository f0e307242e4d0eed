// Batches of any size where a file fixes one sample: programs drawn from a seed are either refused,
// or compute for several samples what they computed for each alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "gradient/tuning/tuning.h"
#include "tests/gradient/support.h"

namespace heddle::gradient {
namespace {

using ::testing::HasSubstr;

// A value of rank 2 to 4 whose first dimension counts one sample, or whose axes were exchanged.
class FixedProgram {
 public:
  explicit FixedProgram(uint32_t seed) : random_(seed) {}

  Model Make() {
    shape_ = {1, 3, 4};
    value_ = p_.Feed("x", {1, 3, 4});
    const int steps = 2 + Below(7);
    for (int k = 0; k < steps; ++k) Step();
    // The samples come first again, as far as the drawn steps allow.
    Apply("tanh", {}, shape_);
    return p_.Finish();
  }
  std::string output() const { return "v" + std::to_string(count_); }
  const std::vector<int64_t>& shape() const { return shape_; }
  bool samples_first() const { return samples_ == 0; }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int64_t Count() const {
    int64_t n = 1;
    for (const int64_t d : shape_) n *= d;
    return n;
  }
  void Apply(const std::string& type, const Attributes& attributes, std::vector<int64_t> shape) {
    value_ = p_.Apply(type, {{"X", {value_}}}, attributes, "Out", "v" + std::to_string(++count_));
    shape_ = std::move(shape);
  }
  void Reshape(const std::vector<int64_t>& words, std::vector<int64_t> shape) {
    Apply("reshape2", {{"shape", words}}, std::move(shape));
  }
  void Step() {
    const int64_t n = Count();
    switch (Below(9)) {
      case 0:
        return Reshape({1, -1}, {1, n});
      case 1:
        return Reshape({1, n}, {1, n});
      case 2:
        return n % 2 == 0 ? Reshape({1, 2, -1}, {1, 2, n / 2}) : Reshape({1, n}, {1, n});
      case 3:  // the sample's axis joins another one
        return n % 3 == 0 ? Reshape({3, -1}, {3, n / 3}) : Reshape({1, -1}, {1, n});
      case 4:
        return n % 4 == 0 ? Reshape({1, n / 4, 4}, {1, n / 4, 4}) : Reshape({1, n}, {1, n});
      case 5: {
        const int64_t width = shape_.back();
        std::vector<double> values(static_cast<size_t>(width * width));
        for (double& v : values) v = static_cast<double>(Below(100)) / 100 - 0.5;
        const Variable w =
            p_.Parameter("w" + std::to_string(count_), Doubles({width, width}, values));
        value_ = p_.Apply("matmul_v2", {{"X", {value_}}, {"Y", {w}}}, {}, "Out",
                          "v" + std::to_string(++count_));
        return;
      }
      case 6: {
        if (shape_.size() < 3) return Apply("sigmoid", {}, shape_);
        std::vector<int64_t> axes(shape_.size()), shape = shape_;
        for (size_t k = 0; k < axes.size(); ++k) axes[k] = static_cast<int64_t>(k);
        // Now and then the axis of the samples moves, too.
        const size_t from = Below(4) == 0 ? 0 : axes.size() - 2;
        std::swap(axes[from], axes[from + 1]);
        std::swap(shape[from], shape[from + 1]);
        if (from == 0 && samples_ < 2) samples_ = 1 - samples_;
        return Apply("transpose2", {{"axis", axes}}, shape);
      }
      case 7:
        return Apply("softmax", {{"axis", int64_t{-1}}}, shape_);
      default: {
        std::vector<int64_t> shape = shape_;
        shape.back() = 1;
        return Apply("reduce_mean",
                     {{"dim", std::vector<int64_t>{static_cast<int64_t>(shape_.size()) - 1}},
                      {"keep_dim", true}},
                     shape);
      }
    }
  }

  std::mt19937 random_;
  TestProgram p_;
  Variable value_;
  std::vector<int64_t> shape_;
  int count_ = 0, samples_ = 0;
};

TEST(OpenBatch, ComputesForEachSampleWhatItComputedAlone) {
  int opened = 0, refused = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    FixedProgram drawn(seed);
    const Model model = drawn.Make();
    const auto made = OpenBatch(model.program, *model.scope, {"x"});
    if (!made.ok()) {
      ++refused;
      EXPECT_THAT(made.status().message(), HasSubstr("(block 0, operator "));
      continue;
    }
    std::mt19937 random(seed);
    constexpr int64_t kSamples = 3, kEach = 12;
    std::vector<double> values(static_cast<size_t>(kSamples * kEach));
    for (double& v : values) v = static_cast<double>(random() % 2000) / 1000 - 1;
    const std::string output = drawn.output();
    const auto together =
        RunOnce(made->program, model.scope, {{"x", Doubles({kSamples, 3, 4}, values)}}, {output});
    ASSERT_EQ(together.size(), 1u);
    const std::vector<double> all = ValuesOf(together[0]);
    std::vector<double> single;
    for (int64_t s = 0; s < kSamples; ++s) {
      const std::vector<double> one(values.begin() + s * kEach, values.begin() + (s + 1) * kEach);
      const auto alone =
          RunOnce(model.program, model.scope, {{"x", Doubles({1, 3, 4}, one)}}, {output});
      ASSERT_EQ(alone.size(), 1u);
      const std::vector<double> numbers = ValuesOf(alone[0]);
      single.insert(single.end(), numbers.begin(), numbers.end());
    }
    ASSERT_EQ(all.size(), single.size());
    ++opened;
    // Where another axis is the first one, samples lie in another order.
    const Shape& shape = together[0].shape();
    int64_t outer = 1;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] == kSamples * drawn.shape()[static_cast<size_t>(d)]) break;
      outer *= shape[d];
    }
    const auto inner = static_cast<int64_t>(all.size()) / outer / kSamples;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t s = 0; s < kSamples; ++s)
        for (int64_t i = 0; i < inner; ++i)
          ASSERT_NEAR(all[static_cast<size_t>((o * kSamples + s) * inner + i)],
                      single[static_cast<size_t>((s * outer + o) * inner + i)], 1e-12);
  }
  EXPECT_GT(opened, 150);
  EXPECT_GT(refused, 5);
}

// A parameter that the file repeats for each of two samples: it is repeated for as many as there
// are, if both have the same.
TEST(OpenBatch, WhatIsTheSameForEachSampleIsRepeated) {
  for (const bool same : {true, false}) {
    TestProgram p;
    const Variable x = p.Feed("x", {2, 3});
    const std::vector<double> rows = {1, 2, 3, 1, 2, same ? 3.0 : 4.0};
    const Variable state = p.Parameter("state", Doubles({2, 3}, rows));
    p.Apply("elementwise_add", {{"X", {x}}, {"Y", {state}}}, {}, "Out", "y");
    const Model model = p.Finish();
    const auto made = OpenBatch(model.program, *model.scope, {"x"});
    ASSERT_EQ(made.ok(), same) << made.status().ToString();
    if (!same) {
      EXPECT_THAT(made.status().message(), HasSubstr("operator elementwise_add (block 0"));
      continue;
    }
    const auto y = RunOnce(made->program, model.scope,
                           {{"x", Doubles({3, 3}, {0, 0, 0, 10, 10, 10, 20, 20, 20})}}, {"y"});
    ASSERT_EQ(y.size(), 1u);
    EXPECT_EQ(ValuesOf(y[0]), (std::vector<double>{1, 2, 3, 11, 12, 13, 21, 22, 23}));
  }
}

TEST(OpenBatch, NamesTheOperatorInTheWay) {
  TestProgram p;
  const Variable x = p.Feed("x", {1, 4});
  const Variable y =
      p.Apply("squeeze2", {{"X", {x}}}, {{"axes", std::vector<int64_t>{0}}}, "Out", "y");
  p.Apply("tanh", {{"X", {y}}}, {}, "Out", "z");
  const auto made = OpenBatch(p.Finish().program, Scope(), {"x"});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().message(), HasSubstr("operator squeeze2 (block 0, operator"));
  EXPECT_THAT(made.status().message(), HasSubstr("batches of 1"));
}

TEST(OpenBatch, AnInputWithoutAFixedDimensionIsRefused) {
  TestProgram p;
  const Variable x = p.Feed("x", {-1, 4});
  p.Apply("tanh", {{"X", {x}}}, {}, "Out", "z");
  const Program program = p.Finish().program;
  EXPECT_THAT(OpenBatch(program, Scope(), {"x"}).status().message(),
              HasSubstr("no fixed first dimension"));
  EXPECT_EQ(OpenBatch(program, Scope(), {"y"}).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace heddle::gradient
