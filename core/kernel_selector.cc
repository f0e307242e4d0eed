#include "core/kernel_selector.h"

namespace heddle {
namespace {

DType DTypeOf(const Value& v) {
  if (v.is_rows()) return v.rows().value.dtype();
  if (v.is_array()) return v.array().empty() ? DType::kUnknown : v.array()[0].dtype();
  return v.is_tensor() ? v.tensor().dtype() : DType::kUnknown;
}

}  // namespace

DType KernelKey(const BoundOp& op, Value* const* frame) {
  const OpDef& def = *op.def;
  const int slot = def.kernel_key();
  const uint32_t begin = slot < 0 ? 0 : op.in_begin[slot];
  const uint32_t end = op.in_begin[slot < 0 ? def.inputs().size() : slot + 1];
  DType key = DType::kUnknown;
  for (uint32_t i = begin; i < end && key == DType::kUnknown; ++i)
    if (op.in[i] != kNoSlot) key = DTypeOf(*frame[op.in[i]]);
  return key;
}

namespace {

bool HasDataForRows(const SelectedRows& rows) {
  const Tensor& data = rows.value;
  return rows.rows.empty() ||
         (data.rank() > 0 && data.dim(0) >= static_cast<int64_t>(rows.rows.size()));
}

Status WrongOperand(const SlotDef& slot, const Value& v) {
  if (v.is_tensor())
    return InvalidArgument("input '", slot.name, "' holds nothing: nothing was written to it");
  return InvalidArgument("input '", slot.name, "' holds ",
                         v.is_rows()    ? "selected rows"
                         : v.is_array() ? "a tensor array"
                                        : "no tensor",
                         "; a tensor is expected");
}

}  // namespace

Status CheckOperands(const BoundOp& op, Value* const* frame) {
  // The usual case: all operands are tensors with contents.
  bool plain = true;
  for (uint32_t s : op.in)
    plain = plain && (s == kNoSlot || (frame[s]->is_tensor() && frame[s]->tensor().initialized()));
  if (plain) [[likely]]
    return Status::Ok();
  const OpDef& def = *op.def;
  if (def.has(kControlFlow)) return Status::Ok();  // its blocks' operators are checked instead
  for (size_t s = 0; s < def.inputs().size(); ++s) {
    const unsigned flags = def.inputs()[s].flags;
    for (uint32_t k = op.in_begin[s]; k < op.in_begin[s + 1]; ++k) {
      if (op.in[k] == kNoSlot) continue;
      const Value& v = *frame[op.in[k]];
      if (flags & kAnyKind) {
        if (v.is_rows() && !HasDataForRows(v.rows())) [[unlikely]]
          return InvalidArgument("input '", def.inputs()[s].name, "' has ", v.rows().rows.size(),
                                 " row numbers, but data of shape ",
                                 v.rows().value.shape().ToString());
        continue;
      }
      const bool nothing =
          !(flags & kOptional) && !v.initialized() && v.tensor().dtype() == DType::kUnknown;
      if (!v.is_tensor() || nothing) [[unlikely]]
        return WrongOperand(def.inputs()[s], v);
    }
  }
  return Status::Ok();
}

Status SelectKernel(const BoundOp& op, Value* const* frame, KernelFn* fn) {
  const OpDef& def = *op.def;
  const DType key = KernelKey(op, frame);
  *fn = def.kernel(key);
  if (*fn != nullptr) return Status::Ok();
  if (key == DType::kUnknown && !op.in.empty())
    return InvalidArgument(
        "the input that decides the kernel holds nothing: nothing was written "
        "to it");
  return Unimplemented("has no kernel for ", Name(key), "; it has kernels for ",
                       def.KernelDTypes());
}

}  // namespace heddle
