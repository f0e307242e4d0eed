// kthvalue and mode: one element of each line along an axis, and its position.
#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/sort/pick_grad.h"

namespace heddle {
namespace {

Status InferPick(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  Shape out = x;
  if (x.known_rank()) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
    if (x.rank() > 0 && ctx.Bool("keepdim"))
      out[axis] = 1;
    else if (x.rank() > 0)
      out.erase(axis);
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  ctx.SetOut("Indices", out, DType::kI64);
  return Status::Ok();
}

// pick(order, n, value) gives the chosen position of each line.
template <typename T, typename Pick>
Status PickFromLines(KernelContext& ctx, const AxisLines& lines, Pick pick) {
  const T* x = ctx.In("X").data<T>();
  T* out = ctx.Out("Out").template mutable_data<T>();
  int64_t* indices = ctx.Out("Indices").template mutable_data<int64_t>();
  const int64_t grain = std::max<int64_t>(1, (1 << 12) / std::max<int64_t>(1, lines.n));
  ctx.ParallelFor(lines.lines(), grain, [&](int64_t begin, int64_t end) {
    Tensor scratch = ctx.Scratch(DType::kI64, Shape{lines.n});
    int64_t* order = scratch.mutable_data<int64_t>();
    for (int64_t l = begin; l < end; ++l) {
      const T* line = x + lines.Begin(l);
      std::iota(order, order + lines.n, int64_t{0});
      indices[l] = pick(order, [=, &lines](int64_t i) { return line[i * lines.inner]; });
      out[l] = line[indices[l] * lines.inner];
    }
  });
  return Status::Ok();
}

template <typename Value>
auto ByValue(Value value) {
  return [value](int64_t a, int64_t b) {
    if (Less(value(a), value(b))) return true;
    return !Less(value(b), value(a)) && a < b;
  };
}

template <typename T>
struct Kthvalue {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines,
                            AxisLines::At(ctx.In("X").shape(), ctx.Int("axis")));
    const int64_t k = ctx.Int("k"), n = lines.n;
    if (k < 1 || k > n) return InvalidArgument("attribute k is ", k, ", expected 1 to ", n);
    return PickFromLines<T>(ctx, lines, [=](int64_t* order, auto value) {
      LookCount looks;
      std::nth_element(order, order + (k - 1), order + n, looks.In(ByValue(value)));
      return order[k - 1];
    });
  }
};

// The smallest of the most frequent values, at its last position.
template <typename T>
struct Mode {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines,
                            AxisLines::At(ctx.In("X").shape(), ctx.Int("axis")));
    const int64_t n = lines.n;
    if (n == 0 && lines.lines() > 0) return InvalidArgument("the axis of X is empty");
    return PickFromLines<T>(ctx, lines, [=](int64_t* order, auto value) {
      LookCount looks;
      std::sort(order, order + n, looks.In(ByValue(value)));
      int64_t best = order[0], most = 0, count = 0;
      for (const int64_t i : Watched(n)) {
        count = i > 0 && value(order[i]) == value(order[i - 1]) ? count + 1 : 1;
        if (count > most || (count == most && value(order[i]) == value(best))) {
          most = count;
          best = order[i];
        }
      }
      return best;
    });
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(kthvalue) {
  op.Doc("the k-th smallest element along an axis").Input("X").Output("Out").Output("Indices");
  op.Attr("k", 1).Attr("axis", -1).Attr("keepdim", false).InferShape(&InferPick);
  op.Kernels<Kthvalue, float, double, int32_t, int64_t>();
}

HEDDLE_OP(kthvalue_grad) {
  op.Doc("gradient of kthvalue");
  DefinePickGradSlots(op);
  op.Attr("k", 1).Attr("axis", -1).Attr("keepdim", false);
  op.Kernels<PickGrad, float, double, int32_t, int64_t>();
}

HEDDLE_OP(mode) {
  op.Doc("the most frequent element along an axis").Input("X").Output("Out").Output("Indices");
  op.Attr("axis", -1).Attr("keepdim", false).InferShape(&InferPick);
  op.Kernels<Mode, float, double, int32_t, int64_t>();
}

HEDDLE_OP(mode_grad) {
  op.Doc("gradient of mode");
  DefinePickGradSlots(op);
  op.Attr("axis", -1).Attr("keepdim", false);
  op.Kernels<PickGrad, float, double, int32_t, int64_t>();
}
