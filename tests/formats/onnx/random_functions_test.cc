// Random models whose nodes call local functions, each with a model that does the same without any.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "heddle/functions.h"
#include "tests/formats/onnx/onnx_runs.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kFloatKind = 1, kIntKind = 2;  // of attributes
constexpr int64_t kOpset = 17;

// An attribute: a value, or that of the function's with this name.
struct Given {
  std::string name;
  int kind = kFloatKind;
  double value = 0;
  std::string of;  // not empty: the function's
};

struct Step {
  std::string type = {};
  std::vector<std::string> inputs = {}, outputs = {};  // empty: left out
  std::vector<Given> attributes = {};
  std::optional<Message> constant = {};  // of a Constant: its tensor
  struct Body* callee = nullptr;
};

struct Body {
  std::string name, overload;
  std::vector<std::string> inputs, outputs;
  bool optional = false;                                    // the last input may be left out
  std::map<std::string, std::optional<double>> attributes;  // with a default, or without
  std::vector<Step> steps;
};

Message AttributeOf(const std::string& name, int kind, double value) {
  return kind == kFloatKind ? FloatAttr(name, static_cast<float>(value))
                            : IntAttr(name, static_cast<int64_t>(value));
}

class Models {
 public:
  explicit Models(unsigned seed) : random_(seed) {
    const size_t count = 2 + Draw(5);
    for (size_t k = 0; k < count; ++k) MakeBody(k);
    OnnxGraph with, flat;
    for (OnnxGraph* g : {&with, &flat})
      g->In("x", 1, {4}).In("y", 1, {4}).Weight(Tensor32("scalar", {}, {-0.5F}));
    std::vector<std::string> values = {"x", "y"};
    for (size_t call = 0; call < 2 + Draw(3); ++call) {
      Step step = CallOf(values, "c" + std::to_string(call), nullptr);
      for (const std::string& v : step.outputs)
        if (!v.empty()) values.push_back(v);
      with.Add(NodeOf(step));
      std::map<std::string, std::string> names;
      for (const std::string& v : values) names[v] = v;
      names["scalar"] = "scalar";
      Inline(step, names, {}, "in" + std::to_string(call), &flat);
    }
    for (size_t k = 2; k < values.size(); ++k) {
      with.Out(values[k], 1, {4});
      flat.Out(values[k], 1, {4});
    }
    Message more = Message().Add(8, Message().Bytes(1, "own").Int(2, 1));
    for (const auto& body : bodies_) more.Add(25, FunctionOf(*body));
    with_ = with.Model(kOpset, more);
    flat_ = flat.Model(kOpset);
  }
  const std::string& with() const { return with_; }
  const std::string& flat() const { return flat_; }

 private:
  size_t Draw(size_t below) { return random_() % below; }
  const std::string& Pick(const std::vector<std::string>& values) {
    return values[Draw(values.size())];
  }

  void MakeBody(size_t k) {
    auto made = std::make_unique<Body>();
    Body& body = *made;
    body.name = "fn" + std::to_string(k);
    if (k > 0 && Draw(4) == 0) {
      body.overload = body.name;
      body.name = bodies_[Draw(k)]->name;
    }
    if (Draw(2) == 0) body.attributes["alpha"] = Draw(2) == 0 ? std::optional(0.25) : std::nullopt;
    if (Draw(2) == 0) body.attributes["axis"] = 0;
    body.inputs = {"a"};
    if (Draw(2) == 0) body.inputs.push_back("b");
    std::vector<std::string> values = body.inputs;
    body.optional = Draw(2) == 0;
    for (size_t i = 0; i < 2 + Draw(4); ++i) AddStep(&body, &values, "v" + std::to_string(i));
    if (body.optional) {
      body.inputs.push_back("low");
      body.steps.push_back({"Clip", {values.back(), "low"}, {"clipped"}, {}, {}, nullptr});
      values.push_back("clipped");
    }
    const size_t inputs = body.inputs.size() - body.optional;
    for (size_t i = 0; i < 1 + Draw(3); ++i) {
      const std::string& v = values[inputs + Draw(values.size() - inputs)];
      if (std::find(body.outputs.begin(), body.outputs.end(), v) == body.outputs.end())
        body.outputs.push_back(v);
    }
    bodies_.push_back(std::move(made));
  }

  // The function's attribute where it has one, else a value.
  Given Attribute(const Body& body, const std::string& name, int kind, double value) {
    if (body.attributes.contains(name)) return {name, kind, 0, name};
    return {name, kind, value, ""};
  }

  void AddStep(Body* body, std::vector<std::string>* values, const std::string& name) {
    const size_t kind = Draw(bodies_.empty() ? 6 : 9);
    auto& steps = body->steps;
    if (kind < 2) {
      steps.push_back({Draw(2) == 0 ? "Add" : "Sub", {Pick(*values), Pick(*values)}, {name}});
    } else if (kind == 2) {
      steps.push_back(
          {"LeakyRelu", {Pick(*values)}, {name}, {Attribute(*body, "alpha", kFloatKind, 0.5)}});
    } else if (kind == 3) {
      steps.push_back({"Split", {Pick(*values)}, {name + "_0", name + "_1"}});
      steps.push_back(
          {"Concat", {name + "_1", name + "_0"}, {name}, {Attribute(*body, "axis", kIntKind, 0)}});
    } else if (kind == 4 && body->attributes.contains("alpha") && body->attributes["alpha"]) {
      steps.push_back({"Constant", {}, {name + "_k"}, {{"value_float", kFloatKind, 0, "alpha"}}});
      steps.push_back({"Mul", {Pick(*values), name + "_k"}, {name}});
    } else if (kind <= 5) {
      steps.push_back({"Constant", {}, {name + "_k"}, {}, Tensor64("", {1}, {4})});
      steps.push_back({"TopK", {Pick(*values), name + "_k"}, {name + "_v", name + "_i"}});
      steps.push_back({"Cast", {name + "_i"}, {name}, {{"to", kIntKind, 1, ""}}});
      values->push_back(name + "_v");
    } else {
      steps.push_back(CallOf(*values, name, body));
      for (const std::string& v : steps.back().outputs)
        if (!v.empty()) values->push_back(v);
      return;
    }
    values->push_back(name);
  }

  Step CallOf(const std::vector<std::string>& values, const std::string& name, Body* caller) {
    Body& callee = *bodies_[Draw(bodies_.size())];
    Step step;
    step.type = callee.name;
    step.callee = &callee;
    for (size_t i = 0; i < callee.inputs.size() - callee.optional; ++i)
      step.inputs.push_back(Pick(values));
    // What a caller's caller leaves out is left out here, too.
    if (callee.optional && Draw(3) != 0 && (caller == nullptr || caller->optional))
      step.inputs.emplace_back(caller == nullptr ? "scalar" : "low");
    for (size_t i = 0; i < callee.outputs.size(); ++i)
      step.outputs.push_back(name + "_" + std::to_string(i));
    if (step.outputs.size() > 1 && Draw(3) == 0) step.outputs[Draw(step.outputs.size() - 1)] = "";
    for (const auto& [attribute, otherwise] : callee.attributes) {
      // One that nobody gives leaves out that of the nodes.
      if (Draw(2) == 0) continue;
      const bool passes =
          caller != nullptr && caller->attributes.contains(attribute) && Draw(2) == 0;
      step.attributes.push_back({attribute, attribute == "alpha" ? kFloatKind : kIntKind,
                                 attribute == "alpha" ? 0.125 * static_cast<double>(1 + Draw(5))
                                                      : -static_cast<double>(Draw(2)),
                                 passes ? attribute : ""});
    }
    return step;
  }

  static Message NodeOf(const Step& step) {
    std::vector<Message> attributes;
    for (const Given& a : step.attributes)
      attributes.push_back(a.of.empty() ? AttributeOf(a.name, a.kind, a.value)
                                        : ReferenceAttr(a.name, a.of, a.kind));
    if (step.constant) attributes.push_back(TensorAttr("value", *step.constant));
    Message node =
        Node(step.type, step.inputs, step.outputs, attributes, step.callee != nullptr ? "own" : "");
    if (step.callee != nullptr && !step.callee->overload.empty())
      node.Bytes(8, step.callee->overload);
    return node;
  }

  static Message FunctionOf(const Body& body) {
    Message f = Message().Bytes(1, body.name);
    for (const std::string& input : body.inputs) f.Bytes(4, input);
    for (const std::string& output : body.outputs) f.Bytes(5, output);
    for (const auto& [name, otherwise] : body.attributes) {
      if (otherwise)
        f.Add(11, AttributeOf(name, name == "alpha" ? kFloatKind : kIntKind, *otherwise));
      else
        f.Bytes(6, name);
    }
    for (const Step& step : body.steps) f.Add(7, NodeOf(step));
    f.Add(9, Message().Int(2, kOpset)).Add(9, Message().Bytes(1, "own").Int(2, 1));
    f.Bytes(10, "own");
    if (!body.overload.empty()) f.Bytes(13, body.overload);
    return f;
  }

  // Adds to the flat model what the step does. `names`: of values there.
  void Inline(const Step& step, std::map<std::string, std::string>& names,
              const std::map<std::string, double>& around, const std::string& prefix,
              OnnxGraph* flat) {
    const auto named = [&](const std::string& v) { return v.empty() ? v : names.at(v); };
    Step made = step;
    made.attributes.clear();
    std::map<std::string, double> values;
    for (const Given& a : step.attributes) {
      if (!a.of.empty() && !around.contains(a.of)) continue;
      const double value = a.of.empty() ? a.value : around.at(a.of);
      values[a.name] = value;
      made.attributes.push_back({a.name, a.kind, value, ""});
    }
    if (step.callee == nullptr) {
      for (std::string& v : made.inputs) v = named(v);
      for (std::string& v : made.outputs) v = names[v] = prefix + "/" + v;
      flat->Add(NodeOf(made));
      return;
    }
    const Body& body = *step.callee;
    for (const auto& [name, otherwise] : body.attributes)
      if (otherwise) values.try_emplace(name, *otherwise);
    std::map<std::string, std::string> inside;
    for (size_t i = 0; i < body.inputs.size(); ++i)
      inside[body.inputs[i]] = i < step.inputs.size() ? named(step.inputs[i]) : "";
    size_t k = 0;
    for (const Step& inner : body.steps)
      Inline(inner, inside, values, prefix + "." + std::to_string(k++), flat);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i].empty()) continue;
      const bool outermost = names.contains(step.outputs[i]);
      const std::string own = outermost ? step.outputs[i] : prefix + "/" + step.outputs[i];
      flat->Add(Node("Identity", {inside.at(body.outputs[i])}, {own}));
      names[step.outputs[i]] = own;
    }
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Body>> bodies_;
  std::string with_, flat_;
};

TEST(OnnxFunctions, RandomModelsAreThoseThatTheyStandFor) {
  const std::vector<Feed> feeds = {{"x", F32({4}, {0.5F, -1.25F, 2, -0.125F})},
                                   {"y", F32({4}, {-0.75F, 0.25F, 1.5F, -3})}};
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Models models(seed);
    std::vector<std::vector<float>> made[2];
    for (const bool flat : {false, true}) {
      const Model model = ModelOf(flat ? models.flat() : models.with());
      if (::testing::Test::HasFailure()) return;
      for (const Value& v : RunValuesOf(model, feeds)) made[flat].push_back(Floats(v.tensor()));
    }
    EXPECT_EQ(made[0], made[1]);
    if (::testing::Test::HasFailure()) return;
  }
}

// An output that depends on an input which is left out is an error where somebody asks for it.
TEST(OnnxFunctions, OutputsThatNobodyAsksForNeedNotBe) {
  const Message import = Message().Bytes(1, "own").Int(2, 1);
  Message function =
      Message().Bytes(1, "f").Bytes(4, "a").Bytes(4, "b").Bytes(5, "r").Bytes(5, "b");
  function.Bytes(10, "own").Add(7, Node("Relu", {"a"}, {"r"})).Add(9, Message().Int(2, 17));
  const auto model = [&](const std::vector<std::string>& outputs) {
    OnnxGraph g;
    g.In("x").Add(Node("f", {"x"}, outputs, {}, "own")).Out("y");
    return ParseModel(g.Model(17, Message().Add(8, import).Add(25, function)), "", "test.onnx");
  };
  EXPECT_TRUE(model({"y"}).ok());
  EXPECT_TRUE(model({"y", ""}).ok());
  EXPECT_THAT(model({"y", "z"}).status().message(), HasSubstr("does not make its output 'b'"));
}

TEST(OnnxFunctions, TheLibrarySaysSignaturesAndCalls) {
  const Message imports = Message().Bytes(1, "own").Int(2, 1);
  Message f = Message().Bytes(1, "f").Bytes(4, "a").Bytes(5, "b").Bytes(10, "own").Bytes(6, "beta");
  f.Add(11, FloatAttr("alpha", 0.5F)).Add(9, Message().Int(2, 17));
  f.Add(7, Node("LeakyRelu", {"a"}, {"b"}, {ReferenceAttr("alpha", "alpha", 1)}));
  Message h = Message().Bytes(1, "h").Bytes(4, "a").Bytes(5, "b").Bytes(10, "own").Bytes(13, "one");
  h.Add(9, imports).Add(7, Node("f", {"a"}, {"b"}, {}, "own"));
  OnnxGraph side, g;
  side.Add(Node("f", {"x"}, {"s"}, {}, "own")).Out("s");
  g.In("x").In("c", 9, {}).Add(Node("h", {"x"}, {"y"}, {}, "own").Bytes(8, "one"));
  g.Add(Node("If", {"c"}, {"z"},
             {GraphAttr("then_branch", side.message()), GraphAttr("else_branch", side.message())}));
  g.Out("y").Out("z");
  const Model model = ModelOf(g.Model(17, Message().Add(8, imports).Add(25, f).Add(25, h)));
  auto library = FunctionsOf(model.program);
  ASSERT_TRUE(library.ok());
  EXPECT_THAT(library->names(), ElementsAre("own.f", "own.h:one"));
  EXPECT_EQ(library->Signature("own.f"), "own.f(a) -> (b) {beta, alpha = 0.5}");
  EXPECT_EQ(library->CallsOf("own.f"), 3u);
  EXPECT_EQ(library->CallsOf("own.h:one"), 1u);
  EXPECT_FALSE(ToFunctionDef(*library, "own.f").ok());
}

}  // namespace
}  // namespace heddle::testing
