#include "kernels/operands/operands.h"

#include <cmath>
#include <span>
#include <vector>

#include "kernels/base/index_args.h"
#include "kernels/base/shape_arg.h"

namespace heddle {

bool AllStatic(const ShapeContext& ctx, std::initializer_list<Key> keys) {
  for (const Key& key : keys)
    for (int i = 0, n = ctx.InCount(key); i < n; ++i)
      if (ctx.HasIn(key, i) && !ctx.InShape(key, i).is_static()) return false;
  return true;
}

Status SameRank(ShapeContext& ctx, Key in, Key out, int keep) {
  Shape shape = ctx.InShape(in);
  if (!shape.known_rank()) {
    ctx.SetOut(out, shape, ctx.InDType(in));
    return ctx.Defer();
  }
  for (int i = keep; i < shape.rank(); ++i) shape[i] = -1;
  ctx.SetOut(out, shape, ctx.InDType(in));
  return Status::Ok();
}

bool Known(const ShapeContext& ctx, Key key) {
  return !ctx.HasIn(key) || ctx.InValue(key) != nullptr;
}

template <typename Context>
Result<ShortInts> IntsIn(const Context& ctx, Key key) {
  const Tensor* t = ValueIn(ctx, key);
  if (t == nullptr) return ShortInts();
  HEDDLE_RETURN_IF_ERROR(CheckInts(*t, key.name));
  ShortInts ints(static_cast<size_t>(t->numel()));
  for (size_t i = 0; i < ints.size(); ++i) ints[i] = IntAt(*t, static_cast<int64_t>(i));
  return ints;
}
template <typename Context>
Result<int64_t> IntIn(const Context& ctx, Key key, int64_t absent) {
  const Tensor* t = ValueIn(ctx, key);
  if (t == nullptr) return absent;
  HEDDLE_RETURN_IF_ERROR(CheckInts(*t, key.name));
  if (t->numel() != 1)
    return InvalidArgument("input ", key.name, " must hold one element, but has shape ",
                           t->shape().ToString());
  return IntAt(*t, 0);
}
template <typename Context>
Result<double> NumberIn(const Context& ctx, Key key, double absent) {
  const Tensor* t = ValueIn(ctx, key);
  if (t == nullptr) return absent;
  if (t->numel() != 1)
    return InvalidArgument("input ", key.name, " must hold one element, but has shape ",
                           t->shape().ToString());
  return ScalarOf(*t);
}
template Result<ShortInts> IntsIn(const ShapeContext&, Key);
template Result<ShortInts> IntsIn(const KernelContext&, Key);
template Result<int64_t> IntIn(const ShapeContext&, Key, int64_t);
template Result<int64_t> IntIn(const KernelContext&, Key, int64_t);
template Result<double> NumberIn(const ShapeContext&, Key, double);
template Result<double> NumberIn(const KernelContext&, Key, double);

Result<Shape> MakeShape(std::span<const int64_t> dims, const char* what) {
  return CheckedShape(dims, what);
}

Result<ShortInts> NormalAxes(std::span<const int64_t> axes, int rank, const char* what) {
  ShortInts normal;
  for (const int64_t axis : axes) {
    const int64_t a = axis < 0 ? axis + rank : axis;
    if (a < 0 || a >= rank)
      return InvalidArgument(what, " holds ", axis, ", expected axes of a tensor of rank ", rank);
    if (std::find(normal.begin(), normal.end(), a) != normal.end())
      return InvalidArgument(what, " names axis ", a, " twice");
    normal.push_back(a);
  }
  return normal;
}

ShortInts FirstInts(int n) {
  ShortInts ints;
  for (int i = 0; i < n; ++i) ints.push_back(i);
  return ints;
}

Result<ShortInts> ListOr(std::span<const int64_t> list, int n, int64_t value, const char* what) {
  if (list.empty()) return ShortInts(static_cast<size_t>(n), value);
  if (list.size() != static_cast<size_t>(n))
    return InvalidArgument(what, " has ", list.size(), " elements, expected ", n);
  return ShortInts(list);
}

Status CheckRank(const Shape& shape, int rank, Key key) {
  if (shape.rank() == rank) return Status::Ok();
  return InvalidArgument("input ", key.name, " has shape ", shape.ToString(), ", expected rank ",
                         rank);
}

Result<DType> DTypeOfOnnx(int64_t number, DType absent) {
  switch (number) {
    case 0:
      return absent;
    case 1:
      return DType::kF32;
    case 2:   // uint8
    case 17:  // 8-bit floats as their bits
    case 18:
    case 19:
    case 20:
    case 21:  // uint4, float4e2m1, float8e8m0, uint2
    case 23:
    case 24:
    case 25:
      return DType::kU8;
    case 3:   // int8
    case 22:  // int4, int2
    case 26:
      return DType::kI8;
    case 5:
      return DType::kI16;
    case 4:  // uint16
    case 6:
      return DType::kI32;
    case 7:
    case 12:  // uint32, uint64
    case 13:
      return DType::kI64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kF16;
    case 11:
      return DType::kF64;
    case 14:
      return DType::kC64;
    case 15:
      return DType::kC128;
    case 16:
      return DType::kBF16;
    default:
      return InvalidArgument(number, " is not the number of a data type that a tensor can have");
  }
}

std::array<int64_t, Shape::kMaxRank> BroadcastStrides(const Shape& from, const Shape& to) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  const std::array<int64_t, Shape::kMaxRank> own = RowMajorStrides(from);
  const int shift = to.rank() - from.rank();
  for (int i = 0; i < from.rank(); ++i) strides[i + shift] = from[i] == 1 ? 0 : own[i];
  return strides;
}

void ExpandTo(const KernelContext& ctx, const Tensor& src, const Shape& to, void* dst) {
  const auto from = BroadcastStrides(src.shape(), to);
  const auto strides = RowMajorStrides(to);
  std::array<CopyDim, Shape::kMaxRank> dims;
  for (int i = 0; i < to.rank(); ++i) dims[i] = {to[i], from[i], strides[i]};
  StridedCopy(SizeOf(src.dtype()), std::span(dims.data(), static_cast<size_t>(to.rank())))
      .Run(ctx, src.raw(), dst);
}

}  // namespace heddle
