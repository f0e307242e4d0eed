// Recurrent layers beside a plain loop in double: random sizes, directions, lengths and biases,
// with weights that are packed once and ones that are fed, drawn from a seed.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Layer {
  std::string op;
  int64_t gates, steps, batch, in, hidden;
  std::string direction;
  std::vector<int64_t> lengths;
  bool constant, bias;

  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class Operands {
 public:
  Operands(const Layer& l, uint32_t seed)
      : x(RandomF32({l.steps, l.batch, l.in}, seed)),
        w(RandomF32({l.directions(), l.gates * l.hidden, l.in}, seed + 1, 0.7f)),
        r(RandomF32({l.directions(), l.gates * l.hidden, l.hidden}, seed + 2, 0.7f)),
        bias(RandomF32({l.directions(), 2 * l.gates * l.hidden}, seed + 3)) {}
  Tensor x, w, r, bias;
};

// One direction of one sequence. `y` gets the hidden state of each step that the sequence has.
class PlainCell {
 public:
  PlainCell(const Layer& l, const Operands& o, int64_t direction)
      : l_(l), o_(o), d_(direction), h_(Hidden()), c_(Hidden()) {}

  const std::vector<double>& Step(int64_t step, int64_t sequence) {
    const std::vector<double> before = h_;
    const auto n = static_cast<size_t>(l_.hidden);
    if (l_.op == "gru") {  // update, reset, new
      std::vector<double> reset(n);
      for (size_t i = 0; i < n; ++i)
        reset[i] = Sigmoid(Sum(1, i, step, sequence, before)) * before[i];
      for (size_t i = 0; i < n; ++i) {
        const double keep = Sigmoid(Sum(0, i, step, sequence, before));
        h_[i] = (1 - keep) * std::tanh(Sum(2, i, step, sequence, reset)) + keep * before[i];
      }
    } else if (l_.op == "lstm") {  // input, output, forget, new
      for (size_t i = 0; i < n; ++i) {
        c_[i] = Sigmoid(Sum(2, i, step, sequence, before)) * c_[i] +
                Sigmoid(Sum(0, i, step, sequence, before)) *
                    std::tanh(Sum(3, i, step, sequence, before));
        h_[i] = Sigmoid(Sum(1, i, step, sequence, before)) * std::tanh(c_[i]);
      }
    } else {
      for (size_t i = 0; i < n; ++i) h_[i] = std::tanh(Sum(0, i, step, sequence, before));
    }
    return h_;
  }

 private:
  std::vector<double> Hidden() const {
    return std::vector<double>(static_cast<size_t>(l_.hidden), 0.0);
  }
  double Sum(int64_t gate, size_t i, int64_t step, int64_t sequence,
             const std::vector<double>& h) const {
    const int64_t row = (d_ * l_.gates + gate) * l_.hidden + static_cast<int64_t>(i);
    const int64_t row_of_bias = row + d_ * l_.gates * l_.hidden;
    double sum = 0;
    for (int64_t k = 0; k < l_.in; ++k)
      sum += static_cast<double>(o_.w.data<float>()[row * l_.in + k]) *
             o_.x.data<float>()[(step * l_.batch + sequence) * l_.in + k];
    for (int64_t k = 0; k < l_.hidden; ++k)
      sum +=
          static_cast<double>(o_.r.data<float>()[row * l_.hidden + k]) * h[static_cast<size_t>(k)];
    if (l_.bias)
      sum += static_cast<double>(o_.bias.data<float>()[row_of_bias]) +
             static_cast<double>(o_.bias.data<float>()[row_of_bias + l_.gates * l_.hidden]);
    return sum;
  }

  const Layer& l_;
  const Operands& o_;
  const int64_t d_;
  std::vector<double> h_, c_;
};

Tensor Run(const Layer& l, const Operands& o) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  std::vector<Feed> feeds{{"x", o.x}};
  b.Feed("x", DType::kF32, o.x.shape()).Feed("lengths", DType::kI32, {l.batch});
  Tensor lengths = Tensor::Empty(DType::kI32, {l.batch});
  for (size_t i = 0; i < l.lengths.size(); ++i)
    lengths.mutable_data<int32_t>()[i] = static_cast<int32_t>(l.lengths[i]);
  feeds.push_back({"lengths", lengths});
  Slots inputs{{"X", {"x"}}, {"W", {"w"}}, {"R", {"r"}}, {"sequence_lens", {"lengths"}}};
  const auto weights = [&](const std::string& name, const Tensor& value) {
    if (l.constant) {
      b.Param(name, DType::kF32, value.shape());
      scope->Set(name, Value(value));
    } else {
      b.Feed(name, DType::kF32, value.shape());
      feeds.push_back({name, value});
    }
  };
  weights("w", o.w);
  weights("r", o.r);
  if (l.bias) {
    weights("b", o.bias);
    inputs.push_back({"B", {"b"}});
  }
  b.Op("recurrent_network", inputs, {{"Y", {"y"}}},
       {{"cell", l.op}, {"hidden_size", l.hidden}, {"direction", l.direction}});
  b.Fetch("y");
  Executor executor({.threads = 2});
  return MustRun(executor, MustCompile(executor, b.Build(), scope), feeds)[0];
}

void Check(const Layer& l, uint32_t seed) {
  const Operands o(l, seed);
  const Tensor got = Run(l, o);
  ASSERT_EQ(got.shape(), (Shape{l.steps, l.directions(), l.batch, l.hidden}));
  for (int64_t d = 0; d < l.directions(); ++d)
    for (int64_t s = 0; s < l.batch; ++s) {
      PlainCell cell(l, o, d);
      const bool back = d == 1 || l.direction == "reverse";
      const int64_t length = l.lengths[static_cast<size_t>(s)];
      for (int64_t t = 0; t < l.steps; ++t) {
        const int64_t step = back && t < length ? length - 1 - t : t;
        const float* const y =
            got.data<float>() + ((step * l.directions() + d) * l.batch + s) * l.hidden;
        const std::vector<double> want =
            t < length ? cell.Step(step, s)
                       : std::vector<double>(static_cast<size_t>(l.hidden), 0.0);
        for (int64_t i = 0; i < l.hidden; ++i)
          ASSERT_NEAR(y[i], want[static_cast<size_t>(i)], 2e-5)
              << l.op << ' ' << l.direction << ", sequence " << s << ", step " << step
              << ", element " << i;
      }
    }
}

TEST(RecurrentBesidePlainLoop, CellsOfAllKinds) {
  std::mt19937 random(17);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const std::pair<const char*, int64_t> ops[] = {{"gru", 3}, {"lstm", 4}, {"rnn", 1}};
  const char* const directions[] = {"forward", "reverse", "bidirectional"};
  for (uint32_t round = 0; round < 72; ++round) {
    Layer l{.op = ops[round % 3].first,
            .gates = ops[round % 3].second,
            .steps = draw(1, 9),
            .batch = draw(1, 5),
            .in = draw(1, 20),
            .hidden = draw(1, 40),
            .direction = directions[draw(0, 2)],
            .lengths = {},
            .constant = draw(0, 1) != 0,
            .bias = draw(0, 1) != 0};
    const bool whole = draw(0, 1) != 0;
    for (int64_t s = 0; s < l.batch; ++s) l.lengths.push_back(whole ? l.steps : draw(1, l.steps));
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(Check(l, 10 * round));
  }
}

}  // namespace
}  // namespace heddle::testing
