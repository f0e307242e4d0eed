// Reductions over axes, argmin and argmax, and cumulative sums.
#include <algorithm>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// heddle's two forms of a reduction: Paddle's with constant axes, and ONNX's with axes as an
// operand.
struct Reduction {
  std::string_view op, paddle, onnx;
};
constexpr Reduction kReductions[] = {
    {"All", "reduce_all", "onnx_reduce_min"}, {"Any", "reduce_any", "onnx_reduce_max"},
    {"Max", "reduce_max", "onnx_reduce_max"}, {"Mean", "reduce_mean", "onnx_reduce_mean"},
    {"Min", "reduce_min", "onnx_reduce_min"}, {"Prod", "reduce_prod", "onnx_reduce_prod"},
    {"Sum", "reduce_sum", "onnx_reduce_sum"},
};

bool LowerReduction(NodeLowering& n) {
  const auto* r = std::find_if(std::begin(kReductions), std::end(kReductions),
                               [&](const Reduction& each) { return each.op == n.op(); });
  const int x = n.In(0), axes = n.In(1);
  const bool keep = n.Bool("keep_dims", false);
  const auto known = n.ConstantInts(axes);
  if (known && known->empty()) {  // no axes: nothing is reduced
    ResultLike(n, 0, n.Unary("assign", x), x);
    return true;
  }
  if (IsComplex(n.dtype(x)) && (r->op == "Sum" || r->op == "Prod" || r->op == "Mean"))
    return LowerDirect(n, r->op == "Sum" ? "tf_sum" : r->op == "Prod" ? "tf_prod" : "tf_mean");
  if (known) {
    const int rank = n.rank(x);
    Ints dims = *known;
    for (int64_t& d : dims) {
      if (rank >= 0 && (d < -rank || d >= rank)) {
        n.Problem("reduces axis ", d, " of a tensor of shape ", n.shape(x).ToString());
        ResultLike(n, 0, x, x);
        return true;
      }
      if (rank >= 0 && d < 0) d += rank;
    }
    std::sort(dims.begin(), dims.end());
    if (std::adjacent_find(dims.begin(), dims.end()) != dims.end()) {
      n.Problem("reduces an axis twice");
      ResultLike(n, 0, x, x);
      return true;
    }
    Attrs attrs{{"dim", dims}, {"keep_dim", keep}};
    if (r->op == "Sum" || r->op == "Prod")
      attrs.emplace_back("out_dtype", DTypeToProto(n.dtype(x)));
    const int made = n.Make(r->paddle, {{"X", {x}}}, std::move(attrs));
    // Paddle's sums of narrow integers have a wider type.
    ResultLike(n, 0, n.dtype(x) == DType::kUnknown ? made : n.Cast(made, n.dtype(x)), x);
    return true;
  }
  const int made = n.Make(
      r->onnx, {{"data", {x}}, {"axes", {axes}}},
      {{"keepdims", int64_t{keep ? 1 : 0}}, {"noop_with_empty_axes", int64_t{1}}}, "reduced");
  ResultLike(n, 0, made, x);
  return true;
}

bool LowerEuclideanNorm(NodeLowering& n) {
  const int x = n.In(0);
  const int made = n.Make("onnx_reduce_l2", {{"data", {x}}, {"axes", {n.In(1)}}},
                          {{"keepdims", int64_t{n.Bool("keep_dims", false) ? 1 : 0}},
                           {"noop_with_empty_axes", int64_t{1}}},
                          "reduced");
  n.Result(0, made);
  return true;
}

bool LowerArg(NodeLowering& n) {
  const int x = n.In(0);
  const DType to = n.TypeAttr("output_type", DType::kI64);
  const auto made = n.Make(n.op() == "ArgMax" ? "tf_arg_max" : "tf_arg_min",
                           {{"input", {x}}, {"dimension", {n.In(1)}}},
                           {{"output_type", DTypeToProto(to)}}, "output");
  n.Result(0, made);
  return true;
}

bool LowerScan(NodeLowering& n) {
  const int x = n.In(0), axis = n.In(1);
  const bool sum = n.op() == "Cumsum";
  const auto known = n.ConstantInts(axis);
  // Not for exclusive sums: Paddle's sum of a single element is the element instead of 0.
  if (sum && known && known->size() == 1 && !IsComplex(n.dtype(x)) && n.rank(x) != 0 &&
      !n.Bool("exclusive", false)) {
    const int made = n.Make("cumsum", {{"X", {x}}},
                            {{"axis", (*known)[0]}, {"reverse", n.Bool("reverse", false)}});
    ResultLike(n, 0, made, x);
    return true;
  }
  return LowerDirect(n, sum                   ? "tf_cumsum"
                        : n.op() == "Cumprod" ? "tf_cumprod"
                                              : "tf_cumulative_logsumexp");
}

constexpr HandlerEntry kReduceEntries[] = {
    {"All", &LowerReduction},
    {"Any", &LowerReduction},
    {"ArgMax", &LowerArg},
    {"ArgMin", &LowerArg},
    {"Cumprod", &LowerScan},
    {"Cumsum", &LowerScan},
    {"CumulativeLogsumexp", &LowerScan},
    {"EuclideanNorm", &LowerEuclideanNorm},
    {"Max", &LowerReduction},
    {"Mean", &LowerReduction},
    {"Min", &LowerReduction},
    {"Prod", &LowerReduction},
    {"Sum", &LowerReduction},
};

}  // namespace

std::span<const HandlerEntry> ReduceHandlers() { return kReduceEntries; }

}  // namespace heddle::tensorflow
