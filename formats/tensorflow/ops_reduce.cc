// Reductions over axes and of segments, argmin and argmax, and cumulative sums.
#include <algorithm>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/direct/ops_direct.h"

namespace heddle::tensorflow {
namespace {

struct Reduction {
  std::string_view op, type;
};
constexpr Reduction kReductions[] = {
    {"All", "reduce_all"}, {"Any", "reduce_any"},   {"Max", "reduce_max"}, {"Mean", "reduce_mean"},
    {"Min", "reduce_min"}, {"Prod", "reduce_prod"}, {"Sum", "reduce_sum"},
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
  Ins ins{{"X", {x}}};
  Attrs attrs{{"keep_dim", keep}};
  if (r->op == "Sum") attrs.emplace_back("out_dtype", DTypeToProto(n.dtype(x)));
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
    attrs.emplace_back("dim", dims);
  } else {
    ins.emplace_back("Axes", std::vector<int>{axes});
    attrs.emplace_back("no_axes", std::string("none"));
  }
  ResultLike(n, 0, n.Make(r->type, std::move(ins), std::move(attrs)), x);
  return true;
}

bool LowerEuclideanNorm(NodeLowering& n) {
  const int x = n.In(0);
  const int made = n.Make("frobenius_norm", {{"X", {x}}, {"Axes", {n.In(1)}}},
                          {{"keep_dim", n.Bool("keep_dims", false)},
                           {"no_axes", std::string("none")},
                           {"in_double", true}});
  n.Result(0, made);
  return true;
}

bool LowerArg(NodeLowering& n) {
  Ins ins{{"X", {n.In(0)}}};
  Attrs attrs{{"dtype", DTypeToProto(n.TypeAttr("output_type", DType::kI64))},
              {"nan", std::string("skipped")}};
  if (const auto axis = n.ConstantInts(n.In(1)); axis && axis->size() == 1)
    attrs.emplace_back("axis", (*axis)[0]);
  else
    ins.emplace_back("AxisTensor", std::vector<int>{n.In(1)});
  n.Result(0, n.Make(n.op() == "ArgMax" ? "arg_max" : "arg_min", std::move(ins), std::move(attrs)));
  return true;
}

bool LowerScan(NodeLowering& n) {
  const int x = n.In(0), axis = n.In(1);
  const bool product = n.op() == "Cumprod";
  Ins ins{{"X", {x}}};
  Attrs attrs{{"exclusive", n.Bool("exclusive", false)}, {"reverse", n.Bool("reverse", false)}};
  if (const auto known = n.ConstantInts(axis); known && known->size() == 1)
    attrs.emplace_back(product ? "dim" : "axis", (*known)[0]);
  else
    ins.emplace_back("AxisTensor", std::vector<int>{axis});
  if (!product && n.Bool("exclusive", false)) attrs.emplace_back("copies_single", false);
  if (n.op() == "CumulativeLogsumexp") attrs.emplace_back("from_infinity", true);
  const int made = n.Make(product              ? "cumprod"
                          : n.op() == "Cumsum" ? "cumsum"
                                               : "logcumsumexp",
                          std::move(ins), std::move(attrs));
  ResultLike(n, 0, made, x);
  return true;
}

std::string PoolOf(std::string_view op) {
  for (const auto& [text, pool] : {std::pair{"Sum", "SUM"},
                                   {"Mean", "MEAN"},
                                   {"SqrtN", "SQRTN"},
                                   {"Prod", "PROD"},
                                   {"Max", "MAX"},
                                   {"Min", "MIN"}})
    if (op.find(text) != op.npos) return pool;
  return {};
}

bool LowerSegment(NodeLowering& n) {
  const std::string pool = PoolOf(n.op());
  const int x = n.In(0);
  Attrs attrs{{"pooltype", pool}};
  if (pool == "MAX" || pool == "MIN") attrs.emplace_back("keep_nan", true);
  ResultLike(n, 0,
             n.Make("segment_pool", {{"X", {x}}, {"SegmentIds", {n.In(1)}}}, std::move(attrs)), x);
  return true;
}

bool LowerUnsortedSegment(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(n, 0,
             n.Make("unsorted_segment_pool",
                    {{"X", {x}}, {"SegmentIds", {n.In(1)}}, {"NumSegments", {n.In(2)}}},
                    {{"pooltype", PoolOf(n.op())}}),
             x);
  return true;
}

bool LowerSparseSegment(NodeLowering& n) {
  const int x = n.In(0);
  Ins ins{{"X", {x}}, {"SegmentIds", {n.In(2)}}, {"Indices", {n.In(1)}}};
  if (n.op().ends_with("WithNumSegments"))
    ins.emplace_back("NumSegments", std::vector<int>{n.In(3)});
  ResultLike(n, 0, n.Make("segment_pool", std::move(ins), {{"pooltype", PoolOf(n.op())}}), x);
  return true;
}

bool LowerSparseSegmentGrad(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(
      n, 0,
      n.Make("scatter_segments",
             {{"X", {x}}, {"Indices", {n.In(1)}}, {"SegmentIds", {n.In(2)}}, {"Rows", {n.In(3)}}},
             {{"pooltype", PoolOf(n.op())}}),
      x);
  return true;
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
    {"SegmentMax", &LowerSegment},
    {"SegmentMean", &LowerSegment},
    {"SegmentMin", &LowerSegment},
    {"SegmentProd", &LowerSegment},
    {"SegmentSum", &LowerSegment},
    {"SparseSegmentMean", &LowerSparseSegment},
    {"SparseSegmentMeanGrad", &LowerSparseSegmentGrad},
    {"SparseSegmentMeanWithNumSegments", &LowerSparseSegment},
    {"SparseSegmentSqrtN", &LowerSparseSegment},
    {"SparseSegmentSqrtNGrad", &LowerSparseSegmentGrad},
    {"SparseSegmentSqrtNWithNumSegments", &LowerSparseSegment},
    {"SparseSegmentSum", &LowerSparseSegment},
    {"SparseSegmentSumWithNumSegments", &LowerSparseSegment},
    {"Sum", &LowerReduction},
    {"UnsortedSegmentMax", &LowerUnsortedSegment},
    {"UnsortedSegmentMin", &LowerUnsortedSegment},
    {"UnsortedSegmentProd", &LowerUnsortedSegment},
    {"UnsortedSegmentSum", &LowerUnsortedSegment},
};

}  // namespace

std::span<const HandlerEntry> ReduceHandlers() { return kReduceEntries; }

}  // namespace heddle::tensorflow
