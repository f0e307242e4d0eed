// Reductions.
#include <algorithm>

#include "core/shapes.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

struct Reduction {
  std::string_view op, type;
  int64_t since;  // the opset in which the axes became an input
  std::string_view of = {};
};
constexpr Reduction kReductions[] = {
    {"ReduceL1", "reduce_sum", 18, "abs"}, {"ReduceL2", "frobenius_norm", 18},
    {"ReduceLogSum", "reduce_sum", 18},    {"ReduceLogSumExp", "logsumexp", 18},
    {"ReduceMax", "reduce_max", 18},       {"ReduceMean", "reduce_mean", 18},
    {"ReduceMin", "reduce_min", 18},       {"ReduceProd", "reduce_prod", 18},
    {"ReduceSum", "reduce_sum", 13},       {"ReduceSumSquare", "reduce_sum", 18, "square"},
};

const Reduction& ReductionOf(const NodeLowering& n) {
  return *std::find_if(std::begin(kReductions), std::end(kReductions),
                       [&](const Reduction& r) { return r.op == n.node().op_type; });
}

// The axes, where the file says them; those of an operand else.
std::optional<Ints> KnownAxes(NodeLowering& n, const Reduction& r) {
  if (n.opset() < r.since || n.Find("axes") != nullptr) return n.IntList("axes");
  return n.Has(1) ? n.ConstantInts(n.In(1)) : Ints();
}

bool PicksElement(const Reduction& r) { return r.type == "reduce_max" || r.type == "reduce_min"; }

// Makes the reduction of `x`, whose elements are of `type`: in double, as ONNX Runtime computes it,
// unless it picks one of the elements.
int Reduced(NodeLowering& n, const Reduction& r, int x, int type) {
  const bool exponents = r.type == "logsumexp";
  const std::optional<Ints> axes = KnownAxes(n, r);
  Ins ins{{"X", {x}}};
  Attrs attrs{{exponents ? "keepdim" : "keep_dim", n.Int("keepdims", 1) != 0}};
  if (n.Int("noop_with_empty_axes", 0) != 0) attrs.emplace_back("no_axes", std::string("none"));
  if (!axes) ins.emplace_back("Axes", std::vector<int>{n.In(1)});
  attrs.emplace_back(exponents ? "axis" : "dim", axes.value_or(Ints()));
  if (!PicksElement(r)) {
    attrs.emplace_back("in_double", true);
    if (type != TypeOf(n.dtype(x))) attrs.emplace_back("elem_type", int64_t{type});
  }
  if (!r.of.empty()) attrs.emplace_back("of", std::string(r.of));
  return n.Make(r.type, std::move(ins), std::move(attrs));
}

// The logarithm of a sum; that of integers is cut.
int LogOfSum(NodeLowering& n, const Reduction& r, int x) {
  const DType dtype = n.dtype(x);
  const int type = n.type(x);
  if (dtype == DType::kF16 || dtype == DType::kBF16)
    return n.Cast(n.Unary("log", Reduced(n, r, n.Cast(x, DType::kF32), kFloat)), dtype);
  if (dtype != DType::kI32 && dtype != DType::kI64) return n.Unary("log", Reduced(n, r, x, type));
  int wide = n.Unary("cast_element_type", x, {{"from", int64_t{type}}, {"to", int64_t{kDouble}}});
  wide = n.Unary("log", Reduced(n, r, wide, kDouble));
  if (type != TypeOf(dtype))  // unsigned
    wide = n.Binary("elementwise_max", wide, n.FloatConstant(0, DType::kF64));
  const int made = n.Cast(wide, dtype);
  n.SetType(made, type);
  return made;
}

bool LowerReduction(NodeLowering& n) {
  const Reduction& r = ReductionOf(n);
  const int x = n.Required(0);
  const DType dtype = n.dtype(x);
  const std::optional<Ints> axes = KnownAxes(n, r);
  if (r.op == "ReduceLogSum") {
    n.Result(0, LogOfSum(n, r, x));
    return true;
  }
  // Plain sums and the like, that passes know. Those of integers wrap; ONNX Runtime computes them
  // in double.
  const bool plain =
      r.of.empty() && r.type.starts_with("reduce_") && axes &&
      (IsFloat(dtype) || (PicksElement(r) && (dtype == DType::kI32 || dtype == DType::kI64))) &&
      !(n.shape(x).is_static() && n.shape(x).numel() == 0);
  const bool nothing = axes && axes->empty() && n.Int("noop_with_empty_axes", 0) != 0;
  if (plain && (nothing || n.rank(x) == 0))
    n.Result(0, x);
  else if (plain)
    n.Result(0, n.Make(r.type, {{"X", {x}}},
                       {{"dim", axes->empty() ? Ints{0} : *axes},
                        {"keep_dim", n.Int("keepdims", 1) != 0},
                        {"reduce_all", axes->empty()}}));
  else
    n.Result(0, Reduced(n, r, x, n.type(x)));
  return true;
}

constexpr HandlerEntry kReduceEntries[] = {
    {"", "ReduceL1", &LowerReduction},     {"", "ReduceL2", &LowerReduction},
    {"", "ReduceLogSum", &LowerReduction}, {"", "ReduceLogSumExp", &LowerReduction},
    {"", "ReduceMax", &LowerReduction},    {"", "ReduceMean", &LowerReduction},
    {"", "ReduceMin", &LowerReduction},    {"", "ReduceProd", &LowerReduction},
    {"", "ReduceSum", &LowerReduction},    {"", "ReduceSumSquare", &LowerReduction},
};

}  // namespace

void LowerUnsignedReduction(NodeLowering& n) {
  const Reduction& r = ReductionOf(n);
  n.Result(0, r.op == "ReduceLogSum" ? LogOfSum(n, r, n.In(0))
                                     : Reduced(n, r, n.In(0), n.type(n.In(0))));
}

std::span<const HandlerEntry> ReduceHandlers() { return kReduceEntries; }

}  // namespace heddle::onnx
