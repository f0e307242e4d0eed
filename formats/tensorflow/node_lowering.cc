#include "formats/tensorflow/node_lowering.h"

#include <algorithm>

#include "formats/tensorflow/types/op_types.h"

namespace heddle::tensorflow {

NodeLowering::NodeLowering(Lowering& l, const Node& node, Instance& instance, int at)
    : NodeMaker(l, node.index, &node, node.op), l_(l), node_(node), instance_(instance), at_(at) {}

void NodeLowering::SayProblem(const std::string& text) {
  l_.Problem(l_.Where(node_, instance_), ": ", text);
}

// --- inputs

size_t NodeLowering::inputs() const { return instance_.graph->links(at_).inputs.size(); }

int NodeLowering::Operand(size_t i) {
  const Links& links = instance_.graph->links(at_);
  if (i < codes_.size() && codes_[i] != kNoDraft) return codes_[i];
  if (i < links.inputs.size()) {
    const int v = l_.ValueOf(instance_, links.inputs[i], node_, links.names[i]);
    const DType held = dtype(v);
    const bool narrow = held == DType::kI8 || held == DType::kU8 || held == DType::kI16;
    return narrow && TakesNarrowIndices(node_.op, i) ? Wide(v) : v;
  }
  Problem("input ", i, " is not given");
  return NewVar(DType::kUnknown);
}

// Widens small integer types: heddle's operators take indices of 32 and 64 bits.
int NodeLowering::Wide(int v) {
  const auto known = ConstantInts(v);
  if (!known) return Cast(v, DType::kI32);
  const int made = HoldConstant(
      Tensor::Of(DType::kI32, shape(v), std::vector<int32_t>(known->begin(), known->end())));
  l_.facts(made).partial = l_.facts(v).partial;
  return made;
}

int NodeLowering::UnsignedType() {
  for (const Source& source : instance_.graph->links(at_).inputs) {
    const int v = Lowering::KnownValueOf(instance_, source), t = type(v);
    if (kind(v) == Kind::kTensor && (t == kUint16 || t == kUint32 || t == kUint64)) return t;
  }
  return kNoType;
}

int NodeLowering::In(size_t i) {
  const int v = Operand(i);
  // Range's step is a difference, not a position: its bits are not flipped.
  const bool is_step = i == 2 && node_.op == "Range";
  return is_step ? v : unsigned_.Operand(v);
}

int NodeLowering::AsResult(size_t output, int v) {
  const std::string_view op = node_.op;
  const bool is_position = output > 0 || op.starts_with("Arg") || op.ends_with("Bound");
  return unsigned_.Result(v, is_position,
                          op == "Max" || op == "Min" || op.find("Segment") != op.npos);
}

// Traces the value back: it may be changed if it is this graph's own list and each step has one
// reader.
bool NodeLowering::MayTake(size_t i) const {
  const NodeGraph& graph = *instance_.graph;
  if (i >= inputs()) return false;
  Source s = graph.links(at_).inputs[i];
  for (size_t steps = 0; steps <= graph.size(); ++steps) {
    if (graph.Uses(s) != 1) return false;
    if (s.node == Source::kArgument)
      return static_cast<size_t>(s.port) < instance_.given_away.size() &&
             instance_.given_away[static_cast<size_t>(s.port)];
    if (!s.is_node()) return false;
    const Node& made = graph.node(s.node);
    const auto& from = graph.links(s.node).inputs;
    if (made.op.starts_with("TensorList") || made.op == "EmptyTensorList") return true;
    // A loop carries a list of its own, which its Switch passes on to both sides.
    if (made.op == "Merge") return from.size() == 2;
    const bool is_alias = made.op == "Identity" || made.op == "Switch";
    if (!is_alias || from.empty()) return false;
    s = from[0];
  }
  return false;
}

Ints NodeLowering::RequiredInts(size_t i, std::string_view what) {
  if (auto ints = ConstantInts(In(i))) return *std::move(ints);
  Problem("input ", i, " (", what, ") must be known before a run");
  return {};
}

void NodeLowering::EncodeStrings() {
  std::vector<int> strings;
  std::vector<size_t> places;
  for (size_t i = 0; i < inputs(); ++i) {
    const int v = Operand(i);
    if (type(v) != kString || kind(v) != Kind::kTensor) continue;
    places.push_back(i);
    strings.push_back(v);
  }
  if (strings.empty()) return;
  std::vector<std::string_view> outs(strings.size(), "Codes");
  outs.push_back("Texts");
  const std::vector<int> made = MakeMany("string_encode", {{"X", strings}}, {}, outs);
  codes_.assign(inputs(), kNoDraft);
  for (size_t k = 0; k < strings.size(); ++k) {
    codes_[places[k]] = made[k];
    SetType(made[k], kInt64);
    SetShape(made[k], shape(strings[k]));
  }
  texts_ = made.back();
  SetType(texts_, kString);
}

// The strings of a result that the node's operator defines as strings.
int NodeLowering::Decoded(size_t output, int v) {
  if (DefinedType(node_.op, output, [this](std::string_view a) { return Find(a); }) != kString)
    return v;
  const int made = Make("string_decode", {{"Texts", {texts_}}, {"Codes", {v}}});
  SetType(made, kString);
  SetShape(made, shape(v));
  return made;
}

// --- attributes

const Attribute* NodeLowering::Find(std::string_view name) const {
  return AttributeIn(instance_, node_, name);
}

bool NodeLowering::Bool(std::string_view name, bool otherwise) const {
  const Attribute* a = Find(name);
  return a != nullptr && a->kind == Attribute::kBool ? a->i != 0 : otherwise;
}

int NodeLowering::Type(std::string_view name, int otherwise) const {
  const Attribute* a = Find(name);
  return a != nullptr && a->kind == Attribute::kType ? BaseType(a->i) : otherwise;
}

DType NodeLowering::TypeAttr(std::string_view name, DType otherwise) const {
  return StorageOf(Type(name, TypeOf(otherwise)));
}

std::vector<std::string> NodeLowering::StrList(std::string_view name) const {
  const Attribute* a = Find(name);
  if (a == nullptr) return {};
  return {a->strings.begin(), a->strings.end()};
}

Shape NodeLowering::ShapeAttr(std::string_view name) const {
  const Attribute* a = Find(name);
  return a != nullptr && a->kind == Attribute::kShape ? a->shape.shape : Shape::Unknown();
}

// --- variables

void NodeLowering::ExpectAlike(int v, std::string_view a, int w, std::string_view b) {
  const Shape &x = shape(v), &y = shape(w);
  if (!x.known_rank() || !y.known_rank()) return;
  bool alike = x.rank() == y.rank();
  for (int i = 0; alike && i < x.rank(); ++i) alike = x[i] < 0 || y[i] < 0 || x[i] == y[i];
  if (!alike)
    Problem(a, " has the shape ", x.ToString(), ", ", b, " ", y.ToString(), "; they must agree");
}

int NodeLowering::Handle(Kind kind, int target) {
  const int handle = NewVar(DType::kUnknown);
  VarFacts& facts = l_.facts(handle);
  facts.kind = kind;
  facts.type = kResource;
  facts.target = target;
  return handle;
}

void NodeLowering::SetKind(int v, Kind kind) {
  l_.facts(v).kind = kind;
  if (kind == Kind::kList) {
    l_.var(v).kind = ir::VarKind::kArray;
    l_.var(v).ranked = false;
  }
}

void NodeLowering::SetKnown(int v, Tensor value) {
  VarFacts& facts = l_.facts(v);
  if (facts.is_variable) return;
  facts.shape = value.shape();
  facts.value = std::make_shared<const Tensor>(std::move(value));
}

// --- constants

int NodeLowering::DataConstant(const TensorData& data, std::string_view name) {
  return l_.AddConstant(data, name);
}

// --- variables that are kept from run to run

int NodeLowering::HoldState(Tensor value) {
  const int type = TypeOf(value.dtype());
  return l_.AddConstant(std::move(value), type, StrCat(node_.name, "@state"));
}

int NodeLowering::Variable(size_t i) {
  const int v = In(i);
  const VarFacts& facts = l_.facts(v);
  if (facts.is_variable) return v;
  if (facts.kind == Kind::kResource && facts.target != kNoDraft) return facts.target;
  Problem("input ", i, " is no variable");
  return v;
}

void NodeLowering::Write(int variable, int value) {
  Emit("assign", {{"X", {value}}}, {}, {{"Out", {variable}}});
}

int NodeLowering::Snapshot(int v) {
  const int made = NewVar(dtype(v));
  Emit("assign", {{"X", {v}}}, {}, {{"Out", {made}}});
  l_.facts(made).type = l_.facts(v).type;
  l_.facts(made).shape = l_.facts(v).shape;
  l_.facts(made).kind = l_.facts(v).kind;
  l_.var(made).kind = l_.var(v).kind;
  return made;
}

// --- results

bool NodeLowering::Wants(size_t output) const {
  return instance_.graph->IsUsed({at_, static_cast<int>(output)});
}

// Sets a result's type to that of the operator's definition, whatever dtype was inferred.
void NodeLowering::SayDefinedType(size_t output, int v) {
  VarFacts& facts = l_.facts(v);
  DraftVar& var = l_.var(v);
  if (facts.kind != Kind::kTensor || var.kind != ir::VarKind::kTensor || facts.is_variable ||
      facts.data != nullptr || var.fed)
    return;
  const int type = DefinedType(node_.op, output, [this](std::string_view a) { return Find(a); });
  if (type == kNoType || StorageOf(type) == DType::kUnknown) return;
  var.dtype = StorageOf(type);
  facts.type = type;
}

bool NodeLowering::CheckOutputs(int64_t count, int64_t least) {
  if (count < least || count > kMostOutputs) {
    Problem("has ", count, " outputs, expected ", least, " to ", kMostOutputs);
    return false;
  }
  l_.listed_outputs_ += count;
  if (l_.listed_outputs_ <= kMostOutputsOfGraph) return true;
  Problem("has ", count, " outputs, with which the graph's operators have more than ",
          kMostOutputsOfGraph);
  return false;
}

void NodeLowering::Result(size_t output, int v) {
  v = AsResult(output, v);
  if (texts_ != kNoDraft) v = Decoded(output, v);
  VarFacts& facts = l_.facts(v);
  DraftVar& var = l_.var(v);
  SayDefinedType(output, v);
  if (facts.type == kNoType) facts.type = TypeOf(dtype(v));
  // A tensor has its name in the graph. In a function the function's name is put in front, and a
  // number is appended in further calls.
  const bool inside = !instance_.function.empty();
  bool& named = inside ? facts.inner_name : facts.exact_name;
  if (!named && !facts.exact_name && !facts.is_variable && facts.data == nullptr &&
      var.block == block()) {
    std::string name = output == 0 ? std::string(node_.name) : StrCat(node_.name, ":", output);
    if (inside) name = StrCat(instance_.function, "/", name);
    var.name = l_.FreshName(name);
    named = true;
  }
  std::vector<int>& values = instance_.values[static_cast<size_t>(at_)];
  if (values.size() <= output) values.resize(output + 1, kNoDraft);
  values[output] = v;
}

bool NodeLowering::Sees(int v) const {
  const int home = l_.var(v).block;
  int at = block();
  while (at > home) at = l_.draft().blocks[static_cast<size_t>(at)].parent;
  return at == home;
}

bool NodeLowering::IsOutside(int v) const {
  return l_.var(v).block == l_.draft().blocks[static_cast<size_t>(block())].parent;
}

}  // namespace heddle::tensorflow
