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

HEDDLE_EXAMPLES(data_norm, R"(
example float32 2x3, epsilon 1e-05, slot_dim 1, enable_scale_and_shift
attr epsilon FLOAT 1e-05
attr slot_dim INT 1
attr enable_scale_and_shift BOOLEAN true
in scale_w float32 [3] 0.73 1.2 0.83
in bias float32 [3] 0.18 0.75 0.94
in X float32 [2, 3] 0.193 0.257 0.386 0.064 0.322 0.129
in BatchSize float32 [3] 9900 12000 15000
in BatchSum float32 [3] 0.85 0.66 1
in BatchSquareSum float32 [3] 14000 6800 14000
out Y float32 [2, 3] 0.2984242 1.1595978 1.2715676 0.21923497 1.2632148 1.0507706
out Means float32 [3] 8.585859e-5 5.5e-5 6.666667e-5
out Scales float32 [3] 0.8409178 1.3284223 1.0350983

example float64 2x3, epsilon 1e-05, slot_dim 1, enable_scale_and_shift
attr epsilon FLOAT 1e-05
attr slot_dim INT 1
attr enable_scale_and_shift BOOLEAN true
in scale_w float64 [3] 0.73 1.2 0.83
in bias float64 [3] 0.18 0.75 0.94
in X float64 [2, 3] 0.193 0.257 0.386 0.064 0.322 0.129
in BatchSize float64 [3] 9900 12000 15000
in BatchSum float64 [3] 0.85 0.66 1
in BatchSquareSum float64 [3] 14000 6800 14000
out Y float64 [2, 3] 0.29842421210900316 1.1595977701771796 1.2715675304117298 0.21923497667982916
  1.2632147117853707 1.0507707037167533
out Means float64 [3] 8.585858585858585e-5 5.5e-5 6.666666666666667e-5
out Scales float64 [3] 0.8409178658720822 1.3284223283101428 1.0350983390135313
)")

HEDDLE_EXAMPLES(data_norm_grad, R"(
example float64 2x4, epsilon 1e-05
gradient none of BatchSize BatchSum BatchSquareSum: Paddle gives the statistics of this batch, which
  the optimizer adds up
attr epsilon FLOAT 1e-05
in Means float64 [4] 0.00012112676056338028 5.37037037037037e-5 8.555555555555556e-5
  6.164383561643835e-5
in Scales float64 [4] 1.0218207509435417 0.6708203932499369 1.2565617248750864 0.7221001117771493
in X float64 [2, 4] -0.31 0.56 0.34 -0.53 0.12 0.77 -0.75 -0.1
in Y@GRAD float64 [2, 4] -0.3 -0.7 0.3 0.6 0.8 -0.4 0.2 -0.2
in bias float64 [4] 0.98 0.41 0.74 0.43
in scale_w float64 [4] 1.5 1.4 0.92 0.53
out BatchSize ?
out BatchSize@GRAD float64 [4] 2*4
out BatchSquareSum ?
out BatchSquareSum@GRAD float64 [4] 0.11056605751189308 0.9063771539158185 0.6781901701945565
  0.2909976788322965
out BatchSum ?
out BatchSum@GRAD float64 [4] -0.19 1.33 -0.41 -0.63
out X@GRAD float64 [2, 4] -0.3065462252830625 -0.4695742752749558 0.3769685174625259
  0.43326006706628956 0.8174566007548334 -0.2683281572999748 0.2513123449750173 -0.14442002235542986
out bias@GRAD ?
out scale_w@GRAD ?

example float32 2x4, epsilon 1e-05
gradient none of BatchSize BatchSum BatchSquareSum: Paddle gives the statistics of this batch, which
  the optimizer adds up
attr epsilon FLOAT 1e-05
in Means float32 [4] 0.00012112676 5.3703705e-5 8.5555555e-5 6.1643834e-5
in Scales float32 [4] 1.0218208 0.6708204 1.2565618 0.72210014
in X float32 [2, 4] -0.31 0.56 0.34 -0.53 0.12 0.77 -0.75 -0.1
in Y@GRAD float32 [2, 4] -0.3 -0.7 0.3 0.6 0.8 -0.4 0.2 -0.2
in bias float32 [4] 0.98 0.41 0.74 0.43
in scale_w float32 [4] 1.5 1.4 0.92 0.53
out BatchSize ?
out BatchSize@GRAD float32 [4] 2*4
out BatchSquareSum ?
out BatchSquareSum@GRAD float32 [4] 0.11056605 0.90637714 0.6781902 0.29099762
out BatchSum ?
out BatchSum@GRAD float32 [4] -0.19 1.3299999 -0.41 -0.63
out X@GRAD float32 [2, 4] -0.30654624 -0.46957427 0.37696853 0.4332601 0.81745666 -0.26832816
  0.25131235 -0.14442003
out bias@GRAD ?
out scale_w@GRAD ?
)")
