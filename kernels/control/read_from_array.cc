// read_from_array: copies an item out of a tensor array. Its gradient is write_to_array.
#include "core/operands/slot_kinds.h"
#include "kernels/index/index_value.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

const TensorArray* ArrayIn(const OpContext& ctx) {
  const Value* x = ctx.InVar("X");
  return x != nullptr && x->is_array() && x->initialized() ? &x->array() : nullptr;
}

// The item that was written there; nullptr when none was.
const Tensor* ItemAt(const TensorArray* array, int64_t at) {
  if (array == nullptr || at < 0 || at >= std::ssize(*array)) return nullptr;
  const Tensor& item = (*array)[static_cast<size_t>(at)];
  return item.initialized() ? &item : nullptr;
}

bool Alike(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

// Before a run, the first item of an array has no contents and stands for all of them.
const Tensor* PlannedItem(const TensorArray* array) {
  const bool planned = array != nullptr && !array->empty() && !(*array)[0].initialized() &&
                       (*array)[0].dtype() != DType::kUnknown;
  return planned ? &(*array)[0] : nullptr;
}

Status ReadShape(ShapeContext& ctx) {
  const Value* written = ctx.InVar("X_W");
  const Tensor* like = written != nullptr && written->is_tensor() ? &written->tensor() : nullptr;
  if (like != nullptr && like->dtype() == DType::kUnknown) like = nullptr;
  if (const Tensor* item = PlannedItem(ArrayIn(ctx))) {
    if (like != nullptr && !Alike(*item, *like)) return ctx.Defer();
    ctx.SetOut("Out", item->shape(), item->dtype());
    return Status::Ok();
  }
  const Tensor* at = ctx.InValue("I");
  if (at == nullptr) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t index, ScalarOf(*at, "I"));
  const Tensor* item = ItemAt(ArrayIn(ctx), index);
  if (item == nullptr && (like == nullptr || !like->initialized())) return ctx.Defer();
  if (item == nullptr) item = like;
  ctx.SetOut("Out", item->shape(), item->dtype());
  if (item->has_lod()) ctx.SetOutLoD("Out", item->lod());
  return Status::Ok();
}

// Out = X[I]. As a gradient (X_W is the tensor once written): zeros where nothing came back.
Status ReadItem(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "I"));
  const TensorArray* array = ArrayIn(ctx);
  const Tensor* item = ItemAt(array, at);
  const Tensor* from = item != nullptr ? item : ctx.InOpt("X_W");
  if (from == nullptr)
    return OutOfRange("item ", at, " of a tensor array with ", array != nullptr ? array->size() : 0,
                      " items was never written");
  Tensor& out = ctx.Out("Out");
  if (!Alike(out, *from))
    return InvalidArgument("item ", at, " is ", Name(from->dtype()), " ", from->shape().ToString(),
                           ", but the plan expects items of ", Name(out.dtype()), " ",
                           out.shape().ToString());
  if (item != nullptr)
    CopyBytes(ctx, item->raw(), out.mutable_raw(), item->bytes());
  else
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(read_from_array) {
  op.Doc("A copy of item I of the array X.")
      .Input("X", kOptional | kAnyKind | kArrayOnly)
      .Input("I")
      .Input("X_W", kOptional)
      .Output("Out")
      .InferShape(ReadShape)
      .AnyKernel(ReadItem);
}
