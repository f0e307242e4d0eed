#include "kernels/base/index_args.h"

#include "core/dtype_of.h"
#include "core/shapes.h"

namespace heddle {
namespace {

Status TooMany(const char* name, int64_t n) {
  return InvalidArgument("'", name, "' has ", n, " values; at most ", IntArgs::kMax, " make sense");
}

Status ReadList(const OpContext& ctx, Key list, int count, IntArgs* out) {
  if (count > IntArgs::kMax) return TooMany(list.name, count);
  out->n = count;
  out->tensors = true;
  for (int i = 0; i < count; ++i) {
    const Value* v = ctx.InVar(list, i);
    if (!Holds(v) || !v->is_tensor())
      return InvalidArgument("'", list.name, "' [", i, "] is not a tensor");
    const Tensor& t = v->tensor();
    (*out)[i] = -1;
    if (!t.initialized()) {
      out->known = false;
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(t.dtype(), list.name));
    if (t.numel() < 1) return InvalidArgument("'", list.name, "' [", i, "] is empty");
    (*out)[i] = IntAt(t, 0);
  }
  return Status::Ok();
}

Status ReadTensor(const Tensor& t, Key slot, IntArgs* out) {
  out->tensors = true;
  if (!t.initialized()) {
    out->known = false;
    out->n = t.shape().is_static() ? static_cast<int>(t.numel()) : -1;
    if (out->n > IntArgs::kMax) return TooMany(slot.name, out->n);
    for (int i = 0; i < out->n; ++i) (*out)[i] = -1;
    return Status::Ok();
  }
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(t.dtype(), slot.name));
  if (t.numel() > IntArgs::kMax) return TooMany(slot.name, t.numel());
  out->n = static_cast<int>(t.numel());
  for (int i = 0; i < out->n; ++i) (*out)[i] = IntAt(t, i);
  return Status::Ok();
}

Status ReadAttr(const OpContext& ctx, Key attr, IntArgs* out) {
  const Ints& values = ctx.IntList(attr);
  if (values.size() > static_cast<size_t>(IntArgs::kMax))
    return TooMany(attr.name, static_cast<int64_t>(values.size()));
  out->n = static_cast<int>(values.size());
  for (int i = 0; i < out->n; ++i) (*out)[i] = values[i];
  return Status::Ok();
}

// The first element of a tensor of any integer type. Paddle reads a single number from all of them,
// lists only from int32 and int64.
Result<int64_t> FirstOf(const Tensor& t, const char* name) {
  if (t.numel() < 1) return InvalidArgument("'", name, "' is empty");
  bool read = false;
  int64_t first = 0;
  VisitDType<uint8_t, int8_t, int16_t, int32_t, int64_t>(t.dtype(), [&](auto tag) {
    first = t.data<typename decltype(tag)::type>()[0];
    read = true;
  });
  if (!read) return InvalidArgument("'", name, "' must be an integer, not ", Name(t.dtype()));
  return first;
}

}  // namespace

bool Holds(const Value* v) {
  return v != nullptr &&
         (!v->is_tensor() || v->tensor().initialized() || v->tensor().dtype() != DType::kUnknown ||
          !v->tensor().shape().known_rank());
}

Status CheckIntDType(DType dtype, const char* name) {
  if (dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kUnknown) return Status::Ok();
  return InvalidArgument("'", name, "' must be int32 or int64, not ", Name(dtype));
}

Status ReadInts(const OpContext& ctx, Key list, Key tensor, Key attr, IntArgs* out) {
  if (const int count = ctx.InCount(list); count > 0 && Holds(ctx.InVar(list)))
    return ReadList(ctx, list, count, out);
  return ReadInts(ctx, tensor, attr, out);
}

Status ReadInts(const OpContext& ctx, Key tensor, Key attr, IntArgs* out) {
  const Value* v = ctx.InVar(tensor);
  if (Holds(v) && v->is_tensor()) return ReadTensor(v->tensor(), tensor, out);
  return ReadAttr(ctx, attr, out);
}

Status ReadInt(const OpContext& ctx, Key tensor, Key attr, IntArg* out) {
  const Value* v = ctx.InVar(tensor);
  if (!Holds(v) || !v->is_tensor()) {
    out->value = ctx.Int(attr);
    return Status::Ok();
  }
  out->tensor = true;
  const Tensor& t = v->tensor();
  if (!t.initialized()) {
    out->known = false;
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(out->value, FirstOf(t, tensor.name));
  return Status::Ok();
}

Status ReadAxis(const OpContext& ctx, Key tensor, Key attr, int rank, IntArg* out) {
  HEDDLE_RETURN_IF_ERROR(ReadInt(ctx, tensor, attr, out));
  if (!out->known) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(out->value, NormalAxis(out->value, rank));
  return Status::Ok();
}

}  // namespace heddle
