// The framework around passes: order, rounds, what it notices, what it writes.
#include "passes/pass_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "core/error.h"
#include "passes/ir_text.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using passes::PassContext;
using passes::PassDef;
using passes::Pipeline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// x -> scale -> a -> relu -> b -> tanh -> y, and a print.
Program Chain() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  b.Var("a", DType::kF32, {2, 3}).Var("b", DType::kF32, {2, 3}).Var("y", DType::kF32, {2, 3});
  b.Scale("x", "a", 2).Unary("relu", "a", "b").Unary("tanh", "b", "y");
  b.Op("print", {{"In", {"b"}}}, {{"Out", {"printed"}}});
  b.Fetch("y");
  return b.Build();
}

// A pass, and where it runs.
struct PlacedPass : PassDef {
  PassGrouping grouping = PassGrouping::kPrePlacement;
};

PlacedPass Make(const std::string& name,
                std::function<Result<bool>(ir::Program&, PassContext&)> run,
                PassGrouping grouping = PassGrouping::kPrePlacement, int level = 1) {
  PlacedPass pass;
  pass.name = name;
  pass.run = std::move(run);
  pass.grouping = grouping;
  pass.level = level;
  return pass;
}

Pipeline OrderOf(const std::vector<PlacedPass>& list) {
  Pipeline order;
  for (const PlacedPass& p : list) order[static_cast<int>(p.grouping)].push_back(p.name);
  return order;
}

// In the order of the list.
Result<passes::Optimized> RunPasses(const std::vector<PlacedPass>& list, const Program& program,
                                    const PassOptions& options = {}, int level = 2) {
  return passes::OptimizeWith({list.begin(), list.end()}, OrderOf(list), program.impl(),
                              std::make_shared<Scope>(), {level, {}, options});
}

std::string ErrorOf(const PlacedPass& pass, const PassOptions& options = {}) {
  const Program program = Chain();
  const uint64_t before = ir::Fingerprint(program.ir());
  auto result = RunPasses({pass}, program, options);
  EXPECT_EQ(ir::Fingerprint(program.ir()), before) << "the program that was given has changed";
  return result.ok() ? "" : result.status().message();
}

ir::Op& OpOf(ir::Program& p, const std::string& type) {
  auto& ops = p.blocks[0].ops;
  return *std::find_if(ops.begin(), ops.end(), [&](const ir::Op& op) { return op.type() == type; });
}
void Drop(ir::Program& p, const std::string& type) {
  std::erase_if(p.blocks[0].ops, [&](const ir::Op& op) { return op.type() == type; });
}
auto SetFactor(double factor) {
  return [factor](ir::Program& p, PassContext&) -> Result<bool> {
    double& scale =
        std::get<double>(OpOf(p, "scale").attrs[OpOf(p, "scale").def->FindAttr("scale")]);
    const bool changed = scale != factor;
    scale = factor;
    return changed;
  };
}

TEST(PassManager, TheOrderIsTheListsAlone) {
  std::vector<std::string> trace;
  const auto note = [&](const std::string& name) {
    return [&trace, name](ir::Program&, PassContext&) -> Result<bool> {
      trace.push_back(name);
      return false;
    };
  };
  std::vector<PlacedPass> list;
  std::vector<std::string> want;
  for (int g : {0, 1, 2, 3})
    for (const char* name : {"c", "a", "b"}) {
      const std::string full = name + std::to_string(g);
      list.push_back(Make(full, note(full), static_cast<PassGrouping>(g)));
      want.push_back(full);
    }
  const Pipeline order = OrderOf(list);
  std::mt19937 random(1);
  for (int k = 0; k < 20; ++k) {
    std::shuffle(list.begin(), list.end(), random);
    trace.clear();
    ASSERT_TRUE(passes::OptimizeWith({list.begin(), list.end()}, order, Chain().impl(),
                                     std::make_shared<Scope>(), {})
                    .ok());
    ASSERT_EQ(trace, want);
  }
}

// Variables that the passes left without use go, but for what is fetched or fed by name.
TEST(PassManager, LeavesNoVariablesWithoutUse) {
  const Program program = Chain();
  const auto shorten = Make("shorten", [](ir::Program& p, PassContext&) -> Result<bool> {
    auto& ops = p.blocks[0].ops;
    std::erase_if(ops, [](const ir::Op& op) { return op.type() == "print"; });
    return true;
  });
  for (const bool wanted : {false, true}) {
    OptimizeOptions options{2, {}, {}};
    options.passes.verify = false;  // the operator that is dropped would be missed
    if (wanted) options.fetches = {"printed", "y"};
    const auto result = passes::OptimizeWith({shorten}, OrderOf({shorten}), program.impl(),
                                             std::make_shared<Scope>(), options);
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(result->program->Find(0, "printed") != ir::kNoVar, wanted);
    EXPECT_NE(result->program->Find(0, "b"), ir::kNoVar);
    EXPECT_NE(program.ir().Find(0, "printed"), ir::kNoVar);
  }
}

TEST(PassManager, RefusesNamesThatMeanTwoPassesOrNone) {
  const auto nothing = [](ir::Program&, PassContext&) -> Result<bool> { return false; };
  auto twice = RunPasses({Make("foo", nothing), Make("foo", nothing)}, Chain());
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.status().message(), HasSubstr("two passes 'foo'"));
  auto unknown = RunPasses({Make("foo", nothing)}, Chain(), {.disable = {"bar"}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.status().message(), HasSubstr("no pass 'bar'"));
  EXPECT_TRUE(RunPasses({}, Chain()).ok());
}

TEST(PassManager, LevelsAndNamesDecideWhatRuns) {
  const std::vector<PlacedPass> list = {Make("one", SetFactor(3), PassGrouping::kPrePlacement, 1),
                                        Make("two", SetFactor(4), PassGrouping::kPrePlacement, 2)};
  const auto ran = [&](const PassOptions& options, int level) {
    std::vector<std::string> names;
    const auto result = RunPasses(list, Chain(), options, level);
    for (const auto& r : result->report.runs) names.push_back(r.name);
    return names;
  };
  EXPECT_THAT(ran({}, 0), ElementsAre());
  EXPECT_THAT(ran({}, 1), ElementsAre("one"));
  EXPECT_THAT(ran({}, 2), ElementsAre("one", "two"));
  EXPECT_THAT(ran({.disable = {"one"}}, 2), ElementsAre("two"));
  EXPECT_THAT(ran({.only = {"one"}}, 2), ElementsAre("one"));
}

TEST(PassManager, AnErrorNamesThePass) {
  EXPECT_EQ(
      ErrorOf(Make(
          "foo", [](ir::Program&, PassContext&) -> Result<bool> { return InvalidArgument("no"); },
          PassGrouping::kPostPlacement)),
      "POST_PLACEMENT/foo: no");
  EXPECT_EQ(ErrorOf(Make("foo",
                         [](ir::Program& p, PassContext&) -> Result<bool> {
                           Drop(p, "relu");
                           throw std::runtime_error("gave up");
                         })),
            "PRE_PLACEMENT/foo: gave up");
}

TEST(PassManager, AnOperatorDroppedIsMissed) {
  const auto dropping = [](const std::string& type) {
    return Make("eats", [type](ir::Program& p, PassContext&) -> Result<bool> {
      Drop(p, type);
      return true;
    });
  };
  EXPECT_EQ(ErrorOf(dropping("relu")),
            "PRE_PLACEMENT/eats: block 0, operator 1 (tanh): reads 'b' before it is written");
  EXPECT_EQ(ErrorOf(dropping("tanh")), "PRE_PLACEMENT/eats: nothing writes 'y', which is fetched");
  EXPECT_EQ(ErrorOf(dropping("print")),
            "PRE_PLACEMENT/eats: an operator with side effects has been taken away");
}

TEST(PassManager, AnOrderThatReadsTooEarlyIsRefused) {
  EXPECT_EQ(ErrorOf(Make("swaps",
                         [](ir::Program& p, PassContext&) -> Result<bool> {
                           std::swap(p.blocks[0].ops[0], p.blocks[0].ops[1]);
                           return true;
                         })),
            "PRE_PLACEMENT/swaps: block 0, operator 0 (relu): reads 'a' before it is written");
}

TEST(PassManager, DamagedOperatorsAreRefused) {
  const std::vector<std::pair<std::function<void(ir::Program&)>, std::string>> damages = {
      {[](ir::Program& p) { OpOf(p, "relu").inputs[0] = {9999}; }, "names variable 9999"},
      {[](ir::Program& p) { OpOf(p, "relu").inputs[0].clear(); }, "misses input 'X'"},
      {[](ir::Program& p) { OpOf(p, "relu").inputs[0].push_back(0); }, "takes one variable"},
      {[](ir::Program& p) { OpOf(p, "relu").outputs.clear(); }, "slots or attributes do not fit"},
      {[](ir::Program& p) { OpOf(p, "scale").attrs[0] = std::string("x"); }, "of the wrong type"},
      {[](ir::Program& p) { p.blocks[0].parent = 0, p.blocks[0].id = 3; }, "has id 3"},
      {[](ir::Program& p) { p.vars[p.Find(0, "y")].dtype = DType::kI64; },
       "'y' was float32, is now int64"},
      {[](ir::Program& p) { p.vars[p.Find(0, "y")].name = "z"; }, "'y' is now 'z'"},
      {[](ir::Program& p) { p.vars.pop_back(); }, "have been taken away"},
  };
  for (const auto& [damage, message] : damages) {
    const std::string error =
        ErrorOf(Make("damages", [&](ir::Program& p, PassContext&) -> Result<bool> {
          damage(p);
          return true;
        }));
    EXPECT_THAT(error, HasSubstr("PRE_PLACEMENT/damages: "));
    EXPECT_THAT(error, HasSubstr(message));
  }
}

TEST(PassManager, ALieAboutChangingIsFound) {
  const auto lies = Make("lies", [](ir::Program& p, PassContext&) -> Result<bool> {
    OpOf(p, "scale").attrs[OpOf(p, "scale").def->FindAttr("scale")] = 7.0;
    return false;
  });
  EXPECT_EQ(ErrorOf(lies, {.check_unchanged = true}),
            "PRE_PLACEMENT/lies: changed the program, and said that it did not");
  // A change in the number of operators is noticed in any case.
  EXPECT_THAT(ErrorOf(Make("lies",
                           [](ir::Program& p, PassContext&) -> Result<bool> {
                             Drop(p, "print");
                             return false;
                           })),
              HasSubstr("said that it did not"));
}

TEST(PassManager, RoundsEndWhenNothingChanges) {
  int calls = 0;
  PlacedPass counts = Make("counts", [&calls](ir::Program& p, PassContext& c) -> Result<bool> {
    ++calls;
    const double now =
        std::get<double>(OpOf(p, "scale").attrs[OpOf(p, "scale").def->FindAttr("scale")]);
    return now < 5 ? SetFactor(now + 1)(p, c) : Result<bool>(false);
  });
  EXPECT_TRUE(RunPasses({counts}, Chain())->report.warnings.empty());
  EXPECT_EQ(calls, 1);  // it did not ask for rounds
  counts.repeat = true;
  calls = 0;
  const auto result = RunPasses({counts}, Chain());
  EXPECT_TRUE(result->report.warnings.empty());
  EXPECT_EQ(calls, 4);  // 2 -> 3 -> 4 -> 5, and once more to see that it is done
  EXPECT_THAT(RunPasses({counts}, Chain(), {.max_rounds = 2})->report.warnings,
              ElementsAre(HasSubstr("still changes")));
}

TEST(PassManager, AntagonistsAreStopped) {
  PlacedPass up = Make("up", SetFactor(3)), down = Make("down", SetFactor(4));
  up.repeat = down.repeat = true;
  const auto result = RunPasses({up, down}, Chain());
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->report.warnings.size(), 1u);
  EXPECT_THAT(result->report.warnings[0], HasSubstr("undo each other's work"));
  EXPECT_LE(result->report.runs.back().round, 4);
}

double FactorOf(const ir::Program& program) {
  ir::Program p = program;
  return std::get<double>(OpOf(p, "scale").attrs[OpOf(p, "scale").def->FindAttr("scale")]);
}
// Sets the factor to `to` where it is `from`.
PlacedPass Step(const std::string& name, double from, double to, PassGrouping grouping) {
  return Make(
      name,
      [=](ir::Program& p, PassContext& c) -> Result<bool> {
        return FactorOf(p) == from ? SetFactor(to)(p, c) : Result<bool>(false);
      },
      grouping);
}

TEST(PassManager, WhatCleanUpsMakeWayForIsFused) {
  PlacedPass fuses = Step("fuses", 3, 4, PassGrouping::kPostPlacement),
             once = Step("once", 4, 5, PassGrouping::kPostPlacement);
  const PlacedPass cleans = Step("cleans", 2, 3, PassGrouping::kPostRewriteForExec);
  auto result = RunPasses({fuses, cleans}, Chain());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(FactorOf(*result->program), 4);
  EXPECT_TRUE(result->report.warnings.empty());
  EXPECT_EQ(RunPasses({fuses, once, cleans}, Chain())->program->blocks[0].ops.size(), 4u);
  EXPECT_EQ(FactorOf(*RunPasses({fuses, once, cleans}, Chain())->program), 5);
  // One that asked to run once has had its turn by then.
  once.once = true;
  EXPECT_EQ(FactorOf(*RunPasses({fuses, once, cleans}, Chain())->program), 4);
}

TEST(PassManager, FusionsAndCleanUpsThatUndoEachOtherAreStopped) {
  const auto result = RunPasses({Step("fuses", 2, 3, PassGrouping::kPostPlacement),
                                 Step("cleans", 3, 2, PassGrouping::kPostRewriteForExec)},
                                Chain());
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->report.warnings,
              ElementsAre(HasSubstr("undo each other's work after 3 turns of fusions")));
}

TEST(PassManager, DumpsBeforeAfterAndEachChange) {
  const fs::path dir = fs::path(::testing::TempDir()) / "heddle_pass_dump";
  const auto files = [&](const PassOptions& options) {
    fs::remove_all(dir);
    fs::create_directories(dir);
    const auto nothing = [](ir::Program&, PassContext&) -> Result<bool> { return false; };
    EXPECT_TRUE(RunPasses({Make("one", SetFactor(3)), Make("quiet", nothing),
                           Make("three", SetFactor(5)), Make("two", SetFactor(4))},
                          Chain(), options)
                    .ok());
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_THAT(files({.dump_dir = dir}),
              ElementsAre("00_PRE_PLACEMENT_before.txt", "01_PRE_PLACEMENT_one.txt",
                          "02_PRE_PLACEMENT_three.txt", "03_PRE_PLACEMENT_two.txt",
                          "04_PRE_PLACEMENT_after.txt"));
  EXPECT_THAT(files({.dump_dir = dir, .dump_filter = "^t", .dump_dot = true}).size(), 8u);
  EXPECT_THAT(files({.dump_dir = dir, .dump_filter = "nobody"}), ElementsAre());
  EXPECT_FALSE(RunPasses({}, Chain(), {.dump_dir = dir, .dump_filter = "("}).ok());
  fs::remove_all(dir);
}

TEST(CustomPasses, RewriteByNames) {
  CompileOptions options;
  options.passes.check_unchanged = true;
  options.passes.custom.push_back(
      {.name = "tanh_to_double", .run = [](ProgramEditor& editor) -> Result<bool> {
         bool changed = false;
         for (int i = 0; i < editor.num_ops(0); ++i) {
           OpSpec op = editor.op(0, i);
           if (op.type != "tanh" || editor.readers(op.input("X")) > 2) continue;
           const std::string factor = editor.AddConstant("factor", F32({1}, {2}));
           HEDDLE_RETURN_IF_ERROR(editor.Replace(0, i,
                                                 {"elementwise_mul",
                                                  {{"X", {op.input("X")}}, {"Y", {factor}}},
                                                  {{"Out", {op.output("Out")}}},
                                                  {}}));
           changed = true;
         }
         return changed;
       }});
  Executor executor;
  const auto compiled = MustCompile(executor, Chain(), nullptr, options);
  const auto out = MustRun(executor, compiled, {{"x", F32({2, 3}, {1, -2, 3, 0, 0.5, -1})}});
  EXPECT_THAT(Floats(out[0]), ElementsAre(4, 0, 12, 0, 2, 0));
  const PassReport report = compiled.pass_report();
  EXPECT_TRUE(std::any_of(report.runs.begin(), report.runs.end(), [](const PassReport::Run& r) {
    return r.name == "tanh_to_double" && r.changed;
  })) << report.ToString();
}

// a = tanh(x); b = exp(a); c = abs(a); d = b + c; e = sqrt(x)
TEST(CustomPasses, WalkAlongDependencies) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  b.Unary("tanh", "x", "a").Unary("exp", "a", "b").Unary("abs", "a", "c");
  b.Binary("elementwise_add", "b", "c", "d").Unary("sqrt", "x", "e").Fetch("d").Fetch("e");
  using Toward = ProgramEditor::Toward;
  using Walk = ProgramEditor::Walk;
  bool ran = false;
  const auto look = [&](ProgramEditor& editor) -> Result<bool> {
    ran = true;
    std::map<std::string, int> at;
    for (int i = 0; i < editor.num_ops(0); ++i) at[editor.op_type(0, i)] = i;
    const auto types = [&](const std::vector<int>& found) {
      std::vector<std::string> named;
      for (const int i : found) named.push_back(editor.op_type(0, i));
      return named;
    };
    const auto walk = [&](const char* from, Toward toward, Walk way, const char* end = "") {
      std::vector<int> met;
      editor.Visit(0, at[from], toward, way, [&](int i) {
        met.push_back(i);
        return editor.op_type(0, i) != end;
      });
      return types(met);
    };
    EXPECT_THAT(types(editor.neighbours(0, at["tanh"], Toward::kAfter)), ElementsAre("exp", "abs"));
    EXPECT_THAT(types(editor.neighbours(0, at["elementwise_add"], Toward::kBefore)),
                ElementsAre("exp", "abs"));
    EXPECT_THAT(walk("tanh", Toward::kAfter, Walk::kBreadthFirst),
                ElementsAre("tanh", "exp", "abs", "elementwise_add"));
    EXPECT_THAT(walk("tanh", Toward::kAfter, Walk::kDepthFirst),
                ElementsAre("tanh", "exp", "elementwise_add", "abs"));
    EXPECT_THAT(walk("elementwise_add", Toward::kBefore, Walk::kBreadthFirst, "tanh"),
                ElementsAre("elementwise_add", "abs", "exp", "tanh"));
    EXPECT_THAT(walk("elementwise_add", Toward::kBefore, Walk::kDepthFirst, "tanh"),
                ElementsAre("elementwise_add", "abs", "tanh", "exp"));
    EXPECT_THAT(walk("tanh", Toward::kAfter, Walk::kBreadthFirst, "tanh"), ElementsAre("tanh"));
    return false;
  };
  CompileOptions options;
  options.opt_level = 0;
  options.passes.custom.push_back({.name = "look", .level = 0, .run = look});
  Executor executor;
  MustCompile(executor, b.Build(), nullptr, options);
  EXPECT_TRUE(ran);
}

TEST(CustomPasses, MistakesAreErrors) {
  const auto error = [](const OpSpec& spec) {
    CompileOptions options;
    options.passes.custom.push_back(
        {.name = "wrong", .run = [&](ProgramEditor& editor) -> Result<bool> {
           HEDDLE_RETURN_IF_ERROR(editor.Insert(0, 0, spec));
           return true;
         }});
    Executor executor;
    auto compiled = executor.Compile(Chain(), nullptr, options);
    return compiled.ok() ? "" : compiled.status().message();
  };
  EXPECT_EQ(error({"no_such_op", {}, {}, {}}),
            "PRE_PLACEMENT/wrong: heddle has no operator 'no_such_op'");
  EXPECT_THAT(error({"relu", {{"Y", {"x"}}}, {}, {}}), HasSubstr("no input 'Y'"));
  EXPECT_THAT(error({"relu", {{"X", {"nobody"}}}, {}, {}}), HasSubstr("no variable 'nobody'"));
  EXPECT_THAT(error({"scale", {{"X", {"x"}}}, {}, {{"scale", std::string("2")}}}),
              HasSubstr("of another type"));
  EXPECT_THAT(error({"scale", {}, {{"Out", {"a"}}}, {}}), HasSubstr("misses input 'X'"));
}

}  // namespace
}  // namespace heddle::testing
