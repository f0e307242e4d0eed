#include <algorithm>
#include <vector>

#include "core/kernel_context.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/in_float.h"
#include "device/cuda/grid/real.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <typename From, typename To>
struct ConvertBody {
  const From* from;
  To* to;
  HEDDLE_BODY void operator()(int64_t i) const { StoreReal(LoadReal(from[i]), to + i); }
};

bool IsHalfTensor(const Value& v) {
  return v.is_tensor() && v.tensor().initialized() && IsHalf(v.tensor().dtype());
}

Status Widen(Queue& queue, const Tensor& from, Tensor& to) {
  return VisitReal(from.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Each(queue, from.numel(),
                ConvertBody<T, float>{from.data<T>(), to.mutable_data<float>()});
  });
}
Status Narrow(Queue& queue, const Tensor& from, Tensor& to) {
  return VisitReal(to.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Each(queue, from.numel(),
                ConvertBody<float, T>{from.data<float>(), to.mutable_data<T>()});
  });
}

}  // namespace

Status RunInFloat(Queue& queue, KernelContext& ctx, GridKernelFn run) {
  BoundOp op = ctx.op();
  const auto is_half = [&](uint32_t s) { return s != kNoSlot && IsHalfTensor(*ctx.frame()[s]); };
  if (!std::any_of(op.in.begin(), op.in.end(), is_half) &&
      !std::any_of(op.out.begin(), op.out.end(), is_half))
    return run(queue, ctx);
  const size_t ins = op.in.size(), outs = op.out.size();
  std::vector<Value> wide(ins + outs);
  std::vector<Value*> frame(ins + outs);
  for (size_t i = 0; i < ins + outs; ++i) {
    uint32_t& slot = i < ins ? op.in[i] : op.out[i - ins];
    if (slot == kNoSlot) continue;
    Value* const value = ctx.frame()[slot];
    slot = static_cast<uint32_t>(i);
    frame[i] = value;
    if (!IsHalfTensor(*value)) continue;
    const Tensor& t = value->tensor();
    const size_t bytes = static_cast<size_t>(t.numel()) * sizeof(float);
    HEDDLE_ASSIGN_OR_RETURN(void* const memory, queue.Allocate(bytes == 0 ? 1 : bytes));
    wide[i] = Value(
        Tensor::Wrap(memory, DType::kF32, t.shape(), [&queue, memory] { queue.Free(memory); }));
    frame[i] = &wide[i];
    if (i < ins) HEDDLE_RETURN_IF_ERROR(Widen(queue, t, wide[i].tensor()));
  }
  KernelContext inner(op, frame.data(), ctx.services(), nullptr);
  HEDDLE_RETURN_IF_ERROR(run(queue, inner));
  for (size_t i = 0; i < outs; ++i) {
    if (op.out[i] == kNoSlot || frame[ins + i] != &wide[ins + i]) continue;
    HEDDLE_RETURN_IF_ERROR(
        Narrow(queue, wide[ins + i].tensor(), ctx.frame()[ctx.op().out[i]]->tensor()));
  }
  return Status::Ok();
}

}  // namespace heddle::HEDDLE_GRID
