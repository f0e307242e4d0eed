#include <algorithm>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

// Offsets into X of the elements of each output: outputs × count.
struct MedianGroups {
  int64_t outputs = 0, count = 0;
  std::pmr::vector<int64_t> starts, offsets;  // element (o, i) lies at starts[o] + offsets[i]
  explicit MedianGroups(CallHeap* heap) : starts(heap), offsets(heap) {}
};

Result<MedianGroups> MakeGroups(const KernelContext& ctx, const Shape& x, CallHeap* heap) {
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, AxisMask(ctx.IntList("axis"), false, x.rank()));
  MedianGroups g(heap);
  g.starts = {0};
  g.offsets = {0};
  int64_t stride = x.numel();
  for (int i = 0; i < x.rank(); ++i) {
    stride = x[i] == 0 ? 0 : stride / x[i];
    std::pmr::vector<int64_t>& list = (mask >> i & 1u) != 0 ? g.offsets : g.starts;
    std::pmr::vector<int64_t> longer(heap);
    for (int64_t base : list)
      for (int64_t k = 0; k < x[i]; ++k) longer.push_back(base + k * stride);
    list = std::move(longer);
  }
  g.outputs = std::ssize(g.starts);
  g.count = std::ssize(g.offsets);
  return g;
}

// MedianIndex holds the positions of the two middle elements within X's flattened reduced part (the
// same one twice where there is only one, -1 where all are NaN).
template <typename T>
struct Nanmedian {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    CallHeap heap(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const MedianGroups g, MakeGroups(ctx, xt.shape(), &heap));
    const T* x = xt.data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    Tensor* it = ctx.OutOpt("MedianIndex");
    int64_t* indices = it != nullptr ? it->template mutable_data<int64_t>() : nullptr;
    std::pmr::vector<int64_t> order(&heap);
    for (const int64_t o : Watched(g.outputs)) {
      const auto at = [&](int64_t i) { return x[g.starts[o] + g.offsets[i]]; };
      order.clear();
      for (int64_t i = 0; i < g.count; ++i)
        if (!(at(i) != at(i))) order.push_back(i);
      int64_t low = -1, high = -1;
      out[o] = std::numeric_limits<T>::quiet_NaN();
      if (!order.empty()) {
        LookCount looks;
        std::sort(order.begin(), order.end(), looks.In([&](int64_t a, int64_t b) {
          return at(a) < at(b) || (at(a) == at(b) && a < b);
        }));
        low = order[(order.size() - 1) / 2];
        high = order[order.size() / 2];
        out[o] = low == high ? at(low) : (at(low) + at(high)) / T(2);
      }
      if (indices == nullptr) continue;
      indices[2 * o] = low;
      indices[2 * o + 1] = high;
    }
    return Status::Ok();
  }
};

template <typename T>
struct NanmedianGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    const Tensor& index = ctx.In("MedianIndex");
    const Tensor& dout = ctx.In("Out@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    CallHeap heap(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const MedianGroups g, MakeGroups(ctx, xt.shape(), &heap));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&dx}));
    if (index.dtype() != DType::kI64 || index.numel() != 2 * g.outputs || dout.numel() != g.outputs)
      return InvalidArgument("MedianIndex ", index.shape().ToString(), " and Out@GRAD ",
                             dout.shape().ToString(), " do not fit X ", xt.shape().ToString());
    WatchedFill(dx.mutable_data<T>(), dx.numel(), T(0));
    T* d = dx.mutable_data<T>();
    for (const int64_t o : Watched(g.outputs)) {
      const int64_t low = index.data<int64_t>()[2 * o], high = index.data<int64_t>()[2 * o + 1];
      if (low < 0 && high < 0) continue;
      if (low < 0 || high < 0 || low >= g.count || high >= g.count)
        return OutOfRange("MedianIndex holds ", low, " and ", high, ", expected 0 to ",
                          g.count - 1);
      const T each = dout.data<T>()[o] / T(low == high ? 1 : 2);
      d[g.starts[o] + g.offsets[low]] = each;
      d[g.starts[o] + g.offsets[high]] = each;
    }
    return Status::Ok();
  }
};

Status InferMedian(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferReduce(ctx, DType::kUnknown));
  if (ctx.deferred() || !ctx.HasOut("MedianIndex")) return Status::Ok();
  const Shape& x = ctx.InShape("X");
  Shape index = Shape::Unknown();
  if (x.known_rank()) {
    HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, AxisMask(ctx.IntList("axis"), false, x.rank()));
    index = ReducedShape(x, mask, ctx.Bool("keepdim"));
    index.push_back(2);
  }
  ctx.SetOut("MedianIndex", index, DType::kI64);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(nanmedian) {
  op.Doc("median over axes, NaN left out")
      .Input("X")
      .Output("Out")
      .Output("MedianIndex", kOptional);
  op.Attr("axis", Ints{}).Attr("keepdim", true).InferShape(&InferMedian);
  op.Kernels<Nanmedian, float, double, int32_t, int64_t>();
}

HEDDLE_OP(nanmedian_grad) {
  op.Doc("gradient of nanmedian").Input("X", kNoBuffer).Input("MedianIndex").Input("Out@GRAD");
  op.Output("X@GRAD").Attr("axis", Ints{}).Attr("keepdim", true).KernelKey("Out@GRAD");
  op.InferShape(&GradLikeInputs).Kernels<NanmedianGrad, float, double, int32_t, int64_t>();
}
