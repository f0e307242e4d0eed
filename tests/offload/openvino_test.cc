// The engine of OpenVINO. What needs the library is skipped where the build was told of none.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>

#include "core/programs/ir.h"
#include "engines/openvino/shape_table.h"
#include "heddle/engine.h"
#include "offload/group_description.h"
#include "tests/models/compare.h"
#include "tests/offload/random_operator.h"
#include "tests/support/files.h"
#include "tests/support/net_program.h"
#include "tests/support/program_builder.h"

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
  // More sizes than there are plans; some of them come again at once, some later.
  std::vector<int64_t> sizes = {2, 5, 1, 2};
  for (int64_t rows = 1; rows < 14; ++rows) sizes.insert(sizes.end(), {rows, 30 - rows, rows});
  for (const int64_t rows : sizes) {
    const Tensor x = RandomF32({rows, 3}, static_cast<uint32_t>(rows));
    const auto out = executor.Run(*compiled, {{"x", x}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ASSERT_EQ((*out)[0].shape(), Shape({rows, 3}));
    for (int64_t i = 0; i < x.numel(); ++i)
      ASSERT_NEAR((*out)[0].data<float>()[i], std::exp(std::max(x.data<float>()[i], 0.0f)), 1e-5)
          << rows << " rows, element " << i;
  }
}

// Convolutions, between open sizes too: what is made for one size is not taken for another one, nor
// what was restored.
Model ConvolutionModel(const Shape& input) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, input).Param("w", DType::kF32, {8, 3, 3, 3});
  b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"a"}}},
       {{"strides", Ints{2, 2}}, {"paddings", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
  b.Unary("relu", "a", "b");
  b.Op("pool2d", {{"X", {"b"}}}, {{"Out", {"y"}}},
       {{"pooling_type", std::string("avg")}, {"ksize", Ints{1, 1}}, {"global_pooling", true}});
  b.Fetch("y");
  Model model{b.Build(), std::make_shared<Scope>()};
  model.scope->Set("w", RandomF32({8, 3, 3, 3}, 1));
  return model;
}

void ExpectHeddlesNumbers(const Model& with, const Model& alone, const std::vector<Shape>& shapes) {
  Executor executor({.threads = 1});
  const auto a = MustCompile(executor, with.program, with.scope, {.opt_level = 0});
  const auto b = MustCompile(executor, alone.program, alone.scope, {.opt_level = 0});
  uint32_t seed = 0;
  for (const Shape& shape : shapes) {
    const std::vector<heddle::Feed> feeds = {{"x", RandomF32(shape, ++seed)}};
    const auto got = MustRun(executor, a, feeds), want = MustRun(executor, b, feeds);
    EXPECT_TRUE(Close(got[0], want[0], 1e-5, 1e-5)) << seed << ": " << shape.ToString();
  }
}

// In this process, and in one of its own, which is handed the model and hands back what it saves.
TEST(OpenvinoEngine, KeepsWhatItCompiles) {
  const Shape closed = {2, 3, 9, 10};
  std::vector<Shape> sizes;
  for (const int64_t size : {9, 12, 9, 7, 12})
    for (const int64_t batch : {1, 2}) sizes.push_back({batch, 3, size, size + 1});
  const std::pair<Shape, std::vector<Shape>> kCases[] = {{{-1, 3, -1, -1}, sizes},
                                                         {closed, {closed, closed, closed}}};
  if (Openvino() == nullptr) GTEST_SKIP() << "the build has no HEDDLE_OPENVINO";
  const Result<Engine> other =
      Engine::Load(HEDDLE_PROCESS_ENGINE,
                   {.options = {{"library", HEDDLE_OPENVINO_ENGINE}, {"folder", HEDDLE_OPENVINO}}});
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  for (const Engine* engine : {Openvino(), &*other}) {
    SCOPED_TRACE(engine->name());
    const auto target = engine->target();
    ASSERT_TRUE(target.ok()) << target.status().ToString();
    const TempDir dir;
    for (const auto& [input, shapes] : kCases)
      for (const char* from : {"compiled", "hit on disk"}) {
        OffloadOptions options;
        options.cache = EngineCache::OnDisk(dir / "cache");
        const Model model = ConvolutionModel(input);
        const auto offloaded = Offload(model, {{*target, *engine}}, options);
        ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
        SCOPED_TRACE(offloaded->report.ToString());
        ASSERT_EQ(offloaded->report.groups.size(), 1u);
        EXPECT_TRUE(offloaded->report.groups[0].taken);
        EXPECT_EQ(offloaded->report.groups[0].cache, from);
        ExpectHeddlesNumbers(offloaded->model, model, shapes);
      }
  }
}

// ---- which shapes have plans --------------------------------------------------------------------

using heddle_openvino::Shapes;
using Table = heddle_openvino::ShapeTable<int>;

// What a run does: the plan for its shapes, -1 for the one for any.
int PlanOf(Table* table, int64_t size, int* made) {
  const Shapes shapes = {1, size};
  if (const int* const plan = table->Find(shapes); plan != nullptr) return *plan;
  return table->IsWorthOne(shapes) ? *table->Add(shapes, ++*made) : -1;
}

TEST(ShapeTables, HoldAFewPlans) {
  Table table;
  int made = 0;
  const auto most = static_cast<int64_t>(Table::kMost);
  for (int round = 0; round < 3; ++round)
    for (int64_t size = 0; size < most; ++size)
      EXPECT_EQ(PlanOf(&table, size, &made), static_cast<int>(size) + 1);
  // A size that comes again takes the place of the one that was not used for longest.
  EXPECT_EQ(PlanOf(&table, 0, &made), 1);
  EXPECT_EQ(PlanOf(&table, most, &made), -1);
  EXPECT_EQ(PlanOf(&table, most, &made), static_cast<int>(most) + 1);
  EXPECT_EQ(PlanOf(&table, 0, &made), 1);
  EXPECT_EQ(PlanOf(&table, 1, &made), -1);
  EXPECT_EQ(table.plans().size(), Table::kMost);
}

// Sizes that never come again soon leave the plans as they are.
TEST(ShapeTables, MakeNoPlanForEachOfManySizes) {
  Table table;
  int made = 0;
  for (int round = 0; round < 4; ++round)
    for (int64_t size = 0; size < 500; ++size) PlanOf(&table, size, &made);
  EXPECT_EQ(made, static_cast<int>(Table::kMost));
}

// x -> product -> exp, as a group: exp(1) for six times 1.
offload::Group SmallGroup() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3}).Param("w", DType::kF32, {3, 3});
  b.Binary("matmul_v2", "x", "w", "a").Unary("exp", "a", "y").Fetch("y");
  offload::Group group;
  group.symbol = "group_0";
  group.program = std::make_shared<ir::Program>(b.Build().ir());
  const std::vector<float> thirds(9, 1.0f / 3);
  group.parameters.emplace_back(group.program->Find(0, "w"), F32({3, 3}, thirds));
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
      sizeof settings, HEDDLE_ENGINE_VERSION, 1, 1, keys, texts, nullptr, nullptr};
  char message[256] = {};
  void* engine = nullptr;
  ASSERT_EQ(table.open(&settings, &engine, message, sizeof message), HEDDLE_ENGINE_OK) << message;
  EXPECT_THAT(table.fingerprint(engine), HasSubstr("threads 1, f32"));
  const offload::Group group = SmallGroup();
  const offload::GroupDescription description(group, offload::GroupDescription::Onnx::kWritten);
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
  EXPECT_NEAR(before[5], 2.7182817f, 1e-5);
  // The group comes without its model, and what was saved stays for the modules, and as it is.
  heddle_engine_group less = description.get();
  less.onnx = nullptr;
  less.onnx_bytes = 0;
  BufferRef kept = BufferRef::Allocate(bytes.size());
  std::memcpy(kept->data(), bytes.data(), bytes.size());
  void* modules[2] = {};
  for (void*& module : modules)
    ASSERT_EQ(
        table.restore(engine, &less, kept->data(), bytes.size(), &module, message, sizeof message),
        HEDDLE_ENGINE_OK)
        << message;
  for (void* const module : modules) EXPECT_EQ(RunOnce(table, module), before);
  for (void* const module : modules) table.free_module(module);
  EXPECT_EQ(std::memcmp(kept->data(), bytes.data(), bytes.size()), 0);
  for (const size_t count : {0, 7, 8, 15, 16, 40, 63, 64})
    EXPECT_NE(
        table.restore(engine, &less, kept->data(), count, &modules[0], message, sizeof message),
        HEDDLE_ENGINE_OK)
        << count;
  table.close(engine);
}

}  // namespace
}  // namespace heddle::testing
