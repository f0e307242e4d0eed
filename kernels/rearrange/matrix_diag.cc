// Diagonals of matrices: taken out, put in, made into matrices; bands.
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// The diagonals k_low to k_high of matrices, one in each row of a matrix of their own, the highest
// first. Shorter ones lie at the left or right end of their rows.
struct MatrixDiagonals {
  int64_t low = 0, high = 0, rows = 0, cols = 0, longest = 0;
  bool super_left = false, sub_left = true;

  int64_t count() const { return high - low + 1; }
  int64_t Length(int64_t d) const {
    return std::min(rows + std::min<int64_t>(0, d), cols - std::max<int64_t>(0, d));
  }
  int64_t Offset(int64_t d) const {
    const bool left = (d >= 0 && super_left) || (d <= 0 && sub_left);
    return left ? 0 : longest - Length(d);
  }
  // fn(place in the matrix, place among the diagonals) for all elements.
  template <typename Fn>
  void ForEach(Fn&& fn) const {
    for (const int64_t i : Watched(count())) {
      const int64_t d = high - i, n = Length(d), offset = Offset(d);
      for (int64_t j = 0; j < n; ++j) {
        const int64_t r = j - std::min<int64_t>(0, d), c = j + std::max<int64_t>(0, d);
        fn(r * cols + c, i * longest + offset + j);
      }
    }
  }
};

constexpr int64_t kMostSide = int64_t{1} << 31;

template <typename Context>
Status ReadBand(const Context& ctx, MatrixDiagonals* d) {
  d->low = d->high = 0;
  if (Has(ctx, "k")) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts k, IntsIn(ctx, "k"));
    if (k.empty() || k.size() > 2 || k.front() > k.back())
      return InvalidArgument("k has ", k.size(), " elements, expected one or two that do not fall");
    if (k.front() < -kMostSide || k.back() > kMostSide)
      return InvalidArgument("k is ", k.front(), " to ", k.back(),
                             ", no matrix has such diagonals");
    d->low = k.front();
    d->high = k.back();
  }
  const std::string& align = ctx.Str("align");
  const bool known = align == "LEFT_LEFT" || align == "LEFT_RIGHT" || align == "RIGHT_LEFT" ||
                     align == "RIGHT_RIGHT";
  if (!known) return InvalidArgument("align is '", align, "', expected RIGHT_LEFT or the like");
  d->super_left = align.starts_with("LEFT");
  d->sub_left = align.ends_with("LEFT");
  return Status::Ok();
}

// For matrices of a known size.
template <typename Context>
Result<MatrixDiagonals> BandOf(const Context& ctx, int64_t rows, int64_t cols) {
  MatrixDiagonals d;
  d.rows = rows;
  d.cols = cols;
  HEDDLE_RETURN_IF_ERROR(ReadBand(ctx, &d));
  const bool fits = (d.low > -rows || d.low == 0) && (d.high < cols || d.high == 0);
  if (!fits)
    return InvalidArgument("k is ", d.low, " to ", d.high, ", but matrices have ", rows,
                           " rows and ", cols, " columns");
  d.longest = std::min(rows + std::min<int64_t>(d.high, 0), cols - std::max<int64_t>(d.low, 0));
  d.longest = std::max<int64_t>(d.longest, 0);
  return d;
}

Shape WithDiagonals(const Shape& matrices, const MatrixDiagonals& d) {
  Shape out;
  for (int i = 0; i + 2 < matrices.rank(); ++i) out.push_back(matrices[i]);
  if (d.count() > 1) out.push_back(d.count());
  out.push_back(d.longest);
  return out;
}

Status CheckMatrices(const Shape& x) {
  if (x.rank() >= 2) return Status::Ok();
  return InvalidArgument("input has shape ", x.ToString(), ", expected matrices");
}

Status DiagPartShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static() || !Known(ctx, "k")) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckMatrices(x));
  HEDDLE_ASSIGN_OR_RETURN(const MatrixDiagonals d, BandOf(ctx, x.dim(-2), x.dim(-1)));
  ctx.SetOut("diagonal", WithDiagonals(x, d), ctx.InDType("input"));
  return Status::Ok();
}

// The bytes of one element of `key`, or zeros.
Status ReadPadding(const KernelContext& ctx, Key key, DType dtype, void* to) {
  const Tensor* t = ctx.InOpt(key);
  std::memset(to, 0, SizeOf(dtype));
  if (t == nullptr) return Status::Ok();
  if (t->numel() != 1 || t->dtype() != dtype)
    return InvalidArgument(key.name, " is ", Name(t->dtype()), " ", t->shape().ToString(),
                           ", expected one ", Name(dtype));
  std::memcpy(to, t->raw(), SizeOf(dtype));
  return Status::Ok();
}

Status DiagPart(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const MatrixDiagonals d, BandOf(ctx, x.dim(-2), x.dim(-1)));
  Tensor& out = ctx.Out("diagonal");
  if (out.numel() == 0) return Status::Ok();
  std::byte padding[16];
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, "padding_value", x.dtype(), padding));
  const int64_t matrices = x.shape().Product(0, x.rank() - 2);
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, padding, sizeof(T));
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    WatchedFill(to, out.numel(), value);
    for (const int64_t m : Watched(matrices))
      d.ForEach([&](int64_t at, int64_t diagonal) {
        to[m * d.count() * d.longest + diagonal] = from[m * d.rows * d.cols + at];
      });
  });
  return Status::Ok();
}

// The size of the matrices that diagonals make.
template <typename Context>
Result<MatrixDiagonals> MatricesFor(const Context& ctx, const Shape& diagonal) {
  MatrixDiagonals d;
  HEDDLE_RETURN_IF_ERROR(ReadBand(ctx, &d));
  if (diagonal.rank() < 1 || (d.count() > 1 && diagonal.rank() < 2))
    return InvalidArgument("diagonal has shape ", diagonal.ToString(), " for ", d.count(),
                           " diagonals");
  if (d.count() > 1 && diagonal.dim(-2) != d.count())
    return InvalidArgument("diagonal has shape ", diagonal.ToString(), ", but k names ", d.count());
  d.longest = diagonal.dim(-1);
  const int64_t least_rows = d.longest - std::min<int64_t>(d.high, 0);
  const int64_t least_cols = d.longest + std::max<int64_t>(d.low, 0);
  HEDDLE_ASSIGN_OR_RETURN(d.rows, IntIn(ctx, "num_rows", -1));
  HEDDLE_ASSIGN_OR_RETURN(d.cols, IntIn(ctx, "num_cols", -1));
  if (d.rows == -1 && d.cols == -1) {
    d.rows = d.cols = std::max(least_rows, least_cols);
  } else if (d.rows == -1) {
    d.rows = least_rows;
  } else if (d.cols == -1) {
    d.cols = least_cols;
  }
  if (d.rows < least_rows || d.cols < least_cols ||
      (d.rows != least_rows && d.cols != least_cols) || d.rows > kMostSide || d.cols > kMostSide)
    return InvalidArgument("diagonals ", diagonal.ToString(), " do not fit matrices of ", d.rows,
                           " rows and ", d.cols, " columns");
  return d;
}

Status DiagonalTensorShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("diagonal");
  if (!x.is_static() || !Known(ctx, "k") || !Known(ctx, "num_rows") || !Known(ctx, "num_cols"))
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatrixDiagonals d, MatricesFor(ctx, x));
  ShortInts dims(x.begin(), x.end() - (d.count() > 1 ? 2 : 1));
  dims.push_back(d.rows);
  dims.push_back(d.cols);
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims, "output"));
  ctx.SetOut("output", out, ctx.InDType("diagonal"));
  return Status::Ok();
}

Status DiagonalTensor(KernelContext& ctx) {
  const Tensor& x = ctx.In("diagonal");
  HEDDLE_ASSIGN_OR_RETURN(const MatrixDiagonals d, MatricesFor(ctx, x.shape()));
  Tensor& out = ctx.Out("output");
  if (out.numel() == 0) return Status::Ok();
  std::byte padding[16];
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, "padding_value", x.dtype(), padding));
  const int64_t matrices = out.shape().Product(0, out.rank() - 2);
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, padding, sizeof(T));
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    WatchedFill(to, out.numel(), value);
    for (const int64_t m : Watched(matrices))
      d.ForEach([&](int64_t at, int64_t diagonal) {
        to[m * d.rows * d.cols + at] = from[m * d.count() * d.longest + diagonal];
      });
  });
  return Status::Ok();
}

Status SetDiagShape(ShapeContext& ctx) {
  ctx.SetOut("output", ctx.InShape("input"), ctx.InDType("input"));
  return Status::Ok();
}

Status SetDiag(KernelContext& ctx) {
  const Tensor &x = ctx.In("input"), &diagonal = ctx.In("diagonal");
  HEDDLE_RETURN_IF_ERROR(CheckMatrices(x.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const MatrixDiagonals d, BandOf(ctx, x.dim(-2), x.dim(-1)));
  if (!(diagonal.shape() == WithDiagonals(x.shape(), d)) || diagonal.dtype() != x.dtype())
    return InvalidArgument("diagonal is ", Name(diagonal.dtype()), " ", diagonal.shape().ToString(),
                           ", expected ", Name(x.dtype()), " ",
                           WithDiagonals(x.shape(), d).ToString());
  Tensor& out = ctx.Out("output");
  if (x.numel() == 0) return Status::Ok();
  Tensor copy;
  const Tensor& values = Apart(ctx, diagonal, out, &copy);
  if (out.raw() != x.raw()) CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
  const int64_t matrices = x.shape().Product(0, x.rank() - 2);
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(values.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    for (const int64_t m : Watched(matrices))
      d.ForEach([&](int64_t at, int64_t place) {
        to[m * d.rows * d.cols + at] = from[m * d.count() * d.longest + place];
      });
  });
  return Status::Ok();
}

Status BandPart(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_RETURN_IF_ERROR(CheckMatrices(x.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t lower, IntIn(ctx, "num_lower", -1));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t upper, IntIn(ctx, "num_upper", -1));
  const int64_t rows = x.dim(-2), cols = x.dim(-1);
  if (lower > rows || upper > cols)
    return InvalidArgument("num_lower and num_upper are ", lower, " and ", upper,
                           " for matrices of ", rows, " rows and ", cols, " columns");
  Tensor& out = ctx.Out("band");
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t r = i / cols % rows, c = i % cols;
        const bool inside = (lower < 0 || r - c <= lower) && (upper < 0 || c - r <= upper);
        to[i] = inside ? from[i] : T{};
      }
  });
  return Status::Ok();
}

// Tensors of any rank as the diagonal of one of twice the rank.
Status TensorDiagShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("diagonal");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 1 || 2 * x.rank() > Shape::kMaxRank)
    return InvalidArgument("diagonal has shape ", x.ToString(), ", expected rank 1 to 5");
  Shape out = x;
  for (const int64_t d : x) out.push_back(d);
  ctx.SetOut("output", out, ctx.InDType("diagonal"));
  return Status::Ok();
}
Status TensorDiag(KernelContext& ctx) {
  const Tensor& x = ctx.In("diagonal");
  Tensor& out = ctx.Out("output");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  const auto size = static_cast<int64_t>(SizeOf(x.dtype()));
  const int64_t n = x.numel();
  for (const int64_t i : Watched(n))
    std::memcpy(static_cast<std::byte*>(out.mutable_raw()) + i * (n + 1) * size,
                static_cast<const std::byte*>(x.raw()) + i * size, static_cast<size_t>(size));
  return Status::Ok();
}
Status TensorDiagPartShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.known_rank()) return ctx.Defer();
  bool halves = x.rank() % 2 == 0 && x.rank() > 0;
  Shape out;
  for (int i = 0; halves && i < x.rank() / 2; ++i) {
    halves = x[i] < 0 || x[i + x.rank() / 2] < 0 || x[i] == x[i + x.rank() / 2];
    out.push_back(x[i]);
  }
  if (!halves)
    return InvalidArgument("input has shape ", x.ToString(), ", expected two equal halves");
  ctx.SetOut("diagonal", out, ctx.InDType("input"));
  return Status::Ok();
}
Status TensorDiagPart(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  Tensor& out = ctx.Out("diagonal");
  const auto size = static_cast<int64_t>(SizeOf(x.dtype()));
  const int64_t n = out.numel();
  for (const int64_t i : Watched(n))
    std::memcpy(static_cast<std::byte*>(out.mutable_raw()) + i * size,
                static_cast<const std::byte*>(x.raw()) + i * (n + 1) * size,
                static_cast<size_t>(size));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(matrix_diag_part) {
  op.Doc("diagonals k of matrices; shorter ones are padded").Input("input");
  op.Input("k", kOptional | kShapeValue).Input("padding_value", kOptional).Output("diagonal");
  op.Attr("align", "RIGHT_LEFT").InferShape(DiagPartShape).KernelKey("input").AnyKernel(DiagPart);
}
HEDDLE_OP(matrix_diag) {
  op.Doc("matrices with these diagonals").Input("diagonal").Input("k", kOptional | kShapeValue);
  op.Input("num_rows", kOptional | kShapeValue).Input("num_cols", kOptional | kShapeValue);
  op.Input("padding_value", kOptional).Output("output").Attr("align", "RIGHT_LEFT");
  op.InferShape(DiagonalTensorShape).KernelKey("diagonal").AnyKernel(DiagonalTensor);
}
HEDDLE_OP(matrix_set_diag) {
  op.Doc("matrices with diagonals replaced").Input("input").Input("diagonal");
  op.Input("k", kOptional).Output("output").Inplace("input", "output");
  op.Attr("align", "RIGHT_LEFT").InferShape(SetDiagShape).KernelKey("input").AnyKernel(SetDiag);
}
HEDDLE_OP(matrix_band_part) {
  op.Doc("matrices with zeros outside a band; a negative width keeps all of a side");
  op.Input("input").Input("num_lower").Input("num_upper").Output("band");
  op.InferShape(SameShape).KernelKey("input").AnyKernel(BandPart);
}
HEDDLE_OP(tensor_diag) {
  op.Doc("a tensor as the diagonal of one of twice the rank").Input("diagonal").Output("output");
  op.InferShape(TensorDiagShape).AnyKernel(TensorDiag);
}
HEDDLE_OP(tensor_diag_part) {
  op.Doc("the diagonal of a tensor whose shape has two equal halves").Input("input");
  op.Output("diagonal").InferShape(TensorDiagPartShape).AnyKernel(TensorDiagPart);
}
