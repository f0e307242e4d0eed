#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "core/shapes.h"

namespace heddle {
namespace {

constexpr double kNothing = 1e-7;  // a slot whose first element is this small is not there

struct Sizes {
  int64_t rows = 0, cols = 0, slot = 0;  // slot > 0: columns per slot
};

Result<Sizes> SizesOf(const OpContext& ctx, const Shape& x) {
  if (x.rank() < 2 || x.rank() > 5)
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 to 5");
  const bool last = ctx.Str("data_layout") == "NHWC" || x.rank() == 2;
  if (!last) return Unimplemented("data_norm of X ", x.ToString(), " in the layout NCHW");
  Sizes s{x.Product(0, x.rank() - 1), x.dim(-1), std::max<int64_t>(0, ctx.Int("slot_dim"))};
  if (s.slot > 0 && s.cols >= 0 && s.cols % s.slot != 0)
    return InvalidArgument("slot_dim is ", s.slot, ", expected a divisor of ", s.cols);
  return s;
}

Status CheckCount(const ShapeContext& ctx, Key key, int64_t expected) {
  if (!ctx.HasIn(key) || expected < 0) return Status::Ok();
  const Shape& s = ctx.InShape(key);
  if (!s.is_static() || s.numel() == expected) return Status::Ok();
  return InvalidArgument(key.name, " has shape ", s.ToString(), ", expected ", expected,
                         " elements");
}

Status DataNormShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx, x));
  for (const Key key :
       {Key("BatchSize"), Key("BatchSum"), Key("BatchSquareSum"), Key("scale_w"), Key("bias")})
    HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, key, s.cols));
  const DType dtype = ctx.InDType("X");
  ctx.SetOut("Y", x, dtype);
  ctx.SetOut("Means", {s.cols}, dtype);
  ctx.SetOut("Scales", {s.cols}, dtype);
  ctx.ShareLoD("X", "Y");
  return Status::Ok();
}

template <typename T>
bool Absent(const Sizes& s, const T* row, int64_t col) {
  return s.slot > 0 && std::abs(row[col - col % s.slot]) < static_cast<T>(kNothing);
}

template <typename T>
struct DataNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx, in.shape()));
    const T* size = ctx.In("BatchSize").data<T>();
    const T* sum = ctx.In("BatchSum").data<T>();
    const T* squares = ctx.In("BatchSquareSum").data<T>();
    T* means = ctx.Out("Means").mutable_data<T>();
    T* scales = ctx.Out("Scales").mutable_data<T>();
    for (const auto part : Stretches(s.cols))
      for (int64_t c = part.begin; c < part.end; ++c) {
        means[c] = sum[c] / size[c];
        scales[c] = std::sqrt(size[c] / squares[c]);
      }
    const bool affine = ctx.Bool("enable_scale_and_shift");
    const T* weight = affine ? ctx.In("scale_w").data<T>() : nullptr;
    const T* bias = affine ? ctx.In("bias").data<T>() : nullptr;
    T* y = ctx.Out("Y").mutable_data<T>();
    for (const int64_t r : Watched(s.rows)) {
      const T* x = in.data<T>() + r * s.cols;
      for (int64_t c = 0; c < s.cols; ++c) {
        const T v = (x[c] - means[c]) * scales[c];
        if (Absent(s, x, c))
          y[r * s.cols + c] = affine ? bias[c] : T(0);
        else
          y[r * s.cols + c] = affine ? v * weight[c] + bias[c] : v;
      }
    }
    return Status::Ok();
  }
};

Status GradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx, x));
  for (const Key key : {Key("Means"), Key("Scales"), Key("scale_w")})
    HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, key, s.cols));
  if (x.is_static()) HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Y@GRAD", x.numel()));
  const DType dtype = ctx.InDType("X");
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, dtype);
  for (const Key key : {Key("BatchSize@GRAD"), Key("BatchSum@GRAD"), Key("BatchSquareSum@GRAD"),
                        Key("scale_w@GRAD"), Key("bias@GRAD")})
    if (ctx.HasOut(key)) ctx.SetOut(key, {s.cols}, dtype);
  return Status::Ok();
}

template <typename T>
struct DataNormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx, in.shape()));
    const T* means = ctx.In("Means").data<T>();
    const T* scales = ctx.In("Scales").data<T>();
    const T* dy = ctx.In("Y@GRAD").data<T>();
    const bool affine = ctx.Bool("enable_scale_and_shift");
    const Tensor* weight = affine ? ctx.InOpt("scale_w") : nullptr;
    const auto out = [&](Key key) {
      Tensor* t = ctx.OutOpt(key);
      return t ? t->mutable_data<T>() : nullptr;
    };
    T *dx = out("X@GRAD"), *dsize = out("BatchSize@GRAD"), *dsum = out("BatchSum@GRAD"),
      *dsquares = out("BatchSquareSum@GRAD"), *dweight = out("scale_w@GRAD"),
      *dbias = out("bias@GRAD");
    const T epsilon = static_cast<T>(ctx.Float("epsilon"));
    for (const int64_t c : Watched(s.cols)) {
      T count(0), sum(0), squares(0), by_x(0), plain(0);
      for (int64_t r = 0; r < s.rows; ++r) {
        const T* x = in.data<T>() + r * s.cols;
        const int64_t at = r * s.cols + c;
        const bool absent = Absent(s, x, c);
        if (dx)
          dx[at] = absent ? T(0) : dy[at] * scales[c] * (weight ? weight->data<T>()[c] : T(1));
        if (absent) continue;
        const T d = x[c] - means[c];
        count += T(1), sum += x[c], squares += d * d;
        by_x += dy[at] * d * scales[c], plain += dy[at];
      }
      if (dsize) dsize[c] = count;
      if (dsum) dsum[c] = sum;
      if (dsquares) dsquares[c] = squares + count * epsilon;
      if (dweight) dweight[c] = affine ? by_x : T(0);
      if (dbias) dbias[c] = affine ? plain : T(0);
    }
    return Status::Ok();
  }
};

void Attrs(OpDef& op) {
  op.Attr("epsilon", 1e-4).Attr("slot_dim", -1).Attr("enable_scale_and_shift", false);
  op.Attr("data_layout", "NCHW");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(data_norm) {
  op.Doc("normalises columns by statistics gathered over all data");
  op.Input("X").Input("BatchSize").Input("BatchSum").Input("BatchSquareSum");
  op.Input("scale_w", kOptional).Input("bias", kOptional);
  op.Output("Y").Output("Means").Output("Scales");
  Attrs(op);
  op.InferShape(DataNormShape).Kernels<DataNorm, float, double>();
}
HEDDLE_OP(data_norm_grad) {
  op.Input("X").Input("Means").Input("Scales").Input("Y@GRAD").Input("scale_w", kOptional);
  op.Input("bias", kOptional | kNoBuffer).Output("X@GRAD", kOptional);
  op.Output("BatchSize@GRAD", kOptional).Output("BatchSum@GRAD", kOptional);
  op.Output("BatchSquareSum@GRAD", kOptional).Output("scale_w@GRAD", kOptional);
  op.Output("bias@GRAD", kOptional);
  Attrs(op);
  op.InferShape(GradShape).Kernels<DataNormGrad, float, double>();
}
