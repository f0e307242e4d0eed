// Hash tables of SavedModels that TensorFlow has written (record_tables.py, whose answers these
// are): contents from constants, a file and the bundle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "heddle/model_files.h"
#include "heddle/string_tensor.h"
#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/support/files.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kModels = HEDDLE_SOURCE_DIR "/tests/formats/tensorflow/tables/models/";

Value Texts(std::vector<std::string> texts, const Shape& shape = Shape::Unknown()) {
  const Shape one{static_cast<int64_t>(texts.size())};
  return ValueOf(StringTensor{shape.known_rank() ? shape : one, std::move(texts)});
}
Value Numbers(const std::vector<int64_t>& numbers) {
  return Value(Tensor::Of(DType::kI64, Shape{static_cast<int64_t>(numbers.size())}, numbers));
}
std::vector<int64_t> IntsOf(const Value& value) {
  const Tensor& t = value.tensor();
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}

// A model's signature, run on values of its inputs by name.
class Loaded {
 public:
  explicit Loaded(const std::string& path, const ProgramPart& part = {}) {
    auto model = LoadModel(path, "", part);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    if (model.ok()) model_ = *std::move(model);
  }
  std::map<std::string, Value> Run(const std::vector<Feed>& feeds) {
    std::map<std::string, Value> made;
    const auto values = TryRun(model_, feeds);
    EXPECT_TRUE(values.ok()) << values.status().ToString();
    const auto outputs = model_.program.outputs();
    for (size_t k = 0; values.ok() && k < outputs.size(); ++k) made[outputs[k].name] = (*values)[k];
    return made;
  }

 private:
  Model model_;
};

const std::vector<Feed> kFeeds = {{"texts", Texts({"the", "fox", "x", "zz", "q", "p"})},
                                  {"numbers", Numbers({1, 2, 9, 1, 1, 1})}};

TEST(Tables, HoldWhatTheirInitialisersSay) {
  auto made = Loaded(kModels + "tables").Run(kFeeds);
  EXPECT_THAT(Floats(made["score"].tensor()), ElementsAre(-2, -2, 3, -2, -2, -2));
  ASSERT_NE(StringsIn(made["name"]), nullptr);
  EXPECT_THAT(StringsIn(made["name"])->elements,
              ElementsAre("one", "two", "?", "one", "one", "one"));
  EXPECT_THAT(IntsOf(made["word"]), ElementsAre(0, 3, -7, -7, -7, -7));
  EXPECT_THAT(IntsOf(made["bucket"]), ElementsAre(0, 3, 4, 4, 5, 5));
  EXPECT_THAT(IntsOf(made["learnt"]), ElementsAre(-1, -1, -1, -1, 6, 5));
  EXPECT_EQ(*made["count"].tensor().data<int64_t>(), 4);
  const bool* is_one = made["is_one"].tensor().data<bool>();
  EXPECT_THAT(std::vector<bool>(is_one, is_one + 6),
              ElementsAre(true, false, false, true, true, true));
}

// A run finds the keys that the run before inserted.
TEST(Tables, KeepWhatIsInserted) {
  Loaded learn(kModels + "tables", {.signature = "learn"});
  const std::vector<Feed> more = {{"texts", Texts({"n", "p"})}, {"numbers", Numbers({50, 51})}};
  auto made = learn.Run(more);
  EXPECT_EQ(*made["count"].tensor().data<int64_t>(), 3);
  EXPECT_THAT(IntsOf(made["learnt"]), ElementsAre(50, 51));
  made = learn.Run({{"texts", Texts({"q", "p"})}, {"numbers", Numbers({1, 2})}});
  EXPECT_EQ(*made["count"].tensor().data<int64_t>(), 3);
  EXPECT_THAT(IntsOf(made["learnt"]), ElementsAre(1, 2));
}

// As many texts, in another shape: the result is a new one.
TEST(Tables, AnEarlierResultIsNotWrittenTo) {
  const auto model = LoadModel(kModels + "string_lookup", "", {});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Executor executor({.threads = 1});
  const auto compiled =
      MustCompile(executor, model->program, model->scope, {.fetches = {"number"}});
  const auto run = [&](const Shape& shape, std::vector<std::string> texts) {
    auto made = executor.RunValues(compiled, {{"texts", Texts(std::move(texts), shape)}});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? (*made)[0] : Value();
  };
  const Value first = run(Shape{1, 2}, {"a", "dd"}), second = run(Shape{2, 1}, {"dd", "zz"});
  EXPECT_THAT(IntsOf(first), ElementsAre(2, 5));
  EXPECT_THAT(IntsOf(second), ElementsAre(5, 1));
  EXPECT_EQ(second.tensor().shape(), (Shape{2, 1}));
}

TEST(Tables, OfKerasLookups) {
  auto made =
      Loaded(kModels + "string_lookup").Run({{"texts", Texts({"a", "dd", "zz", ""}, Shape{1, 4})}});
  EXPECT_THAT(IntsOf(made["number"]), ElementsAre(2, 5, 1, 0));
  EXPECT_EQ(made["number"].tensor().shape(), (Shape{1, 4}));
  made = Loaded(kModels + "integer_lookup")
             .Run({{"numbers",
                    Value(Tensor::Of(DType::kI64, Shape{1, 3}, std::vector<int64_t>{10, 30, 7}))}});
  EXPECT_THAT(IntsOf(made["number"]), ElementsAre(1, 3, 0));
}

// A model without its tables would be another one.
TEST(Tables, AreNotLeftOutOfWhatIsWritten) {
  const auto model = LoadModel(kModels + "integer_lookup", "", {});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const TempDir dir;
  EXPECT_THAT(SaveModel(*model, dir / "saved", "paddle").status().ToString(),
              HasSubstr("holds strings or a hash table, which no file of parameters can"));
}

// Functions that call each other without end.
TEST(Tables, AreLookedForInReasonableTime) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("HashTableV2", "t", {}).Add("Neg", "y", {"x"});
  std::vector<Message> calls;
  for (int i = 0; i < 50; ++i)
    calls.push_back(NodeOf("StatefulPartitionedCall", "c" + std::to_string(i), {"h"},
                           {{"f", FunctionValue("f")}}));
  g.Function(FunctionOf("f", {"h"}, {{"r", "h"}}, calls));
  for (int i = 0; i < 50; ++i)
    g.Add("StatefulPartitionedCall", "c" + std::to_string(i), {"t"}, {{"f", FunctionValue("f")}});
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {3})}}, "y"), ElementsAre(-3));
}

// Nothing follows such a chain by a call for each of its nodes.
TEST(Tables, ReadsOfReadsAreFollowedAFewSteps) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add("HashTableV2", "t", {}).Add("Neg", "y", {"x"});
  g.Add("VarHandleOp", "r0", {});
  constexpr int kReads = 200000;
  for (int i = 1; i <= kReads; ++i)
    g.Add("ReadVariableOp", "r" + std::to_string(i), {"r" + std::to_string(i - 1)});
  const std::string last = "r" + std::to_string(kReads);
  g.Add("InitializeTableV2", "init", {"t", last, last});
  EXPECT_THAT(RunGraph(g, {{"x", F32({1}, {3})}}, "y"), ElementsAre(-3));
}

TEST(Tables, AFileThatIsNotThereIsAnError) {
  const TempDir dir;
  std::filesystem::copy(kModels + "tables", dir / "model",
                        std::filesystem::copy_options::recursive);
  EXPECT_TRUE(LoadModel(dir / "model", "", {}).ok());
  WriteAll(dir / "model/assets/vocabulary.txt", "the\nthe\n");
  EXPECT_THAT(LoadModel(dir / "model", "", {}).status().ToString(),
              HasSubstr("two values for one key"));
  std::filesystem::remove(dir / "model/assets/vocabulary.txt");
  EXPECT_THAT(LoadModel(dir / "model", "", {}).status().ToString(), HasSubstr("vocabulary.txt"));
}

TEST(Tables, WithoutContentsAreAnErrorWhenTheyAreAsked) {
  Graph g;
  g.Add(PlaceholderNode("k", 9))
      .Add(NodeOf(
          "Const", "d", {},
          {{"dtype", TypeValue(9)}, {"value", TensorValue(TensorHeadOf(9, {}).Int(10, 4))}}));
  g.Add("HashTableV2", "t", {}, {{"key_dtype", TypeValue(9)}, {"value_dtype", TypeValue(9)}});
  g.Add("LookupTableFindV2", "y", {"t", "k", "d"});
  const auto model = LoadBytes(g.bytes(), {.feeds = {"k"}, .fetches = {"y"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_FALSE(TryRun(*model, {{"k", Numbers({1})}}).ok());
}

}  // namespace
}  // namespace heddle::testing::tf
