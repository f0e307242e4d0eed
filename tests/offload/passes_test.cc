// Passes of POST_PARTITIONING on the groups of targets and on what stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/engine.h"
#include "heddle/passes/partitions.h"
#include "tests/models/compare.h"
#include "tests/offload/random_targets.h"
#include "tests/support/net_program.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Groups = std::vector<PartitionProgram*>;

Result<Engine> FaultyEngine(const std::string& mode) {
  return Engine::Load(HEDDLE_FAULTY_ENGINE, {.options = {{"mode", mode}}});
}

HardwareTarget TargetOf(const std::string& name, const std::vector<std::string>& types,
                        const std::string& more = "") {
  std::string ops;
  for (const std::string& type : types)
    ops += (ops.empty() ? "" : ", ") + (R"({"type": ")" + type + R"("})");
  return *HardwareTarget::Parse(R"({"name": ")" + name + R"(", "units": [{"name": "u", "ops": [)" +
                                    ops + R"(]}], "links": [["u", "u"]], "start": ["u"])" + more +
                                    "}",
                                name);
}

// x -> relu -> a -> tanh -> b -> relu -> y.
Model SmallModel() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  b.Var("a", DType::kF32, {2, 3}).Var("b", DType::kF32, {2, 3}).Var("y", DType::kF32, {2, 3});
  b.Unary("relu", "x", "a").Unary("tanh", "a", "b").Unary("relu", "b", "y").Fetch("y");
  return {b.Build(), std::make_shared<Scope>()};
}
const std::vector<heddle::Feed> kFeeds = {{"x", F32({2, 3}, {-1, 0.5f, 1, 2, 3, 4})}};

OffloadOptions With(std::function<Result<bool>(Partitions&)> run, int level = 0) {
  OffloadOptions options;
  options.compile.opt_level = level;
  options.compile.passes.custom = {{.name = "mine",
                                    .grouping = PassGrouping::kPostPartitioning,
                                    .level = 0,
                                    .run_partitions = std::move(run)}};
  return options;
}

Result<std::vector<float>> Outputs(const OffloadedModel& offloaded,
                                   const std::vector<heddle::Feed>& feeds = kFeeds) {
  Executor executor({.threads = 1});
  HEDDLE_ASSIGN_OR_RETURN(const auto compiled, executor.Compile(offloaded.model, {.opt_level = 0}));
  HEDDLE_ASSIGN_OR_RETURN(const auto out, executor.Run(compiled, feeds));
  return std::vector<float>(out[0].data<float>(), out[0].data<float>() + out[0].numel());
}

TEST(GroupPasses, SeeEachProgramByItsTarget) {
  int calls = 0;
  OffloadOptions options = With([&](Partitions& all) -> Result<bool> {
    ++calls;
    EXPECT_EQ(all.programs().size(), 2u);
    EXPECT_EQ(all.host().editor().num_ops(0), 3);
    EXPECT_EQ(all.host().editor().op_type(0, 0), "offload_group");
    EXPECT_EQ(all.host().editor().op(0, 2).input("X"), "b");
    const Groups& groups = all.programs().at("t");
    EXPECT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[1]->symbol(), "group_1");
    EXPECT_THAT(groups[0]->feeds(), ElementsAre("x"));
    EXPECT_THAT(groups[0]->fetches(), ElementsAre("a"));
    EXPECT_EQ(groups[0]->editor().op_type(0, 0), "relu");
    EXPECT_TRUE(groups[0]->editor().fetched("a"));
    const auto cost = groups[0]->TargetCost();
    EXPECT_TRUE(cost.ok()) << cost.status().ToString();
    std::vector<std::string> places;
    for (const PartitionPlace& place : all.places())
      places.push_back(place.name + (place.target ? " (target)" : ""));
    EXPECT_THAT(places, ElementsAre("cpu", "t (target)", "unused (target)"));
    EXPECT_EQ(all.executor_options()->memory_limit, 123u);
    EXPECT_EQ(all.compile_options()->seed, 7u);
    return false;
  });
  options.executor.memory_limit = 123;
  options.compile.seed = 7;
  const auto offloaded =
      Offload(SmallModel(), {{TargetOf("t", {"relu"})}, {TargetOf("unused", {"conv2d"})}}, options);
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  EXPECT_EQ(calls, 1);
}

// Of the last group relu becomes relu6, and the host's tanh twice what it was.
Result<bool> RewriteBoth(Partitions& all) {
  for (PartitionProgram* group : all.programs().at("t")) {
    OpSpec op = group->editor().op(0, 0);
    op.type = "relu6";
    op.attributes.clear();
    HEDDLE_RETURN_IF_ERROR(group->editor().Replace(0, 0, op));
  }
  ProgramEditor& host = all.host().editor();
  for (int i = 0; i < host.num_ops(0); ++i) {
    if (host.op_type(0, i) != "tanh") continue;
    const std::string factor = host.AddConstant("factor", F32({1}, {10}));
    HEDDLE_RETURN_IF_ERROR(host.Replace(
        0, i, {"elementwise_mul", {{"X", {"a"}}, {"Y", {factor}}}, {{"Out", {"b"}}}, {}}));
  }
  return true;
}

TEST(GroupPasses, RewriteGroupsAndTheHost) {
  const auto reference = Engine::Load(HEDDLE_REFERENCE_ENGINE);
  ASSERT_TRUE(reference.ok());
  const HardwareTarget target = TargetOf("t", {"relu"});
  for (const std::optional<Engine>& engine : {std::optional<Engine>(), std::optional(*reference)}) {
    const auto offloaded = Offload(SmallModel(), {{target, engine}}, With(RewriteBoth));
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    EXPECT_TRUE(offloaded->report.groups[0].taken);
    EXPECT_TRUE(offloaded->report.passes.runs[0].changed);
    const auto out = Outputs(*offloaded);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_THAT(*out, ElementsAre(0, 5, 6, 6, 6, 6));
  }
}

// What engines refuse is heddle's as it was, in the host's program as passes left it.
TEST(GroupPasses, LeaveGroupsThatStayAsTheyWere) {
  const auto engine = FaultyEngine("refuses");
  const auto offloaded =
      Offload(SmallModel(), {{TargetOf("t", {"relu"}), *engine}, {TargetOf("u", {"tanh"})}},
              With([](Partitions& all) -> Result<bool> {
                EXPECT_EQ(all.programs().size(), 3u);
                for (PartitionProgram* group : all.programs().at("t")) {
                  OpSpec op = group->editor().op(0, 0);
                  op.type = "relu6";
                  op.attributes.clear();
                  HEDDLE_RETURN_IF_ERROR(group->editor().Replace(0, 0, op));
                }
                // y is computed from twice what it was computed from.
                ProgramEditor& host = all.host().editor();
                const std::string twice = host.AddVar("twice", DType::kF32, {2, 3});
                const OpSpec scale{"scale", {{"X", {"b"}}}, {{"Out", {twice}}}, {{"scale", 2.0}}};
                HEDDLE_RETURN_IF_ERROR(host.Insert(0, 2, scale));
                OpSpec last = host.op(0, 3);
                EXPECT_EQ(last.type, "offload_group");
                last.inputs[0].second = {twice};
                HEDDLE_RETURN_IF_ERROR(host.Replace(0, 3, last));
                return true;
              }));
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  EXPECT_FALSE(offloaded->report.groups[0].taken);
  const auto out = Outputs(*offloaded);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_FLOAT_EQ((*out)[3], 2 * std::tanh(2.0f));
}

std::string ErrorOf(std::function<Result<bool>(Partitions&)> run) {
  const Model model = SmallModel();
  const auto offloaded = Offload(model, {{TargetOf("t", {"relu"})}}, With(std::move(run)));
  EXPECT_EQ(model.program.num_ops(), 3);
  return offloaded.ok() ? "" : std::string(offloaded.status().message());
}

TEST(GroupPasses, KeepInterfaces) {
  EXPECT_EQ(
      ErrorOf([](Partitions& all) -> Result<bool> {
        ProgramEditor& group = all.programs().at("t")[0]->editor();
        HEDDLE_RETURN_IF_ERROR(group.Insert(0, 0, {"scale", {{"X", {"x"}}}, {{"Out", {"x"}}}, {}}));
        return true;
      }),
      "POST_PARTITIONING/mine: group_0 of t: writes its feed 'x'");
  EXPECT_THAT(ErrorOf([](Partitions& all) -> Result<bool> {
                all.host().editor().Erase(0, 2);
                return true;
              }),
              HasSubstr("POST_PARTITIONING/mine: the program of host: "));
  EXPECT_THAT(ErrorOf([](Partitions& all) -> Result<bool> {
                all.programs().at("t")[1]->editor().Erase(0, 0);
                return true;
              }),
              HasSubstr("POST_PARTITIONING/mine: group_1 of t: "));
  EXPECT_EQ(
      ErrorOf([](Partitions& all) -> Result<bool> {
        ProgramEditor& host = all.host().editor();
        HEDDLE_RETURN_IF_ERROR(host.Replace(0, 2, {"relu", {{"X", {"b"}}}, {{"Out", {"y"}}}, {}}));
        return true;
      }),
      "POST_PARTITIONING/mine: the program of host: calls group_1 0 times, expected 1");
  EXPECT_EQ(ErrorOf([](Partitions& all) -> Result<bool> {
              all.programs().at("t")[1]->editor().Erase(0, 0);
              return false;
            }).substr(0, 24),
            "POST_PARTITIONING/mine: ");
  EXPECT_EQ(ErrorOf([](Partitions&) -> Result<bool> { throw std::runtime_error("lost"); }),
            "POST_PARTITIONING/mine: lost");
}

TEST(GroupPasses, AreToldWhatTheTargetNoLongerTakes) {
  std::string why;
  const auto offloaded =
      Offload(SmallModel(), {{TargetOf("t", {"relu"})}}, With([&](Partitions& all) -> Result<bool> {
                PartitionProgram& group = *all.programs().at("t")[0];
                HEDDLE_RETURN_IF_ERROR(group.editor().Replace(
                    0, 0, {"sigmoid", {{"X", {"x"}}}, {{"Out", {"a"}}}, {}}));
                why = group.TargetCost().status().message();
                return true;
              }));
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  EXPECT_THAT(why, HasSubstr("target t leaves sigmoid"));
}

// ---- clean_groups ------------------------------------------------------------------------------

// y = x * transpose(w), and a result that nobody reads.
Model TransposedModel() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3}).Param("w", DType::kF32, {4, 3});
  b.Var("t", DType::kF32, {3, 4}).Var("y", DType::kF32, {2, 4});
  b.Op("transpose2", {{"X", {"w"}}}, {{"Out", {"t"}}}, {{"axis", Ints{1, 0}}});
  b.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"t"}}}, {{"Out", {"y"}}});
  b.Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({4, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}));
  return {b.Build(), scope};
}

TEST(CleanGroups, ComputeWhatParametersTell) {
  const auto engine = Engine::Load(HEDDLE_REFERENCE_ENGINE);
  const auto offloaded =
      Offload(TransposedModel(), {{TargetOf("t", {"transpose2", "matmul_v2"}), *engine}},
              {.compile = {.opt_level = 1}});
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  ASSERT_EQ(offloaded->report.passes.runs.size(), 1u);
  const PassReport::Run& run = offloaded->report.passes.runs[0];
  EXPECT_EQ(run.name, "clean_groups");
  EXPECT_EQ(run.ops_before, 3) << "two of the group, and its call";
  EXPECT_EQ(run.ops_after, 2);
  const auto out = Outputs(*offloaded, {{"x", F32({2, 3}, {1, 2, 3, 4, 5, 6})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_THAT(*out, ElementsAre(1, 2, 3, 6, 4, 5, 6, 15));
}

// A group of one operator is too small for this target.
TEST(CleanGroups, LeaveWhatTheTargetWouldNotTake) {
  const auto offloaded =
      Offload(TransposedModel(),
              {{TargetOf("t", {"transpose2", "matmul_v2"}, R"(, "limits": {"min_group": 2})")}},
              {.compile = {.opt_level = 1}});
  ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
  ASSERT_EQ(offloaded->report.passes.runs.size(), 1u);
  EXPECT_FALSE(offloaded->report.passes.runs[0].changed) << offloaded->report.ToString();
  EXPECT_TRUE(offloaded->report.groups[0].taken);
}

// ---- random programs ---------------------------------------------------------------------------

// Something that changes the host's program and none of its results.
Result<bool> AddUseless(Partitions& all) {
  ProgramEditor& host = all.host().editor();
  const std::string useless = host.AddVar("useless", DType::kF32, {1});
  HEDDLE_RETURN_IF_ERROR(host.Insert(
      0, host.num_ops(0),
      {"fill_constant", {}, {{"Out", {useless}}}, {{"shape", std::vector<int64_t>{1}}}}));
  return true;
}

// Groups are cleaned, the host's program is rewritten, and some engines refuse their groups.
TEST(GroupPasses, OfRandomProgramsGiveTheSame) {
  const auto reference = Engine::Load(HEDDLE_REFERENCE_ENGINE);
  const auto refusing = FaultyEngine("refuses");
  ASSERT_TRUE(reference.ok() && refusing.ok());
  int cleaned = 0, taken = 0, stayed = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const NetProgram net(seed, 25);
    const Program program = net.Build();
    RandomTargets random(seed);
    const bool exact = seed % 2 == 0;  // without clean_groups: the same bits
    std::vector<Offloader> offloaders;
    for (const char* name : {"a", "b"}) {
      const auto target = HardwareTarget::Parse(random.For(program, name), "target");
      ASSERT_TRUE(target.ok()) << target.status().ToString();
      offloaders.push_back({*target, std::nullopt});
      if (const int which = random.Below(3); which > 0)
        offloaders.back().engine = which == 1 ? *reference : *refusing;
    }
    const auto offloaded =
        Offload({program, net.NewScope()}, offloaders, With(AddUseless, exact ? 0 : 1));
    ASSERT_TRUE(offloaded.ok()) << offloaded.status().ToString();
    SCOPED_TRACE(offloaded->report.ToString());
    for (const PassReport::Run& run : offloaded->report.passes.runs)
      cleaned += run.name == "clean_groups" && run.changed ? 1 : 0;
    for (const OffloadedGroup& group : offloaded->report.groups) ++(group.taken ? taken : stayed);
    const auto outcome = [&](const Model& model) -> Result<std::vector<Value>> {
      Executor executor({.threads = 1, .poison = true});
      HEDDLE_ASSIGN_OR_RETURN(const auto compiled, executor.Compile(model, {.opt_level = 0}));
      std::vector<Value> values;
      for (int run = 0; run < 2; ++run) {
        HEDDLE_ASSIGN_OR_RETURN(auto out, executor.RunValues(compiled, net.feeds()));
        for (Value& value : out)
          values.push_back(value.is_tensor() ? Value(value.tensor().Clone()) : std::move(value));
      }
      for (const std::string& name : net.updated()) values.push_back(*model.scope->Find(name));
      return values;
    };
    const auto alone = outcome({program, net.NewScope()});
    const auto with = outcome(offloaded->model);
    ASSERT_EQ(alone.ok(), with.ok()) << (alone.ok() ? with.status() : alone.status()).ToString();
    if (!alone.ok()) continue;
    ASSERT_EQ(alone->size(), with->size());
    for (size_t k = 0; k < alone->size(); ++k) {
      if (exact || !(*alone)[k].is_tensor())
        ASSERT_TRUE(SameBits((*alone)[k], (*with)[k])) << "value " << k;
      else
        ASSERT_TRUE(Close((*with)[k].tensor(), (*alone)[k].tensor(), 1e-4, 1e-4)) << "value " << k;
    }
  }
  // What never finds anything to do has not been tested.
  EXPECT_GT(cleaned, 10);
  EXPECT_GT(taken, 100);
  EXPECT_GT(stayed, 100);
}

}  // namespace
}  // namespace heddle::testing
