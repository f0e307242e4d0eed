// Diagonals of matrices: taken out, put in, made into matrices; bands.
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/onnx/operands.h"

namespace heddle {
namespace {

// The diagonals k_low to k_high of matrices, one in each row of a matrix of their own, the highest
// first. Shorter ones lie at the left or right end of their rows.
struct Diagonals {
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
Status ReadBand(const Context& ctx, Diagonals* d) {
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
Result<Diagonals> BandOf(const Context& ctx, int64_t rows, int64_t cols) {
  Diagonals d;
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

Shape WithDiagonals(const Shape& matrices, const Diagonals& d) {
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
  HEDDLE_ASSIGN_OR_RETURN(const Diagonals d, BandOf(ctx, x.dim(-2), x.dim(-1)));
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
  HEDDLE_ASSIGN_OR_RETURN(const Diagonals d, BandOf(ctx, x.dim(-2), x.dim(-1)));
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
Result<Diagonals> MatricesFor(const Context& ctx, const Shape& diagonal) {
  Diagonals d;
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

Status DiagShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("diagonal");
  if (!x.is_static() || !Known(ctx, "k") || !Known(ctx, "num_rows") || !Known(ctx, "num_cols"))
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Diagonals d, MatricesFor(ctx, x));
  ShortInts dims(x.begin(), x.end() - (d.count() > 1 ? 2 : 1));
  dims.push_back(d.rows);
  dims.push_back(d.cols);
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims, "output"));
  ctx.SetOut("output", out, ctx.InDType("diagonal"));
  return Status::Ok();
}

Status Diag(KernelContext& ctx) {
  const Tensor& x = ctx.In("diagonal");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonals d, MatricesFor(ctx, x.shape()));
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
  HEDDLE_ASSIGN_OR_RETURN(const Diagonals d, BandOf(ctx, x.dim(-2), x.dim(-1)));
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

HEDDLE_OP(tf_matrix_diag_part_v3) {
  op.Doc("diagonals k of matrices; shorter ones are padded").Input("input");
  op.Input("k", kOptional | kShapeValue).Input("padding_value", kOptional).Output("diagonal");
  op.Attr("align", "RIGHT_LEFT").InferShape(DiagPartShape).KernelKey("input").AnyKernel(DiagPart);
}
HEDDLE_OP(tf_matrix_diag_v3) {
  op.Doc("matrices with these diagonals").Input("diagonal").Input("k", kOptional | kShapeValue);
  op.Input("num_rows", kOptional | kShapeValue).Input("num_cols", kOptional | kShapeValue);
  op.Input("padding_value", kOptional).Output("output").Attr("align", "RIGHT_LEFT");
  op.InferShape(DiagShape).KernelKey("diagonal").AnyKernel(Diag);
}
HEDDLE_OP(tf_matrix_set_diag_v3) {
  op.Doc("matrices with diagonals replaced").Input("input").Input("diagonal");
  op.Input("k", kOptional).Output("output").Inplace("input", "output");
  op.Attr("align", "RIGHT_LEFT").InferShape(SetDiagShape).KernelKey("input").AnyKernel(SetDiag);
}
HEDDLE_OP(tf_matrix_band_part) {
  op.Doc("matrices with zeros outside a band; a negative width keeps all of a side");
  op.Input("input").Input("num_lower").Input("num_upper").Output("band");
  op.InferShape(SameShape).KernelKey("input").AnyKernel(BandPart);
}
HEDDLE_OP(tf_diag) {
  op.Doc("a tensor as the diagonal of one of twice the rank").Input("diagonal").Output("output");
  op.InferShape(TensorDiagShape).AnyKernel(TensorDiag);
}
HEDDLE_OP(tf_diag_part) {
  op.Doc("the diagonal of a tensor whose shape has two equal halves").Input("input");
  op.Output("diagonal").InferShape(TensorDiagPartShape).AnyKernel(TensorDiagPart);
}

HEDDLE_EXAMPLES(tf_matrix_diag_part_v3, R"(
example recorded case 1
attr align STRING "LEFT_RIGHT"
in input float32 [2, 4, 5] -1.6780661 1.9891456 0.9390311 0.34845707 0.2958122 -1.2111356 3.4438858
  -0.313415 -0.65207136 -0.4677925 -0.07888844 -2.375022 -1.0615319 1.5088307 -1.1367571 -1.2113026
  -1.4286331 0.942167 -0.7839192 0.29525456 -0.55504125 -0.048871968 0.80728996 3.037205 0.5115079
  1.3217837 2.9078045 -1.5995919 -1.1074382 -1.441442 1.5139287 0.3772025 1.4793375 0.58349967
  1.0569704 2.2313511 -0.27923796 -0.5092488 1.615063 -0.10389255
in k int32 [2] -2 0
in padding_value float32 [] 7
out diagonal float32 [2, 3, 4] -1.6780661 3.4438858 -1.0615319 -0.7839192 7 -1.2111356 -2.375022
  0.942167 7 7 -0.07888844 -1.4286331 -0.55504125 2.9078045 1.4793375 1.615063 7 1.3217837 0.3772025
  -0.5092488 7 7 1.5139287 -0.27923796

example recorded case 2
in input int32 [2, 4, 5] -9 -1 4 2 -9 1 5 -5 -6 -9 -5 0 8 3 4 2 0 -4 0 -5 -5 1 0 0 -9 -9 7 -9 -5 -2
  -6 7 8 -2 8 -1 2 9 -8 3
in k int32 [2] 0 0
in padding_value int32 [] 7
out diagonal int32 [2, 4] -9 5 8 0 -5 7 8 -8
)")

HEDDLE_EXAMPLES(tf_matrix_diag_v3, R"(
example recorded case 1
attr align STRING "LEFT_RIGHT"
in diagonal int32 [2, 3, 4] 0 -6 1 6 -7 -3 -3 -4 6 -6 -5 -2 -2 7 6 3 5 -4 8 4 -2 3 -7 1
in k int32 [2] -1 1
in num_rows int32 [] -1
in num_cols int32 [] -1
in padding_value int32 [] 9
out output int32 [2, 4, 4] -7 0 9 9 -6 -3 -6 9 9 -5 -3 1 9 9 -2 -4 5 -2 9 9 3 -4 7 9 9 -7 8 6 9 9 1
  4

example recorded case 2
attr align STRING "LEFT_LEFT"
in diagonal int32 [2, 3, 4] -1 -2 8 2 0 4 -7 -3 6 5 -6 -5 -5 -2 9 7 -7 7 -3 5 6 -1 7 4
in k int32 [2] -1 1
in num_rows int32 [] 4
in num_cols int32 [] 5
in padding_value int32 [] 9
out output int32 [2, 4, 5] 0 -1 9 9 9 6 4 -2 9 9 9 5 -7 8 9 9 9 -6 -3 2 -7 -5 9 9 9 6 7 -2 9 9 9 -1
  -3 9*4 7 5 7
)")

HEDDLE_EXAMPLES(tf_matrix_set_diag_v3, R"(
example recorded case 1
in input float32 [2, 4, 5] -1.3770003 0.17792885 -0.692473 1.8978808 -1.5524275 -2.0952811
  -0.10944469 2.0458941 -0.8104817 0.94106144 -0.7721757 -2.2193525 -0.49890727 2.3931742 0.22131518
  0.12756 -0.07564724 -0.86212796 0.30099314 1.1210885 -0.44630367 -0.04685251 -0.9073909
  0.039017648 -0.59184 0.5406031 -3.0027192 1.0791165 -1.4057453 -0.79350054 2.546087 -0.6479981
  0.5171078 0.5535843 -0.5083819 1.985062 -0.56028694 -0.84352463 -0.7985593 1.40264
in diagonal float32 [2, 3, 4] -2.8222954 -0.57648164 -0.3042636 -1.2543155 -1.520439 -0.52125263
  1.3719364 2.1788337 -3.690272 1.5516131 2.6130471 1.4253668 -1.0822191 -1.1593963 1.2353234
  0.0015861235 1.6745821 0.4381677 0.95940703 1.3596283 -1.0314134 3.0321915 -0.85414946 3.1755078
in k int32 [2] -1 1
out output float32 [2, 4, 5] -1.520439 -2.8222954 -0.692473 1.8978808 -1.5524275 -3.690272
  -0.52125263 -0.57648164 -0.8104817 0.94106144 -0.7721757 1.5516131 1.3719364 -0.3042636 0.22131518
  0.12756 -0.07564724 2.6130471 2.1788337 -1.2543155 1.6745821 -1.0822191 -0.9073909 0.039017648
  -0.59184 -1.0314134 0.4381677 -1.1593963 -1.4057453 -0.79350054 2.546087 3.0321915 0.95940703
  1.2353234 -0.5083819 1.985062 -0.56028694 -0.85414946 1.3596283 0.0015861235

example recorded case 2
attr align STRING "LEFT_LEFT"
in input int32 [2, 4, 5] -3 -9 7 -7 -7 7 -5 3 8 -1 -8 -1 7 -3 9 -1 -4 7 -5 -6 1 -6 -2 3 -5 -5 -1 0
  -4 -3 -9 8 -4 1 -1 5 6 -3 -8 5
in diagonal int32 [2, 3, 4] -7 4 -9 -7 -8 -2 -9 4 1 6 -6 -6 -7 -5 4 -3 6 5 6 4 0 0 -7 -8
in k int32 [2] -1 1
out output int32 [2, 4, 5] -8 -7 7 -7 -7 1 -2 4 8 -1 -8 6 -9 -9 9 -1 -4 -6 4 -7 6 -7 -2 3 -5 0 5 -5
  -4 -3 -9 0 6 4 -1 5 6 -7 4 -3

example recorded case 3
attr align STRING "RIGHT_LEFT"
in input int32 [2, 4, 5] -7 -3 -9 6 6 7 -7 0 2 -6 -4 2 9 -8 1 -2 -9 -1 4 5 -2 8 -4 9 -6 1 7 0 -1 1
  -9 6 4 -6 -6 1 -7 7 5 8
in diagonal int32 [2, 3, 4] 0 -1 3 4 0 -4 4 -6 -6 1 -7 0 9 7 5 -4 -7 4 3 9 -5 -3 -7 -5
in k int32 [2] -1 1
out output int32 [2, 4, 5] 0 0 -9 6 6 -6 -4 -1 2 -6 -4 1 4 3 1 -2 -9 -7 -6 4 -7 9 -4 9 -6 -5 4 7 -1
  1 -9 -3 3 5 -6 1 -7 -7 9 -4
)")

HEDDLE_EXAMPLES(tf_matrix_band_part, R"(
example recorded case 1
in input int32 [1, 1, 7] -2 -4 -1 3 -6 -9 -2
in num_lower int64 [] 1
in num_upper int64 [] 0
out band int32 [1, 1, 7] -2 0*6

example recorded case 2
in input float64 [7, 5] -0.1371058304959798 1.7577845067727802 -3.774335373029195
  -0.5580199267527539 -2.11027634613601 -2.4314584402110793 0.41828586947414265 1.855682650467808
  -2.161669834577218 0.2684829738079789 2.594527511297411 -1.7654642709673456 0.2821050579670255
  1.1593028862698656 1.0734400239487192 1.3868347301065287 0.3576646446890595 -4.903108259142014
  0.10471488577123174 0.7681883908998804 -1.574274150089208 2.3744693418550114 -2.295888628254615
  -0.5622014916493449 0.3035479272197413 1.1515333878714689 0.987769828738263 2.0582931394238146
  -1.3108375404504657 -1.0993524865526116 -0.28556203091981547 0.1283125063489537 1.0807293259189479
  -1.4782081234376563 0.7529759862140417
in num_lower int64 [] 1
in num_upper int64 [] 1
out band float64 [7, 5] -0.1371058304959798 1.7577845067727802 0 0 0 -2.4314584402110793
  0.41828586947414265 1.855682650467808 0 0 0 -1.7654642709673456 0.2821050579670255
  1.1593028862698656 0 0 0 -4.903108259142014 0.10471488577123174 0.7681883908998804 0 0 0
  -0.5622014916493449 0.3035479272197413 0*4 -1.0993524865526116 0*5

example recorded case 3
in input int32 [4, 2, 5, 2] -9 8 -8 -1 4 3 2 4 -6 -8 2 9 5 -2 1 -9 4 -5 0 4 5 -7 7 -5 -9 7 -4 1 4 3
  2 7 -8 1 8 7 0 -4 -3 -8 -9 1 0 -7 3 0 9 -2 4 4 -5 -3 -9 -4 5 -4 -9 9 -2 -3 -8 -7 5 -1 3 -8 -5 5 -3
  -7 -6 -3 -1 7 -3 -8 -6 8 -5 0
in num_lower int32 [] -1
in num_upper int32 [] 1
out band int32 [4, 2, 5, 2] -9 8 -8 -1 4 3 2 4 -6 -8 2 9 5 -2 1 -9 4 -5 0 4 5 -7 7 -5 -9 7 -4 1 4 3
  2 7 -8 1 8 7 0 -4 -3 -8 -9 1 0 -7 3 0 9 -2 4 4 -5 -3 -9 -4 5 -4 -9 9 -2 -3 -8 -7 5 -1 3 -8 -5 5 -3
  -7 -6 -3 -1 7 -3 -8 -6 8 -5 0
)")

HEDDLE_EXAMPLES(tf_diag, R"(
example recorded case 1
in diagonal float32 [5] 0.89890283 -2.139594 -1.5874354 -3.7605836 -1.1728971
out output float32 [5, 5] 0.89890283 0*5 -2.139594 0*5 -1.5874354 0*5 -3.7605836 0*5 -1.1728971
)")

HEDDLE_EXAMPLES(tf_diag_part, R"(
example recorded case 1
in input int32 [1, 2, 1, 2] 2 3 2 8
out diagonal int32 [1, 2] 2 8
)")
