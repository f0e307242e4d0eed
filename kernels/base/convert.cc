#include "kernels/base/convert.h"

#include <cstring>
#include <memory_resource>
#include <vector>

#include "core/operands/window.h"
#include "kernels/base/call_heap.h"

namespace heddle {
namespace {

constexpr int64_t kGrain = 1 << 16;

template <typename From, typename To>
void ConvertLoop(const From* src, To* dst, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dst[i] = ConvertTo<To>(src[i]);
}

template <typename From>
void ConvertFrom(const From* src, void* dst, DType to, int64_t begin, int64_t end) {
  VisitAnyDType(to, [&](auto tag) {
    using To = typename decltype(tag)::type;
    ConvertLoop(src + begin, static_cast<To*>(dst) + begin, end - begin);
  });
}

}  // namespace

void ConvertElements(const KernelContext& ctx, const void* src, DType from, void* dst, DType to,
                     int64_t n) {
  if (from == to) return CopyBytes(ctx, dst, src, n * static_cast<int64_t>(SizeOf(from)));
  ctx.ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    VisitAnyDType(from, [&](auto tag) {
      using From = typename decltype(tag)::type;
      ConvertFrom(static_cast<const From*>(src), dst, to, begin, end);
    });
  });
}

double ScalarOf(const Tensor& t) {
  double v = 0;
  VisitAnyDType(t.dtype(), [&](auto tag) {
    v = ConvertTo<double>(t.data<typename decltype(tag)::type>()[0]);
  });
  return v;
}

void FillElements(const KernelContext& ctx, Tensor& out, double value) {
  VisitAnyDType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T v = ConvertTo<T>(value);
    T* data = out.mutable_data<T>();
    ctx.ParallelFor(out.numel(), kGrain * 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = v;
    });
  });
}

void CopyBytes(const KernelContext& ctx, void* dst, const void* src, int64_t n) {
  if (dst == src) return;
  ctx.ParallelFor(n, int64_t{1} << 20, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(dst) + begin, static_cast<const char*>(src) + begin,
                static_cast<size_t>(end - begin));
  });
}

namespace {

// `from` may have gaps between its rows.
void ConvertRows(const KernelContext& ctx, const Tensor& from, Tensor& to) {
  const int64_t width = from.is_contiguous() ? from.numel() : from.dim(-1);
  const int64_t step = from.is_contiguous() ? width : RowStep(from, from.rank() - 1);
  const auto bytes = [](int64_t n, DType t) { return n * static_cast<int64_t>(SizeOf(t)); };
  for (int64_t row = 0; row * width < from.numel(); ++row)
    ConvertElements(
        ctx, static_cast<const std::byte*>(from.raw()) + bytes(row * step, from.dtype()),
        from.dtype(), static_cast<std::byte*>(to.mutable_raw()) + bytes(row * width, to.dtype()),
        to.dtype(), width);
}

}  // namespace

SelectedRows& AllocRowsLike(const KernelContext& ctx, const SelectedRows& in, Value& out) {
  // `in` and `out` may be one variable.
  SelectedRows made{in.rows, in.height, ctx.Scratch(in.value.dtype(), in.value.shape())};
  SelectedRows& rows = out.mutable_rows();
  rows = std::move(made);
  return rows;
}

Status RunInFloat(KernelContext& ctx) {
  const auto narrow = [](const Tensor& t) {
    return t.dtype() == DType::kF16 || t.dtype() == DType::kBF16;
  };
  BoundOp op = ctx.op();
  op.spare = {};  // it is the outer call's
  const size_t ins = op.in.size(), outs = op.out.size();
  CallHeap heap(ctx);
  std::pmr::vector<Value> values(ins + outs, &heap);
  std::pmr::vector<Value*> frame(ins + outs, &heap);
  for (size_t i = 0; i < ins + outs; ++i) {
    uint32_t& slot = i < ins ? op.in[i] : op.out[i - ins];
    if (slot == kNoSlot) continue;
    Value* const value = ctx.frame()[slot];
    slot = static_cast<uint32_t>(i);
    frame[i] = value;
    if (!value->is_tensor() || !value->tensor().initialized() || !narrow(value->tensor())) continue;
    const Tensor& t = value->tensor();
    Tensor wide = ctx.Scratch(DType::kF32, t.shape());
    if (i < ins) ConvertRows(ctx, t, wide);
    values[i] = Value(std::move(wide));
    frame[i] = &values[i];
  }
  KernelContext inner(op, frame.data(), ctx.services(),
                      ctx.has_state() ? &ctx.State<KernelState>() : nullptr);
  HEDDLE_RETURN_IF_ERROR(ctx.def().kernel(DType::kF32)(inner));
  for (size_t i = 0; i < outs; ++i) {
    if (op.out[i] == kNoSlot || frame[ins + i] != &values[ins + i]) continue;
    Tensor& out = ctx.frame()[ctx.op().out[i]]->tensor();
    ConvertElements(ctx, values[ins + i].tensor().raw(), DType::kF32, out.mutable_raw(),
                    out.dtype(), out.numel());
  }
  return Status::Ok();
}

}  // namespace heddle
