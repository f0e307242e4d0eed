// What engines said they take, kept on disk: they are not asked again, unless something is another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <random>

#include "heddle/engine.h"
#include "offload/refused.h"
#include "tests/offload/cache_subjects.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;
using offload::Refusals;
using ::testing::HasSubstr;

// ---- as bytes -----------------------------------------------------------------------------------

TEST(Refusals, AreTheSameFromTheirBytes) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const size_t operators = random() % 1000;
    Refusals refusals;
    for (size_t at = 0; at < operators; ++at)
      if (random() % 5 == 0) refusals.emplace_back(at, std::string(random() % 300, 'w'));
    const auto back = offload::RefusalsOf(offload::BytesOf(refusals), operators);
    ASSERT_TRUE(back.has_value()) << seed;
    EXPECT_EQ(*back, refusals) << seed;
  }
}

TEST(Refusals, AreNotReadFromOtherBytes) {
  const Refusals refusals = {{1, "why"}, {3, "so"}};
  const std::string bytes = offload::BytesOf(refusals);
  EXPECT_TRUE(offload::RefusalsOf(bytes, 4).has_value());
  EXPECT_FALSE(offload::RefusalsOf(bytes, 3).has_value());  // there is no operator 3
  const std::string second = offload::BytesOf({{3, "so"}});
  EXPECT_FALSE(offload::RefusalsOf(second + offload::BytesOf({{1, "why"}}), 4).has_value());
  EXPECT_FALSE(offload::RefusalsOf(second + second, 4).has_value());
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto cut = offload::RefusalsOf(std::string_view(bytes).substr(0, size), 4);
    EXPECT_EQ(cut.has_value(), size == bytes.size() - second.size()) << size;
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {  // none ends the process
    std::string some(random() % 20, '\0');
    for (char& c : some) c = static_cast<char>(random());
    (void)offload::RefusalsOf(some, 100);
  }
}

// ---- an engine that counts ----------------------------------------------------------------------

struct Counting {
  std::string mode;
};
int asked = 0;  // by all of them; tests run one at a time

int Open(const heddle_engine_settings* settings, void** engine, char*, size_t) {
  auto* made = new Counting;
  for (size_t i = 0; i < settings->num_options; ++i) made->mode = settings->texts[i];
  *engine = made;
  return HEDDLE_ENGINE_OK;
}

int Takes(void* engine, const heddle_engine_group* group, char* message, size_t room) {
  ++asked;
  const std::string& mode = static_cast<Counting*>(engine)->mode;
  for (size_t k = 0; k < group->num_operators; ++k) {
    const heddle_engine_operator& op = *group->operators[k];
    if (std::strcmp(op.type, "tanh") != 0) continue;
    std::snprintf(message, room, "no tanh of '%s'", group->values[op.inputs[0]->values[0]]->name);
    return mode == "fails" ? HEDDLE_ENGINE_FAILED : HEDDLE_ENGINE_REFUSED;
  }
  return HEDDLE_ENGINE_OK;
}

int Compile(void* engine, const heddle_engine_group* const*,
            heddle_engine_compiled* const* compiled, size_t count, char*, size_t) {
  for (size_t k = 0; k < count; ++k) {
    compiled[k]->status = HEDDLE_ENGINE_OK;
    compiled[k]->module = engine;
  }
  return HEDDLE_ENGINE_OK;
}

heddle_engine_table Table() {
  heddle_engine_table table = {};
  table.size = sizeof table;
  table.version = HEDDLE_ENGINE_VERSION;
  table.flags = HEDDLE_ENGINE_TAKES_MANY;
  table.name = "counting";
  table.open = Open;
  table.takes = Takes;
  table.compile = Compile;
  table.run = [](void*, const heddle_engine_run*, char*, size_t) -> int {
    return HEDDLE_ENGINE_FAILED;
  };
  table.free_module = [](void*) {};
  table.close = [](void* engine) { delete static_cast<Counting*>(engine); };
  table.fingerprint = [](void*) { return "counting 1"; };
  table.save = [](void*, void*, int (*)(void*, const void*, size_t), char*, size_t) -> int {
    return HEDDLE_ENGINE_REFUSED;
  };
  table.restore = [](void*, const heddle_engine_group*, const void*, size_t, void**, char*,
                     size_t) -> int { return HEDDLE_ENGINE_REFUSED; };
  return table;
}

// x -> relu -> tanh -> relu -> scale by a parameter.
struct Subject {
  std::string middle = "b", middle_type = "tanh";
  int64_t width = 3;
  float factor = 1;
};
Model ModelOf(const Subject& s) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, s.width}).Param("w", DType::kF32, {s.width});
  for (const std::string& name : {std::string("a"), s.middle, std::string("c"), std::string("y")})
    b.Var(name, DType::kF32, {2, s.width});
  b.Unary("relu", "x", "a").Unary(s.middle_type, "a", s.middle).Unary("relu", s.middle, "c");
  b.Binary("elementwise_mul", "c", "w", "y").Fetch("y");
  Model model{b.Build(), std::make_shared<Scope>()};
  model.scope->Set("w", F32({s.width}, std::vector<float>(static_cast<size_t>(s.width), s.factor)));
  return model;
}

class Answers : public ::testing::Test {
 protected:
  // Offloads in a cache of its own, as another process does. How often the engine was asked.
  int Asked(const Subject& subject = {}, const heddle_engine_table& table = Table(),
            const EngineOptions& options = {}) {
    kept_.push_back(table);  // lives as long as the library
    const Engine engine = *Engine::FromTable(&kept_.back(), options);
    OffloadOptions offload;
    offload.compile.opt_level = level_;
    offload.cache = EngineCache::OnDisk(folder_);
    const HardwareTarget target = *HardwareTarget::Parse(
        R"({"name": "t", "units": [{"name": "u", "ops": [{"type": "relu"}, {"type": "tanh"},
            {"type": "sigmoid"}, {"type": "elementwise_mul"}]}], "links": [["u", "u"]],
            "start": ["u"]})",
        "t");
    asked = 0;
    const auto offloaded = Offload(ModelOf(subject), {{target, engine}}, offload);
    EXPECT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    groups_.clear();
    for (const OffloadedGroup& group : offloaded->report.groups)
      groups_.push_back(std::to_string(group.operators.size()) + " " + group.reason);
    return asked;
  }
  int Files() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder_))
      count += entry.path().extension() == ".answers" ? 1 : 0;
    return count;
  }

  const TempDir dir_;
  const std::string folder_ = dir_ / "cache";
  std::deque<heddle_engine_table> kept_;
  int level_ = 0;
  std::vector<std::string> groups_;
};

TEST_F(Answers, AreAskedForOnce) {
  for (const int level : {0, 2}) {
    level_ = level;
    EXPECT_GT(Asked(), 0);
    const auto groups = groups_;
    EXPECT_EQ(groups.size(), 2u);  // what is refused parts them
    EXPECT_EQ(Asked(), 0);
    EXPECT_EQ(groups_, groups);
    EXPECT_GT(Files(), 0);
    fs::remove_all(folder_);
  }
}

TEST_F(Answers, AreOneFileForManyQuestions) {
  heddle_engine_table table = Table();
  table.flags = 0;
  const int first = Asked({}, table);
  EXPECT_GE(first, 4);
  EXPECT_LT(Files(), first);
  EXPECT_EQ(Asked({}, table), 0);
}

TEST_F(Answers, HangOnAllThatTheEngineIsTold) {
  ASSERT_GT(Asked(), 0);
  ASSERT_EQ(Asked(), 0);
  EXPECT_GT(Asked({.middle = "other"}), 0);  // what it says speaks of names
  EXPECT_GT(Asked({.middle_type = "sigmoid"}), 0);
  EXPECT_GT(Asked({.width = 4}), 0);
  EXPECT_GT(Asked({.factor = 2}), 0);
  EXPECT_GT(Asked({}, Table(), {.threads = 2}), 0);
  EXPECT_GT(Asked({}, Table(), {.options = {{"mode", "m"}}}), 0);
  heddle_engine_table other = Table();
  other.fingerprint = [](void*) { return "counting 2"; };
  EXPECT_GT(Asked({}, other), 0);
  other.name = "another";
  EXPECT_GT(Asked({}, other), 0);
  EXPECT_EQ(Asked(), 0);
}

TEST_F(Answers, AreNotKeptOfEnginesThatFailOrSayNoFingerprint) {
  const EngineOptions fails = {.options = {{"mode", "fails"}}};
  EXPECT_GT(Asked({}, Table(), fails), 0);
  EXPECT_GT(Asked({}, Table(), fails), 0);
  heddle_engine_table silent = Table();
  silent.fingerprint = [](void*) -> const char* { return nullptr; };
  EXPECT_GT(Asked({}, silent), 0);
  EXPECT_GT(Asked({}, silent), 0);
}

TEST_F(Answers, AreNotBelievedWhereTheirFileIsDamaged) {
  ASSERT_GT(Asked(), 0);
  const auto groups = groups_;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.path().extension() == ".answers") files.push_back(entry.path().string());
  ASSERT_GE(files.size(), 2u);
  const std::string whole = ReadAll(files[0]), second = ReadAll(files[1]);
  std::vector<std::string> others = {"", whole.substr(0, whole.size() / 2), whole + "x", second};
  for (size_t byte = 0; byte < whole.size(); byte += 3) {
    others.push_back(whole);
    others.back()[byte] = static_cast<char>(others.back()[byte] ^ (1 << (byte % 8)));
  }
  for (size_t k = 0; k < others.size(); ++k) {
    WriteAll(files[0], others[k]);
    ASSERT_GT(Asked(), 0) << k;
    ASSERT_EQ(groups_, groups) << k;
    ASSERT_EQ(ReadAll(files[0]), whole) << k;  // replaced
  }
  EXPECT_EQ(Asked(), 0);
}

TEST_F(Answers, AreListedAndRemoved) {
  ASSERT_GT(Asked(), 0);
  const int files = Files();
  auto contents = ListEngineCache(folder_);
  ASSERT_TRUE(contents.ok()) << contents.status().ToString();
  EXPECT_EQ(contents->others, 0);
  EXPECT_EQ(ModulesOf(*contents).size(), 0u);
  ASSERT_EQ(contents->entries.size(), static_cast<size_t>(files));
  for (const EngineCacheEntry& entry : contents->entries) {
    EXPECT_TRUE(entry.answers);
    EXPECT_FALSE(entry.damaged);
    EXPECT_EQ(entry.engine, "counting");
    EXPECT_EQ(entry.fingerprint, "counting 1");
    EXPECT_GT(entry.operators, 0);
  }
  EXPECT_EQ(CleanEngineCache(folder_, 0)->files, files);
  EXPECT_EQ(Files(), 0);
}

TEST_F(Answers, AreAskedForWhereTheFolderIsNotUsed) {
  fs::create_directory(folder_);
  fs::permissions(folder_, fs::perms::all);
  EXPECT_GT(Asked(), 0);
  EXPECT_GT(Asked(), 0);
  EXPECT_EQ(Files(), 0);
}

}  // namespace
}  // namespace heddle::testing
