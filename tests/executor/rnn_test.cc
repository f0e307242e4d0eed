// Recurrent networks: constant weights are packed and take kernels of their own, which must agree
// with those for weights that are fed.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Net {
  std::string mode;
  int64_t layers, directions, in, hidden, steps, batch;
  bool lengths;
  int64_t gates() const { return mode == "LSTM" ? 4 : mode == "GRU" ? 3 : 1; }
};

// As layers are initialised: sums keep the size of what goes into them.
Tensor Random(const Shape& shape, std::mt19937& random) {
  const float limit = 1 / std::sqrt(static_cast<float>(shape.dim(-1)));
  std::uniform_real_distribution<float> value(-limit, limit);
  std::vector<float> v(static_cast<size_t>(shape.numel()));
  for (float& x : v) x = value(random);
  return F32(shape, v);
}

// Runs the network with its weights as parameters or as feeds: output and states.
std::vector<Tensor> Run(const Net& n, bool constant, int threads) {
  std::mt19937 random(7);
  ProgramBuilder b;
  std::vector<Feed> feeds;
  auto scope = std::make_shared<Scope>();
  const auto feed = [&](const std::string& name, Tensor value) {
    b.Feed(name, value.dtype(), value.shape());
    feeds.push_back({name, std::move(value)});
  };
  const auto weight = [&](const std::string& name, const Shape& shape) {
    Tensor value = Random(shape, random);
    if (!constant) return feed(name, std::move(value));
    b.Param(name, DType::kF32, shape);
    scope->Set(name, Value(std::move(value)));
  };
  const int64_t passes = n.layers * n.directions, gates = n.gates() * n.hidden;
  feed("x", Random({n.steps, n.batch, n.in}, random));
  std::vector<std::string> weights, states = {"h"}, after = {"h_after"};
  if (n.mode == "LSTM") states.push_back("c"), after.push_back("c_after");
  for (const auto& s : states) feed(s, Random({passes, n.batch, n.hidden}, random));
  for (int64_t p = 0; p < passes; ++p) {
    const int64_t in = p < n.directions ? n.in : n.directions * n.hidden;
    weights.push_back("ih" + std::to_string(p));
    weight(weights.back(), {gates, in});
    weights.push_back("hh" + std::to_string(p));
    weight(weights.back(), {gates, n.hidden});
  }
  for (int64_t i = 0; i < 2 * passes; ++i) {
    weights.push_back("bias" + std::to_string(i));
    weight(weights.back(), {gates});
  }
  Slots inputs = {{"Input", {"x"}}, {"PreState", states}, {"WeightList", weights}};
  if (n.lengths) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < n.batch; ++i) lengths.push_back(i * n.steps / n.batch);
    feed("lengths", I64({n.batch}, lengths));
    inputs.push_back({"SequenceLength", {"lengths"}});
  }
  b.Op("rnn", inputs, {{"Out", {"out"}}, {"State", after}},
       {{"mode", n.mode},
        {"num_layers", n.layers},
        {"is_bidirec", n.directions == 2},
        {"hidden_size", n.hidden},
        {"is_test", true}});
  b.Fetch("out");
  for (const auto& s : after) b.Fetch(s);
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, b.Build(), scope, {});
  return MustRun(executor, compiled, feeds);
}

void ExpectAgreement(const Net& n) {
  SCOPED_TRACE(n.mode + " hidden " + std::to_string(n.hidden) + " batch " +
               std::to_string(n.batch));
  const auto packed = Run(n, true, 1), fed = Run(n, false, 1);
  ASSERT_EQ(packed.size(), fed.size());
  for (size_t i = 0; i < packed.size(); ++i) {
    const auto a = Floats(packed[i]), b = Floats(fed[i]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_NEAR(a[k], b[k], 2e-5 * (1 + std::abs(b[k]))) << "output " << i << " at " << k;
  }
  for (int threads : {2, 3}) {
    const auto shared = Run(n, true, threads);
    for (size_t i = 0; i < packed.size(); ++i) ASSERT_EQ(Floats(packed[i]), Floats(shared[i]));
  }
}

TEST(Rnn, ConstantWeightsGiveTheResultsOfFedOnes) {
  for (const char* mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}) {
    ExpectAgreement({mode, 1, 1, 3, 5, 4, 1, false});
    ExpectAgreement({mode, 2, 2, 17, 33, 6, 5, true});
    ExpectAgreement({mode, 3, 1, 40, 96, 3, 2, false});
    ExpectAgreement({mode, 2, 2, 8, 32, 1, 7, true});
  }
}

TEST(Rnn, LargeStepsAreSharedByThreads) {
  ExpectAgreement({"LSTM", 1, 2, 32, 200, 2, 4, false});
  ExpectAgreement({"GRU", 1, 1, 32, 230, 2, 7, false});
  ExpectAgreement({"LSTM", 1, 1, 512, 100, 8, 1, false});
}

}  // namespace
}  // namespace heddle::testing
