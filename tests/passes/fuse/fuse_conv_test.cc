// Normalisation behind convolutions goes into filters and biases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;

const Shape kImage = {2, 3, 5, 5};

struct Net {
  ProgramBuilder b = {};
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds = {};
  std::mt19937 random{7};

  Net() { Feed("x", kImage); }
  Tensor Random(const Shape& shape, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> value(low, high);
    std::vector<float> v(static_cast<size_t>(shape.numel()));
    for (float& x : v) x = value(random);
    return F32(shape, v);
  }
  void Feed(const std::string& name, const Shape& shape, float low = -1, float high = 1) {
    b.Feed(name, DType::kF32, shape);
    feeds.push_back({name, Random(shape, low, high)});
  }
  void Param(const std::string& name, const Shape& shape, float low = -1, float high = 1) {
    b.Param(name, DType::kF32, shape);
    scope->Set(name, Value(Random(shape, low, high)));
  }
  void Conv(const std::string& filter, const std::string& out, const std::string& from = "x") {
    b.Var(out, DType::kF32, kImage);
    b.Op("conv2d", {{"Input", {from}}, {"Filter", {filter}}}, {{"Output", {out}}},
         {{"paddings", Ints{1, 1}}});
  }
  void Add(const std::string& x, const std::string& y, const std::string& out, int64_t axis) {
    b.Var(out, DType::kF32, kImage);
    b.Op("elementwise_add", {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}}, {{"axis", axis}});
  }
  // `variance`: a parameter or a feed that exists; a new parameter when empty.
  void Norm(const std::string& x, const std::string& out, std::string variance = "",
            bool is_test = true, bool trains = false, bool global = false) {
    for (const char* what : {".scale", ".bias", ".mean"}) Param(out + what, {3});
    if (variance.empty()) Param(variance = out + ".variance", {3}, 0.5, 2);
    b.Var(out, DType::kF32, kImage);
    b.Op("batch_norm",
         {{"X", {x}},
          {"Scale", {out + ".scale"}},
          {"Bias", {out + ".bias"}},
          {"Mean", {out + ".mean"}},
          {"Variance", {variance}}},
         {{"Y", {out}}},
         {{"is_test", is_test},
          {"trainable_statistics", trains},
          {"use_global_stats", global},
          {"epsilon", 1e-5}});
  }
  std::vector<Tensor> Run(int level) {
    Executor executor({.threads = 2});
    return MustRun(executor, MustCompile(executor, b.Build(), scope, {.opt_level = level}), feeds);
  }
  // Types of the operators at level 2 without layouts, once results were seen to be those of level
  // 0.
  std::vector<std::string> Types() {
    const auto plain = Run(0), fused = Run(2);
    for (size_t i = 0; i < plain.size(); ++i) {
      const auto want = Floats(plain[i]), got = Floats(fused[i]);
      double largest = 0;
      for (float v : want) largest = std::max(largest, std::abs(static_cast<double>(v)));
      for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(want[k], got[k], 1e-5 * largest);
    }
    OptimizeOptions options{2, {}, {}};
    options.passes.disable = {"channels_last"};
    const auto optimized = passes::Optimize(b.Build().impl(), scope, options);
    std::vector<std::string> types;
    for (const ir::Op& op : optimized->program->blocks[0].ops) types.push_back(op.type());
    return types;
  }
};

TEST(FuseConvNorm, BiasesOfEveryFormAndNone) {
  for (int form = 0; form < 3; ++form) {
    SCOPED_TRACE(form);
    Net n;
    n.Param("w", {3, 3, 3, 3});
    n.Conv("w", "c");
    if (form == 1) n.Param("bias", {3}), n.Add("c", "bias", "s", 1);
    if (form == 2) n.Param("bias", {1, 3, 1, 1}), n.Add("c", "bias", "s", -1);
    n.Norm(form == 0 ? "c" : "s", "y");
    n.b.Fetch("y");
    EXPECT_THAT(n.Types(), ElementsAre("fused_conv2d"));
  }
}

// Images whose sides are all 3: what belongs to another axis would fit, too.
void ConvWithChannelsLast(Net* n, const std::string& out) {
  n->Feed("image", {2, 3, 3, 3});
  n->Param("w", {3, 3, 3, 3});
  n->b.Var(out, DType::kF32, {2, 3, 3, 3});
  n->b.Op("conv2d", {{"Input", {"image"}}, {"Filter", {"w"}}}, {{"Output", {out}}},
          {{"paddings", Ints{1, 1}}, {"data_format", std::string("NHWC")}});
}

TEST(FuseConvNorm, ChannelsLast) {
  for (const std::string layout : {"NHWC", "NCHW"}) {
    SCOPED_TRACE(layout);
    Net n;
    ConvWithChannelsLast(&n, "c");
    for (const char* what : {"scale", "bias", "mean"}) n.Param(what, {3});
    n.Param("variance", {3}, 0.5, 2);
    n.b.Var("y", DType::kF32, {2, 3, 3, 3});
    n.b.Op("batch_norm",
           {{"X", {"c"}},
            {"Scale", {"scale"}},
            {"Bias", {"bias"}},
            {"Mean", {"mean"}},
            {"Variance", {"variance"}}},
           {{"Y", {"y"}}}, {{"is_test", true}, {"epsilon", 1e-5}, {"data_layout", layout}});
    n.b.Fetch("y");
    if (layout == "NHWC")
      EXPECT_THAT(n.Types(), ElementsAre("fused_conv2d"));
    else
      EXPECT_THAT(n.Types(), ElementsAre("conv2d", "batch_norm"));
  }
}

TEST(FuseConvNorm, FactorsAndSumsOfTheLastChannels) {
  const std::pair<Shape, int64_t> fits[] = {
      {{3}, -1}, {{3}, 3}, {{1, 1, 3}, -1}, {{1, 1, 1, 3}, -1}};
  const std::pair<Shape, int64_t> others[] = {{{3}, 1}, {{3, 1, 1}, -1}, {{3, 1}, -1}};
  const auto types = [](const Shape& shape, int64_t axis) {
    Net n;
    ConvWithChannelsLast(&n, "c");
    n.Param("factor", shape);
    n.b.Var("m", DType::kF32, {2, 3, 3, 3});
    n.b.Op("elementwise_mul", {{"X", {"c"}}, {"Y", {"factor"}}}, {{"Out", {"m"}}},
           {{"axis", axis}});
    n.b.Fetch("m");
    return n.Types();
  };
  for (const auto& [shape, axis] : fits)
    EXPECT_THAT(types(shape, axis), ElementsAre("fused_conv2d")) << shape.ToString() << axis;
  for (const auto& [shape, axis] : others)
    EXPECT_THAT(types(shape, axis), ElementsAre("conv2d", "elementwise_mul"))
        << shape.ToString() << axis;
}

// Zeros around the image become the convolution's own; those between its channels do not.
TEST(FuseConvNorm, PaddingBeforeIt) {
  for (const bool of_channels : {false, true}) {
    SCOPED_TRACE(of_channels);
    Net n;
    n.Feed("image", {2, 4, 4, 3});
    n.Param("w", {3, of_channels ? 4 : 3, 3, 3});
    n.Param("bias", {3});
    const Ints pads{0, 0, 0, 1, 0, 1, of_channels ? 1 : 0, 0};
    const Shape padded = {2, 5, 5, of_channels ? 4 : 3};
    n.b.Var("p", DType::kF32, padded).Var("c", DType::kF32, {2, 2, 2, 3});
    n.b.Op("pad", {{"X", {"image"}}}, {{"Out", {"p"}}}, {{"paddings", pads}});
    n.b.Op("conv2d", {{"Input", {"p"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}},
           {{"strides", Ints{2, 2}}, {"data_format", std::string("NHWC")}});
    n.b.Var("y", DType::kF32, {2, 2, 2, 3});
    n.b.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"bias"}}}, {{"Out", {"y"}}});
    n.b.Fetch("y");
    if (of_channels)
      EXPECT_THAT(n.Types(), ElementsAre("pad", "fused_conv2d"));
    else
      EXPECT_THAT(n.Types(), ElementsAre("fused_conv2d"));
  }
}

// A padding that is to run at another place than the convolution stays an operator.
TEST(FuseConvNorm, PaddingAtAnotherPlaceStays) {
  for (const bool elsewhere : {false, true}) {
    SCOPED_TRACE(elsewhere);
    Net n;
    n.Feed("image", {1, 4, 4, 3});
    n.Param("w", {3, 3, 3, 3});
    n.Param("bias", {3});
    const Ints pads{0, 0, 0, 1, 0, 1, 0, 0};
    n.b.Var("p", DType::kF32, {1, 5, 5, 3}).Var("c", DType::kF32, {1, 3, 3, 3});
    n.b.Op("pad", {{"X", {"image"}}}, {{"Out", {"p"}}},
           {{"paddings", pads}, {"op_device", std::string(elsewhere ? "gpu:0" : "cpu")}});
    const std::string here = "cpu";
    n.b.Op("conv2d", {{"Input", {"p"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}},
           {{"data_format", std::string("NHWC")}, {"op_device", here}});
    n.b.Var("y", DType::kF32, {1, 3, 3, 3});
    n.b.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"bias"}}}, {{"Out", {"y"}}},
           {{"op_device", here}});
    n.b.Fetch("y");
    if (elsewhere)
      EXPECT_THAT(n.Types(), ElementsAre("pad", "fused_conv2d"));
    else
      EXPECT_THAT(n.Types(), ElementsAre("fused_conv2d"));
  }
}

// The sum of a block's result and its input, or of something else, where sizes are open.
TEST(FuseConv, ResidualsOfOpenSizes) {
  const auto types = [](Ints pads, const std::string& other, bool shifted = false) {
    const Shape open{-1, 3, -1, -1};
    Net net;
    ProgramBuilder b;
    for (const char* x : {"x", "r"}) b.Feed(x, DType::kF32, open);
    for (const char* w : {"w", "v"}) {
      b.Param(w, DType::kF32, {3, 3, 3, 3}).Param(std::string(w) + "b", DType::kF32, {3});
      net.scope->Set(w, Value(net.Random({3, 3, 3, 3})));
      net.scope->Set(std::string(w) + "b", Value(net.Random({3})));
    }
    b.Param("wide", DType::kF32, {1, 1, 1, 5});
    net.scope->Set("wide", Value(net.Random({1, 1, 1, 5})));
    for (const char* y : {"h", "a", "a1", "g", "c", "cb", "y", "s"}) b.Var(y, DType::kF32, open);
    const auto conv = [&](const char* x, const char* w, const char* y, const Ints& p) {
      b.Op("conv2d", {{"Input", {x}}, {"Filter", {w}}}, {{"Output", {y}}}, {{"paddings", p}});
    };
    const auto add = [&](const char* x, const std::string& y, const char* to, int64_t axis) {
      b.Op("elementwise_add", {{"X", {x}}, {"Y", {y}}}, {{"Out", {to}}}, {{"axis", axis}});
    };
    b.Op("relu", {{"X", {"x"}}}, {{"Out", {"h"}}});
    conv("h", "w", "a", {1, 1});
    add("a", shifted ? "wide" : "wb", "a1", shifted ? -1 : 1);
    b.Op("gelu", {{"X", {"a1"}}}, {{"Out", {"g"}}});
    conv("g", "v", "c", pads);
    add("c", "vb", "cb", 1);
    add("cb", other, "y", -1);
    b.Op("relu", {{"X", {"y"}}}, {{"Out", {"s"}}}).Fetch("s");
    OptimizeOptions options{2, {}, {}};
    options.passes.disable = {"channels_last", "fuse_elementwise"};
    const auto optimized = passes::Optimize(b.Build().impl(), net.scope, options);
    std::vector<std::string> found;
    for (const ir::Op& op : optimized->program->blocks[0].ops) found.push_back(op.type());
    if (pads == Ints{1, 1}) {
      Executor executor({.threads = 1});
      const std::vector<heddle::Feed> feeds{{"x", net.Random({2, 3, 5, 5})},
                                            {"r", net.Random({2, 3, 5, 5})}};
      const auto run = [&](int level) {
        return Floats(MustRun(
            executor, MustCompile(executor, b.Build(), net.scope, {.opt_level = level}), feeds)[0]);
      };
      const auto plain = run(0), fused = run(2);
      for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], fused[i], 1e-4);
    }
    return found;
  };
  const auto blocks = ElementsAre("relu", "fused_conv2d", "fused_conv2d");
  EXPECT_THAT(types({1, 1}, "h"), blocks);
  EXPECT_THAT(types({1, 1}, "x"), blocks);
  EXPECT_THAT(types({2, 0, 1, 1}, "h"), blocks);
  const auto apart = ElementsAre("relu", "fused_conv2d", "fused_conv2d", "elementwise_add", "relu");
  EXPECT_THAT(types({1, 1}, "r"), apart) << "another feed may have other sizes";
  EXPECT_THAT(types({0, 0}, "h"), apart) << "the sum broadcasts where a side is 3";
  EXPECT_THAT(types({1, 1}, "h", true), ElementsAre("relu", "conv2d", "elementwise_add", "gelu",
                                                    "fused_conv2d", "elementwise_add", "relu"))
      << "a row of numbers may widen its other operand";
}

TEST(FuseConvNorm, ASharedFilterIsNotTouched) {
  Net n;
  n.Param("w", {3, 3, 3, 3});
  const auto before = Floats(n.scope->Find("w")->tensor());
  n.Conv("w", "c");
  n.Norm("c", "y");
  n.Feed("x2", kImage);
  n.Feed("x3", kImage);
  n.Conv("w", "d", "x2");
  n.Norm("d", "z");
  n.Conv("w", "plain", "x3");
  for (const char* name : {"y", "z", "plain"}) n.b.Fetch(name);
  EXPECT_THAT(n.Types(), ElementsAre("fused_conv2d", "fused_conv2d", "conv2d"));
  EXPECT_EQ(Floats(n.scope->Find("w")->tensor()), before);
}

TEST(FuseConvNorm, AFetchedConvolutionStays) {
  Net n;
  n.Param("w", {3, 3, 3, 3});
  n.Conv("w", "c");
  n.Norm("c", "y");
  n.b.Fetch("y").Fetch("c");
  EXPECT_THAT(n.Types(), ElementsAre("conv2d", "batch_norm"));
}

TEST(FuseConvNorm, AVarianceThatIsFedOrWrittenStays) {
  Net fed;
  fed.Feed("variance", {3}, 0.5, 2);
  fed.Param("w", {3, 3, 3, 3});
  fed.Conv("w", "c");
  fed.Norm("c", "y", "variance");
  fed.b.Fetch("y");
  EXPECT_THAT(fed.Types(), ElementsAre("conv2d", "batch_norm"));
  Net written;
  written.Param("variance", {3}, 0.5, 2);
  written.Param("w", {3, 3, 3, 3});
  written.Conv("w", "c");
  written.Norm("c", "y", "variance");
  written.b.Scale("variance", "variance", 1, 0);  // the same values: what is compared stays
  written.b.Fetch("y");
  EXPECT_THAT(written.Types(), ElementsAre("conv2d", "batch_norm", "scale"));
}

// Files of training may lack the outputs of statistics, too.
TEST(FuseConv, NormalisationByTheBatchStays) {
  for (int form = 0; form < 8; ++form) {
    const bool is_test = form & 1, trains = form & 2, global = form & 4;
    Net n;
    n.Param("w", {3, 3, 3, 3});
    n.Conv("w", "c");
    n.Norm("c", "y", "", is_test, trains, global);
    n.b.Fetch("y");
    if ((is_test && !trains) || global)
      EXPECT_THAT(n.Types(), ElementsAre("fused_conv2d")) << form;
    else
      EXPECT_THAT(n.Types(), ElementsAre("conv2d", "batch_norm")) << form;
  }
}

}  // namespace
}  // namespace heddle::testing
