// The recorded training programs: twenty steps give Paddle's losses and Paddle's final state, and
// the same bits however they are scheduled.
//
// Where Paddle's own runs lie further apart than the tolerance (training_spread.json, made by
// record_spread.py; docs/conformance-training.md says why), that distance is what can be asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "heddle/device.h"
#include "tests/models/compare.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"
#include "tools/values/npy.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<std::string> TrainingModels() {
  std::vector<std::string> names;
  if (SharedDir().empty()) return names;
  for (const auto& entry : fs::directory_iterator(SharedDir() + "/models"))
    if (fs::exists(entry.path() / "main.pdmodel"))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Item i of the first axis, in memory of its own.
Tensor Item(const Tensor& t, int64_t i) {
  Shape shape = t.shape();
  shape.erase(0);
  Tensor item = Tensor::Empty(t.dtype(), shape);
  std::memcpy(item.mutable_raw(),
              static_cast<const char*>(t.raw()) + item.bytes() * static_cast<size_t>(i),
              item.bytes());
  return item;
}

// How far Paddle's runs of one program lie apart in a variable: largest difference of an element,
// and of all elements together.
struct Spread {
  double element = 0, norm = 0;
};

// |got - want| against 1e-3 of want, element by element and in the norm.
::testing::AssertionResult CloseState(const Tensor& got, const Tensor& want, const Spread& spread) {
  constexpr double kRelative = 1e-3, kAbsolute = 1e-6;
  // The runs recorded are a sample: another one may lie further out.
  constexpr double kReach = 3;
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return ::testing::AssertionFailure()
           << "shape " << got.shape().ToString() << " for " << want.shape().ToString();
  if (got.dtype() != DType::kF32)
    return Bits(got) == Bits(want) ? ::testing::AssertionSuccess() : ::testing::AssertionFailure();
  // The square of float's resolution: second moments of gradients that are zero but for rounding.
  const double tiny = 1.4e-14 * std::sqrt(static_cast<double>(got.numel()));
  double off2 = 0, norm2 = 0;
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double a = got.data<float>()[i], b = want.data<float>()[i];
    off2 += (a - b) * (a - b);
    norm2 += b * b;
    if (!(std::abs(a - b) <= kAbsolute + kRelative * std::abs(b) + kReach * spread.element))
      return ::testing::AssertionFailure() << "element " << i << " is " << a << ", want " << b;
  }
  if (std::sqrt(off2) > tiny + kRelative * std::sqrt(norm2) + kReach * spread.norm)
    return ::testing::AssertionFailure()
           << "norm of the difference " << std::sqrt(off2) << ", of the value " << std::sqrt(norm2);
  return ::testing::AssertionSuccess();
}

struct Outcome {
  std::vector<std::vector<Tensor>> steps;
  std::shared_ptr<Scope> scope;
};

class TrainingTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    dir_ = SharedDir() + "/models/" + GetParam() + "/";
    meta_ = Json::parse(ReadAll(dir_ + "meta.json"));
    auto program = Program::Load(dir_ + "main.pdmodel");
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    program_ = *program;
    for (const Json& f : meta_["feeds"]) {
      const std::string name = f["name"];
      batches_.emplace_back(name, Load("in_" + name + ".npy"));
    }
    for (const Json& f : meta_["fetches"]) {
      options_.fetches.push_back(f["fetch"]);
      expected_.push_back(Load(f["file"]));
    }
    const std::string spread = ReadAll(HEDDLE_SOURCE_DIR "/tests/models/training_spread.json");
    spread_ = Json::parse(spread).value(GetParam(), Json::object());
  }
  Spread SpreadOf(const std::string& name) const {
    if (!spread_.contains(name)) return {};
    return {spread_[name]["element"], spread_[name]["norm"]};
  }
  Tensor Load(const std::string& file) const {
    auto t = tools::ReadNpy(dir_ + file);
    EXPECT_TRUE(t.ok()) << t.status().ToString();
    return t.ok() ? *t : Tensor();
  }
  Outcome Train(int threads, Schedule schedule) {
    CompileOptions options = options_;
    options.schedule = schedule;
    return Train({.threads = threads}, options, meta_["steps"]);
  }
  Outcome Train(const ExecutorOptions& where, const CompileOptions& options, int64_t steps) {
    Outcome outcome;
    outcome.scope = std::make_shared<Scope>();
    const Status loaded = LoadParameters(program_, dir_ + "init.pdiparams", *outcome.scope);
    EXPECT_TRUE(loaded.ok()) << loaded.ToString();
    Executor executor(where);
    auto compiled = executor.Compile(program_, outcome.scope, options);
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    for (int64_t step = 0; compiled.ok() && step < steps; ++step) {
      std::vector<heddle::Feed> feeds;
      for (const auto& [name, batch] : batches_)
        feeds.push_back({name, Item(batch, step % batch.dim(0))});
      auto out = executor.Run(*compiled, feeds);
      EXPECT_TRUE(out.ok()) << "step " << step << ": " << out.status().ToString();
      if (!out.ok()) break;
      outcome.steps.push_back(*std::move(out));
    }
    EXPECT_LE(executor.plans_built(), 2);
    return outcome;
  }

  std::string dir_;
  Json meta_, spread_;
  Program program_;
  CompileOptions options_;
  std::vector<std::pair<std::string, Tensor>> batches_;
  std::vector<Tensor> expected_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TrainingTest);
INSTANTIATE_TEST_SUITE_P(Shared, TrainingTest, ::testing::ValuesIn(TrainingModels()),
                         [](const auto& info) { return info.param; });

TEST_P(TrainingTest, TwentyStepsGivePaddlesLossesAndState) {
  const Outcome outcome = Train(2, Schedule::kAuto);
  ASSERT_EQ(outcome.steps.size(), meta_["steps"]);
  for (size_t f = 0; f < expected_.size(); ++f) {
    const double spread = SpreadOf(meta_["fetches"][f]["file"]).element;
    for (size_t step = 0; step < outcome.steps.size(); ++step) {
      const Tensor want = Item(expected_[f], static_cast<int64_t>(step));
      ASSERT_EQ(outcome.steps[step][f].numel(), want.numel());
      ASSERT_TRUE(Close(outcome.steps[step][f].Reshaped(want.shape()), want, 1e-4, 1e-6 + spread))
          << options_.fetches[f] << " in step " << step;
    }
  }
  Scope final_state;
  const Status loaded = LoadParameters(program_, dir_ + "final.pdiparams", final_state);
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
  for (const TensorInfo& info : program_.persistables())
    EXPECT_TRUE(CloseState(outcome.scope->Find(info.name)->tensor(),
                           final_state.Find(info.name)->tensor(), SpreadOf(info.name)))
        << info.name;
}

TEST_P(TrainingTest, IsBitEqualForEveryScheduleAtOneThreadCount) {
  const Outcome first = Train(2, Schedule::kSerial);
  for (const Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes}) {
    const Outcome again = Train(2, schedule);
    ASSERT_EQ(again.steps.size(), first.steps.size());
    for (const TensorInfo& info : program_.persistables())
      EXPECT_TRUE(SameBits(*again.scope->Find(info.name), *first.scope->Find(info.name)))
          << info.name;
  }
}

// On the device alone, captured from the second step on, and at mixed places: the host's bits.
TEST_P(TrainingTest, IsBitEqualOnDevicesAndAtMixedPlaces) {
  constexpr int64_t kSteps = 4;
  const auto bits = [&](const Outcome& outcome) {
    std::vector<std::string> all;
    for (const auto& step : outcome.steps)
      for (const Tensor& t : step) all.push_back(Bits(t));
    for (const TensorInfo& p : program_.persistables())
      if (const Value* v = outcome.scope->Find(p.name); v != nullptr && v->is_tensor())
        all.push_back(Bits(v->tensor()));
    return all;
  };
  const auto want = bits(Train({.threads = 2}, options_, kSteps));
  ASSERT_GT(want.size(), static_cast<size_t>(kSteps));
  const int seeds = Repeats("HEDDLE_PLACE_SEEDS", 2);
  for (int seed = -1; seed < seeds; ++seed) {
    CompileOptions options = options_;
    if (seed >= 0) options.placement = Placement::kRandom;
    options.placement_seed = static_cast<uint64_t>(seed);
    const Outcome got = Train({.threads = 2, .device = NewEmulatedDevice()}, options, kSteps);
    ASSERT_EQ(bits(got) == want, true) << "seed " << seed;
  }
}

}  // namespace
}  // namespace heddle::testing
