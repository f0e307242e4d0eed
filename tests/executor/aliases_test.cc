// Variables with one storage: what Paddle 2.6.2 gives, in every schedule, at every level and on a
// device.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "heddle/device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<std::vector<float>>;

struct Setting {
  int threads;
  Schedule schedule;
  bool device = false;
};

class Aliases : public ::testing::TestWithParam<Setting> {
 protected:
  Rows Run(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
           const std::shared_ptr<Scope>& scope = nullptr) {
    Rows first;
    for (int level : {0, 1, 2}) {
      Executor executor({.threads = GetParam().threads,
                         .device = GetParam().device ? NewEmulatedDevice({.lazy = true}) : nullptr,
                         .poison = true});
      const CompiledProgram compiled =
          MustCompile(executor, b.Build(), scope,
                      {.opt_level = level,
                       .schedule = GetParam().schedule,
                       .placement = level == 1 ? Placement::kRandom : Placement::kDevice});
      for (int run = 0; run < 2; ++run) {
        Rows rows;
        for (const Tensor& t : MustRun(executor, compiled, feeds)) rows.push_back(Floats(t));
        if (first.empty()) first = rows;
        EXPECT_EQ(rows, first) << "level " << level << ", run " << run;
      }
    }
    return first;
  }

  static std::vector<heddle::Feed> X() { return {{"x", F32({4}, {1, 2, 3, 4})}}; }
};

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  return ScheduleName(info.param.schedule) + std::to_string(info.param.threads) +
         (info.param.device ? "Device" : "");
}
INSTANTIATE_TEST_SUITE_P(All, Aliases,
                         ::testing::Values(Setting{1, Schedule::kSerial},
                                           Setting{2, Schedule::kLanes},
                                           Setting{8, Schedule::kParallel},
                                           Setting{2, Schedule::kAuto},
                                           Setting{2, Schedule::kAuto, true}),
                         NameOf);

TEST_P(Aliases, PartsOfACoalescedTensorChangeIt) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("y", DType::kF32, {4});
  b.Op("coalesce_tensor", {{"Input", {"x", "y"}}}, {{"Output", {"a", "b"}}, {"FusedOutput", {"f"}}},
       {{"copy_data", true}, {"use_align", false}, {"dtype", int64_t{5}}});
  b.Scale("a", "a", 10).Scale("b", "b", 100).Scale("f", "s", 1).Fetch("s").Fetch("a").Fetch("x");
  auto feeds = X();
  feeds.push_back({"y", F32({4}, {5, 6, 7, 8})});
  EXPECT_EQ(Run(b, feeds),
            (Rows{{10, 20, 30, 40, 500, 600, 700, 800}, {10, 20, 30, 40}, {1, 2, 3, 4}}));
}

TEST_P(Aliases, AlignedPartsLeaveGaps) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("w", DType::kF32, {2});
  b.Op("coalesce_tensor", {{"Input", {"x", "w"}}}, {{"Output", {"a", "b"}}, {"FusedOutput", {"f"}}},
       {{"copy_data", true}, {"align_size", int64_t{32}}, {"dtype", int64_t{5}}});
  b.Scale("f", "f", 1, 1).Scale("a", "a", 10).Scale("f", "s", 1).Scale("b", "z", 1);
  b.Fetch("s").Fetch("a").Fetch("b").Fetch("z");
  auto feeds = X();
  feeds.push_back({"w", F32({2}, {10, 20})});
  EXPECT_EQ(Run(b, feeds), (Rows{{20, 30, 40, 50, 1, 1, 1, 1, 11, 21, 1, 1, 1, 1, 1, 1},
                                 {20, 30, 40, 50},
                                 {11, 21},
                                 {11, 21}}));
}

TEST_P(Aliases, SharedDataIsWrittenUnderBothNames) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Scale("x", "t", 1);
  b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
  b.Scale("s", "s", 3).Scale("t", "y", 1).Fetch("y").Fetch("s");
  EXPECT_EQ(Run(b, X()), (Rows{{3, 6, 9, 12}, {3, 6, 9, 12}}));
}

TEST_P(Aliases, OperatorsThatOnlyWriteChangeTheStorage) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Scale("x", "t", 1);
  b.Op("share_buffer", {{"X", {"t"}}}, {{"Out", {"s"}}, {"XOut", {"t"}}},
       {{"share_dims_and_dtype", Ints{1}}});
  b.Scale("x", "s", 3).Scale("t", "y", 1).Fetch("y").Fetch("s").Fetch("t");
  EXPECT_EQ(Run(b, X()), (Rows{{3, 6, 9, 12}, {3, 6, 9, 12}, {3, 6, 9, 12}}));
}

TEST_P(Aliases, AVariableLeavesItsStorageForAnother) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Scale("x", "t", 1);
  b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
  b.Scale("x", "t", 5).Scale("s", "y", 1);
  b.Op("share_data", {{"X", {"x"}}}, {{"Out", {"s"}}});
  b.Scale("x", "t", 7).Scale("s", "z", 1).Fetch("y").Fetch("s").Fetch("t").Fetch("z");
  EXPECT_EQ(Run(b, X()), (Rows{{5, 10, 15, 20}, {1, 2, 3, 4}, {7, 14, 21, 28}, {1, 2, 3, 4}}));
}

TEST_P(Aliases, OtherShapesKeepTheStorageWhileTheyFit) {
  for (const auto& [shape, want] : {std::pair(Ints{2, 2}, std::vector<float>{9, 9, 9, 9}),
                                    std::pair(Ints{2}, std::vector<float>{9, 9, 3, 4}),
                                    std::pair(Ints{40}, std::vector<float>{1, 2, 3, 4})}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {4}).Scale("x", "t", 1);
    b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
    b.Fill("s", shape, 9).Scale("t", "y", 1).Fetch("y").Fetch("t").Fetch("s");
    const Rows rows = Run(b, X());
    EXPECT_EQ(rows[0], want);
    EXPECT_EQ(rows[1], want);
    EXPECT_EQ(rows[2],
              std::vector<float>(static_cast<size_t>(std::accumulate(
                                     shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())),
                                 9.f));
  }
}

// As Paddle's fused optimizers do: the parameters are parts of one, which is updated.
TEST_P(Aliases, ParametersAreUpdatedThroughTheirStorage) {
  for (bool whole : {true, false}) {
    ProgramBuilder b;
    b.Param("p", DType::kF32, {2}).Param("q", DType::kF32, {2});
    b.Feed("x", DType::kF32, {4}).Feed("rate", DType::kF32, {1});
    b.Op("coalesce_tensor", {{"Input", {"p", "q"}}},
         {{"Output", {"p", "q"}}, {"FusedOutput", {"f"}}},
         {{"copy_data", true}, {"use_align", false}, {"dtype", int64_t{5}}});
    if (whole)
      b.Op("sgd", {{"Param", {"f"}}, {"Grad", {"x"}}, {"LearningRate", {"rate"}}},
           {{"ParamOut", {"f"}}});
    else
      b.Scale("p", "p", 2);
    b.Fetch("f");
    auto feeds = X();
    feeds.push_back({"rate", F32({1}, {1})});
    Executor executor({.threads = GetParam().threads,
                       .device = GetParam().device ? NewEmulatedDevice() : nullptr});
    auto scope = std::make_shared<Scope>();
    scope->Set("p", F32({2}, {10, 20}));
    scope->Set("q", F32({2}, {30, 40}));
    const CompiledProgram compiled =
        MustCompile(executor, b.Build(), scope, {.schedule = GetParam().schedule});
    for (int run = 0; run < 2; ++run) MustRun(executor, compiled, feeds);
    const auto value = [&](const char* name) { return Floats(scope->Find(name)->tensor()); };
    EXPECT_EQ(value("p"), (whole ? std::vector<float>{8, 16} : std::vector<float>{40, 80}));
    EXPECT_EQ(value("q"), (whole ? std::vector<float>{24, 32} : std::vector<float>{30, 40}));
  }
}

// The loop's counter runs on, and with it the variable that shares its storage.
TEST_P(Aliases, BlocksMayWriteToAStorage) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Fill("i", {1}, 0).Fill("n", {1}, 3).Scale("x", "t", 1);
  b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
  b.Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Scale("s", "s", 2).Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"i", "n", "s"}}, {"Condition", {"go"}}},
       {{"Out", {"i", "s", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Scale("t", "y", 1).Fetch("y");
  EXPECT_EQ(Run(b, X()), (Rows{{8, 16, 24, 32}}));
}

// A loop of `times` steps over the variables, which all are its operands.
void Loop(ProgramBuilder& b, int body, const std::vector<std::string>& variables) {
  b.In(body).Increment("i").Binary("less_than", "i", "n", "go").In(0);
  std::vector<std::string> in = variables, out = variables;
  in.insert(in.end(), {"i", "n"});
  out.insert(out.end(), {"i", "go"});
  b.Op("while", {{"X", in}, {"Condition", {"go"}}}, {{"Out", out}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{body}}});
}
void Counter(ProgramBuilder& b, double times) {
  b.Fill("i", {1}, 0).Fill("n", {1}, times).Binary("less_than", "i", "n", "go");
}

TEST_P(Aliases, BlocksMayUseSeveralVariablesOfAStorageThatTheyWrite) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Scale("x", "t", 1);
  b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
  Counter(b, 3);
  const int body = b.Block(0);
  b.In(body).Binary("elementwise_add", "s", "t", "s");
  Loop(b, body, {"s", "t"});
  b.Fetch("s").Fetch("t");
  EXPECT_EQ(Run(b, X()), (Rows{{8, 16, 24, 32}, {8, 16, 24, 32}}));
}

// Results are Paddle's: of the whole times 2 plus 1, then of the second part plus the first.
TEST_P(Aliases, BlocksMayWriteToAWholeAndToAPart) {
  const std::vector<float> a[] = {{1, 2, 3, 4}, {15, 23, 31, 39}};
  const std::vector<float> c[] = {{10, 20, 30, 40}, {128, 232, 336, 440}};
  for (const bool runs : {false, true}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {4}).Scale("x", "a", 1).Scale("x", "c", 10);
    b.Var("f", DType::kF32, {8});
    b.Op("coalesce_tensor", {{"Input", {"a", "c"}}},
         {{"Output", {"a", "c"}}, {"FusedOutput", {"f"}}},
         {{"copy_data", true}, {"use_align", false}, {"dtype", int64_t{5}}});
    Counter(b, runs ? 3 : 0);
    const int body = b.Block(0);
    b.In(body);
    b.Op("scale", {{"X", {"f"}}}, {{"Out", {"f"}}}, {{"scale", 2.0}, {"bias", 1.0}});
    b.Binary("elementwise_add", "c", "a", "c");
    Loop(b, body, {"a", "c", "f"});
    b.Fetch("a").Fetch("c").Fetch("f");
    std::vector<float> whole = a[runs];
    whole.insert(whole.end(), c[runs].begin(), c[runs].end());
    EXPECT_EQ(Run(b, X()), (Rows{a[runs], c[runs], whole}));
  }
}

TEST_P(Aliases, BlocksMayWriteToOuterVariablesByAnotherName) {
  for (const bool taken : {false, true}) {
    for (const double times : {0, 1, 3}) {
      ProgramBuilder b;
      b.Feed("x", DType::kF32, {4}).Feed("flag", DType::kBool, {1}).Scale("x", "t", 1);
      Counter(b, times);
      const int body = b.Block(0), branch = b.Block(body);
      b.In(branch).Var("s", DType::kF32, {4});
      b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}}).Scale("s", "s", 2);
      b.In(body);
      b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"t"}}},
           {{"Out", {}}, {"Scope", {}}},
           {{"sub_block", BlockRef{branch}}, {"is_scalar_condition", true}});
      Loop(b, body, {"flag"});  // which does not name what the branch writes
      b.Scale("t", "y", 1).Fetch("y");
      auto feeds = X();
      feeds.push_back({"flag", Bool(taken)});
      const auto f = static_cast<float>(taken ? std::pow(2, times) : 1);
      EXPECT_EQ(Run(b, feeds), (Rows{{f, 2 * f, 3 * f, 4 * f}}));
    }
  }
}

std::string WhyNot(const ProgramBuilder& b) {
  Executor executor;
  const auto compiled = executor.Compile(b.Build(), nullptr);
  EXPECT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), StatusCode::kUnimplemented);
  return compiled.status().ToString();
}

// Whether a write to `t` changes `s` depends on the flag.
TEST(AliasErrors, SharingThatABlockBeginsMustNotMatterLater) {
  for (const bool written : {false, true}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {4}).Feed("flag", DType::kBool, {1}).Scale("x", "t", 1);
    b.Scale("x", "s", 10);
    const int branch = b.Block(0);
    b.In(branch).Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}}).In(0);
    b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"t"}}},
         {{"Out", {"s"}}, {"Scope", {}}},
         {{"sub_block", BlockRef{branch}}, {"is_scalar_condition", true}});
    if (written) b.Scale("t", "t", 3);
    b.Fetch("s");
    if (written) {
      const std::string text = WhyNot(b);
      for (const char* part : {"'t' is written to, and 's', which shares", "(scale -> t)"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
    } else {
      Executor executor;
      const auto compiled = MustCompile(executor, b.Build());
      const auto out =
          MustRun(executor, compiled, {{"x", F32({4}, {1, 2, 3, 4})}, {"flag", Bool(true)}});
      EXPECT_EQ(Floats(out[0]), (std::vector<float>{1, 2, 3, 4}));
    }
  }
}

// The next turn writes to 't', with which 's' shares its storage since the turn before.
TEST(AliasErrors, SharingThatATurnBeginsMustNotMatterInTheNextOne) {
  for (const bool again : {false, true}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {4}).Scale("x", "t", 1).Scale("x", "s", 10);
    Counter(b, 3);
    const int body = b.Block(0);
    b.In(body).Scale("t", "t", 2);
    if (!again) b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
    b.Binary("elementwise_add", "t", "s", "t");
    if (again) b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
    Loop(b, body, {"t", "s"});
    b.Fetch("t").Fetch("s");
    if (again) {
      EXPECT_NE(WhyNot(b).find("'t' is written to, and 's'"), std::string::npos);
    } else {  // 4 times the value in each turn
      Executor executor;
      const auto out =
          MustRun(executor, MustCompile(executor, b.Build()), {{"x", F32({4}, {1, 2, 3, 4})}});
      EXPECT_EQ(Floats(out[0]), (std::vector<float>{64, 128, 192, 256}));
      EXPECT_EQ(Floats(out[1]), (std::vector<float>{64, 128, 192, 256}));
    }
  }
}

// 's' shares the storage of 't' or of 'u', depending on whether the branch ran.
TEST(AliasErrors, ABlockMayNotTakeAVariableOutOfItsStorage) {
  for (const bool same : {false, true}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {4}).Feed("flag", DType::kBool, {1});
    b.Scale("x", "t", 1).Scale("x", "u", 10);
    b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
    const int branch = b.Block(0);
    b.In(branch).Op("share_data", {{"X", {same ? "t" : "u"}}}, {{"Out", {"s"}}}).In(0);
    b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"t", "u"}}},
         {{"Out", {"s"}}, {"Scope", {}}},
         {{"sub_block", BlockRef{branch}}, {"is_scalar_condition", true}});
    b.Scale("s", "s", 3).Scale("t", "y", 1).Fetch("y");
    if (!same) {
      EXPECT_NE(WhyNot(b).find("'s' shares its storage with others, and block 1 gives it another"),
                std::string::npos);
      continue;
    }
    Executor executor;
    const auto out = MustRun(executor, MustCompile(executor, b.Build()),
                             {{"x", F32({4}, {1, 2, 3, 4})}, {"flag", Bool(true)}});
    EXPECT_EQ(Floats(out[0]), (std::vector<float>{3, 6, 9, 12}));
  }
}

TEST(AliasErrors, SeveralOperatorsMayNotRunABlockThatWritesAStorage) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4}).Feed("flag", DType::kBool, {1}).Scale("x", "t", 1);
  b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
  const int branch = b.Block(0);
  b.In(branch).Binary("elementwise_add", "s", "t", "s").In(0);
  for (int k = 0; k < 2; ++k)
    b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"t"}}},
         {{"Out", {"s"}}, {"Scope", {}}},
         {{"sub_block", BlockRef{branch}}, {"is_scalar_condition", true}});
  b.Fetch("t");
  EXPECT_NE(WhyNot(b).find("several operators run"), std::string::npos);
}

// Names cost no memory where they only differ.
TEST(AliasMemory, OneStorageIsOneBuffer) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1024}).Scale("x", "t", 1);
  b.Op("share_data", {{"X", {"t"}}}, {{"Out", {"s"}}});
  b.Scale("s", "s", 3).Scale("t", "y", 1);
  b.Op("reduce_sum", {{"X", {"y"}}}, {{"Out", {"r"}}}, {{"reduce_all", true}}).Fetch("r");
  Executor executor({.threads = 1});
  const auto compiled =
      MustCompile(executor, b.Build(), nullptr, {.opt_level = 0, .schedule = Schedule::kSerial});
  const auto report =
      executor.PlanMemory(compiled, {{"x", F32({1024}, std::vector<float>(1024, 1))}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->planned_bytes, 4096u);
}

// Programs of writes, shared names and joined parts, beside a model of what Paddle does: names that
// lie in storages.
class RandomAliases {
 public:
  explicit RandomAliases(uint32_t seed) : random_(seed) {
    builder_.Feed("x", DType::kF32, {kSize});
    storages_.push_back(values_);
    refs_["x"] = {0, 0, kSize};
    for (int step = 0; step < 30; ++step) Step();
    for (const auto& [name, ref] : refs_) builder_.Fetch(name);
  }

  const ProgramBuilder& builder() const { return builder_; }
  std::vector<heddle::Feed> feeds() const { return {{"x", F32({kSize}, values_)}}; }
  Rows Expected() const {
    Rows rows;
    for (const auto& [name, ref] : refs_) {
      const auto begin = storages_[ref.storage].begin() + ref.offset;
      rows.emplace_back(begin, begin + ref.size);
    }
    return rows;
  }

 private:
  static constexpr int64_t kSize = 4;
  struct Ref {
    size_t storage;
    int64_t offset, size;
  };

  int Pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  // A name of a value of this size; empty where there is none.
  std::string Name(int64_t size) {
    std::vector<std::string> names;
    for (const auto& [name, ref] : refs_)
      if (ref.size == size) names.push_back(name);
    return names.empty() ? "" : names[static_cast<size_t>(Pick(static_cast<int>(names.size())))];
  }
  // One that exists or, often, another.
  std::string Target(int64_t size) {
    const std::string name = Pick(3) > 0 ? Name(size) : "";
    return name.empty() ? "v" + std::to_string(next_++) : name;
  }

  void Step() {
    const int64_t size = Pick(4) == 0 ? 2 * kSize : kSize;
    const std::string from = Name(size);
    if (from.empty()) return Join();
    switch (Pick(5)) {
      case 0: {
        const std::string to = Target(size);
        if (to == from) return;
        builder_.Op("share_data", {{"X", {from}}}, {{"Out", {to}}});
        refs_[to] = refs_.at(from);
        return;
      }
      case 1:
        return Join();
      default:
        return Write(from, Target(size), size);
    }
  }

  void Write(const std::string& from, const std::string& to, int64_t size) {
    const float factor = static_cast<float>(Pick(3) - 1), bias = static_cast<float>(Pick(5));
    builder_.Scale(from, to, factor, bias);
    const Ref source = refs_.at(from);
    std::vector<float> values;
    for (int64_t i = 0; i < size; ++i)
      values.push_back(factor * storages_[source.storage][static_cast<size_t>(source.offset + i)] +
                       bias);
    if (refs_.count(to) == 0) {
      refs_[to] = {storages_.size(), 0, size};
      storages_.emplace_back(static_cast<size_t>(size));
    }
    const Ref target = refs_.at(to);
    std::copy(values.begin(), values.end(), storages_[target.storage].begin() + target.offset);
  }

  void Join() {
    const std::string a = Name(kSize), b = Name(kSize), c = Target(kSize), d = Target(kSize);
    if (c == d) return;
    const std::string fused = "f" + std::to_string(next_++);
    builder_.Op("coalesce_tensor", {{"Input", {a, b}}},
                {{"Output", {c, d}}, {"FusedOutput", {fused}}},
                {{"copy_data", true}, {"use_align", false}, {"dtype", int64_t{5}}});
    std::vector<float> values;
    for (const std::string& name : {a, b}) {
      const Ref ref = refs_.at(name);
      const auto begin = storages_[ref.storage].begin() + ref.offset;
      values.insert(values.end(), begin, begin + kSize);
    }
    refs_[c] = {storages_.size(), 0, kSize};
    refs_[d] = {storages_.size(), kSize, kSize};
    refs_[fused] = {storages_.size(), 0, 2 * kSize};
    storages_.push_back(std::move(values));
  }

  std::mt19937 random_;
  const std::vector<float> values_ = {1, 2, 3, 4};
  ProgramBuilder builder_;
  std::map<std::string, Ref> refs_;
  std::vector<std::vector<float>> storages_;
  int next_ = 0;
};

TEST_P(Aliases, RandomProgramsGiveWhatNamesOfStoragesWould) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const RandomAliases random(seed);
    EXPECT_EQ(Run(random.builder(), random.feeds()), random.Expected()) << "seed " << seed;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::testing
