// The recorded inference programs with the example targets: groups on the reference engine, and
// emulated, give the bits that heddle alone gives.
#include <gtest/gtest.h>

#include "heddle/engine.h"
#include "tests/models/recorded_model.h"

namespace heddle::testing {
namespace {

class OffloadedModels : public ModelTest {
 protected:
  std::vector<Tensor> RunAt0(Executor& executor, const Model& model, const Case& c) {
    const auto compiled = executor.Compile(model, {.opt_level = 0});
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    if (!compiled.ok()) return {};
    auto out = executor.Run(*compiled, c.feeds);
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    return out.ok() ? *out : std::vector<Tensor>();
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OffloadedModels);
INSTANTIATE_TEST_SUITE_P(Shared, OffloadedModels, ::testing::ValuesIn(InferenceModels()),
                         [](const auto& info) { return info.param; });

TEST_P(OffloadedModels, GiveTheSameBits) {
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  const auto engine = Engine::Load(HEDDLE_REFERENCE_ENGINE);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  Executor executor({.threads = 1});
  const Case& c = cases_[0];
  const std::string alone = AllBits(RunAt0(executor, model_, c));
  for (const char* name : {"opu", "npu", "dsp"}) {
    if (large_ && name != std::string("npu")) continue;
    const auto target = HardwareTarget::Load(std::string(HEDDLE_SOURCE_DIR) + "/examples/targets/" +
                                             name + ".json");
    ASSERT_TRUE(target.ok()) << target.status().ToString();
    for (const bool on_engine : {true, false}) {
      Offloader offloader{*target, std::nullopt};
      if (on_engine) offloader.engine = *engine;
      const auto offloaded = Offload(model_, {offloader}, {.compile = {.opt_level = 0}});
      ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
      SCOPED_TRACE(offloaded->report.ToString());
      EXPECT_TRUE(AllBits(RunAt0(executor, offloaded->model, c)) == alone)
          << name << (on_engine ? " on the engine" : " emulated");
    }
  }
}

}  // namespace
}  // namespace heddle::testing
