// Cross entropies of logits with their gradients, and half the sum of squares.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// The greatest logit and the logarithm of the sum of exponentials in relation to it.
template <typename T>
std::pair<T, T> LogSum(const T* x, int64_t step, int64_t n) {
  T most = -std::numeric_limits<T>::infinity();
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) most = std::max(most, x[i * step]);
  T sum = 0;
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) sum += std::exp(x[i * step] - most);
  return {most, std::log(sum)};
}

Status DenseShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("features"), &labels = ctx.InShape("labels");
  if (!x.known_rank() || !labels.known_rank()) return ctx.Defer();
  if (ctx.InDType("labels") != ctx.InDType("features"))
    return InvalidArgument("labels is ", Name(ctx.InDType("labels")), ", features ",
                           Name(ctx.InDType("features")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(x, labels, -1));
  if (shape.rank() != 2)
    return InvalidArgument("features ", x.ToString(), " and labels ", labels.ToString(),
                           " broadcast to rank ", shape.rank(), ", expected 2");
  ctx.SetOut("loss", {shape[0]}, ctx.InDType("features"));
  ctx.SetOut("backprop", shape, ctx.InDType("features"));
  return Status::Ok();
}

template <typename T>
struct Dense {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("features"), &labels = ctx.In("labels");
    Tensor& back = ctx.Out("backprop");
    const int64_t rows = back.dim(0), cols = back.dim(1);
    const auto xs = BroadcastStrides(x.shape(), back.shape());
    const auto ls = BroadcastStrides(labels.shape(), back.shape());
    T *loss = ctx.Out("loss").template mutable_data<T>(), *to = back.template mutable_data<T>();
    ctx.ParallelFor(rows, 1 + 4096 / (1 + cols), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *from = x.data<T>() + r * xs[0], *label = labels.data<T>() + r * ls[0];
        const auto [most, log_sum] = LogSum(from, xs[1], cols);
        T sum = 0;
        for (int64_t c = 0; c < cols; ++c) {
          const T log_p = from[c * xs[1]] - most - log_sum, p = label[c * ls[1]];
          if (p != T(0)) sum -= p * log_p;
          to[r * cols + c] = std::exp(log_p) - p;
        }
        loss[r] = sum;
      }
    });
    return Status::Ok();
  }
};

Status SparseShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("features"), &labels = ctx.InShape("labels");
  if (!x.known_rank() || !labels.known_rank()) return ctx.Defer();
  if (x.rank() != 2 || labels.rank() != 1 || (x[0] >= 0 && labels[0] >= 0 && x[0] != labels[0]))
    return InvalidArgument("features has shape ", x.ToString(), " and labels ", labels.ToString(),
                           ", expected a label for each row of a matrix");
  ctx.SetOut("loss", labels, ctx.InDType("features"));
  ctx.SetOut("backprop", x, ctx.InDType("features"));
  return Status::Ok();
}

template <typename T>
struct Sparse {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("features"), &labels = ctx.In("labels");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(labels.dtype(), "labels"));
    const int64_t rows = x.dim(0), cols = x.dim(1);
    for (int64_t r = 0; r < rows; ++r)
      if (const int64_t v = IntAt(labels, r); v < 0 || v >= cols)
        return OutOfRange("labels holds ", v, " at position ", r, ", expected 0 to ", cols - 1);
    T* loss = ctx.Out("loss").template mutable_data<T>();
    T* to = ctx.Out("backprop").template mutable_data<T>();
    ctx.ParallelFor(rows, 1 + 4096 / (1 + cols), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = x.data<T>() + r * cols;
        const auto [most, log_sum] = LogSum(from, 1, cols);
        const int64_t label = IntAt(labels, r);
        for (int64_t c = 0; c < cols; ++c)
          to[r * cols + c] = std::exp(from[c] - most - log_sum) - (c == label ? T(1) : T(0));
        loss[r] = log_sum + most - from[label];
      }
    });
    return Status::Ok();
  }
};

template <typename T>
struct L2Loss {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("t");
    const T* v = x.data<T>();
    double sum = 0;
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        sum += static_cast<double>(v[i]) * static_cast<double>(v[i]);
    *ctx.Out("output").template mutable_data<T>() = static_cast<T>(sum / 2);
    return Status::Ok();
  }
};

// Sums over all axes but that of the channels.
Status BiasGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("out_backprop");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 2)
    return InvalidArgument("out_backprop has shape ", x.ToString(), ", expected rank 2 or more");
  const bool last = ctx.Str("data_format") != "NCHW";
  ctx.SetOut("output", {x.dim(last ? -1 : 1)}, ctx.InDType("out_backprop"));
  return Status::Ok();
}

template <typename T>
struct BiasGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("out_backprop");
    const int axis = ctx.Str("data_format") != "NCHW" ? x.rank() - 1 : 1;
    const AxisLines lines = AxisLines::Of(x.shape(), axis);
    T* to = ctx.Out("output").template mutable_data<T>();
    CallHeap heap(ctx);
    std::pmr::vector<double> sums(static_cast<size_t>(lines.n), 0, &heap);
    for (int64_t o = 0; o < lines.outer && x.numel() > 0; ++o)
      for (const int64_t c : Watched(lines.n))
        for (int64_t i = 0; i < lines.inner; ++i)
          sums[static_cast<size_t>(c)] +=
              static_cast<double>(x.data<T>()[(o * lines.n + c) * lines.inner + i]);
    for (int64_t c = 0; c < lines.n; ++c) to[c] = static_cast<T>(sums[static_cast<size_t>(c)]);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_bias_add_grad) {
  op.Doc("sums over all axes but that of the channels").Input("out_backprop").Output("output");
  op.Attr("data_format", "NHWC").InferShape(BiasGradShape);
  op.Kernels<BiasGrad, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_softmax_cross_entropy_with_logits) {
  op.Doc("loss of each row of features against a distribution, and softmax(features) - labels");
  op.Input("features").Input("labels").Output("loss").Output("backprop");
  op.InferShape(DenseShape).Kernels<Dense, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_sparse_softmax_cross_entropy_with_logits) {
  op.Doc("loss of each row of features against a class, and the gradient of features");
  op.Input("features").Input("labels").Output("loss").Output("backprop");
  op.InferShape(SparseShape).KernelKey("features").Kernels<Sparse, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_l2_loss) {
  op.Doc("half the sum of the squares").Input("t").Output("output");
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("output", Shape(), ctx.InDType("t"));
    return Status::Ok();
  });
  op.Kernels<L2Loss, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
