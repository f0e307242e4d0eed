// softmax and log_softmax with their gradients.
#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/elementwise/convert.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

// The dimensions of the tensor seen as [outer, axis, inner].
struct AxisView {
  int64_t outer = 1, axis = 1, inner = 1;
};

Result<AxisView> SoftmaxViewOf(const Shape& s, int64_t axis_attr) {
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axis_attr, s.rank()));
  AxisView v;
  if (s.rank() == 0) return v;
  v.outer = s.Product(0, axis);
  v.axis = s[axis];
  v.inner = s.Product(axis + 1, s.rank());
  return v;
}

// A row of elements, contiguous.
template <typename T>
using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <typename T>
using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
// A block [axis, columns] whose rows are `inner` apart.
template <typename T>
using Block = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
                         Eigen::OuterStride<>>;
template <typename T>
using ConstBlock =
    Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
               Eigen::OuterStride<>>;

constexpr int64_t kColumns = 64;  // in a block
template <typename T>
using Columns = Eigen::Array<T, 1, Eigen::Dynamic, Eigen::RowMajor, 1, kColumns>;

// A pass over a row is one sum, in its own order: long rows have looks between their passes.
void LookAfter(int64_t n) {
  constexpr int64_t kLongRow = 1 << 18;
  if (n > kLongRow) LookForInterrupt();
}

// y = exp(x - top); returns the sum of y.
template <typename T>
T ExpSum(const T* x, int64_t n, T top, T* y) {
  if constexpr (std::is_same_v<T, float>) return simd::BestMicrokernels()->exp_sum(x, n, top, y);
  Row<T> to(y, n);
  to = (ConstRow<T>(x, n) - top).exp();
  return to.sum();
}

template <bool kLog>
struct Forward {
  template <typename T>
  static void OneRow(const T* x, int64_t n, T* y) {
    const ConstRow<T> from(x, n);
    Row<T> to(y, n);
    const T top = from.maxCoeff();
    LookAfter(n);
    if constexpr (kLog) {
      to = from - top;
      LookAfter(n);
      to -= std::log(to.exp().sum());
    } else {
      const T sum = ExpSum(x, n, top, y);
      LookAfter(n);
      to *= T(1) / sum;
    }
  }
  template <typename T>
  static void Columnwise(const T* x, int64_t n, int64_t step, int64_t width, T* y) {
    const ConstBlock<T> from(x, n, width, Eigen::OuterStride<>(step));
    Block<T> to(y, n, width, Eigen::OuterStride<>(step));
    Columns<T> top = from.row(0), sum = Columns<T>::Zero(width);
    for (const int64_t i : Watched(1, n)) top = top.max(from.row(i));
    for (const int64_t i : Watched(n)) {
      if constexpr (kLog) {
        to.row(i) = from.row(i) - top;
        sum += to.row(i).exp();
      } else {
        to.row(i) = (from.row(i) - top).exp();
        sum += to.row(i);
      }
    }
    if constexpr (kLog)
      sum = sum.log();
    else
      sum = sum.inverse();
    for (const int64_t i : Watched(n)) {
      if constexpr (kLog)
        to.row(i) -= sum;
      else
        to.row(i) *= sum;
    }
  }
};

template <bool kLog>
struct Backward {
  template <typename T>
  static void OneRow(const T* y, const T* g, int64_t n, T* x) {
    const ConstRow<T> out(y, n), grad(g, n);
    Row<T> to(x, n);
    if constexpr (kLog) {
      const T sum = grad.sum();
      LookAfter(n);
      to = grad - out.exp() * sum;
    } else {
      const T sum = (out * grad).sum();
      LookAfter(n);
      to = out * (grad - sum);
    }
  }
  template <typename T>
  static void Columnwise(const T* y, const T* g, int64_t n, int64_t step, int64_t width, T* x) {
    const ConstBlock<T> out(y, n, width, Eigen::OuterStride<>(step));
    const ConstBlock<T> grad(g, n, width, Eigen::OuterStride<>(step));
    Block<T> to(x, n, width, Eigen::OuterStride<>(step));
    Columns<T> sum = Columns<T>::Zero(width);
    for (const int64_t i : Watched(n)) {
      if constexpr (kLog)
        sum += grad.row(i);
      else
        sum += out.row(i) * grad.row(i);
    }
    for (const int64_t i : Watched(n)) {
      if constexpr (kLog)
        to.row(i) = grad.row(i) - out.row(i).exp() * sum;
      else
        to.row(i) = out.row(i) * (grad.row(i) - sum);
    }
  }
};

// Calls row(at) for each row, or block(at, width) for each block of columns.
template <typename RowFn, typename BlockFn>
void ForEach(const KernelContext& ctx, const AxisView& v, RowFn&& row, BlockFn&& block) {
  if (v.outer * v.axis * v.inner == 0) return;
  if (v.inner == 1) {
    ctx.ParallelFor(v.outer, 1 + 32768 / v.axis, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) row(i * v.axis);
    });
    return;
  }
  const int64_t blocks = (v.inner + kColumns - 1) / kColumns;
  ctx.ParallelFor(v.outer * blocks, 1 + 32768 / (v.axis * std::min(v.inner, kColumns)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t at = i % blocks * kColumns;
                      block(i / blocks * v.axis * v.inner + at, std::min(kColumns, v.inner - at));
                    }
                  });
}

template <bool kLog>
struct SoftmaxOp {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& x = ctx.In("X");
      const T* from = x.data<T>();
      T* to = ctx.Out("Out").mutable_data<T>();
      HEDDLE_ASSIGN_OR_RETURN(const AxisView v, SoftmaxViewOf(x.shape(), ctx.Int("axis")));
      ForEach(
          ctx, v, [&](int64_t at) { Forward<kLog>::OneRow(from + at, v.axis, to + at); },
          [&](int64_t at, int64_t width) {
            Forward<kLog>::Columnwise(from + at, v.axis, v.inner, width, to + at);
          });
      return Status::Ok();
    }
  };
  template <typename T>
  struct GradKernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& out = ctx.In("Out");
      const T* y = out.data<T>();
      const T* g = ctx.In("Out@GRAD").data<T>();
      T* to = ctx.Out("X@GRAD").mutable_data<T>();
      HEDDLE_ASSIGN_OR_RETURN(const AxisView v, SoftmaxViewOf(out.shape(), ctx.Int("axis")));
      ForEach(
          ctx, v, [&](int64_t at) { Backward<kLog>::OneRow(y + at, g + at, v.axis, to + at); },
          [&](int64_t at, int64_t width) {
            Backward<kLog>::Columnwise(y + at, g + at, v.axis, v.inner, width, to + at);
          });
      return Status::Ok();
    }
  };
};

Status SoftmaxShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (x.known_rank()) HEDDLE_RETURN_IF_ERROR(NormalAxis(ctx.Int("axis"), x.rank()).status());
  return SameShape(ctx);
}

Status SoftmaxGradShape(ShapeContext& ctx) {
  const Shape& out = ctx.InShape("Out");
  const Shape& grad = ctx.InShape("Out@GRAD");
  if (out.is_static() && grad.is_static() && !(out == grad))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString(), ", Out ", out.ToString());
  return SameShape(ctx);
}

template <bool kLog>
void Define(OpDef& op) {
  op.Input("X").Output("Out").Attr("axis", -1).Inplace("X", "Out").InferShape(SoftmaxShape);
  op.Kernels<SoftmaxOp<kLog>::template Kernel, float, double>().Kernel({DType::kF16, DType::kBF16},
                                                                       RunInFloat);
  op.Cost([](const ShapeContext& ctx) {
    return 30 + 1.2 * static_cast<double>(ctx.InShape("X").numel());
  });
}
template <bool kLog>
void DefineGrad(OpDef& op) {
  op.Input("Out").Input("Out@GRAD").Output("X@GRAD").Attr("axis", -1);
  op.Inplace("Out@GRAD", "X@GRAD").InferShape(SoftmaxGradShape);
  op.Kernels<SoftmaxOp<kLog>::template GradKernel, float, double>().Kernel(
      {DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(softmax) {
  op.Doc("exp(x) scaled to sum 1 along an axis");
  Define<false>(op);
}
HEDDLE_OP(softmax_grad) { DefineGrad<false>(op); }
HEDDLE_OP(log_softmax) {
  op.Doc("logarithm of softmax along an axis");
  Define<true>(op);
}
HEDDLE_OP(log_softmax_grad) { DefineGrad<true>(op); }

HEDDLE_EXAMPLES(softmax, R"(
example float32 4x1x4, axis 1
attr axis INT 1
in X float32 [4, 1, 4] 1.71 -1.35 0.49 2.33 1.41 -1.05 -1.97 -0.74 -1.66 2.02 0.79 -0.13 2.63 1.1
  0.18 -0.43
out Out float32 [4, 1, 4] 1*16

example float64 3x1, axis 0
attr axis INT 0
in X float64 [3, 1] 1.08 1.26 0.42
out Out float64 [3, 1] 0.36845051154353753 0.441115349871036 0.19043413858542657

example float32 4x4, axis 1
attr axis INT 1
in X float32 [4, 4] 2.54 -2.07 -1.09 1.88 -0.76 -1.74 0.89 1.55 -0.43 2.21 0.56 0.23 -1.42 1.22 -2.4
  -0.1
out Out float32 [4, 4] 0.64378256 0.006406809 0.017070655 0.3327399 0.060035843 0.022532118
  0.31260544 0.60482657 0.050918486 0.7135312 0.13703358 0.0985167 0.052268635 0.7324509 0.019616993
  0.19566348

example float32 4x1x4, axis 2
attr axis INT 2
in X float32 [4, 1, 4] 1.13 0.47 -1.18 -0.52 2.12 2.45 -2.5 -1.51 -0.19 0.8 -2.17 -1.84 1.46 0.14
  -0.85 1.79
out Out float32 [4, 1, 4] 0.5530476 0.2858434 0.0548962 0.10621275 0.41197407 0.57304287
  0.0040590977 0.010923981 0.2486725 0.669236 0.034334023 0.047757525 0.36266512 0.09688065
  0.035998594 0.50445557
)")

HEDDLE_EXAMPLES(softmax_grad, R"(
example float64 2x2, axis 1
attr axis INT 1
in Out float64 [2, 2] 0.7271082163411295 0.2728917836588705 0.051173700917091655 0.9488262990829084
in Out@GRAD float64 [2, 2] 0.9 0.7 0.2 0.8
out X@GRAD float64 [2, 2] 0.03968437161407009 -0.03968437161407019 -0.02913297195092383
  0.029132971950923844

example float64 4x1x4, axis 2
attr axis INT 2
in Out float64 [4, 1, 4] 0.03180823513947985 0.8624051940400991 0.06154232951872295
  0.04424424130169814 0.013685844460572225 0.09912305396281419 0.516131742392833 0.3710593591837807
  0.3995348822835227 0.10672987142469932 0.28723510920755524 0.20650013708422268 0.2301589425304685
  0.3201437535408086 0.44530975770202824 0.004387546226694796
in Out@GRAD float64 [4, 1, 4] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5
out X@GRAD float64 [4, 1, 4] 0.006330716178042623 -0.0008386169635828776 0.012248621132551795
  -0.017740720347011563 0.002984070867944131 0.01170055294974427 0.16415089165473468
  -0.17883551547242307 0.14563328630414157 -0.05715309236909339 0.10469922590173406
  -0.19317941983678222 0.15855837363349687 -0.06757973396148177 -0.09400125607048247
  0.003022616398467412

example float64 3x1, axis 0
attr axis INT 0
in Out float64 [3, 1] 0.3385872050825193 0.5417375620297264 0.11967523288775415
in Out@GRAD float64 [3, 1] -0.5 -0.9 0.2
out X@GRAD float64 [3, 1] 0.04500581097160018 -0.14468598859629214 0.09968017762469183

example float32 2x2, axis 1
attr axis INT 1
in Out float32 [2, 2] 0.72710824 0.2728918 0.051173702 0.9488263
in Out@GRAD float32 [2, 2] 0.9 0.7 0.2 0.8
out X@GRAD float32 [2, 2] 0.039684337 -0.039684385 -0.029132972 0.029133009
)")

HEDDLE_EXAMPLES(log_softmax, R"(
example float32 9, axis 0
attr axis INT 0
in X float32 [9] -2.16 -0.57 1.01 -0.04 -1.63 2.07 -1.1 1.54 0.48
out Out float32 [9] -5.110815 -3.520815 -1.9408149 -2.9908147 -4.580815 -0.8808149 -4.050815
  -1.4108149 -2.4708147

example float32 7x1, axis -2
attr axis INT -2
in X float32 [7, 1] 0.62 -1.34 1.27 -0.69 1.93 -2 -0.04
out Out float32 [7, 1] -2.031045 -3.991045 -1.381045 -3.341045 -0.721045 -4.651045 -2.6910448

example float32 2x1x3x4, axis -3
attr axis INT -3
in X float32 [2, 1, 3, 4] -2.51 1.56 2.04 -1.55 -1.31 0.12 0.6 1.08 -0.6 0.36 -0.12 2.28 -0.84 -0.36
  2.52 -2.03 -1.08 -2.27 1.32 0.84 2.76 -1.79 1.8 -2.75
out Out float32 [2, 1, 3, 4] 0*24

example float32 3x4x2, axis 2
attr axis INT 2
in X float32 [3, 4, 2] -0.61 -1.56 -1.32 1.76 -1.8 -2.27 -0.38 0.1 -2.04 1.05 0.57 -2.75 2.7 0.81
  2.47 1.99 -1.09 -0.14 1.28 -2.51 1.52 -0.85 2.23 0.33
out Out float32 [3, 4, 2] -0.32695642 -1.2769563 -3.1249342 -0.044934392 -0.48550922 -0.95550925
  -0.9616748 -0.48167485 -3.134497 -0.044497102 -0.03551466 -3.3555145 -0.1406935 -2.0306935
  -0.48167485 -0.96167487 -1.2769564 -0.32695642 -0.022344144 -3.812344 -0.089365914 -2.4593658
  -0.1393867 -2.0393867

example float64 9, axis 0
attr axis INT 0
in X float64 [9] -2.16 -0.57 1.01 -0.04 -1.63 2.07 -1.1 1.54 0.48
out Out float64 [9] -5.110814897246298 -3.5208148972462974 -1.9408148972462977 -2.990814897246298
  -4.580814897246298 -0.8808148972462979 -4.050814897246298 -1.4108148972462977 -2.4708148972462975
)")

HEDDLE_EXAMPLES(log_softmax_grad, R"(
example float64 9, axis 0
attr axis INT 0
in Out float64 [9] -4.050814897246298 -1.9408148972462977 -2.470814897246298 -4.580814897246298
  -2.990814897246298 -0.880814897246298 -5.110814897246298 -1.410814897246298 -3.520814897246298
in Out@GRAD float64 [9] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5
out X@GRAD float64 [9] 0.0017408182977534303 0.41435868935256337 -0.4915484040890135
  0.30102465430136466 0.8050246474322224 0.4414445043911496 -0.5993968833860144 -0.37560555874951296
  -0.49704246755051235

example float64 4x3x1, axis -2
attr axis INT -2
in Out float64 [4, 3, 1] -2.314130815395001 -0.13413081539500116 -3.6241308153950014
  -0.9493947835549654 -4.009394783554965 -0.5193947835549655 -2.433526814571007 -1.9935268145710072
  -0.2535268145710071 -0.6021439350216798 -1.0321439350216797 -2.3421439350216797
in Out@GRAD float64 [4, 3, 1] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [4, 3, 1] -0.41218107200155374 1.0615037582589015 -0.6493226862573478
  0.38390745310242486 -0.5054433119562457 0.1215358588538209 0.13859117708754864 -0.2953499226164476
  0.156758745528899 -0.10952725600017012 -0.5712484761481996 0.6807757321483697

example float64 4x3, axis 0
attr axis INT 0
in Out float64 [4, 3] -1.125020849248048 -1.645552133140466 -3.675668486460756 -2.0250208492480484
  -0.29555213314046586 -5.025668486460756 -3.375020849248048 -2.995552133140466 -0.9756684864607557
  -0.6750208492480481 -4.345552133140465 -0.5256684864607559
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [4, 3] -0.6324645698669089 -0.2527691575633079 -0.7253324654510799
  0.4868008908755859 0.8394171166607145 0.293432805053659 0.19657825951029334 -0.10998378590241951
  0.32305971015832136 -0.05091458051897029 -0.47666417319498683 0.10883995023909943

example float32 9, axis 0
attr axis INT 0
in Out float32 [9] -4.050815 -1.9408149 -2.470815 -4.580815 -2.990815 -0.8808149 -5.110815
  -1.4108149 -3.520815
in Out@GRAD float32 [9] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5
out X@GRAD float32 [9] 0.0017408188 0.4143587 -0.4915484 0.30102468 0.8050247 0.44144452 -0.5993969
  -0.37560555 -0.49704248
)")
