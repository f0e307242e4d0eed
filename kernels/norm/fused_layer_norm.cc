// heddle's own: layer_norm of a sum. The substitute_patterns pass makes it.
#include <Eigen/Core>
#include <cmath>

#include "core/fuse_pattern.h"
#include "core/ir.h"
#include "core/shapes.h"

namespace heddle {
namespace {

using Row = Eigen::Map<Eigen::ArrayXf>;
using ConstRow = Eigen::Map<const Eigen::ArrayXf>;

// The sum as rows. X and Y have the last dimensions in full; of those before, each may have 1.
struct Rows {
  int64_t count = 0, width = 0;
  Shape outer;           // dimensions before
  Shape x_step, y_step;  // elements per step of each; 0: the same for all
  bool x_full = true, y_full = true;
};

Result<Shape> SumShape(const Shape& x, const Shape& y, int64_t begin) {
  if (x.rank() != y.rank() || begin < 1 || begin >= x.rank())
    return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(),
                           " need one rank, above begin_norm_axis ", begin);
  for (int d = static_cast<int>(begin); d < x.rank(); ++d)
    if (x[d] >= 0 && y[d] >= 0 && x[d] != y[d])
      return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(),
                             " differ behind dimension ", begin);
  return BroadcastShape(x, y, -1);
}

Rows RowsOf(const Shape& x, const Shape& y, const Shape& sum, int begin) {
  Rows r;
  r.count = sum.Product(0, begin);
  r.width = sum.Product(begin, sum.rank());
  for (int d = 0; d < begin; ++d) {
    r.outer.push_back(sum[d]);
    r.x_step.push_back(x[d] == 1 ? 0 : x.Product(d + 1, x.rank()));
    r.y_step.push_back(y[d] == 1 ? 0 : y.Product(d + 1, y.rank()));
    r.x_full = r.x_full && x[d] == sum[d];
    r.y_full = r.y_full && y[d] == sum[d];
  }
  return r;
}

int64_t Offset(const Rows& r, const Shape& step, bool full, int64_t row) {
  if (full) return row * r.width;
  int64_t at = 0;
  for (int d = r.outer.rank() - 1; d >= 0; --d) {
    at += row % r.outer[d] * step[d];
    row /= r.outer[d];
  }
  return at;
}

Status SumNormShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y");
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Shape sum, SumShape(x, y, ctx.Int("begin_norm_axis")));
  for (const Key key : {Key("Scale"), Key("Bias")}) {
    if (!ctx.HasIn(key) || !sum.is_static() || !ctx.InShape(key).is_static()) continue;
    const int64_t width = sum.Product(static_cast<int>(ctx.Int("begin_norm_axis")), sum.rank());
    if (ctx.InShape(key).numel() != width)
      return InvalidArgument(key.name, " has shape ", ctx.InShape(key).ToString(), ", expected ",
                             width, " elements");
  }
  ctx.SetOut("Out", sum, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

void Normalise(const ConstRow& x, const ConstRow& y, float epsilon, const float* scale,
               const float* bias, float* to) {
  const int64_t n = x.size();
  Row out(to, n);
  out = x + y;
  const float mean = out.sum() / static_cast<float>(n);
  const float variance = (out - mean).square().sum() / static_cast<float>(n);
  const float factor = 1.f / std::sqrt(variance + epsilon);
  if (scale && bias)
    out = (out - mean) * factor * ConstRow(scale, n) + ConstRow(bias, n);
  else if (scale)
    out = (out - mean) * factor * ConstRow(scale, n);
  else if (bias)
    out = (out - mean) * factor + ConstRow(bias, n);
  else
    out = (out - mean) * factor;
}

Status SumNorm(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  const Rows r =
      RowsOf(x.shape(), y.shape(), out.shape(), static_cast<int>(ctx.Int("begin_norm_axis")));
  if (r.width == 0) return Status::Ok();
  const Tensor *scale = ctx.InOpt("Scale"), *bias = ctx.InOpt("Bias");
  const float* scales = scale ? scale->data<float>() : nullptr;
  const float* biases = bias ? bias->data<float>() : nullptr;
  const float epsilon = static_cast<float>(ctx.Float("epsilon"));
  const float *from_x = x.data<float>(), *from_y = y.data<float>();
  float* to = out.mutable_data<float>();
  ctx.ParallelFor(r.count, 1 + 65536 / r.width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      Normalise(ConstRow(from_x + Offset(r, r.x_step, r.x_full, i), r.width),
                ConstRow(from_y + Offset(r, r.y_step, r.y_full, i), r.width), epsilon, scales,
                biases, to + i * r.width);
  });
  return Status::Ok();
}

// Both operands have the normalised dimensions in full, as far as the program says, and so on.
bool Fits(const FuseMatch& match, ir::Op* fused) {
  const ir::Op &add = *match.ops[0], &norm = *match.ops[1];
  const ir::Var &x = match.program.vars[add.In("X")[0]], &y = match.program.vars[add.In("Y")[0]];
  const int64_t axis = add.Attr<int64_t>("axis"), begin = norm.Attr<int64_t>("begin_norm_axis");
  if (x.dtype != DType::kF32 || y.dtype != DType::kF32 || !x.shape.known_rank() ||
      !y.shape.known_rank() || x.shape.rank() != y.shape.rank() || (axis != -1 && axis != 0) ||
      begin < 1 || begin >= x.shape.rank())
    return false;
  for (int d = static_cast<int>(begin); d < x.shape.rank(); ++d)
    if (x.shape[d] < 0 || x.shape[d] != y.shape[d]) return false;
  fused->attrs[static_cast<size_t>(fused->def->FindAttr("epsilon"))] = norm.Attr<double>("epsilon");
  fused->attrs[static_cast<size_t>(fused->def->FindAttr("begin_norm_axis"))] = begin;
  return true;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_layer_norm) {
  op.Doc(
      "layer_norm of X + Y, which have the same rank and the same dimensions from begin_norm_axis "
      "on");
  op.Input("X").Input("Y").Input("Scale", kOptional).Input("Bias", kOptional).Output("Out");
  op.Attr("epsilon", 1e-5).Attr("begin_norm_axis", 1).Inplace("X", "Out").Inplace("Y", "Out");
  op.InferShape(SumNormShape).Kernel(DType::kF32, SumNorm);
}
HEDDLE_FUSES(fused_layer_norm) {
  return {{.ops = {"elementwise_add", "layer_norm"},
           .operands = {{"X", 0, "X"}, {"Y", 0, "Y"}, {"Scale", 1, "Scale"}, {"Bias", 1, "Bias"}},
           .output = "Out",
           .fits = Fits}};
}

HEDDLE_EXAMPLES(fused_layer_norm, R"(
example scale and bias
attr epsilon FLOAT 0.001
in X float32 [2, 4] -0.76 -0.22 -0.2 0.84 0.58 0.03 -0.63 -0.15
in Y float32 [2, 4] 0.3 0.95 0.9 0.66 0.9 -0.59 -0.36 0.79
in Scale float32 [4] 0.59 1.95 1.41 1.56
in Bias float32 [4] 0.37 0.04 -0.56 -0.82
from elementwise_add X=X Y=Y -> Out=t
from layer_norm X=t Scale=Scale Bias=Bias -> Y=Out Mean=m Variance=v
attr epsilon FLOAT 0.001
out Out float32 [2, 4] -0.5374208 0.3531314 -0.39396012 1.1450732 1.1778758 -1.3624252 -2.194768
  -0.025458753

example two axes, no scale
attr begin_norm_axis INT 1
in X float32 [2, 2, 3] 0.68 0.04 -0.1 -0.8 0.94 -0.71 0.15 0.79 -0.77 -0.36 0.69 -0.81
in Y float32 [2, 2, 3] -0.18 -0.83 0.92 0.24 0.85 -0.99 0.43 0.95 0.68 -0.37 0.14 -0.03
from elementwise_add X=X Y=Y -> Out=t
from layer_norm X=t -> Y=Out Mean=m Variance=v
attr begin_norm_axis INT 1
out Out float32 [2, 2, 3] 0.42558682 -0.6948356 0.7035211 -0.49507037 1.5460092 -1.4852111 0.3659098
  1.645675 -0.37326485 -1.0793422 0.6417212 -1.2006992
)")
