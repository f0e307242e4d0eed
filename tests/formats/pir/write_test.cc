// Programs that are written as PIR: read again, they compute the same.
#include "formats/pir/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/formats/pir/pir_text.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Written(const Program& program) {
  const auto text = program.Serialize("pir");
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : "";
}

// Runs the program and what is read from its PIR text; both must give the same bits.
Json SameAfterWriting(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                      const std::shared_ptr<Scope>& scope = std::make_shared<Scope>()) {
  const Program program = b.Build();
  const std::string text = Written(program);
  const auto again = Program::Parse(text, "again.json");
  if (!again.ok()) {
    ADD_FAILURE() << again.status().ToString() << "\n" << text;
    return {};
  }
  Executor executor({.threads = 1});
  const auto before = MustRun(executor, MustCompile(executor, program, scope), feeds);
  const auto after = MustRun(executor, MustCompile(executor, *again, scope), feeds);
  EXPECT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(SameBits(Value(before[i]), Value(after[i]))) << "output " << i;
  for (size_t i = 0; i < again->inputs().size(); ++i)
    EXPECT_EQ(again->inputs()[i].name, program.inputs()[i].name);
  EXPECT_EQ(again->outputs()[0].name, program.outputs()[0].name);
  return Json::parse(text);
}

// Names of the operators of a block, in their order.
std::vector<std::string> OpsOf(const Json& region) {
  std::vector<std::string> names;
  for (const Json& op : region["blocks"][0]["ops"]) names.push_back(op["#"]);
  return names;
}
std::vector<std::string> OpsIn(const Json& file) { return OpsOf(file["program"]["regions"][0]); }

Tensor Values(const Shape& shape) { return RandomF32(shape, 7, 2); }

TEST(PirWrite, OperandsAttributesAndResults) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  b.Feed("x", DType::kF32, {-1, 4, 6}).Param("w", DType::kF32, {6, 3});
  scope->Set("w", Value(Values({6, 3})));
  b.Var("m", DType::kF32, {-1, 4, 3}).Var("s", DType::kF32, {-1, 4}).Var("t", DType::kF32, {-1, 2});
  b.Var("i", DType::kI64, {-1, 2}).Var("l", DType::kF32, {-1, 2}).Var("r", DType::kF32, {-1, 2});
  b.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"m"}}});
  b.Op("reduce_sum", {{"X", {"m"}}}, {{"Out", {"s"}}}, {{"dim", Ints{-1}}});
  b.Op("top_k_v2", {{"X", {"s"}}}, {{"Out", {"t"}}, {"Indices", {"i"}}}, {{"k", int64_t{2}}});
  b.Op("split", {{"X", {"s"}}}, {{"Out", {"l", "r"}}}, {{"num", int64_t{2}}, {"axis", int64_t{1}}});
  b.Fetch("t").Fetch("i").Fetch("l").Fetch("r");
  const Json file = SameAfterWriting(b, {{"x", Values({2, 4, 6})}}, scope);
  EXPECT_EQ(file["base_code"], Json({{"magic", "pir"}, {"trainable", true}, {"version", 4}}));
  EXPECT_EQ(OpsIn(file),
            (std::vector<std::string>{"p", "1.data", "1.matmul", "1.full_int_array", "1.sum",
                                      "1.full", "1.topk", "1.full", "1.split_with_num", "0.split",
                                      "1.fetch", "1.fetch", "1.fetch", "1.fetch"}));
  const Json& parameter = file["program"]["regions"][0]["blocks"][0]["ops"][0];
  EXPECT_EQ(parameter["A"][3], "w");
  EXPECT_EQ(parameter["OA"][0], 1) << "Paddle loads no others";
}

TEST(PirWrite, WhatTakesSeveralOperators) {
  ProgramBuilder b;
  auto scope = std::make_shared<Scope>();
  b.Feed("x", DType::kF32, {2, 3, 4}).Param("w", DType::kF32, {12, 5}).Param("c", DType::kF32, {3});
  b.Param("table", DType::kF32, {7, 2}).Feed("ids", DType::kI64, {3, 1});
  scope->Set("w", Value(Values({12, 5})));
  scope->Set("c", Value(Values({3})));
  scope->Set("table", Value(Values({7, 2})));
  b.Var("p", DType::kF32, {2, 5}).Var("a", DType::kF32, {2, 3, 4}).Var("e", DType::kF32, {3, 2});
  b.Var("nan", DType::kF32, {2});
  b.Op("mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"p"}}}, {{"x_num_col_dims", int64_t{1}}});
  b.Op("elementwise_add", {{"X", {"x"}}, {"Y", {"c"}}}, {{"Out", {"a"}}}, {{"axis", int64_t{1}}});
  b.Op("lookup_table", {{"Ids", {"ids"}}, {"W", {"table"}}}, {{"Out", {"e"}}});
  b.Op("fill_constant", {}, {{"Out", {"nan"}}},
       {{"shape", Ints{2}}, {"str_value", std::string("nan")}, {"dtype", int64_t{5}}});
  b.Var("is_nan", DType::kBool, {2}).Unary("isnan_v2", "nan", "is_nan");
  b.Fetch("p").Fetch("a").Fetch("e").Fetch("is_nan");
  const auto feeds = {heddle::Feed{"x", Values({2, 3, 4})},
                      heddle::Feed{"ids", I64({3, 1}, {6, 0, 2})}};
  const Json file = SameAfterWriting(b, feeds, scope);
  EXPECT_THAT(OpsIn(file), ::testing::IsSupersetOf({"1.matmul", "1.reshape", "1.add", "1.squeeze",
                                                    "1.embedding", "1.divide"}));
}

TEST(PirWrite, LoopsAndBranches) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Feed("n", DType::kI64, {1});
  b.Var("i", DType::kI64, {1}).Var("y", DType::kF32, {2}).Var("go", DType::kBool, {1});
  b.Var("big", DType::kBool, {1}).Var("limit", DType::kI64, {1});
  b.Fill("i", {1}, 0, DType::kI64).Fill("limit", {1}, 2, DType::kI64);
  b.Op("assign", {{"X", {"x"}}}, {{"Out", {"y"}}});
  b.Binary("less_than", "i", "n", "go");
  const int body = b.Block(0), inner = b.Block(body);
  b.In(body).Var("d", DType::kF32, {2});
  b.Scale("y", "d", 2).Op("assign", {{"X", {"d"}}}, {{"Out", {"y"}}}).Increment("i");
  b.Binary("less_than", "limit", "i", "big");
  b.Op("conditional_block", {{"Cond", {"big"}}, {"Input", {"y"}}}, {{"Out", {"y"}}},
       {{"sub_block", BlockRef{inner}}, {"is_scalar_condition", true}});
  b.Binary("less_than", "i", "n", "go");
  b.In(inner).Scale("y", "y", 1, 100);
  b.In(0).Op("while", {{"X", {"i", "n", "y"}}, {"Condition", {"go"}}}, {{"Out", {"i", "y", "go"}}},
             {{"sub_block", BlockRef{body}}});
  b.Fetch("y").Fetch("i");
  for (const int64_t n : {0, 1, 5}) {
    SCOPED_TRACE(n);
    const Json file = SameAfterWriting(b, {{"x", F32({2}, {1, -1})}, {"n", I64({1}, {n})}});
    const Json* loop = nullptr;
    for (const Json& op : file["program"]["regions"][0]["blocks"][0]["ops"])
      if (op["#"] == "1.while") loop = &op;
    ASSERT_NE(loop, nullptr);
    EXPECT_EQ((*loop)["regions"][0]["blocks"][0]["args"].size(), (*loop)["O"].size());
    EXPECT_EQ(OpsOf((*loop)["regions"][0]).back(), "2.yield");
    EXPECT_THAT(OpsOf((*loop)["regions"][0]), ::testing::Contains("1.if"));
  }
}

TEST(PirWrite, ArraysBelongToTheirBlock) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Array("items").Var("i", DType::kI64, {1});
  b.Var("y", DType::kF32, {2}).Var("n", DType::kI64, {1});
  b.Fill("i", {1}, 0, DType::kI64);
  b.Op("write_to_array", {{"X", {"x"}}, {"I", {"i"}}}, {{"Out", {"items"}}});
  b.Op("read_from_array", {{"X", {"items"}}, {"I", {"i"}}}, {{"Out", {"y"}}});
  b.Op("lod_array_length", {{"X", {"items"}}}, {{"Out", {"n"}}});
  b.Fetch("y").Fetch("n");
  EXPECT_THAT(OpsIn(SameAfterWriting(b, {{"x", F32({2}, {1, 2})}})),
              ::testing::IsSupersetOf(
                  {"1.create_array", "1.array_write_", "1.array_read", "1.array_length"}));
}

// A variable of the scope keeps the value that an ordinary operator writes to it.
TEST(PirWrite, VariablesOfTheScopeAreWritten) {
  ProgramBuilder b;
  b.Param("count", DType::kF32, {1}).Feed("x", DType::kF32, {1}).Var("y", DType::kF32, {1});
  b.Increment("count").Scale("x", "y", 1).Fetch("y");
  const auto again = Program::Parse(Written(b.Build()), "again.json");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  auto scope = std::make_shared<Scope>();
  scope->Set("count", Value(F32({1}, {5})));
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, *again, scope);
  for (int i = 0; i < 2; ++i) MustRun(executor, compiled, {{"x", F32({1}, {0})}});
  EXPECT_EQ(Floats(scope->Find("count")->tensor()), std::vector<float>{7});
}

// The operators of block 0 of a file.
const Json& OpsOfBlock0(const Json& file) {
  return file["program"]["regions"][0]["blocks"][0]["ops"];
}
const Json* FindOp(const Json& file, const std::string& name) {
  for (const Json& op : OpsOfBlock0(file))
    if (op["#"] == name) return &op;
  return nullptr;
}

void AddRows(ProgramBuilder& b, const std::string& name, const Shape& shape) {
  b.Var(name, DType::kF32, shape);
  auto* var = b.desc().mutable_blocks(0)->mutable_vars(b.desc().blocks(0).vars_size() - 1);
  const proto::VarType::TensorDesc tensor = var->type().lod_tensor().tensor();
  var->mutable_type()->Clear();
  var->mutable_type()->set_type(proto::VarType::SELECTED_ROWS);
  *var->mutable_type()->mutable_selected_rows() = tensor;
}

// embedding -> reshape2 -> sum, backward, and sgd on the table, as
// Paddle 2 writes it: without feed and fetch operators. `tables`: how often the table is looked up.
ProgramBuilder EmbeddingTraining(int tables) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {5, 2}).Param("lr", DType::kF32, {1});
  b.Var("ids", DType::kI64, {3}).Var("e", DType::kF32, {3, 2}).Var("r", DType::kF32, {6});
  b.Var("record", DType::kF32, {0, 3, 2}).Var("loss", DType::kF32, {});
  b.Op("lookup_table_v2", {{"Ids", {"ids"}}, {"W", {"w"}}}, {{"Out", {"e"}}},
       {{"is_sparse", true}});
  b.Op("reshape2", {{"X", {"e"}}}, {{"Out", {"r"}}, {"XShape", {"record"}}}, {{"shape", Ints{6}}});
  b.Op("reduce_sum", {{"X", {"r"}}}, {{"Out", {"loss"}}}, {{"reduce_all", true}});
  b.Var("loss@GRAD", DType::kF32, {}).Var("r@GRAD", DType::kF32, {6});
  b.Var("e@GRAD", DType::kF32, {3, 2});
  b.Fill("loss@GRAD", {}, 1);
  b.Op("reduce_sum_grad", {{"X", {"r"}}, {"Out@GRAD", {"loss@GRAD"}}}, {{"X@GRAD", {"r@GRAD"}}},
       {{"reduce_all", true}});
  b.Op("reshape2_grad", {{"XShape", {"record"}}, {"Out@GRAD", {"r@GRAD"}}},
       {{"X@GRAD", {"e@GRAD"}}});
  std::vector<std::string> gradients;
  for (int k = 0; k < tables; ++k) {
    gradients.push_back("w@GRAD@" + std::to_string(k));
    AddRows(b, gradients.back(), {5, 2});
    b.Op("lookup_table_v2_grad", {{"Ids", {"ids"}}, {"W", {"w"}}, {"Out@GRAD", {"e@GRAD"}}},
         {{"W@GRAD", {gradients.back()}}}, {{"is_sparse", true}});
  }
  if (tables > 1) {
    AddRows(b, "w@GRAD", {5, 2});
    b.Op("sum", {{"X", gradients}}, {{"Out", {"w@GRAD"}}});
    gradients = {"w@GRAD"};
  }
  b.Op("sgd", {{"Param", {"w"}}, {"Grad", gradients}, {"LearningRate", {"lr"}}},
       {{"ParamOut", {"w"}}});
  return b;
}

TEST(PirWrite, TrainingProgramsHaveWhatIsFedAndTheirLoss) {
  for (const int tables : {1, 2}) {
    SCOPED_TRACE(tables);
    const Program program = EmbeddingTraining(tables).Build();
    const std::string text = Written(program);
    const Json file = Json::parse(text);
    EXPECT_THAT(OpsIn(file),
                AllOf(::testing::Contains("1.data").Times(1),
                      ::testing::Contains("1.fetch").Times(1), ::testing::Contains("1.sgd_")));
    // The gradient of a view reads the view's input: the result of the look-up.
    const Json *look_up = FindOp(file, "1.embedding"), *view = FindOp(file, "1.reshape_grad");
    ASSERT_TRUE(look_up != nullptr && view != nullptr) << text;
    EXPECT_EQ((*view)["I"][0]["%"], (*look_up)["O"][0]["%"]);
    // Paddle 3.3 has no sums of rows that work.
    EXPECT_EQ(FindOp(file, "1.embedding_sparse_grad") != nullptr, tables == 1);
    EXPECT_EQ(FindOp(file, "1.embedding_grad") != nullptr, tables == 2);

    const auto again = Program::Parse(text, "again.json");
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(again->inputs().at(0).name, "ids");
    EXPECT_EQ(again->outputs().at(0).name, "loss");
    std::vector<std::vector<float>> tables_after;
    for (const Program& p : {program, *again}) {
      auto scope = std::make_shared<Scope>();
      scope->Set("w", Value(Values({5, 2})));
      scope->Set("lr", Value(F32({1}, {0.5f})));
      Executor executor({.threads = 1});
      const auto compiled = MustCompile(executor, p, scope, {.fetches = {"loss"}});
      MustRun(executor, compiled, {{"ids", I64({3}, {4, 1, 4})}});
      tables_after.push_back(Floats(scope->Find("w")->tensor()));
    }
    EXPECT_EQ(tables_after[0], tables_after[1]);
  }
}

// A startup program makes the variables of the scope, which must outlive its run.
TEST(PirWrite, StartupProgramsWantNoParameters) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {2}).Fill("w", {2}, 3);
  const std::string text = Written(b.Build());
  const Json file = Json::parse(text);
  EXPECT_EQ(OpsIn(file), (std::vector<std::string>{"1.full", "0.set_parameter"}));
  const Json& facts = OpsOfBlock0(file)[0]["OA"];
  ASSERT_EQ(facts.size(), 1u) << text;
  EXPECT_EQ(facts[0]["N"], "persistable");
  EXPECT_EQ(facts[0]["AT"]["D"][0]["D"], true);
  const auto again = Program::Parse(text, "again.json");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  auto scope = std::make_shared<Scope>();
  Executor executor({.threads = 1});
  MustRun(executor, MustCompile(executor, *again, scope), {});
  EXPECT_EQ(Floats(scope->Find("w")->tensor()), (std::vector<float>{3, 3}));
}

TEST(PirWrite, EveryResultThatTheScopeKeepsIsPersistable) {
  ProgramBuilder b;
  b.Param("x", DType::kF32, {3}).Param("best", DType::kF32, {2}).Param("places", DType::kI64, {2});
  b.Op("top_k_v2", {{"X", {"x"}}}, {{"Out", {"best"}}, {"Indices", {"places"}}}, {{"k", 2}});
  const Json file = Json::parse(Written(b.Build()));
  const Json* op = FindOp(file, "1.topk");
  ASSERT_TRUE(op != nullptr && (*op)["OA"].size() == 1) << file;
  const Json& flags = (*op)["OA"][0]["AT"]["D"];
  ASSERT_EQ(flags.size(), 2u);
  EXPECT_EQ(flags[0]["D"], true);
  EXPECT_EQ(flags[1]["D"], true);
}

TEST(PirWrite, GradientsOfAbsentOperandsAreAbsent) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3}).Feed("d", DType::kF32, {2, 3});
  for (const char* name : {"y", "g"}) b.Var(name, DType::kF32, {2, 3});
  for (const char* name : {"m", "v"}) b.Var(name, DType::kF32, {2});
  b.Op("layer_norm", {{"X", {"x"}}}, {{"Y", {"y"}}, {"Mean", {"m"}}, {"Variance", {"v"}}});
  b.Op("layer_norm_grad", {{"X", {"x"}}, {"Mean", {"m"}}, {"Variance", {"v"}}, {"Y@GRAD", {"d"}}},
       {{"X@GRAD", {"g"}}});
  b.Fetch("g");
  const Json file =
      SameAfterWriting(b, {{"x", Values({2, 3})}, {"d", F32({2, 3}, {1, 0, 2, 0, 0, 1})}});
  const Json* gradient = FindOp(file, "1.layer_norm_grad");
  ASSERT_NE(gradient, nullptr);
  EXPECT_NE((*gradient)["O"][0]["TT"]["#"], "NULL");
  for (const size_t k : {1, 2}) EXPECT_EQ((*gradient)["O"][k]["TT"]["#"], "NULL") << k;
}

// Paddle 3.3 does not convert all numbers of version 1.
TEST(PirWrite, OlderFilesAreWrittenAnew) {
  PirText p;
  p.Data(1, "x", "f32", "[2]").Op("1.relu", {1}, {2}).Fetch(2, "y");
  const auto now = Program::Parse(p.File(4), "now.json"),
             old = Program::Parse(p.File(1), "old.json");
  ASSERT_TRUE(now.ok()) << now.status().ToString();
  ASSERT_TRUE(old.ok()) << old.status().ToString();
  EXPECT_EQ(now->Serialize("pir").value(), p.File(4));
  EXPECT_THAT(old->Serialize("pir").value(), HasSubstr(R"("version":4)"));
}

TEST(PirWrite, WhatItCannotSayIsListed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3}).Var("y", DType::kF32, {2, 3}).Var("z", DType::kF32, {2, 3});
  b.Var("w", DType::kF32, {2, 1}).Var("k", DType::kI64, {2, 1});
  b.Op("minus", {{"X", {"x"}}, {"Y", {"x"}}}, {{"Out", {"y"}}});
  b.Op("minus", {{"X", {"y"}}, {"Y", {"x"}}}, {{"Out", {"z"}}});
  b.Op("top_k", {{"X", {"z"}}}, {{"Out", {"w"}}, {"Indices", {"k"}}}, {{"k", int64_t{1}}});
  b.Fetch("w");
  const auto text = b.Build().Serialize("pir");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(text.status().message(),
              AllOf(HasSubstr("cannot be written as PIR, for 2 kinds of operators:"),
                    HasSubstr("minus (2 times, first: block 0, op 1): "),
                    HasSubstr("top_k (1 time, first: block 0, op 3): ")));
  EXPECT_THAT(b.Build().Serialize("onyx").status().message(),
              AllOf(HasSubstr("there is no format 'onyx' to write"), HasSubstr("paddle, pir")));
}

}  // namespace
}  // namespace heddle::testing
