// The engine of OpenVINO. What needs the library is skipped where the build was told of none.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "core/programs/ir.h"
#include "heddle/engine.h"
#include "offload/group_description.h"
#include "tests/models/compare.h"
#include "tests/offload/random_operator.h"
#include "tests/support/net_program.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

Result<Engine> LoadWith(const std::string& key, const std::string& text) {
  return Engine::Load(HEDDLE_OPENVINO_ENGINE, {.options = {{key, text}}});
}

// Of the whole program: threads of OpenVINO stay.
const Engine* Openvino() {
  if (std::string(HEDDLE_OPENVINO).empty()) return nullptr;
  static const Result<Engine>* const engine =
      new Result<Engine>(LoadWith("folder", HEDDLE_OPENVINO));
  EXPECT_TRUE(engine->ok()) << engine->status().ToString();
  return engine->ok() ? &**engine : nullptr;
}

TEST(OpenvinoEngine, SaysWhatIsWrongWithItsOptions) {
  EXPECT_THAT(Engine::Load(HEDDLE_OPENVINO_ENGINE).status().message(),
              HasSubstr("needs the option library"));
  EXPECT_THAT(LoadWith("library", "libopenvino_c.so").status().message(),
              HasSubstr("needs the option library"));
  EXPECT_THAT(LoadWith("folder", "/").status().message(),
              HasSubstr("/: has no file libopenvino_c.so.*"));
  EXPECT_THAT(LoadWith("library", "./no_such_library.so").status().message(),
              HasSubstr("./no_such_library.so: there is no such file"));
  EXPECT_THAT(LoadWith("library", HEDDLE_NO_ENGINE).status().message(),
              HasSubstr("is no C library of OpenVINO that the engine knows: it has no ov_"));
  EXPECT_THAT(LoadWith("speed", "high").status().message(),
              HasSubstr("there are the options library and folder, and not speed"));
}

// Whatever a single operator is: heddle's numbers, or heddle computes it.
TEST(OpenvinoEngine, GivesHeddlesNumbersForRandomOperators) {
  const Engine* const engine = Openvino();
  if (engine == nullptr) GTEST_SKIP() << "the build has no HEDDLE_OPENVINO";
  std::map<std::string, int> taken;
  Executor executor({.threads = 1});
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    const RandomOperator random(seed);
    const auto program = random.Build();
    if (!program.ok()) continue;
    const std::shared_ptr<Scope> scope = random.NewScope();
    const auto alone = executor.Compile(*program, scope, {.opt_level = 0});
    if (!alone.ok()) continue;
    const auto want = executor.Run(*alone, random.feeds());
    if (!want.ok()) continue;
    const auto target = HardwareTarget::Parse(
        R"({"name": "t", "units": [{"name": "u", "ops": [{"type": ")" + random.type() +
            R"("}]}], "links": [["u", "u"]], "start": ["u"]})",
        "t");
    const auto offloaded = Offload({*program, scope}, {{*target, *engine}});
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    if (offloaded->report.groups.empty() || !offloaded->report.groups[0].taken) continue;
    ++taken[random.type()];
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + random.type());
    const auto with = executor.Compile(offloaded->model, {.opt_level = 0});
    ASSERT_TRUE(with.ok()) << with.status().ToString();
    const auto got = executor.Run(*with, random.feeds());
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    for (size_t k = 0; k < want->size(); ++k)
      EXPECT_TRUE(Close((*got)[k], (*want)[k], 1e-4, 1e-4)) << "output " << k;
  }
  int all = 0;
  for (const auto& [type, count] : taken) all += count;
  std::cout << all << " groups of " << taken.size() << " operators\n";
  EXPECT_GT(all, 300);
  EXPECT_GT(taken.size(), 60u);
}

TEST(OpenvinoEngine, GivesHeddlesNumbersForRandomNetworks) {
  const Engine* const engine = Openvino();
  if (engine == nullptr) GTEST_SKIP() << "the build has no HEDDLE_OPENVINO";
  const auto target = engine->target();
  ASSERT_TRUE(target.ok()) << target.status().ToString();
  Executor executor({.threads = 1});
  int taken = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const NetProgram net(seed, 25);
    std::shared_ptr<Scope> scope = net.NewScope();
    const auto offloaded = Offload({net.Build(), scope}, {{*target, *engine}});
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    SCOPED_TRACE(offloaded->report.ToString());
    for (const OffloadedGroup& group : offloaded->report.groups) taken += group.taken ? 1 : 0;
    const auto alone = executor.Compile(net.Build(), net.NewScope(), {.opt_level = 0});
    const auto with = executor.Compile(offloaded->model, {.opt_level = 0});
    ASSERT_TRUE(alone.ok() && with.ok()) << with.status().ToString();
    const auto want = executor.RunValues(*alone, net.feeds());
    const auto got = executor.RunValues(*with, net.feeds());
    ASSERT_EQ(want.ok(), got.ok()) << got.status().ToString();
    if (!want.ok()) continue;
    for (size_t k = 0; k < want->size(); ++k)
      // Comparisons hang on the last digit of what they compare.
      if ((*want)[k].is_tensor() && IsFloat((*want)[k].tensor().dtype())) {
        EXPECT_TRUE(Close((*got)[k].tensor(), (*want)[k].tensor(), 1e-3, 1e-3)) << "output " << k;
      }
  }
  EXPECT_GT(taken, 12);
}

// Dimensions that are open when a group is compiled, one size after another.
TEST(OpenvinoEngine, RunsOpenDimensions) {
  const Engine* const engine = Openvino();
  if (engine == nullptr) GTEST_SKIP() << "the build has no HEDDLE_OPENVINO";
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 3});
  b.Unary("relu", "x", "a").Unary("exp", "a", "y").Fetch("y");
  Executor executor({.threads = 1});
  const auto offloaded =
      Offload({b.Build(), std::make_shared<Scope>()}, {{*engine->target(), *engine}});
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  ASSERT_TRUE(offloaded->report.groups.at(0).taken) << offloaded->report.ToString();
  const auto compiled = executor.Compile(offloaded->model);
  ASSERT_TRUE(compiled.ok());
  for (const int64_t rows : {2, 5, 1, 2}) {
    const auto out = executor.Run(*compiled, {{"x", Tensor::Zeros(DType::kF32, {rows, 3})}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ASSERT_EQ((*out)[0].shape(), Shape({rows, 3}));
    EXPECT_EQ((*out)[0].data<float>()[rows * 3 - 1], 1);
  }
}

// x -> relu -> exp, as a group.
offload::Group SmallGroup() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  b.Unary("relu", "x", "a").Unary("exp", "a", "y").Fetch("y");
  offload::Group group;
  group.symbol = "group_0";
  group.program = std::make_shared<ir::Program>(b.Build().ir());
  return group;
}

// What a run of the module gives for six times 1.
std::vector<float> RunOnce(const heddle_engine_table& table, void* module) {
  const std::vector<float> ones(6, 1);
  const int64_t dims[] = {2, 3};
  const heddle_engine_tensor x = {sizeof x, HEDDLE_ENGINE_F32, 2, dims, ones.data(), 24};
  const heddle_engine_tensor* const inputs[] = {&x};
  std::vector<float> y(6);
  heddle_engine_run run = {};
  run.size = sizeof run;
  run.num_inputs = run.num_outputs = 1;
  run.inputs = inputs;
  run.host = y.data();
  run.output = [](void* host, size_t, int32_t, int32_t, const int64_t*) { return host; };
  run.stopped = [](void*) { return 0; };
  char message[256] = {};
  EXPECT_EQ(table.run(module, &run, message, sizeof message), HEDDLE_ENGINE_OK) << message;
  return y;
}

TEST(OpenvinoEngine, RestoresWhatItSaved) {
  if (std::string(HEDDLE_OPENVINO).empty()) GTEST_SKIP() << "the build has no HEDDLE_OPENVINO";
  void* const library = dlopen(HEDDLE_OPENVINO_ENGINE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto get = reinterpret_cast<heddle_engine_get_function>(dlsym(library, HEDDLE_ENGINE_GET));
  const heddle_engine_table& table = *get(HEDDLE_ENGINE_VERSION);
  const char* const keys[] = {"folder"};
  const char* const texts[] = {HEDDLE_OPENVINO};
  const heddle_engine_settings settings = {
      sizeof settings, HEDDLE_ENGINE_VERSION, 1, 1, keys, texts};
  char message[256] = {};
  void* engine = nullptr;
  ASSERT_EQ(table.open(&settings, &engine, message, sizeof message), HEDDLE_ENGINE_OK) << message;
  EXPECT_THAT(table.fingerprint(engine), HasSubstr("threads 1, f32"));
  const offload::Group group = SmallGroup();
  offload::OnnxWriter onnx(*group.program, group.parameters);
  const offload::GroupDescription description(group, -1, &onnx);
  ASSERT_TRUE(description.onnx_status().ok()) << description.onnx_status().ToString();
  const heddle_engine_group* const groups[] = {&description.get()};
  heddle_engine_compiled compiled = {sizeof compiled, HEDDLE_ENGINE_REFUSED, nullptr, message,
                                     sizeof message};
  heddle_engine_compiled* const results[] = {&compiled};
  table.compile(engine, groups, results, 1, message, sizeof message);
  ASSERT_EQ(compiled.status, HEDDLE_ENGINE_OK) << message;
  const std::vector<float> before = RunOnce(table, compiled.module);
  std::string bytes;
  const auto write = [](void* host, const void* part, size_t count) -> int {
    static_cast<std::string*>(host)->append(static_cast<const char*>(part), count);
    return HEDDLE_ENGINE_OK;
  };
  ASSERT_EQ(table.save(compiled.module, &bytes, write, message, sizeof message), HEDDLE_ENGINE_OK)
      << message;
  table.free_module(compiled.module);
  ASSERT_GT(bytes.size(), 100u);
  void* module = nullptr;
  ASSERT_EQ(table.restore(engine, groups[0], bytes.data(), bytes.size(), &module, message,
                          sizeof message),
            HEDDLE_ENGINE_OK)
      << message;
  EXPECT_EQ(RunOnce(table, module), before);
  EXPECT_NEAR(before[5], 2.7182817f, 1e-5);
  table.free_module(module);
  EXPECT_NE(table.restore(engine, groups[0], bytes.data(), 40, &module, message, sizeof message),
            HEDDLE_ENGINE_OK);
  table.close(engine);
}

}  // namespace
}  // namespace heddle::testing
