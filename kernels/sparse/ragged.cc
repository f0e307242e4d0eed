// Ragged tensors, which are values and the places at which rows end: as dense tensors, and counted.
#include <algorithm>
#include <cstring>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/broadcast.h"

namespace heddle {
namespace {

// The places at which the rows of a level begin, and the end.
Result<Ints> SplitsFrom(const Tensor& partition, bool are_rows, int64_t rows, int level) {
  if (partition.dtype() != DType::kI32 && partition.dtype() != DType::kI64)
    return InvalidArgument("'Partitions' [", level, "] must hold integers");
  const Ints given = ToInts(partition);
  if (!are_rows) {
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i] < (i == 0 ? 0 : given[i - 1]) || (i == 0 && given[i] != 0))
        return InvalidArgument("row splits must begin with 0 and not decrease; element ", i, " is ",
                               given[i]);
    if (given.empty()) return InvalidArgument("row splits are empty");
    return given;
  }
  Ints splits(static_cast<size_t>(rows) + 1, 0);
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] < (i == 0 ? 0 : given[i - 1]) || given[i] >= rows)
      return InvalidArgument("element ", i, " of the rows of values is ", given[i],
                             "; expected between the one before and ", rows - 1);
    ++splits[static_cast<size_t>(given[i]) + 1];
  }
  for (size_t i = 1; i < splits.size(); ++i) splits[i] += splits[i - 1];
  return splits;
}

struct Levels {
  std::vector<Ints> splits;
  int64_t rows = 0;
};

Result<Levels> LevelsOf(const KernelContext& ctx) {
  Levels made;
  const int count = ctx.InCount("Partitions");
  const bool are_rows = ctx.Bool("value_rows");
  int first = 0;
  if (are_rows) {
    if (count < 2) return InvalidArgument("'Partitions' needs a number of rows and a partition");
    const Ints rows = ToInts(ctx.In("Partitions", 0));
    if (rows.size() != 1 || rows[0] < 0)
      return InvalidArgument("'Partitions' [0] must be one number of rows");
    made.rows = rows[0];
    first = 1;
  }
  int64_t rows = made.rows;
  for (int k = first; k < count; ++k) {
    HEDDLE_ASSIGN_OR_RETURN(Ints splits, SplitsFrom(ctx.In("Partitions", k), are_rows, rows, k));
    const auto mine = static_cast<int64_t>(splits.size()) - 1;
    if (k == 0) made.rows = mine;
    if (k > first && mine != rows)
      return InvalidArgument("'Partitions' [", k, "] has ", mine, " rows, expected ", rows);
    rows = splits.back();
    made.splits.push_back(std::move(splits));
  }
  if (made.splits.empty()) return InvalidArgument("'Partitions' has no partition");
  return made;
}

// The dense shape: the rows, the longest row of each level, the shape of a value; or as asked.
Result<Shape> DenseShape(const KernelContext& ctx, const Levels& levels, const Shape& values) {
  Shape made = {levels.rows};
  for (const Ints& splits : levels.splits) {
    int64_t longest = 0;
    for (size_t i = 1; i < splits.size(); ++i)
      longest = std::max(longest, splits[i] - splits[i - 1]);
    made.push_back(longest);
  }
  const int ragged = made.rank();
  for (int d = 1; d < values.rank(); ++d) {
    if (made.rank() == Shape::kMaxRank) return InvalidArgument("too many dimensions");
    made.push_back(values[d]);
  }
  const Tensor& asked = ctx.In("Shape");
  const Ints dims = ToInts(asked);
  if (asked.rank() == 0) {
    if (dims[0] != -1) return InvalidArgument("'Shape' is the scalar ", dims[0], ", expected -1");
    return made;
  }
  if (static_cast<int>(dims.size()) != made.rank())
    return InvalidArgument("'Shape' has ", dims.size(), " dimensions, the ragged tensor ",
                           made.rank());
  for (int d = 0; d < made.rank(); ++d) {
    const int64_t dim = dims[static_cast<size_t>(d)];
    if (dim == -1) continue;
    if (dim < 0 || (d >= ragged && dim != made[d]))
      return InvalidArgument("dimension ", d, " of 'Shape' is ", dim, ", that of the values ",
                             made[d]);
    made[d] = dim;
  }
  return made;
}

Status RaggedToDense(KernelContext& ctx) {
  const Tensor &values = ctx.In("Values"), &fill = ctx.In("Default");
  if (values.rank() < 1) return InvalidArgument("'Values' is a scalar");
  if (fill.dtype() != values.dtype())
    return InvalidArgument("'Default' is ", Name(fill.dtype()), ", 'Values' ",
                           Name(values.dtype()));
  HEDDLE_ASSIGN_OR_RETURN(const Levels levels, LevelsOf(ctx));
  if (levels.splits.back().back() != values.shape()[0])
    return InvalidArgument("'Values' has ", values.shape()[0], " rows, the partitions ",
                           levels.splits.back().back());
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, DenseShape(ctx, levels, values.shape()));
  Shape inner;
  for (int d = 1; d < values.rank(); ++d) inner.push_back(values.shape()[d]);
  HEDDLE_ASSIGN_OR_RETURN(const Shape filled, BroadcastShape(inner, fill.shape(), -1));
  if (filled != inner)
    return InvalidArgument("'Default' has the shape ", fill.shape().ToString(),
                           ", which does not broadcast to ", inner.ToString());
  const size_t size = SizeOf(values.dtype());
  const int64_t each = inner.numel();
  std::vector<std::byte> empty(static_cast<size_t>(each) * size);
  const auto* from = static_cast<const std::byte*>(fill.raw());
  for (int64_t i = 0; i < each; ++i) {
    int64_t rest = i, place = 0, stride = 1;
    for (int d = 1; d <= fill.rank(); ++d) {
      if (fill.shape().dim(-d) != 1) place += rest % inner.dim(-d) * stride;
      rest /= inner.dim(-d);
      stride *= fill.shape().dim(-d);
    }
    std::memcpy(empty.data() + static_cast<size_t>(i) * size,
                from + static_cast<size_t>(place) * size, size);
  }
  Tensor& out = ctx.Alloc("Out", values.dtype(), shape);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const size_t bytes = empty.size();
  if (bytes == 0 || out.numel() == 0) return Status::Ok();
  for (const int64_t i : Watched(out.numel() / each))
    std::memcpy(to + static_cast<size_t>(i) * bytes, empty.data(), bytes);
  // The dense places of a level's rows; -1: outside.
  Ints places(static_cast<size_t>(levels.rows));
  for (int64_t i = 0; i < levels.rows; ++i) places[static_cast<size_t>(i)] = i < shape[0] ? i : -1;
  for (size_t level = 0; level < levels.splits.size(); ++level) {
    const Ints& splits = levels.splits[level];
    const int64_t width = shape[static_cast<int>(level) + 1];
    Ints next(static_cast<size_t>(splits.back()));
    for (size_t row = 0; row + 1 < splits.size(); ++row)
      for (int64_t k = splits[row]; k < splits[row + 1]; ++k) {
        const int64_t column = k - splits[row];
        next[static_cast<size_t>(k)] =
            places[row] >= 0 && column < width ? places[row] * width + column : -1;
      }
    places = std::move(next);
  }
  const auto* rows = static_cast<const std::byte*>(values.raw());
  for (const int64_t i : Watched(static_cast<int64_t>(places.size())))
    if (const int64_t at = places[static_cast<size_t>(i)]; at >= 0)
      std::memcpy(to + static_cast<size_t>(at) * bytes, rows + static_cast<size_t>(i) * bytes,
                  bytes);
  return Status::Ok();
}

template <typename T>
Status CountRows(KernelContext& ctx, const Ints& splits, const Ints& values, int64_t size,
                 const Tensor* weights) {
  const auto rows = static_cast<int64_t>(splits.size()) - 1;
  Tensor& out =
      ctx.Alloc("Out", weights == nullptr ? kDTypeOf<T> : weights->dtype(), Shape{rows, size});
  T* to = out.mutable_data<T>();
  std::fill_n(to, out.numel(), T{0});
  const bool binary = ctx.Bool("binary_output");
  const bool weighted = weights != nullptr && weights->numel() > 0;
  for (int64_t row = 0; row < rows; ++row)
    for (const int64_t i :
         Watched(splits[static_cast<size_t>(row)], splits[static_cast<size_t>(row) + 1])) {
      const int64_t value = values[static_cast<size_t>(i)];
      if (value < 0) return InvalidArgument("element ", i, " of 'Values' is ", value);
      if (value >= size) continue;
      T& count = to[row * size + value];
      if (binary)
        count = T{1};
      else
        count = static_cast<T>(count + (weighted ? weights->data<T>()[i] : T{1}));
    }
  return Status::Ok();
}

Status RaggedBincount(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Ints splits, SplitsFrom(ctx.In("Splits"), false, 0, 0));
  const Ints values = ToInts(ctx.In("Values")), sizes = ToInts(ctx.In("Size"));
  if (sizes.size() != 1 || sizes[0] < 0)
    return InvalidArgument("'Size' must be one number that is not negative");
  if (splits.back() != static_cast<int64_t>(values.size()))
    return InvalidArgument("'Splits' ends with ", splits.back(), ", expected ", values.size(),
                           ", the length of 'Values'");
  const Tensor& weights = ctx.In("Weights");
  if (weights.numel() != 0 && weights.numel() != static_cast<int64_t>(values.size()))
    return InvalidArgument("'Weights' has ", weights.numel(), " elements, 'Values' ",
                           values.size());
  switch (weights.dtype()) {
    case DType::kF32:
      return CountRows<float>(ctx, splits, values, sizes[0], &weights);
    case DType::kF64:
      return CountRows<double>(ctx, splits, values, sizes[0], &weights);
    case DType::kI32:
      return CountRows<int32_t>(ctx, splits, values, sizes[0], &weights);
    case DType::kI64:
      return CountRows<int64_t>(ctx, splits, values, sizes[0], &weights);
    default:
      return Unimplemented("weights of ", Name(weights.dtype()));
  }
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(ragged_to_dense) {
  op.Doc(
      "a ragged tensor as a dense one of the shape asked for (-1: as large as needed): what is too "
      "long is cut, what is missing is Default. Partitions: the splits of each level, or with "
      "value_rows the number of rows and then the row of each value");
  op.Input("Shape")
      .Input("Values")
      .Input("Default")
      .Input("Partitions", kList)
      .Output("Out")
      .Attr("value_rows", false)
      .AnyKernel(RaggedToDense);
}

HEDDLE_OP(ragged_bincount) {
  op.Doc(
      "how often each number below Size is in each row of a ragged vector, or the sum of its "
      "Weights; with binary_output, whether it is there");
  op.Input("Splits")
      .Input("Values")
      .Input("Size")
      .Input("Weights")
      .Output("Out")
      .Attr("binary_output", false)
      .AnyKernel(RaggedBincount);
}
