// Steps behind the end of all sequences change nothing, give zeros, and their inputs are not read.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Case {
  std::string op;
  int64_t gates, steps, batch, in, hidden, directions;
  std::vector<int64_t> lengths;
  bool constant;  // weights: packed once, or fed
  std::string direction;
};

std::vector<Tensor> Recur(const Case& c, const Tensor& x, int threads) {
  const Shape w{c.directions, c.gates * c.hidden, c.in},
      r{c.directions, c.gates * c.hidden, c.hidden};
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds{{"x", x}};
  b.Feed("x", DType::kF32, x.shape()).Feed("lengths", DType::kI32, {c.batch});
  Tensor lengths = Tensor::Empty(DType::kI32, {c.batch});
  for (int64_t i = 0; i < c.batch; ++i)
    lengths.mutable_data<int32_t>()[i] = static_cast<int32_t>(c.lengths[static_cast<size_t>(i)]);
  feeds.push_back({"lengths", lengths});
  const auto weights = [&](const std::string& name, const Shape& shape, uint32_t seed) {
    const Tensor value = RandomF32(shape, seed, 0.5f);
    if (c.constant) {
      b.Param(name, DType::kF32, shape);
      scope->Set(name, Value(value));
    } else {
      b.Feed(name, DType::kF32, shape);
      feeds.push_back({name, value});
    }
  };
  weights("w", w, 1);
  weights("r", r, 2);
  Slots outputs{{"Y", {"y"}}, {"Y_h", {"h"}}};
  if (c.op == "lstm") outputs.push_back({"Y_c", {"c"}});
  b.Op("recurrent_network",
       {{"X", {"x"}}, {"W", {"w"}}, {"R", {"r"}}, {"sequence_lens", {"lengths"}}}, outputs,
       {{"cell", c.op}, {"hidden_size", c.hidden}, {"direction", c.direction}});
  b.Fetch("y").Fetch("h");
  if (c.op == "lstm") b.Fetch("c");
  Executor executor({.threads = threads});
  return MustRun(executor, MustCompile(executor, b.Build(), scope), feeds);
}

// The steps [0, n) of [steps, ...].
Tensor First(const Tensor& t, int64_t n) {
  Shape shape = t.shape();
  shape[0] = n;
  Tensor to = Tensor::Empty(DType::kF32, shape);
  std::memcpy(to.mutable_raw(), t.raw(), static_cast<size_t>(to.numel()) * sizeof(float));
  return to;
}

TEST(SequenceLengths, StepsBehindTheLongestSequenceAreLeftOut) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const std::pair<const char*, int64_t> ops[] = {{"gru", 3}, {"lstm", 4}, {"rnn", 1}};
  for (int round = 0; round < 90; ++round) {
    Case c;
    std::tie(c.op, c.gates) = ops[round % 3];
    c.steps = draw(2, 12), c.batch = draw(1, 4), c.in = draw(1, 9), c.hidden = draw(1, 70);
    c.constant = draw(0, 2) > 0;
    const int64_t kind = draw(0, 2);
    c.direction = kind == 0 ? "forward" : kind == 1 ? "reverse" : "bidirectional";
    c.directions = kind == 2 ? 2 : 1;
    const int64_t longest = draw(1, c.steps - 1);
    for (int64_t b = 0; b < c.batch; ++b) c.lengths.push_back(draw(1, longest));
    c.lengths[0] = longest;
    Tensor x = RandomF32({c.steps, c.batch, c.in}, static_cast<uint32_t>(round));
    for (int64_t i = longest * c.batch * c.in; i < x.numel(); ++i)
      x.mutable_data<float>()[i] = std::nanf("");
    const int threads = static_cast<int>(draw(1, 2));
    const std::vector<Tensor> all = Recur(c, x, threads);
    const std::vector<Tensor> cut = Recur(c, First(x, longest), threads);
    const std::string what = c.op + " round " + std::to_string(round);
    for (size_t k = 0; k < all.size(); ++k)
      for (int64_t i = 0; i < cut[k].numel(); ++i)  // products of other sizes round otherwise
        ASSERT_NEAR(all[k].data<float>()[i], cut[k].data<float>()[i], 2e-6) << what;
    for (int64_t i = cut[0].numel(); i < all[0].numel(); ++i)
      ASSERT_EQ(all[0].data<float>()[i], 0.f) << what;
  }
}

}  // namespace
}  // namespace heddle::testing
