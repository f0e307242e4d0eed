#include "formats/onnx/node_lowering.h"

#include <algorithm>

#include "core/error.h"
#include "core/half.h"
#include "core/op_registry.h"
#include "core/shapes.h"

namespace heddle::onnx {

bool NodeLowering::Has(size_t i) const {
  if (i >= node_.inputs.size() || node_.inputs[i].empty()) return false;
  // An input of a function is absent if the call leaves it out.
  for (const NameScope* s = around_.names; s != nullptr; s = s->outer)
    if (const auto found = s->vars.find(node_.inputs[i]); found != s->vars.end())
      return found->second != kNoDraft;
  return true;
}

int NodeLowering::Lookup(std::string_view name) {
  for (const NameScope* s = around_.names; s != nullptr; s = s->outer)
    if (const auto found = s->vars.find(name); found != s->vars.end()) return found->second;
  Problem("input '", name, "' is made by no node before it, nor is it given otherwise");
  // Declared, so that the error is reported once.
  const int v = NewVar(DType::kUnknown);
  around_.names->vars.emplace(name, v);
  return v;
}

int NodeLowering::In(size_t i) {
  if (!Has(i)) return kNoDraft;
  const int v = Lookup(node_.inputs[i]), operand = unsigned_.Operand(v);
  if (operand != v) SetType(operand, kInt64);
  return operand;
}

int NodeLowering::UnsignedType() {
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (!Has(i)) continue;
    const int t = type(Lookup(node_.inputs[i]));
    if (t == kUint16 || t == kUint32 || t == kUint64) return t;
  }
  return kUndefinedType;
}

int NodeLowering::AsResult(int v) {
  const int type = unsigned_.type();
  if (type == kUndefinedType) return v;
  // `typed`: the handler has set the type, of positions or truth values, which is not that of the
  // operands.
  const bool typed = l_.facts(v).typed;
  if (dtype(v) == DType::kUnknown && !typed && unsigned_.ChangesResults())
    draft_var(v).dtype = StorageOf(type);
  const bool is_position = typed && this->type(v) == kInt64;
  return unsigned_.Result(v, is_position, node_.op_type.starts_with("Reduce"));
}

int NodeLowering::Required(size_t i) {
  const int v = In(i);
  if (v != kNoDraft) return v;
  Problem("input ", i, " is not given");
  return NewVar(DType::kUnknown);
}

void NodeLowering::ExpectDim(int v, int axis, int64_t size) {
  if (size <= 0 || axis < 0 || axis >= rank(v) || l_.var(v).block != block()) return;
  Shape& shape = l_.facts(v).shape;
  if (shape[axis] < 0) shape[axis] = size;
}

void NodeLowering::SetType(int v, int type) {
  l_.facts(v).typed = true;
  l_.SetType(v, type);
}

void NodeLowering::SetKind(int v, Type::Kind kind, int element) {
  l_.facts(v).kind = kind;
  l_.facts(v).type = element;
  if (kind == Type::Kind::kSequence || kind == Type::Kind::kOptional)
    l_.var(v).kind = ir::VarKind::kArray;
}

int NodeLowering::Unary(std::string_view type, int x, Attrs attrs) {
  static constexpr std::string_view kElementwise[] = {
      "relu", "clip", "sigmoid", "tanh", "leaky_relu", "hard_sigmoid", "hard_swish", "swish",
      "elu",  "gelu", "mish",    "sqrt", "square",     "pow",          "scale"};
  if (IsPlane(x) &&
      std::find(std::begin(kElementwise), std::end(kElementwise), type) != std::end(kElementwise))
    return AsLine(Make(type, {{"X", {l_.facts(x).plane}}}, std::move(attrs)));
  return Make(type, {{"X", {x}}}, std::move(attrs));
}

int NodeLowering::AsPlane(int v) { return IsPlane(v) ? l_.facts(v).plane : Unsqueeze(v, {2}); }

int NodeLowering::AsLine(int plane) {
  const int made = Squeeze(plane, {2});
  l_.draft().blocks[static_cast<size_t>(block())].ops.back().optional = true;
  if (const Shape& from = shape(plane); from.rank() == 4)
    l_.facts(made).shape = Shape({from[0], from[1], from[3]});
  l_.facts(made).plane = plane;
  return made;
}

void NodeLowering::ResultConstant(const Attribute& a) {
  const std::string_view name = node_.outputs[0];
  int v = kNoDraft;
  const auto strings = [&](std::vector<std::string_view> texts, std::vector<int64_t> dims) {
    TensorData& data = l_.OwnTensor(kString);
    data.dims = std::move(dims);
    data.strings = std::move(texts);
    v = l_.AddConstant(data, name);
  };
  switch (a.kind) {
    case Attribute::kTensor:
      if (a.tensor != nullptr) v = l_.AddConstant(*a.tensor, name);
      break;
    case Attribute::kSparse: {
      auto dense = a.sparse == nullptr ? heddle::Result<Tensor>(InvalidArgument("has no value"))
                                       : MakeDense(*a.sparse);
      if (dense.ok()) v = l_.AddConstant(*std::move(dense), a.sparse->values.type, name);
      if (!dense.ok()) Problem(dense.status().message());
      break;
    }
    case Attribute::kFloat:
      v = FloatConstant(double{a.f}, DType::kF32);
      break;
    case Attribute::kFloats:
      v = FloatsConstant(a.floats, DType::kF32);
      break;
    case Attribute::kInt:
      v = IntConstant(a.i);
      break;
    case Attribute::kInts:
      v = IntsConstant(a.ints);
      break;
    case Attribute::kString:
      strings({a.s}, {});
      break;
    case Attribute::kStrings:
      strings(a.strings, {static_cast<int64_t>(a.strings.size())});
      break;
    default:
      break;
  }
  if (v == kNoDraft) {
    Problem("has no value that can be read");
    v = NewVar(DType::kUnknown);
  }
  Result(0, v);
}

void NodeLowering::Result(size_t output, int v) {
  if (!Wants(output)) return;
  const std::string_view name = node_.outputs[output];
  const int input = Has(0) && !around_.names->vars.empty() ? Lookup(node_.inputs[0]) : kNoDraft;
  v = AsResult(v);
  VarFacts& facts = l_.facts(v);  // after Lookup(), which may add a variable
  if (facts.type == kUndefinedType) facts.type = TypeOf(dtype(v));
  // Narrow types are held in wider ones: a result of the input's dtype is taken to be of the
  // input's type.
  if (input != kNoDraft && facts.type == TypeOf(dtype(v)) && dtype(input) == dtype(v) &&
      type(input) != kUndefinedType && !facts.typed)
    facts.type = type(input);
  DraftVar& var = l_.var(v);
  const bool own = name.starts_with('\n');  // Lowering::OwnName
  if (!own && !facts.exact_name && around_.function == nullptr && var.block == block()) {
    const bool reserved = l_.IsKept(std::string(name));
    const bool is_output = block() == 0 && reserved && !l_.main_.vars.contains(name) &&
                           l_.output_names_.contains(name);
    var.name = is_output ? std::string(name) : l_.FreshName(name);
    facts.exact_name = true;
  }
  if (!around_.names->vars.emplace(name, v).second)
    Problem("output '", name, "' is made before, too");
}

void NodeLowering::SayType(size_t output, formats::FileType said) {
  const auto found = around_.names->vars.find(node_.outputs[output]);
  if (!said.known() || found == around_.names->vars.end() || found->second == kNoDraft) return;
  const int v = found->second;
  VarFacts& facts = l_.facts(v);
  const bool is_sequence = facts.kind == Type::Kind::kSequence;
  if (is_sequence != said.is_sequence || (!is_sequence && facts.kind != Type::Kind::kTensor))
    return;
  if (is_sequence) {
    if (facts.type == kUndefinedType) facts.type = said.element;
  } else if (facts.type != said.element && said.element != kString &&
             (dtype(v) == DType::kUnknown || dtype(v) == StorageOf(said.element))) {
    l_.SetType(v, said.element);
  }
}

std::vector<int> NodeLowering::LowerBody(const Graph& graph, NameScope* names, int block) {
  std::vector<int> outputs;
  if (around_.depth >= Lowering::kMostDepth) {
    Problem("graphs and functions lie in each other more than ", Lowering::kMostDepth, " deep");
    for (size_t i = 0; i < graph.outputs.size(); ++i) outputs.push_back(NewVar(DType::kUnknown));
    return outputs;
  }
  names->outer = around_.names;
  l_.AddInitializers(graph, names);
  const int outer = SwitchBlock(block);
  Surroundings inside = around_;
  inside.names = names;
  ++inside.depth;
  l_.LowerNodes(graph.nodes, inside);
  NodeLowering body(l_, node_, inside, opset_);
  for (const ValueInfo& output : graph.outputs) {
    outputs.push_back(body.Lookup(output.name));
    if (outputs.back() != kNoDraft) continue;
    if (!l_.TooMany())
      Problem("output '", output.name, "' of its graph is an input that the call leaves out");
    outputs.back() = NewVar(DType::kUnknown);
  }
  SwitchBlock(outer);
  return outputs;
}

}  // namespace heddle::onnx
