#include "offload/onnx/node.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype_of.h"
#include "core/shapes.h"

namespace heddle::offload::to_onnx {

using ir::kNoVar;
using ir::VarId;

namespace {
const Facts kNothing;
}  // namespace

NodeWriter::NodeWriter(const ir::Program& program, const ir::Op& op, int index, KnownFacts* facts,
                       Places* places, ModelBuilder* model)
    : program_(program),
      op_(op),
      index_(index),
      facts_(*facts),
      places_(*places),
      model_(*model),
      first_(model->nodes().size()),
      made_(facts->Infer(op)) {}

// ---- operands ----------------------------------------------------------------------------------

VarId NodeWriter::Var(std::string_view slot, size_t k) const {
  const int s = op_.def->FindInput(slot);
  if (s < 0 || k >= op_.inputs[static_cast<size_t>(s)].size()) return kNoVar;
  return op_.inputs[static_cast<size_t>(s)][k];
}

VarId NodeWriter::OutVar(std::string_view slot, size_t k) const {
  const int s = op_.def->FindOutput(slot);
  if (s < 0 || k >= op_.outputs[static_cast<size_t>(s)].size()) return kNoVar;
  return op_.outputs[static_cast<size_t>(s)][k];
}

size_t NodeWriter::Count(std::string_view slot) const {
  const int s = op_.def->FindInput(slot);
  return s < 0 ? 0 : op_.inputs[static_cast<size_t>(s)].size();
}

bool NodeWriter::Has(std::string_view slot, size_t k) const { return Var(slot, k) != kNoVar; }

std::string NodeWriter::In(std::string_view slot, size_t k) {
  const VarId v = Var(slot, k);
  if (v == kNoVar) {
    Refuse("an operand in ", slot, " is left out");
    return {};
  }
  const ir::Var& var = program_.vars[v];
  if (ElementType(facts_.of(v).dtype) == 0)
    Refuse("'", var.name, "' is ", Name(facts_.of(v).dtype), ", which is not written");
  std::string& place = places_.now[v];
  if (place.empty() && facts_.of(v).value != nullptr) {
    place = model_.TakeName(var.name) ? var.name : model_.FreshName(var.name);
    model_.AddConstant(place, *facts_.of(v).value);
  }
  if (place.empty()) Refuse("'", var.name, "' is nothing that the operators before it make");
  return place;
}

DType NodeWriter::dtype(std::string_view slot, size_t k) const {
  const VarId v = Var(slot, k);
  return v == kNoVar ? DType::kUnknown : facts_.of(v).dtype;
}

const Shape& NodeWriter::shape(std::string_view slot, size_t k) const {
  const VarId v = Var(slot, k);
  return v == kNoVar ? kNothing.shape : facts_.of(v).shape;
}

int NodeWriter::Rank(std::string_view slot, size_t k) {
  const Shape& s = shape(slot, k);
  if (s.known_rank()) return s.rank();
  Refuse("the rank of ", slot, " is not known");
  return 0;
}

int64_t NodeWriter::Axis(int64_t axis, std::string_view slot, int more) {
  const int rank = Rank(slot) + more;
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return axis;
  Refuse("axis ", axis, " is none of ", rank);
  return 0;
}

const Tensor* NodeWriter::Constant(std::string_view slot, size_t k) const {
  const VarId v = Var(slot, k);
  return v == kNoVar ? nullptr : facts_.of(v).value;
}

std::optional<Ints> NodeWriter::ConstantInts(std::string_view slot, size_t k) const {
  const Tensor* t = Constant(slot, k);
  if (t == nullptr || (t->dtype() != DType::kI32 && t->dtype() != DType::kI64) ||
      t->numel() > 1 << 16)
    return std::nullopt;
  return ToInts(*t);
}

Ints NodeWriter::RequiredInts(std::string_view slot) {
  if (auto ints = ConstantInts(slot)) return *std::move(ints);
  Refuse(slot, " is no constant of integers");
  return {};
}

bool NodeWriter::IsOneOf(std::string_view slot, std::initializer_list<DType> dtypes) {
  const DType t = dtype(slot);
  if (std::find(dtypes.begin(), dtypes.end(), t) != dtypes.end()) return true;
  Refuse(slot, " is ", Name(t));
  return false;
}

// ---- results -----------------------------------------------------------------------------------

size_t NodeWriter::Outputs(std::string_view slot) const {
  const int s = op_.def->FindOutput(slot);
  return s < 0 ? 0 : op_.outputs[static_cast<size_t>(s)].size();
}

bool NodeWriter::Wants(std::string_view slot, size_t k) const { return OutVar(slot, k) != kNoVar; }

const Facts* NodeWriter::OutFacts(std::string_view slot, size_t k) const {
  const int wanted = op_.def->FindOutput(slot);
  size_t at = 0;
  for (size_t s = 0; s < op_.outputs.size(); ++s) {
    if (static_cast<int>(s) == wanted && k < op_.outputs[s].size()) return &made_[at + k];
    at += op_.outputs[s].size();
  }
  return &kNothing;
}

DType NodeWriter::out_dtype(std::string_view slot, size_t k) const {
  return OutFacts(slot, k)->dtype;
}
const Shape& NodeWriter::out_shape(std::string_view slot, size_t k) const {
  return OutFacts(slot, k)->shape;
}

void NodeWriter::Out(std::string_view slot, const std::string& name, size_t k) {
  const VarId v = OutVar(slot, k);
  if (v == kNoVar || name.empty()) return;
  const std::string& var = program_.vars[v].name;
  const bool last = places_.last_writer[v] == index_;
  std::string wanted = last ? places_.final_name[v] : "";
  // A value that this operator made takes the name; any other one is copied.
  bool mine = std::find(given_.begin(), given_.end(), name) == given_.end();
  bool made = false;
  auto& nodes = model_.nodes();
  for (size_t i = first_; i < nodes.size(); ++i)
    made |=
        std::find(nodes[i].outputs.begin(), nodes[i].outputs.end(), name) != nodes[i].outputs.end();
  mine = mine && made;
  if (wanted.empty() && mine) {
    wanted = name;
  } else if (mine) {
    for (size_t i = first_; i < nodes.size(); ++i)
      for (Names* list : {&nodes[i].inputs, &nodes[i].outputs})
        std::replace(list->begin(), list->end(), name, wanted);
  } else {
    if (wanted.empty()) wanted = model_.FreshName(var);
    nodes.push_back({"Identity", {name}, {wanted}, {}});
  }
  given_.push_back(wanted);
  given_to_.push_back(v);
  places_.now[v] = wanted;
  Facts facts = *OutFacts(slot, k);
  facts.value = nullptr;
  facts_.of(v) = facts;
}

void NodeWriter::Finish() {
  const auto is_in = [](const std::vector<VarId>& list, VarId v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  };
  for (const auto& slot : op_.outputs)
    for (const VarId v : slot) {
      if (v == kNoVar || is_in(given_to_, v)) continue;
      bool read = false;
      for (const auto& in : op_.inputs) read = read || is_in(in, v);
      if (!read) places_.now[v].clear();
    }
}

void NodeWriter::OutReshaped(std::string_view slot, const std::string& name) {
  Out(slot, ReshapeTo(name, out_shape(slot)));
}

const AttrValue* NodeWriter::Find(std::string_view name) const {
  const int a = op_.def->FindAttr(name);
  return a < 0 ? nullptr : &op_.attrs[static_cast<size_t>(a)];
}

double NodeWriter::Float(double value, DType of) {
  const auto narrow = static_cast<float>(value);
  if (of == DType::kF64 && static_cast<double>(narrow) != value && !std::isnan(value))
    Refuse("its attribute ", value, " needs more digits than an attribute of ONNX has");
  return value;
}

// ---- what is made ------------------------------------------------------------------------------

std::string NodeWriter::Make(std::string_view type, Names inputs, Attributes attributes) {
  return MakeMany(type, std::move(inputs), 1, std::move(attributes))[0];
}

Names NodeWriter::MakeMany(std::string_view type, Names inputs, size_t outputs,
                           Attributes attributes) {
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  Names made;
  for (size_t k = 0; k < outputs; ++k) made.push_back(model_.FreshName(op_.type()));
  model_.nodes().push_back({std::string(type), std::move(inputs), made, std::move(attributes)});
  return made;
}

std::string NodeWriter::Hold(Tensor value) {
  std::string name = model_.FreshName("constant");
  model_.AddConstant(name, std::move(value));
  return name;
}

std::string NodeWriter::Vector(const Ints& values) {
  return Hold(Tensor::Of(DType::kI64, {static_cast<int64_t>(values.size())}, values));
}

std::string NodeWriter::Whole(int64_t value) {
  return Hold(Tensor::Of(DType::kI64, Shape(), std::vector<int64_t>{value}));
}

std::string NodeWriter::Scalar(double value, DType dtype) { return Filled(value, dtype, Shape()); }

std::string NodeWriter::Filled(double value, DType dtype, const Shape& shape) {
  Tensor t = Tensor::Empty(dtype, shape);
  bool held = false;
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    held = true;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      held = value == std::floor(value) && std::abs(value) <= 9007199254740992.0 &&
             value >= static_cast<double>(std::numeric_limits<T>::min()) &&
             value <= static_cast<double>(std::numeric_limits<T>::max());
    if (held)
      std::fill_n(t.mutable_data<T>(), t.numel(),
                  std::is_same_v<T, bool> ? static_cast<T>(value != 0) : static_cast<T>(value));
  });
  if (!held) Refuse("the number ", value, " is none of ", Name(dtype));
  return Hold(std::move(t));
}

std::string NodeWriter::CastTo(const std::string& x, DType to) {
  if (ElementType(to) == 0) Refuse("makes ", Name(to), ", which is not written");
  return Make("Cast", {x}, {{"to", int64_t{ElementType(to)}}});
}

std::string NodeWriter::Reshape(const std::string& x, const Ints& dims) {
  return Make("Reshape", {x, Vector(dims)});
}

std::string NodeWriter::ReshapeTo(const std::string& x, const Shape& shape) {
  if (!shape.known_rank()) {
    Refuse("the rank of its result is not known");
    return x;
  }
  Ints dims(shape.begin(), shape.end());
  const auto open = std::count(dims.begin(), dims.end(), -1);
  const bool empty = std::count(dims.begin(), dims.end(), 0) > 0;
  if (open > 1 || (open == 1 && empty))
    Refuse("the shape of its result is not known: ", shape.ToString());
  Attributes attributes;
  if (empty) attributes.push_back({"allowzero", int64_t{1}});
  return Make("Reshape", {x, Vector(dims)}, std::move(attributes));
}

std::string NodeWriter::Transpose(const std::string& x, const Ints& perm) {
  return Make("Transpose", {x}, {{"perm", perm}});
}
std::string NodeWriter::Squeeze(const std::string& x, const Ints& axes) {
  return axes.empty() ? x : Make("Squeeze", {x, Vector(axes)});
}
std::string NodeWriter::Unsqueeze(const std::string& x, const Ints& axes) {
  return axes.empty() ? x : Make("Unsqueeze", {x, Vector(axes)});
}
std::string NodeWriter::DimsOf(const std::string& x, int64_t begin, int64_t end) {
  return Make("Shape", {x}, {{"start", begin}, {"end", end}});
}

std::string NodeWriter::AsLongs(std::string_view slot, size_t k) {
  if (dtype(slot, k) != DType::kI32 && dtype(slot, k) != DType::kI64)
    Refuse(slot, " is ", Name(dtype(slot, k)));
  std::string x = In(slot, k);
  if (Rank(slot, k) != 1) x = Reshape(x, {-1});
  return dtype(slot, k) == DType::kI64 ? x : CastTo(x, DType::kI64);
}

std::string NodeWriter::AsScalar(std::string_view slot) {
  const Shape& s = shape(slot);
  if (!s.is_static() || s.numel() != 1) Refuse(slot, " is not one number: ", s.ToString());
  return s.rank() == 0 ? In(slot) : Reshape(In(slot), {});
}

}  // namespace heddle::offload::to_onnx
