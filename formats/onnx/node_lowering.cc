#include "formats/onnx/node_lowering.h"

#include <algorithm>

#include "core/error.h"
#include "core/half.h"
#include "core/op_registry.h"
#include "core/shapes.h"

namespace heddle::onnx {

bool NodeLowering::Has(size_t i) const {
  if (i >= node_.inputs.size() || node_.inputs[i].empty()) return false;
  // The call of a function may leave out its input.
  for (const NameScope* s = around_.names; s != nullptr; s = s->outer)
    if (const auto found = s->vars.find(node_.inputs[i]); found != s->vars.end())
      return found->second != kNoDraft;
  return true;
}

int NodeLowering::Lookup(std::string_view name) {
  for (const NameScope* s = around_.names; s != nullptr; s = s->outer)
    if (const auto found = s->vars.find(name); found != s->vars.end()) return found->second;
  Problem("input '", name, "' is made by no node before it, nor is it given otherwise");
  // Said once.
  const int v = NewVar(DType::kUnknown);
  around_.names->vars.emplace(name, v);
  return v;
}

int NodeLowering::In(size_t i) { return Has(i) ? Lookup(node_.inputs[i]) : kNoDraft; }

int NodeLowering::Required(size_t i) {
  const int v = In(i);
  if (v != kNoDraft) return v;
  Problem("input ", i, " is not given");
  return NewVar(DType::kUnknown);
}

std::vector<int> NodeLowering::AllInputs(size_t from) {
  std::vector<int> all;
  for (size_t i = from; i < node_.inputs.size(); ++i) all.push_back(Required(i));
  return all;
}

const Tensor* NodeLowering::Constant(int v, int64_t max_count) {
  if (v == kNoDraft) return nullptr;
  VarFacts& facts = l_.facts(v);
  if (facts.value != nullptr)
    return facts.value->numel() <= max_count ? facts.value.get() : nullptr;
  if (facts.data == nullptr || facts.data->external || facts.unreadable || facts.type == kString)
    return nullptr;
  const auto count = facts.data->Count();
  if (!count.ok() || *count > max_count) return nullptr;
  auto made = MakeTensor(*facts.data);
  if (!made.ok()) {
    Problem(made.status().message());
    facts.unreadable = true;
    return nullptr;
  }
  facts.value = std::make_shared<const Tensor>(*std::move(made));
  return facts.value.get();
}

std::optional<Ints> NodeLowering::ConstantInts(int v) {
  const Tensor* t = Constant(v);
  if (t == nullptr) return std::nullopt;
  Ints ints;
  for (int64_t i = 0; i < t->numel(); ++i) {
    switch (t->dtype()) {
      case DType::kI64:
        ints.push_back(t->data<int64_t>()[i]);
        break;
      case DType::kI32:
        ints.push_back(t->data<int32_t>()[i]);
        break;
      case DType::kI16:
        ints.push_back(t->data<int16_t>()[i]);
        break;
      case DType::kI8:
        ints.push_back(t->data<int8_t>()[i]);
        break;
      case DType::kU8:
        ints.push_back(t->data<uint8_t>()[i]);
        break;
      case DType::kBool:
        ints.push_back(t->data<bool>()[i] ? 1 : 0);
        break;
      default:
        return std::nullopt;
    }
  }
  return ints;
}

std::optional<Floats> NodeLowering::ConstantFloats(int v) {
  const Tensor* t = Constant(v);
  if (t == nullptr) return std::nullopt;
  Floats floats;
  if (const auto ints = ConstantInts(v)) return Floats(ints->begin(), ints->end());
  for (int64_t i = 0; i < t->numel(); ++i) {
    switch (t->dtype()) {
      case DType::kF32:
        floats.push_back(t->data<float>()[i]);
        break;
      case DType::kF64:
        floats.push_back(t->data<double>()[i]);
        break;
      case DType::kF16:
        floats.push_back(static_cast<float>(static_cast<const float16*>(t->raw())[i]));
        break;
      case DType::kBF16:
        floats.push_back(static_cast<float>(static_cast<const bfloat16*>(t->raw())[i]));
        break;
      default:
        return std::nullopt;
    }
  }
  return floats;
}

int64_t NodeLowering::Int(std::string_view name, int64_t otherwise) const {
  const Attribute* a = Find(name);
  return a != nullptr && a->kind == Attribute::kInt ? a->i : otherwise;
}

double NodeLowering::Float(std::string_view name, double otherwise) const {
  const Attribute* a = Find(name);
  if (a != nullptr && a->kind == Attribute::kInt) return static_cast<double>(a->i);
  return a != nullptr && a->kind == Attribute::kFloat ? double{a->f}
                                                      : double{static_cast<float>(otherwise)};
}

std::string NodeLowering::Str(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = Find(name);
  return std::string(a != nullptr && a->kind == Attribute::kString ? a->s : otherwise);
}

Ints NodeLowering::IntList(std::string_view name) const {
  const Attribute* a = Find(name);
  if (a != nullptr && a->kind == Attribute::kInt) return {a->i};
  return a != nullptr ? a->ints : Ints{};
}

Floats NodeLowering::FloatList(std::string_view name) const {
  const Attribute* a = Find(name);
  return a != nullptr ? a->floats : Floats{};
}

DType NodeLowering::dtype(int v) const { return v == kNoDraft ? DType::kUnknown : l_.var(v).dtype; }

int NodeLowering::NewVar(DType dtype, std::string_view stem) {
  const std::string_view name = stem.empty() ? node_.op_type : stem;
  return l_.NewVar(l_.FreshName(StrCat(name, "/", l_.draft_.vars.size())), dtype);
}

void NodeLowering::ExpectDim(int v, int axis, int64_t size) {
  if (size <= 0 || axis < 0 || axis >= rank(v)) return;
  Shape& shape = l_.facts(v).shape;
  if (shape[axis] < 0) shape[axis] = size;
}

void NodeLowering::SetType(int v, int type) {
  l_.facts(v).typed = true;
  l_.facts(v).type = type;
  if (l_.var(v).dtype == DType::kUnknown) l_.var(v).dtype = StorageOf(type);
  if (type == kString && l_.facts(v).kind == Type::Kind::kTensor) {
    l_.var(v).kind = ir::VarKind::kRaw;
    l_.var(v).dtype = DType::kUnknown;
  }
}

void NodeLowering::SetKind(int v, Type::Kind kind, int element) {
  l_.facts(v).kind = kind;
  l_.facts(v).type = element;
  if (kind == Type::Kind::kSequence || kind == Type::Kind::kOptional)
    l_.var(v).kind = ir::VarKind::kArray;
}

bool NodeLowering::HasOperator(std::string_view type) { return FindOp(type) != nullptr; }

AttrValue NodeLowering::Converted(AttrValue value, const AttrValue& like, std::string_view name) {
  if (value.index() == like.index()) return value;
  if (const auto* b = std::get_if<bool>(&value)) {
    if (std::holds_alternative<int64_t>(like)) return static_cast<int64_t>(*b);
  } else if (const auto* i = std::get_if<int64_t>(&value)) {
    if (std::holds_alternative<bool>(like)) return *i != 0;
    if (std::holds_alternative<double>(like)) return static_cast<double>(*i);
    if (std::holds_alternative<Ints>(like)) return Ints{*i};
  } else if (const auto* ints = std::get_if<Ints>(&value)) {
    if (std::holds_alternative<Floats>(like)) return Floats(ints->begin(), ints->end());
    if (std::holds_alternative<Strings>(like) && ints->empty()) return Strings();
  } else if (const auto* f = std::get_if<double>(&value)) {
    if (std::holds_alternative<Floats>(like)) return Floats{*f};
  }
  Problem("attribute '", name, "' has a value of another type than expected");
  return like;
}

// The dtype in which the operator computes operands that it has no kernel for; kUnknown where it
// has one, or where none would do.
DType NodeLowering::WiderKernel(const OpDef& def, const Ins& ins) const {
  DType key = DType::kUnknown;
  const int wanted = def.kernel_key();
  for (size_t s = 0; s < def.inputs().size() && key == DType::kUnknown; ++s) {
    if (wanted >= 0 && static_cast<int>(s) != wanted) continue;
    for (const auto& [slot, vars] : ins)
      if (slot == def.inputs()[s].name && !vars.empty() && key == DType::kUnknown)
        key = dtype(vars[0]);
  }
  if (key == DType::kUnknown || def.kernel(key) != nullptr) return DType::kUnknown;
  using D = DType;
  std::vector<D> wider;
  switch (key) {
    case D::kF16:
    case D::kBF16:
      wider = {D::kF32, D::kF64};
      break;
    case D::kF32:
      wider = {D::kF64};
      break;
    case D::kBool:
      wider = {D::kU8, D::kI32, D::kI64, D::kF32};
      break;
    case D::kU8:
    case D::kI8:
    case D::kI16:
      wider = {D::kI32, D::kI64, D::kF32, D::kF64};
      break;
    case D::kI32:
      wider = {D::kI64, D::kF64};
      break;
    case D::kI64:
      wider = {D::kF64};
      break;
    default:
      break;
  }
  for (D d : wider)
    if (def.kernel(d) != nullptr) return d;
  return D::kUnknown;
}

DraftOp& NodeLowering::Emit(std::string_view type, Ins ins, Attrs attrs,
                            std::vector<std::pair<std::string_view, std::vector<int>>> outs) {
  const OpDef* def = FindOp(type);
  for (auto& [name, value] : attrs) {
    const int a = def == nullptr ? -1 : def->FindAttr(name);
    if (a >= 0)
      value = Converted(std::move(value), def->attrs()[static_cast<size_t>(a)].default_value, name);
  }
  std::erase_if(ins, [](const auto& slot) {
    return std::all_of(slot.second.begin(), slot.second.end(), [](int v) { return v == kNoDraft; });
  });
  for (const auto& [slot, vars] : ins)
    for (int v : vars)
      if (v != kNoDraft && l_.facts(v).data != nullptr) l_.var(v).persistable = true;
  DraftOp& op = l_.draft_.blocks[static_cast<size_t>(l_.block_)].ops.emplace_back();
  op.type = def == nullptr ? type : std::string_view(def->name());
  op.index = node_.index;
  op.source = &node_;
  op.inputs = std::move(ins);
  op.outputs = std::move(outs);
  op.attributes = std::move(attrs);
  return op;
}

std::vector<int> NodeLowering::MakeMany(std::string_view type, Ins ins, Attrs attrs,
                                        const std::vector<std::string_view>& outs) {
  const OpDef* def = FindOp(type);
  std::vector<int> made;
  if (def == nullptr) {
    Problem("needs heddle's operator ", type, ", which is not there");
    for (size_t i = 0; i < outs.size(); ++i) made.push_back(NewVar(DType::kUnknown));
    return made;
  }
  const DType wider = WiderKernel(*def, ins);
  DType narrow = DType::kUnknown;
  if (wider != DType::kUnknown) {
    const int key = def->kernel_key();
    for (auto& [slot, vars] : ins) {
      if (key >= 0 && narrow == DType::kUnknown &&
          slot == def->inputs()[static_cast<size_t>(key)].name)
        narrow = dtype(vars[0]);
      if (key < 0 && narrow == DType::kUnknown && !vars.empty()) narrow = dtype(vars[0]);
    }
    for (auto& [slot, vars] : ins)
      for (int& v : vars)
        if (v != kNoDraft && dtype(v) == narrow) v = Cast(v, wider);
  }
  // Outputs of the same name are one slot that takes a list.
  std::vector<std::pair<std::string_view, std::vector<int>>> slots;
  for (std::string_view out : outs) {
    made.push_back(NewVar(DType::kUnknown));
    if (!slots.empty() && slots.back().first == out)
      slots.back().second.push_back(made.back());
    else
      slots.emplace_back(out, std::vector<int>{made.back()});
  }
  const DraftOp& op = Emit(type, std::move(ins), std::move(attrs), std::move(slots));
  Infer(op, *def);
  if (made.size() == 1) FollowEntries(op, made[0]);
  for (int& v : made)
    if (wider != DType::kUnknown && dtype(v) == wider) v = Cast(v, narrow);
  return made;
}

int NodeLowering::Make(std::string_view type, Ins ins, Attrs attrs, std::string_view out) {
  return MakeMany(type, std::move(ins), std::move(attrs), {out})[0];
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
  l_.draft_.blocks[static_cast<size_t>(l_.block_)].ops.back().optional = true;
  if (const Shape& from = shape(plane); from.rank() == 4)
    l_.facts(made).shape = Shape({from[0], from[1], from[3]});
  l_.facts(made).plane = plane;
  return made;
}

int NodeLowering::Cast(int v, DType to) {
  if (dtype(v) == to) return v;
  return Make("cast", {{"X", {v}}},
              {{"in_dtype", dtype(v) == DType::kUnknown ? int64_t{5} : DTypeToProto(dtype(v))},
               {"out_dtype", DTypeToProto(to)}});
}

int NodeLowering::IntsConstant(const Ints& values, int rank) {
  Shape shape;
  if (rank > 0) shape.push_back(static_cast<int64_t>(values.size()));
  return TensorConstant(Tensor::Of(DType::kI64, shape, values), kInt64);
}

namespace {

template <typename T>
Tensor Filled(DType dtype, const Shape& shape, const Floats& values) {
  std::vector<T> typed;
  for (double v : values) typed.push_back(static_cast<T>(v));
  return Tensor::Of(dtype, shape, typed);
}

Tensor FloatTensor(DType dtype, const Shape& shape, const Floats& values) {
  Tensor t;
  VisitDType<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(
      dtype, [&](auto tag) { t = Filled<typename decltype(tag)::type>(dtype, shape, values); });
  if (t.initialized()) return t;
  std::vector<uint16_t> bits;
  for (double v : values) {
    uint16_t b = 0;
    const float16 half(static_cast<float>(v));
    const bfloat16 brain(static_cast<float>(v));
    std::memcpy(&b, dtype == DType::kF16 ? static_cast<const void*>(&half) : &brain, sizeof(b));
    bits.push_back(b);
  }
  return Tensor::Of(dtype, shape, bits);
}

}  // namespace

int NodeLowering::IntConstant(int64_t value, DType dtype) {
  Tensor t = Tensor::Empty(dtype, Shape());
  if (dtype == DType::kI64)
    *t.mutable_data<int64_t>() = value;
  else if (dtype == DType::kBool)
    *t.mutable_data<bool>() = value != 0;
  else
    t = FloatTensor(dtype, Shape(), {static_cast<double>(value)});
  return TensorConstant(std::move(t), TypeOf(dtype));
}

int NodeLowering::FloatConstant(double value, DType dtype) {
  if (dtype == DType::kBool) return IntConstant(value != 0 ? 1 : 0, dtype);
  return TensorConstant(FloatTensor(dtype, Shape(), {value}), TypeOf(dtype));
}

int NodeLowering::FloatsConstant(const Floats& values, DType dtype) {
  return TensorConstant(FloatTensor(dtype, Shape{static_cast<int64_t>(values.size())}, values),
                        TypeOf(dtype));
}

int NodeLowering::ShapeOf(int v) { return Cast(Make("shape", {{"Input", {v}}}), DType::kI64); }

int NodeLowering::TensorConstant(Tensor value, int type) {
  return l_.AddConstant(std::move(value), type, StrCat(node_.op_type, "/", l_.draft_.vars.size()));
}

int NodeLowering::StringsConstant(const Strings& values) {
  TensorData& data = l_.owned_.emplace_back();
  data.type = kString;
  data.dims = {static_cast<int64_t>(values.size())};
  for (const std::string& text : values) data.strings.push_back(l_.owned_texts_.emplace_back(text));
  return l_.AddConstant(data, StrCat(node_.op_type, "/", l_.draft_.vars.size()));
}

void NodeLowering::ResultConstant(const Attribute& a) {
  const std::string_view name = node_.outputs[0];
  int v = kNoDraft;
  const auto strings = [&](std::vector<std::string_view> texts, std::vector<int64_t> dims) {
    TensorData& data = l_.owned_.emplace_back();
    data.type = kString;
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
  const int input = Has(0) && !around_.names->vars.empty() ? In(0) : kNoDraft;
  VarFacts& facts = l_.facts(v);  // after In(), which may add a variable
  if (facts.type == kUndefinedType) facts.type = TypeOf(dtype(v));
  // Narrow types are held in wider ones; what is made of them mostly is of the same type.
  if (input != kNoDraft && facts.type == TypeOf(dtype(v)) && dtype(input) == dtype(v) &&
      type(input) != kUndefinedType && !facts.typed)
    facts.type = type(input);
  DraftVar& var = l_.var(v);
  const bool own = name.starts_with('\n');  // Lowering::OwnName
  if (!own && !facts.exact_name && around_.function == nullptr && var.block == l_.block_) {
    const bool reserved = l_.names_.contains(std::string(name));
    const bool is_output =
        l_.block_ == 0 && reserved && !l_.main_.vars.contains(name) &&
        std::any_of(l_.model_.graph.outputs.begin(), l_.model_.graph.outputs.end(),
                    [&](const ValueInfo& o) { return o.name == name; });
    var.name = is_output ? std::string(name) : l_.FreshName(name);
    facts.exact_name = true;
  }
  if (!around_.names->vars.emplace(name, v).second)
    Problem("output '", name, "' is made before, too");
}

int NodeLowering::NewBlock() {
  l_.draft_.blocks.emplace_back().parent = l_.block_;
  return static_cast<int>(l_.draft_.blocks.size() - 1);
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
    Problem("output '", output.name, "' of its graph is an input that the call leaves out");
    outputs.back() = NewVar(DType::kUnknown);
  }
  SwitchBlock(outer);
  return outputs;
}

}  // namespace heddle::onnx
