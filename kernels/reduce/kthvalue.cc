// kthvalue and mode: one element of each line along an axis, and its position.
#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/pick_grad.h"

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

HEDDLE_EXAMPLES(kthvalue, R"(
example float32 4x3, axis 0, k 3
attr axis INT 0
attr k INT 3
in X float32 [4, 3] -1.01 0.72 -0.43 -0.72 0.14 -0.14 -1.58 0.43 1.01 1.3 1.58 -1.3
out Indices int64 [3] 1 0 1
out Out float32 [3] -0.72 0.72 -0.14

example float32 3x4x2, axis 2, k 2, keepdim
attr axis INT 2
attr k INT 2
attr keepdim BOOLEAN true
in X float32 [3, 4, 2] -0.97 1.57 -1.27 -0.82 1.72 1.27 -1.42 0.82 0.97 0.67 0.37 -0.22 0.52 -1.12
  -0.07 0.07 -0.37 -0.52 0.22 1.42 -1.57 -1.72 -0.67 1.12
out Indices int64 [3, 4, 1] 1 1 0 1 0 0 0 1 0 1 0 1
out Out float32 [3, 4, 1] 1.57 -0.82 1.72 0.82 0.97 0.37 0.52 0.07 -0.37 1.42 -1.57 1.12

example float64 2x1x2x4x5, k 5
attr k INT 5
in X float64 [2, 1, 2, 4, 5] 0.091 0.421 0.226 0.519 0.984 0.605 0.837 0.201 0.69 0.213 0.14 0.972
  0.434 0.079 0.544 0.25 0.91 0.409 0.018 0.739 0.495 0.727 0.874 0.825 0.898 0.641 0.054 0.556
  0.152 0.03 0.116 0.935 0.177 0.764 0.299 0.776 0.752 0.336 0.8 0.593 0.788 0.458 0.385 0.372 0.397
  0.165 0.262 0.482 0.067 0.654 0.678 0.531 0.287 0.862 0.715 0.47 0.947 0.311 0.923 0.128 0.446
  0.36 0.568 0.348 0.275 0.959 0.849 0.813 0.629 0.507 0.617 0.042 0.58 0.189 0.703 0.886 0.323
  0.666 0.103 0.238
out Indices int64 [2, 1, 2, 4] 4 1 1 1 4 0 1 3 0 4 3 1 2 0 4 0
out Out float64 [2, 1, 2, 4] 0.984 0.837 0.972 0.91 0.898 0.641 0.935 0.8 0.788 0.654 0.862 0.947
  0.568 0.959 0.703 0.886
)")

HEDDLE_EXAMPLES(kthvalue_grad, R"(
example float64 4x3, axis 0, k 3
attr axis INT 0
attr k INT 3
in Indices int64 [3] 2 0 1
in Out@GRAD float64 [3] 0.2 -0.7 -0.1
in X float64 [4, 3] -1.01 1.01 0.72 -0.14 -1.3 -0.43 0.14 1.58 -1.58 1.3 0.43 -0.72
out X@GRAD float64 [4, 3] 0 -0.7 0 0 0 -0.1 0.2 0*5

example float32 4x3, axis 0, k 3
attr axis INT 0
attr k INT 3
in Indices int64 [3] 2 0 1
in Out@GRAD float32 [3] 0.2 -0.7 -0.1
in X float32 [4, 3] -1.01 1.01 0.72 -0.14 -1.3 -0.43 0.14 1.58 -1.58 1.3 0.43 -0.72
out X@GRAD float32 [4, 3] 0 -0.7 0 0 0 -0.1 0.2 0*5
)")

HEDDLE_EXAMPLES(mode, R"(
example float32
attr axis INT -1
in X float32 [3, 4] 1 2 2 3 4 4 4 1 2 3 2 3
out Out float32 [3] 2 4 2
out Indices int64 [3] 2 2 2

example float64
attr axis INT -1
in X float64 [3, 4] 1 2 2 3 4 4 4 1 2 3 2 3
out Out float64 [3] 2 4 2
out Indices int64 [3] 2 2 2

example int32
attr axis INT -1
in X int32 [3, 4] 1 2 2 3 4 4 4 1 2 3 2 3
out Out int32 [3] 2 4 2
out Indices int64 [3] 2 2 2

example int64
attr axis INT -1
in X int64 [3, 4] 1 2 2 3 4 4 4 1 2 3 2 3
out Out int64 [3] 2 4 2
out Indices int64 [3] 2 2 2

example axis 0, keepdim
attr axis INT 0
attr keepdim BOOLEAN true
in X float32 [3, 2] 1 2 1 3 2 3
out Out float32 [1, 2] 1 3
out Indices int64 [1, 2] 1 2
)")

HEDDLE_EXAMPLES(mode_grad, R"(
example last axis
in Indices int64 [3] 2 2 2
in Out@GRAD float64 [3] 0.2 -0.7 -0.1
in X float64 [3, 4] 1 2 2 3 4 4 4 1 2 3 2 3
out X@GRAD float64 [3, 4] 0 0 0.2 0 0 0 -0.7 0 0 0 -0.1 0

example axis 0, keepdim
attr axis INT 0
attr keepdim BOOLEAN true
in Indices int64 [1, 2] 1 2
in Out@GRAD float64 [1, 2] -0.1 -0.7
in X float64 [3, 2] 1 2 1 3 2 3
out X@GRAD float64 [3, 2] 0 0 -0.1 0 0 -0.7
)")
