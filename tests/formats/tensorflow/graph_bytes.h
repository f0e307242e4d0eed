// Writes small TensorFlow graphs byte by byte, for tests of what reads them, and runs them.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/model_files.h"
#include "tests/formats/onnx/onnx_bytes.h"
#include "tests/support/program_builder.h"

namespace heddle::testing::tf {

constexpr int kF = 1, kI = 3, kB = 10, kResource = 20;  // DataType

// AttrValue
inline Message TypeValue(int type) { return Message().Int(6, type); }
inline Message IntValue(int64_t value) { return Message().Int(3, value); }
inline Message BoolValue(bool value) { return Message().Int(5, value ? 1 : 0); }
inline Message TextValue(std::string_view text) { return Message().Bytes(2, text); }
inline Message FunctionValue(std::string_view name) {
  return Message().Add(10, Message().Bytes(1, name));
}
inline Message ShapeMessage(const std::vector<int64_t>& dims) {
  Message shape;
  for (int64_t d : dims) shape.Add(2, Message().Int(1, d));
  return shape;
}
inline Message ShapeValue(const std::vector<int64_t>& dims) {
  return Message().Add(7, ShapeMessage(dims));
}
// TensorProto without values, then with raw ones.
inline Message TensorHeadOf(int type, const std::vector<int64_t>& dims) {
  return Message().Int(1, type).Add(2, ShapeMessage(dims));
}
inline Message TensorValue(const Message& tensor) { return Message().Add(8, tensor); }

using NamedValues = std::vector<std::pair<std::string, Message>>;

inline Message NodeOf(std::string_view op, std::string_view name,
                      const std::vector<std::string>& inputs, const NamedValues& attributes = {}) {
  Message node;
  node.Bytes(1, name).Bytes(2, op);
  for (const std::string& input : inputs) node.Bytes(3, input);
  for (const auto& [key, value] : attributes) node.Add(5, Message().Bytes(1, key).Add(2, value));
  return node;
}

inline Message FloatsNode(std::string_view name, const std::vector<int64_t>& dims,
                          const std::vector<float>& values,
                          const std::vector<std::string>& controls = {}) {
  return NodeOf("Const", name, controls,
                {{"dtype", TypeValue(kF)},
                 {"value", TensorValue(TensorHeadOf(kF, dims).Bytes(4, RawOf(values)))}});
}
inline Message IntsNode(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<int32_t>& values,
                        const std::vector<std::string>& controls = {}) {
  return NodeOf("Const", name, controls,
                {{"dtype", TypeValue(kI)},
                 {"value", TensorValue(TensorHeadOf(kI, dims).Bytes(4, RawOf(values)))}});
}
inline Message PlaceholderNode(std::string_view name, int type = kF) {
  return NodeOf("Placeholder", name, {}, {{"dtype", TypeValue(type)}});
}

// A function: arguments and results, then its nodes.
inline Message FunctionOf(std::string_view name, const std::vector<std::string>& inputs,
                          const std::vector<std::pair<std::string, std::string>>& results,
                          const std::vector<Message>& nodes,
                          const std::vector<std::string>& controls = {}) {
  Message signature, function;
  signature.Bytes(1, name);
  for (const std::string& input : inputs) signature.Add(2, Message().Bytes(1, input).Int(3, kF));
  for (const auto& [output, from] : results)
    signature.Add(3, Message().Bytes(1, output).Int(3, kF));
  function.Add(1, signature);
  for (const Message& node : nodes) function.Add(3, node);
  for (const auto& [output, from] : results)
    function.Add(4, Message().Bytes(1, output).Bytes(2, from));
  for (const std::string& control : controls)
    function.Add(6, Message().Bytes(1, control).Bytes(2, control));
  return function;
}

// GraphDef
class Graph {
 public:
  Graph& Add(const Message& node) {
    nodes_.Add(1, node);
    return *this;
  }
  Graph& Add(std::string_view op, std::string_view name, const std::vector<std::string>& inputs,
             const NamedValues& attributes = {}) {
    return Add(NodeOf(op, name, inputs, attributes));
  }
  Graph& Function(const Message& function) {
    library_.Add(1, function);
    return *this;
  }
  Message message() const {
    Message graph = nodes_;
    if (!library_.bytes().empty()) graph.Add(2, library_);
    return graph.Add(4, Message().Int(1, 2474));
  }
  std::string bytes() const { return message().bytes(); }

 private:
  Message nodes_, library_;
};

// A loop as old graphs hold it: `i` goes from 0 as long as it is less than `limit`; `body` is given
// by the nodes that make "next_<k>" of "body_<k>" for the variables, which begin as `first`.
inline void AddLoop(Graph* g, const std::vector<std::string>& first, const std::string& limit,
                    const std::string& frame = "loop") {
  const auto in_frame = [&](bool stays) {
    return NamedValues{
        {"T", TypeValue(kF)}, {"frame_name", TextValue(frame)}, {"is_constant", BoolValue(stays)}};
  };
  g->Add(IntsNode("zero", {}, {0}));
  std::vector<std::string> all = {"zero"};
  all.insert(all.end(), first.begin(), first.end());
  for (size_t k = 0; k < all.size(); ++k) {
    const std::string n = k == 0 ? "i" : std::to_string(k - 1);
    g->Add("Enter", "enter_" + n, {all[k]}, in_frame(false));
    g->Add("Merge", "merge_" + n, {"enter_" + n, "back_" + n});
    g->Add("Switch", "switch_" + n, {"merge_" + n, "goes_on"});
    g->Add("Identity", "body_" + n, {"switch_" + n + ":1"});
    g->Add("NextIteration", "back_" + n, {"next_" + n});
    g->Add("Exit", "exit_" + n, {"switch_" + n});
  }
  g->Add("Enter", "enter_limit", {limit}, in_frame(true));
  g->Add("Less", "less", {"merge_i", "enter_limit"});
  g->Add("LoopCond", "goes_on", {"less"});
  g->Add(IntsNode("one", {}, {1}, {"^body_i"}));
  g->Add("AddV2", "next_i", {"body_i", "one"});
}

inline Result<Model> LoadBytes(const std::string& bytes, const ProgramPart& part) {
  return ParseModel(bytes, "", "test.pb", part);
}
inline std::string ErrorOf(const std::string& bytes, const ProgramPart& part = {}) {
  const auto model = LoadBytes(bytes, part);
  return model.ok() ? "" : model.status().ToString();
}

inline Result<std::vector<Value>> TryRun(const Model& model, const std::vector<Feed>& feeds) {
  Executor executor({.threads = 1});
  CompileOptions options;
  for (const TensorInfo& output : model.program.outputs()) options.fetches.push_back(output.name);
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(model.program, model.scope, options));
  return executor.RunValues(compiled, feeds);
}

// The floats of each fetch.
inline std::vector<std::vector<float>> RunGraph(const std::string& bytes,
                                                const std::vector<Feed>& feeds,
                                                const std::vector<std::string>& fetches) {
  ProgramPart part;
  for (const Feed& feed : feeds) part.feeds.push_back(feed.name);
  part.fetches = fetches;
  const auto model = LoadBytes(bytes, part);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  std::vector<std::vector<float>> made(fetches.size());
  if (!model.ok()) return made;
  const auto values = TryRun(*model, feeds);
  EXPECT_TRUE(values.ok()) << values.status().ToString();
  if (!values.ok()) return made;
  for (size_t k = 0; k < values->size(); ++k) made[k] = Floats((*values)[k].tensor());
  return made;
}
inline std::vector<float> RunGraph(const Graph& g, const std::vector<Feed>& feeds,
                                   const std::string& fetch) {
  return RunGraph(g.bytes(), feeds, std::vector<std::string>{fetch})[0];
}

}  // namespace heddle::testing::tf
