// Channels last for lines: random networks of 1-D convolutions, which are planes of one row or one
// column, and what stands between them, at level 0 and at level 2.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

class Lines {
 public:
  explicit Lines(uint32_t seed) : random_(seed) {}

  Program Build(int steps) {
    batch_ = Draw(1, 3), channels_ = Draw(1, 12), length_ = Draw(12, 40);
    b_.Feed("x", DType::kF32, {-1, channels_, length_});
    feed_ = RandomF32({batch_, channels_, length_}, 9);
    current_ = "x";
    for (int i = 0; i < steps; ++i) Step(static_cast<int>(Draw(0, 9)));
    Convolve();
    b_.Fetch(current_);
    if (Draw(0, 2) == 0 && !before_.empty()) b_.Fetch(before_);
    return b_.Build();
  }
  const Tensor& feed() const { return feed_; }
  const std::shared_ptr<Scope>& scope() const { return scope_; }

 private:
  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Shape Now() const { return {-1, channels_, length_}; }
  std::string Name(const Shape& shape) {
    const std::string name = "v" + std::to_string(names_++);
    b_.Var(name, DType::kF32, shape);
    return name;
  }
  std::string Constant(const Shape& shape) {
    const std::string name = "c" + std::to_string(names_++);
    b_.Param(name, DType::kF32, shape);
    scope_->Set(name, Value(RandomF32(shape, static_cast<uint32_t>(names_))));
    return name;
  }
  void Made(const std::string& made) {
    if (current_ != "x") before_ = current_;
    current_ = made;
  }

  void Convolve() {
    const bool column = Draw(0, 1) == 1;
    const int64_t kernel = Draw(1, 3), outputs = Draw(1, 12), axis = column ? 3 : 2;
    const auto plane = [&](int64_t channels, int64_t length) {
      return column ? Shape{-1, channels, length, 1} : Shape{-1, channels, 1, length};
    };
    const std::string in = Name(plane(channels_, length_));
    b_.Op("unsqueeze2", {{"X", {current_}}}, {{"Out", {in}}},
          {{"axes", Ints{Draw(0, 1) == 1 ? axis : axis - 4}}});
    const std::string w = Constant({outputs, channels_, column ? kernel : 1, column ? 1 : kernel});
    length_ = length_ - kernel + 1, channels_ = outputs;
    const std::string out = Name(plane(channels_, length_)), line = Name(Now());
    b_.Op("conv2d", {{"Input", {in}}, {"Filter", {w}}}, {{"Output", {out}}},
          {{"strides", Ints{1, 1}}, {"paddings", Ints{0, 0}}, {"dilations", Ints{1, 1}}});
    b_.Op("squeeze2", {{"X", {out}}}, {{"Out", {line}}, {"XShape", {line + ".x"}}},
          {{"axes", Ints{Draw(0, 1) == 1 ? axis : axis - 4}}});
    Made(line);
  }

  void Slice(bool channels) {
    int64_t& size = channels ? channels_ : length_;
    if (size < (channels ? 2 : 8)) return;
    const int64_t start = Draw(0, 1), end = Draw(start + (channels ? 1 : 6), size);
    size = end - start;
    const std::string out = Name(Now());
    const int64_t axis = channels ? 1 : 2;
    b_.Op("slice", {{"Input", {current_}}}, {{"Out", {out}}},
          {{"axes", Ints{axis}}, {"starts", Ints{start}}, {"ends", Ints{end}}});
    Made(out);
  }

  void Concat(bool channels) {
    int64_t& size = channels ? channels_ : length_;
    if (size > 24) return;
    size *= 2;
    const std::string out = Name(Now());
    const int64_t axis = channels ? 1 : 2;
    b_.Op("concat", {{"X", {current_, current_}}}, {{"Out", {out}}},
          {{"axis", Draw(0, 1) == 1 ? axis : axis - 3}});
    Made(out);
  }

  void Add(const std::string& other, int64_t axis) {
    const std::string out = Name(Now());
    b_.Op("elementwise_add", {{"X", {current_}}, {"Y", {other}}}, {{"Out", {out}}},
          {{"axis", axis}});
    Made(out);
  }

  void Gate() {  // the mean over the line, times the line
    const std::string mean = Name({-1, channels_, 1}), out = Name(Now());
    b_.Op("reduce_mean", {{"X", {current_}}}, {{"Out", {mean}}},
          {{"dim", Ints{Draw(0, 1) == 1 ? 2 : -1}}, {"keep_dim", true}});
    b_.Binary("elementwise_mul", current_, mean, out);
    Made(out);
  }

  void Step(int kind) {
    switch (kind) {
      case 0:
        return Slice(false);
      case 1:
        return Slice(true);
      case 2:
        return Concat(Draw(0, 1) == 1);
      case 3:
        return Draw(0, 1) == 1 ? Add(Constant({channels_}), 1) : Add(Constant({channels_, 1}), -1);
      case 4:
        return Add(Constant({1, channels_, 1}), -1);
      case 5:
        return Draw(0, 1) == 1 ? Add(Constant({length_}), -1) : Add(current_, -1);
      case 6:
        return Gate();
      case 7: {
        const std::string out = Name(Now());
        b_.Unary(Draw(0, 1) == 1 ? "relu" : "tanh", current_, out);
        return Made(out);
      }
      default:
        return Convolve();
    }
  }

  std::mt19937 random_;
  ProgramBuilder b_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  Tensor feed_;
  std::string current_, before_;
  int64_t batch_ = 1, channels_ = 1, length_ = 1;
  int names_ = 0;
};

// Random networks of 1-D convolutions, with the pass and without it.
TEST(ChannelsLast, ThreeDimensionalNetworksGiveTheSameResults) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    Lines lines(seed);
    const Program program = lines.Build(3 + static_cast<int>(seed % 9));
    std::vector<Tensor> results[2];
    for (const int level : {0, 2}) {
      Executor executor({.threads = 1});
      const auto compiled = MustCompile(executor, program, lines.scope(), {.opt_level = level});
      results[level / 2] = MustRun(executor, compiled, {{"x", lines.feed()}});
    }
    for (size_t k = 0; k < results[0].size(); ++k) {
      ASSERT_EQ(results[0][k].shape(), results[1][k].shape()) << "seed " << seed;
      const std::vector<float> a = Floats(results[0][k]), b = Floats(results[1][k]);
      float largest = 1;
      for (const float v : a) largest = std::max(largest, std::fabs(v));
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], 1e-5f * largest) << "seed " << seed << ", element " << i;
    }
  }
}

// Convolutions with a sum, an activation, slices and a concat between them.
TEST(ChannelsLast, LinesAreTransposedAtBothEndsAlone) {
  constexpr int64_t kChannels = 8, kLength = 30;
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  const Shape line{-1, kChannels, kLength}, plane{-1, kChannels, 1, kLength};
  b.Feed("x", DType::kF32, line);
  std::string at = "x";
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    b.Param("w" + n, DType::kF32, {kChannels, kChannels, 1, 3});
    scope->Set("w" + n, Value(RandomF32({kChannels, kChannels, 1, 3}, 3)));
    const Shape longer{-1, kChannels, kLength + 2}, wide{-1, kChannels, 1, kLength + 2};
    b.Var("s" + n, DType::kF32, {-1, kChannels, 2}).Var("j" + n, DType::kF32, longer);
    b.Var("u" + n, DType::kF32, wide).Var("y" + n, DType::kF32, plane);
    b.Var("q" + n, DType::kF32, line).Var("r" + n, DType::kF32, line);
    b.Op("slice", {{"Input", {at}}}, {{"Out", {"s" + n}}},
         {{"axes", Ints{2}}, {"starts", Ints{0}}, {"ends", Ints{2}}});
    b.Op("concat", {{"X", {"s" + n, at}}}, {{"Out", {"j" + n}}}, {{"axis", int64_t{2}}});
    b.Op("unsqueeze2", {{"X", {"j" + n}}}, {{"Out", {"u" + n}}}, {{"axes", Ints{2}}});
    b.Op("conv2d", {{"Input", {"u" + n}}, {"Filter", {"w" + n}}}, {{"Output", {"y" + n}}},
         {{"strides", Ints{1, 1}}, {"paddings", Ints{0, 0}}, {"dilations", Ints{1, 1}}});
    b.Op("squeeze2", {{"X", {"y" + n}}}, {{"Out", {"q" + n}}}, {{"axes", Ints{2}}});
    b.Unary("tanh", "q" + n, "r" + n);
    at = "r" + n;
  }
  b.Fetch(at);
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 2});
  const auto plan = executor.DescribePlan(compiled, {{"x", RandomF32({2, kChannels, kLength}, 1)}});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  int transposes = 0;
  for (const auto& in : plan->instructions) transposes += in.op == "transpose2";
  EXPECT_EQ(transposes, 2);
}

}  // namespace
}  // namespace heddle::testing
