// Models that are damaged, or that lie: one error each, which says where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "heddle/heddle.h"
#include "tests/formats/onnx/onnx_runs.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(const std::string& bytes) {
  const auto program = Program::Parse(bytes, "bad.onnx");
  return program.ok() ? "" : program.status().ToString();
}
std::string ErrorOf(const OnnxGraph& g, int64_t opset = 17) { return ErrorOf(g.Model(opset)); }

// y = relu(x + w)
OnnxGraph Small() {
  OnnxGraph g;
  g.In("x").Weight(Tensor32("w", {2}, {1, -2}));
  g.Add(Node("Add", {"x", "w"}, {"s"})).Add(Node("Relu", {"s"}, {"y"})).Out("y");
  return g;
}

TEST(BadOnnx, UnknownOperatorsAreAllListed) {
  OnnxGraph g;
  g.In("x").Add(Node("Frobnicate", {"x"}, {"a"})).Add(Node("Frobnicate", {"a"}, {"b"}));
  g.Add(Node("Relu", {"b"}, {"c"})).Add(Node("Strange", {"c"}, {"y"}, {}, "com.microsoft"));
  const Message more = Message().Add(8, Message().Bytes(1, "com.microsoft").Int(2, 1));
  const std::string error = ErrorOf(g.Out("y").Model(17, more));
  EXPECT_THAT(error, HasSubstr("2 operators that heddle does not have"));
  EXPECT_THAT(error, HasSubstr("Frobnicate (2 times, first: block 0, op 0)"));
  EXPECT_THAT(error, HasSubstr("com.microsoft.Strange (1 time, first: block 0, op 3)"));
}

TEST(BadOnnx, DomainsAreImported) {
  OnnxGraph g;
  g.In("x").Add(Node("Thing", {"x"}, {"y"}, {}, "my.own")).Out("y");
  EXPECT_THAT(ErrorOf(g), HasSubstr("imports no version of domain 'my.own'"));
}

TEST(BadOnnx, NewerOpsetsAreRefused) {
  EXPECT_THAT(ErrorOf(Small(), 1000), HasSubstr("opset 1000"));
}

TEST(BadOnnx, ValuesAreMadeBeforeAndOnce) {
  OnnxGraph dangling, cyclic, twice, outputs;
  dangling.In("x").Add(Node("Add", {"x", "nobody"}, {"y"})).Out("y");
  EXPECT_THAT(ErrorOf(dangling), HasSubstr("op 0 (Add): input 'nobody' is made by no node"));
  cyclic.Add(Node("Relu", {"b"}, {"a"})).Add(Node("Relu", {"a"}, {"b"})).Out("b");
  EXPECT_THAT(ErrorOf(cyclic), HasSubstr("input 'b' is made by no node before it"));
  twice.In("x").Add(Node("Relu", {"x"}, {"y"})).Add(Node("Abs", {"x"}, {"y"})).Out("y");
  EXPECT_THAT(ErrorOf(twice), HasSubstr("op 1 (Abs): output 'y' is made before, too"));
  outputs.In("x").Add(Node("Relu", {"x"}, {"y"})).Out("z");
  EXPECT_THAT(ErrorOf(outputs), HasSubstr("output 'z': no node makes it"));
}

TEST(BadOnnx, InitializersAreGivenOnce) {
  OnnxGraph g = Small();
  g.Weight(Tensor32("w", {2}, {3, 4}));
  EXPECT_THAT(ErrorOf(g), HasSubstr("initializer 'w' is given twice"));
}

TEST(BadOnnx, SubgraphsSeeWhatIsAround) {
  OnnxGraph branch, g;
  branch.Add(Node("Relu", {"hidden"}, {"b"})).Out("b");
  g.In("x")
      .In("c", 9, {})
      .Add(Node("If", {"c"}, {"y"},
                {GraphAttr("then_branch", branch.message()),
                 GraphAttr("else_branch", branch.message())}));
  EXPECT_THAT(ErrorOf(g.Out("y")), HasSubstr("input 'hidden' is made by no node"));
}

TEST(BadOnnx, TensorsHoldWhatTheyClaim) {
  const auto with = [](const Message& tensor) {
    OnnxGraph g;
    g.In("x").Weight(tensor).Add(Node("Add", {"x", "w"}, {"y"})).Out("y");
    return ErrorOf(g);
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THAT(with(Tensor32("w", {3}, {1, 2})), HasSubstr("8 bytes are stored, 12 are expected"));
  EXPECT_THAT(with(Tensor32("w", {kHuge}, {1, 2})), HasSubstr("larger than any memory"));
  EXPECT_THAT(with(Tensor32("w", {kHuge, kHuge, 4}, {1})), HasSubstr("larger than any memory"));
  EXPECT_THAT(with(Tensor32("w", {1 << 30, 1 << 6}, {1})), HasSubstr("are expected"));
  EXPECT_THAT(with(TensorHead("w", 1, {1 << 30, 1 << 6})), HasSubstr("are expected"));
  EXPECT_THAT(with(Tensor32("w", {-1}, {1})), HasSubstr("a negative dimension"));
  EXPECT_THAT(with(TensorHead("w", 99, {1}).Bytes(9, "1234")), HasSubstr("no element type"));
  EXPECT_THAT(with(TensorHead("w", 1, {2}).Int(5, 7).Int(5, 8)), HasSubstr("field 5"));
  const std::vector<int64_t> many(11, 1);
  EXPECT_THAT(with(Tensor32("w", many, {1})), HasSubstr("rank 11"));
}

TEST(BadOnnx, FunctionsDoNotCallThemselves) {
  OnnxGraph g;
  g.In("x").Add(Node("f", {"x"}, {"y"}, {}, "own")).Out("y");
  const Message imports = Message().Bytes(1, "own").Int(2, 1);
  const Message function = Message().Bytes(1, "f").Bytes(4, "a").Bytes(5, "b").Bytes(10, "own").Add(
      7, Node("f", {"a"}, {"b"}, {}, "own"));
  const Message more = Message().Add(8, imports).Add(25, Message(function).Add(9, imports));
  EXPECT_THAT(ErrorOf(g.Model(17, more)),
              HasSubstr("op 0 (own.f): recursion is refused: function 'own.f' calls 'own.f'"));
}

TEST(BadOnnx, FunctionsDoNotCallEachOtherInACircle) {
  OnnxGraph g;
  g.In("x").Add(Node("f", {"x"}, {"y"}, {}, "own")).Out("y");
  const Message imports = Message().Bytes(1, "own").Int(2, 1);
  Message more = Message().Add(8, imports);
  // Each calls the other twice, which would be 2^64 calls.
  for (const auto& [name, other] : {std::pair{"f", "h"}, {"h", "f"}}) {
    const Message function = Message().Bytes(1, name).Bytes(4, "a").Bytes(5, "c").Bytes(10, "own");
    more.Add(25, Message(function)
                     .Add(7, Node(other, {"a"}, {"b"}, {}, "own"))
                     .Add(7, Node(other, {"b"}, {"c"}, {}, "own"))
                     .Add(9, imports));
  }
  EXPECT_THAT(
      ErrorOf(g.Model(17, more)),
      HasSubstr("recursion is refused: function 'own.f' calls 'own.h', which calls 'own.f'"));
}

TEST(BadOnnx, FunctionsAreGivenOnce) {
  const Message body = Message()
                           .Bytes(1, "F")
                           .Bytes(4, "a")
                           .Bytes(5, "b")
                           .Bytes(10, "mine")
                           .Add(7, Node("Relu", {"a"}, {"b"}));
  OnnxGraph g;
  g.In("x").Add(Node("F", {"x"}, {"y"}, {}, "mine")).Out("y");
  const Message import = Message().Bytes(1, "mine").Int(2, 1);
  EXPECT_EQ(ErrorOf(g.Model(17, Message().Add(8, import).Add(25, body))), "");
  EXPECT_THAT(ErrorOf(g.Model(17, Message().Add(8, import).Add(25, body).Add(25, body))),
              HasSubstr("function 'F' of domain 'mine' is given twice"));
}

TEST(BadOnnx, WhatIsNoModelIsSaidSo) {
  EXPECT_THAT(ErrorOf(Message().Int(1, 8).Bytes(2, "pytorch").bytes()),
              HasSubstr("without a graph"));
}

// Attributes of no version of the operator, whether it has a handler or not.
TEST(BadOnnx, UnknownAttributesAreRefused) {
  const auto with = [](std::string_view type, const Message& attribute, int64_t opset = 17) {
    OnnxGraph g;
    g.In("x").Weight(Tensor64("a", {}, {0}));
    const std::vector<std::string> inputs = {"x", "a"};
    g.Add(Node(type, {inputs.begin(), inputs.begin() + (type == "CumSum" ? 2 : 1)}, {"y"},
               {attribute}));
    return ErrorOf(g.Out("y"), opset);
  };
  EXPECT_THAT(with("Relu", IntAttr("alpha", 1)),
              HasSubstr("op 0 (Relu): has an attribute 'alpha', which this operator does not"));
  EXPECT_THAT(with("LeakyRelu", FloatAttr("alph", 1)), HasSubstr("has an attribute 'alph'"));
  EXPECT_THAT(with("CumSum", IntAttr("reversed", 1)), HasSubstr("has an attribute 'reversed'"));
  EXPECT_THAT(with("CumSum", IntAttr("axis", 1)), HasSubstr("has an attribute 'axis'"));
  EXPECT_EQ(with("LeakyRelu", FloatAttr("alpha", 1)), "");
  EXPECT_EQ(with("Relu", IntsAttr("consumed_inputs", {0}), 5), "");
  EXPECT_EQ(with("Relu", IntAttr("is_test", 1), 6), "");
}

TEST(BadOnnx, NodesHaveTheirOutputs) {
  OnnxGraph none, three, six, constant;
  none.In("x").Add(Node("Relu", {"x"}, {})).Out("x");
  EXPECT_THAT(ErrorOf(none), HasSubstr("op 0 (Relu): has no output"));
  const Message labels = Message().Bytes(1, "classlabels_strings").Bytes(9, "a").Int(20, 8);
  three.In("x", 1, {1, 1});
  three.Add(Node("LinearClassifier", {"x"}, {"y", "s", "t"}, {labels}, "ai.onnx.ml")).Out("s");
  const Message import = Message().Bytes(1, "ai.onnx.ml").Int(2, 3);
  EXPECT_THAT(ErrorOf(three.Model(17, Message().Add(8, import))),
              HasSubstr("has 3 outputs; this operator gives at most 2"));
  six.In("x", 1, {1, 1, 2}).Weight(Tensor32("s", {1}, {1}));
  six.Add(Node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"y", "a", "b", "c", "d", "e"},
               {IntAttr("training_mode", 1)}));
  EXPECT_THAT(ErrorOf(six.Out("y")), HasSubstr("has 6 outputs; this operator gives at most 3"));
  constant.Add(Node("Constant", {"nobody"}, {"y"}, {FloatAttr("value_float", 1)})).Out("y");
  EXPECT_THAT(ErrorOf(constant), HasSubstr("has 1 inputs; this operator takes at most 0"));
}

TEST(BadOnnx, NodesHaveTheirInputs) {
  OnnxGraph relu, trailing, lists;
  relu.In("x").Add(Node("Relu", {"x", "x"}, {"y"})).Out("y");
  EXPECT_THAT(ErrorOf(relu), HasSubstr("op 0 (Relu): has 2 inputs; this operator takes at most 1"));
  // Names that say nothing are no inputs.
  trailing.In("x").Add(Node("Relu", {"x", "", ""}, {"y", ""})).Out("y");
  EXPECT_EQ(ErrorOf(trailing), "");
  lists.In("x").Add(Node("Sum", {"x", "x", "x", "x", "x"}, {"y"})).Out("y");
  EXPECT_EQ(ErrorOf(lists), "");
}

TEST(BadOnnx, GraphsLieInEachOtherToALimit) {
  const auto nested = [](int levels) {
    OnnxGraph inner, leaf;
    leaf.Add(Node("Relu", {"x"}, {"b"})).Out("b");
    inner = leaf;
    for (int i = 0; i < levels; ++i) {
      OnnxGraph g;
      g.Add(Node(
          "If", {"c"}, {"b"},
          {GraphAttr("then_branch", inner.message()), GraphAttr("else_branch", leaf.message())}));
      inner = i + 1 < levels ? g.Out("b") : g.In("x").In("c", 9, {}).Out("b");
    }
    return ErrorOf(inner);
  };
  EXPECT_EQ(nested(30), "");
  EXPECT_THAT(nested(80), HasSubstr("lie in each other more than 64 deep"));
  EXPECT_THAT(nested(120), HasSubstr("levels of graphs"));
}

// An input that the call of a function leaves out is no output of the function.
TEST(BadOnnx, FunctionsMakeTheirOutputs) {
  OnnxGraph g;
  g.In("x").Add(Node("f", {"x"}, {"y"}, {}, "own")).Out("y");
  const Message import = Message().Bytes(1, "own").Int(2, 1);
  Message function = Message().Bytes(1, "f").Bytes(4, "a").Bytes(4, "b").Bytes(5, "b");
  function.Bytes(10, "own").Add(7, Node("Relu", {"a"}, {"r"})).Add(9, Message().Int(2, 17));
  EXPECT_THAT(ErrorOf(g.Model(17, Message().Add(8, import).Add(25, function))),
              HasSubstr("the function does not make its output 'b'"));
}

// Functions inside each other, the inner ones with two calls each: what is wrong stands first, and
// what is missing for it is no further mistake.
TEST(BadOnnx, NodesOfFunctionsAreCounted) {
  constexpr int kLevels = 50, kDoubling = 20;
  OnnxGraph g;
  g.In("x").Add(Node("f0", {"x"}, {"y"}, {}, "own")).Out("y");
  Message more = Message().Add(8, Message().Bytes(1, "own").Int(2, 1));
  for (int level = 0; level < kLevels; ++level) {
    const std::string next = "f" + std::to_string(level + 1);
    Message function = Message().Bytes(1, "f" + std::to_string(level)).Bytes(4, "a").Bytes(5, "b");
    if (level + 1 == kLevels) {
      function.Add(7, Node("Relu", {"a"}, {"b"}));
    } else if (level + 1 < kLevels - kDoubling) {
      function.Add(7, Node(next, {"a"}, {"b"}, {}, "own"));
    } else {
      function.Add(7, Node(next, {"a"}, {"c"}, {}, "own"));
      function.Add(7, Node(next, {"c"}, {"b"}, {}, "own"));
    }
    function.Bytes(10, "own").Add(9, Message().Int(2, 17));
    function.Add(9, Message().Bytes(1, "own").Int(2, 1));
    more.Add(25, function);
  }
  const std::string error = ErrorOf(g.Model(17, more));
  EXPECT_THAT(error, HasSubstr("more than 1000000 nodes, those of functions counted in each call"));
  EXPECT_THAT(error, Not(HasSubstr("does not make its output")));
}

// A step of 0 must not be divided by.
TEST(BadOnnx, WindowsMove) {
  OnnxGraph g;
  g.In("x", 1, {1, 1, 4, 4}).Weight(Tensor32("w", {1, 1, 1, 1}, {1}));
  const Message same = Message().Bytes(1, "auto_pad").Bytes(4, "SAME_UPPER").Int(20, 3);
  g.Add(Node("Conv", {"x", "w"}, {"y"}, {IntsAttr("strides", {0, 0}), same})).Out("y", 1, {});
  const Model model = ModelOf(g.Model());
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(model);
  const Status status =
      compiled.ok()
          ? executor.RunValues(*compiled, {{"x", F32({1, 1, 4, 4}, std::vector<float>(16))}})
                .status()
          : compiled.status();
  EXPECT_THAT(status.ToString(), HasSubstr("stride 0"));
}

TEST(BadOnnx, SparseTensorsAreOfMeasure) {
  OnnxGraph g;
  const Message sparse = Message()
                             .Add(1, Tensor32("w", {1}, {1}))
                             .Add(2, Tensor64("", {1}, {0}))
                             .Int(3, int64_t{1} << 20)
                             .Int(3, int64_t{1} << 14);
  g.In("x").Raw(15, sparse).Add(Node("Add", {"x", "w"}, {"y"})).Out("y");
  EXPECT_THAT(ErrorOf(g), HasSubstr("bytes as a dense tensor; at most 2147483648"));
}

// External data.

std::string ErrorOfExternal(const std::string& location, const std::string& offset = "",
                            const std::string& length = "", const std::string& checksum = "") {
  const TempDir dir;
  fs::create_directories(dir.path() + "/model/inside");
  std::ofstream(dir.path() + "/model/w.bin") << "12345678";
  std::ofstream(dir.path() + "/outside.bin") << "12345678";
  std::ofstream(dir.path() + "/model/inside/w.bin") << "12345678";
  fs::create_symlink("../outside.bin", dir.path() + "/model/link.bin");
  fs::create_symlink("w.bin", dir.path() + "/model/near.bin");
  fs::create_symlink("inside", dir.path() + "/model/folder");
  fs::create_hard_link(dir.path() + "/outside.bin", dir.path() + "/model/second.bin");
  EXPECT_EQ(::mkfifo((dir.path() + "/model/pipe").c_str(), 0600), 0);
  const auto entry = [](std::string_view key, std::string_view value) {
    return Message().Bytes(1, key).Bytes(2, value);
  };
  Message w = TensorHead("w", 1, {2}).Int(14, 1).Add(13, entry("location", location));
  if (!offset.empty()) w.Add(13, entry("offset", offset));
  if (!length.empty()) w.Add(13, entry("length", length));
  if (!checksum.empty()) w.Add(13, entry("checksum", checksum));
  OnnxGraph g;
  g.In("x").Weight(w).Add(Node("Add", {"x", "w"}, {"y"})).Out("y");
  const std::string path = dir.path() + "/model/m.onnx";
  std::ofstream(path, std::ios::binary) << g.Model();
  const auto program = Program::Load(path);
  return program.ok() ? "" : program.status().ToString();
}

TEST(BadOnnx, ExternalDataLiesInTheFolderOfTheModel) {
  EXPECT_EQ(ErrorOfExternal("w.bin"), "");
  EXPECT_EQ(ErrorOfExternal("inside/../w.bin", "0", "8"), "");
  EXPECT_THAT(ErrorOfExternal("../outside.bin"), HasSubstr("outside of the model's folder"));
  EXPECT_THAT(ErrorOfExternal("inside/../../outside.bin"),
              HasSubstr("outside of the model's folder"));
  EXPECT_THAT(ErrorOfExternal("/etc/passwd"), HasSubstr("relative to the model"));
  EXPECT_THAT(ErrorOfExternal("nothing.bin"), HasSubstr("cannot open"));
  EXPECT_THAT(ErrorOfExternal("pipe"), HasSubstr("not a regular file"));
  EXPECT_THAT(ErrorOfExternal("w.bin", "4"), HasSubstr("8 bytes from byte 4"));
  EXPECT_THAT(ErrorOfExternal("w.bin", "18446744073709551615"), HasSubstr("are expected"));
  EXPECT_THAT(ErrorOfExternal("w.bin", "-1"), HasSubstr("is no number"));
  EXPECT_THAT(ErrorOfExternal("w.bin", "0", "4"), HasSubstr("has 4 bytes, 8 are expected"));
}

TEST(BadOnnx, ExternalDataIsNoLink) {
  EXPECT_EQ(ErrorOfExternal("inside/w.bin"), "");
  for (const char* link : {"link.bin", "near.bin", "folder/w.bin", "./folder/../near.bin"})
    EXPECT_THAT(ErrorOfExternal(link), HasSubstr("is a symbolic link")) << link;
  EXPECT_THAT(ErrorOfExternal("second.bin"), HasSubstr("has 2 names"));
}

TEST(BadOnnx, NamesOfExternalDataHaveNoNul) {
  for (const std::string_view name : {std::string_view("w.bin\0", 6), std::string_view("\0", 1),
                                      std::string_view("w.bin\0/../../outside.bin", 24)})
    EXPECT_THAT(ErrorOfExternal(std::string(name)), HasSubstr("has a NUL"));
}

// The digest of "12345678", as sha1sum says it.
TEST(BadOnnx, ChecksumsOfExternalDataAreCompared) {
  const std::string right = "7c222fb2927d828af22f592134e8932480637c0d";
  EXPECT_EQ(ErrorOfExternal("w.bin", "", "", right), "");
  EXPECT_EQ(ErrorOfExternal("w.bin", "", "", "7C222FB2927D828AF22F592134E8932480637C0D"), "");
  for (size_t i = 0; i < right.size(); ++i) {
    std::string wrong = right;
    wrong[i] = wrong[i] == '0' ? '1' : '0';
    EXPECT_THAT(ErrorOfExternal("w.bin", "", "", wrong), HasSubstr("has the SHA-1 " + right));
  }
  for (const char* text : {"7c222fb2", "no", "7c222fb2927d828af22f592134e8932480637c0g"})
    EXPECT_THAT(ErrorOfExternal("w.bin", "", "", text), HasSubstr("is no SHA-1 digest"));
}

TEST(BadOnnx, BytesAloneHaveNoExternalData) {
  OnnxGraph g;
  const Message w =
      TensorHead("w", 1, {2}).Int(14, 1).Add(13, Message().Bytes(1, "location").Bytes(2, "w.bin"));
  g.In("x").Weight(w).Add(Node("Add", {"x", "w"}, {"y"})).Out("y");
  EXPECT_THAT(ErrorOf(g), HasSubstr("not read from a file"));
}

// Wherever a file ends, and whichever byte of it is another, it is read or refused.
TEST(BadOnnx, DamagedFilesAreReadOrRefused) {
  OnnxGraph body, g = Small();
  body.In("i", 7, {}).In("c", 9, {}).In("v");
  body.Add(Node("Add", {"v", "w"}, {"v2"})).Add(Node("Identity", {"c"}, {"c2"}));
  body.Out("c2", 9, {}).Out("v2");
  g.Weight(Tensor64("m", {}, {3}));
  g.Add(Node("Loop", {"m", "", "s"}, {"l"}, {GraphAttr("body", body.message())})).Out("l");
  const std::string whole = g.Model();
  ASSERT_EQ(ErrorOf(whole), "");
  for (size_t n = 0; n < whole.size(); ++n) ErrorOf(whole.substr(0, n));
  std::mt19937 random(1);
  for (size_t i = 0; i < whole.size(); ++i)
    for (int k = 0; k < 8; ++k) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(random());
      ErrorOf(damaged);
    }
  for (int k = 0; k < 2000; ++k) {
    std::string noise = "\x08\x08";
    for (size_t n = random() % 200; n > 0; --n) noise.push_back(static_cast<char>(random()));
    ErrorOf(noise);
  }
}

}  // namespace
}  // namespace heddle::testing
