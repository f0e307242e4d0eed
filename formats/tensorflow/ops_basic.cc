// Constants, inputs, identities, and operators that make or use shapes.
#include <algorithm>

#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

bool LowerConst(NodeLowering& n) {
  const Attribute* a = n.Find("value");
  if (a == nullptr || a->tensor == nullptr) {
    n.Problem("has no value");
    n.Result(0, n.NewVar(n.TypeAttr("dtype", DType::kUnknown)));
    return true;
  }
  const int v = n.DataConstant(*a->tensor, n.node().name);
  if (a->tensor->type != kString) {
    const auto ints = n.shape(v).rank() <= 1 ? n.ConstantInts(v) : std::nullopt;
    if (ints) n.facts(v).partial = *ints;
  }
  n.Result(0, v);
  return true;
}

// A placeholder that is reached is one that is not fed.
bool LowerPlaceholder(NodeLowering& n) {
  n.Problem("is an input that is not fed");
  n.Result(0, n.NewVar(n.TypeAttr("dtype", DType::kUnknown)));
  return true;
}

bool LowerIdentity(NodeLowering& n) {
  n.Result(0, n.In(0));
  return true;
}

bool LowerIdentityN(NodeLowering& n) {
  for (size_t i = 0; i < n.inputs(); ++i) n.Result(i, n.In(i));
  return true;
}

bool LowerNoOp(NodeLowering&) { return true; }

// The branches around it leave out the dead side, so both outputs are the input.
bool LowerSwitch(NodeLowering& n) {
  n.Result(0, n.In(0));
  n.Result(1, n.In(0));
  return true;
}

bool LowerSwitchN(NodeLowering& n) {
  const int64_t count = n.Int("num_outs", 0);
  if (!n.CheckOutputs(count, 1)) return true;
  for (int64_t k = 0; k < count; ++k) n.Result(static_cast<size_t>(k), n.In(0));
  return true;
}

// A Merge whose other inputs were removed passes its only input on.
bool LowerPass(NodeLowering& n) {
  n.Result(0, n.In(0));
  return true;
}

// Makes `v` the constant dimensions if all are known; otherwise records those that are.
void SetDims(NodeLowering& n, int v, const Shape& shape) {
  if (!shape.known_rank()) return;
  const Ints dims(shape.begin(), shape.end());
  n.facts(v).partial = dims;
  n.facts(v).shape = Shape{static_cast<int64_t>(dims.size())};
  if (!shape.is_static()) return;
  if (n.dtype(v) == DType::kI64)
    n.SetKnown(v, Tensor::Of(DType::kI64, Shape{static_cast<int64_t>(dims.size())}, dims));
  if (n.dtype(v) == DType::kI32)
    n.SetKnown(v, Tensor::Of(DType::kI32, Shape{static_cast<int64_t>(dims.size())},
                             std::vector<int32_t>(dims.begin(), dims.end())));
}

int ShapeAs(NodeLowering& n, int x, DType dtype) {
  const Shape shape = n.shape(x);
  if (shape.known_rank() && shape.is_static() && !n.facts(x).is_variable) {
    const Ints dims(shape.begin(), shape.end());
    const int made = n.HoldConstant(
        dtype == DType::kI64 ? Tensor::Of(DType::kI64, Shape{shape.rank()}, dims)
                             : Tensor::Of(DType::kI32, Shape{shape.rank()},
                                          std::vector<int32_t>(dims.begin(), dims.end())));
    n.facts(made).partial = dims;
    return made;
  }
  const int made = n.Cast(n.Make("shape", {{"Input", {x}}}), dtype);
  SetDims(n, made, shape);
  return made;
}

bool LowerShape(NodeLowering& n) {
  const DType dtype = n.TypeAttr("out_type", DType::kI32);
  for (size_t i = 0; i < n.inputs(); ++i) n.Result(i, ShapeAs(n, n.In(i), dtype));
  return true;
}

bool LowerRank(NodeLowering& n) {
  const int x = n.In(0);
  if (n.rank(x) >= 0) {
    n.Result(0, n.IntConstant(n.rank(x), DType::kI32));
    return true;
  }
  const int length = n.Make("size", {{"Input", {n.Make("shape", {{"Input", {x}}})}}});
  n.Result(0, n.Cast(length, DType::kI32));
  return true;
}

bool LowerSize(NodeLowering& n) {
  const int x = n.In(0);
  const DType dtype = n.TypeAttr("out_type", DType::kI32);
  if (n.rank(x) >= 0 && n.shape(x).is_static() && !n.facts(x).is_variable)
    n.Result(0, n.IntConstant(n.shape(x).numel(), dtype));
  else
    n.Result(0, n.Cast(n.Make("size", {{"Input", {x}}}), dtype));
  return true;
}

bool LowerPack(NodeLowering& n) {
  const std::vector<int> all = n.AllInputs();
  if (all.empty()) return false;
  const int made = n.Make("stack", {{"X", all}}, {{"axis", n.Int("axis", 0)}}, "Y");
  // Vectors of dimensions are often known in part.
  Ints partial;
  bool complete = n.dtype(made) == DType::kI32 || n.dtype(made) == DType::kI64;
  for (int v : all) {
    if (n.rank(v) != 0) complete = false;
    const auto known = n.rank(v) == 0 ? n.ConstantInts(v) : std::nullopt;
    if (known && known->size() == 1)
      partial.push_back((*known)[0]);
    else if (n.rank(v) == 0 && n.facts(v).partial.size() == 1)
      partial.push_back(n.facts(v).partial[0]);
    else
      partial.push_back(-1);
    complete = complete && known.has_value();
  }
  if (n.rank(all[0]) == 0) n.facts(made).partial = partial;
  if (complete && n.dtype(made) == DType::kI32)
    n.SetKnown(made, Tensor::Of(DType::kI32, Shape{static_cast<int64_t>(partial.size())},
                                std::vector<int32_t>(partial.begin(), partial.end())));
  if (complete && n.dtype(made) == DType::kI64)
    n.SetKnown(made, Tensor::Of(DType::kI64, Shape{static_cast<int64_t>(partial.size())}, partial));
  n.Result(0, made);
  return true;
}

// In TensorFlow a size of 0 means 0; in Paddle's reshape it means the dimension of the input.
bool LowerReshape(NodeLowering& n) {
  const int x = n.In(0), shape = n.In(1);
  const auto known = n.ConstantInts(shape);
  if (known && std::find(known->begin(), known->end(), 0) == known->end()) {
    n.Result(0, n.Reshape(x, *known));
    return true;
  }
  const Ints partial = n.facts(shape).partial;
  const auto open = std::count(partial.begin(), partial.end(), -1);
  if (!known && open == 1 && !partial.empty() &&
      std::find(partial.begin(), partial.end(), 0) == partial.end()) {
    n.Result(0, n.Reshape(x, partial));
    return true;
  }
  const int made = n.Make("reshape2", {{"X", {x}}, {"Shape", {shape}}}, {{"literal_zero", true}});
  // The length of the vector of sizes is the rank of the result.
  const Shape& length = n.shape(shape);
  if (!known && !partial.empty())
    n.SetShape(made, Shape(std::span<const int64_t>(partial)));
  else if (!known && length.rank() == 1 && length[0] >= 0 && length[0] <= Shape::kMaxRank)
    n.SetShape(made, Shape(Ints(static_cast<size_t>(length[0]), -1)));
  n.Result(0, made);
  return true;
}

// Strings among the data would say what failed; heddle's message names the operator.
bool LowerAssert(NodeLowering& n) {
  std::vector<int> data;
  for (int v : n.AllInputs(1))
    if (n.type(v) != kString && n.kind(v) == Kind::kTensor) data.push_back(v);
  Ins ins = {{"Cond", {n.In(0)}}};
  if (!data.empty()) ins.emplace_back("Data", data);
  n.Emit("assert", std::move(ins), {{"summarize", n.Int("summarize", 3)}}, {});
  return true;
}

bool LowerCheckNumerics(NodeLowering& n) {
  const int x = n.In(0);
  const int all = n.Unary("isfinite", x);
  n.Emit("assert", {{"Cond", {all}}}, {}, {});
  n.Result(0, x);
  return true;
}

constexpr HandlerEntry kBasicEntries[] = {
    {"Assert", &LowerAssert},
    {"CheckNumericsV2", &LowerCheckNumerics},
    {"Const", &LowerConst},
    {"Placeholder", &LowerPlaceholder},
    {"PlaceholderV2", &LowerPlaceholder},
    {"PlaceholderWithDefault", &LowerIdentity},
    {"Identity", &LowerIdentity},
    {"IdentityN", &LowerIdentityN},
    {"RefIdentity", &LowerIdentity},
    {"StopGradient", &LowerIdentity},
    {"PreventGradient", &LowerIdentity},
    {"Snapshot", &LowerIdentity},
    {"DeepCopy", &LowerIdentity},
    {"GuaranteeConst", &LowerIdentity},
    {"EnsureShape", &LowerIdentity},
    {"NoOp", &LowerNoOp},
    {"ControlTrigger", &LowerNoOp},
    {"Switch", &LowerSwitch},
    {"RefSwitch", &LowerSwitch},
    {"_SwitchN", &LowerSwitchN},
    {"LoopCond", &LowerPass},
    {"Enter", &LowerPass},
    {"Exit", &LowerPass},
    {"Shape", &LowerShape},
    {"ShapeN", &LowerShape},
    {"Rank", &LowerRank},
    {"Size", &LowerSize},
    {"Pack", &LowerPack},
    {"Reshape", &LowerReshape},
};

}  // namespace

std::span<const HandlerEntry> BasicHandlers() { return kBasicEntries; }

}  // namespace heddle::tensorflow
