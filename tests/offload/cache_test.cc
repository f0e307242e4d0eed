// The cache of compiled groups, in memory and on disk: the same bits as without it, and who gets
// what from where.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "heddle/engine.h"
#include "tests/offload/cache_subjects.h"
#include "tests/offload/random_targets.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Froms = std::vector<std::string>;

HardwareTarget TargetOf(const std::string& type, const std::string& name = "t") {
  return *HardwareTarget::Parse(R"({"name": ")" + name + R"(", "units": [{"name": "u", "ops": )" +
                                    R"([{"type": ")" + type + R"("}]}], "links": [["u", "u"]], )" +
                                    R"("start": ["u"]})",
                                name);
}
Engine ReferenceOf(const EngineOptions& options = {}) {
  return *Engine::Load(HEDDLE_REFERENCE_ENGINE, options);
}
Engine FaultyOf(const std::string& mode, const std::string& other = "") {
  return *Engine::Load(HEDDLE_FAULTY_ENGINE, {.options = {{"mode", mode}, {"other", other}}});
}

// x -> relu -> tanh -> relu: with target relu two equal groups. `width` tells programs apart.
Model SmallModel(int64_t width = 3) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, width});
  for (const char* name : {"a", "b", "y"}) b.Var(name, DType::kF32, {2, width});
  b.Unary("relu", "x", "a").Unary("tanh", "a", "b").Unary("relu", "b", "y").Fetch("y");
  return {b.Build(), std::make_shared<Scope>()};
}

// x * w, with the parameter's contents in `w`.
Model Product(const Tensor& w, const std::string& names = "") {
  ProgramBuilder b;
  b.Feed(names + "x", DType::kF32, {2, 2}).Param(names + "w", DType::kF32, {2, 2});
  b.Binary("elementwise_mul", names + "x", names + "w", names + "y").Fetch(names + "y");
  Model model{b.Build(), std::make_shared<Scope>()};
  model.scope->Set(names + "w", w);
  return model;
}

Result<OffloadedModel> With(const std::shared_ptr<EngineCache>& cache, const Model& model,
                            const HardwareTarget& target, const Engine& engine) {
  OffloadOptions options;
  options.compile.opt_level = 0;
  options.cache = cache;
  return Offload(model, {{target, engine}}, options);
}

Froms FromsOf(const OffloadReport& report) {
  Froms froms;
  for (const OffloadedGroup& group : report.groups) froms.push_back(group.cache);
  return froms;
}
Froms FromsOf(const Result<OffloadedModel>& offloaded) {
  EXPECT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  return offloaded.ok() ? FromsOf(offloaded->report) : Froms();
}

// ---- in memory ----------------------------------------------------------------------------------

TEST(EngineCaches, CompileEqualGroupsOnce) {
  const auto cache = EngineCache::InMemory();
  const Engine engine = ReferenceOf();
  const auto first = With(cache, SmallModel(), TargetOf("relu"), engine);
  EXPECT_THAT(FromsOf(first), ElementsAre("compiled", "hit in memory"));
  EXPECT_THAT(first->report.ToString(), HasSubstr("cache: hit in memory; taken"));
  const auto second = With(cache, SmallModel(), TargetOf("relu"), engine);
  EXPECT_THAT(FromsOf(second), ElementsAre("hit in memory", "hit in memory"));
  // Another handle of the same engine.
  const auto third = With(cache, SmallModel(), TargetOf("relu"), ReferenceOf());
  EXPECT_THAT(FromsOf(third), ElementsAre("hit in memory", "hit in memory"));
  const EngineCacheStats stats = cache->stats();
  EXPECT_EQ(stats.hits, 5);
  EXPECT_EQ(stats.misses, 1);
  EXPECT_EQ(stats.compiled, 1);
  EXPECT_EQ(stats.restored + stats.stored + stats.rejected, 0);
}

TEST(EngineCaches, AreNotThereUnlessAskedFor) {
  const auto offloaded = With(nullptr, SmallModel(), TargetOf("relu"), ReferenceOf());
  EXPECT_THAT(FromsOf(offloaded), ElementsAre("", ""));
  EXPECT_EQ(offloaded->report.ToString().find("cache"), std::string::npos);
}

TEST(EngineCaches, KeepNothingAlive) {
  const auto cache = EngineCache::InMemory();
  for (int round = 0; round < 3; ++round)
    EXPECT_THAT(FromsOf(With(cache, SmallModel(), TargetOf("relu"), ReferenceOf())),
                ElementsAre("compiled", "hit in memory"));
}

TEST(EngineCaches, ForgetManyThatNobodyUses) {
  const auto cache = EngineCache::InMemory();
  const Engine engine = FaultyOf("");
  const auto kept = With(cache, SmallModel(1), TargetOf("relu"), engine);
  for (int64_t width = 2; width < 300; ++width)
    EXPECT_THAT(FromsOf(With(cache, SmallModel(width), TargetOf("relu"), engine)),
                ElementsAre("compiled", "hit in memory"));
  EXPECT_THAT(FromsOf(With(cache, SmallModel(1), TargetOf("relu"), engine)),
              ElementsAre("hit in memory", "hit in memory"));
}

TEST(EngineCaches, TellEnginesAndTargetsApart) {
  const auto cache = EngineCache::InMemory();
  const Model model = SmallModel();
  std::vector<Result<OffloadedModel>> kept;
  const auto first_from = [&](const HardwareTarget& target, const Engine& engine) {
    kept.push_back(With(cache, model, target, engine));
    return FromsOf(kept.back()).front();
  };
  const HardwareTarget target = TargetOf("relu");
  EXPECT_EQ(first_from(target, ReferenceOf()), "compiled");
  EXPECT_EQ(first_from(target, ReferenceOf()), "hit in memory");
  EXPECT_EQ(first_from(TargetOf("relu", "u"), ReferenceOf()), "compiled");
  EXPECT_EQ(first_from(*HardwareTarget::Parse(target.text() + " ", "t"), ReferenceOf()),
            "compiled");
  EXPECT_EQ(first_from(target, ReferenceOf({.threads = 2})), "compiled");
  EXPECT_EQ(first_from(target, ReferenceOf({.options = {{"level", "1"}}})), "compiled");
  EXPECT_EQ(first_from(target, ReferenceOf({.limit = std::chrono::minutes(1)})), "compiled");
  EXPECT_EQ(first_from(target, FaultyOf("")), "compiled");
  EXPECT_EQ(first_from(target, FaultyOf("")), "hit in memory");
  EXPECT_EQ(first_from(target, FaultyOf("", "=")), "compiled");
  EXPECT_EQ(first_from(target, FaultyOf("", "\n")), "compiled");
  EXPECT_EQ(first_from(target, FaultyOf("", "\\n")), "compiled");
  // Who does not say what its modules depend on shares with itself alone.
  const Engine silent = FaultyOf("no fingerprint");
  EXPECT_EQ(first_from(target, silent), "compiled");
  EXPECT_EQ(first_from(target, silent), "hit in memory");
  EXPECT_EQ(first_from(target, FaultyOf("no fingerprint")), "compiled");
  EXPECT_EQ(first_from(target, FaultyOf("fingerprint throws")), "compiled");
}

TEST(EngineCaches, DoNotShareWhatWasWrittenTo) {
  const auto cache = EngineCache::InMemory();
  const Engine engine = ReferenceOf();
  const HardwareTarget target = TargetOf("elementwise_mul");
  Executor executor({.threads = 1});
  const auto run = [&](const Result<OffloadedModel>& offloaded, const std::string& names) {
    const auto compiled = executor.Compile(offloaded->model, {.opt_level = 0});
    return Floats((*executor.Run(*compiled, {{names + "x", F32({2, 2}, {1, 1, 1, 1})}}))[0]);
  };
  Tensor w = F32({2, 2}, {1, 2, 3, 4});
  const auto first = With(cache, Product(w), target, engine);
  EXPECT_THAT(FromsOf(first), ElementsAre("compiled"));
  const auto second = With(cache, Product(w.Clone(), "other_"), target, engine);
  EXPECT_THAT(FromsOf(second), ElementsAre("hit in memory"));
  EXPECT_EQ(run(second, "other_"), (std::vector<float>{1, 2, 3, 4}));
  // The first program's parameter is written to where it lies.
  w.mutable_data<float>()[0] = 9;
  const auto third = With(cache, Product(F32({2, 2}, {1, 2, 3, 4})), target, engine);
  EXPECT_THAT(FromsOf(third), ElementsAre("compiled"));
  EXPECT_EQ(run(third, ""), (std::vector<float>{1, 2, 3, 4}));
  const auto fourth = With(cache, Product(F32({2, 2}, {9, 2, 3, 4})), target, engine);
  EXPECT_THAT(FromsOf(fourth), ElementsAre("compiled"));
  EXPECT_EQ(run(fourth, ""), (std::vector<float>{9, 2, 3, 4}));
}

// Memory that its owner takes back with the program it was lent to.
TEST(EngineCaches, OutliveTheMemoryOfUsers) {
  const auto cache = EngineCache::InMemory();
  const HardwareTarget target = TargetOf("elementwise_mul");
  const Engine engine = ReferenceOf();
  std::optional<Result<OffloadedModel>> second;
  {
    std::vector<float> lent = {1, 2, 3, 4};
    const auto first =
        With(cache, Product(Tensor::Wrap(lent.data(), DType::kF32, {2, 2})), target, engine);
    second = With(cache, Product(F32({2, 2}, lent)), target, engine);
    EXPECT_THAT(FromsOf(*second), ElementsAre("hit in memory"));
    lent.assign(4, -1);
  }
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile((*second)->model, {.opt_level = 0});
  EXPECT_EQ(Floats((*executor.Run(*compiled, {{"x", F32({2, 2}, {1, 1, 1, 1})}}))[0]),
            (std::vector<float>{1, 2, 3, 4}));
}

TEST(EngineCaches, CompileOnceForManyThreads) {
  for (const bool slow : {false, true}) {
    const auto cache = EngineCache::InMemory();
    const Engine engine = FaultyOf(slow ? "compiles slowly" : "");
    constexpr int kThreads = 8;
    std::vector<Result<OffloadedModel>> all(kThreads, Status(StatusCode::kInternal, "none"));
    std::atomic<int> waiting{kThreads};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        all[t] = With(cache, SmallModel(), TargetOf("relu"), engine);
      });
    for (std::thread& thread : threads) thread.join();
    int compiled = 0;
    for (const auto& offloaded : all)
      for (const std::string& from : FromsOf(offloaded)) compiled += from == "compiled" ? 1 : 0;
    EXPECT_EQ(compiled, 1);
    EXPECT_EQ(cache->stats().compiled, 1);
    EXPECT_EQ(cache->stats().hits, 2 * kThreads - 1);
  }
}

TEST(EngineCaches, TellAllThatWaitOfARefusal) {
  for (const char* mode : {"refuses", "compile fails", "compile throws"}) {
    SCOPED_TRACE(mode);
    const auto cache = EngineCache::InMemory();
    const Engine engine = FaultyOf(mode);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const auto offloaded = With(cache, SmallModel(), TargetOf("relu"), engine);
        ASSERT_TRUE(offloaded.ok());
        for (const OffloadedGroup& group : offloaded->report.groups) {
          EXPECT_FALSE(group.taken);
          EXPECT_EQ(group.cache, "");
          EXPECT_THAT(group.reason, HasSubstr("engine faulty"));
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(EngineCaches, DoNotShareWhatHangs) {
  const auto cache = EngineCache::InMemory();
  const Engine engine = *Engine::Load(HEDDLE_FAULTY_ENGINE, {.limit = std::chrono::milliseconds(30),
                                                             .options = {{"mode", "hangs"}}});
  const auto first = With(cache, SmallModel(), TargetOf("relu"), engine);
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(first->model, {.opt_level = 0});
  EXPECT_FALSE(executor.Run(*compiled, {{"x", RandomF32({2, 3}, 1)}}).ok());
  EXPECT_EQ(FromsOf(With(cache, SmallModel(), TargetOf("relu"), engine)).front(), "compiled");
}

// ---- on disk ------------------------------------------------------------------------------------

Froms FromDisk(const std::string& folder, const Engine& engine, std::string* warning = nullptr,
               int64_t width = 3) {
  const auto offloaded =
      With(EngineCache::OnDisk(folder), SmallModel(width), TargetOf("relu"), engine);
  if (warning != nullptr) *warning = offloaded->report.cache_warning;
  EXPECT_TRUE(warning != nullptr || offloaded->report.cache_warning.empty())
      << offloaded->report.cache_warning;
  // What was taken runs.
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(offloaded->model, {.opt_level = 0});
  EXPECT_TRUE(executor.Run(*compiled, {{"x", RandomF32({2, width}, 1)}}).ok());
  return FromsOf(offloaded);
}

TEST(EngineCachesOnDisk, ServeOtherProcesses) {
  const TempDir dir;
  const std::string folder = dir / "a/b/cache";
  EXPECT_THAT(FromDisk(folder, ReferenceOf()), ElementsAre("compiled", "hit in memory"));
  EXPECT_THAT(FromDisk(folder, ReferenceOf()), ElementsAre("hit on disk", "hit in memory"));
  EXPECT_THAT(FromDisk(folder, ReferenceOf({.options = {{"level", "1"}}})),
              ElementsAre("compiled", "hit in memory"));
  const auto contents = ListEngineCache(folder);
  ASSERT_TRUE(contents.ok()) << contents.status().ToString();
  ASSERT_EQ(contents->entries.size(), 2u);
  EXPECT_EQ(contents->unfinished, 0);
  EXPECT_EQ(contents->others, 0);
  for (const EngineCacheEntry& entry : contents->entries) {
    EXPECT_FALSE(entry.damaged);
    EXPECT_EQ(entry.engine, "reference");
    EXPECT_EQ(entry.target, "t");
    EXPECT_EQ(entry.operators, 1);
    EXPECT_THAT(entry.fingerprint, HasSubstr("level "));
    EXPECT_LT(entry.age_s, 100);
    const auto rights = std::filesystem::status(folder + "/" + entry.file).permissions();
    EXPECT_EQ(static_cast<int>(rights), 0600);
  }
  EXPECT_EQ(static_cast<int>(std::filesystem::status(folder).permissions()), 0700);
}

// What an engine compiles for the shapes that runs bring.
TEST(EngineCachesOnDisk, TakeWhatIsSavedBehindTheFirstRun) {
  const TempDir dir;
  const auto froms = [&](const char* mode, int64_t* stored) {
    const auto cache = EngineCache::OnDisk(dir / mode);
    const auto offloaded = With(cache, SmallModel(), TargetOf("relu"), FaultyOf(mode));
    EXPECT_EQ(cache->stats().stored, 0);
    Executor executor({.threads = 1});
    const auto compiled = executor.Compile(offloaded->model, {.opt_level = 0});
    for (int run = 0; run < 3; ++run)
      EXPECT_TRUE(executor.Run(*compiled, {{"x", RandomF32({2, 3}, 1)}}).ok());
    *stored = cache->stats().stored;
    return FromsOf(offloaded);
  };
  int64_t stored = 0;
  EXPECT_THAT(froms("saves later", &stored), ElementsAre("compiled", "hit in memory"));
  EXPECT_EQ(stored, 1);
  EXPECT_THAT(froms("saves later", &stored), ElementsAre("hit on disk", "hit in memory"));
  EXPECT_EQ(stored, 0);
  // Not of an engine that does not ask for it.
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(froms("saves later, unsaid", &stored), ElementsAre("compiled", "hit in memory"));
    EXPECT_EQ(stored, 0);
  }
  // A cache that has gone takes nothing.
  std::optional<Result<OffloadedModel>> offloaded;
  offloaded = With(EngineCache::OnDisk(dir / "gone"), SmallModel(), TargetOf("relu"),
                   FaultyOf("saves later"));
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile((*offloaded)->model, {.opt_level = 0});
  EXPECT_TRUE(executor.Run(*compiled, {{"x", RandomF32({2, 3}, 1)}}).ok());
  EXPECT_EQ(ModulesOf(*ListEngineCache(dir / "gone")).size(), 0u);
}

// The same engine elsewhere: built anew, or for another processor.
TEST(EngineCachesOnDisk, TellFingerprintsApart) {
  const TempDir dir;
  void* const library = dlopen(HEDDLE_FAULTY_ENGINE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto get = reinterpret_cast<heddle_engine_get_function>(dlsym(library, HEDDLE_ENGINE_GET));
  heddle_engine_table one = *get(HEDDLE_ENGINE_VERSION), other = one, third = one, renamed = one;
  one.fingerprint = [](void*) { return "1, processor a"; };
  other.fingerprint = [](void*) { return "1, processor b"; };
  third.fingerprint = [](void*) { return "1, processor a\nthreads 1"; };
  renamed.fingerprint = one.fingerprint;
  renamed.name = "other";
  for (const char* from : {"compiled", "hit on disk"})
    for (const heddle_engine_table* table : {&one, &other, &third, &renamed})
      EXPECT_EQ(FromDisk(dir.path() + "/c", *Engine::FromTable(table)).front(), from);
}

// Programs, their parameters and their results: alone, compiled, from memory and from disk.
TEST(EngineCachesOnDisk, GiveTheSameBits) {
  const TempDir dir;
  std::map<std::string, int> seen;
  for (uint32_t seed = 0; seed < 45; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const CacheSubject subject = SubjectOf(seed);
    Executor executor({.threads = 1, .poison = true});
    const auto outcome = [&](const CacheSubject& s, const std::shared_ptr<EngineCache>& cache,
                             std::optional<OffloadedModel>* keep) -> Result<std::vector<Value>> {
      HEDDLE_ASSIGN_OR_RETURN(Model model, s.Load());
      if (cache != nullptr) {
        const std::string text = RandomTargets(seed).For(*Program::Parse(subject.bytes), "t");
        *keep = *With(cache, model, *HardwareTarget::Parse(text, "t"),
                      ReferenceOf({.options = {{"level", "0"}}}));
        for (const OffloadedGroup& group : (*keep)->report.groups) ++seen[group.cache];
        model = (*keep)->model;
      }
      HEDDLE_ASSIGN_OR_RETURN(const auto compiled, executor.Compile(model, {.opt_level = 0}));
      return executor.RunValues(compiled, s.feeds);
    };
    const auto alone = outcome(subject, nullptr, nullptr);
    const auto cache = EngineCache::OnDisk(dir.path() + "/cache");
    std::optional<OffloadedModel> kept[4];
    const std::shared_ptr<EngineCache> kCaches[] = {
        cache, cache, EngineCache::OnDisk(dir.path() + "/cache"), cache};
    for (int k = 0; k < 4; ++k) {
      const CacheSubject s = k == 3 ? Renaming(seed).Of(subject) : subject;
      const auto with = outcome(s, kCaches[k], &kept[k]);
      ASSERT_EQ(alone.ok(), with.ok()) << with.status().ToString();
      if (!alone.ok()) continue;
      ASSERT_EQ(alone->size(), with->size());
      for (size_t v = 0; v < alone->size(); ++v)
        ASSERT_TRUE(SameBits((*alone)[v], (*with)[v])) << "value " << v << " of way " << k;
    }
    for (const int k : {1, 3})
      for (const OffloadedGroup& group : kept[k]->report.groups)
        ASSERT_TRUE(group.cache.empty() || group.cache == "hit in memory") << group.cache;
    for (const OffloadedGroup& group : kept[2]->report.groups) ASSERT_NE(group.cache, "compiled");
  }
  EXPECT_GT(seen["compiled"], 50);
  EXPECT_GT(seen["hit in memory"], 100);
  EXPECT_GT(seen["hit on disk"], 50);
}

TEST(EngineCachesOnDisk, CompileWhatEnginesDoNotRestore) {
  for (const char* mode : {"restore fails", "restore refuses", "restore throws",
                           "restore throws a number", "restores nothing", "restore answers 17"}) {
    SCOPED_TRACE(mode);
    const TempDir dir;
    for (int round = 0; round < 3; ++round) {
      std::string warning;
      EXPECT_THAT(FromDisk(dir.path() + "/c", FaultyOf(mode), &warning),
                  ElementsAre("compiled", "hit in memory"));
      // A refusal is no fault.
      const bool silent = round == 0 || std::string(mode) == "restore refuses";
      EXPECT_EQ(warning.empty(), silent) << warning;
      EXPECT_THAT(warning, HasSubstr(silent ? "" : "engine faulty"));
    }
    const auto cache = EngineCache::OnDisk(dir.path() + "/c");
    (void)With(cache, SmallModel(), TargetOf("relu"), FaultyOf(mode));
    EXPECT_EQ(cache->stats().rejected, 1);
    EXPECT_EQ(cache->stats().stored, 1);
  }
}

TEST(EngineCachesOnDisk, HoldWhatEnginesSave) {
  const TempDir dir;
  EXPECT_THAT(FromDisk(dir.path() + "/c", FaultyOf("")), ElementsAre("compiled", "hit in memory"));
  EXPECT_THAT(FromDisk(dir.path() + "/c", FaultyOf("")),
              ElementsAre("hit on disk", "hit in memory"));
  for (const char* mode : {"saves nothing", "saves much"}) {
    EXPECT_THAT(FromDisk(dir.path() + "/c", FaultyOf(mode)),
                ElementsAre("compiled", "hit in memory"));
    EXPECT_THAT(FromDisk(dir.path() + "/c", FaultyOf(mode)),
                ElementsAre("hit on disk", "hit in memory"));
  }
}

TEST(EngineCachesOnDisk, HoldNothingOfEnginesThatDoNotSave) {
  const std::pair<const char*, const char*> kModes[] = {
      {"no fingerprint", ""},
      {"save refuses", ""},
      {"fingerprint throws", "engine faulty threw in fingerprint: a smudge"},
      {"save fails half-way", "engine faulty failed in save: the pen is empty"},
      {"save throws", "engine faulty threw in save: a pen"},
      {"saves nowhere", "engine faulty goes on saving what is refused"},
  };
  for (const auto& [mode, text] : kModes) {
    SCOPED_TRACE(mode);
    const TempDir dir;
    for (int round = 0; round < 2; ++round) {
      std::string warning;
      EXPECT_THAT(FromDisk(dir.path() + "/c", FaultyOf(mode), &warning),
                  ElementsAre("compiled", "hit in memory"));
      EXPECT_EQ(warning, text);
    }
    if (const auto contents = ListEngineCache(dir.path() + "/c"); contents.ok()) {
      EXPECT_EQ(ModulesOf(*contents).size(), 0u);
      EXPECT_EQ(contents->unfinished, 0);
    }
  }
}

}  // namespace
}  // namespace heddle::testing
