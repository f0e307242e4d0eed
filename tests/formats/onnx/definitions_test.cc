// Nodes drawn from the table of ONNX's definitions: types that it allows are read, and one that it
// does not is an error that names the operand, its type and those that are expected.
#include "formats/onnx/definitions/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "formats/lowering/type_list.h"
#include "heddle/heddle.h"
#include "tests/formats/onnx/onnx_bytes.h"

namespace heddle::testing {
namespace {

using formats::AllowedFor;
using formats::FileType;
using formats::Lists;
using formats::TakeWord;
using onnx::OpDefinition;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int kMostType = 26;

struct Input {
  std::string parameter;  // empty: it shares its type with no other
  std::string allowed;
  int type = 0;
  bool first = false;  // decides for its parameter
};

// A node of one definition with inputs of drawn types. Nothing: its inputs are not all tensors, or
// it has graphs.
class DrawnNode {
 public:
  DrawnNode(std::mt19937_64& random, std::string_view name, int64_t opset)
      : random_(random), opset_(opset) {
    const size_t colon = name.find(':');
    domain_ = colon == std::string_view::npos ? "" : name.substr(0, colon);
    op_ = colon == std::string_view::npos ? name : name.substr(colon + 1);
  }

  bool Draw() {
    const std::optional<OpDefinition> def = onnx::DefinitionOf(domain_, op_, opset_);
    if (!def) return false;
    std::map<std::string, int> bound;
    for (std::string_view words = def->inputs; !words.empty();) {
      std::string word(TakeWord(&words));
      const char kind = word.back();
      const bool repeated = kind == '+' || kind == '*';
      if (repeated || kind == '?') word.pop_back();
      if (word == "-") return false;
      const bool is_type = word.find_first_not_of("0123456789") == std::string::npos;
      const std::string allowed(is_type ? word : std::string(AllowedFor(word, def->types)));
      const size_t count = kind == '+' ? 1 + random_() % 3 : repeated ? random_() % 3 : 1;
      for (size_t k = 0; k < count; ++k) {
        const int type = DrawType(allowed);
        if (type == 0) return false;
        Input input;
        input.allowed = allowed;
        input.type = type;
        if (!is_type && kind != '*') {
          input.parameter = word;
          input.first = bound.count(word) == 0;
          input.type = bound.emplace(word, type).first->second;
        }
        inputs.push_back(input);
      }
    }
    for (std::string_view words = def->attributes; !words.empty();) {
      const std::string word(TakeWord(&words));
      if (word.back() != '!') continue;
      const std::string name = word.substr(0, word.find(':'));
      const int kind = std::stoi(word.substr(name.size() + 1));
      if (kind == 1) attributes_.push_back(FloatAttr(name, 1));
      if (kind == 2) attributes_.push_back(IntAttr(name, 1));
      if (kind == 3) attributes_.push_back(Message().Bytes(1, name).Bytes(4, "a").Int(20, 3));
      if (kind == 7) attributes_.push_back(IntsAttr(name, {1}));
      if (kind == 4) attributes_.push_back(TensorAttr(name, Tensor64("", {1}, {1})));
      if (kind == 5 || kind > 7) return false;
    }
    return true;
  }

  // What reading a model of the node says; empty: nothing.
  std::string Error() const {
    OnnxGraph graph;
    std::vector<std::string> names;
    for (size_t i = 0; i < inputs.size(); ++i) {
      names.push_back(StrCat("x", i));
      graph.In(names.back(), inputs[i].type, {2});
    }
    graph.Add(Node(op_, names, {"y"}, attributes_, domain_)).Out("y");
    Message domain = Message().Bytes(1, domain_).Int(2, opset_);
    const std::string model =
        domain_.empty() ? graph.Model(opset_) : graph.Model(17, Message().Add(8, domain));
    const auto program = Program::Parse(model, "drawn.onnx");
    return program.ok() ? "" : program.status().ToString();
  }

  // A type that this input may not have; 0: there is none.
  int WrongType(size_t i) {
    const Input& input = inputs[i];
    const bool alone = input.parameter.empty() || (input.first && !IsShared(i));
    for (int tries = 0; tries < 40; ++tries) {
      const int type = 1 + static_cast<int>(random_() % kMostType);
      if (alone ? !Lists(input.allowed, {type, false}) : type != input.type) return type;
    }
    return 0;
  }
  // Whether a later input has the same type parameter.
  bool IsShared(size_t i) const {
    for (size_t k = i + 1; k < inputs.size(); ++k)
      if (inputs[k].parameter == inputs[i].parameter) return true;
    return false;
  }
  std::string Text() const {
    std::string text = StrCat(domain_, ":", op_, " of opset ", opset_, " with");
    for (const Input& input : inputs) text += StrCat(" ", onnx::TypeName(input.type));
    return text;
  }

  std::vector<Input> inputs;

 private:
  int DrawType(const std::string& allowed) {
    for (int tries = 0; tries < 400; ++tries) {
      const int type = 1 + static_cast<int>(random_() % kMostType);
      if (Lists(allowed, {type, false})) return type;
    }
    return 0;
  }

  std::mt19937_64& random_;
  std::string domain_, op_;
  int64_t opset_;
  std::vector<Message> attributes_;
};

// "input 1 ('x1') is int8, expected …"
const char* const kTypeError = "input [0-9]+ \\('x[0-9]+'\\) is [a-z0-9]+, expected ";

TEST(OnnxDefinitions, TypesAreThoseOfTheTable) {
  constexpr int kCount = 1500;
  std::mt19937_64 random(20260);
  const auto all = onnx::AllDefinitions();
  ASSERT_GT(all.size(), 500u);
  int wrong = 0;
  for (int drawn = 0; drawn < kCount;) {
    const auto& [name, since] = all[random() % all.size()];
    DrawnNode node(random, name, since);
    if (!node.Draw()) continue;
    ++drawn;
    EXPECT_FALSE(std::regex_search(node.Error(), std::regex(kTypeError)))
        << node.Text() << ": " << node.Error();
    if (node.inputs.empty()) continue;
    const size_t i = random() % node.inputs.size();
    const int type = node.WrongType(i);
    if (type == 0 || name == "Pad") continue;  // it takes a number of any type
    ++wrong;
    node.inputs[i].type = type;
    // The first input of a type parameter decides, so it may be a later one that is wrong.
    EXPECT_THAT(node.Error(), ContainsRegex(kTypeError)) << node.Text() << ", input " << i;
  }
  EXPECT_GT(wrong, kCount / 2);
}

std::string ErrorOf(OnnxGraph& graph, int64_t opset = 17) {
  const auto program = Program::Parse(graph.Out("y").Model(opset), "bad.onnx");
  return program.ok() ? "" : program.status().ToString();
}

TEST(OnnxDefinitions, ErrorsNameOperandTypeAndWhatIsExpected) {
  OnnxGraph sum, exp, late, kind, absent;
  sum.In("a", 1).In("b", 7).Add(Node("Add", {"a", "b"}, {"y"}));
  EXPECT_THAT(ErrorOf(sum), HasSubstr("block 0, op 0 (Add): input 1 ('b') is int64, expected "
                                      "float32 as of input 0"));
  exp.In("a", 7).Add(Node("Exp", {"a"}, {"y"}));
  EXPECT_THAT(ErrorOf(exp), HasSubstr("op 0 (Exp): input 0 ('a') is int64, expected float32, "
                                      "float16, float64, bfloat16"));
  // The type of a result follows from the definition of the operator that makes it.
  late.In("a", 1).Add(Node("Shape", {"a"}, {"s"})).Add(Node("Sqrt", {"s"}, {"y"}));
  EXPECT_THAT(ErrorOf(late), HasSubstr("op 1 (Sqrt): input 0 ('s') is int64, expected "));
  kind.In("a").Add(Node("Flatten", {"a"}, {"y"}, {FloatAttr("axis", 1)}));
  EXPECT_THAT(ErrorOf(kind),
              HasSubstr("attribute 'axis' is a float, where an integer is expected"));
  absent.In("a").Add(Node("Cast", {"a"}, {"y"}));
  EXPECT_THAT(ErrorOf(absent), HasSubstr("op 0 (Cast): has no attribute 'to'"));
}

// What was allowed once is read in files of that time alone.
TEST(OnnxDefinitions, VersionsDiffer) {
  for (const auto& [opset, allowed] : {std::pair{11, false}, {12, true}}) {
    OnnxGraph clip;
    clip.In("a", 7).Add(Node("Clip", {"a"}, {"y"}));
    EXPECT_EQ(ErrorOf(clip, opset).empty(), allowed) << opset << ErrorOf(clip, opset);
  }
}

}  // namespace
}  // namespace heddle::testing
