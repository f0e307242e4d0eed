// Second- and third-order gradients of broadcasting operators are rare: they are computed on
// operands repeated to the result's full shape, and summed back.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/broadcast.h"
#include "kernels/folds/reduce.h"

namespace heddle {

template <typename T>
class FullOperands {
 public:
  FullOperands(const KernelContext& ctx, const BroadcastPlan& plan) : ctx_(ctx), plan_(plan) {}

  // Tensors of the shape of x, of y and of the result; nullptr counts as zeros.
  Result<const T*> LikeX(const Tensor* t) { return Repeat(t, plan_.x_is_full(), plan_.x_strides); }
  Result<const T*> LikeY(const Tensor* t) { return Repeat(t, plan_.y_is_full(), plan_.y_strides); }
  Result<const T*> LikeOut(const Tensor* t) { return Repeat(t, true, plan_.x_strides); }

  // to = fn(i), summed over the repeated dimensions of x or y. Nothing without `to`.
  template <typename Fn>
  void StoreX(Tensor* to, Fn&& fn) {
    if (to != nullptr) Store(to, plan_.x_is_full(), true, fn);
  }
  template <typename Fn>
  void StoreY(Tensor* to, Fn&& fn) {
    if (to != nullptr) Store(to, plan_.y_is_full(), false, fn);
  }
  template <typename Fn>
  void StoreOut(Tensor* to, Fn&& fn) {
    if (to != nullptr) Store(to, true, true, fn);
  }

 private:
  using Strides = std::array<int64_t, Shape::kMaxRank>;

  static int64_t Elements(const BroadcastPlan& plan, const Strides& strides) {
    int64_t n = 1;
    for (int i = 0; i < plan.rank; ++i)
      if (strides[i] != 0) n *= plan.dims[i];
    return n;
  }

  Result<const T*> Repeat(const Tensor* t, bool full, const Strides& strides) {
    if (t != nullptr) {
      const int64_t expected = full ? plan_.numel : Elements(plan_, strides);
      if (t->numel() != expected || t->dtype() != kDTypeOf<T>)
        return InvalidArgument("an operand is ", Name(t->dtype()), " ", t->shape().ToString(),
                               ", expected ", Name(kDTypeOf<T>), " with ", expected, " elements");
      if (full) return t->data<T>();
    }
    scratch_.push_back(ctx_.Scratch(kDTypeOf<T>, Shape{plan_.numel}));
    T* to = scratch_.back().template mutable_data<T>();
    if (t == nullptr) {
      std::fill_n(to, plan_.numel, T(0));
      return to;
    }
    const T* from = t->data<T>();
    const int64_t step = strides[plan_.rank - 1] == 0 ? 0 : 1;
    const bool is_x = &strides == &plan_.x_strides;
    ForEachRow(plan_, 0, plan_.rows, [&](int64_t x, int64_t y, int64_t out) {
      const T* row = from + (is_x ? x : y);
      for (const auto part : Stretches(plan_.cols))
        for (int64_t i = part.begin; i < part.end; ++i) to[out + i] = row[i * step];
    });
    return to;
  }

  // The result is complete before `to` is touched: it may share memory with an operand.
  template <typename Fn>
  void Store(Tensor* to, bool full, bool of_x, Fn& fn) {
    Tensor all = ctx_.Scratch(kDTypeOf<T>, Shape{plan_.numel});
    T* p = all.template mutable_data<T>();
    for (const auto part : Stretches(plan_.numel))
      for (int64_t i = part.begin; i < part.end; ++i) p[i] = fn(i);
    if (full)
      std::memcpy(to->mutable_raw(), p, static_cast<size_t>(plan_.numel) * sizeof(T));
    else
      RunReduce(ctx_, MakeReducePlan(plan_, of_x), *SumLoops(kDTypeOf<T>), p, to->mutable_raw());
  }

  const KernelContext& ctx_;
  const BroadcastPlan& plan_;
  std::vector<Tensor> scratch_;
};

}  // namespace heddle
