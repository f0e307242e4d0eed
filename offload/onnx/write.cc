#include "offload/onnx/write.h"

#include <algorithm>
#include <unordered_map>

#include "core/guard.h"
#include "offload/onnx/node.h"

namespace heddle::offload {

using ir::kNoVar;
using ir::VarId;
using to_onnx::ElementType;
using to_onnx::KnownFacts;

namespace {

template <typename Fn>
void ForVars(const std::vector<std::vector<VarId>>& slots, Fn&& fn) {
  for (const auto& slot : slots)
    for (const VarId v : slot)
      if (v != kNoVar) fn(v);
}

void WriteOrRefuse(to_onnx::NodeWriter* node) {
  if (node->holds_attributes())
    node->Refuse("variables hold its attributes");
  else if (!to_onnx::WriteOperator(*node))
    node->Refuse("there is no rule for it");
}

}  // namespace

// Operators first .. last - 1.
struct OnnxWriter::Part {
  size_t first, last;
  std::vector<VarId> inputs, outputs;
  KnownFacts facts;  // before the first operator
  // Outputs that ONNX does not make are left out: of operators by themselves nobody has said which
  // ones are read.
  bool some_outputs = false;
};

KnownFacts OnnxWriter::Declared() const {
  KnownFacts facts(program_.vars.size());
  for (const auto& [var, tensor] : parameters_)
    facts.of(var) = {tensor.dtype(), tensor.shape(), &tensor};
  for (const ir::Port& feed : program_.feeds)
    facts.of(feed.var) = {program_.vars[feed.var].dtype, program_.vars[feed.var].shape, nullptr};
  return facts;
}

Status OnnxWriter::PreparePart(const Part& part) {
  types_.clear();
  outline_.clear();
  to_onnx::ModelBuilder& model = model_.emplace();
  to_onnx::Places places;
  KnownFacts facts = part.facts;
  places.now.resize(program_.vars.size());
  places.final_name.resize(program_.vars.size());
  places.last_writer.assign(program_.vars.size(), -1);
  for (const VarId v : part.inputs) {
    const std::string& name = program_.vars[v].name;
    if (ElementType(facts.of(v).dtype) == 0)
      return Unimplemented("input '", name, "' is ", Name(facts.of(v).dtype),
                           ", which is not written");
    places.now[v] = name;
    model.TakeName(name);
    model.AddInput(name, facts.of(v).dtype, facts.of(v).shape);
    types_.emplace_back(v, facts.of(v).dtype);
  }
  for (const VarId v : part.outputs) {
    const std::string& name = program_.vars[v].name;
    if (!model.TakeName(name)) {
      if (part.some_outputs) continue;
      return Unimplemented("'", name, "' is an input and an output, and has one name");
    }
    places.final_name[v] = name;
  }
  const auto& ops = program_.blocks[0].ops;
  for (size_t at = part.first; at < part.last; ++at)
    ForVars(ops[at].outputs, [&](VarId v) {
      if (!places.final_name[v].empty()) places.last_writer[v] = static_cast<int>(at);
    });
  for (size_t at = part.first; at < part.last; ++at) {
    const ir::Op& op = ops[at];
    to_onnx::NodeWriter node(program_, op, static_cast<int>(at), &facts, &places, &model);
    WriteOrRefuse(&node);
    if (!node.why().empty())
      return Unimplemented("ONNX has no words for ", op.type(), ": ", node.why());
    node.Finish();
  }
  for (const VarId v : part.outputs) {
    const ir::Var& var = program_.vars[v];
    const bool made = !places.final_name[v].empty() && places.now[v] == var.name;
    if (!made && part.some_outputs) continue;
    if (!made)
      return Unimplemented("output '", var.name, "' is not what its operators make in ONNX");
    // Where the rules do not tell, what the file declares is all there is.
    const DType dtype = facts.of(v).dtype == DType::kUnknown ? var.dtype : facts.of(v).dtype;
    if (ElementType(dtype) == 0)
      return Unimplemented("output '", var.name, "' is ", Name(dtype), ", which is not written");
    model.AddOutput(var.name, dtype, facts.of(v).shape);
    types_.emplace_back(v, dtype);
  }
  if (!part.some_outputs) outline_ = model.Outline(Numbers());
  return Status::Ok();
}

std::unordered_map<const void*, uint32_t> OnnxWriter::Numbers() const {
  std::unordered_map<const void*, uint32_t> numbers;
  for (const auto& [var, tensor] : parameters_) numbers.emplace(tensor.raw(), var);
  return numbers;
}

Status OnnxWriter::Prepare() {
  return Guard([&] {
    Part part{0, program_.blocks[0].ops.size(), {}, {}, Declared(), false};
    for (const ir::Port& feed : program_.feeds) part.inputs.push_back(feed.var);
    for (const ir::Port& fetch : program_.fetches) part.outputs.push_back(fetch.var);
    return PreparePart(part);
  });
}

Result<std::string> OnnxWriter::Bytes() const {
  if (!model_) return Internal("nothing was prepared");
  Result<std::string> written = Internal("nothing was written");
  HEDDLE_RETURN_IF_ERROR(Guard([&] {
    written = model_->Serialize(program_.name);
    return Status::Ok();
  }));
  return written;
}

Result<std::string> OnnxWriter::Write() {
  HEDDLE_RETURN_IF_ERROR(Prepare());
  return Bytes();
}

void OnnxWriter::Walk() {
  if (!before_.empty()) return;
  KnownFacts facts = Declared();
  for (const ir::Op& op : program_.blocks[0].ops) {
    auto& now = before_.emplace_back();
    ForVars(op.inputs, [&](VarId v) { now.push_back(facts.of(v)); });
    std::vector<to_onnx::Facts> made = facts.Infer(op);
    size_t k = 0;
    for (const auto& slot : op.outputs)
      for (const VarId v : slot) {
        if (v != kNoVar && facts.of(v).value == nullptr) facts.of(v) = made[k];
        ++k;
      }
  }
}

void OnnxWriter::SetBefore(size_t at, KnownFacts* facts) const {
  size_t k = 0;
  ForVars(program_.blocks[0].ops[at].inputs, [&](VarId v) { facts->of(v) = before_[at][k++]; });
}

Result<std::string> OnnxWriter::WriteRange(size_t first, size_t last,
                                           const std::vector<VarId>& inputs,
                                           const std::vector<VarId>& outputs) {
  HEDDLE_RETURN_IF_ERROR(Guard([&] {
    Walk();
    Part part{first, last, inputs, outputs, Declared(), true};
    for (size_t at = last; at-- > first;)  // what holds before the first one counts
      SetBefore(at, &part.facts);
    return PreparePart(part);
  }));
  return Bytes();
}

std::string OnnxWriter::OutlineOfRanges() {
  std::string outline;
  const auto add = [&](const std::string& text) {
    outline += StrCat(text.size(), ":");
    outline += text;
  };
  const Status status = Guard([&] {
    Walk();
    const auto numbers = Numbers();
    KnownFacts facts = Declared();
    to_onnx::Places places;
    places.now.resize(program_.vars.size());
    places.final_name.resize(program_.vars.size());
    places.last_writer.assign(program_.vars.size(), -1);
    const auto& ops = program_.blocks[0].ops;
    for (size_t at = 0; at < ops.size(); ++at) {
      to_onnx::ModelBuilder model;
      SetBefore(at, &facts);
      ForVars(ops[at].inputs, [&](VarId v) {
        places.now[v] = facts.of(v).value == nullptr ? program_.vars[v].name : "";
        if (facts.of(v).value == nullptr) model.TakeName(program_.vars[v].name);
      });
      to_onnx::NodeWriter node(program_, ops[at], static_cast<int>(at), &facts, &places, &model);
      WriteOrRefuse(&node);
      add(node.why().empty() ? model.Outline(numbers) : node.why());
    }
    return Status::Ok();
  });
  add(status.ToString());
  return outline;
}

}  // namespace heddle::offload
