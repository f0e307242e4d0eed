// Random graphs whose nodes call functions, each with a graph that does the same without any.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "heddle/functions.h"
#include "tests/formats/tensorflow/function_bytes.h"

namespace heddle::testing::tf {
namespace {

constexpr int kSize = 4;  // of every tensor

// A value in a body: an argument, or an output of a node.
struct Ref {
  int node = -1;  // -1: an argument
  int port = 0;   // among all outputs, or all arguments
  std::string text;
};

struct Body;

// A node of a body. Attributes may be placeholders. `callee`: it calls this function.
struct Step {
  std::string op, name;
  std::vector<Ref> inputs;                                        // one for each value
  std::vector<std::string> texts;                                 // as the function's file has them
  std::vector<std::pair<std::string, std::string>> placeholders;  // attribute, the function's
  NamedValues attributes;
  const Body* callee = nullptr;
  const Body* otherwise = nullptr;  // of an If
  NamedValues given;                // to the callee, values or placeholders
};

struct Body {
  std::string name;
  std::vector<Argument> inputs, outputs;
  std::vector<size_t> input_sizes, output_sizes;
  std::vector<Attribute> attributes;
  std::vector<Step> steps;
  std::vector<Ref> results;  // one for each value
  size_t arity() const {
    size_t n = 0;
    for (size_t s : input_sizes) n += s;
    return n;
  }
};

// A random program twice: with functions, and with what they do in their place.
class Programs {
 public:
  explicit Programs(unsigned seed) : random_(seed) {
    const size_t count = 2 + Draw(5);
    for (size_t k = 0; k < count; ++k) MakeBody(k);
    with_.Add(PlaceholderNode("x")).Add(PlaceholderNode("y"));
    flat_.Add(PlaceholderNode("x")).Add(PlaceholderNode("y"));
    std::vector<std::string> a = {"x", "y"}, b = {"x", "y"};
    for (size_t call = 0; call < 2 + Draw(3); ++call) {
      const Body& body = *bodies_[Draw(2) == 0 ? count - 1 : Draw(count)];
      NamedValues given;
      std::map<std::string, Message> values;
      Give(body, nullptr, &given, &values);
      std::vector<std::string> in_a, in_b;
      for (size_t i = 0; i < body.arity(); ++i) {
        const size_t from = Draw(a.size());
        in_a.push_back(a[from]);
        in_b.push_back(b[from]);
      }
      const std::string name = "call" + std::to_string(call);
      const bool direct = Draw(2) == 0;
      if (direct)
        with_.Add(body.name, name, in_a, given);
      else
        with_.Add(Draw(2) == 0 ? "PartitionedCall" : "StatefulPartitionedCall", name, in_a,
                  {{"f", FunctionValue(body.name, given)}});
      const auto results = Inline(body, values, in_b, name);
      for (size_t k = 0; k < results.size(); ++k) {
        a.push_back(name + (k == 0 ? "" : ":" + std::to_string(k)));
        b.push_back(results[k]);
      }
    }
    for (const auto& body : bodies_) with_.Function(MessageOf(*body));
    for (size_t k = 2; k < a.size(); ++k) {
      const std::string out = "out" + std::to_string(k);
      with_.Add("Identity", out, {a[k]}, {{"T", TypeValue(kF)}});
      flat_.Add("Identity", out, {b[k]}, {{"T", TypeValue(kF)}});
      fetches_.push_back(out);
    }
  }

  const Graph& with() const { return with_; }
  const Graph& flat() const { return flat_; }
  const std::vector<std::string>& fetches() const { return fetches_; }
  const Body& last() const { return *bodies_.back(); }

 private:
  size_t Draw(size_t below) { return random_() % below; }

  // What a call says of the callee's attributes: all that have no default, some of the others.
  void Give(const Body& callee, const Body* caller, NamedValues* given,
            std::map<std::string, Message>* values) {
    for (const Attribute& a : callee.attributes) {
      if (!a.default_value.bytes().empty() && Draw(2) == 0) continue;
      const bool passes = caller != nullptr && Draw(2) == 0 &&
                          std::any_of(caller->attributes.begin(), caller->attributes.end(),
                                      [&](const Attribute& c) { return c.name == a.name; });
      Message value = passes              ? PlaceholderValue(a.name)
                      : a.name == "T"     ? TypeValue(kF)
                      : a.name == "alpha" ? FloatValue(0.125F * static_cast<float>(1 + Draw(6)))
                                          : IntValue(2);
      if (values != nullptr) (*values)[a.name] = value;
      given->emplace_back(a.name, std::move(value));
    }
  }

  void MakeBody(size_t k) {
    auto made = std::make_unique<Body>();
    Body& body = *made;
    body.name = "fn" + std::to_string(k);
    if (Draw(2) == 0)
      body.attributes.push_back({"T", "type", Draw(2) == 0 ? TypeValue(kF) : Message()});
    if (Draw(2) == 0)
      body.attributes.push_back({"alpha", "float", Draw(2) == 0 ? FloatValue(0.5F) : Message()});
    const bool has_number = Draw(2) == 0;
    if (has_number) body.attributes.push_back({"n", "int", Draw(2) == 0 ? IntValue(2) : Message()});
    const std::string type = Has(body, "T") && Draw(2) == 0 ? "T" : "";
    std::vector<Ref> values;
    for (size_t i = 0; i < 1 + Draw(2); ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      values.push_back({-1, static_cast<int>(values.size()), Draw(3) == 0 ? name + ":0" : name});
      body.inputs.push_back({name, type, "", ""});
      body.input_sizes.push_back(1);
    }
    if (has_number) {
      body.inputs.push_back({"list", type, "n", ""});
      body.input_sizes.push_back(2);
      for (int i = 0; i < 2; ++i)
        values.push_back({-1, static_cast<int>(values.size()), "list:" + std::to_string(i)});
    }
    for (size_t i = 0; i < 2 + Draw(4); ++i) AddSteps(&body, &values);
    for (size_t i = 0; i < 1 + Draw(3); ++i) {
      const Ref& from = values[values.size() - 1 - Draw(std::min<size_t>(values.size(), 4))];
      body.outputs.push_back({"r" + std::to_string(i), type, "", from.text});
      body.output_sizes.push_back(1);
      body.results.push_back(from);
    }
    if (has_number && Draw(2) == 0) {
      Step& pair = NewStep(&body, "IdentityN");
      Take(&pair, values);
      Take(&pair, values);
      pair.attributes = {{"T", TypesValue({kF, kF})}};
      body.outputs.insert(body.outputs.begin(), {"pair", type, "n", pair.name + ":output"});
      body.output_sizes.insert(body.output_sizes.begin(), 2);
      const int node = static_cast<int>(body.steps.size() - 1);
      body.results.insert(body.results.begin(), {{node, 0, ""}, {node, 1, ""}});
    }
    bodies_.push_back(std::move(made));
  }

  static bool Has(const Body& body, std::string_view attribute) {
    for (const Attribute& a : body.attributes)
      if (a.name == attribute) return true;
    return false;
  }
  Step& NewStep(Body* body, std::string op) {
    Step& step = body->steps.emplace_back();
    step.op = std::move(op);
    step.name = "n" + std::to_string(body->steps.size());
    return step;
  }
  void Take(Step* step, const std::vector<Ref>& values) {
    step->inputs.push_back(values[Draw(values.size())]);
    step->texts.push_back(step->inputs.back().text);
  }
  void TakeOutput(Step* step, const Body& body, int port, std::string text) {
    step->inputs.push_back({static_cast<int>(body.steps.size()) - 2, port, std::move(text)});
    step->texts.push_back(step->inputs.back().text);
  }
  // The type of a node's operands: said, or the function's.
  void SayType(Body* body, const std::string& attribute = "T") {
    Step& step = body->steps.back();
    if (Has(*body, "T") && Draw(2) == 0)
      step.placeholders.emplace_back(attribute, "T");
    else
      step.attributes.emplace_back(attribute, TypeValue(kF));
  }
  void Offer(const Body& body, std::vector<Ref>* values, int port, const std::string& output) {
    values->push_back(
        {static_cast<int>(body.steps.size() - 1), port, body.steps.back().name + ":" + output});
  }

  // Adds a node, or some that belong together.
  void AddSteps(Body* body, std::vector<Ref>* values) {
    const size_t kind = Draw(bodies_.empty() ? 7 : 11);
    if (kind < 2) {
      Step& step = NewStep(body, Draw(2) == 0 ? "AddV2" : "Sub");
      Take(&step, *values);
      Take(&step, *values);
      SayType(body);
      Offer(*body, values, 0, "z:0");
    } else if (kind == 2) {
      Take(&NewStep(body, "Tanh"), *values);
      SayType(body);
      Offer(*body, values, 0, "y:0");
    } else if (kind == 3) {
      Take(&NewStep(body, "LeakyRelu"), *values);
      SayType(body);
      if (Has(*body, "alpha")) body->steps.back().placeholders.emplace_back("alpha", "alpha");
      Offer(*body, values, 0, "activations:0");
    } else if (kind == 4) {  // the second output of a list, then the list itself
      Take(&NewStep(body, "Unpack"), *values);
      body->steps.back().attributes = {{"num", IntValue(kSize)}, {"axis", IntValue(0)}};
      SayType(body);
      const std::string unpack = body->steps.back().name;
      Step& pack = NewStep(body, "Pack");
      if (Draw(2) == 0) {
        for (int k : {2, 0, 3, 1})
          TakeOutput(&pack, *body, k, unpack + ":output:" + std::to_string(k));
      } else {
        for (int k = 0; k < kSize; ++k) TakeOutput(&pack, *body, k, "");
        pack.texts = {unpack + ":output"};
      }
      pack.attributes = {{"N", IntValue(kSize)}};
      SayType(body);
      Offer(*body, values, 0, "output:0");
    } else if (kind == 5) {  // two outputs of different types
      Take(&NewStep(body, "TopKV2"), *values);
      body->steps.back().name += "k";
      const std::string name = body->steps.back().name;
      Step k = body->steps.back();
      body->steps.pop_back();
      Step& number = NewStep(body, "Const");
      number.attributes = {{"dtype", TypeValue(kI)},
                           {"value", TensorValue(TensorHeadOf(kI, {}).Bytes(
                                         4, RawOf(std::vector<int32_t>{kSize})))}};
      const std::string constant = number.name;
      body->steps.push_back(std::move(k));
      TakeOutput(&body->steps.back(), *body, 0, constant + ":output:0");
      SayType(body);
      Offer(*body, values, 0, "values:0");
      Step& cast = NewStep(body, "Cast");
      TakeOutput(&cast, *body, 1, name + ":indices:0");
      cast.attributes = {{"SrcT", TypeValue(kI)}};
      SayType(body, "DstT");
      Offer(*body, values, 0, "y:0");
    } else if (kind == 6) {
      Step& pair = NewStep(body, "IdentityN");
      Take(&pair, *values);
      Take(&pair, *values);
      pair.attributes = {{"T", TypesValue({kF, kF})}};
      Offer(*body, values, 1, "output:1");
      Offer(*body, values, 0, "output:0");
    } else {
      AddCall(body, values, kind == 10);
    }
  }

  void AddCall(Body* body, std::vector<Ref>* values, bool as_branches) {
    const Body& callee = *bodies_[Draw(bodies_.size())];
    if (as_branches) {
      Step& more = NewStep(body, "Greater");
      Take(&more, *values);
      Take(&more, *values);
      SayType(body);
      Step& axis = NewStep(body, "Const");
      axis.attributes = {
          {"dtype", TypeValue(kI)},
          {"value", TensorValue(TensorHeadOf(kI, {1}).Bytes(4, RawOf(std::vector<int32_t>{0})))}};
      Step& any = NewStep(body, "Any");
      const int at = static_cast<int>(body->steps.size());
      any.inputs = {{at - 3, 0, ""}, {at - 2, 0, ""}};
      any.texts = {body->steps[body->steps.size() - 3].name + ":z:0",
                   body->steps[body->steps.size() - 2].name + ":output:0"};
    }
    const bool direct = !as_branches && Draw(2) == 0;
    Step& step = NewStep(body, as_branches ? "If" : direct ? callee.name : "PartitionedCall");
    step.callee = &callee;
    if (as_branches)
      TakeOutput(&step, *body, 0, body->steps[body->steps.size() - 2].name + ":output:0");
    for (size_t i = 0; i < callee.arity(); ++i) Take(&step, *values);
    Give(callee, body, &step.given, nullptr);
    if (as_branches) {
      // Another instance of it.
      step.otherwise = &callee;
      step.attributes = {{"then_branch", FunctionValue(callee.name, step.given)},
                         {"else_branch", FunctionValue(callee.name, Swapped(step.given))}};
    } else if (direct) {
      step.attributes = step.given;
    } else {
      step.attributes = {{"f", FunctionValue(callee.name, step.given)}};
    }
    int port = 0;
    for (size_t i = 0; i < callee.outputs.size(); ++i)
      for (size_t k = 0; k < callee.output_sizes[i]; ++k, ++port)
        Offer(*body, values, port,
              direct ? callee.outputs[i].name + ":" + std::to_string(k)
                     : "output:" + std::to_string(port));
  }
  static NamedValues Swapped(NamedValues given) {
    for (auto& [name, value] : given)
      if (name == "alpha") value = FloatValue(0.75F);
    return given;
  }

  Message MessageOf(const Body& body) const {
    std::vector<Message> nodes;
    for (const Step& step : body.steps) {
      NamedValues attributes = step.attributes;
      for (const auto& [attribute, of] : step.placeholders)
        attributes.emplace_back(attribute, PlaceholderValue(of));
      nodes.push_back(NodeOf(step.op, step.name, step.texts, attributes));
    }
    return DefinitionOf(body.name, body.inputs, body.outputs, body.attributes, nodes);
  }

  using Values = std::map<std::string, Message>;

  static Values Called(const Body& callee, const NamedValues& given, const Values& around) {
    Values values;
    for (const Attribute& a : callee.attributes) values[a.name] = a.default_value;
    for (const auto& [name, value] : given)
      values[name] = value.bytes() == PlaceholderValue(name).bytes() ? around.at(name) : value;
    return values;
  }

  // Adds the nodes of a body to the flat graph; its results there.
  std::vector<std::string> Inline(const Body& body, Values values,
                                  const std::vector<std::string>& arguments,
                                  const std::string& prefix) {
    for (const Attribute& a : body.attributes) values.try_emplace(a.name, a.default_value);
    std::vector<std::vector<std::string>> made(body.steps.size());
    const auto at = [&](const Ref& ref) {
      if (ref.node < 0) return arguments[static_cast<size_t>(ref.port)];
      const auto& outputs = made[static_cast<size_t>(ref.node)];
      return outputs[static_cast<size_t>(ref.port)];
    };
    for (size_t i = 0; i < body.steps.size(); ++i) {
      const Step& step = body.steps[i];
      const std::string name = prefix + "/" + step.name;
      std::vector<std::string> inputs;
      for (const Ref& ref : step.inputs) inputs.push_back(at(ref));
      if (step.callee != nullptr && step.otherwise == nullptr) {
        made[i] = Inline(*step.callee, Called(*step.callee, step.given, values), inputs, name);
        continue;
      }
      if (step.callee != nullptr) {
        const std::string condition = inputs[0];
        inputs.erase(inputs.begin());
        const auto yes =
            Inline(*step.callee, Called(*step.callee, step.given, values), inputs, name + "/yes");
        const auto no = Inline(*step.callee, Called(*step.callee, Swapped(step.given), values),
                               inputs, name + "/no");
        for (size_t k = 0; k < yes.size(); ++k) {
          made[i].push_back(name + "/" + std::to_string(k));
          flat_.Add("SelectV2", made[i].back(), {condition, yes[k], no[k]}, {{"T", TypeValue(kF)}});
        }
        continue;
      }
      NamedValues attributes = step.attributes;
      for (const auto& [attribute, of] : step.placeholders)
        attributes.emplace_back(attribute, values.at(of));
      flat_.Add(step.op, name, inputs, attributes);
      for (int k = 0; k < kSize; ++k)
        made[i].push_back(k == 0 ? name : name + ":" + std::to_string(k));
    }
    std::vector<std::string> results;
    for (const Ref& ref : body.results) results.push_back(at(ref));
    return results;
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Body>> bodies_;
  Graph with_, flat_;
  std::vector<std::string> fetches_;
};

const std::vector<Feed>& Feeds() {
  static const std::vector<Feed> feeds = {{"x", F32({kSize}, {0.5F, -1.25F, 2, -0.125F})},
                                          {"y", F32({kSize}, {-0.75F, 0.25F, 1.5F, -3})}};
  return feeds;
}

TEST(TensorflowFunctions, RandomProgramsAreThoseThatTheyStandFor) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Programs p(seed);
    const auto made = RunGraph(p.with().bytes(), Feeds(), p.fetches());
    EXPECT_EQ(made, RunGraph(p.flat().bytes(), Feeds(), p.fetches()));
    if (::testing::Test::HasFailure()) break;
  }
}

// What is written of an instance is what it computes.
TEST(TensorflowFunctions, InstancesAreWrittenAsGraphs) {
  size_t written = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Programs p(seed);
    ProgramPart part;
    part.fetches = p.fetches();
    const auto model = LoadBytes(p.with().bytes(), part);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    auto library = FunctionsOf(model->program);
    ASSERT_TRUE(library.ok()) << library.status().ToString();
    for (const std::string& name : library->names()) {
      std::vector<NamedFunctionValue> given(3);
      given[0].name = "T";
      given[0].value.kind = heddle::FunctionValue::Kind::kType;
      given[0].value.i = kF;
      given[1].name = "alpha";
      given[1].value.kind = heddle::FunctionValue::Kind::kFloat;
      given[1].value.f = 0.25;
      given[2].name = "n";
      given[2].value.kind = heddle::FunctionValue::Kind::kInt;
      given[2].value.i = 2;
      const auto handle = library->Instantiate(name, given);
      ASSERT_TRUE(handle.ok()) << handle.status().ToString();
      const auto graph = ToGraphDef(*library, *handle);
      ASSERT_TRUE(graph.ok()) << graph.status().ToString();
      // The same function called by a graph of one node, whose definition was written and read.
      const FunctionBody& body = library->Body(*handle);
      Graph call;
      std::vector<std::string> arguments;
      std::vector<Feed> feeds;
      for (const FunctionPort& port : body.arguments) {
        arguments.push_back(port.name.substr(0, port.name.find(':')) +
                            (port.name.find(':') == std::string::npos ? "" : "_") +
                            port.name.substr(std::min(port.name.size(), port.name.find(':') + 1)));
        if (port.name.find(':') == std::string::npos) arguments.back() = port.name;
        call.Add(PlaceholderNode(arguments.back()));
        feeds.push_back({arguments.back(), Feeds()[feeds.size() % 2].value.tensor()});
      }
      call.Add("PartitionedCall", "call", arguments,
               {{"f", FunctionValue(name, {{"T", TypeValue(kF)},
                                           {"alpha", FloatValue(0.25F)},
                                           {"n", IntValue(2)}})}});
      std::string library_bytes;
      for (const std::string& each : library->names())
        wire::AppendBytesField(1, *ToFunctionDef(*library, each), &library_bytes);
      std::string bytes = call.bytes();
      wire::AppendBytesField(2, library_bytes, &bytes);
      std::vector<std::string> fetches, calls;
      for (const FunctionPort& port : body.results) {
        calls.push_back(calls.empty() ? "call" : "call:" + std::to_string(calls.size()));
        std::string fetch = port.name;
        std::replace(fetch.begin(), fetch.end(), ':', '_');
        fetches.push_back(fetch);
      }
      EXPECT_EQ(RunGraph(*graph, feeds, fetches), RunGraph(bytes, feeds, calls));
      ++written;
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(written, 500u);
}

}  // namespace
}  // namespace heddle::testing::tf
