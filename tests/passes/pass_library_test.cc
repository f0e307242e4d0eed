// Passes through the C interface: what they see and edit, and what is wrong with libraries.
#include "heddle/passes/pass_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/executor.h"
#include "heddle/passes/heddle_pass.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x -> relu -> relu -> tanh, and a parameter.
Model SmallModel() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3}).Param("w", DType::kF32, {2, 3});
  b.Unary("relu", "x", "a").Unary("relu", "a", "b");
  b.Op("elementwise_add", {{"X", {"b"}}, {"Y", {"w"}}}, {{"Out", {"c"}}});
  b.Unary("tanh", "c", "y").Fetch("y");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2, 3}, {1, 2, 3, 4, 5, 6}));
  return {b.Build(), scope};
}

using Run = int(const heddle_pass_context*, int32_t*, char*, size_t);

struct Library {
  explicit Library(Run* run, int32_t grouping = HEDDLE_PASS_POST_PARTITIONING) {
    pass = {sizeof(pass), "mine", "of the test", grouping, nullptr, nullptr, 0, 0, run};
  }
  heddle_pass pass = {};
  const heddle_pass* list[1] = {&pass};
  heddle_pass_table table = {sizeof(table), HEDDLE_PASS_VERSION, 1, list};
};

Result<OptimizedModel> Apply(const Library& library, int level = 0) {
  OptimizeOptions options{.level = level};
  HEDDLE_ASSIGN_OR_RETURN(options.passes.custom, PassesOf(&library.table, "test"));
  return OptimizeModel(SmallModel(), options);
}

std::string ErrorOf(Run* run) {
  const Library library(run);
  const auto made = Apply(library);
  return made.ok() ? "" : std::string(made.status().message());
}

std::vector<std::string> TypesOf(const Model& model) {
  std::vector<std::string> types;
  for (const auto& count : model.program.op_counts())
    types.push_back(count.type + ":" + std::to_string(count.count));
  return types;
}

int LookAtAll(const heddle_pass_context* c, int32_t* changed, char* message, size_t room) {
  const heddle_pass_editor& e = *c->editor;
  void* const p = c->programs[0]->handle;
  EXPECT_EQ(c->version, static_cast<uint32_t>(HEDDLE_PASS_VERSION));
  EXPECT_EQ(c->num_programs, 1u);
  EXPECT_STREQ(c->programs[0]->target, "host");
  EXPECT_EQ(c->programs[0]->num_feeds, 1u);
  EXPECT_STREQ(c->programs[0]->feeds[0], "x");
  EXPECT_STREQ(c->programs[0]->fetches[0], "y");
  EXPECT_STREQ(c->places[0], "cpu");
  EXPECT_EQ(c->function(c->host, 0), nullptr);
  bool level = false;
  for (size_t k = 0; k < c->num_options; ++k)
    level = level || (std::string(c->keys[k]) == "opt_level" && std::string(c->texts[k]) == "0");
  EXPECT_TRUE(level);
  EXPECT_EQ(e.num_blocks(p), 1);
  EXPECT_EQ(e.num_operators(p, 0), 4);
  EXPECT_EQ(e.num_operators(p, 7), -1);
  EXPECT_EQ(e.get(p, 0, 4), nullptr);
  const heddle_pass_operator* add = e.get(p, 0, 2);
  EXPECT_STREQ(add->type, "elementwise_add");
  EXPECT_EQ(add->num_inputs, 2u);
  EXPECT_STREQ(add->inputs[1]->name, "Y");
  EXPECT_STREQ(add->inputs[1]->variables[0], "w");
  EXPECT_STREQ(add->outputs[0]->variables[0], "c");
  EXPECT_STREQ(add->attributes[0]->name, "axis");
  EXPECT_EQ(add->attributes[0]->ints[0], -1);
  const heddle_engine_value* w = e.variable(p, "w");
  EXPECT_EQ(w->rank, 2);
  EXPECT_EQ(w->dims[1], 3);
  EXPECT_EQ(static_cast<const float*>(w->data)[5], 6);
  EXPECT_EQ(e.variable(p, "x")->data, nullptr);
  EXPECT_EQ(e.variable(p, "nothing"), nullptr);
  EXPECT_EQ(e.readers(p, "b"), 1);
  EXPECT_EQ(e.writers(p, "b"), 1);
  EXPECT_EQ(e.fetched(p, "y"), 1);
  EXPECT_EQ(e.fetched(p, "b"), 0);
  EXPECT_GT(e.cost_ns(p, 0, 0), 0);
  EXPECT_EQ(e.cost_ns(p, 0, 9), -1);
  double cost = 0;
  EXPECT_EQ(e.target_cost(p, &cost, message, room), HEDDLE_PASS_FAILED);
  EXPECT_THAT(message, HasSubstr("the program is that of host"));
  *changed = 0;
  return HEDDLE_PASS_OK;
}

TEST(PassLibrary, SeesTheProgram) {
  const Library library(LookAtAll);
  const auto made = Apply(library);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_FALSE(made->report.runs[0].changed);
}

// c = b + w becomes c = scale(b * k), k a new parameter, in place of one operator.
int Rewrite(const heddle_pass_context* c, int32_t* changed, char* message, size_t room) {
  const heddle_pass_editor& e = *c->editor;
  void* const p = c->programs[0]->handle;
  const int64_t dims[] = {2, 3};
  const float values[] = {1, 2, 3, 4, 5, 6};
  heddle_engine_value like = {sizeof(like), "k", HEDDLE_ENGINE_F32, 2, dims, values, sizeof values};
  const char* made = e.add_variable(p, &like);
  if (made == nullptr) return HEDDLE_PASS_FAILED;
  const std::string k = made;
  like.name = "m";
  like.data = nullptr;
  const std::string m = e.add_variable(p, &like);
  const char *b[] = {"b"}, *ks[] = {k.c_str()}, *ms[] = {m.c_str()}, *cs[] = {"c"};
  const heddle_pass_slot x = {sizeof(x), "X", 1, b}, y = {sizeof(y), "Y", 1, ks},
                         out = {sizeof(out), "Out", 1, ms}, from = {sizeof(from), "X", 1, ms},
                         to = {sizeof(to), "Out", 1, cs};
  const heddle_pass_slot *ins[] = {&x, &y}, *outs[] = {&out}, *in[] = {&from}, *end[] = {&to};
  const double factor = 0.5;
  heddle_engine_attribute scale = {};
  scale.size = sizeof(scale);
  scale.name = "scale";
  scale.kind = HEDDLE_ENGINE_REAL;
  scale.count = 1;
  scale.reals = &factor;
  const heddle_engine_attribute* attributes[] = {&scale};
  const heddle_pass_operator mul = {sizeof(mul), "elementwise_mul", 2, ins, 1, outs, 0, nullptr};
  const heddle_pass_operator half = {sizeof(half), "scale", 1, in, 1, end, 1, attributes};
  *changed = 1;
  int status = e.insert(p, 0, 3, &half, message, room);
  if (status == HEDDLE_PASS_OK) status = e.replace(p, 0, 2, &mul, message, room);
  return status;
}

TEST(PassLibrary, EditsTheProgram) {
  for (const int grouping : {HEDDLE_PASS_PRE_PLACEMENT, HEDDLE_PASS_POST_PARTITIONING}) {
    const Library library(Rewrite, grouping);
    const auto made = Apply(library);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    EXPECT_THAT(TypesOf(made->model), ::testing::UnorderedElementsAre("relu:2", "elementwise_mul:1",
                                                                      "scale:1", "tanh:1"));
    Executor executor({.threads = 1});
    const auto compiled = executor.Compile(made->model);
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    const auto out = executor.Run(*compiled, {{"x", F32({2, 3}, {1, -1, 1, 0, 0, 0.5f})}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_FLOAT_EQ((*out)[0].data<float>()[0], std::tanh(0.5f));
    EXPECT_FLOAT_EQ((*out)[0].data<float>()[2], std::tanh(1.5f));
    EXPECT_FLOAT_EQ((*out)[0].data<float>()[5], std::tanh(1.5f));
  }
}

TEST(PassLibrary, MistakesAreOneErrorThatNamesThePass) {
  EXPECT_EQ(ErrorOf([](const heddle_pass_context*, int32_t*, char*, size_t) -> int {
              throw std::runtime_error("lost");
            }),
            "POST_PARTITIONING/mine: lost");
  EXPECT_EQ(ErrorOf([](const heddle_pass_context*, int32_t*, char*, size_t) -> int { throw 7; }),
            "POST_PARTITIONING/mine: threw something that is no std::exception");
  EXPECT_EQ(ErrorOf([](const heddle_pass_context*, int32_t*, char*, size_t) { return 17; }),
            "POST_PARTITIONING/mine: the pass does not say why it failed");
  EXPECT_EQ(ErrorOf([](const heddle_pass_context* c, int32_t*, char* message, size_t room) {
              return c->editor->erase(c->programs[0]->handle, 0, 9, message, room);
            }),
            "POST_PARTITIONING/mine: there is no operator 9 in block 0, which has 4");
  EXPECT_EQ(ErrorOf([](const heddle_pass_context* c, int32_t*, char* message, size_t room) {
              return c->editor->replace(c->programs[0]->handle, 0, 0, nullptr, message, room);
            }),
            "POST_PARTITIONING/mine: an operator is missing, or lacks its size or type");
  EXPECT_EQ(ErrorOf([](const heddle_pass_context* c, int32_t*, char* message, size_t room) {
              heddle_pass_operator op = *c->editor->get(c->programs[0]->handle, 0, 0);
              op.type = "nonsense";
              return c->editor->replace(c->programs[0]->handle, 0, 0, &op, message, room);
            }),
            "POST_PARTITIONING/mine: heddle has no operator 'nonsense'");
  EXPECT_THAT(ErrorOf([](const heddle_pass_context* c, int32_t* changed, char* message, size_t n) {
                *changed = 1;
                return c->editor->erase(c->programs[0]->handle, 0, 3, message, n);
              }),
              HasSubstr("POST_PARTITIONING/mine: "));
}

std::string Wrong(const heddle_pass_table* table) {
  const auto passes = PassesOf(table, "test");
  return passes.ok() ? "" : std::string(passes.status().message());
}

TEST(PassLibrary, ThatIsNoneIsRefusedByName) {
  EXPECT_THAT(LoadPasses("passes.so").status().message(),
              HasSubstr("name the library of passes with its folder, as in ./passes.so"));
  EXPECT_THAT(LoadPasses("/nowhere/passes.so").status().ToString(),
              HasSubstr("NOT_FOUND: /nowhere/passes.so: there is no such library of passes"));
  EXPECT_THAT(LoadPasses(HEDDLE_SOURCE_DIR "/README.md").status().message(),
              HasSubstr("cannot be loaded as a library of passes"));
}

TEST(PassLibrary, OfAnotherVersionIsRefused) {
  Library good(LookAtAll);
  EXPECT_EQ(Wrong(&good.table), "");
  EXPECT_EQ(Wrong(nullptr), "test: has no passes for version 1 of the interface");
  heddle_pass_table table = good.table;
  table.version = 7;
  EXPECT_EQ(Wrong(&table),
            "test: the passes are made for version 7 of the interface, and this heddle has "
            "version 1");
  table = good.table;
  table.size = offsetof(heddle_pass_table, passes);
  EXPECT_EQ(Wrong(&table), "test: the table of passes is not whole");
  good.pass.run = nullptr;
  EXPECT_EQ(Wrong(&good.table), "test: pass 'mine' has no function");
  good.pass.run = LookAtAll;
  good.pass.grouping = 4;
  EXPECT_EQ(Wrong(&good.table), "test: pass 'mine' runs in grouping 4, and there are 0 to 3");
  good.pass.name = "";
  EXPECT_EQ(Wrong(&good.table), "test: pass 0 has no name");
  good.pass.size = 8;
  EXPECT_EQ(Wrong(&good.table), "test: pass 0 is missing, or smaller than a heddle_pass");
}

TEST(PassLibrary, ExampleMakesOneReluOfTwo) {
  const auto passes = LoadPasses(HEDDLE_BUILD_DIR "/relu_once_pass.so");
  ASSERT_TRUE(passes.ok()) << passes.status().ToString();
  OptimizeOptions options{.level = 1};
  options.passes.custom = *passes;
  const auto made = OptimizeModel(SmallModel(), options);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_THAT(TypesOf(made->model), ::testing::Contains("relu:1"));
  // A relu that somebody fetches stays.
  options.fetches = {"a", "y"};
  const auto kept = OptimizeModel(SmallModel(), options);
  ASSERT_TRUE(kept.ok()) << kept.status().ToString();
  EXPECT_THAT(TypesOf(kept->model), ::testing::Contains("relu:2"));
}

}  // namespace
}  // namespace heddle::testing
