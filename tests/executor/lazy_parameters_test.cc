// Parameters that stay in their file: results are those with all of them in memory.
#include <gtest/gtest.h>

#include <memory>

#include "core/memory/lazy_buffer.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

bool Absent(const Scope& scope, const std::string& name) {
  return IsAbsent(scope.StampOf(name).value->tensor());
}

// A program with parameters, which are on file.
class LazyParameters : public ::testing::Test {
 protected:
  void Param(const std::string& name, const Shape& shape, float shift = 0) {
    builder_.Param(name, DType::kF32, shape);
    Tensor t = RandomF32(shape, static_cast<uint32_t>(scope_.Names().size() + 1), 0.1f);
    for (int64_t i = 0; i < t.numel(); ++i) t.mutable_data<float>()[i] += shift;
    scope_.Set(name, std::move(t));
  }
  void Save() {
    program_ = builder_.Build();
    const Status s = SaveParameters(program_, scope_, path_);
    ASSERT_TRUE(s.ok()) << s.ToString();
  }
  std::shared_ptr<Scope> Load(ParameterReading reading) {
    auto scope = std::make_shared<Scope>();
    const Status s = LoadParameters(program_, path_, *scope, reading);
    EXPECT_TRUE(s.ok()) << s.ToString();
    return scope;
  }
  // Runs with the parameters read now and later, on one thread and two; returns the latter's scope.
  std::shared_ptr<Scope> Compare(const std::vector<Feed>& feeds,
                                 const std::vector<std::string>& fetches = {}) {
    std::shared_ptr<Scope> later;
    for (const int threads : {1, 2}) {
      Executor executor({.threads = threads});
      std::vector<Tensor> results[2];
      for (const auto reading : {ParameterReading::kNow, ParameterReading::kWhenNeeded}) {
        later = Load(reading);
        auto compiled = MustCompile(executor, program_, later, {.fetches = fetches});
        auto& result = results[reading == ParameterReading::kNow ? 0 : 1];
        result = MustRun(executor, compiled, feeds);
        EXPECT_TRUE(SameBits(MustRun(executor, compiled, feeds)[0], result[0]));
      }
      for (size_t i = 0; i < results[0].size(); ++i)
        EXPECT_TRUE(SameBits(results[0][i], results[1][i])) << i << ", threads " << threads;
    }
    return later;
  }
  // x, a convolution 3x3 to 128 channels, batch norm, relu: y. Images of 20x20 are for Winograd's
  // method.
  void ConvNet() {
    builder_.Feed("x", DType::kF32, {1, 64, -1, -1});
    Param("w", {128, 64, 3, 3});
    for (const char* name : {"scale", "bias", "mean"}) Param(name, {128}, 0.5f);
    Param("variance", {128}, 1);
    builder_.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}},
                {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}});
    builder_.Op("batch_norm",
                {{"X", {"c"}},
                 {"Scale", {"scale"}},
                 {"Bias", {"bias"}},
                 {"Mean", {"mean"}},
                 {"Variance", {"variance"}}},
                {{"Y", {"n"}}}, {{"is_test", true}, {"epsilon", 1e-5}});
    builder_.Unary("relu", "n", "y").Fetch("y");
    Save();
  }
  void MatmulNet() {
    builder_.Feed("x", DType::kF32, {-1, 200});
    Param("w", {200, 300});
    builder_.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"y"}}}).Fetch("y");
    Save();
  }

  TempDir dir_;
  const std::string path_ = dir_ / "params";
  ProgramBuilder builder_;
  Program program_;
  Scope scope_;
};

TEST_F(LazyParameters, AFilterThatIsFoldedAndPackedStaysInItsFile) {
  ConvNet();
  const auto scope = Compare({{"x", RandomF32({1, 64, 20, 20}, 7)}});
  EXPECT_TRUE(Absent(*scope, "w"));
}

// The factors that are folded into the filter are read, but the parameters do not become resident.
TEST_F(LazyParameters, BatchNormParametersStayInTheFile) {
  ConvNet();
  const auto scope = Compare({{"x", RandomF32({1, 64, 20, 20}, 7)}});
  for (const std::string name : {"scale", "bias", "mean", "variance"}) {
    EXPECT_TRUE(Absent(*scope, name)) << name;
    EXPECT_TRUE(SameBits(scope->Find(name)->tensor(), scope_.Find(name)->tensor())) << name;
    EXPECT_FALSE(Absent(*scope, name)) << name;
  }
}

// Only the packed copy of the filter is in memory.
TEST_F(LazyParameters, ASmallConvolutionFilterStaysInTheFile) {
  builder_.Feed("x", DType::kF32, {1, 20, 20, 16});
  Param("w", {24, 16, 3, 3});
  builder_.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}},
              {{"strides", Ints{1, 1}},
               {"paddings", Ints{1, 1}},
               {"data_format", std::string("NHWC")}});  // packed in builds without oneDNN, too
  builder_.Fetch("y");
  Save();
  EXPECT_TRUE(Absent(*Compare({{"x", RandomF32({1, 20, 20, 16}, 7)}}), "w"));
}

TEST_F(LazyParameters, PlansForOtherShapesReadItAgain) {
  ConvNet();
  Executor executor({.threads = 2});
  auto now = MustCompile(executor, program_, Load(ParameterReading::kNow));
  auto later = MustCompile(executor, program_, Load(ParameterReading::kWhenNeeded));
  for (const int64_t size : {5, 20, 33}) {
    const Tensor x = RandomF32({1, 64, size, size}, 3);
    EXPECT_TRUE(
        SameBits(MustRun(executor, now, {{"x", x}})[0], MustRun(executor, later, {{"x", x}})[0]));
  }
}

// Compare: the same bits as with parameters that are read at once.
TEST_F(LazyParameters, AProductGivesTheSameResultWithALazyWeight) {
  MatmulNet();
  Compare({{"x", RandomF32({40, 200}, 7)}});
}

TEST_F(LazyParameters, OneThatIsFetchedIsRead) {
  MatmulNet();
  EXPECT_FALSE(Absent(*Compare({{"x", RandomF32({40, 200}, 7)}}, {"y", "w"}), "w"));
}

TEST_F(LazyParameters, OneThatAnotherOperatorReadsIsRead) {
  builder_.Feed("x", DType::kF32, {200, 200});
  Param("w", {200, 300});
  builder_.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"p"}}});
  builder_.Binary("elementwise_add", "p", "w", "y").Fetch("y");
  Save();
  EXPECT_FALSE(Absent(*Compare({{"x", RandomF32({200, 200}, 7)}}), "w"));
}

TEST_F(LazyParameters, OneThatIsSeenThroughAReshapeIsRead) {
  builder_.Feed("x", DType::kF32, {1, 60000});
  Param("w", {200, 300});
  builder_.Reshape("w", "flat", {1, 60000});
  builder_.Binary("elementwise_add", "x", "flat", "y").Fetch("y");
  Save();
  Compare({{"x", RandomF32({1, 60000}, 7)}});
}

TEST_F(LazyParameters, OneThatARunWritesIsRead) {
  builder_.Feed("x", DType::kF32, {40, 200});
  Param("w", {200, 300});
  builder_.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"y"}}}).Fetch("y");
  builder_.Op("scale", {{"X", {"w"}}}, {{"Out", {"w"}}}, {{"scale", 2.0}});
  Save();
  Executor executor({.threads = 2});
  const std::vector<Feed> feeds = {{"x", RandomF32({40, 200}, 7)}};
  auto now = MustCompile(executor, program_, Load(ParameterReading::kNow));
  auto later = MustCompile(executor, program_, Load(ParameterReading::kWhenNeeded));
  for (int run = 0; run < 3; ++run)
    EXPECT_TRUE(SameBits(MustRun(executor, now, feeds)[0], MustRun(executor, later, feeds)[0]))
        << run;
}

TEST_F(LazyParameters, OneThatIsChangedInPlaceIsNoticed) {
  ConvNet();
  Executor executor({.threads = 1});
  const std::vector<Feed> feeds = {{"x", RandomF32({1, 64, 20, 20}, 7)}};
  std::vector<Tensor> results;
  for (const auto reading : {ParameterReading::kNow, ParameterReading::kWhenNeeded}) {
    const auto scope = Load(reading);
    auto compiled = MustCompile(executor, program_, scope);
    const Tensor before = MustRun(executor, compiled, feeds)[0];
    Tensor& w = scope->Find("w")->tensor();
    for (int64_t i = 0; i < w.numel(); ++i) w.mutable_data<float>()[i] *= -1;
    scope->MarkWritten("w");
    results.push_back(MustRun(executor, compiled, feeds)[0]);
    EXPECT_FALSE(SameBits(before, results.back()));
  }
  EXPECT_TRUE(SameBits(results[0], results[1]));
}

TEST_F(LazyParameters, AFileThatWasWrittenToIsAnError) {
  ConvNet();
  Executor executor({.threads = 2});
  auto compiled = MustCompile(executor, program_, Load(ParameterReading::kWhenNeeded));
  std::filesystem::resize_file(path_, 1000);
  const auto outputs = executor.Run(compiled, {{"x", RandomF32({1, 64, 20, 20}, 7)}});
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.status().message().find(path_), std::string::npos)
      << outputs.status().ToString();
}

}  // namespace
}  // namespace heddle::testing
