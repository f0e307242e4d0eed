// CompileOptions::packed_weights: results are those without the file, whatever is in it.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/host.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// A convolution with batch norm, folded into its filter, and a product, with parameters on file.
bool HasLibrary() { return !InspectHost().onednn.empty(); }

class PackedWeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {1, 64, 20, 20});
    b.Param("w", DType::kF32, {128, 64, 3, 3}).Param("m", DType::kF32, {20, 300});
    for (const char* name : {"scale", "bias", "mean", "variance"})
      b.Param(name, DType::kF32, {128});
    b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}},
         {{"strides", Ints{1, 1}}, {"paddings", Ints{1, 1}}});
    b.Op("batch_norm",
         {{"X", {"c"}},
          {"Scale", {"scale"}},
          {"Bias", {"bias"}},
          {"Mean", {"mean"}},
          {"Variance", {"variance"}}},
         {{"Y", {"n"}}}, {{"is_test", true}, {"epsilon", 1e-5}});
    b.Op("matmul_v2", {{"X", {"n"}}, {"Y", {"m"}}}, {{"Out", {"y"}}});
    program_ = b.Fetch("y").Build();
    SaveParameters(1);
  }

  void SaveParameters(uint32_t seed, float scale = 1) {
    Scope scope;
    scope.Set("w", RandomF32({128, 64, 3, 3}, seed, 0.1f));
    scope.Set("m", RandomF32({20, 300}, seed + 1));
    for (const char* name : {"bias", "mean"}) scope.Set(name, RandomF32({128}, seed + 2));
    for (const char* name : {"scale", "variance"}) {
      Tensor t = RandomF32({128}, seed + 3, 0.1f);
      for (float& v : std::span(t.mutable_data<float>(), 128)) v += scale;
      scope.Set(name, std::move(t));
    }
    const Status s = heddle::SaveParameters(program_, scope, params_);
    ASSERT_TRUE(s.ok()) << s.ToString();
  }

  struct Outcome {
    Tensor y;
    PackedWeightsReport report;
  };
  // As a process does that has just started.
  Outcome Run(const std::string& file, const CompileOptions& given = {}) {
    auto scope = std::make_shared<Scope>();
    const Status s = LoadParameters(program_, params_, *scope, ParameterReading::kWhenNeeded);
    EXPECT_TRUE(s.ok()) << s.ToString();
    Executor executor({.threads = 2});
    CompileOptions options = given;
    options.packed_weights = file;
    const CompiledProgram compiled = MustCompile(executor, program_, scope, options);
    Tensor y = MustRun(executor, compiled, {{"x", RandomF32({1, 64, 20, 20}, 9)}})[0];
    return {std::move(y), compiled.packed_weights_report()};
  }
  // Runs with the file in whatever state: as without it, and `warns` says so or nothing does.
  PackedWeightsReport Check(const std::string& warning = "", const CompileOptions& options = {}) {
    const Outcome with = Run(file_, options);
    EXPECT_TRUE(SameBits(with.y, Run("", options).y));
    if (warning.empty()) {
      EXPECT_EQ(with.report.warnings, std::vector<std::string>());
    } else {
      EXPECT_EQ(with.report.warnings.size(), 1u) << "instead of: " << warning;
      for (const std::string& w : with.report.warnings)
        EXPECT_NE(w.find(warning), std::string::npos) << w;
    }
    return with.report;
  }
  // Makes the file, and tells how many copies are in it.
  int Fill() {
    const PackedWeightsReport report = Check();
    EXPECT_EQ(report.found, 0);
    EXPECT_GE(report.made, 1);  // the product is not packed on every processor
    return report.made;
  }

  const TempDir dir_;
  const std::string params_ = dir_ / "params", file_ = dir_ / "packed";
  Program program_;
};

TEST_F(PackedWeightsTest, AreMadeOnce) {
  const int made = Fill();
  const PackedWeightsReport again = Check();
  EXPECT_EQ(again.found, made);
  EXPECT_EQ(again.made, 0);
}

TEST_F(PackedWeightsTest, OtherWaysOfPackingAreAdded) {
  const int made = Fill();
  const std::string before = ReadAll(file_);
  CompileOptions lean;
  lean.lean = true;
  // Without oneDNN there is one way to pack a filter.
  const int other = HasLibrary() ? 1 : 0;
  EXPECT_GE(Check("", lean).made, other);
  EXPECT_GE(ReadAll(file_).size(), before.size() + static_cast<size_t>(other));
  EXPECT_EQ(Check("", lean).made, 0);
  EXPECT_EQ(Check().found, made);
}

TEST_F(PackedWeightsTest, AFilterScaledOtherwiseIsAnotherOne) {
  const int made = Fill();
  CompileOptions plain;
  plain.opt_level = 1;                                     // nothing is folded
  EXPECT_GE(Check("", plain).made, HasLibrary() ? 1 : 0);  // without it that is not packed
  EXPECT_EQ(Check().found, made);
}

TEST_F(PackedWeightsTest, ServeAnEqualFileOfAnotherTime) {
  const int made = Fill();
  fs::copy_file(params_, params_ + ".new");
  fs::rename(params_ + ".new", params_);
  EXPECT_EQ(Check().found, made);
}

TEST_F(PackedWeightsTest, OtherParametersReplaceThem) {
  Fill();
  SaveParameters(7);  // as many bytes
  EXPECT_EQ(Check("made for other parameters").found, 0);
  EXPECT_EQ(Check().made, 0);
}

TEST_F(PackedWeightsTest, OtherFactorsAloneReplaceThem) {
  Fill();
  SaveParameters(1, 1.5f);
  EXPECT_EQ(Check("made for other parameters").found, 0);
}

// The user may have named it by mistake: it is never lost.
TEST_F(PackedWeightsTest, AFileOfAnythingElseIsRefused) {
  const std::string parameters = ReadAll(params_);
  std::mt19937 random(5);
  for (size_t round = 0; round < 100; ++round) {
    std::string bytes = parameters;
    if (round > 0) {  // some length, and now and then the beginning of the format
      bytes.resize(1 + random() % 200);
      for (char& c : bytes) c = static_cast<char>(random());
      bytes.replace(0, std::min(bytes.size(), round % 8), "heddle packed", round % 8);
      bytes[std::min(bytes.size() - 1, round % 8)] = '\xff';
    }
    const std::string& file = round == 0 ? params_ : file_;
    WriteAll(file, bytes);
    auto scope = std::make_shared<Scope>();
    ASSERT_TRUE(LoadParameters(program_, params_, *scope, ParameterReading::kWhenNeeded).ok());
    Executor executor({.threads = 1});
    CompileOptions options;
    options.packed_weights = file;
    const auto compiled = executor.Compile(program_, scope, options);
    ASSERT_FALSE(compiled.ok()) << round;
    EXPECT_NE(compiled.status().ToString().find(file), std::string::npos);
    EXPECT_EQ(ReadAll(file), bytes) << round;
  }
}

// It may come while the program is compiled.
TEST_F(PackedWeightsTest, AFileThatCameMeanwhileIsLeft) {
  auto scope = std::make_shared<Scope>();
  ASSERT_TRUE(LoadParameters(program_, params_, *scope, ParameterReading::kWhenNeeded).ok());
  Executor executor({.threads = 1});
  const CompiledProgram compiled =
      MustCompile(executor, program_, scope, {.packed_weights = file_});
  WriteAll(file_, "something else");
  MustRun(executor, compiled, {{"x", RandomF32({1, 64, 20, 20}, 9)}});
  EXPECT_EQ(ReadAll(file_), "something else");
  EXPECT_FALSE(compiled.packed_weights_report().warnings.empty());
}

TEST_F(PackedWeightsTest, AFileOfTheFirstFormIsReplaced) {
  Fill();
  std::string old = ReadAll(file_);
  ASSERT_EQ(old.substr(0, 15), "heddle packed 2");
  old[14] = '1';
  WriteAll(file_, old);
  EXPECT_EQ(Check("in the form of an earlier heddle").found, 0);
  EXPECT_EQ(Check().made, 0);
}

// The copies of another version stay for the builds that pack so.
TEST_F(PackedWeightsTest, CopiesOfAnotherVersionAreMadeAnew) {
  const int made = Fill();
  std::string file = ReadAll(file_);
  struct {
    uint64_t at, bytes, hash;
  } index;
  ASSERT_GT(file.size(), 96u);
  std::memcpy(&index, file.data() + 64, sizeof(index));
  ASSERT_EQ(index.at + index.bytes, file.size());
  int changed = 0;
  for (size_t at = index.at; (at = file.find(" v1 [", at)) != std::string::npos; ++changed)
    file.replace(at, 5, " v0 [");
  EXPECT_GE(changed, made);
  index.hash = XXH3_64bits(file.data() + index.at, index.bytes);
  std::memcpy(file.data() + 64, &index, sizeof(index));
  const uint64_t hash = XXH3_64bits(file.data(), 88);
  std::memcpy(file.data() + 88, &hash, sizeof(hash));
  WriteAll(file_, file);
  const PackedWeightsReport report = Check();
  EXPECT_EQ(report.found, 0);
  EXPECT_EQ(report.made, made);
  EXPECT_EQ(Check().found, made);
}

TEST_F(PackedWeightsTest, ACutFileIsReplaced) {
  const int made = Fill();
  const std::string whole = ReadAll(file_);
  for (const size_t left :
       {size_t{1}, size_t{95}, size_t{96}, whole.size() / 2, whole.size() - 1}) {
    WriteAll(file_, whole.substr(0, left));
    EXPECT_EQ(Check("cut short").found, 0) << left;
    EXPECT_EQ(Check().found, made) << left;
  }
}

// Every byte is under a checksum, but those between copies. The first ones tell the format.
TEST_F(PackedWeightsTest, DamageIsFound) {
  const int made = Fill();
  const std::string whole = ReadAll(file_);
  int noticed = 0;
  for (size_t at = 14; at < whole.size(); at += at < 96 ? 4 : whole.size() / 20) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    WriteAll(file_, damaged);
    const Outcome got = Run(file_);
    EXPECT_TRUE(SameBits(got.y, Run("").y)) << at;
    EXPECT_EQ(got.report.warnings.empty(), got.report.found == made) << at;
    noticed += !got.report.warnings.empty();
    EXPECT_EQ(Check().found, made) << at;
  }
  EXPECT_GE(noticed, 27);
}

TEST_F(PackedWeightsTest, APlaceThatCannotBeWrittenIsAWarning) {
  const Outcome got = Run(dir_ / "none/packed");
  EXPECT_TRUE(SameBits(got.y, Run("").y));
  ASSERT_EQ(got.report.warnings.size(), 1u);
  EXPECT_NE(got.report.warnings[0].find("not written"), std::string::npos)
      << got.report.warnings[0];
}

TEST_F(PackedWeightsTest, AParameterThatIsReplacedIsPackedAnew) {
  Fill();
  auto scope = std::make_shared<Scope>();
  ASSERT_TRUE(LoadParameters(program_, params_, *scope, ParameterReading::kWhenNeeded).ok());
  Executor executor({.threads = 2});
  const CompiledProgram compiled =
      MustCompile(executor, program_, scope, {.packed_weights = file_});
  const std::vector<Feed> feeds{{"x", RandomF32({1, 64, 20, 20}, 9)}};
  const Tensor before = MustRun(executor, compiled, feeds)[0];
  scope->Set("m", RandomF32({20, 300}, 50));
  scope->Set("w", RandomF32({128, 64, 3, 3}, 51));
  const Tensor after = MustRun(executor, compiled, feeds)[0];
  EXPECT_FALSE(SameBits(before, after));
  const CompiledProgram without = MustCompile(executor, program_, scope);
  EXPECT_TRUE(SameBits(after, MustRun(executor, without, feeds)[0]));
  Check();  // they were not kept as the file's
}

TEST_F(PackedWeightsTest, ManyStartAtOnce) {
  const Tensor want = Run("").y;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const Outcome got = Run(file_);
        EXPECT_TRUE(SameBits(got.y, want));
        EXPECT_EQ(got.report.warnings, std::vector<std::string>());
      });
    for (std::thread& t : threads) t.join();
  }
  EXPECT_EQ(Check().made, 0);
}

}  // namespace
}  // namespace heddle::testing
