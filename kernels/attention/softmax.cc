// softmax and log_softmax with their gradients.
#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
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

template <bool kLog>
void Define(OpDef& op) {
  op.Input("X").Output("Out").Attr("axis", -1).Inplace("X", "Out");
  op.Contract("X: float; axis: axis X; Out: like X");
  op.Kernels<SoftmaxOp<kLog>::template Kernel, float, double>().Kernel({DType::kF16, DType::kBF16},
                                                                       RunInFloat);
  op.Cost([](const ShapeContext& ctx) {
    return 30 + 1.2 * static_cast<double>(ctx.InShape("X").numel());
  });
}
template <bool kLog>
void DefineGrad(OpDef& op) {
  op.Input("Out").Input("Out@GRAD").Output("X@GRAD").Attr("axis", -1);
  op.Inplace("Out@GRAD", "X@GRAD");
  op.Contract("Out: float; Out@GRAD: like Out; axis: axis Out; X@GRAD: like Out");
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
