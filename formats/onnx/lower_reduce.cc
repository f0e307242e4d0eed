// Reductions, and positions of extremes.
#include <algorithm>

#include "core/shapes.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// Lowers to one of Paddle's reductions over constant axes. Its integer sums, means and products
// wrap; ONNX Runtime computes them in double.
bool LowerReduction(NodeLowering& n, const char* type, int64_t since) {
  const int x = n.Required(0);
  const bool picks =
      std::string_view(type) == "reduce_max" || std::string_view(type) == "reduce_min";
  if (!picks && !IsFloat(n.dtype(x))) return false;
  if (n.dtype(x) == DType::kUnknown ||
      !(IsFloat(n.dtype(x)) || n.dtype(x) == DType::kI32 || n.dtype(x) == DType::kI64))
    return false;
  std::optional<Ints> axes = Ints();
  if (n.opset() < since)
    axes = n.IntList("axes");
  else if (n.Has(1))
    axes = n.ConstantInts(n.In(1));
  // heddle's own operator defines the results of empty reductions.
  if (!axes || !n.shape(x).is_static() ? !axes : n.shape(x).numel() == 0) return false;
  if (axes->empty() && n.Int("noop_with_empty_axes", 0) != 0) {
    n.Result(0, x);
    return true;
  }
  const bool keep = n.Int("keepdims", 1) != 0;
  if (n.rank(x) == 0) {
    n.Result(0, x);
    return true;
  }
  Attrs attrs = {
      {"dim", axes->empty() ? Ints{0} : *axes}, {"keep_dim", keep}, {"reduce_all", axes->empty()}};
  const int made = n.Make(type, {{"X", {x}}}, std::move(attrs));
  n.Result(0, made);
  return true;
}

bool LowerReduceSum(NodeLowering& n) { return LowerReduction(n, "reduce_sum", 13); }
bool LowerReduceMean(NodeLowering& n) { return LowerReduction(n, "reduce_mean", 18); }
bool LowerReduceMax(NodeLowering& n) { return LowerReduction(n, "reduce_max", 18); }
bool LowerReduceMin(NodeLowering& n) { return LowerReduction(n, "reduce_min", 18); }
bool LowerReduceProd(NodeLowering& n) { return LowerReduction(n, "reduce_prod", 18); }

constexpr HandlerEntry kReduceEntries[] = {
    {"", "ReduceMax", &LowerReduceMax}, {"", "ReduceMean", &LowerReduceMean},
    {"", "ReduceMin", &LowerReduceMin}, {"", "ReduceProd", &LowerReduceProd},
    {"", "ReduceSum", &LowerReduceSum},
};

}  // namespace

std::span<const HandlerEntry> ReduceHandlers() { return kReduceEntries; }

}  // namespace heddle::onnx
