#include "kernels/elementwise/convert.h"

#include <cstring>

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

SelectedRows& AllocRowsLike(const KernelContext& ctx, const SelectedRows& in, Value& out) {
  // `in` and `out` may be one variable.
  SelectedRows made{in.rows, in.height, ctx.Scratch(in.value.dtype(), in.value.shape())};
  SelectedRows& rows = out.mutable_rows();
  rows = std::move(made);
  return rows;
}

}  // namespace heddle
