// Operands of TensorFlow's operators that are wrong or have dimensions without memory behind them:
// one error that says which, or an answer at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMany = int64_t{1} << 40;

// One operator on fed operands, whose shapes the program does not know.
Result<std::vector<Tensor>> RunOne(const std::string& type, const std::vector<Feed>& feeds,
                                   const std::vector<std::string>& outs, const Attrs& attrs = {}) {
  ProgramBuilder b;
  Slots in, out;
  for (const Feed& f : feeds) {
    Shape any = f.value.tensor().shape();
    for (int i = 0; i < any.rank(); ++i) any[i] = -1;
    b.Feed(f.name, f.value.tensor().dtype(), any);
    in.push_back({f.name, {f.name}});
  }
  for (const std::string& o : outs) out.push_back({o, {"made_" + o}});
  b.Op(type, in, out, attrs);
  b.Fetch("made_" + outs.front());
  Executor executor({.threads = 1});
  auto program = b.TryBuild();
  if (!program.ok()) return program.status();
  auto compiled = executor.Compile(*program, nullptr, {.opt_level = 0});
  if (!compiled.ok()) return compiled.status();
  return executor.Run(*compiled, feeds);
}

std::string Told(const std::string& type, const std::vector<Feed>& feeds,
                 const std::vector<std::string>& outs, const Attrs& attrs = {}) {
  return RunOne(type, feeds, outs, attrs).status().message();
}

TEST(TfOperands, VectorsOfRangesHaveOneLength) {
  const std::vector<std::string> outs{"rt_nested_splits", "rt_dense_values"};
  const auto told = [&](const Tensor& starts, const Tensor& limits) {
    return Told("ragged_range", {{"starts", starts}, {"limits", limits}, {"deltas", I64({}, {1})}},
                outs);
  };
  EXPECT_THAT(told(I64({1}, {0}), I64({3}, {1, 2, 3})), HasSubstr("not vectors of one length"));
  EXPECT_THAT(told(I64({0}, {}), I64({1}, {1})), HasSubstr("not vectors of one length"));
  EXPECT_EQ(told(I64({}, {0}), I64({3}, {1, 2, 3})), "");
  EXPECT_THAT(told(I64({2}, {0, 0}), I64({2}, {4, 1000000000})), HasSubstr("range 1 has"));
}

TEST(TfOperands, HistogramsCountNumbers) {
  const auto told = [](float value, float low) {
    return Told("histogram_fixed_width",
                {{"values", F32({2}, {1, value})},
                 {"value_range", F32({2}, {low, 2})},
                 {"nbins", I64({}, {4})}},
                {"out"});
  };
  EXPECT_EQ(told(INFINITY, 0), "");
  EXPECT_THAT(told(std::nanf(""), 0), HasSubstr("values holds NaN at position 1"));
  EXPECT_THAT(told(1, -INFINITY), HasSubstr("value_range is -inf to 2"));
}

// The number of rows becomes an element of the dtype, which may then be 0.
TEST(TfOperands, MeansOfManyRows) {
  const auto told = [](int64_t rows) {
    return Told("segment_pool",
                {{"X", Tensor::Zeros(DType::kI8, {rows})},
                 {"SegmentIds", I64({rows}, std::vector<int64_t>(static_cast<size_t>(rows), 0))}},
                {"Out"}, {{"pooltype", "MEAN"}});
  };
  EXPECT_EQ(told(255), "");
  EXPECT_THAT(told(256), HasSubstr("segment 0 has 256 rows"));
}

TEST(TfOperands, BlocksThatCannotBeCounted) {
  const int64_t side = 1 << 20;
  const std::vector<Feed> feeds{{"input", F32({1, 1, 1, 1, 1}, {1})},
                                {"block_shape", I64({4}, {side, side, side, side})},
                                {"crops", I64({4, 2}, {0, 0, 0, 0, 0, 0, 0, 0})}};
  EXPECT_THAT(Told("batch_to_space_nd", feeds, {"output"}), HasSubstr("can be counted"));
}

TEST(TfOperands, StitchedRowsHaveAPlace) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(
      Told("dynamic_stitch", {{"indices", I64({1}, {most})}, {"data", F32({1}, {1})}}, {"merged"}),
      HasSubstr("expected the place of a row"));
}

TEST(TfOperands, DiagonalsLieInMatrices) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(
      Told("matrix_diag", {{"diagonal", F32({1}, {1})}, {"k", I64({1}, {least})}}, {"output"}),
      HasSubstr("no matrix has such diagonals"));
}

TEST(TfOperands, RowsWithoutAnElementTakeNoTime) {
  constexpr int64_t kMany = int64_t{1} << 29;  // more than 2^31 in all are refused
  const auto numel = [](const auto& result) { return result.ok() ? (*result)[0].numel() : -1; };
  EXPECT_EQ(
      numel(RunOne("gather_nd", {{"X", F32({2, 0}, {})}, {"Index", I64({kMany, 0}, {})}}, {"Out"})),
      0);
  EXPECT_EQ(numel(RunOne("resize_images",
                         {{"images", F32({0, 2, 2, 1}, {})}, {"size", I64({2}, {kMany, 1})}},
                         {"resized_images"})),
            0);
  EXPECT_EQ(numel(RunOne("adjust_contrast",
                         {{"images", F32({kMany, 0, 1, 3}, {})}, {"contrast_factor", F32({}, {2})}},
                         {"output"})),
            0);
  EXPECT_EQ(
      numel(RunOne("reduce_sum", {{"X", F32({kMany, 0}, {})}, {"Axes", I64({1}, {0})}}, {"Out"})),
      0);
  EXPECT_EQ(numel(RunOne("unsorted_segment_pool",
                         {{"X", F32({1, 0}, {})},
                          {"SegmentIds", I64({1}, {0})},
                          {"NumSegments", I64({}, {kMany})}},
                         {"Out"})),
            0);
  EXPECT_THAT(
      Told("scatter_nd",
           {{"X", F32({1}, {1})}, {"Index", I64({kMany, 0}, {})}, {"Updates", F32({}, {1})}},
           {"Out"}),
      HasSubstr("Updates has shape []"));
  EXPECT_THAT(Told("list_split", {{"tensor", F32({kMany, 0}, {})}}, {"Out"}),
              HasSubstr("expected at most"));
}

// A window far larger than the image reads what there is.
TEST(TfOperands, LargeWindowsReadTheImage) {
  const int64_t size = int64_t{1} << 31;
  const Tensor image = F32({1, 2, 2, 1}, {1, 4, 3, 2});
  const auto pooled = RunOne("tf_max_pool_v2",
                             {{"input", image},
                              {"ksize", I64({4}, {1, size, size, 1})},
                              {"strides", I64({4}, {1, 1, 1, 1})}},
                             {"output"}, {{"padding", std::string("SAME")}});
  ASSERT_TRUE(pooled.ok()) << pooled.status().ToString();
  EXPECT_THAT(Floats((*pooled)[0]), ElementsAre(4, 4, 4, 4));
  const Attrs attrs{{"ksize", Ints{1, size, size, 1}},
                    {"strides", Ints{1, 1, 1, 1}},
                    {"padding", std::string("SAME")}};
  const auto places =
      RunOne("tf_max_pool_with_argmax", {{"input", image}}, {"argmax", "output"}, attrs);
  ASSERT_TRUE(places.ok()) << places.status().ToString();
  const auto* place = (*places)[0].data<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(place, place + 4), ElementsAre(1, 1, 1, 1));
}

TEST(TfOperands, PlacesOfMaximaKnowNoExplicitPaddings) {
  const Attrs attrs{{"ksize", Ints{1, 1, 1, 1}},
                    {"strides", Ints{1, 1, 1, 1}},
                    {"padding", std::string("EXPLICIT")}};
  EXPECT_THAT(Told("tf_max_pool_with_argmax", {{"input", F32({1, 1, 1, 1}, {1})}},
                   {"output", "argmax"}, attrs),
              HasSubstr("padding is 'EXPLICIT', expected SAME or VALID"));
}

}  // namespace
}  // namespace heddle::testing
