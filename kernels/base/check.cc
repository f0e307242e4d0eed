#include "kernels/base/check.h"

#include <vector>

#include "core/error.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/convert.h"

namespace heddle {

Status DTypeMismatch(DType expected, const Tensor& got) {
  return InvalidArgument("an operand ", got.shape().ToString(), " is ", Name(got.dtype()),
                         ", expected ", Name(expected), " like the others");
}

Status RunConverted(const KernelContext& ctx, DType to) {
  const OpDef& def = ctx.def();
  const KernelFn kernel = def.kernel(to);
  if (kernel == nullptr) return Unimplemented("has no kernel for ", Name(to));
  BoundOp op = ctx.op();
  bool converts = false;
  op.spare = {};  // it is the outer call's
  CallHeap heap(ctx);
  std::pmr::vector<Value> values(op.in.size() + op.out.size(), &heap);
  for (size_t s = 0; s < def.inputs().size(); ++s) {
    for (uint32_t i = op.in_begin[s]; i < op.in_begin[s + 1]; ++i) {
      if (op.in[i] == kNoSlot) continue;
      values[i] = *ctx.frame()[op.in[i]];
      op.in[i] = i;
      if (!values[i].is_tensor() || values[i].tensor().dtype() == to) continue;
      converts = true;
      Tensor& t = values[i].tensor();
      Tensor converted;
      if ((def.inputs()[s].flags & kNoBuffer) == 0 && t.initialized()) {
        converted = ctx.Scratch(to, t.shape());
        ConvertElements(ctx, t.raw(), t.dtype(), converted.mutable_raw(), to, t.numel());
      } else {
        converted.SetMeta(to, t.shape());
      }
      t = converted;
    }
  }
  std::pmr::vector<Value*> frame(&heap);
  frame.reserve(values.size());
  for (Value& v : values) frame.push_back(&v);
  for (size_t i = 0; i < op.out.size(); ++i) {
    if (op.out[i] == kNoSlot) continue;
    Value* out = ctx.frame()[op.out[i]];
    op.out[i] = static_cast<uint32_t>(op.in.size() + i);
    frame[op.out[i]] = out;
    // Comparisons and the like give bool for every dtype of their inputs.
    if (!out->is_tensor() || out->tensor().dtype() == to || out->tensor().dtype() == DType::kBool)
      continue;
    converts = true;
    values[op.out[i]] = ctx.Scratch(to, out->tensor().shape());
    frame[op.out[i]] = &values[op.out[i]];
  }
  // All operands have that type already: an output's type is one that the kernel cannot write.
  if (!converts)
    return InvalidArgument("has no kernel whose operands are ", Name(to),
                           " and an output is of another type");
  KernelContext inner(op, frame.data(), ctx.services(), nullptr);
  HEDDLE_RETURN_IF_ERROR(kernel(inner));
  for (size_t i = 0; i < op.out.size(); ++i) {
    if (op.out[i] == kNoSlot || frame[op.out[i]] != &values[op.out[i]]) continue;
    const Tensor& from = values[op.out[i]].tensor();
    Tensor& out = ctx.frame()[ctx.op().out[i]]->tensor();
    ConvertElements(ctx, from.raw(), to, out.mutable_raw(), out.dtype(), out.numel());
  }
  return Status::Ok();
}

}  // namespace heddle
