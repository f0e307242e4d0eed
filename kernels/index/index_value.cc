#include "kernels/index/index_value.h"

#include <array>
#include <span>

#include "core/memory/bytes.h"
#include "core/memory/item_blocks.h"
#include "core/operands/window.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// A copy without gaps. Precondition: `from` is not contiguous.
void CopyElements(const KernelContext& ctx, const Tensor& from, Tensor* to) {
  const int last = from.rank() - 1;
  const auto size = static_cast<int64_t>(SizeOf(from.dtype()));
  if (const int64_t step = RowStep(from, last); step >= 0) {  // needs no analysis
    const int64_t bytes = from.dim(last) * size;
    CopyRows(ctx, from.raw(), step * size, to->mutable_raw(), bytes, from.numel() / from.dim(last),
             bytes);
    return;
  }
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t step = 1;
  for (int d = last; d >= 0; --d) {
    dims[static_cast<size_t>(d)] = {from.dim(d), from.strides()[static_cast<size_t>(d)], step};
    step *= from.dim(d);
  }
  StridedCopy(SizeOf(from.dtype()), std::span(dims).first(static_cast<size_t>(from.rank())))
      .Run(ctx, from.raw(), to->mutable_raw());
}

// Copies to memory of `to` that fits, or else to what take() gives.
template <typename Take>
void Copy(const KernelContext& ctx, const Tensor& from, Tensor* to, Take&& take) {
  if (&from == to) return;
  if (!from.initialized()) {
    *to = Tensor();
    return;
  }
  const bool fits = to->initialized() && to->buffer() && to->buffer()->unique() &&
                    to->dtype() == from.dtype() && to->shape() == from.shape();
  if (!fits) *to = take();
  if (from.is_contiguous())
    CopyBytes(ctx, from.raw(), to->mutable_raw(), from.bytes());
  else
    CopyElements(ctx, from, to);
  if (from.has_lod() || to->has_lod()) to->set_lod(from.lod());
}

}  // namespace

void CopyTensor(const KernelContext& ctx, const Tensor& from, Tensor* to) {
  Copy(ctx, from, to, [&] { return ctx.Scratch(from.dtype(), from.shape()); });
}

void CopyItem(const KernelContext& ctx, const Tensor& from, size_t i, TensorArray* array) {
  Copy(ctx, from, &(*array)[i], [&] {
    const size_t bytes = BytesFor(from.dtype(), from.shape());
    if (i == 0 || bytes > kSmallItem) return ctx.Scratch(from.dtype(), from.shape());
    const Tensor& before = (*array)[i - 1];
    const BufferRef none, &beside = before.initialized() ? before.buffer() : none;
    return Tensor(from.dtype(), from.shape(),
                  TakeItem(bytes, beside, i, *ctx.services().allocator));
  });
}

void CopyValue(const KernelContext& ctx, const Value& from, Value* to) {
  if (&from == to) return;
  if (from.is_tensor()) {
    Tensor fresh;
    CopyTensor(ctx, from.tensor(), &fresh);
    to->MutableTensor() = std::move(fresh);
  } else if (from.is_array() && from.initialized()) {
    TensorArray items(from.array().size());
    for (size_t i = 0; i < items.size(); ++i) CopyTensor(ctx, from.array()[i], &items[i]);
    to->mutable_array() = std::move(items);
  } else if (from.is_rows() && from.initialized()) {
    SelectedRows rows;
    rows.rows = from.rows().rows;
    rows.height = from.rows().height;
    CopyTensor(ctx, from.rows().value, &rows.value);
    to->mutable_rows() = std::move(rows);
  } else {
    *to = from;
  }
}

void CopyToOutput(const KernelContext& ctx, const Value& from, Value* to) {
  const bool given = &from != to && from.is_tensor() && to->is_tensor() &&
                     from.tensor().initialized() && to->tensor().initialized() &&
                     from.tensor().dtype() == to->tensor().dtype() &&
                     from.tensor().shape() == to->tensor().shape();
  if (!given) return CopyValue(ctx, from, to);
  Tensor& out = to->tensor();
  CopyBytes(ctx, from.tensor().raw(), out.mutable_raw(), out.bytes());
  if (from.tensor().has_lod() || out.has_lod()) out.set_lod(from.tensor().lod());
}

Result<int64_t> ScalarIn(const KernelContext& ctx, Key key) {
  return ScalarOf(ctx.In(key), key.name);
}

Result<int64_t> ScalarOf(const Tensor& t, const char* name) {
  if (!t.initialized() || t.numel() != 1)
    return InvalidArgument("'", name, "' must hold one element, but has shape ",
                           t.shape().ToString());
  if (t.dtype() == DType::kBool) return static_cast<int64_t>(t.data<bool>()[0]);
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(t.dtype(), name));
  return IntAt(t, 0);
}

}  // namespace heddle
