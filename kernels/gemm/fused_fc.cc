// Fused chains of matrix products: fusion_repeated_fc_relu, fusion_seqexpand_concat_fc and
// fusion_squared_mat_sub.
#include "kernels/rnn/sequence_batch.h"

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

HEDDLE_EXAMPLES(fusion_repeated_fc_relu, R"(
example float32 4x3
in Bias float32 [1, 2] 0.307 0.404
in Bias float32 [1, 4] 0.637 0.688 0.74 0.791
in Bias float32 [1, 3] 0.601 0.614 0.82
in W float32 [3, 2] 0.457 0.579 0.701 0.822 0.214 0.336
in W float32 [2, 4] 0.558 0.368 0.431 0.748 0.495 0.685 0.812 0.622
in W float32 [4, 3] 0.315 0.111 0.586 0.179 0.45 0.857 0.518 0.79 0.654 0.722 0.247 0.383
in X float32 [3, 3] 0.336 0.704 0.612 0.244 0.52 0.889 0.152 0.797 0.428
out Out float32 [3, 3] 4.5574903 4.192857 6.160206 4.3172216 3.9796464 5.841427 4.393391 4.0425262
  5.9383297
out ReluOut float32 [3, 2] 1.085024 1.382864 0.973274 1.27142 1.026753 1.2909501
out ReluOut float32 [3, 4] 1.9269612 2.0345507 2.330531 2.4627395 1.8094399 1.9170876 2.191874
  2.309832 1.8489485 1.950146 2.230782 2.361982

example float64 4x3
in Bias float64 [1, 2] 0.307 0.404
in Bias float64 [1, 4] 0.637 0.688 0.74 0.791
in Bias float64 [1, 3] 0.601 0.614 0.82
in W float64 [3, 2] 0.457 0.579 0.701 0.822 0.214 0.336
in W float64 [2, 4] 0.558 0.368 0.431 0.748 0.495 0.685 0.812 0.622
in W float64 [4, 3] 0.315 0.111 0.586 0.179 0.45 0.857 0.518 0.79 0.654 0.722 0.247 0.383
in X float64 [3, 3] 0.336 0.704 0.612 0.244 0.52 0.889 0.152 0.797 0.428
out Out float64 [3, 3] 4.557490138304 4.192856523792 6.160205505424 4.317221846743999
  3.9796463235959996 5.841427146208 4.3933910158680005 4.0425262339020005 5.938329325216
out ReluOut float64 [3, 2] 1.085024 1.382864 0.973274 1.27142 1.026753 1.29095
out ReluOut float64 [3, 4] 1.926961072 2.034550672 2.330530912 2.46273936 1.809439792 1.917087532
  2.191874134 2.309832192 1.848948424 1.950145854 2.230781943 2.361982144
)")

HEDDLE_EXAMPLES(fusion_seqexpand_concat_fc, R"(
example float32 9x20, fc_activation relu
attr fc_activation STRING "relu"
in FCBias float32 [1, 20] 1 -0.22 -1.14 1.15 -1.29 0.85 1.46 0.08 -0.53 -1.45 0.69 -0.07 -0.84 0.39
  0.54 0.24 1.31 -0.38 -0.99 -0.68
in FCWeight float32 [9, 20] -1.07 1.86 2.5 2.44 -1.3 -1.11 -0.56 0.6 0.28 -2.68 0.47 1.66 2.18 -0.17
  2.15 1.92 0.89 1.21 1.76 -0.78 1.18 0.57 0.73 -1.2 -1.98 -0.94 2.53 -2.01 -2.88 0.63 -0.82 -2.39
  -1.36 -2.72 -0.62 0.86 1.15 -1.94 1.34 1.02 2.28 0.22 1.41 2.34 -1.62 -2.3 1.7 -1.85 -2.14 2.57
  0.54 -0.53 -2.43 0.25 1.28 -2.75 -1.14 0.34 0.12 1.57 -1.91 -2.49 -0.85 -0.11 -2.65 0.67 1.31
  -1.01 -0.98 -1.78 0.38 -3.1 -0.3 2.41 1.99 -1.52 0.41 -0.04 1.63 -1.27 -3.07 -1.81 -2.07 -0.01
  2.37 -2.59 -1.49 -2.17 -2.94 1.83 0.96 -2.46 -1.17 0.09 -0.33 -2.1 -1.65 1.08 1.73 1.37 2.05 -1.75
  -2.23 -1.23 0.05 0.83 -0.59 -0.49 -1.72 0.7 2.47 2.21 -2.62 -0.91 0.79 2.12 -0.14 1.6 -1.04 -0.07
  -0.88 -0.2 0.92 -2.04 0.5 -0.43 -1.43 1.05 -0.27 -0.75 1.54 -1.46 -2.33 -0.46 0.18 -3.01 -2.91
  -1.33 -0.69 -2.78 0.99 0.15 -2.55 -1.4 1.95 -1.56 1.25 1.12 -1.88 -0.72 -3.13 2.08 -0.36 2.24
  -3.04 -2.81 2.02 -2.26 1.47 -0.65 -1.69 1.79 -2.84 -3.17 1.5 0.31 1.89 -2.2 -3.2 0.76 0.44 2.31
  -0.24 -0.4 1.44 -2.97 0.02 -2.36 -2.52 -1.59
in X float32 [5, 6] lod [[0, 5]] 1.31 1.46 -1.83 1.76 -0.63 -1.38 -1.53 -0.48 0.26 -0.19 2.06 1.01
  0.11 -1.98 0.41 0.71 0.86 -0.78 -0.04 1.91 -1.68 -0.93 -1.08 -0.33 1.61 -2.13 -2.28 -1.23 1.16
  0.56
in X float32 [1, 3] lod [[0, 1]] -0.72 -2.19 -1.35
close 5e-05 5e-06
out FCOut ?
out Out float32 [5, 20] lod [[0, 5]] 0 0 12.262099 8.6366005 0 7.2055006 1.1082993 1.3438002
  10.6807995 0 0.9276004 0 11.0918 0 7.3129992 17.096102 5.8398004 3.8846998 6.945999 0*4 6.1735
  0.008898735 1.0846002 0 0 0.8917999 8.922 10.0569 0 0 0 2.2048995 6.6092005 0 11.7297 0 8.9964 0 0
  6.3794994 14.440801 0 2.5545 0 0.9274001 11.0748 0 6.907401 0 4.7107 4.3233004 7.6257997 5.4127007
  0 12.4791 0.7353997 3.7610002 4.6286 2.6717002 10.303599 4.162501 0 8.1707 0 2.5307004 10.839 0
  1.1444006 0 5.7548 0 0 21.7384 4.4774 2.7308006 0 3.958 0 0 4.2669 10.548401 3.9091997 6.2529 0
  7.7571993 16.3978 0 9.1434 4.476201 11.441601 0 4.5996 20.7208 0 16.2161 0 0.9956994

example float64 9x20, fc_activation relu
attr fc_activation STRING "relu"
in FCBias float64 [1, 20] 1 -0.22 -1.14 1.15 -1.29 0.85 1.46 0.08 -0.53 -1.45 0.69 -0.07 -0.84 0.39
  0.54 0.24 1.31 -0.38 -0.99 -0.68
in FCWeight float64 [9, 20] -1.07 1.86 2.5 2.44 -1.3 -1.11 -0.56 0.6 0.28 -2.68 0.47 1.66 2.18 -0.17
  2.15 1.92 0.89 1.21 1.76 -0.78 1.18 0.57 0.73 -1.2 -1.98 -0.94 2.53 -2.01 -2.88 0.63 -0.82 -2.39
  -1.36 -2.72 -0.62 0.86 1.15 -1.94 1.34 1.02 2.28 0.22 1.41 2.34 -1.62 -2.3 1.7 -1.85 -2.14 2.57
  0.54 -0.53 -2.43 0.25 1.28 -2.75 -1.14 0.34 0.12 1.57 -1.91 -2.49 -0.85 -0.11 -2.65 0.67 1.31
  -1.01 -0.98 -1.78 0.38 -3.1 -0.3 2.41 1.99 -1.52 0.41 -0.04 1.63 -1.27 -3.07 -1.81 -2.07 -0.01
  2.37 -2.59 -1.49 -2.17 -2.94 1.83 0.96 -2.46 -1.17 0.09 -0.33 -2.1 -1.65 1.08 1.73 1.37 2.05 -1.75
  -2.23 -1.23 0.05 0.83 -0.59 -0.49 -1.72 0.7 2.47 2.21 -2.62 -0.91 0.79 2.12 -0.14 1.6 -1.04 -0.07
  -0.88 -0.2 0.92 -2.04 0.5 -0.43 -1.43 1.05 -0.27 -0.75 1.54 -1.46 -2.33 -0.46 0.18 -3.01 -2.91
  -1.33 -0.69 -2.78 0.99 0.15 -2.55 -1.4 1.95 -1.56 1.25 1.12 -1.88 -0.72 -3.13 2.08 -0.36 2.24
  -3.04 -2.81 2.02 -2.26 1.47 -0.65 -1.69 1.79 -2.84 -3.17 1.5 0.31 1.89 -2.2 -3.2 0.76 0.44 2.31
  -0.24 -0.4 1.44 -2.97 0.02 -2.36 -2.52 -1.59
in X float64 [5, 6] lod [[0, 5]] 1.31 1.46 -1.83 1.76 -0.63 -1.38 -1.53 -0.48 0.26 -0.19 2.06 1.01
  0.11 -1.98 0.41 0.71 0.86 -0.78 -0.04 1.91 -1.68 -0.93 -1.08 -0.33 1.61 -2.13 -2.28 -1.23 1.16
  0.56
in X float64 [1, 3] lod [[0, 1]] -0.72 -2.19 -1.35
out FCOut ?
out Out float64 [5, 20] lod [[0, 5]] 0 0 12.2621 8.6366 0 7.2055 1.1082999999999998
  1.3438000000000012 10.6808 0 0.9275999999999991 0 11.0918 0 7.313 17.0961 5.839799999999999
  3.8847000000000005 6.946000000000001 0*4 6.173499999999999 0.008899999999999686 1.0846000000000005
  0 0 0.891799999999999 8.922000000000002 10.056899999999999 0 0 0 2.2049000000000003
  6.609200000000001 0 11.729700000000001 0 8.9964 0 0 6.3795 14.4408 0 2.5545000000000004 0
  0.9274000000000007 11.0748 0 6.907399999999998 0 4.7107 4.323300000000001 7.6258 5.412700000000001
  0 12.479099999999999 0.7353999999999996 3.761 4.6286000000000005 2.6717000000000004
  10.303600000000001 4.1625 0 8.1707 0 2.5307000000000017 10.838999999999999 0 1.1443999999999983 0
  5.7548 0 0 21.738400000000002 4.4773999999999985 2.7308000000000012 0 3.9579999999999997 0 0
  4.2669000000000015 10.548399999999999 3.909200000000001 6.252899999999999 0 7.757200000000001
  16.397799999999997 0 9.143399999999998 4.4762 11.441600000000001 0 4.599600000000001 20.7208 0
  16.2161 0 0.9957000000000011
)")

HEDDLE_EXAMPLES(fusion_squared_mat_sub, R"(
example float32 3x4, scalar -0.3
attr scalar FLOAT -0.3
in X float32 [3, 4] 0.272 0.768 0.697 0.485 0.201 0.414 0.556 0.91 0.131 0.839 0.627 0.343
in Y float32 [4, 2] 0.887 0.343 0.778 0.451 0.56 0.234 0.125 0.669
out Out float32 [3, 2] -0.32763457 -0.17975897 -0.18333489 -0.16858926 -0.23631552 -0.1259499
out SquaredX float32 [3, 4] 0.073984005 0.589824 0.48580903 0.235225 0.040401 0.171396 0.309136
  0.8281 0.017160999 0.70392096 0.39312896 0.117649
out SquaredXY float32 [3, 2] 1.6633596 0.85975 0.8565299 0.9891318 1.3524157 0.6392115
out SquaredY float32 [4, 2] 0.78676903 0.117649 0.605284 0.203401 0.3136 0.054755997 0.015625
  0.44756103

example float64 3x4, scalar -0.3
attr scalar FLOAT -0.3
in X float64 [3, 4] 0.272 0.768 0.697 0.485 0.201 0.414 0.556 0.91 0.131 0.839 0.627 0.343
in Y float64 [4, 2] 0.887 0.343 0.778 0.451 0.56 0.234 0.125 0.669
out Out float64 [3, 2] -0.32763456750862735 -0.17975895134097866 -0.1833348871414737
  -0.16858924319113436 -0.23631544147773167 -0.12594989229259884
out SquaredX float64 [3, 4] 0.07398400000000001 0.589824 0.48580899999999994 0.235225
  0.040401000000000006 0.171396 0.3091360000000001 0.8281000000000001 0.017161000000000003
  0.7039209999999999 0.393129 0.11764900000000002
out SquaredXY float64 [3, 2] 1.6633596223689997 0.859749909529 0.8565298891210003 0.9891316916010001
  1.3524154883560002 0.6392114430489999
out SquaredY float64 [4, 2] 0.786769 0.11764900000000002 0.605284 0.203401 0.31360000000000005
  0.054756000000000006 0.015625 0.44756100000000004
)")
