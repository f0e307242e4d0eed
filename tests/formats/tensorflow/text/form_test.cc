// Graphs in text form. What the numbers and texts mean is what TensorFlow's own parser reads.
#include "formats/tensorflow/text/form.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using tensorflow::BinaryFromText;
using tensorflow::LooksLikeText;
using ::testing::HasSubstr;

constexpr char kText[] = R"text(# A graph in text form.
node {
  name: "bytes" op: 'Const';
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr < key: "value" value: < tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } }
    tensor_content: "\000\000\200?" '\x00\x00\xa0\300' } > >
}
node { name: "floats", op: "Const",
  attr { key: "dtype" value { type: 1 } }
  attr { key: "value" value { tensor {
    dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 3 } }
    float_val: [1.5, -2, 1e-3f, inf] float_val: -Infinity float_val: -.25
    float_val: 1e60 float_val: 1e-400 float_val: 7
  } } }
}
node { name: "ints" op: "Const"
  attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 5 } }
    int_val: 0x1F int_val: 017 int_val: -2147483648 int_val: -5 int_val: 0 } } }
}
node { name: "unsigned" op: "Const"
  attr { key: "dtype" value { type: DT_UINT64 } }
  attr { key: "value" value { tensor { dtype: DT_UINT64 tensor_shape { dim { size: 2 } }
    uint64_val: 18446744073709551615 uint64_val: 3 } } }
}
node { name: "flags" op: "Const"
  attr { key: "dtype" value { type: DT_BOOL } }
  attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { dim { size: 4 } }
    bool_val: [true, f, True, 0] } } }
}
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "y" op: "Mul" input: "x" input: "bytes" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 2474 }
)text";

TEST(TextForm, ValuesAreWhatTensorFlowReads) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto model = LoadBytes(kText, {.fetches = {"floats", "ints", "unsigned", "flags", "y"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(OutputTypes(model->program)[2], "uint64");
  Executor executor({.threads = 1});
  const auto out = MustRun(executor, MustCompile(executor, model->program, model->scope),
                           {{"x", F32({2}, {2, 3})}});
  EXPECT_EQ(out[0].shape(), Shape({3, 3}));
  EXPECT_EQ(Floats(out[0]), (std::vector<float>{1.5f, -2, 1e-3f, inf, -inf, -0.25f, inf, 0, 7}));
  const auto* ints = out[1].data<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(ints, ints + 5), (std::vector<int32_t>{31, 15, INT32_MIN, -5, 0}));
  EXPECT_EQ(out[2].data<int64_t>()[0], -1);  // the bits of 2^64-1
  EXPECT_EQ(out[2].data<int64_t>()[1], 3);
  const auto* flags = out[3].data<bool>();
  EXPECT_EQ(std::vector<bool>(flags, flags + 4), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(Floats(out[4]), (std::vector<float>{2, -15}));
}

TEST(TextForm, EqualsTheBinaryForm) {
  const auto bytes = BinaryFromText(
      "node{name:\"c\"op:\"Const\"attr{key:\"dtype\"value{type:DT_FLOAT}}attr{key:\"value\"value{"
      "tensor{dtype:DT_FLOAT,tensor_shape{dim{size:2}}tensor_content:\"\\000\\000\\200?\\000\\000"
      "\\000@\"}}}}versions{producer:2474}");
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  EXPECT_EQ(*bytes, Graph().Add(FloatsNode("c", {2}, {1, 2})).bytes());
  // Texts with characters that are written by their numbers.
  const auto named = BinaryFromText(R"(node { name: "\u00e9\U0001F600\x41\101\n\\\"" })");
  ASSERT_TRUE(named.ok()) << named.status().ToString();
  EXPECT_EQ(*named, Message()
                        .Add(1, Message().Bytes(1,
                                                "\xc3\xa9\xf0\x9f\x98\x80"
                                                "AA\n\\\""))
                        .bytes());
}

TEST(TextForm, WhatHeddleDoesNotUseIsSkipped) {
  const auto bytes = BinaryFromText(R"(
      # a comment
      debug_info { files: "a" traces { key: "k" value { frames < line: 3 col: -1.5e3 > } } }
      node { name: "x" experimental_debug_info { original_node_names: ["a", 'b' "c"] } }
      library { gradient { function_name: "f" [type.googleapis.com/a.B] { deep: { v: nan } } } };
      library { function { arg_attr: [{ key: 0 value { } }, <>] } })");
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  EXPECT_EQ(*bytes, Message()
                        .Add(1, Message().Bytes(1, "x"))
                        .Add(2, Message())
                        .Add(2, Message().Add(1, Message()))
                        .bytes());
}

TEST(TextForm, IsKnownByItsBeginning) {
  for (const char* text : {"node {", " # c\n\n node:<", "node [", "library{", "versions : {",
                           "version: 3", "saved_model_schema_version: 1", "meta_graphs {"})
    EXPECT_TRUE(LooksLikeText(text)) << text;
  for (const char* text : {"", "node", "node name", "nodes {", "{}", "versions: 3", "# node {"})
    EXPECT_FALSE(LooksLikeText(text)) << text;
}

TEST(TextForm, MistakesHaveALineAndWhatWasExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"node {\n\n nome: \"x\" }", "line 3: NodeDef has no field 'nome'"},
      {"node { name: \"x\" ", "the text ends inside a NodeDef"},
      {"node { name: 3 }", "field 'name' wants a string; '3 }' stands there"},
      {"node { name: \"x }", "the string of field 'name' does not end"},
      {"node { name: \"a\n\" }", "the string of field 'name' does not end"},
      {"node { name: \"\\400\" }", "an escape sequence"},
      {"node { name: \"\\u12\" }", "an escape sequence"},
      {"node { name: \"x\" } }", "a field of GraphDef is expected"},
      {"node { name \"x\" }", "wants a ':'"},
      {"node { input [\"x\"] }", "wants a ':'"},
      {"node: 3", "a message in braces"},
      {"node { attr { value { i: 99999999999999999999 } } }", "wants an integer"},
      {"node { attr { value { i: 1.0 } } }", "wants an integer"},
      {"node { attr { value { i: 08 } } }", "wants an integer"},
      {"node { attr { value { list { i: [1, 2,] } } } }", "wants an integer"},
      {"node { attr { value { list { i: [1 2] } } } }", "',' or ']'"},
      {"node { attr { value { type: DT_FLOOT } } }", "an element type as DT_FLOAT"},
      {"node { attr { value { tensor { int_val: 3000000000 } } } }", "an integer of 32 bits"},
      {"node { attr { value { tensor { uint32_val: -1 } } } }", "without a sign"},
      {"node { attr { value { b: maybe } } }", "true or false"},
      {"node { attr { value { b: 2 } } }", "true or false"},
      {"node { attr { value { f: 1.2.3 } } }", "a number"},
      {"node { attr { value { f: 0x10 } } }", "a number"},
      {"node { attr { value { f: --5 } } }", "a number"},
  };
  for (const auto& [text, says] : cases) {
    const auto bytes = BinaryFromText(text);
    ASSERT_FALSE(bytes.ok()) << text;
    EXPECT_EQ(bytes.status().code(), StatusCode::kDataLoss) << text;
    EXPECT_THAT(bytes.status().message(), HasSubstr(says)) << text;
  }
  EXPECT_THAT(ErrorOf("node { nome: 1 }"), HasSubstr("test.pb: line 1: NodeDef has no field"));
}

TEST(TextForm, DepthHasALimit) {
  const auto nested = [](std::string_view begin, std::string_view level, size_t times) {
    std::string text(begin);
    for (size_t i = 0; i < times; ++i) text += level;
    return text;
  };
  for (const char* begin : {"node { attr { value { func { ", "debug_info { "}) {
    const auto bytes = BinaryFromText(nested(begin, "attr { value { func { ", 1000000));
    ASSERT_FALSE(bytes.ok());
    EXPECT_THAT(bytes.status().message(), HasSubstr("too deep"));
  }
}

}  // namespace
}  // namespace heddle::testing::tf
