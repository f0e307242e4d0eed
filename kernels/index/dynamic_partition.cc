// Rows dealt out to several tensors, and rows of several tensors put in order.
#include <memory_resource>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

bool IsPrefix(const Shape& prefix, const Shape& shape) {
  if (prefix.rank() > shape.rank()) return false;
  for (int i = 0; i < prefix.rank(); ++i)
    if (prefix[i] != shape[i]) return false;
  return true;
}

Status DynamicPartition(KernelContext& ctx) {
  const Tensor &data = ctx.In("data"), &parts = ctx.In("partitions");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(parts.dtype(), "partitions"));
  const int n = ctx.OutCount("outputs");
  if (!IsPrefix(parts.shape(), data.shape()))
    return InvalidArgument("partitions has shape ", parts.shape().ToString(),
                           ", expected the leading dimensions of data ", data.shape().ToString());
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> count(static_cast<size_t>(n), 0, &heap);
  for (const int64_t i : Watched(parts.numel())) {
    const int64_t p = IntAt(parts, i);
    if (p < 0 || p >= n)
      return OutOfRange("partitions holds ", p, " at position ", i, ", expected 0 to ", n - 1);
    ++count[static_cast<size_t>(p)];
  }
  const int64_t row =
      data.shape().Product(parts.rank(), data.rank()) * static_cast<int64_t>(SizeOf(data.dtype()));
  std::pmr::vector<std::byte*> to(static_cast<size_t>(n), nullptr, &heap);
  for (int p = 0; p < n; ++p) {
    if (!ctx.HasOut("outputs", p)) continue;
    Shape shape{count[static_cast<size_t>(p)]};
    for (int i = parts.rank(); i < data.rank(); ++i) shape.push_back(data.shape()[i]);
    to[static_cast<size_t>(p)] =
        static_cast<std::byte*>(ctx.Alloc("outputs", data.dtype(), shape, p).mutable_raw());
  }
  const auto* from = static_cast<const std::byte*>(data.raw());
  for (const int64_t i : Watched(parts.numel())) {
    std::byte*& at = to[static_cast<size_t>(IntAt(parts, i))];
    if (at == nullptr || row == 0) continue;
    WatchedMemcpy(at, from + i * row, static_cast<size_t>(row));
    at += row;
  }
  return Status::Ok();
}

Status DynamicStitch(KernelContext& ctx) {
  const int n = ctx.InCount("indices");
  if (n == 0 || ctx.InCount("data") != n)
    return InvalidArgument("indices and data are ", n, " and ", ctx.InCount("data"),
                           " tensors, expected as many of both");
  int64_t most = -1;
  Shape tail;
  for (int k = 0; k < n; ++k) {
    const Tensor &index = ctx.In("indices", k), &data = ctx.In("data", k);
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), "indices"));
    Shape rest;
    for (int i = index.rank(); i < data.rank(); ++i) rest.push_back(data.shape()[i]);
    if (k == 0) tail = rest;
    if (!IsPrefix(index.shape(), data.shape()) || !(rest == tail) ||
        data.dtype() != ctx.In("data").dtype())
      return InvalidArgument("data[", k, "] has shape ", data.shape().ToString(), ", indices[", k,
                             "] ", index.shape().ToString(), ", and rows have shape ",
                             tail.ToString());
    for (const int64_t i : Watched(index.numel())) {
      const int64_t v = IntAt(index, i);
      if (v < 0 || v > int64_t{1} << 48)
        return OutOfRange("indices[", k, "] holds ", v, ", expected the place of a row");
      most = std::max(most, v);
    }
  }
  std::array<int64_t, Shape::kMaxRank + 1> dims{most + 1};
  std::copy(tail.begin(), tail.end(), dims.begin() + 1);
  const std::span merged(dims.data(), static_cast<size_t>(tail.rank()) + 1);
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(merged, "merged"));
  const DType dtype = ctx.In("data").dtype();
  Tensor& out = ctx.Alloc("merged", dtype, shape);
  const int64_t row = tail.numel() * static_cast<int64_t>(SizeOf(dtype));
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  ZeroBytes(ctx, to, out.bytes());
  for (int k = 0; k < n; ++k) {
    const Tensor& index = ctx.In("indices", k);
    const auto* from = static_cast<const std::byte*>(ctx.In("data", k).raw());
    for (int64_t i = 0; row > 0 && i < index.numel(); ++i)
      WatchedMemcpy(to + IntAt(index, i) * row, from + i * row, static_cast<size_t>(row));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(dynamic_partition) {
  op.Doc("rows of data, each in the output that partitions names, in order");
  op.Input("data").Input("partitions").Output("outputs", kList | kOptional);
  op.KernelKey("data").AnyKernel(DynamicPartition);
}
HEDDLE_OP(dynamic_stitch) {
  op.Doc("rows of all data at the places that indices name; later ones win, gaps are 0");
  op.Input("indices", kList).Input("data", kList).Output("merged");
  op.KernelKey("data").AnyKernel(DynamicStitch);
}
