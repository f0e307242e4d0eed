// Fused chains of matrix products: fusion_repeated_fc_relu, fusion_seqexpand_concat_fc and
// fusion_squared_mat_sub.
#include "kernels/sequence/sequence_batch.h"

namespace heddle {
namespace {

template <typename T>
void AddBias(const Tensor& bias, Matrix<T>* m) {
  if (bias.numel() == m->cols())
    m->rowwise() += ConstMatrixMap<T>(bias.data<T>(), 1, bias.numel()).row(0);
}

template <typename T>
void Put(const KernelContext& ctx, Key slot, const Matrix<T>& m, int i = 0) {
  if (!ctx.HasOut(slot, i)) return;
  T* to = ctx.Alloc(slot, kDTypeOf<T>, Shape{m.rows(), m.cols()}, i).template mutable_data<T>();
  MatrixMap<T>(to, m.rows(), m.cols()) = m;
}

// X seen as rows of its first axis.
template <typename T>
ConstMatrixMap<T> RowsOf(const Tensor& x) {
  const int64_t rows = x.rank() == 0 ? 1 : x.dim(0);
  return ConstMatrixMap<T>(x.data<T>(), rows, rows == 0 ? 0 : x.numel() / rows);
}

template <typename T>
struct RepeatedFcRelu {
  static Status Run(KernelContext& ctx) {
    Matrix<T> x = RowsOf<T>(ctx.In("X"));
    const int count = ctx.InCount("W");
    if (ctx.InCount("Bias") != count) return InvalidArgument("W and Bias differ in length");
    for (int i = 0; i < count; ++i) {
      const Tensor &w = ctx.In("W", i), &bias = ctx.In("Bias", i);
      if (w.rank() != 2 || w.dim(0) != x.cols() || bias.numel() != w.dim(1))
        return InvalidArgument("W [", i, "] ", w.shape().ToString(), " does not fit ", x.cols(),
                               " columns and ", bias.numel(), " biases");
      Matrix<T> next = Product<T>(x, RowsOf<T>(w));
      AddBias(bias, &next);
      x = next.cwiseMax(T(0));
      if (i + 1 < count && i < ctx.OutCount("ReluOut")) Put(ctx, "ReluOut", x, i);
    }
    Put(ctx, "Out", x);
    return Status::Ok();
  }
};

// The first input has a row per step, the others one per sequence.
template <typename T>
struct SeqExpandConcatFc {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &w = ctx.In("FCWeight"), *bias = ctx.InOpt("FCBias");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    HEDDLE_ASSIGN_OR_RETURN(const GateActivation activation,
                            GateActivationOf(ctx.Str("fc_activation")));
    const int64_t count = SequenceCount(*offsets);
    Matrix<T> all(x.dim(0), w.dim(0));
    int64_t col = 0;
    for (int i = 0; i < ctx.InCount("X"); ++i) {
      const auto from = RowsOf<T>(ctx.In("X", i));
      if (col + from.cols() > all.cols() || from.rows() != (i == 0 ? x.dim(0) : count))
        return InvalidArgument("X [", i, "] ", ctx.In("X", i).shape().ToString(), " does not fit ",
                               count, " sequences and FCWeight ", w.shape().ToString());
      for (int64_t s = 0; s < count; ++s)
        for (int64_t t = Begin(*offsets, s); t < Begin(*offsets, s + 1); ++t)
          all.block(t, col, 1, from.cols()) = from.row(i == 0 ? t : s);
      col += from.cols();
    }
    if (col != all.cols())
      return InvalidArgument("FCWeight ", w.shape().ToString(), " has more rows than X columns");
    Matrix<T> out = Product<T>(all, RowsOf<T>(w));
    if (bias != nullptr) AddBias(*bias, &out);
    out = out.unaryExpr([&](T v) { return Activate(activation, v); });
    Put(ctx, "Out", out);
    ctx.Out("Out").set_lod(x.lod());
    return Status::Ok();
  }
};

// ((X Y)^2 - X^2 Y^2) * scalar, squares element by element.
template <typename T>
struct SquaredMatSub {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
    if (x.rank() != 2 || y.rank() != 2 || x.dim(1) != y.dim(0))
      return InvalidArgument("X ", x.shape().ToString(), " and Y ", y.shape().ToString(),
                             " cannot be multiplied");
    const Matrix<T> x2 = RowsOf<T>(x).cwiseAbs2(), y2 = RowsOf<T>(y).cwiseAbs2();
    const Matrix<T> xy2 = Product<T>(RowsOf<T>(x), RowsOf<T>(y)).cwiseAbs2();
    const Matrix<T> out = (xy2 - Product<T>(x2, y2)) * static_cast<T>(ctx.Float("scalar"));
    Put(ctx, "SquaredX", x2);
    Put(ctx, "SquaredY", y2);
    Put(ctx, "SquaredXY", xy2);
    Put(ctx, "Out", out);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(fusion_repeated_fc_relu) {
  op.Doc("fully connected layers with relu, one after the other");
  op.Input("X").Input("W", kList).Input("Bias", kList).Output("ReluOut", kList | kOptional);
  op.Output("Out").Kernels<RepeatedFcRelu, float, double>();
}

HEDDLE_OP(fusion_seqexpand_concat_fc) {
  op.Doc("a fully connected layer over steps and what belongs to their whole sequence");
  op.Input("X", kList).Input("FCWeight").Input("FCBias", kOptional).Output("Out");
  op.Attr("fc_activation", "identity").Kernels<SeqExpandConcatFc, float, double>();
}

HEDDLE_OP(fusion_squared_mat_sub) {
  op.Doc("((X Y)^2 - X^2 Y^2) * scalar").Input("X").Input("Y").Output("Out");
  op.Output("SquaredX", kOptional).Output("SquaredY", kOptional).Output("SquaredXY", kOptional);
  op.Attr("scalar", 1.0).Kernels<SquaredMatSub, float, double>();
}
