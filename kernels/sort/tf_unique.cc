// Distinct slices in the order of their first sight.
#include <cstring>
#include <memory_resource>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// A slice as one comparable string; -0 is 0.
template <typename T>
void AppendKey(T v, std::pmr::string* key) {
  if constexpr (std::is_floating_point_v<T>)
    if (v == T(0)) v = T(0);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &v, sizeof(T));
  key->append(bytes, sizeof(T));
}

template <typename T>
struct UniqueCounts {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("x");
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, IntsIn(ctx, "axis"));
    if (axes.size() > 1)
      return InvalidArgument("axis has ", axes.size(), " elements, expected at most one");
    if (axes.empty() && x.rank() != 1)
      return InvalidArgument("x has shape ", x.shape().ToString(), ", expected a vector");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines,
                            AxisLines::At(x.shape(), axes.empty() ? 0 : axes[0]));
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axes.empty() ? 0 : axes[0], x.rank()));
    const DType index = DTypeFromProto(ctx.Int("out_idx"));
    if (index != DType::kI32 && index != DType::kI64)
      return InvalidArgument("out_idx is ", Name(index), ", expected int32 or int64");
    const T* v = x.data<T>();
    CallHeap heap(ctx);
    std::pmr::unordered_map<std::pmr::string, int64_t> seen(&heap);
    std::pmr::vector<int64_t> first(&heap), count(&heap), which(&heap);
    std::pmr::string key(&heap);
    for (const int64_t i : Watched(lines.n)) {
      key.clear();
      for (int64_t o = 0; o < lines.outer; ++o)
        for (int64_t k = 0; k < lines.inner; ++k)
          AppendKey(v[(o * lines.n + i) * lines.inner + k], &key);
      const bool nan = IsNanSlice(v, lines, i);
      const auto [it, fresh] =
          nan ? std::pair{seen.end(), true} : seen.emplace(key, static_cast<int64_t>(first.size()));
      which.push_back(nan || fresh ? static_cast<int64_t>(first.size()) : it->second);
      if (fresh) {
        first.push_back(i);
        count.push_back(0);
      }
      ++count[static_cast<size_t>(which.back())];
    }
    Shape shape = x.shape();
    shape[axis] = static_cast<int64_t>(first.size());
    T* y = ctx.Alloc("y", x.dtype(), shape).template mutable_data<T>();
    const int64_t m = shape[axis];
    for (const int64_t o : Watched(lines.outer))
      for (int64_t j = 0; j < m; ++j)
        WatchedMemcpy(y + (o * m + j) * lines.inner,
                      v + (o * lines.n + first[static_cast<size_t>(j)]) * lines.inner,
                      static_cast<size_t>(lines.inner) * sizeof(T));
    Store(ctx, "idx", index, which);
    if (ctx.HasOut("count")) Store(ctx, "count", index, count);
    return Status::Ok();
  }

  // NaN equals nothing.
  static bool IsNanSlice(const T* v, const AxisLines& lines, int64_t i) {
    if constexpr (std::is_floating_point_v<T>)
      for (const int64_t o : Watched(lines.outer))
        for (int64_t k = 0; k < lines.inner; ++k)
          if (const T e = v[(o * lines.n + i) * lines.inner + k]; e != e) return true;
    return false;
  }
  static void Store(const KernelContext& ctx, Key out, DType dtype,
                    std::span<const int64_t> values) {
    Tensor& t = ctx.Alloc(out, dtype, Shape{static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i)
      if (dtype == DType::kI64)
        t.mutable_data<int64_t>()[i] = values[i];
      else
        t.mutable_data<int32_t>()[i] = static_cast<int32_t>(values[i]);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_unique_with_counts_v2) {
  op.Doc("distinct elements, or slices along axis; idx: which one each is, count: how often");
  op.Input("x").Input("axis", kOptional).Output("y").Output("idx").Output("count", kOptional);
  op.Attr("out_idx", 2).KernelKey("x");
  op.Kernels<UniqueCounts, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t, bool>();
  op.Kernel({DType::kF16, DType::kBF16}, [](KernelContext& ctx) {
    return ctx.In("x").dtype() == DType::kF16 ? UniqueCounts<float16>::Run(ctx)
                                              : UniqueCounts<bfloat16>::Run(ctx);
  });
}
