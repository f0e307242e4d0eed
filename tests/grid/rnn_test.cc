// Recurrent networks and their gradients on the grid device, against the host.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/grid/grid_device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Net {
  std::string mode;
  int64_t layers = 1;
  bool both = false;  // directions
  DType lengths = DType::kUnknown;
  int64_t steps = 5;
  double dropout = 0;

  int64_t gates() const { return mode == "LSTM" ? 4 : mode == "GRU" ? 3 : 1; }
  int64_t passes() const { return both ? 2 * layers : layers; }
};
constexpr int64_t kBatch = 3, kIn = 4, kHidden = 6;

std::string NetName(const Net& n) {
  return n.mode + ", " + std::to_string(n.layers) + " layers, " + (n.both ? "both, " : "") +
         "lengths " + std::string(Name(n.lengths)) + ", " + std::to_string(n.steps) + " steps";
}

class NetBuilder {
 public:
  explicit NetBuilder(const Net& net) : net_(net) {
    const int64_t width = net.both ? 2 * kHidden : kHidden;
    Operand("x", {net.steps, kBatch, kIn});
    for (int i = 0; i < (net.mode == "LSTM" ? 2 : 1); ++i)
      states_.push_back(Operand("s" + std::to_string(i), {net.passes(), kBatch, kHidden}));
    for (int64_t p = 0; p < net.passes(); ++p) {
      const int64_t in = p < (net.both ? 2 : 1) ? kIn : width;
      weights_.push_back(Operand("wi" + std::to_string(p), {net.gates() * kHidden, in}));
      weights_.push_back(Operand("wh" + std::to_string(p), {net.gates() * kHidden, kHidden}));
    }
    for (int64_t p = 0; p < 2 * net.passes(); ++p)
      weights_.push_back(Operand("b" + std::to_string(p), {net.gates() * kHidden}));
    inputs_ = {{"Input", {"x"}}, {"PreState", states_}, {"WeightList", weights_}};
    if (net.lengths != DType::kUnknown) {
      b_.Feed("lengths", net.lengths, {kBatch});
      Tensor t = Tensor::Empty(net.lengths, {kBatch});
      const int64_t values[kBatch] = {net.steps, 0, std::min<int64_t>(2, net.steps)};
      for (int64_t i = 0; i < kBatch; ++i) {
        if (net.lengths == DType::kI64)
          t.mutable_data<int64_t>()[i] = values[i];
        else
          t.mutable_data<int32_t>()[i] = static_cast<int32_t>(values[i]);
      }
      feeds_.push_back({"lengths", t});
      inputs_.push_back({"SequenceLength", {"lengths"}});
    }
    attrs_ = {{"mode", net.mode},       {"num_layers", net.layers},    {"is_bidirec", net.both},
              {"hidden_size", kHidden}, {"dropout_prob", net.dropout}, {"is_test", false}};
  }

  Program Forward() {
    std::vector<std::string> last;
    for (const std::string& s : states_) last.push_back("last_" + s);
    b_.Op("rnn", inputs_, {{"Out", {"y"}}, {"State", last}}, attrs_).Fetch("y");
    for (const std::string& s : last) b_.Fetch(s);
    return b_.Build();
  }

  // `all`: every gradient from every gradient; otherwise the input's from the output's.
  Program Backward(bool all) {
    const int64_t width = net_.both ? 2 * kHidden : kHidden;
    Slots in = inputs_, out{{"Input@GRAD", {"dx"}}};
    in.push_back({"Out@GRAD", {Operand("dy", {net_.steps, kBatch, width})}});
    if (net_.dropout > 0) {
      b_.Feed("mask", DType::kU8, {net_.layers - 1, net_.steps, kBatch, width});
      Tensor mask = Tensor::Empty(DType::kU8, {net_.layers - 1, net_.steps, kBatch, width});
      for (int64_t i = 0; i < mask.numel(); ++i) mask.mutable_data<uint8_t>()[i] = i % 3 != 0;
      feeds_.push_back({"mask", mask});
      in.push_back({"DropoutState", {"mask"}});
    }
    b_.Fetch("dx");
    if (all) {
      std::vector<std::string> from, states, weights;
      for (const std::string& s : states_) {
        from.push_back(Operand("d_last_" + s, {net_.passes(), kBatch, kHidden}));
        states.push_back("d_" + s);
      }
      for (const std::string& w : weights_) weights.push_back("d_" + w);
      in.push_back({"State@GRAD", from});
      out.push_back({"PreState@GRAD", states});
      out.push_back({"WeightList@GRAD", weights});
      for (const auto* list : {&states, &weights})
        for (const std::string& name : *list) b_.Fetch(name);
    }
    b_.Op("rnn_grad", in, out, attrs_);
    return b_.Build();
  }

  const std::vector<heddle::Feed>& feeds() const { return feeds_; }

 private:
  std::string Operand(const std::string& name, const Shape& shape) {
    b_.Feed(name, DType::kF32, shape);
    feeds_.push_back({name, RandomF32(shape, static_cast<uint32_t>(feeds_.size()) + 1, 0.6f)});
    return name;
  }

  const Net net_;
  ProgramBuilder b_;
  std::vector<std::string> states_, weights_;
  Slots inputs_;
  Attrs attrs_;
  std::vector<heddle::Feed> feeds_;
};

void Compare(const Program& program, const std::vector<heddle::Feed>& feeds,
             const std::string& op) {
  auto device = std::make_shared<GridDevice>();
  Executor host({.threads = 1}), grid({.threads = 1, .device = device});
  const CompiledProgram there = MustCompile(host, program), here = MustCompile(grid, program);
  const auto want = MustRun(host, there, feeds), got = MustRun(grid, here, feeds);
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].shape(), want[k].shape());
    const auto a = Floats(got[k]), b = Floats(want[k]);
    for (size_t i = 0; i < b.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-5f * (1 + std::fabs(b[i]))) << "result " << k << " [" << i << "]";
  }
  EXPECT_GT(device->covered()[op], 0);
  EXPECT_EQ(device->refused().count(op), 0u);
}

std::vector<Net> Nets() {
  std::vector<Net> nets;
  for (const char* mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"})
    for (const int64_t layers : {1, 3})
      for (const bool both : {false, true})
        for (const DType lengths : {DType::kUnknown, DType::kI32, DType::kI64})
          nets.push_back({mode, layers, both, lengths});
  for (const char* mode : {"LSTM", "GRU"})
    for (const int64_t steps : {0, 1}) nets.push_back({mode, 2, true, DType::kUnknown, steps});
  return nets;
}

TEST(GridRnn, ForwardIsAsOnTheHost) {
  for (const Net& net : Nets()) {
    SCOPED_TRACE(NetName(net));
    NetBuilder builder(net);
    Compare(builder.Forward(), builder.feeds(), "rnn");
    if (HasFatalFailure()) return;
  }
}

TEST(GridRnn, GradientIsAsOnTheHost) {
  for (const Net& net : Nets())
    for (const bool all : {false, true}) {
      SCOPED_TRACE(NetName(net) + (all ? ", all" : ", input"));
      NetBuilder builder(net);
      Compare(builder.Backward(all), builder.feeds(), "rnn_grad");
      if (HasFatalFailure()) return;
    }
}

// The mask of the forward pass, which the host drew.
TEST(GridRnn, GradientReadsTheMaskOfDropout) {
  NetBuilder builder({"LSTM", 3, true, DType::kI64, 4, 0.3});
  Compare(builder.Backward(true), builder.feeds(), "rnn_grad");
}

TEST(GridRnn, RandomNumbersAreTheHosts) {
  NetBuilder builder({"LSTM", 3, true, DType::kI64, 4, 0.3});
  auto device = std::make_shared<GridDevice>();
  Executor grid({.threads = 1, .device = device});
  MustRun(grid, MustCompile(grid, builder.Forward()), builder.feeds());
  EXPECT_EQ(device->covered().count("rnn"), 0u);
  EXPECT_GT(device->refused()["rnn"], 0);
}

}  // namespace
}  // namespace heddle::testing
