// Convolutions by cuDNN's graph interface, on the grid device with a stand-in for the library:
// which calls it is given, what it is told about them, and what comes out, against the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/cuda/grid/dnn.h"

namespace heddle::grid_on_host {
namespace {

ConvAxis Axis(int32_t in, int32_t kernel, int32_t stride, int32_t before, int32_t after,
              int32_t dilation = 1) {
  const int32_t reach = dilation * (kernel - 1) + 1;
  return {in, (in + before + after - reach) / stride + 1, kernel, stride, before, dilation};
}

TEST(GridDnn, TakesPaddingThatIsTheSameOnBothSides) {
  EXPECT_TRUE(EvenlyPadded(Axis(7, 3, 1, 1, 1)));
  EXPECT_TRUE(EvenlyPadded(Axis(7, 3, 2, 0, 0)));
  EXPECT_TRUE(EvenlyPadded(Axis(8, 3, 2, 1, 1)));
  EXPECT_TRUE(EvenlyPadded(Axis(9, 3, 1, 2, 2, 2)));
  // The last row of a stride does not reach the padding behind: it is as good as the same.
  EXPECT_TRUE(EvenlyPadded(Axis(8, 3, 2, 1, 0)));
  EXPECT_FALSE(EvenlyPadded(Axis(8, 3, 2, 0, 1)));
  EXPECT_FALSE(EvenlyPadded(Axis(7, 2, 1, 0, 1)));
  EXPECT_FALSE(EvenlyPadded(Axis(7, 2, 1, 1, 0)));
  EXPECT_FALSE(EvenlyPadded(Axis(5, 3, 1, 3, 1)));
}

TEST(GridDnn, TakesNothingEmpty) {
  ConvShape g;
  g.batch = 1, g.in_c = 2, g.out_c = 3;
  g.h = g.w = Axis(5, 3, 1, 1, 1);
  EXPECT_TRUE(DnnTakes(g));
  g.batch = 0;
  EXPECT_FALSE(DnnTakes(g));
}

}  // namespace
}  // namespace heddle::grid_on_host

#ifdef HEDDLE_CUDNN

#include <cmath>

#include "tests/grid/cudnn_stand_in.h"
#include "tests/grid/grid_device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class GridCudnn : public ::testing::Test {
 protected:
  GridCudnn() { CudnnStandIn::Reset(); }
  // Nothing was said to the library that its documentation does not allow, and all that was made is
  // gone.
  ~GridCudnn() override {
    EXPECT_THAT(stand_in().mistakes, IsEmpty());
    EXPECT_EQ(stand_in().handles, 0);
    EXPECT_EQ(stand_in().descriptors, 0);
  }

  static CudnnStandIn& stand_in() { return CudnnStandIn::Get(); }

  struct Outcome {
    std::string implementation;  // of the program's one operator, or the error
    int executed = 0;            // plans of the library
  };
  // Runs the program on the device and on the host.
  static Outcome Compare(ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                         const CompileOptions& options = {.opt_level = 0}, bool tf32 = false) {
    Outcome outcome;
    auto dnn = grid_on_host::NewCudnn(StandInApi(), tf32);
    EXPECT_TRUE(dnn.ok()) << dnn.status().ToString();
    if (!dnn.ok()) return outcome;
    auto device = std::make_shared<GridDevice>(1, true, *std::move(dnn));
    Executor host({.threads = 1}), grid({.threads = 1, .device = device});
    const Program program = b.Build();
    auto here = grid.Compile(program, nullptr, options);
    if (!here.ok()) return {here.status().message()};
    auto plan = grid.DescribePlan(*here, feeds);
    if (!plan.ok()) return {plan.status().message()};
    for (const auto& in : plan->instructions)
      if (in.op.find("conv") != std::string::npos) outcome.implementation = in.implementation;
    const auto want = MustRun(host, MustCompile(host, program, nullptr, {.opt_level = 0}), feeds);
    const int before = stand_in().executed;
    for (int run = 0; run < 2; ++run) {
      const auto got = MustRun(grid, *here, feeds);
      EXPECT_EQ(got.size(), want.size());
      for (size_t k = 0; k < want.size(); ++k) ExpectNear(got[k], want[k]);
    }
    outcome.executed = (stand_in().executed - before) / 2;
    return outcome;
  }

  static void ExpectNear(const Tensor& got, const Tensor& want) {
    ASSERT_EQ(got.shape(), want.shape());
    const auto a = Floats(got), b = Floats(want);
    for (size_t i = 0; i < b.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-4f * (1 + std::fabs(b[i]))) << "[" << i << "]";
  }
};

// A convolution of images 7 x 6.
struct Layer {
  int64_t in = 4, out = 6, groups = 1, kernel = 3;
  Ints pads = {1, 1}, strides = {1, 1}, dilations = {1, 1};
  std::string format = "NCHW", padding = "EXPLICIT";
  bool addends = false, residual = false, bias = false;
  bool in_place = false;  // the result takes the residual's memory
  std::string activation = "";
  double alpha = 0, scale = 1;

  bool last() const { return format == "NHWC"; }
  Attrs attrs() const {
    return {{"paddings", pads}, {"strides", strides},    {"dilations", dilations},
            {"groups", groups}, {"data_format", format}, {"padding_algorithm", padding}};
  }
  Shape Image(int64_t channels, int64_t h, int64_t w) const {
    return last() ? Shape{2, h, w, channels} : Shape{2, channels, h, w};
  }
  // Rows and columns of the result.
  int64_t Size(int64_t size, size_t d) const {
    if (padding == "SAME") return (size + strides[d] - 1) / strides[d];
    const int64_t both = pads.size() == 4 ? pads[2 * d] + pads[2 * d + 1] : 2 * pads[d];
    return (size + both - dilations[d] * (kernel - 1) - 1) / strides[d] + 1;
  }
  Shape Input() const { return Image(in, 7, 6); }
  Shape Filter() const { return {out, in / groups, kernel, kernel}; }
  Shape Output() const { return Image(out, Size(7, 0), Size(6, 1)); }
};

class LayerProgram {
 public:
  explicit LayerProgram(const Layer& layer) : layer_(layer) {}

  LayerProgram& Forward(const std::string& op = "conv2d") {
    b_.Op(op, {{"Input", {Feed("x", layer_.Input())}}, {"Filter", {Feed("w", layer_.Filter())}}},
          {{"Output", {"y"}}}, layer_.attrs());
    b_.Fetch("y");
    return *this;
  }
  LayerProgram& Transposed() {  // from the output's size to the input's
    b_.Op("conv2d_transpose",
          {{"Input", {Feed("x", layer_.Output())}}, {"Filter", {Feed("w", layer_.Filter())}}},
          {{"Output", {"y"}}}, layer_.attrs());
    b_.Fetch("y");
    return *this;
  }
  LayerProgram& Gradient(bool transposed = false, bool input = true, bool filter = true) {
    const Shape from = transposed ? layer_.Output() : layer_.Input();
    const Shape to = transposed ? layer_.Input() : layer_.Output();
    Slots in{{"Input", {Feed("x", from)}},
             {"Filter", {Feed("w", layer_.Filter())}},
             {"Output@GRAD", {Feed("dy", to)}}};
    Slots out;
    if (input) {
      out.push_back({"Input@GRAD", {"dx"}});
      if (layer_.addends) in.push_back({"AddendOfInput", {Feed("ax", from)}});
      b_.Fetch("dx");
    }
    if (filter) {
      out.push_back({"Filter@GRAD", {"dw"}});
      if (layer_.addends) in.push_back({"AddendOfFilter", {Feed("aw", layer_.Filter())}});
      b_.Fetch("dw");
    }
    b_.Op(transposed ? "conv2d_transpose_grad" : "conv2d_grad", in, out, layer_.attrs());
    return *this;
  }
  LayerProgram& Fused(bool transposed = false) {
    const Shape from = transposed ? layer_.Output() : layer_.Input();
    const Shape to = transposed ? layer_.Input() : layer_.Output();
    Slots in{{"Input", {Feed("x", from)}}, {"Filter", {Feed("w", layer_.Filter())}}};
    if (layer_.bias) in.push_back({"Bias", {Feed("b", {transposed ? layer_.in : layer_.out})}});
    if (layer_.residual) {
      Feed("r", to);
      b_.Unary("tanh", "r", "s");
      in.push_back({"ResidualData", {"s"}});
    }
    Attrs attrs = layer_.attrs();
    attrs.push_back({"fuse_activation", layer_.activation});
    attrs.push_back({"fuse_alpha", layer_.alpha});
    attrs.push_back({"fuse_scale", layer_.scale});
    const std::string out = layer_.in_place ? "s" : "y";
    b_.Op(transposed ? "fused_conv2d_transpose" : "fused_conv2d", in, {{"Output", {out}}}, attrs);
    b_.Fetch(out);
    return *this;
  }

  ProgramBuilder& builder() { return b_; }
  const std::vector<heddle::Feed>& feeds() const { return feeds_; }

 private:
  std::string Feed(const std::string& name, const Shape& shape) {
    b_.Feed(name, DType::kF32, shape);
    feeds_.push_back({name, RandomF32(shape, static_cast<uint32_t>(feeds_.size()) + 1)});
    return name;
  }

  const Layer layer_;
  ProgramBuilder b_;
  std::vector<heddle::Feed> feeds_;
};

std::vector<Layer> Layers() {
  return {{},
          {.in = 6, .groups = 2},
          {.kernel = 1, .pads = {0, 0}},
          {.pads = {2, 0}, .strides = {2, 1}},
          {.pads = {2, 2}, .dilations = {2, 2}},
          {.pads = {1, 1, 1, 1}, .strides = {2, 2}},
          {.padding = "SAME"},
          {.format = "NHWC"},
          {.in = 6, .groups = 3, .strides = {1, 2}, .format = "NHWC"}};
}

TEST_F(GridCudnn, ConvolvesAsTheHostDoes) {
  stand_in().engines = {{.index = 38, .workspace = 1000}};
  for (const Layer& layer : Layers()) {
    LayerProgram p(layer);
    const Outcome got = Compare(p.Forward().builder(), p.feeds());
    EXPECT_EQ(got.implementation, "cudnn, engine 38");
    EXPECT_EQ(got.executed, 1);
  }
}

TEST_F(GridCudnn, GradientsAreAsOnTheHost) {
  for (Layer layer : Layers())
    for (const bool addends : {false, true}) {
      layer.addends = addends;
      LayerProgram both(layer), input(layer), filter(layer);
      Outcome got = Compare(both.Gradient().builder(), both.feeds());
      EXPECT_EQ(got.implementation, "cudnn, engine 1, engine 1");
      EXPECT_EQ(got.executed, 2);
      got = Compare(input.Gradient(false, true, false).builder(), input.feeds());
      EXPECT_EQ(got.implementation, "cudnn, engine 1");
      got = Compare(filter.Gradient(false, false, true).builder(), filter.feeds());
      EXPECT_EQ(got.implementation, "cudnn, engine 1");
    }
}

TEST_F(GridCudnn, TransposedOnesAreGradientsOfTheInput) {
  for (Layer layer : Layers()) {
    if (layer.strides != Ints{1, 1}) continue;  // sizes that a stride leaves open
    LayerProgram p(layer);
    EXPECT_EQ(Compare(p.Transposed().builder(), p.feeds()).implementation, "cudnn, engine 1");
    layer.bias = layer.residual = true;
    layer.activation = "relu";
    LayerProgram f(layer);
    EXPECT_EQ(Compare(f.Fused(true).builder(), f.feeds()).implementation, "cudnn, engine 1");
    if (layer.last()) continue;
    layer.addends = true;
    LayerProgram g(layer);
    EXPECT_EQ(Compare(g.Gradient(true).builder(), g.feeds()).implementation,
              "cudnn, engine 1, engine 1");
  }
}

TEST_F(GridCudnn, WhatFollowsIsPartOfThePlan) {
  for (Layer layer : Layers()) {
    layer.residual = layer.bias = true;
    layer.activation = "relu";
    LayerProgram p(layer);
    EXPECT_EQ(Compare(p.Fused().builder(), p.feeds()).implementation, "cudnn, engine 1, fused");
  }
  for (const std::string activation : {"", "identity", "relu"})
    for (const int residual : {0, 1, 2}) {
      SCOPED_TRACE(activation + ", residual " + std::to_string(residual));
      LayerProgram p({.residual = residual > 0,
                      .bias = true,
                      .in_place = residual > 1,
                      .activation = activation});
      const Outcome got = Compare(p.Fused().builder(), p.feeds());
      EXPECT_EQ(got.implementation, "cudnn, engine 1, fused");
      EXPECT_EQ(got.executed, 1);
    }
}

// Functions for which the library is slow, and graphs that none of its engines supports: it
// convolves, and a kernel of our own does the rest.
TEST_F(GridCudnn, WhatItCannotFuseFollowsIt) {
  for (const bool residual : {false, true}) {
    for (const char* activation : {"relu6", "leaky_relu", "sigmoid", "swish", "gelu", "mish"}) {
      SCOPED_TRACE(activation);
      LayerProgram p({.residual = residual, .bias = true, .activation = activation, .alpha = 0.1});
      EXPECT_EQ(Compare(p.Fused().builder(), p.feeds()).implementation, "cudnn, engine 1");
    }
    for (const Layer& layer : {Layer{.residual = residual, .activation = "relu"},
                               Layer{.residual = residual, .bias = true, .scale = 0.5}}) {
      LayerProgram p(layer);
      EXPECT_EQ(Compare(p.Fused().builder(), p.feeds()).implementation, "cudnn, engine 1");
    }
  }
  stand_in().engines = {{.index = 2, .most_operations = 1}};
  for (const std::string format : {"NCHW", "NHWC"}) {
    LayerProgram p({.format = format, .residual = true, .bias = true, .activation = "relu"});
    EXPECT_EQ(Compare(p.Fused().builder(), p.feeds()).implementation, "cudnn, engine 2");
  }
}

TEST_F(GridCudnn, UnevenPaddingIsLeftToPatches) {
  for (const Layer& layer : {Layer{.pads = {0, 1, 0, 1}}, Layer{.pads = {1, 1, 2, 0}},
                             Layer{.kernel = 2, .padding = "SAME"}}) {
    LayerProgram p(layer), g(layer);
    const Outcome got = Compare(p.Forward().builder(), p.feeds());
    EXPECT_EQ(got.implementation, "patches");
    EXPECT_EQ(got.executed, 0);
    EXPECT_EQ(Compare(g.Gradient().builder(), g.feeds()).implementation, "patches");
  }
}

TEST_F(GridCudnn, DepthwiseOnesHaveAKernelOfTheirOwn) {
  const Layer layer{.in = 6, .groups = 6};
  LayerProgram p(layer), forced(layer), g(layer);
  EXPECT_EQ(Compare(p.Forward("depthwise_conv2d").builder(), p.feeds()).implementation,
            "depthwise");
  EXPECT_EQ(Compare(forced.Forward("depthwise_conv2d").builder(), forced.feeds(),
                    {.opt_level = 0, .force = "conv=cudnn"})
                .implementation,
            "cudnn, engine 1");
  EXPECT_THAT(Compare(g.Gradient().builder(), g.feeds()).implementation, StartsWith("cudnn"));
}

TEST_F(GridCudnn, AnImplementationCanBeForced) {
  const auto with = [](const std::string& force, const Layer& layer = {}) {
    LayerProgram p(layer);
    return Compare(p.Forward().builder(), p.feeds(), {.opt_level = 0, .force = force})
        .implementation;
  };
  EXPECT_EQ(with("conv=patches"), "patches");
  EXPECT_EQ(with("conv=cudnn"), "cudnn, engine 1");
  EXPECT_EQ(with("conv=winograd:patches"), "patches");
  EXPECT_THAT(with("conv=depthwise"),
              HasSubstr("conv=depthwise does not cover this case; implementations that do are "
                        "cudnn, patches"));
  EXPECT_THAT(with("conv=cudnn", {.pads = {0, 1, 0, 1}}),
              HasSubstr("implementations that do are patches"));
}

TEST_F(GridCudnn, EnginesThatAreNotDeterministicOrLessPreciseAreLeftOut) {
  const std::vector<StandInEngine> engines = {
      {.index = 1, .notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
      {.index = 2, .notes = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}},
      {.index = 3, .notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}},
      {.index = 4, .notes = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}},
      {.index = 5, .workspace = int64_t{1} << 40},
      {.index = 6, .notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD}}};
  const auto chosen = [&](size_t first, bool tf32) {
    stand_in().engines.assign(engines.begin() + static_cast<std::ptrdiff_t>(first), engines.end());
    LayerProgram p({});
    return Compare(p.Forward().builder(), p.feeds(), {.opt_level = 0}, tf32).implementation;
  };
  EXPECT_EQ(chosen(0, false), "cudnn, engine 6");
  EXPECT_EQ(chosen(0, true), "cudnn, engine 3");
  EXPECT_EQ(chosen(3, true), "cudnn, engine 4");
  EXPECT_EQ(chosen(4, true), "cudnn, engine 6");
  EXPECT_EQ(chosen(6, true), "patches");  // there is none
}

TEST_F(GridCudnn, TheFallbacksAreTheLast) {
  stand_in().engines = {{.index = 7, .fallback = true},
                        {.index = 8, .most_operations = 0}};  // is named, and then refuses
  LayerProgram p({});
  EXPECT_EQ(Compare(p.Forward().builder(), p.feeds()).implementation, "cudnn, engine 7");
}

TEST_F(GridCudnn, OtherVersionsAndNoHandleAreErrors) {
  stand_in().version = 8907;
  EXPECT_FALSE(grid_on_host::NewCudnn(StandInApi(), false).ok());
  stand_in().version = 90100;
  stand_in().refuses_handles = true;
  EXPECT_FALSE(grid_on_host::NewCudnn(StandInApi(), false).ok());
}

// Halves: sums stay in float32, and tensor cores are no loss.
TEST_F(GridCudnn, PlansForHalves) {
  stand_in().engines = {{.index = 1, .notes = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}},
                        {.index = 2, .notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}};
  auto dnn = grid_on_host::NewCudnn(StandInApi(), false);
  ASSERT_TRUE(dnn.ok());
  grid_on_host::DnnConv conv;
  conv.shape.batch = 1, conv.shape.in_c = 4, conv.shape.out_c = 4;
  conv.shape.h = conv.shape.w = {5, 5, 3, 1, 1, 1};
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    conv.dtype = dtype;
    const auto plan = (*dnn)->Plan(conv);
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(plan->name(), "engine 2");
  }
  conv.dtype = DType::kF64;
  EXPECT_EQ((*dnn)->Plan(conv), nullptr);
}

// A bad operand is found as on the host, although the host prepares nothing.
TEST_F(GridCudnn, OperandsThatDoNotFitAreErrors) {
  LayerProgram p({});
  ProgramBuilder& b = p.Gradient().builder();
  std::vector<heddle::Feed> feeds = p.feeds();
  auto device = std::make_shared<GridDevice>();
  Executor grid({.threads = 1, .device = device});
  auto compiled = grid.Compile(b.Build(), nullptr, {.opt_level = 0});
  ASSERT_TRUE(compiled.ok());
  for (heddle::Feed& feed : feeds)
    if (feed.name == "dy") feed.value = Value(RandomF32({2, 6, 7, 5}, 3));
  const auto got = grid.Run(*compiled, feeds);
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(got.status().ToString(), HasSubstr("2, 6, 7, 5"));
}

}  // namespace
}  // namespace heddle::testing

#endif
