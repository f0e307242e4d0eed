// Values that are no plain tensors: strings, sequences, optional values, maps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/onnx.h"
#include "tests/formats/onnx/onnx_runs.h"

namespace heddle::testing {
namespace {

constexpr int kString = 8;

Message Texts(const std::vector<int64_t>& dims, const std::vector<std::string>& texts,
              std::string_view name = "") {
  Message t = TensorHead(name, kString, dims);
  for (const std::string& text : texts) t.Bytes(6, text);
  return t;
}

// Runs the model on messages; its first output as one.
std::string RunOnMessages(const std::string& model_bytes, const std::vector<Message>& messages) {
  const Model model = ModelOf(model_bytes);
  std::vector<Feed> feeds;
  for (size_t k = 0; k < messages.size(); ++k) {
    auto value = ReadOnnxInput(model.program, k, messages[k].bytes());
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    if (!value.ok()) return "";
    feeds.push_back({model.program.inputs()[k].name, *std::move(value)});
  }
  const auto message = WriteOnnxOutput(model.program, 0, RunValuesOf(model, feeds)[0]);
  EXPECT_TRUE(message.ok()) << message.status().ToString();
  return message.ok() ? *message : "";
}

TEST(OnnxValue, StringsMove) {
  OnnxGraph g;
  g.In("x", kString).Weight(Texts({1}, {std::string("n\0l", 3)}, "w"));
  g.Weight(Tensor64("i", {2, 2}, {2, 0, 1, -1}));
  g.Add(Node("Concat", {"x", "w"}, {"c"}, {IntAttr("axis", 0)}));
  g.Add(Node("Gather", {"c", "i"}, {"g"})).Add(Node("Transpose", {"g"}, {"y"}));
  g.Out("y", kString, {2, 2});
  EXPECT_EQ(RunOnMessages(g.Model(), {Texts({2}, {"b", "é"})}),
            Texts({2, 2}, {std::string("n\0l", 3), "é", "b", std::string("n\0l", 3)}).bytes());
}

TEST(OnnxValue, LoopsCarryStrings) {
  OnnxGraph body, g;
  body.In("i", 7, {}).In("c", 9, {}).In("a", kString);
  body.Add(Node("Identity", {"c"}, {"d"})).Add(Node("StringConcat", {"a", "x"}, {"b"}));
  body.Out("d", 9, {}).Out("b", kString);
  g.In("m", 7, {}).In("x", kString);
  g.Add(Node("Loop", {"m", "", "x"}, {"y"}, {GraphAttr("body", body.message())}));
  g.Out("y", kString);
  EXPECT_EQ(RunOnMessages(g.Model(20), {Tensor64("", {}, {2}), Texts({2}, {"b", "é"})}),
            Texts({2}, {"bbb", "ééé"}).bytes());
}

TEST(OnnxValue, StringsAreComparedAndChanged) {
  OnnxGraph same, g;
  same.In("x", kString).Weight(Texts({}, {"b"}, "w"));
  same.Add(Node("Equal", {"x", "w"}, {"y"})).Out("y", 9);
  EXPECT_EQ(RunOnMessages(same.Model(19), {Texts({3}, {"a", "b", "b"})}),
            TensorHead("", 9, {3}).Bytes(9, std::string("\0\1\1", 3)).bytes());
  const Message upper = Message().Bytes(1, "case_change_action").Bytes(4, "UPPER").Int(20, 3);
  g.In("x", kString).Add(Node("StringNormalizer", {"x"}, {"y"}, {upper})).Out("y", kString);
  EXPECT_EQ(RunOnMessages(g.Model(), {Texts({2}, {"añ", "ßb"})}), Texts({2}, {"AÑ", "ßB"}).bytes());
}

// Texts that the reader itself makes a parameter of.
TEST(OnnxValue, NumbersBecomeTexts) {
  const std::string one(40, 'a'), other(50, 'b'), none(60, 'c');
  const Message values =
      Message().Bytes(1, "values_strings").Bytes(9, one).Bytes(9, other).Int(20, 8);
  const Message otherwise = Message().Bytes(1, "default_string").Bytes(4, none).Int(20, 3);
  OnnxGraph g;
  g.In("x", 7).Out("y", kString);
  g.Add(Node("LabelEncoder", {"x"}, {"y"}, {IntsAttr("keys_int64s", {7, 9}), values, otherwise},
             "ai.onnx.ml"));
  const Message import = Message().Bytes(1, "ai.onnx.ml").Int(2, 3);
  EXPECT_EQ(RunOnMessages(g.Model(17, Message().Add(8, import)), {Tensor64("", {3}, {9, 1, 7})}),
            Texts({3}, {other, none, one}).bytes());
}

// Strings are moved as numbers, also by operators of other domains.
TEST(OnnxValue, ColumnsOfTexts) {
  OnnxGraph g;
  g.In("x", kString, {2, 2}).Weight(Tensor64("i", {1}, {1})).Out("y", kString);
  g.Add(Node("ArrayFeatureExtractor", {"x", "i"}, {"y"}, {}, "ai.onnx.ml"));
  const Message import = Message().Bytes(1, "ai.onnx.ml").Int(2, 1);
  EXPECT_EQ(
      RunOnMessages(g.Model(17, Message().Add(8, import)), {Texts({2, 2}, {"a", "x", "b", "y"})}),
      Texts({2, 1}, {"x", "y"}).bytes());
}

// SequenceProto
Message SequenceOf(const std::vector<Message>& items) {
  Message s;
  s.Int(2, 1);
  for (const Message& item : items) s.Add(3, item);
  return s;
}

Message SequenceInfo(std::string_view name) {
  const Message tensor = Message().Add(1, Message().Int(1, 1));
  return Message().Bytes(1, name).Add(2, Message().Add(4, Message().Add(1, tensor)));
}

TEST(OnnxValue, SequencesGrow) {
  OnnxGraph g;
  g.Raw(11, SequenceInfo("s")).In("x").Weight(Tensor64("p", {}, {0}));
  g.Add(Node("SequenceInsert", {"s", "x", "p"}, {"y"})).Raw(12, SequenceInfo("y"));
  const Message one = Tensor32("", {1}, {1}), two = Tensor32("", {2}, {2, 3});
  EXPECT_EQ(RunOnMessages(g.Model(), {SequenceOf({one}), two}), SequenceOf({two, one}).bytes());
}

TEST(OnnxValue, OptionalValuesAreThereOrNot) {
  const Message tensor = Message().Add(1, Message().Int(1, 1));
  const Message info = Message().Bytes(1, "o").Add(2, Message().Add(9, Message().Add(1, tensor)));
  OnnxGraph g;
  g.Raw(11, info).Add(Node("OptionalHasElement", {"o"}, {"y"})).Out("y", 9, {});
  const auto answer = [](char c) { return TensorHead("", 9, {}).Bytes(9, {&c, 1}).bytes(); };
  const Message full = Message().Int(2, 1).Add(3, Tensor32("", {1}, {1}));
  EXPECT_EQ(RunOnMessages(g.Model(), {full}), answer(1));
  EXPECT_EQ(RunOnMessages(g.Model(), {Message()}), answer(0));
}

// The border makes maps of the values.
TEST(OnnxValue, RowsBecomeMaps) {
  const Message key = Message().Int(1, 7).Add(2, Message().Add(1, Message().Int(1, 1)));
  const Message info =
      Message().Bytes(1, "y").Add(2, Message().Add(4, Message().Add(1, Message().Add(5, key))));
  const Message import = Message().Bytes(1, "ai.onnx.ml").Int(2, 1);
  OnnxGraph g;
  g.In("x", 1, {1, 2});
  g.Add(Node("ZipMap", {"x"}, {"y"}, {IntsAttr("classlabels_int64s", {4, 9})}, "ai.onnx.ml"));
  g.Raw(12, info);
  const Message values =
      Message().Int(2, 1).Add(3, Tensor32("", {}, {0.25})).Add(3, Tensor32("", {}, {0.75}));
  const Message map = Message().Int(2, 7).Int(3, 4).Int(3, 9).Add(5, values);
  EXPECT_EQ(
      RunOnMessages(g.Model(17, Message().Add(8, import)), {Tensor32("", {1, 2}, {.25, .75})}),
      Message().Int(2, 4).Add(6, map).bytes());
}

}  // namespace
}  // namespace heddle::testing
