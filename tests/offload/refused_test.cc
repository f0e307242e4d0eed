// Which operators an engine refuses: the same ones, whether it answers for one or for many at once.
#include "offload/refused.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>

#include "heddle/engine.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Counting {
  int asked = 0, most = 0;  // most: operators in one question
};

int Open(const heddle_engine_settings*, void** engine, char*, size_t) {
  *engine = new Counting;
  return HEDDLE_ENGINE_OK;
}

int Takes(void* engine, const heddle_engine_group* group, char* message, size_t room) {
  auto& counting = *static_cast<Counting*>(engine);
  ++counting.asked;
  counting.most = std::max(counting.most, static_cast<int>(group->num_operators));
  for (size_t k = 0; k < group->num_operators; ++k) {
    // Each operand is a value of the group, and what the part does not write is one of its inputs.
    const heddle_engine_operator& op = *group->operators[k];
    const int32_t x = op.inputs[0]->values[0];
    bool known = false;
    for (size_t i = 0; i < group->num_inputs; ++i) known = known || group->inputs[i] == x;
    for (size_t i = 0; i < group->num_outputs; ++i) known = known || group->outputs[i] == x;
    if (!known || group->num_inputs != 1 || group->num_outputs != group->num_operators) {
      std::snprintf(message, room, "the part is none");
      return HEDDLE_ENGINE_FAILED;
    }
    if (std::strcmp(op.type, "tanh") == 0) {
      std::snprintf(message, room, "no tanh");
      return HEDDLE_ENGINE_REFUSED;
    }
  }
  return HEDDLE_ENGINE_OK;
}

int Compile(void*, const heddle_engine_group* const*, heddle_engine_compiled* const*, size_t, char*,
            size_t) {
  return HEDDLE_ENGINE_OK;
}
int Run(void*, const heddle_engine_run*, char*, size_t) { return HEDDLE_ENGINE_FAILED; }

heddle_engine_table TableOf(uint32_t flags) {
  heddle_engine_table table = {};
  table.size = sizeof table;
  table.version = HEDDLE_ENGINE_VERSION;
  table.flags = flags;
  table.name = "counting";
  table.open = Open;
  table.takes = Takes;
  table.compile = Compile;
  table.run = Run;
  table.free_module = [](void*) {};
  table.close = [](void* engine) { delete static_cast<Counting*>(engine); };
  return table;
}

// A chain of relu and, where `refused`, tanh, as one group.
offload::Group ChainOf(const std::vector<bool>& refused) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  std::string last = "x";
  for (size_t k = 0; k < refused.size(); ++k) {
    const std::string next = "t" + std::to_string(k);
    b.Unary(refused[k] ? "tanh" : "relu", last, next);
    last = next;
  }
  b.Fetch(last);
  offload::Group group;
  group.symbol = "group_0";
  group.program = std::make_shared<ir::Program>(b.Build().ir());
  return group;
}

TEST(Refused, AreTheSameForOneAndForMany) {
  const heddle_engine_table one = TableOf(0), many = TableOf(HEDDLE_ENGINE_TAKES_MANY);
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const size_t count = 1 + random() % 300;
    const uint32_t share = random() % 3;
    std::vector<bool> refused(count);
    std::vector<size_t> want;
    for (size_t k = 0; k < count; ++k) {
      refused[k] = share == 0 ? false : random() % (share == 1 ? 100 : 2) == 0;
      if (refused[k]) want.push_back(k);
    }
    const offload::Group group = ChainOf(refused);
    for (const heddle_engine_table* table : {&one, &many}) {
      const auto engine = offload::EngineLibrary::Open(table, "test", {});
      ASSERT_TRUE(engine.ok()) << engine.status().ToString();
      std::vector<size_t> got;
      for (const auto& [at, why] : offload::RefusedBy(**engine, group)) {
        EXPECT_EQ(why, "engine counting refuses an operator: no tanh");
        got.push_back(at);
      }
      EXPECT_EQ(got, want);
    }
  }
}

TEST(Refused, AreFoundByFewQuestions) {
  static Counting* counting = nullptr;
  heddle_engine_table table = TableOf(HEDDLE_ENGINE_TAKES_MANY);
  table.open = [](const heddle_engine_settings*, void** engine, char*, size_t) -> int {
    *engine = counting = new Counting;
    return HEDDLE_ENGINE_OK;
  };
  const auto engine = offload::EngineLibrary::Open(&table, "test", {});
  ASSERT_TRUE(engine.ok());
  std::vector<bool> refused(1000);
  EXPECT_TRUE(offload::RefusedBy(**engine, ChainOf(refused)).empty());
  EXPECT_EQ(counting->asked, 1);
  EXPECT_EQ(counting->most, 1000);
  refused[617] = true;
  EXPECT_EQ(offload::RefusedBy(**engine, ChainOf(refused)).size(), 1u);
  EXPECT_LT(counting->asked, 60);
}

}  // namespace
}  // namespace heddle::testing
