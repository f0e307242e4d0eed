// Several ranges one after another.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/index_args.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// Several ranges one after another, and where each ends.
template <typename T>
struct RaggedRange {
  static Status Run(KernelContext& ctx) {
    const Tensor* all[3] = {&ctx.In("starts"), &ctx.In("limits"), &ctx.In("deltas")};
    int64_t length = -1;  // of those that are no scalars
    for (const Tensor* t : all) {
      if (t->rank() > 1 || t->dtype() != all[0]->dtype() ||
          (t->rank() == 1 && length >= 0 && t->numel() != length))
        return InvalidArgument("starts, limits and deltas are not vectors of one length");
      if (t->rank() == 1) length = t->numel();
    }
    const int64_t rows = length < 0 ? 1 : length;
    const DType splits = DTypeFromProto(ctx.Int("Tsplits"));
    if (splits != DType::kI32 && splits != DType::kI64)
      return InvalidArgument("Tsplits is ", Name(splits), ", expected int32 or int64");
    std::vector<T> values;
    Ints ends{0};
    for (const int64_t r : Watched(rows)) {
      T v[3];
      for (int k = 0; k < 3; ++k) v[k] = all[k]->data<T>()[all[k]->rank() == 0 ? 0 : r];
      if (v[2] == T(0)) return InvalidArgument("deltas holds 0 at position ", r);
      const double size = std::ceil((static_cast<double>(v[1]) - static_cast<double>(v[0])) /
                                    static_cast<double>(v[2]));
      if (static_cast<double>(values.size()) + size > 1e9)
        return InvalidArgument("range ", r, " has ", size, " elements after ", values.size());
      T value = v[0];
      for (double i = 0; i < size; ++i, value = AddFn::Apply(value, v[2])) values.push_back(value);
      ends.push_back(static_cast<int64_t>(values.size()));
    }
    Tensor& out = ctx.Alloc("rt_nested_splits", splits, Shape{rows + 1});
    for (size_t i = 0; i < ends.size(); ++i)
      if (splits == DType::kI64)
        out.mutable_data<int64_t>()[i] = ends[i];
      else
        out.mutable_data<int32_t>()[i] = static_cast<int32_t>(ends[i]);
    T* to =
        ctx.Alloc("rt_dense_values", all[0]->dtype(), Shape{static_cast<int64_t>(values.size())})
            .template mutable_data<T>();
    std::copy(values.begin(), values.end(), to);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(ragged_range) {
  op.Doc("several ranges one after another, and where they end").Input("starts").Input("limits");
  op.Input("deltas").Output("rt_nested_splits").Output("rt_dense_values").Attr("Tsplits", 3);
  op.KernelKey("starts").Kernels<RaggedRange, float, double, int32_t, int64_t>();
}
