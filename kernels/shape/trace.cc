// trace: sums of diagonals.
#include <algorithm>
#include <complex>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/check.h"

namespace heddle {
namespace {

// The diagonals of the matrices spanned by two axes; the other axes are enumerated.
struct Diagonals {
  Shape out;      // the other dimensions
  Shape strides;  // and their strides in the input
  int64_t start = 0, step = 0, length = 0;

  int64_t Base(int64_t o) const {
    int64_t at = start;
    for (int i = out.rank() - 1; i >= 0; --i) {
      at += o % out[i] * strides[i];
      o /= out[i];
    }
    return at;
  }
};

// The first version called its axes "dim1" and "dim2".
constexpr int64_t kNotGiven = std::numeric_limits<int32_t>::min();
int64_t AxisOf(const OpContext& ctx, Key name, Key first_name) {
  return ctx.Int(first_name) == kNotGiven ? ctx.Int(name) : ctx.Int(first_name);
}

Result<Diagonals> FindDiagonals(const OpContext& ctx, const Shape& x) {
  if (x.rank() < 2)
    return InvalidArgument("Input has shape ", x.ToString(), ", expected rank 2 or more");
  HEDDLE_ASSIGN_OR_RETURN(int a, NormalAxis(AxisOf(ctx, "axis1", "dim1"), x.rank()));
  HEDDLE_ASSIGN_OR_RETURN(int b, NormalAxis(AxisOf(ctx, "axis2", "dim2"), x.rank()));
  if (a == b) return InvalidArgument("axis1 and axis2 are both ", a);
  if (a > b) std::swap(a, b);  // as in Paddle, offset counts along the later axis
  Diagonals d;
  const int64_t offset = ctx.Int("offset");
  int64_t stride_a = 0, stride_b = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t stride = x.Product(i + 1, x.rank());
    if (i == a)
      stride_a = stride;
    else if (i == b)
      stride_b = stride;
    else
      d.out.push_back(x[i]), d.strides.push_back(stride);
  }
  const int64_t rows = offset < 0 ? x[a] + offset : x[a], cols = offset > 0 ? x[b] - offset : x[b];
  d.length = std::max<int64_t>(0, std::min(rows, cols));
  d.start = offset < 0 ? -offset * stride_a : offset * stride_b;
  d.step = stride_a + stride_b;
  return d;
}

template <typename T>
struct Trace {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    HEDDLE_ASSIGN_OR_RETURN(const Diagonals d, FindDiagonals(ctx, x.shape()));
    T* out = ctx.Out("Out").template mutable_data<T>();
    for (const auto part : Stretches(d.out.numel()))
      for (int64_t o = part.begin; o < part.end; ++o) {
        ComputeType<T> total(0);
        if (d.length > 0) {
          const T* p = x.data<T>() + d.Base(o);
          for (int64_t i = 0; i < d.length; ++i)
            total += static_cast<ComputeType<T>>(p[i * d.step]);
        }
        out[o] = static_cast<T>(total);
      }
    return Status::Ok();
  }
};

template <typename T>
struct TraceGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& dout = ctx.In("Out@GRAD");
    Tensor& dx = ctx.Out("Input@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const Diagonals d, FindDiagonals(ctx, dx.shape()));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&dx}));
    if (dout.numel() != d.out.numel())
      return InvalidArgument("Out@GRAD has shape ", dout.shape().ToString(), ", expected ",
                             d.out.ToString());
    WatchedFill(dx.mutable_data<T>(), dx.numel(), T(0));
    for (const int64_t o : Watched(d.length > 0 ? d.out.numel() : 0)) {
      T* p = dx.mutable_data<T>() + d.Base(o);
      for (const int64_t i : Watched(d.length)) p[i * d.step] = dout.data<T>()[o];
    }
    return Status::Ok();
  }
};

Status Infer(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Input");
  Shape out = Shape::Unknown();
  if (x.known_rank()) {
    HEDDLE_ASSIGN_OR_RETURN(const Diagonals d, FindDiagonals(ctx, x));
    out = d.out;
  }
  ctx.SetOut("Out", out, ctx.InDType("Input"));
  return Status::Ok();
}

void DefineAttrs(OpDef& op) {
  op.Attr("offset", 0).Attr("axis1", 0).Attr("axis2", 1);
  op.Attr("dim1", kNotGiven).Attr("dim2", kNotGiven);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(trace) {
  op.Doc("sums along the diagonals of two axes").Input("Input").Output("Out");
  DefineAttrs(op);
  op.InferShape(&Infer);
  op.Kernels<Trace, float, double, int32_t, int64_t, float16, std::complex<float>,
             std::complex<double>>();
}

HEDDLE_OP(trace_grad) {
  op.Doc("gradient of trace").Input("Input", kNoBuffer).Input("Out@GRAD").Output("Input@GRAD");
  DefineAttrs(op);
  op.KernelKey("Out@GRAD").InferShape(&GradLikeInputs);
  op.Kernels<TraceGrad, float, double, int32_t, int64_t, float16, std::complex<float>,
             std::complex<double>>();
}

HEDDLE_EXAMPLES(trace, R"(
example float32 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input float32 [2, 4, 2, 3] -0.68 1.86 2.3 -0.9 -0.57 -0.24 1.64 -2.33 2.19 2.41 -1.12 1.08 2.63
  0.53 0.97 1.97 1.31 1.42 2.85 -1.01 -1.67 -1.89 -1.23 0.09 -1.45 1.19 -1.78 2.08 0.86 0.31 1.53 -2
  0.75 0.64 1.75 -1.34 -2.22 -0.02 -0.46 -0.13 2.52 -2.11 -0.79 2.74 0.42 0.2 -1.56 -0.35
out Out float32 [2, 2] 0*4

example float32 2x4x2x3, axis2 2, offset 1
attr axis2 INT 2
attr offset INT 1
in Input float32 [2, 4, 2, 3] -1.34 2.85 -1.45 1.31 1.08 -1.67 -2 2.08 -2.11 -0.68 2.3 -0.24 0.09
  -0.57 -0.46 1.86 2.74 -1.89 2.19 0.53 0.86 -1.12 -1.01 -1.78 -0.79 -1.23 -0.02 -0.35 -0.9 1.53
  1.19 1.97 1.42 0.31 2.52 -0.13 1.75 1.64 0.64 2.41 0.42 2.63 -2.22 0.75 0.97 -2.33 -1.56 0.2
out Out float32 [4, 3] 1.31 1.08 -1.67 -0.68 2.3 -0.24 1.86 2.74 -1.89 -1.12 -1.01 -1.78

example float64 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input float64 [2, 4, 2, 3] -0.68 1.86 2.3 -0.9 -0.57 -0.24 1.64 -2.33 2.19 2.41 -1.12 1.08 2.63
  0.53 0.97 1.97 1.31 1.42 2.85 -1.01 -1.67 -1.89 -1.23 0.09 -1.45 1.19 -1.78 2.08 0.86 0.31 1.53 -2
  0.75 0.64 1.75 -1.34 -2.22 -0.02 -0.46 -0.13 2.52 -2.11 -0.79 2.74 0.42 0.2 -1.56 -0.35
out Out float64 [2, 2] 0*4

example int32 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input int32 [2, 4, 2, 3] 2 2 1 -2 -2 -1 2 1 -2 1 2 2 0 1 1 -1 1 -1 -1 2 -2 2 -1 -2 -1 0 1 2 1 -1
  2 -2 2 -2 -1 1 2 1 0 2 2 2 0 -1 0 -1 2 2
out Out int32 [2, 2] 0*4

example int64 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input int64 [2, 4, 2, 3] 2 2 1 -2 -2 -1 2 1 -2 1 2 2 0 1 1 -1 1 -1 -1 2 -2 2 -1 -2 -1 0 1 2 1 -1
  2 -2 2 -2 -1 1 2 1 0 2 2 2 0 -1 0 -1 2 2
out Out int64 [2, 2] 0*4

example complex64 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input complex64 [2, 4, 2, 3] -0.68+0.8j 1.86+0.3j 2.3+0.5j -0.9-0.7j -0.57-0.8j -0.24+0.6j
  1.64-0.3j -2.33+0.1j 2.19-0.5j 2.41+0.1j -1.12-0.2j 1.08+0.4j 2.63+0.7j 0.53+0.2j 0.97-0.4j
  1.97-0.4j 1.31+0.4j 1.42-0.2j 2.85-0.9j -1.01+0.5j -1.67-0.1j -1.89-0.6j -1.23-0.9j 0.09-0.4j
  -1.45-0.9j 1.19+0.5j -1.78-0.9j 2.08-0.1j 0.86-0.3j 0.31-0.7j 1.53+0.1j -2-0.1j 0.75-0.9j
  0.64+0.6j 1.75-0.5j -1.34-0.7j -2.22+0.3j -0.02-0.8j -0.46-0.3j -0.13-0.2j 2.52-0.1j -2.11+1j
  -0.79+0.5j 2.74-0.4j 0.42+0.8j 0.2+0.6j -1.56-0.5j -0.35-0.4j
out Out complex64 [2, 2] 0+0j*4

example float16 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input float16 [2, 4, 2, 3] -0.68 1.86 2.3 -0.9 -0.57 -0.24 1.64 -2.33 2.19 2.41 -1.12 1.08 2.63
  0.53 0.97 1.97 1.31 1.42 2.85 -1.01 -1.67 -1.89 -1.23 0.09 -1.45 1.19 -1.78 2.08 0.86 0.31 1.53 -2
  0.75 0.64 1.75 -1.34 -2.22 -0.02 -0.46 -0.13 2.52 -2.11 -0.79 2.74 0.42 0.2 -1.56 -0.35
out Out float16 [2, 2] 0*4

example float32 2x4x2x3, axis2 2, offset 1, axis1 3
attr axis2 INT 2
attr offset INT 1
attr axis1 INT 3
in Input float32 [2, 4, 2, 3] -1.34 2.85 -1.45 1.31 1.08 -1.67 -2 2.08 -2.11 -0.68 2.3 -0.24 0.09
  -0.57 -0.46 1.86 2.74 -1.89 2.19 0.53 0.86 -1.12 -1.01 -1.78 -0.79 -1.23 -0.02 -0.35 -0.9 1.53
  1.19 1.97 1.42 0.31 2.52 -0.13 1.75 1.64 0.64 2.41 0.42 2.63 -2.22 0.75 0.97 -2.33 -1.56 0.2
out Out float32 [2, 4] 1.18 1.8399999 -2.46 -1.25 0.29999995 1.84 4.27 0.95
)")

HEDDLE_EXAMPLES(trace_grad, R"(
example float64 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input float64 [2, 4, 2, 3] -2.04 2.48 -2.16 0.81 0.58 -2.4 -2.76 1.65 -2.87 -1.33 1.88 -0.85
  -0.49 -1.21 -1.09 1.41 2.36 -2.64 1.77 -0.02 0.34 -1.8 -1.68 -2.52 -1.45 -1.92 -0.61 -0.97 -1.57
  1.05 0.69 1.53 0.93 -0.26 2.12 -0.73 1.29 1.17 0.1 2 -0.14 2.24 -2.99 0.22 0.46 -3.11 -2.28 -0.38
in Out@GRAD float64 [2, 2] -0.7 0.7 0.9 -0
out Input@GRAD float64 [2, 4, 2, 3] 0*48

example float32 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input float32 [2, 4, 2, 3] -2.04 2.48 -2.16 0.81 0.58 -2.4 -2.76 1.65 -2.87 -1.33 1.88 -0.85
  -0.49 -1.21 -1.09 1.41 2.36 -2.64 1.77 -0.02 0.34 -1.8 -1.68 -2.52 -1.45 -1.92 -0.61 -0.97 -1.57
  1.05 0.69 1.53 0.93 -0.26 2.12 -0.73 1.29 1.17 0.1 2 -0.14 2.24 -2.99 0.22 0.46 -3.11 -2.28 -0.38
in Out@GRAD float32 [2, 2] -0.7 0.7 0.9 -0
out Input@GRAD float32 [2, 4, 2, 3] 0*48

example float16 2x4x2x3, axis1 1, axis2 -1, offset -5
attr axis1 INT 1
attr axis2 INT -1
attr offset INT -5
in Input float16 [2, 4, 2, 3] -2.04 2.48 -2.16 0.81 0.58 -2.4 -2.76 1.65 -2.87 -1.33 1.88 -0.85
  -0.49 -1.21 -1.09 1.41 2.36 -2.64 1.77 -0.02 0.34 -1.8 -1.68 -2.52 -1.45 -1.92 -0.61 -0.97 -1.57
  1.05 0.69 1.53 0.93 -0.26 2.12 -0.73 1.29 1.17 0.1 2 -0.14 2.24 -2.99 0.22 0.46 -3.11 -2.28 -0.38
in Out@GRAD float16 [2, 2] -0.7 0.7 0.9 -0
out Input@GRAD float16 [2, 4, 2, 3] 0*48

example the later axis named first
attr axis1 INT 2
attr axis2 INT 0
attr offset INT 1
in Input float32 [2, 1, 3] 1 2 3 4 5 6
in Out@GRAD float32 [1] 10
out Input@GRAD float32 [2, 1, 3] 0 10 0 0 0 10
)")
