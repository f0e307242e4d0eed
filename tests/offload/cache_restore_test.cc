// What engines are given to restore from: as much as they say they need, for as long.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "heddle/engine.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

const std::string& Saved() {
  static const std::string saved(1000, 's');
  return saved;
}

struct Restored {
  const char* saved = nullptr;  // of a restored one
  size_t count = 0;
};

// What was seen last.
struct Seen {
  int compiled = 0, restored = 0;
  bool onnx = false, aligned = false;
  std::string model;     // that was compiled
  void* host = nullptr;  // of what was restored
  const void* (*later)(void* host, size_t* bytes) = nullptr;
} seen;

std::string ModelOf(const heddle_engine_group& group) {
  return {static_cast<const char*>(group.onnx), group.onnx_bytes};
}

heddle_engine_table TableOf(uint32_t flags) {
  heddle_engine_table table = {};
  table.size = sizeof table;
  table.version = HEDDLE_ENGINE_VERSION;
  table.flags = flags;
  table.name = "keeper";
  table.open = [](const heddle_engine_settings*, void** engine, char*, size_t) -> int {
    *engine = &seen;
    return HEDDLE_ENGINE_OK;
  };
  table.compile = [](void*, const heddle_engine_group* const* groups,
                     heddle_engine_compiled* const* compiled, size_t count, char*, size_t) -> int {
    for (size_t k = 0; k < count; ++k) {
      ++seen.compiled;
      seen.onnx = groups[k]->onnx != nullptr;
      seen.model = ModelOf(*groups[k]);
      EXPECT_EQ(groups[k]->later, nullptr);
      compiled[k]->status = HEDDLE_ENGINE_OK;
      compiled[k]->module = new Restored;
    }
    return HEDDLE_ENGINE_OK;
  };
  table.run = [](void* module, const heddle_engine_run* run, char*, size_t) -> int {
    const auto& restored = *static_cast<const Restored*>(module);
    if (restored.saved != nullptr && std::string(restored.saved, restored.count) != Saved())
      return HEDDLE_ENGINE_FAILED;
    const heddle_engine_tensor& x = *run->inputs[0];
    void* const to = run->output(run->host, 0, x.dtype, x.rank, x.dims);
    if (to == nullptr) return HEDDLE_ENGINE_FAILED;
    std::memcpy(to, x.data, x.bytes);
    return HEDDLE_ENGINE_OK;
  };
  table.free_module = [](void* module) { delete static_cast<Restored*>(module); };
  table.close = [](void*) {};
  table.fingerprint = [](void*) { return "keeper 1"; };
  table.save = [](void*, void* host, int (*write)(void*, const void*, size_t), char*,
                  size_t) -> int { return write(host, Saved().data(), Saved().size()); };
  table.restore = [](void*, const heddle_engine_group* group, const void* bytes, size_t count,
                     void** module, char*, size_t) -> int {
    ++seen.restored;
    seen.onnx = group->onnx != nullptr;
    seen.host = group->host;
    seen.later = group->later;
    seen.aligned = reinterpret_cast<uintptr_t>(bytes) % 64 == 0;
    if (std::string(static_cast<const char*>(bytes), count) != Saved()) return HEDDLE_ENGINE_FAILED;
    *module = new Restored{static_cast<const char*>(bytes), count};
    return HEDDLE_ENGINE_OK;
  };
  return table;
}

// Tables of engines that are open, which stay until the end.
const heddle_engine_table* Keep(const heddle_engine_table& table) {
  static std::deque<heddle_engine_table>& tables = *new std::deque<heddle_engine_table>;
  return &tables.emplace_back(table);
}

constexpr uint32_t kWants = HEDDLE_ENGINE_WANTS_ONNX, kAlone = HEDDLE_ENGINE_RESTORES_ALONE,
                   kKeeps = HEDDLE_ENGINE_KEEPS_SAVED;

// relu and a product with a parameter.
Model ModelWith(const Tensor& w, bool open) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {open ? -1 : 2, 3}).Param("w", DType::kF32, {3});
  b.Unary("relu", "x", "a").Binary("elementwise_mul", "a", "w", "y").Fetch("y");
  Model model{b.Build(), std::make_shared<Scope>()};
  model.scope->Set("w", w);
  return model;
}
Result<OffloadedModel> Offloaded(const Model& model, const heddle_engine_table& table,
                                 const std::shared_ptr<EngineCache>& cache) {
  const HardwareTarget target = *HardwareTarget::Parse(
      R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "relu"},
          {"type": "elementwise_mul"}]}], "links": [["u", "u"]], "start": ["u"]})",
      "t");
  OffloadOptions options;
  options.cache = cache;
  return Offload(model, {{target, *Engine::FromTable(Keep(table))}}, options);
}

TEST(RestoredModules, AreGivenOnnxWhereTheyNeedIt) {
  for (const bool open : {false, true})
    for (const uint32_t flags :
         {kKeeps, kKeeps | kWants, kKeeps | kAlone, kKeeps | kWants | kAlone}) {
      SCOPED_TRACE(std::to_string(flags) + (open ? ", open" : ", closed"));
      const bool wants = (flags & kWants) != 0, alone = (flags & kAlone) != 0;
      const TempDir dir;
      std::string compiled_model;
      for (const bool again : {false, true}) {
        seen = {};
        const auto offloaded = Offloaded(ModelWith(F32({3}, {1, 2, 3}), open), TableOf(flags),
                                         EngineCache::OnDisk(dir / "cache"));
        ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
        ASSERT_EQ(offloaded->report.groups.size(), 1u);
        ASSERT_TRUE(offloaded->report.groups[0].taken) << offloaded->report.ToString();
        EXPECT_EQ(seen.compiled, again ? 0 : 1);
        EXPECT_EQ(seen.restored, again ? 1 : 0);
        EXPECT_EQ(seen.onnx, wants && !(again && alone));
        EXPECT_EQ(seen.later != nullptr, again && wants && alone);
        if (!again) compiled_model = seen.model;
        // The bytes are where they were.
        EXPECT_TRUE(!again || seen.aligned);
        Executor executor({.threads = 1});
        const auto compiled = executor.Compile(offloaded->model, {.opt_level = 0});
        ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
        const auto out = executor.Run(*compiled, {{"x", RandomF32({2, 3}, 1)}});
        EXPECT_TRUE(out.ok()) << out.status().ToString();
        if (seen.later == nullptr) continue;
        // The model that is written later is the one that was compiled.
        size_t bytes = 0;
        const void* const model = seen.later(seen.host, &bytes);
        ASSERT_NE(model, nullptr);
        EXPECT_TRUE(compiled_model == std::string(static_cast<const char*>(model), bytes));
        EXPECT_EQ(seen.later(seen.host, &bytes), model);
      }
    }
}

// What is compiled later goes with what was restored, or is not compiled.
TEST(RestoredModules, AreGivenNoModelWithOtherParameters) {
  const TempDir dir;
  (void)Offloaded(ModelWith(F32({3}, {1, 2, 3}), true), TableOf(kKeeps | kWants),
                  EngineCache::OnDisk(dir / "cache"));
  Tensor w = F32({3}, {1, 2, 3});
  seen = {};
  const auto offloaded = Offloaded(ModelWith(w, true), TableOf(kKeeps | kWants | kAlone),
                                   EngineCache::OnDisk(dir / "cache"));
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  ASSERT_EQ(seen.restored, 1);
  size_t bytes = 1;
  w.mutable_data<float>()[1] = 4;
  EXPECT_EQ(seen.later(seen.host, &bytes), nullptr);
  EXPECT_EQ(bytes, 0u);
  w.mutable_data<float>()[1] = 2;
  EXPECT_NE(seen.later(seen.host, &bytes), nullptr);
  EXPECT_GT(bytes, 0u);
}

// A file whose bytes the engine does not restore: what it is compiled from is whole.
TEST(RestoredModules, AreCompiledAsAWholeWhereTheyAreNotRestored) {
  const TempDir dir;
  for (const char* round : {"first", "again", "asks before it fails"}) {
    SCOPED_TRACE(round);
    const bool again = std::string(round) != "first";
    seen = {};
    heddle_engine_table table = TableOf(kWants | kAlone);
    table.restore = [](void*, const heddle_engine_group*, const void*, size_t, void**, char*,
                       size_t) -> int { return HEDDLE_ENGINE_FAILED; };
    if (std::string(round) == "asks before it fails")
      table.restore = [](void*, const heddle_engine_group* group, const void*, size_t, void**,
                         char*, size_t) -> int {
        size_t bytes = 0;
        EXPECT_NE(group->later(group->host, &bytes), nullptr);
        return HEDDLE_ENGINE_FAILED;
      };
    const auto cache = EngineCache::OnDisk(dir / "cache");
    const auto offloaded = Offloaded(ModelWith(F32({3}, {1, 2, 3}), false), table, cache);
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    EXPECT_EQ(seen.compiled, 1);
    EXPECT_TRUE(seen.onnx);
    EXPECT_EQ(cache->stats().rejected, again ? 1 : 0);
  }
}

}  // namespace
}  // namespace heddle::testing
