// A run that ends early leaves each parameter, and each state of an optimizer, at its last complete
// value: whatever look ends it, however the instruction is executed.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "heddle/limits.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// An optimizer and its states besides the parameter; every element gets the same update.
struct Rule {
  std::string op;
  std::vector<std::string> states = {};
  std::vector<std::string> powers = {};  // of one number
  Attrs attrs = {};
};

const Rule kRules[] = {
    {"sgd"},
    {"momentum", {"Velocity"}, {}, {{"mu", 0.9}}},
    {"adagrad", {"Moment"}},
    {"adam", {"Moment1", "Moment2"}, {"Beta1Pow", "Beta2Pow"}},
    {"adamax", {"Moment", "InfNorm"}, {"Beta1Pow"}},
    {"adadelta", {"AvgSquaredGrad", "AvgSquaredUpdate"}},
    {"rmsprop", {"Moment", "MeanSquare"}},
};

constexpr int64_t kSize = 300'000;  // several parts of a thread's work

Tensor Filled(int64_t size, float value) {
  return F32({size}, std::vector<float>(static_cast<size_t>(size), value));
}

std::vector<std::string> Names(const Rule& rule) {
  std::vector<std::string> names = {"Param"};
  names.insert(names.end(), rule.states.begin(), rule.states.end());
  return names;
}

// Several parameters, so that a run may end between two of them. `open`: shapes are found while
// running.
Program Step(const Rule& rule, bool open) {
  ProgramBuilder b;
  b.Feed("g", DType::kF32, {open ? -1 : kSize});
  b.Param("rate", DType::kF32, {1});
  for (const char* parameter : {"a", "b"}) {
    Slots in{{"Grad", {"g"}}, {"LearningRate", {"rate"}}}, out;
    const auto add = [&](const std::string& slot, int64_t size) {
      const std::string name = parameter + slot;
      b.Param(name, DType::kF32, {size});
      in.push_back({slot, {name}});
      out.push_back({slot + "Out", {name}});
    };
    for (const std::string& name : Names(rule)) add(name, kSize);
    for (const std::string& name : rule.powers) add(name, 1);
    if (rule.op == "adamax") out.pop_back();  // it only reads the power
    b.Op(rule.op, in, out, rule.attrs);
  }
  return b.Build();
}

TEST(WholeUpdates, AreAllOrNothing) {
  std::mt19937 random(11);
  int ended = 0;
  for (const Rule& rule : kRules) {
    for (const bool open : {false, true}) {
      for (const int threads : {1, 2}) {
        const Program program = Step(rule, open);
        auto scope = std::make_shared<Scope>();
        scope->Set("rate", Value(Filled(1, 0.01f)));
        for (const char* parameter : {"a", "b"}) {
          for (const std::string& name : Names(rule))
            scope->Set(parameter + name, Value(Filled(kSize, 0.5f)));
          for (const std::string& name : rule.powers)
            scope->Set(parameter + name, Value(Filled(1, 0.9f)));
        }
        Executor executor({.threads = threads});
        const CompiledProgram compiled = MustCompile(executor, program, scope);
        const std::vector<heddle::Feed> feeds = {{"g", Filled(kSize, 0.25f)}};
        for (int k = 0; k < 18; ++k) {
          SCOPED_TRACE(rule.op + (open ? ", open" : "") + ", look " + std::to_string(k));
          const int last = k < 12 ? k : static_cast<int>(random() % 60);
          int looks = 0;
          HostCalls* asks = nullptr;
          HostCalls host([&] {
            asks->Request();
            return looks++ < last ? Status::Ok() : Status(StatusCode::kCancelled, "enough");
          });
          asks = &host;
          host.Request();
          const auto out = executor.RunValues(compiled, feeds, {.host = &host});
          ended += !out.ok();
          EXPECT_TRUE(out.ok() || out.status().code() == StatusCode::kCancelled)
              << out.status().ToString();
          for (const char* parameter : {"a", "b"})
            for (const std::string& name : Names(rule)) {
              const Tensor& now = scope->Find(parameter + name)->tensor();
              const float* v = now.data<float>();
              EXPECT_EQ(std::count(v, v + kSize, v[0]), kSize) << parameter << name;
            }
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(ended, 40);  // some runs have fewer looks
}

}  // namespace
}  // namespace heddle::testing
