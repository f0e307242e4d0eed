#include "kernels/strided/index_expand.h"

#include "kernels/folds/reduce.h"

namespace heddle {
namespace {

StridedCopy BuildExpand(const Tensor& x, const Repeats& r) {
  std::array<CopyDim, 2 * Shape::kMaxRank> dims;
  int64_t src = 1, dst = 1;
  for (int i = r.rank - 1; i >= 0; --i) {
    dims[2 * i + 1] = {r.n[i], src, dst};
    dims[2 * i] = {r.times[i], 0, dst * r.n[i]};
    src *= r.n[i];
    dst *= r.n[i] * r.times[i];
  }
  return StridedCopy(SizeOf(x.dtype()), std::span(dims.data(), 2 * static_cast<size_t>(r.rank)));
}

}  // namespace

Status MakeRepeats(const Shape& x, const Shape& out, Repeats* repeats) {
  repeats->rank = out.rank();
  const int lead = out.rank() - x.rank();
  bool fits = lead >= 0;
  for (int i = 0; fits && i < out.rank(); ++i) {
    const int64_t n = i < lead ? 1 : x[i - lead];
    fits = n == 0 ? out[i] == 0 : out[i] % n == 0;
    repeats->n[i] = n;
    repeats->times[i] = n == 0 ? 1 : out[i] / n;
  }
  if (fits) return Status::Ok();
  return InvalidArgument("shape ", x.ToString(), " does not repeat to ", out.ToString());
}

Result<std::unique_ptr<KernelState>> PrepareRepeat(const Tensor& x, const Shape& out) {
  Repeats r;
  HEDDLE_RETURN_IF_ERROR(MakeRepeats(x.shape(), out, &r));
  return std::unique_ptr<KernelState>(new CopyState(BuildExpand(x, r)));
}

Status RunRepeat(const KernelContext& ctx, const Tensor& x, Tensor& out) {
  Repeats r;
  HEDDLE_RETURN_IF_ERROR(MakeRepeats(x.shape(), out.shape(), &r));
  BuildExpand(x, r).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

Status RunRepeatSum(const KernelContext& ctx, const Tensor& grad, Tensor& sum) {
  Repeats r;
  HEDDLE_RETURN_IF_ERROR(MakeRepeats(sum.shape(), grad.shape(), &r));
  if (sum.numel() == grad.numel()) {
    CopyBytes(ctx, grad.raw(), sum.mutable_raw(), sum.bytes());
    return Status::Ok();
  }
  if (grad.numel() == 0) {
    ZeroBytes(ctx, sum.mutable_raw(), sum.bytes());
    return Status::Ok();
  }
  const ReduceLoops* loops = SumLoops(grad.dtype());
  if (loops == nullptr) return Unimplemented("no sum over ", Name(grad.dtype()), " tensors");
  // Dimensions of 1 are dropped; at most twice the rank are left.
  std::array<int64_t, 2 * Shape::kMaxRank> dims;
  uint32_t reduced = 0;
  int rank = 0;
  for (int i = 0; i < r.rank; ++i) {
    if (r.times[i] != 1) {
      reduced |= 1u << rank;
      dims[rank++] = r.times[i];
    }
    if (r.n[i] != 1) dims[rank++] = r.n[i];
  }
  const ReducePlan plan =
      MakeReducePlan(std::span(dims.data(), static_cast<size_t>(rank)), reduced);
  RunReduce(ctx, plan, *loops, grad.raw(), sum.mutable_raw());
  return Status::Ok();
}

}  // namespace heddle
