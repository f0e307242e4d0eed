#include "kernels/control/steps.h"

#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/memory/watched_bytes.h"
#include "kernels/index/index_value.h"

namespace heddle {
namespace {

Status AddTensor(const KernelContext& ctx, const Tensor& from, Tensor* to) {
  if (from.dtype() != to->dtype() || from.numel() != to->numel())
    return InvalidArgument("a step's gradient is ", Name(from.dtype()), " ",
                           from.shape().ToString(), ", those of other steps are ",
                           Name(to->dtype()), " ", to->shape().ToString());
  const bool known =
      VisitDType<float, double, float16, bfloat16, int32_t, int64_t, std::complex<float>,
                 std::complex<double>>(from.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        using C = ComputeType<T>;
        const T* x = from.data<T>();
        T* y = to->mutable_data<T>();
        ctx.ParallelFor(from.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            y[i] = static_cast<T>(static_cast<C>(y[i]) + static_cast<C>(x[i]));
        });
      });
  return known ? Status::Ok() : Unimplemented("gradients of ", Name(from.dtype()));
}

Status AccumulateTensor(const KernelContext& ctx, const Tensor& from, Tensor* to) {
  if (!from.initialized()) return Status::Ok();
  if (to->initialized() && (to->numel() > 0 || from.numel() == 0)) return AddTensor(ctx, from, to);
  CopyTensor(ctx, from, to);
  return Status::Ok();
}

Tensor Zeros(const KernelContext& ctx, const Tensor& like) {
  if (!like.initialized()) return Tensor();
  Tensor zeros = ctx.Scratch(like.dtype(), like.shape());
  if (zeros.bytes() > 0) WatchedMemset(zeros.mutable_raw(), 0, zeros.bytes());
  if (like.has_lod()) zeros.set_lod(like.lod());
  return zeros;
}

}  // namespace

StepRecord& StepsIn(Value& scopes) {
  std::any& held = scopes.mutable_other();
  if (std::any_cast<StepRecord>(&held) == nullptr) held = StepRecord();
  return *std::any_cast<StepRecord>(&held);
}

void TakeValues(const SlotVars& vars, StepValues* to) {
  to->reserve(to->size() + static_cast<size_t>(vars.size()));
  for (int i = 0; i < vars.size(); ++i) {
    Value* v = vars[i];
    if (v == nullptr)
      to->emplace_back();
    else if (v->kind() == Value::Kind::kOther)
      to->push_back(std::exchange(*v, Value()));
    else
      to->push_back(*v);
  }
}

size_t PutValues(const SlotVars& vars, StepValues& from, size_t at) {
  for (int i = 0; i < vars.size() && at < from.size(); ++i, ++at)
    if (Value* v = vars[i]; v != nullptr) *v = std::move(from[at]);
  return at;
}

void ClearArrays(const SlotVars& vars) {
  for (int i = 0; i < vars.size(); ++i)
    if (Value* v = vars[i]; v != nullptr && v->is_array()) v->mutable_array().clear();
}

Status Accumulate(const KernelContext& ctx, Value& from, Value* to) {
  if (!from.initialized()) return Status::Ok();
  const bool first = from.is_tensor() && (!to->is_tensor() || !to->tensor().initialized());
  if (first) {
    *to = std::exchange(from, Value());
    return Status::Ok();
  }
  if (from.is_tensor()) return AccumulateTensor(ctx, from.tensor(), &to->MutableTensor());
  if (!from.is_array())
    return Unimplemented("gradients of steps that are neither tensors nor arrays");
  TensorArray& sum = to->mutable_array();
  const TensorArray& items = from.array();
  if (sum.size() < items.size()) sum.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(AccumulateTensor(ctx, items[i], &sum[i]));
  return Status::Ok();
}

void ZeroLike(const KernelContext& ctx, const Value& like, Value* to) {
  if (!like.initialized()) return;
  if (like.is_tensor()) {
    to->MutableTensor() = Zeros(ctx, like.tensor());
  } else if (like.is_array()) {
    TensorArray zeros;
    for (const Tensor& t : like.array()) zeros.push_back(Zeros(ctx, t));
    to->mutable_array() = std::move(zeros);
  }
}

Tensor Row(const KernelContext& ctx, const Tensor& x, int64_t at) {
  Shape shape;
  for (int d = 1; d < x.rank(); ++d) shape.push_back(x.dim(d));
  Tensor row = ctx.Scratch(x.dtype(), shape);
  if (row.bytes() > 0)
    WatchedMemcpy(row.mutable_raw(),
                  static_cast<const std::byte*>(x.raw()) + static_cast<size_t>(at) * row.bytes(),
                  row.bytes());
  return row;
}

void PutRow(const KernelContext& ctx, const Tensor& row, int64_t rows, int64_t at, Value* to) {
  Shape shape{rows};
  for (int d = 0; d < row.rank(); ++d) shape.push_back(row.dim(d));
  Tensor& t = to->MutableTensor();
  if (!t.initialized() || t.dtype() != row.dtype() || !(t.shape() == shape) ||
      !t.buffer()->unique())
    t = ctx.Scratch(row.dtype(), shape);
  if (row.bytes() > 0)
    WatchedMemcpy(static_cast<std::byte*>(t.mutable_raw()) + static_cast<size_t>(at) * row.bytes(),
                  row.raw(), row.bytes());
}

}  // namespace heddle
