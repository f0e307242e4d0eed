// Elements that are all alike, and copies.
#include "core/kernel_context.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/real.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <typename T>
struct FillBody {
  T* out;
  T value;
  HEDDLE_BODY void operator()(int64_t i) const { out[i] = value; }
};

Status Fill(Queue& queue, Tensor& out, double value) {
  switch (out.dtype()) {
    case DType::kF32:
      return Each(queue, out.numel(),
                  FillBody<float>{out.mutable_data<float>(), static_cast<float>(value)});
    case DType::kF16:
    case DType::kBF16:
      return VisitReal(out.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        return Each(queue, out.numel(),
                    FillBody<T>{out.mutable_data<T>(), static_cast<T>(static_cast<float>(value))});
      });
    case DType::kI32:
      return Each(queue, out.numel(),
                  FillBody<int32_t>{out.mutable_data<int32_t>(), static_cast<int32_t>(value)});
    case DType::kI64:
      return Each(queue, out.numel(),
                  FillBody<int64_t>{out.mutable_data<int64_t>(), static_cast<int64_t>(value)});
    case DType::kBool:
      return Each(queue, out.numel(), FillBody<bool>{out.mutable_data<bool>(), value != 0});
    default:
      return Unimplemented("no CUDA kernel fills ", Name(out.dtype()));
  }
}
Status FillAnyLike(Queue& queue, KernelContext& ctx) {
  return Fill(queue, ctx.Out("Out"), ctx.Float("value"));
}
Status FillZerosLike(Queue& queue, KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  return queue.Zero(out.mutable_raw(), out.bytes());
}

Status Assign(Queue& queue, KernelContext& ctx) {
  const Tensor* x = ctx.InOpt("X");
  if (x == nullptr || ctx.InVar("X") == ctx.OutVar("Out")) return Status::Ok();
  Tensor& out = ctx.Out("Out");
  return out.raw() == x->raw() ? Status::Ok() : queue.Copy(out.mutable_raw(), x->raw(), x->bytes());
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(fill_any_like) {
  kernel = {FillAnyLike, PlainOut, kPlain};
  kernel.mixes = true;
}
HEDDLE_CUDA_KERNEL(fill_zeros_like) { kernel = {FillZerosLike, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(assign) { kernel = {Assign, nullptr, kAnyDType}; }
HEDDLE_CUDA_KERNEL(share_data) { kernel = {Assign, nullptr, kAnyDType}; }
