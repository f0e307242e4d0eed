// Sparse tensors of three operands (indices, values, shape) put into order, joined and cut; and
// ragged tensors as sparse ones.
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// One sparse tensor, checked.
struct Entries {
  const Tensor* indices = nullptr;
  const Tensor* values = nullptr;
  Shape shape;
  int64_t count() const { return values->numel(); }
  int64_t at(int64_t entry, int axis) const { return IntAt(*indices, entry * shape.rank() + axis); }
};

Result<Entries> EntriesIn(const KernelContext& ctx, Key indices, Key values, Key shape, int i = 0) {
  Entries made{&ctx.In(indices, i), &ctx.In(values, i), Shape()};
  const Tensor& dims = ctx.In(shape, i);
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(made.indices->dtype(), indices.name));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(dims.dtype(), shape.name));
  const Shape &places = made.indices->shape(), &entries = made.values->shape();
  if (places.rank() != 2 || entries.rank() != 1 || dims.rank() != 1 || places[0] != entries[0] ||
      places[1] != dims.numel())
    return InvalidArgument("'", indices.name, "' has the shape ", places.ToString(), ", '",
                           values.name, "' ", entries.ToString(), " and '", shape.name, "' ",
                           dims.shape().ToString(), "; [n, rank], [n] and [rank] are expected");
  HEDDLE_ASSIGN_OR_RETURN(made.shape, MakeShape(ToInts(dims), shape.name));
  for (const int64_t e : Watched(made.count()))
    for (int d = 0; d < made.shape.rank(); ++d)
      if (made.at(e, d) < 0 || made.at(e, d) >= made.shape[d])
        return OutOfRange("'", indices.name, "' holds ", made.at(e, d), " for dimension ", d,
                          " of ", made.shape.ToString());
  return made;
}

// An entry of one of several sparse tensors, moved along an axis.
struct PartEntry {
  const Entries* from = nullptr;
  int64_t at = 0;
  int64_t moved = 0;
};

// Writes the entries to the outputs.
void Put(KernelContext& ctx, const std::vector<PartEntry>& entries, int axis, int rank,
         DType dtype) {
  const auto n = std::ssize(entries);
  int64_t* place = ctx.Alloc("OutIndices", DType::kI64, Shape{n, rank}).mutable_data<int64_t>();
  Tensor& values = ctx.Alloc("OutValues", dtype, Shape{n});
  const size_t size = SizeOf(dtype);
  auto* to = static_cast<std::byte*>(values.mutable_raw());
  for (const int64_t i : Watched(n)) {
    const PartEntry& e = entries[static_cast<size_t>(i)];
    for (int d = 0; d < rank; ++d) *place++ = e.from->at(e.at, d) + (d == axis ? e.moved : 0);
    std::memcpy(
        to + static_cast<size_t>(i) * size,
        static_cast<const std::byte*>(e.from->values->raw()) + static_cast<size_t>(e.at) * size,
        size);
  }
}

// Sorts entries by their place; those of one place keep their order.
void Sort(std::vector<PartEntry>* entries, int axis, int rank) {
  std::stable_sort(entries->begin(), entries->end(), [&](const PartEntry& a, const PartEntry& b) {
    for (int d = 0; d < rank; ++d) {
      const int64_t x = a.from->at(a.at, d) + (d == axis ? a.moved : 0);
      const int64_t y = b.from->at(b.at, d) + (d == axis ? b.moved : 0);
      if (x != y) return x < y;
    }
    return false;
  });
}

void PutShape(KernelContext& ctx, const Shape& shape) {
  Tensor& out = ctx.Alloc("OutShape", DType::kI64, Shape{shape.rank()});
  std::copy(shape.begin(), shape.end(), out.mutable_data<int64_t>());
}

Status Reorder(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Entries all, EntriesIn(ctx, "Indices", "Values", "Shape"));
  std::vector<PartEntry> entries;
  for (const int64_t i : Watched(all.count())) entries.push_back({&all, i, 0});
  Sort(&entries, -1, all.shape.rank());
  Put(ctx, entries, -1, all.shape.rank(), all.values->dtype());
  return Status::Ok();
}

Status Concat(KernelContext& ctx) {
  const int count = ctx.InCount("Values");
  if (count == 0 || ctx.InCount("Indices") != count || ctx.InCount("Shapes") != count)
    return InvalidArgument("there are ", ctx.InCount("Indices"), " 'Indices', ", count,
                           " 'Values' and ", ctx.InCount("Shapes"),
                           " 'Shapes'; as many of each are expected, and one at least");
  std::vector<Entries> parts;
  for (int i = 0; i < count; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(parts.emplace_back(), EntriesIn(ctx, "Indices", "Values", "Shapes", i));
    if (parts.back().values->dtype() != parts[0].values->dtype())
      return InvalidArgument("'Values' ", i, " is ", Name(parts.back().values->dtype()), ", 0 ",
                             Name(parts[0].values->dtype()));
  }
  Shape shape = parts[0].shape;
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), shape.rank()));
  if (shape.rank() == 0) return InvalidArgument("a scalar has no axis along which to join");
  shape[axis] = 0;
  std::vector<PartEntry> entries;
  for (size_t i = 0; i < parts.size(); ++i) {
    Shape rest = parts[i].shape;
    const int64_t length = rest.rank() == shape.rank() ? std::exchange(rest[axis], shape[axis]) : 0;
    if (rest != shape)
      return InvalidArgument("part ", i, " has the shape ", parts[i].shape.ToString(),
                             ", which cannot be joined to ", parts[0].shape.ToString(),
                             " along axis ", axis);
    for (const int64_t e : Watched(parts[i].count()))
      entries.push_back({&parts[i], e, shape[axis]});
    shape[axis] += length;
  }
  HEDDLE_RETURN_IF_ERROR(MakeShape(shape, "the joined shape").status());
  Sort(&entries, axis, shape.rank());
  Put(ctx, entries, axis, shape.rank(), parts[0].values->dtype());
  PutShape(ctx, shape);
  return Status::Ok();
}

Status SliceBox(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Entries all, EntriesIn(ctx, "Indices", "Values", "Shape"));
  const int rank = all.shape.rank();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts starts, IntsIn(ctx, "Start"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts sizes, IntsIn(ctx, "Size"));
  if (std::ssize(starts) != rank || std::ssize(sizes) != rank)
    return InvalidArgument("'Start' has ", starts.size(), " elements and 'Size' ", sizes.size(),
                           "; ", rank, " are expected");
  Shape shape;
  for (int d = 0; d < rank; ++d) {
    const int64_t start = starts[static_cast<size_t>(d)], size = sizes[static_cast<size_t>(d)];
    if (start < 0 || size < 0)
      return InvalidArgument("'Start' and 'Size' are ", start, " and ", size, " at position ", d,
                             "; expected 0 or more");
    shape.push_back(std::clamp<int64_t>(all.shape[d] - start, 0, size));
  }
  std::vector<int64_t> kept;
  for (const int64_t e : Watched(all.count())) {
    bool inside = true;
    for (int d = 0; d < rank && inside; ++d) {
      const int64_t at = all.at(e, d) - starts[static_cast<size_t>(d)];
      inside = at >= 0 && at < shape[d];
    }
    if (inside) kept.push_back(e);
  }
  std::vector<PartEntry> entries;
  for (const int64_t e : kept) entries.push_back({&all, e, 0});
  Put(ctx, entries, -1, rank, all.values->dtype());
  int64_t* place = ctx.Out("OutIndices").mutable_data<int64_t>();
  for (size_t i = 0; i < entries.size(); ++i)
    for (int d = 0; d < rank; ++d) *place++ -= starts[static_cast<size_t>(d)];
  PutShape(ctx, shape);
  return Status::Ok();
}

// The row of each element of a level, from the places at which the level's rows end.
Result<std::vector<int64_t>> RowsOf(const Tensor& splits, int level) {
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(splits.dtype(), "Splits"));
  if (splits.rank() != 1 || splits.numel() == 0 || IntAt(splits, 0) != 0)
    return InvalidArgument("'Splits' ", level, " must be a vector that begins with 0");
  std::vector<int64_t> rows;
  for (const int64_t r : Watched(splits.numel() - 1)) {
    const int64_t length = IntAt(splits, r + 1) - IntAt(splits, r);
    if (length < 0) return InvalidArgument("'Splits' ", level, " decreases behind element ", r);
    HEDDLE_RETURN_IF_ERROR(
        MakeShape({static_cast<int64_t>(rows.size()), length}, "'Splits'").status());
    rows.insert(rows.end(), static_cast<size_t>(length), r);
  }
  return rows;
}

Status RaggedToCoo(KernelContext& ctx) {
  const Tensor& values = ctx.In("Values");
  const int levels = ctx.InCount("Splits"), rank = levels + std::max(values.rank(), 1);
  if (levels == 0 || values.rank() == 0 || rank > Shape::kMaxRank)
    return InvalidArgument("there are ", levels, " 'Splits' and values of the shape ",
                           values.shape().ToString(), "; one and a vector at least are expected");
  Shape shape{ctx.In("Splits", 0).numel() - 1};
  std::vector<std::vector<int64_t>> rows;  // by level, of each of its elements
  for (int k = 0; k < levels; ++k) {
    HEDDLE_ASSIGN_OR_RETURN(rows.emplace_back(), RowsOf(ctx.In("Splits", k), k));
    const Tensor& splits = ctx.In("Splits", k);
    if (k > 0 && splits.numel() - 1 != std::ssize(rows[static_cast<size_t>(k) - 1]))
      return InvalidArgument("'Splits' ", k, " has ", splits.numel() - 1, " rows; ",
                             rows[static_cast<size_t>(k) - 1].size(), " are expected");
    int64_t longest = 0;
    for (int64_t r = 0; r + 1 < splits.numel(); ++r)
      longest = std::max(longest, IntAt(splits, r + 1) - IntAt(splits, r));
    shape.push_back(longest);
  }
  if (std::ssize(rows.back()) != values.dim(0))
    return InvalidArgument("'Values' has ", values.dim(0), " rows; ", rows.back().size(),
                           " are expected");
  Shape inner = values.shape();
  inner.erase(0);
  for (const int64_t d : inner) shape.push_back(d);
  const int64_t each = inner.numel();
  int64_t* place =
      ctx.Alloc("OutIndices", DType::kI64, Shape{values.numel(), rank}).mutable_data<int64_t>();
  for (const int64_t i : Watched(each == 0 ? 0 : values.dim(0))) {
    // From the innermost level outwards: the place in its row, and the row.
    int64_t place_of[Shape::kMaxRank] = {}, element = i;
    for (int k = levels; k-- > 0;) {
      const int64_t row = rows[static_cast<size_t>(k)][static_cast<size_t>(element)];
      place_of[k + 1] = element - IntAt(ctx.In("Splits", k), row);
      element = row;
    }
    place_of[0] = element;
    for (int64_t e = 0; e < each; ++e) {
      int64_t rest = e;
      for (int d = inner.rank(); d-- > 0;) {
        place_of[levels + 1 + d] = rest % inner[d];
        rest /= inner[d];
      }
      place = std::copy_n(place_of, rank, place);
    }
  }
  Tensor& out = ctx.Alloc("OutValues", values.dtype(), Shape{values.numel()});
  WatchedMemcpy(out.mutable_raw(), values.raw(), values.bytes());
  PutShape(ctx, shape);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(coo_reorder) {
  op.Doc("the entries of a sparse tensor in row-major order").Input("Indices").Input("Values");
  op.Input("Shape").Output("OutIndices").Output("OutValues").KernelKey("Values");
  op.AnyKernel(Reorder);
}
HEDDLE_OP(coo_concat) {
  op.Doc("sparse tensors joined along an axis, in row-major order").Input("Indices", kList);
  op.Input("Values", kList).Input("Shapes", kList).Output("OutIndices").Output("OutValues");
  op.Output("OutShape").Attr("axis", 0).KernelKey("Values").AnyKernel(Concat);
}
HEDDLE_OP(coo_slice) {
  op.Doc("the entries of a sparse tensor in a box of Size from Start on, and its shape");
  op.Input("Indices").Input("Values").Input("Shape").Input("Start").Input("Size");
  op.Output("OutIndices").Output("OutValues").Output("OutShape").KernelKey("Values");
  op.AnyKernel(SliceBox);
}
HEDDLE_OP(ragged_to_coo) {
  op.Doc("a ragged tensor, which ends rows at the places Splits, as a sparse one");
  op.Input("Splits", kList).Input("Values").Output("OutIndices").Output("OutValues");
  op.Output("OutShape").KernelKey("Values").AnyKernel(RaggedToCoo);
}
