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
