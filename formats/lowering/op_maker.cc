#include "formats/lowering/op_maker.h"

#include <algorithm>
#include <cstring>

#include "core/half.h"
#include "core/interrupts.h"
#include "core/op_registry.h"
#include "core/shapes.h"

namespace heddle::formats {

std::string OpMaker::FreshStem(std::string_view stem) const {
  return StrCat(stem.empty() ? stem_ : stem, "/", graph_.draft().vars.size());
}

int OpMaker::NewVar(DType dtype, std::string_view stem) {
  return graph_.NewVar(graph_.FreshName(FreshStem(stem)), dtype);
}

const Tensor* OpMaker::Constant(int v) {
  if (v == kNoDraft) return nullptr;
  ValueFacts& facts = graph_.known(v);
  if (facts.value != nullptr)
    return facts.value->numel() <= kMostLookedInto ? facts.value.get() : nullptr;
  if (facts.data == nullptr || facts.data->external || facts.unreadable ||
      !facts.data->MayBeLookedInto())
    return nullptr;
  auto made = MakeTensor(*facts.data);
  if (!made.ok()) {
    SayProblem(made.status().message());
    facts.unreadable = true;
    return nullptr;
  }
  facts.value = std::make_shared<const Tensor>(*std::move(made));
  return facts.value.get();
}

std::optional<Ints> OpMaker::ConstantInts(int v) {
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

std::optional<Floats> OpMaker::ConstantFloats(int v) {
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

int OpMaker::NumbersOf(int v) {
  const int made = Make("text_pool_add", {{"X", {v}}, {"Pool", {graph_.text_pool()}}}, {}, "Codes");
  graph_.var(made).dtype = DType::kI64;
  graph_.known(made).type = graph_.types().TypeOf(DType::kI64);
  SetShape(made, shape(v));
  return made;
}

int OpMaker::TextsOf(int numbers, int type) {
  const int made = Make("text_pool_find", {{"Pool", {graph_.text_pool()}}, {"Codes", {numbers}}});
  SetShape(made, shape(numbers));
  graph_.SetType(made, type);
  return made;
}

int OpMaker::NumbersOfList(int v) {
  const int made = NewVar(DType::kUnknown);
  graph_.var(made).kind = ir::VarKind::kArray;
  Emit("text_pool_add_list", {{"X", {v}}, {"Pool", {graph_.text_pool()}}}, {}, {{"Codes", {made}}});
  return made;
}

int OpMaker::TextsOfList(int numbers) {
  const int made = NewVar(DType::kUnknown);
  graph_.var(made).kind = ir::VarKind::kRaw;
  Emit("text_pool_find_list", {{"Pool", {graph_.text_pool()}}, {"Codes", {numbers}}}, {},
       {{"Out", {made}}});
  return made;
}

bool OpMaker::HasOperator(std::string_view type) { return FindOp(type) != nullptr; }

AttrValue OpMaker::Converted(AttrValue value, const AttrValue& like, std::string_view name) {
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
  SayProblem(StrCat("attribute '", name, "' has a value of another type than expected"));
  return like;
}

// The wider dtype in which to compute operands for whose dtype the operator has no kernel; kUnknown
// where it has one, or where no wider one has.
DType OpMaker::WiderKernel(const OpDef& def, const Ins& ins) const {
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

DraftOp& OpMaker::Emit(std::string_view type, Ins ins, Attrs attrs,
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
      if (v != kNoDraft && graph_.known(v).data != nullptr) graph_.var(v).persistable = true;
  DraftOp& op = graph_.draft().blocks[static_cast<size_t>(block())].ops.emplace_back();
  op.type = def == nullptr ? type : std::string_view(def->name());
  op.index = index_;
  op.source = source_;
  op.inputs = std::move(ins);
  op.outputs = std::move(outs);
  op.attributes = std::move(attrs);
  return op;
}

std::vector<int> OpMaker::MakeMany(std::string_view type, Ins ins, Attrs attrs,
                                   const std::vector<std::string_view>& outs) {
  LookForInterrupt();
  const OpDef* def = FindOp(type);
  std::vector<int> made;
  if (def == nullptr) {
    SayProblem(StrCat("needs heddle's operator ", type, ", which is not there"));
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
  // Outputs that share a name form one slot with a list.
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
  if (made.size() == 1) FollowValues(op, made[0]);
  for (int& v : made)
    if (wider != DType::kUnknown && dtype(v) == wider) v = Cast(v, narrow);
  return made;
}

int OpMaker::Make(std::string_view type, Ins ins, Attrs attrs, std::string_view out) {
  return MakeMany(type, std::move(ins), std::move(attrs), {out})[0];
}

int OpMaker::Cast(int v, DType to) {
  if (dtype(v) == to) return v;
  return Make("cast", {{"X", {v}}},
              {{"in_dtype", dtype(v) == DType::kUnknown ? int64_t{5} : DTypeToProto(dtype(v))},
               {"out_dtype", DTypeToProto(to)}});
}

int OpMaker::HoldConstant(Tensor value, int type) {
  if (type == 0) type = graph_.types().TypeOf(value.dtype());
  return graph_.AddConstant(std::move(value), type, FreshStem({}));
}

int OpMaker::StringsConstant(const Strings& values, int type) {
  return graph_.AddConstant(values, type, FreshStem({}));
}

int OpMaker::IntsConstant(const Ints& values, int rank) {
  Shape shape;
  if (rank > 0) shape.push_back(static_cast<int64_t>(values.size()));
  return HoldConstant(Tensor::Of(DType::kI64, shape, values));
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

int OpMaker::IntConstant(int64_t value, DType dtype) {
  Tensor t = Tensor::Empty(dtype, Shape());
  if (dtype == DType::kI64)
    *t.mutable_data<int64_t>() = value;
  else if (dtype == DType::kBool)
    *t.mutable_data<bool>() = value != 0;
  else
    t = FloatTensor(dtype, Shape(), {static_cast<double>(value)});
  return HoldConstant(std::move(t));
}

int OpMaker::FloatConstant(double value, DType dtype) {
  if (dtype == DType::kBool) return IntConstant(value != 0 ? 1 : 0, dtype);
  return HoldConstant(FloatTensor(dtype, Shape(), {value}));
}

int OpMaker::FloatsConstant(const Floats& values, DType dtype) {
  return HoldConstant(FloatTensor(dtype, Shape{static_cast<int64_t>(values.size())}, values));
}

}  // namespace heddle::formats
