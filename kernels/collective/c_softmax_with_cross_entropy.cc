// c_softmax_with_cross_entropy: softmax and cross entropy where the classes are spread over ranks,
// each of which has an equal stretch of them (Shoeybi et al., Megatron-LM, 2019).
#include <cmath>
#include <limits>
#include <vector>

#include "core/shapes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

Status LossShape(ShapeContext& ctx) {
  const Shape& logits = ctx.InShape("Logits");
  ctx.SetOut("Softmax", logits, ctx.InDType("Logits"));
  if (!logits.known_rank()) {
    ctx.SetOut("Loss", logits, ctx.InDType("Logits"));
    return Status::Ok();
  }
  if (logits.rank() < 1)
    return InvalidArgument("'Logits' is a scalar; an axis of classes is expected");
  Shape loss = logits;
  loss[loss.rank() - 1] = 1;
  ctx.SetOut("Loss", loss, ctx.InDType("Logits"));
  return Status::Ok();
}

// The labels, one for each row.
Result<std::vector<int64_t>> LabelsOf(const Tensor& label, int64_t rows) {
  if (label.numel() != rows)
    return InvalidArgument("'Label' has the shape ", label.shape().ToString(), "; one for each of ",
                           rows, " rows is expected");
  std::vector<int64_t> labels(static_cast<size_t>(rows));
  for (size_t i = 0; i < labels.size(); ++i) {
    if (label.dtype() == DType::kI64)
      labels[i] = label.data<int64_t>()[i];
    else if (label.dtype() == DType::kI32)
      labels[i] = label.data<int32_t>()[i];
    else
      return InvalidArgument("'Label' is ", Name(label.dtype()), "; int32 or int64 is expected");
  }
  return labels;
}

int64_t RowsOfClasses(const Tensor& logits) { return logits.shape().Product(0, logits.rank() - 1); }

template <typename T>
struct ShardedLoss {
  static Status Run(KernelContext& ctx) {
    const Tensor& logits = ctx.In("Logits");
    const int64_t nranks = ctx.Int("nranks");
    HEDDLE_RETURN_IF_ERROR(CheckNranks(nranks));
    if (nranks == 1 && CommunicatorOf(ctx.services()) == nullptr)
      return Compute(ctx, logits, 0, [](Reduction, Tensor*) { return Status::Ok(); });
    return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
      HEDDLE_RETURN_IF_ERROR(CheckCount(ranks, nranks));
      return Compute(ctx, logits, ranks.rank(), [&](Reduction how, Tensor* rows) {
        Tensor all = ctx.Scratch(rows->dtype(), rows->shape());
        HEDDLE_RETURN_IF_ERROR(ranks.AllReduce(call, how, *rows, &all));
        CopyWhole(ctx, all, rows);
        return Status::Ok();
      });
    });
  }

  // `reduce(how, rows)` makes one value of all ranks' for each row.
  template <typename Reduce>
  static Status Compute(KernelContext& ctx, const Tensor& logits, int64_t rank, Reduce&& reduce) {
    const int64_t rows = RowsOfClasses(logits), width = logits.dim(-1);
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, LabelsOf(ctx.In("Label"), rows));
    const int64_t ignored = ctx.Int("ignore_index"), first = rank * width;
    for (const int64_t label : labels)
      if (label != ignored && (label < 0 || label >= width * ctx.Int("nranks")))
        return OutOfRange("'Label' holds ", label, "; there are ", width * ctx.Int("nranks"),
                          " classes");
    const T* x = logits.data<T>();
    T* softmax = ctx.Out("Softmax").template mutable_data<T>();
    T* loss = ctx.Out("Loss").template mutable_data<T>();
    Tensor most = ctx.Scratch(logits.dtype(), {rows});
    Tensor sums = ctx.Scratch(logits.dtype(), {rows}), hits = ctx.Scratch(logits.dtype(), {rows});
    const auto for_rows = [&](auto&& fn) {
      ctx.ParallelFor(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(width, 1)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t r = begin; r < end; ++r) fn(r, x + r * width);
                      });
    };
    for_rows([&](int64_t r, const T* row) {
      T top = -std::numeric_limits<T>::infinity();
      for (int64_t c = 0; c < width; ++c) top = std::max(top, row[c]);
      most.mutable_data<T>()[r] = top;
    });
    HEDDLE_RETURN_IF_ERROR(reduce(Reduction::kMax, &most));
    for_rows([&](int64_t r, const T* row) {
      const T top = most.data<T>()[r];
      T sum = 0;
      for (int64_t c = 0; c < width; ++c) {
        softmax[r * width + c] = std::exp(row[c] - top);
        sum += softmax[r * width + c];
      }
      sums.mutable_data<T>()[r] = sum;
      const int64_t at = labels[static_cast<size_t>(r)] - first;
      hits.mutable_data<T>()[r] = at >= 0 && at < width ? row[at] - top : T(0);
    });
    HEDDLE_RETURN_IF_ERROR(reduce(Reduction::kSum, &sums));
    HEDDLE_RETURN_IF_ERROR(reduce(Reduction::kSum, &hits));
    for_rows([&](int64_t r, const T*) {
      const T sum = sums.data<T>()[r];
      for (int64_t c = 0; c < width; ++c) softmax[r * width + c] /= sum;
      loss[r] =
          labels[static_cast<size_t>(r)] == ignored ? T(0) : std::log(sum) - hits.data<T>()[r];
    });
    return Status::Ok();
  }
};

template <typename T>
struct ShardedLossGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &softmax = ctx.In("Softmax"), &dloss = ctx.In("Loss@GRAD");
    const int64_t rows = RowsOfClasses(softmax), width = softmax.dim(-1);
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, LabelsOf(ctx.In("Label"), rows));
    if (dloss.numel() != rows || dloss.dtype() != softmax.dtype())
      return InvalidArgument("'Loss@GRAD' is ", Name(dloss.dtype()), " ", dloss.shape().ToString(),
                             "; ", rows, " elements of ", Name(softmax.dtype()), " are expected");
    const int64_t first = ctx.Int("rank") * width, ignored = ctx.Int("ignore_index");
    const T *s = softmax.data<T>(), *d = dloss.data<T>();
    T* to = ctx.Out("Logits@GRAD").template mutable_data<T>();
    ctx.ParallelFor(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(width, 1)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t r = begin; r < end; ++r) {
                        const int64_t label = labels[static_cast<size_t>(r)];
                        for (int64_t c = 0; c < width; ++c) {
                          const T hit = label == first + c ? T(1) : T(0);
                          to[r * width + c] =
                              label == ignored ? T(0) : (s[r * width + c] - hit) * d[r];
                        }
                      }
                    });
    return Status::Ok();
  }
};

Status LogitsGradShape(ShapeContext& ctx) {
  ctx.SetOut("Logits@GRAD", ctx.InShape("Softmax"), ctx.InDType("Softmax"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_softmax_with_cross_entropy) {
  op.Doc(
        "softmax and cross entropy of classes of which rank r has the r-th of nranks equal "
        "stretches; labels count over all")
      .Input("Logits")
      .Input("Label")
      .Output("Softmax")
      .Output("Loss");
  op.Attr("ignore_index", -100).Attr("ring_id", 0).Attr("rank", 0).Attr("nranks", 1);
  op.Traits(kCommunication).KernelKey("Logits").InferShape(LossShape);
  op.Kernels<ShardedLoss, float, double>();
}
HEDDLE_OP(c_softmax_with_cross_entropy_grad) {
  op.Doc("gradient of c_softmax_with_cross_entropy").Input("Softmax").Input("Label");
  op.Input("Loss@GRAD").Output("Logits@GRAD").Attr("ignore_index", -100).Attr("ring_id", 0);
  op.Attr("rank", 0).Attr("nranks", 1).Inplace("Softmax", "Logits@GRAD");
  op.KernelKey("Softmax").InferShape(LogitsGradShape);
  op.Kernels<ShardedLossGrad, float, double>();
}
