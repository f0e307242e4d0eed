// Data-parallel training: programs that Paddle 2.6.2 made, with collectives behind the gradients
// (scripts/make_data_parallel.py), against what several processes of Paddle compute, one executor
// that goes through the shards, and one rank with the joint batch.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <thread>

#include "heddle/device.h"
#include "heddle/heddle.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int kSteps = 12, kShards = 4, kBatch = 8, kWidth = 16, kClasses = 4;
const std::string kFolder = HEDDLE_SOURCE_DIR "/tests/ranks/data_parallel/";

using Parameters = std::map<std::string, Tensor>;

// As the script makes them.
float Number(uint64_t i) {
  const uint64_t bits = (i * 2654435761u % (uint64_t{1} << 32)) >> 8;
  return static_cast<float>(static_cast<double>(bits) / (1 << 24) - 0.5);
}

// The operands of shards [first, first + count) of a step.
std::vector<Feed> Batch(int step, int first, int count) {
  const int rows = count * kBatch;
  std::vector<float> x;
  std::vector<int64_t> label;
  for (int i = 0; i < rows * kWidth; ++i)
    x.push_back(Number(static_cast<uint64_t>((step * kShards + first) * kBatch * kWidth + i)));
  for (int row = 0; row < rows; ++row) {
    const float* at = x.data() + row * kWidth;
    label.push_back(std::max_element(at, at + kClasses) - at);
  }
  return {{"x", F32({rows, kWidth}, x)}, {"label", I64({rows, 1}, label)}};
}

proto::ProgramDesc Read(const std::string& name) {
  proto::ProgramDesc desc;
  EXPECT_TRUE(desc.ParseFromString(ReadAll(kFolder + name)));
  return desc;
}

Program Parse(const proto::ProgramDesc& desc) {
  auto program = Program::Parse(desc.SerializeAsString(), "test");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return *std::move(program);
}

std::string LossOf(const proto::ProgramDesc& desc) {
  for (const auto& op : desc.blocks(0).ops())
    if (op.type() == "reduce_mean" || op.type() == "mean") return op.outputs(0).arguments(0);
  return "";
}

// Recorded losses, by step and rank.
std::vector<std::vector<float>> Losses(int ranks) {
  std::vector<std::vector<float>> all;
  std::istringstream lines(ReadAll(kFolder + "losses_" + std::to_string(ranks) + ".txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    all.emplace_back();
    for (float loss; words >> loss;) all.back().push_back(loss);
  }
  return all;
}

// A scope with the parameters' first values.
std::shared_ptr<Scope> Started() {
  auto scope = std::make_shared<Scope>();
  Executor executor({.threads = 1});
  MustRun(executor, MustCompile(executor, Parse(Read("startup.pdmodel")), scope), {});
  return scope;
}

Parameters ParametersOf(const Scope& scope) {
  Parameters parameters;
  for (const std::string& name : scope.Names())
    if (name.find(".w_") != std::string::npos || name.find(".b_") != std::string::npos)
      parameters[name] = scope.Find(name)->tensor();
  EXPECT_GE(parameters.size(), 8u);  // with the velocities
  return parameters;
}

std::map<std::string, std::string> BitsOf(const Parameters& parameters) {
  std::map<std::string, std::string> bits;
  for (const auto& [name, t] : parameters) bits[name] = Bits(t);
  return bits;
}

struct Trained {
  std::vector<std::vector<float>> losses;  // by step and rank
  std::vector<Parameters> parameters;      // by rank
};

Trained TrainRanks(int ranks, const ExecutorOptions& executor_options,
                   const CompileOptions& compile_options) {
  const proto::ProgramDesc desc = Read("main_" + std::to_string(ranks) + ".pdmodel");
  const int each = kShards / ranks;
  Trained trained;
  trained.losses.assign(kSteps, std::vector<float>(static_cast<size_t>(ranks)));
  trained.parameters.resize(static_cast<size_t>(ranks));
  const auto group = NewRanks(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      ExecutorOptions mine = executor_options;
      mine.communicator = group[static_cast<size_t>(r)];
      Executor executor(mine);
      auto scope = Started();
      CompileOptions options = compile_options;
      options.fetches = {LossOf(desc)};
      const CompiledProgram compiled = MustCompile(executor, Parse(desc), scope, options);
      for (int step = 0; step < kSteps; ++step)
        trained.losses[static_cast<size_t>(step)][static_cast<size_t>(r)] =
            Floats(MustRun(executor, compiled, Batch(step, r * each, each))[0])[0];
      trained.parameters[static_cast<size_t>(r)] = ParametersOf(*scope);
    });
  for (std::thread& t : threads) t.join();
  return trained;
}

TEST(DataParallel, LossesAreThoseOfPaddlesProcesses) {
  for (const int ranks : {1, 2, 4}) {
    const auto expected = Losses(ranks);
    const Trained trained = TrainRanks(ranks, {.threads = 1}, {});
    ASSERT_EQ(expected.size(), size_t{kSteps});
    for (size_t step = 0; step < kSteps; ++step)
      for (size_t r = 0; r < static_cast<size_t>(ranks); ++r)
        EXPECT_NEAR(trained.losses[step][r], expected[step][r], 1e-5 * expected[step][r] + 1e-7)
            << ranks << " ranks, step " << step << ", rank " << r;
  }
}

TEST(DataParallel, BitsAreTheSameOnAllRanksInEveryRunAndSchedule) {
  for (const int ranks : {2, 4}) {
    std::map<std::string, std::string> expected;
    std::vector<std::vector<float>> losses;
    for (const int threads : {1, 2})
      for (const Schedule schedule :
           {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes, Schedule::kAuto}) {
        const Trained trained =
            TrainRanks(ranks, {.threads = threads}, {.schedule = schedule, .shuffle_seed = 17});
        if (expected.empty()) expected = BitsOf(trained.parameters[0]);
        if (losses.empty()) losses = trained.losses;
        EXPECT_EQ(trained.losses, losses) << ScheduleName(schedule) << threads;
        for (const Parameters& mine : trained.parameters)
          EXPECT_EQ(BitsOf(mine), expected) << ScheduleName(schedule) << threads;
      }
  }
}

// Collectives stay with the host; what is around them runs on the device.
TEST(DataParallel, BitsAreTheSameWithDevices) {
  const Trained expected = TrainRanks(2, {.threads = 1}, {});
  for (const bool lazy : {false, true}) {
    const auto device = NewEmulatedDevice({.jitter_ns = 20000, .seed = 5, .lazy = lazy});
    const Trained trained = TrainRanks(2, {.threads = 2, .device = device}, {});
    EXPECT_EQ(trained.losses, expected.losses);
    for (const Parameters& mine : trained.parameters)
      EXPECT_EQ(BitsOf(mine), BitsOf(expected.parameters[0])) << lazy;
  }
}

// One executor goes through the shards: their gradients are added as the group's tree adds them.
TEST(DataParallel, BitsAreThoseOfOneExecutorThatGoesThroughTheShards) {
  for (const int ranks : {2, 4}) {
    const Trained trained = TrainRanks(ranks, {.threads = 1}, {});
    // The program up to the collectives, and what comes behind them.
    proto::ProgramDesc backward = Read("main_" + std::to_string(ranks) + ".pdmodel"),
                       update = backward;
    std::vector<std::string> gradients;
    auto* before = backward.mutable_blocks(0)->mutable_ops();
    auto* behind = update.mutable_blocks(0)->mutable_ops();
    int first = 0;
    while (before->Get(first).type() != "c_allreduce_sum") ++first;
    for (const auto& op : *before)
      for (const auto& in : op.inputs())
        if (op.type() == "c_allreduce_sum" && in.parameter() == "X")
          gradients.push_back(in.arguments(0));
    before->DeleteSubrange(first, before->size() - first);
    behind->DeleteSubrange(0, first);
    for (int i = behind->size(); i-- > 0;)
      if (behind->Get(i).type() == "c_allreduce_sum") behind->DeleteSubrange(i, 1);
    for (auto& var : *update.mutable_blocks(0)->mutable_vars())
      if (std::find(gradients.begin(), gradients.end(), var.name()) != gradients.end())
        var.set_need_check_feed(true);
    Executor executor({.threads = 1});
    auto scope = Started();
    const CompiledProgram gradient =
        MustCompile(executor, Parse(backward), scope, {.fetches = gradients});
    const CompiledProgram step = MustCompile(executor, Parse(update), scope);
    const int each = kShards / ranks;
    for (int s = 0; s < kSteps; ++s) {
      std::vector<std::vector<Tensor>> of_rank;
      for (int r = 0; r < ranks; ++r)
        of_rank.push_back(MustRun(executor, gradient, Batch(s, r * each, each)));
      std::vector<Feed> sums;
      for (size_t g = 0; g < gradients.size(); ++g) {
        std::vector<std::vector<float>> parts;
        for (const auto& mine : of_rank) parts.push_back(Floats(mine[g]));
        for (size_t span = 1; span < parts.size(); span *= 2)
          for (size_t r = 0; r + span < parts.size(); r += 2 * span)
            for (size_t i = 0; i < parts[r].size(); ++i) parts[r][i] += parts[r + span][i];
        sums.push_back({gradients[g], F32(of_rank[0][g].shape(), parts[0])});
      }
      MustRun(executor, step, sums);
    }
    EXPECT_EQ(BitsOf(ParametersOf(*scope)), BitsOf(trained.parameters[0])) << ranks;
  }
}

TEST(DataParallel, IsCloseToOneRankWithTheJointBatch) {
  const Trained one = TrainRanks(1, {.threads = 1}, {});
  for (const int ranks : {2, 4}) {
    const Trained trained = TrainRanks(ranks, {.threads = 1}, {});
    for (const auto& [name, t] : one.parameters[0]) {
      const Tensor& got = trained.parameters[0].at(name);
      double difference = 0, size = 0;
      for (int64_t i = 0; i < t.numel(); ++i) {
        difference += std::pow(got.data<float>()[i] - t.data<float>()[i], 2);
        size += std::pow(t.data<float>()[i], 2);
      }
      EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(size)) << name << " of " << ranks;
    }
  }
}

}  // namespace
}  // namespace heddle::testing
