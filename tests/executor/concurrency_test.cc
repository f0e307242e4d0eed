// Many runs at once, and runs again and again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "heddle/params.h"
#include "tests/support/random_program.h"

namespace heddle::testing {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRuns = 100;
#else
constexpr int kRuns = 1000;
#endif

// Eight branches of x, joined: enough for several threads to share.
ProgramBuilder Wide() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  std::vector<std::string> ends;
  for (int k = 0; k < 8; ++k) {
    const std::string t = "t" + std::to_string(k);
    b.Scale("x", t, k + 1);
    for (int i = 0; i < 5; ++i) b.Scale(t, t, 1, 1);
    b.Reshape(t, t + "v", {-1, 1}).Reshape(t + "v", t + "w", {-1});
    ends.push_back(t + "w");
  }
  b.Op("sum", {{"X", ends}}, {{"Out", {"y"}}}).Scale("y", "z", 1).Fetch("z").Fetch("t3");
  return b;
}

void EightClients(Executor& executor, const CompiledProgram& compiled) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      for (int k = 0; k < kRuns; ++k) {
        const auto v = static_cast<float>((c * kRuns + k) % 1000);
        const int64_t size = 1 + (c + k) % 3;
        auto out = executor.Run(compiled, {{"x", F32({size}, std::vector<float>(3, v))}});
        const std::vector<float> sum(static_cast<size_t>(size), 36 * v + 40);
        const std::vector<float> t3(static_cast<size_t>(size), 4 * v + 5);
        if (!out.ok() || Floats((*out)[0]) != sum || Floats((*out)[1]) != t3) ++wrong;
      }
    });
  }
  for (auto& t : clients) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Concurrency, EightThreadsShareOneCompiledProgram) {
  for (Schedule schedule :
       {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes, Schedule::kAuto}) {
    Executor executor({.threads = 2});
    auto compiled = MustCompile(executor, Wide().Build(), nullptr, {.schedule = schedule});
    EightClients(executor, compiled);
    EXPECT_LE(executor.plans_built(), 3);
  }
}

TEST(Concurrency, EightThreadsWithACacheTooSmall) {
  Executor executor({.threads = 2, .plan_cache_capacity = 1});
  auto compiled = MustCompile(executor, Wide().Build(), nullptr, {.schedule = Schedule::kParallel});
  EightClients(executor, compiled);
}

TEST(Concurrency, RunsThatWriteAParameterLoseNoUpdate) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Binary("elementwise_add", "w", "x", "w").Scale("w", "y", 1).Fetch("y");
  Executor executor({.threads = 2});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({1}, {0}));
  auto compiled = MustCompile(executor, b.Build(), scope, {.schedule = Schedule::kParallel});
  std::atomic<int> failed{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&] {
      for (int k = 0; k < kRuns; ++k)
        if (!executor.Run(compiled, {{"x", F32({1}, {1})}}).ok()) ++failed;
    });
  for (auto& t : clients) t.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(Floats(scope->Find("w")->tensor())[0], 4.f * static_cast<float>(kRuns));
}

// Each client runs in a scope of its own; the parameter is their common parent's.
TEST(Concurrency, RunsOfScopesOfOneTreeLoseNoUpdate) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Binary("elementwise_add", "w", "x", "w").Scale("w", "y", 1).Fetch("y");
  Executor executor({.threads = 2});
  auto parent = std::make_shared<Scope>();
  parent->Set("w", F32({1}, {0}));
  std::atomic<int> failed{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      const auto kid = std::make_shared<Scope>(parent);
      const auto compiled = MustCompile(executor, b.Build(), c == 0 ? parent : kid);
      for (int k = 0; k < kRuns; ++k)
        if (!executor.Run(compiled, {{"x", F32({1}, {1})}}).ok()) ++failed;
    });
  for (auto& t : clients) t.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(Floats(parent->Find("w")->tensor())[0], 4.f * static_cast<float>(kRuns));
}

// A run adds a parameter a number of times, on which it must not change; its memory is large enough
// to be given back to the system when the parameter is replaced.
TEST(Concurrency, ParametersAreReplacedDuringRuns) {
  constexpr int64_t kSize = 1 << 17;
  constexpr int kTimes = 20, kEach = kRuns / 50, kValues = 50;
  const auto all = [&](int value) {
    return F32({kSize}, std::vector<float>(kSize, static_cast<float>(value)));
  };
  for (const bool writes : {false, true})
    for (const Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes})
      for (const int level : {0, 2}) {
        ProgramBuilder b;
        b.Param("w", DType::kF32, {kSize})
            .Param("n", DType::kF32, {1})
            .Feed("x", DType::kF32, {kSize});
        if (writes) b.Scale("n", "n", 1, 1);
        std::string sum = "x";
        for (int k = 0; k < kTimes; ++k) {
          const std::string next = "s" + std::to_string(k);
          b.Binary("elementwise_add", sum, "w", next);
          sum = next;
        }
        b.Fetch(sum);
        Executor executor({.threads = 2});
        auto scope = std::make_shared<Scope>();
        scope->Set("w", all(0));
        scope->Set("n", F32({1}, {0}));
        const auto compiled =
            MustCompile(executor, b.Build(), scope, {.opt_level = level, .schedule = schedule});
        const Tensor x = all(0);
        std::atomic<int> wrong{0}, running{2};
        // The parameter's value in a run; -1: there were several.
        const auto run = [&] {
          const auto out = executor.Run(compiled, {{"x", x}});
          if (!out.ok()) return -1;
          const std::vector<float> sums = Floats((*out)[0]);
          const bool one =
              std::all_of(sums.begin(), sums.end(), [&](float s) { return s == sums.front(); });
          const int value = static_cast<int>(sums.front()) / kTimes;
          return one && value * kTimes == static_cast<int>(sums.front()) ? value : -1;
        };
        std::vector<std::thread> clients;
        for (int c = 0; c < 2; ++c)
          clients.emplace_back([&] {
            for (int k = 0; k < kEach; ++k) wrong += run() < 0 ? 1 : 0;
            --running;
          });
        int value = 0;
        while (running > 0) {
          value = (value + 1) % kValues;
          const auto held = HoldWrites(*scope);
          if (value % 3 == 0) scope->Erase("w");
          scope->Set("w", all(value));
        }
        for (auto& client : clients) client.join();
        EXPECT_EQ(wrong, 0) << "level " << level << ", writes " << writes;
        EXPECT_EQ(run(), value);
        if (writes) {
          EXPECT_EQ(Floats(scope->Find("n")->tensor())[0], static_cast<float>(2 * kEach + 1));
        }
      }
}

// What replaced parameters took is free once a run has seen the new ones, in plans for other shapes
// too.
TEST(Concurrency, ReplacedParametersGoAway) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {-1});
  b.Binary("elementwise_add", "x", "w", "y").Fetch("y");
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  bool gone = false;
  float old = 1;
  scope->Set("w", Tensor::Wrap(&old, DType::kF32, {1}, [&] { gone = true; }));
  const auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = 0});
  for (const int64_t size : {1, 2, 3})
    MustRun(executor, compiled, {{"x", F32({size}, std::vector<float>(3, 1))}});
  scope->Set("w", F32({1}, {5}));
  const auto out = MustRun(executor, compiled, {{"x", F32({1}, {1})}});
  EXPECT_EQ(Floats(out[0])[0], 6);
  EXPECT_TRUE(gone);
}

TEST(Concurrency, CompilingAndRunningSideBySide) {
  Executor executor({.threads = 2, .plan_cache_capacity = 4});
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      for (int k = 0; k < 10; ++k) {
        ProgramBuilder b;
        b.Feed("x", DType::kF32, {-1}).Scale("x", "y", c + 1).Fetch("y");
        auto compiled = executor.Compile(b.Build(), nullptr);
        if (!compiled.ok()) {
          ++wrong;
          continue;
        }
        auto out = executor.Run(*compiled, {{"x", F32({1}, {2})}});
        if (!out.ok() || Floats((*out)[0])[0] != 2.f * static_cast<float>(c + 1)) ++wrong;
        if (k % 4 == 0) executor.Trim();
      }
    });
  for (auto& t : clients) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Determinism, RerunsAreBitEqualForEveryScheduleAndThreadCount) {
  const RandomProgram random(77, {.ops = 60, .control_flow = false, .parameters = false});
  const Program program = *Program::Parse(random.bytes(), "random");
  std::vector<std::string> bits;
  for (int threads : {1, 2, 8}) {
    for (Schedule schedule :
         {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes, Schedule::kAuto}) {
      Executor executor({.threads = threads});
      auto compiled = MustCompile(executor, program, nullptr, {.schedule = schedule});
      for (int k = 0; k < 20; ++k) {
        std::string all;
        for (const Tensor& t : MustRun(executor, compiled, random.Feeds())) all += Bits(t);
        bits.push_back(std::move(all));
      }
    }
  }
  for (const std::string& b : bits) EXPECT_EQ(b, bits[0]);
}

TEST(Determinism, RandomOperatorsDrawTheSameNumbersFromTheSameSeed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  std::vector<std::string> names;
  for (int k = 0; k < 6; ++k) {
    names.push_back("r" + std::to_string(k));
    b.Op("gaussian_random", {}, {{"Out", {names.back()}}},
         {{"shape", Ints{5}}, {"mean", 0.0}, {"std", 1.0}, {"seed", 0}, {"dtype", 5}});
    b.Fetch(names.back());
  }
  std::vector<std::vector<std::string>> runs;
  for (int threads : {1, 2, 8}) {
    for (Schedule schedule :
         {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes, Schedule::kAuto}) {
      Executor executor({.threads = threads});
      auto compiled = MustCompile(executor, b.Build(), nullptr, {.schedule = schedule, .seed = 5});
      std::vector<std::string> bits;
      for (int k = 0; k < 3; ++k)
        for (const Tensor& t : MustRun(executor, compiled, {{"x", F32({1}, {0})}}))
          bits.push_back(Bits(t));
      runs.push_back(bits);
    }
  }
  for (const auto& run : runs) EXPECT_EQ(run, runs[0]);
  EXPECT_EQ(std::set<std::string>(runs[0].begin(), runs[0].end()).size(), runs[0].size());
}

}  // namespace
}  // namespace heddle::testing
