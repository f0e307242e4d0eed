// A generator that goes on from run to run.
#include "heddle/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

Program Uniform() {
  ProgramBuilder b;
  b.Op("uniform_random", {}, {{"Out", {"y"}}},
       {{"shape", Ints{4}},
        {"min", 0.0},
        {"max", 1.0},
        {"seed", int64_t{0}},
        {"dtype", int64_t{5}}});
  b.Fetch("y");
  return b.Build();
}

std::vector<float> Draw(Executor& executor, const CompiledProgram& compiled, Generator* generator) {
  auto out = executor.Run(compiled, {}, {.generator = generator});
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  return out.ok() ? Floats((*out)[0]) : std::vector<float>();
}

TEST(Generator, GoesOnFromRunToRun) {
  Executor executor({.threads = 1});
  const CompiledProgram compiled = MustCompile(executor, Uniform());
  Generator one(5), two(5), other(6);
  const auto first = Draw(executor, compiled, &one), second = Draw(executor, compiled, &one);
  EXPECT_NE(first, second);
  EXPECT_EQ(Draw(executor, compiled, &two), first);
  const std::string state = two.State();
  EXPECT_EQ(Draw(executor, compiled, &two), second);
  ASSERT_TRUE(two.SetState(state).ok());
  EXPECT_EQ(Draw(executor, compiled, &two), second);
  EXPECT_NE(Draw(executor, compiled, &other), first);
}

// What Paddle 2.6.2 draws on a CPU after paddle.seed(5).
TEST(Generator, DrawsPaddlesNumbers) {
  Executor executor({.threads = 1});
  const CompiledProgram compiled = MustCompile(executor, Uniform());
  Generator generator(5);
  const std::vector<float> expected = {0.9200540781021118f, 0.5363290309906006f,
                                       0.41342979669570923f, 0.6937493085861206f};
  EXPECT_EQ(Draw(executor, compiled, &generator), expected);
}

TEST(Generator, AFailedRunDrawsNothing) {
  ProgramBuilder b;
  b.Feed("n", DType::kF32, {-1, 3}).Param("w", DType::kF32, {4});
  b.Op("uniform_random", {}, {{"Out", {"y"}}},
       {{"shape", Ints{4}},
        {"min", 0.0},
        {"max", 1.0},
        {"seed", int64_t{0}},
        {"dtype", int64_t{5}}});
  b.Feed("i", DType::kI64, {-1});
  b.Op("gather", {{"X", {"y"}}, {"Index", {"i"}}}, {{"Out", {"z"}}});
  b.Fetch("z");
  Executor executor({.threads = 1});
  const CompiledProgram compiled = MustCompile(executor, b.Build());
  Generator generator(5);
  const std::string state = generator.State();
  const Tensor n = F32({1, 3}, {1, 2, 3});
  const auto run = [&](int64_t index) {
    return executor.Run(compiled, {{"n", n}, {"i", I64({1}, {index})}}, {.generator = &generator});
  };
  EXPECT_FALSE(run(100).ok());
  EXPECT_EQ(generator.State(), state);
  EXPECT_TRUE(run(1).ok());
  EXPECT_NE(generator.State(), state);
}

TEST(Generator, RefusesWhatIsNoState) {
  Generator generator(1);
  const std::string state = generator.State();
  for (const std::string& bad : {std::string(), std::string("1 2 3"), state + " 7", "x" + state})
    EXPECT_FALSE(generator.SetState(bad).ok()) << bad;
  EXPECT_EQ(generator.State(), state);
}

// Every state that a thread sees, and every state that is left, is one that was set.
TEST(Generator, ThreadsSeeWholeStates) {
  std::vector<std::string> states;
  for (uint64_t seed = 0; seed < 3; ++seed) states.push_back(Generator(seed).State());
  Generator shared(0);
  std::vector<std::thread> threads;
  std::atomic<int> torn{0};
  for (unsigned k = 0; k < 3; ++k)
    threads.emplace_back([&, k] {
      std::mt19937_64 random(k);
      for (int step = 0; step < 2000; ++step) {
        const size_t at = random() % states.size();
        switch (random() % 4) {
          case 0:
            shared.Seed(at);
            break;
          case 1:
            shared.SetEngine(Generator(at).Engine());
            break;
          case 2:
            shared = Generator(at);
            break;
          default: {
            const Generator copy = shared;
            if (std::find(states.begin(), states.end(), copy.State()) == states.end()) ++torn;
          }
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn.load(), 0);
}

}  // namespace
}  // namespace heddle::testing
