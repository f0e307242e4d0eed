// Operands of ONNX's operators that cannot be right: one error that says which.
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Feeds = std::vector<Feed>;

Tensor Ones(const Shape& shape) {
  return F32(shape, std::vector<float>(static_cast<size_t>(shape.numel()), 1));
}

// One operator on fed operands, whose shapes the program does not know.
Status RunOne(const std::string& type, const Feeds& feeds, const Slots& in, const std::string& out,
              const Attrs& attrs = {}, const std::string& other_out = "") {
  ProgramBuilder b;
  for (const Feed& f : feeds) {
    Shape any = f.value.tensor().shape();
    for (int i = 0; i < any.rank(); ++i) any[i] = -1;
    b.Feed(f.name, f.value.tensor().dtype(), any);
  }
  Slots outs{{out, {"result"}}};
  if (!other_out.empty()) outs.push_back({other_out, {"other"}});
  b.Op(type, in, outs, attrs);
  b.Fetch("result");
  Executor executor({.threads = 2});
  auto program = b.TryBuild();
  if (!program.ok()) return program.status();
  auto compiled = executor.Compile(*program, nullptr, {.opt_level = 0});
  if (!compiled.ok()) return compiled.status();
  return executor.Run(*compiled, feeds).status();
}

void ExpectTold(const Status& status, const std::string& words) {
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(words), std::string::npos) << status.ToString();
}

TEST(OnnxRefusals, IndicesOutOfRange) {
  const Feeds feeds{{"x", Ones({3, 2})}, {"i", I64({1, 2}, {0, 3})}};
  ExpectTold(RunOne("gather", feeds, {{"X", {"x"}}, {"Index", {"i"}}}, "Out",
                    {{"index_shape", true}, {"wrap", true}}),
             "'Index' holds 3 at position 1; expected -3 to 2");
  ExpectTold(RunOne("take_along_axis", feeds, {{"Input", {"x"}}, {"Index", {"i"}}}, "Result"),
             "'Index' holds 3 at position 1; expected -3 to 2");
  ExpectTold(RunOne("gather_nd", feeds, {{"X", {"x"}}, {"Index", {"i"}}}, "Out"),
             "'Index' holds 3 at position 1; expected -2 to 1");
  ExpectTold(RunOne("gather_nd", feeds, {{"X", {"x"}}, {"Index", {"i"}}}, "Out", {{"wrap", false}}),
             "'Index' holds 3 at position 1; expected 0 to 1");
}

TEST(OnnxRefusals, RowsBeyondTheEndOfACache) {
  for (const int64_t begin : {int64_t{3}, std::numeric_limits<int64_t>::max()}) {
    const Feeds feeds{{"x", Ones({1, 4, 1})}, {"u", Ones({1, 2, 1})}, {"i", I64({1}, {begin})}};
    ExpectTold(RunOne("write_cache", feeds,
                      {{"past_cache", {"x"}}, {"update", {"u"}}, {"write_indices", {"i"}}},
                      "present_cache"),
               "write_indices holds");
  }
}

TEST(OnnxRefusals, UpdatesOfTooManyDimensions) {
  const Shape ten{1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const Feeds feeds{{"x", Ones({1, 1, 2})}, {"i", I64(ten, {0})}, {"u", Ones(ten)}};
  ExpectTold(
      RunOne("scatter_nd", feeds, {{"X", {"x"}}, {"Index", {"i"}}, {"Updates", {"u"}}}, "Out"),
      "more than 10 dimensions");
}

TEST(OnnxRefusals, AxesTwiceAndBeyondTheRank) {
  for (const auto& [axes, words] : {std::pair{Ints{0, -2}, "names axis 0 twice"},
                                    std::pair{Ints{2}, "holds 2, expected axes"}}) {
    const auto n = static_cast<int64_t>(axes.size());
    const Feeds feeds{{"x", Ones({3, 2})}, {"a", I64({n}, axes)}};
    ExpectTold(RunOne("reduce_sum", feeds, {{"X", {"x"}}, {"Axes", {"a"}}}, "Out"), words);
  }
}

TEST(OnnxRefusals, ResultsThatNobodyCanHold) {
  const int64_t huge = int64_t{1} << 62;
  const Feeds shape{{"s", I64({2}, {huge, huge})}};
  EXPECT_FALSE(RunOne("fill_constant", shape, {{"ShapeTensor", {"s"}}}, "Out").ok());
  const Feeds tile{{"x", Ones({3})}, {"n", I64({1}, {huge})}};
  ExpectTold(RunOne("tile", tile, {{"X", {"x"}}, {"RepeatTimes", {"n"}}}, "Out"),
             "the repeat of dimension 0 is 4611686018427387904, too large for X of shape");
  const Feeds pad{{"x", Ones({3})}, {"p", I64({2}, {huge, huge})}};
  EXPECT_FALSE(RunOne("pad", pad, {{"X", {"x"}}, {"Paddings", {"p"}}}, "Out").ok());
  const Feeds resize{{"x", Ones({1, 3})}, {"s", F32({2}, {1, 1e30F})}};
  ExpectTold(RunOne("onnx_resize", resize, {{"X", {"x"}}, {"scales", {"s"}}}, "Y"), "scales holds");
}

TEST(OnnxRefusals, PadsThatOverflow) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const Feeds pool{{"x", Ones({1, 1, 2})}};
  ExpectTold(RunOne("onnx_max_pool", pool, {{"X", {"x"}}}, "Y",
                    {{"kernel_shape", Ints{1}}, {"pads", Ints{least, least}}}),
             "pads of axis 0");
  const Feeds conv{{"x", Ones({1, 1, 2})}, {"w", Ones({1, 1, 1})}};
  ExpectTold(RunOne("onnx_conv_transpose", conv, {{"X", {"x"}}, {"W", {"w"}}}, "Y",
                    {{"pads", Ints{least, least}}}),
             "the padding of axis 0");
  const Feeds reflect{{"x", Ones({3})}, {"p", I64({2}, {10, -10})}};
  ExpectTold(RunOne("pad", reflect, {{"X", {"x"}}, {"Paddings", {"p"}}}, "Out",
                    {{"mode", std::string("reflect")}}),
             "cannot pad the empty axis 0");
}

TEST(OnnxRefusals, MoreSamplesThanAnybodyWaitsFor) {
  const Feeds feeds{{"x", Ones({1, 1, 2, 2})}, {"r", Ones({1, 4})}, {"i", I64({1}, {0})}};
  ExpectTold(RunOne("roi_align", feeds, {{"X", {"x"}}, {"ROIs", {"r"}}, {"Images", {"i"}}}, "Out",
                    {{"sampling_ratio", int64_t{1} << 31}}),
             "sampling_ratio is");
}

TEST(OnnxRefusals, WindowsThatDoNotFit) {
  const Feeds feeds{{"x", Ones({1, 1, 2})}, {"w", Ones({1, 1, 3})}};
  ExpectTold(RunOne("onnx_conv", feeds, {{"X", {"x"}}, {"W", {"w"}}}, "Y"),
             "a window of 3 does not fit the 2 elements of axis 0");
  ExpectTold(RunOne("onnx_conv", feeds, {{"X", {"x"}}, {"W", {"w"}}}, "Y", {{"group", int64_t{2}}}),
             "in 2 groups");
}

TEST(OnnxRefusals, LengthsBeyondTheSteps) {
  const Feeds feeds{{"x", Ones({2, 1, 1})},
                    {"w", Ones({1, 4, 1})},
                    {"r", Ones({1, 4, 1})},
                    {"n", Tensor::Of<int32_t>(DType::kI32, {1}, {3})}};
  ExpectTold(RunOne("recurrent_network", feeds,
                    {{"X", {"x"}}, {"W", {"w"}}, {"R", {"r"}}, {"sequence_lens", {"n"}}}, "Y_h"),
             "sequence_lens holds 3, expected 0 to 2");
}

TEST(OnnxRefusals, ClassesThatDoNotMatchTheirAttributes) {
  const Feeds feeds{{"x", Ones({1, 1})}};
  ExpectTold(RunOne("onnx_ml_linear_classifier", feeds, {{"X", {"x"}}}, "Y",
                    {{"classlabels_ints", Ints{1}},
                     {"classlabels_strings", std::vector<std::string>{"a", "b"}},
                     {"coefficients", std::vector<double>{1, 2}}},
                    "Z"),
             "expected one of the two lists");
  const int64_t quarter = int64_t{1} << 62;  // four of them wrap to 0
  ExpectTold(RunOne("onnx_ml_svm_classifier", feeds, {{"X", {"x"}}}, "Y",
                    {{"vectors_per_class", Ints{quarter, quarter, quarter, quarter}},
                     {"rho", std::vector<double>(6, 0)}},
                    "Z"),
             "vectors_per_class holds");
  ExpectTold(RunOne("onnx_ml_label_encoder", feeds, {{"X", {"x"}}}, "Y",
                    {{"keys_int64s", Ints{0, 1}},
                     {"values_int64s", Ints{0, 1}},
                     {"values_floats", std::vector<double>{0}}}),
             "has 2 keys and 1 values");
}

TEST(OnnxRefusals, TreesThatLeadInCirclesOrBeyondTheFeatures) {
  const Attrs circle{{"n_targets", int64_t{1}},
                     {"nodes_featureids", Ints{0, 0}},
                     {"nodes_splits", std::vector<double>{0, 0}},
                     {"nodes_modes", Ints{0, 0}},
                     {"nodes_truenodeids", Ints{1, 0}},
                     {"nodes_falsenodeids", Ints{1, 0}},
                     {"nodes_trueleafs", Ints{0, 0}},
                     {"nodes_falseleafs", Ints{0, 0}},
                     {"tree_roots", Ints{0}}};
  ExpectTold(RunOne("onnx_ml_tree_ensemble", {{"x", Ones({1, 1})}}, {{"X", {"x"}}}, "Y", circle),
             "in circles");
  Attrs beyond = circle;
  for (auto& attr : beyond)
    if (attr.first == "nodes_featureids") attr.second = Ints{5, 0};
  ExpectTold(RunOne("onnx_ml_tree_ensemble", {{"x", Ones({1, 1})}}, {{"X", {"x"}}}, "Y", beyond),
             "the trees look at 6");
}

}  // namespace
}  // namespace heddle::testing
