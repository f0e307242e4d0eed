// Operands of ONNX's operators, read alike by shape functions and kernels.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "core/shapes.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/convert.h"
#include "kernels/base/short_list.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {

// The same question of a shape function and of a kernel.
inline bool Has(const ShapeContext& ctx, Key key, int i = 0) { return ctx.HasIn(key, i); }
inline bool Has(const KernelContext& ctx, Key key, int i = 0) {
  return ctx.InOpt(key, i) != nullptr;
}
inline const Shape& ShapeIn(const ShapeContext& ctx, Key key, int i = 0) {
  return ctx.InShape(key, i);
}
inline const Shape& ShapeIn(const KernelContext& ctx, Key key, int i = 0) {
  return ctx.In(key, i).shape();
}
inline bool Has(const PrepareContext& ctx, Key key, int i = 0) { return ctx.HasIn(key, i); }
inline const Shape& ShapeIn(const PrepareContext& ctx, Key key, int i = 0) {
  return ctx.InShape(key, i);
}
// The contents; nullptr where they are absent or not known yet.
inline const Tensor* ValueIn(const ShapeContext& ctx, Key key, int i = 0) {
  return ctx.HasIn(key, i) ? ctx.InValue(key, i) : nullptr;
}
inline const Tensor* ValueIn(const KernelContext& ctx, Key key, int i = 0) {
  return ctx.InOpt(key, i);
}

// The shapes of all variables of a slot are known.
bool AllStatic(const ShapeContext& ctx, std::initializer_list<Key> keys);
// For shape functions that wait for more: `out` has the rank and dtype of `in`, of whose dimensions
// the first `keep` stay.
Status SameRank(ShapeContext& ctx, Key in, Key out, int keep = 0);
// The operand is absent, or its contents are known: only then can an output depend on them.
bool Known(const ShapeContext& ctx, Key key);

// All elements of an operand of integers; an empty list where it is absent.
template <typename Context>
Result<ShortInts> IntsIn(const Context& ctx, Key key);
// The only element of an operand of integers, or `absent`.
template <typename Context>
Result<int64_t> IntIn(const Context& ctx, Key key, int64_t absent);
// The only element of an operand as a number, or `absent`.
template <typename Context>
Result<double> NumberIn(const Context& ctx, Key key, double absent);

// `dims` as a shape that can be allocated; `what` names it in the error.
Result<Shape> MakeShape(std::span<const int64_t> dims, const char* what);
inline Result<Shape> MakeShape(std::initializer_list<int64_t> dims, const char* what) {
  return MakeShape(std::span(dims.begin(), dims.size()), what);
}
inline Result<Shape> MakeShape(const Shape& shape, const char* what) {
  return MakeShape(shape.dims(), what);
}
// Axes made non-negative; a repeated one is an error. An empty list stays empty.
Result<ShortInts> NormalAxes(std::span<const int64_t> axes, int rank, const char* what);
// 0, 1, …, n - 1.
ShortInts FirstInts(int n);
// `list`, or n times `value` where it is empty; another length is an error that names `what`.
Result<ShortInts> ListOr(std::span<const int64_t> list, int n, int64_t value, const char* what);
Status CheckRank(const Shape& shape, int rank, Key key);

// The DType in which a number of ONNX's TensorProto.DataType is stored; 0 gives `absent`.
Result<DType> DTypeOfOnnx(int64_t number, DType absent);

// Strides in elements with which a tensor of shape `from` is read as one of shape `to`.
std::array<int64_t, Shape::kMaxRank> BroadcastStrides(const Shape& from, const Shape& to);
// dst = src repeated to `to`; the shapes fit.
void ExpandTo(const KernelContext& ctx, const Tensor& src, const Shape& to, void* dst);

// Walks through the indices of a shape in row-major order, with the offset of each of N operands.
template <int N>
class Walk {
 public:
  using Strides = std::array<int64_t, Shape::kMaxRank>;
  Walk(const Shape& shape, const std::array<Strides, N>& strides, int64_t begin = 0)
      : shape_(shape), strides_(strides) {
    for (int i = shape.rank() - 1; i >= 0; --i) {
      const int64_t n = std::max<int64_t>(1, shape[i]);
      index_[i] = begin % n;
      begin /= n;
      for (int k = 0; k < N; ++k) at_[k] += index_[i] * strides_[k][i];
    }
  }
  int64_t at(int k) const { return at_[k]; }
  int64_t index(int axis) const { return index_[axis]; }
  void Next() {
    for (int i = shape_.rank() - 1; i >= 0; --i) {
      for (int k = 0; k < N; ++k) at_[k] += strides_[k][i];
      if (++index_[i] < shape_[i]) return;
      for (int k = 0; k < N; ++k) at_[k] -= shape_[i] * strides_[k][i];
      index_[i] = 0;
    }
  }

 private:
  Shape shape_;
  std::array<Strides, N> strides_;
  std::array<int64_t, Shape::kMaxRank> index_{};
  std::array<int64_t, N> at_{};
};

}  // namespace heddle
