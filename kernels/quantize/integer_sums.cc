#include "kernels/quantize/integer_sums.h"

#include "core/memory/lazy_buffer.h"
#include "kernels/base/visit_one_of.h"

namespace heddle {
namespace {

// The zero points of `of`, one or `parts` of them; empty: 0.
Result<std::vector<int32_t>> ZerosOf(const Tensor* zero, DType of, int64_t parts,
                                     const char* slot) {
  std::vector<int32_t> zeros;
  if (zero == nullptr) return zeros;
  if (zero->dtype() != of || (zero->numel() != 1 && zero->numel() != parts))
    return InvalidArgument(slot, " is ", Name(zero->dtype()), " ", zero->shape().ToString(),
                           ", expected one or ", parts, " of ", Name(of));
  const BorrowedContents contents(*zero);
  VisitOneOf<uint8_t, int8_t>(slot, of, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const v = contents.tensor().data<T>();
    zeros.assign(v, v + zero->numel());
  });
  return zeros;
}

// The zero point of a run, which takes no memory of the heap.
Result<int32_t> OneZeroOf(const Tensor* zero, DType of, const char* slot) {
  if (zero == nullptr) return 0;
  if (zero->dtype() != of || zero->numel() != 1)
    return InvalidArgument(slot, " is ", Name(zero->dtype()), " ", zero->shape().ToString(),
                           ", expected one of ", Name(of));
  return of == DType::kI8 ? int32_t{*zero->data<int8_t>()} : int32_t{*zero->data<uint8_t>()};
}

Status CheckIntegers(DType dtype) {
  if (dtype == DType::kU8 || dtype == DType::kI8) return Status::Ok();
  return InvalidArgument("an operand is ", Name(dtype), ", expected uint8 or int8");
}

// The convolution as one of images; false: it has more dimensions.
bool GeometryOf(const Convolution& c, ConvGeometry* g) {
  const Windows& w = c.windows;
  if (w.rank > 3) return false;
  g->spatial = std::max(2, w.rank);
  g->batch = c.batch;
  g->groups = c.groups;
  g->in_c = c.in_channels;
  g->out_c = c.out_channels;
  for (int i = 0; i < w.rank; ++i) {
    const auto to = static_cast<size_t>(3 - w.rank + i), from = static_cast<size_t>(i);
    g->in[to] = w.in[i];
    g->out[to] = w.out[i];
    g->kernel[to] = w.kernel[i];
    g->stride[to] = w.stride[from];
    g->dilation[to] = w.dilation[from];
    g->pad_lo[to] = w.pad_lo[from];
    g->pad_hi[to] = w.pad_hi[from];
    if (g->pad_lo[to] < 0 || g->pad_hi[to] < 0) return false;
  }
  return true;
}

// Whether the operand is known not to be shifted.
bool IsUnshifted(const PrepareContext& ctx, Key zero) {
  if (!ctx.HasIn(zero)) return true;
  const Tensor* const t = ctx.ConstIn(zero);
  return t != nullptr && t->numel() == 1 && SizeOf(t->dtype()) == 1 &&
         *static_cast<const uint8_t*>(BorrowedContents(*t).tensor().raw()) == 0;
}

// The old way, for what has no runner: operands widened to 32 bits.
Status ConvolveWidened(const KernelContext& ctx, const Convolution& c, const IntegerSlots& s,
                       int32_t* sums) {
  const Tensor &x = ctx.In(s.x), &w = ctx.In(s.y);
  Tensor wide_x = ctx.Scratch(DType::kI32, x.shape()), wide_w = ctx.Scratch(DType::kI32, w.shape());
  HEDDLE_RETURN_IF_ERROR(
      Centered(x, ctx.InOpt(s.x_zero), 1, s.x_zero.name, wide_x.mutable_data<int32_t>()));
  HEDDLE_RETURN_IF_ERROR(Centered(w, ctx.InOpt(s.y_zero), c.out_channels, s.y_zero.name,
                                  wide_w.mutable_data<int32_t>()));
  Convolve<int32_t>(ctx, c, wide_x.data<int32_t>(), wide_w.data<int32_t>(), sums);
  return Status::Ok();
}

// Subtracts a zero point that is one number, one per row of the last two dimensions (`rows`), or
// one per column.
Status CenterMatrix(const Tensor& from, const Tensor* zero, bool rows, const char* slot,
                    int32_t* to) {
  HEDDLE_RETURN_IF_ERROR(CheckIntegers(from.dtype()));
  const int64_t cols = from.rank() == 0 ? 1 : from.dim(-1);
  const int64_t height = from.rank() < 2 ? 1 : from.dim(-2);
  const int64_t zeros = zero == nullptr ? 1 : zero->numel();
  const int64_t batches = from.rank() < 2 ? 1 : from.shape().Product(0, from.rank() - 2);
  const bool per_batch = zeros != 1 && zeros == batches * (rows ? height : cols);
  if (zero != nullptr && (zero->dtype() != from.dtype() ||
                          (zeros != 1 && zeros != (rows ? height : cols) && !per_batch)))
    return InvalidArgument(slot, " is ", Name(zero->dtype()), " ", zero->shape().ToString(),
                           ", which does not fit ", from.shape().ToString());
  VisitOneOf<uint8_t, int8_t>(slot, from.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* v = from.data<T>();
    for (const auto part : Stretches(from.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t batch = per_batch ? i / cols / height : 0;
        const int64_t own = rows ? i / cols % height : i % cols;
        const int64_t at = zeros == 1 ? 0 : batch * (rows ? height : cols) + own;
        to[i] = int32_t{v[i]} - (zero == nullptr ? 0 : int32_t{zero->data<T>()[at]});
      }
  });
  return Status::Ok();
}

Status MultiplyWidened(const KernelContext& ctx, const MatMulShape& shape, const IntegerSlots& s,
                       int32_t* to) {
  const Tensor &a = ctx.In(s.x), &b = ctx.In(s.y);
  Tensor wide_a = ctx.Scratch(DType::kI32, a.shape()), wide_b = ctx.Scratch(DType::kI32, b.shape());
  HEDDLE_RETURN_IF_ERROR(
      CenterMatrix(a, ctx.InOpt(s.x_zero), true, s.x_zero.name, wide_a.mutable_data<int32_t>()));
  HEDDLE_RETURN_IF_ERROR(
      CenterMatrix(b, ctx.InOpt(s.y_zero), false, s.y_zero.name, wide_b.mutable_data<int32_t>()));
  shape.Run<int32_t>(ctx, wide_a.data<int32_t>(), wide_b.data<int32_t>(), to);
  return Status::Ok();
}

bool FitsColumns(const Tensor* zero, int64_t columns) {
  return zero == nullptr || zero->numel() == 1 || (columns > 1 && zero->numel() == columns);
}

Status RunRunner(const KernelContext& ctx, const MatMulShape& shape, DType x_type, const void* x,
                 int32_t x_zero, const IntegerSlots& s, IntegerOperands o,
                 const IntegerResult& result, void* out) {
  const auto& state = ctx.State<IntegerSumsState>();
  const Tensor& y = ctx.In(s.y);
  o.x = x;
  o.x_zero = x_zero;
  o.y = y.raw();
  o.out = out;
  if (state.runner != nullptr) {
    state.runner->Run(ctx, o);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int32_t> y_zero,
                          ZerosOf(ctx.InOpt(s.y_zero), y.dtype(), shape.gemm.one.n, s.y_zero.name));
  HEDDLE_ASSIGN_OR_RETURN(const auto runner,
                          MakeIntegerGemm(nullptr, {shape.gemm, x_type, y.dtype(), x_zero != 0,
                                                    nullptr, y_zero, result}));
  runner->Run(ctx, o);
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<KernelState>> PrepareConvSums(const PrepareContext& ctx,
                                                     const Convolution& c, const IntegerSlots& s) {
  auto state = std::make_unique<IntegerSumsState>();
  ConvGeometry g;
  const Tensor* const w = ctx.ConstIn(s.y);
  const Tensor* const zero = ctx.HasIn(s.y_zero) ? ctx.ConstIn(s.y_zero) : nullptr;
  if (w == nullptr || (ctx.HasIn(s.y_zero) && zero == nullptr) || !GeometryOf(c, &g))
    return std::unique_ptr<KernelState>(std::move(state));
  HEDDLE_RETURN_IF_ERROR(CheckIntegers(w->dtype()));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int32_t> zeros,
                          ZerosOf(zero, w->dtype(), c.out_channels, s.y_zero.name));
  const IntegerResult sums;
  HEDDLE_ASSIGN_OR_RETURN(
      state->runner,
      MakeIntegerConv(&ctx, {g, ctx.InDType(s.x), !IsUnshifted(ctx, s.x_zero), *w, zeros, sums}));
  state->facts().implementation = state->runner->name();
  ctx.MarkPacked(s.y, state.get());
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunConvSums(const KernelContext& ctx, const Convolution& c, const IntegerSlots& s,
                   int32_t* sums) {
  const Tensor &x = ctx.In(s.x), &w = ctx.In(s.y);
  HEDDLE_RETURN_IF_ERROR(CheckIntegers(w.dtype()));
  const auto& state = ctx.State<IntegerSumsState>();
  if (state.runner == nullptr) return ConvolveWidened(ctx, c, s, sums);
  HEDDLE_ASSIGN_OR_RETURN(const int32_t x_zero,
                          OneZeroOf(ctx.InOpt(s.x_zero), x.dtype(), s.x_zero.name));
  state.runner->Run(ctx, {.x = x.raw(), .x_zero = x_zero, .out = sums});
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareProductSums(const PrepareContext& ctx,
                                                        const MatMulShape& shape,
                                                        const IntegerSlots& s,
                                                        const IntegerResult& result) {
  auto state = std::make_unique<IntegerSumsState>();
  const DType y = ctx.InDType(s.y);
  const DType x = ctx.InDType(s.x) == DType::kF32 ? DType::kU8 : ctx.InDType(s.x);
  const bool has_zero = ctx.HasIn(s.y_zero);
  const Tensor* const zero = has_zero ? ctx.ConstIn(s.y_zero) : nullptr;
  HEDDLE_RETURN_IF_ERROR(CheckIntegers(y));
  if ((has_zero && zero == nullptr) || !FitsColumns(zero, shape.gemm.one.n) ||
      shape.gemm.one.work() == 0 || shape.gemm.sums)
    return std::unique_ptr<KernelState>(std::move(state));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int32_t> zeros,
                          ZerosOf(zero, y, shape.gemm.one.n, s.y_zero.name));
  const bool shifted = ctx.InDType(s.x) == DType::kF32 || !IsUnshifted(ctx, s.x_zero);
  HEDDLE_ASSIGN_OR_RETURN(state->runner, MakeIntegerGemm(&ctx, {shape.gemm, x, y, shifted,
                                                                ctx.ConstIn(s.y), zeros, result}));
  state->facts().implementation = state->runner->name();
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunProductSums(const KernelContext& ctx, const MatMulShape& shape, const IntegerSlots& s,
                      const IntegerOperands& scales, const IntegerResult& result, void* out) {
  const Tensor &x = ctx.In(s.x), &y = ctx.In(s.y);
  HEDDLE_RETURN_IF_ERROR(CheckIntegers(x.dtype()));
  HEDDLE_RETURN_IF_ERROR(CheckIntegers(y.dtype()));
  const Tensor* const x_zero = ctx.InOpt(s.x_zero);
  const bool made = ctx.State<IntegerSumsState>().runner != nullptr;
  if (!result.scaled() && !(made && (x_zero == nullptr || x_zero->numel() == 1)))
    return MultiplyWidened(ctx, shape, s, static_cast<int32_t*>(out));
  HEDDLE_ASSIGN_OR_RETURN(const int32_t zero, OneZeroOf(x_zero, x.dtype(), s.x_zero.name));
  return RunRunner(ctx, shape, x.dtype(), x.raw(), zero, s, scales, result, out);
}

Status RunProductOf(const KernelContext& ctx, const MatMulShape& shape, const uint8_t* x,
                    int32_t x_zero, const IntegerSlots& s, const IntegerOperands& scales,
                    const IntegerResult& result, void* out) {
  HEDDLE_RETURN_IF_ERROR(CheckIntegers(ctx.In(s.y).dtype()));
  return RunRunner(ctx, shape, DType::kU8, x, x_zero, s, scales, result, out);
}

}  // namespace heddle
