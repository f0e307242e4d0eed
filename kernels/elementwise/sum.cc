// sum: adds any number of tensors; also tensor arrays, and selected rows with or without tensors.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/call_heap.h"
#include "kernels/elementwise/arithmetic.h"

namespace heddle {
namespace {

constexpr int64_t kBlock = 1 << 11;  // elements added up while they are in the cache

BinaryLoops::Fn AddLoop(DType dtype) {
  BinaryLoops::Fn fn = nullptr;
  VisitDType<float, double, int32_t, int64_t, float16, bfloat16, int16_t, int8_t, uint8_t,
             std::complex<float>, std::complex<double>>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fn = &BinaryLoop<AddFn, T, T>::VectorVector;
  });
  return fn;
}

const Tensor* DenseIn(const KernelContext& ctx, int i) {
  const Tensor* t = ctx.InOpt("X", i);
  return t != nullptr && t->numel() > 0 ? t : nullptr;
}

Status CheckLike(const Tensor& out, const Tensor& x, int i) {
  if (x.dtype() == out.dtype() && x.numel() == out.numel()) return Status::Ok();
  return InvalidArgument("X[", i, "] is ", Name(x.dtype()), " ", x.shape().ToString(),
                         ", but the sum is ", Name(out.dtype()), " ", out.shape().ToString());
}

// Adds the operands' elements [begin, begin + count) in the operands' order. `to` may be the memory
// of any of them: the bits are the same. At most kBlock elements.
void AddBlock(BinaryLoops::Fn add, std::span<const std::byte* const> from, size_t begin,
              int64_t count, size_t size, std::byte* to) {
  const size_t bytes = static_cast<size_t>(count) * size, at = begin * size;
  if (from.size() == 1) {
    if (from[0] != to) std::memcpy(to + at, from[0] + at, bytes);
    return;
  }
  alignas(64) std::byte aside[kBlock * sizeof(std::complex<double>)];
  for (size_t i = 2; i < from.size(); ++i)
    if (from[i] == to) std::memcpy(aside, to + at, bytes);  // about to be overwritten
  add(from[0] + at, from[1] + at, to + at, count, nullptr);
  for (size_t i = 2; i < from.size(); ++i)
    add(to + at, from[i] == to ? aside : from[i] + at, to + at, count, nullptr);
}

// The sum of the dense inputs in `out`, which may be the memory of one of them.
Status AddDense(const KernelContext& ctx, Tensor& out) {
  CallHeap heap(ctx);
  std::pmr::vector<const std::byte*> from(&heap);
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Tensor* t = DenseIn(ctx, i);
    if (t == nullptr) continue;
    HEDDLE_RETURN_IF_ERROR(CheckLike(out, *t, i));
    from.push_back(static_cast<const std::byte*>(t->raw()));
  }
  if (from.empty()) {
    if (out.numel() > 0) WatchedMemset(out.mutable_raw(), 0, out.bytes());
    return Status::Ok();
  }
  const auto add = AddLoop(out.dtype());
  if (add == nullptr) return Unimplemented("sum of ", Name(out.dtype()));
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const size_t size = SizeOf(out.dtype());
  ctx.ParallelFor(out.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b += kBlock)
      AddBlock(add, from, static_cast<size_t>(b), std::min(kBlock, end - b), size, to);
  });
  return Status::Ok();
}

int64_t RowSize(const Tensor& t) { return t.rank() == 0 ? 1 : t.shape().Product(1, t.rank()); }

// Adds the rows of the sparse inputs to a dense sum.
Status AddRowsToDense(const KernelContext& ctx, Tensor& out) {
  const auto add = AddLoop(out.dtype());
  const size_t size = SizeOf(out.dtype());
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Value* v = ctx.InVar("X", i);
    if (v == nullptr || !v->is_rows()) continue;
    const SelectedRows& r = v->rows();
    if (r.rows.empty()) continue;
    const int64_t width = RowSize(r.value), height = out.rank() == 0 ? 0 : out.dim(0);
    if (r.value.dtype() != out.dtype() || width != RowSize(out) ||
        r.value.dim(0) < std::ssize(r.rows))
      return InvalidArgument("the rows of X[", i, "] do not fit ", out.shape().ToString());
    for (size_t k = 0; k < r.rows.size(); ++k) {
      if (r.rows[k] < 0 || r.rows[k] >= height)
        return OutOfRange("row ", r.rows[k], " of X[", i, "] is not below ", height);
      auto* to = static_cast<std::byte*>(out.mutable_raw()) +
                 size * static_cast<size_t>(r.rows[k] * width);
      add(to, static_cast<const std::byte*>(r.value.raw()) + size * k * static_cast<size_t>(width),
          to, width, nullptr);
    }
  }
  return Status::Ok();
}

// All inputs are sparse: the distinct rows in ascending order, each with the sum of its values.
Status AddRows(const KernelContext& ctx, Value* out) {
  const SelectedRows* first = nullptr;
  CallHeap heap(ctx);
  std::pmr::map<int64_t, size_t> place(&heap);
  size_t total = 0;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Value* v = ctx.InVar("X", i);
    if (v == nullptr || !v->is_rows() || v->rows().rows.empty()) continue;
    const SelectedRows& r = v->rows();
    if (first == nullptr) first = &r;
    if (r.value.dtype() != first->value.dtype() || RowSize(r.value) != RowSize(first->value) ||
        r.value.dim(0) < std::ssize(r.rows))
      return InvalidArgument("X[", i, "] has rows unlike those of the other inputs");
    total += r.rows.size();
    for (int64_t row : r.rows) place.emplace(row, 0);
  }
  if (first == nullptr) {
    SelectedRows sum;
    for (int i = 0; i < ctx.InCount("X"); ++i)
      if (const Value* v = ctx.InVar("X", i); v != nullptr && v->is_rows()) sum = v->rows();
    out->mutable_rows() = std::move(sum);
    return Status::Ok();
  }
  bool in_place = false;
  for (int i = 0; i < ctx.InCount("X"); ++i) in_place = in_place || ctx.InVar("X", i) == out;
  SelectedRows aside;
  SelectedRows& sum = in_place ? aside : out->mutable_rows();
  const bool distinct = place.size() == total;  // then nothing is added up, and the order stays
  size_t next = 0;
  for (auto& [row, at] : place) at = next++;
  Shape shape = first->value.shape();
  shape[0] = static_cast<int64_t>(next);
  sum.height = first->height;
  sum.rows.resize(next);
  sum.value = ctx.Scratch(first->value.dtype(), shape);
  WatchedMemset(sum.value.mutable_raw(), 0, sum.value.bytes());
  const auto add = AddLoop(sum.value.dtype());
  if (add == nullptr) return Unimplemented("sum of ", Name(sum.value.dtype()));
  const int64_t width = RowSize(sum.value);
  const size_t row_bytes = static_cast<size_t>(width) * SizeOf(sum.value.dtype());
  size_t seen = 0;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Value* v = ctx.InVar("X", i);
    if (v == nullptr || !v->is_rows()) continue;
    const SelectedRows& r = v->rows();
    for (size_t k = 0; k < r.rows.size(); ++k, ++seen) {
      const size_t at = distinct ? seen : place[r.rows[k]];
      sum.rows[at] = r.rows[k];
      auto* to = static_cast<std::byte*>(sum.value.mutable_raw()) + at * row_bytes;
      add(to, static_cast<const std::byte*>(r.value.raw()) + k * row_bytes, to, width, nullptr);
    }
  }
  if (in_place) out->mutable_rows() = std::move(aside);
  return Status::Ok();
}

// Element by element; an element that only some arrays hold is the sum of those.
Status AddArrays(const KernelContext& ctx, Value* out) {
  bool in_place = false;
  for (int i = 0; i < ctx.InCount("X"); ++i) in_place = in_place || ctx.InVar("X", i) == out;
  TensorArray aside;
  TensorArray& sum = in_place ? aside : out->mutable_array();
  sum.clear();
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Value* v = ctx.InVar("X", i);
    if (v == nullptr || !v->is_array()) continue;
    const TensorArray& array = v->array();
    if (array.size() > sum.size()) sum.resize(array.size());
    for (size_t k = 0; k < array.size(); ++k) {
      const Tensor& x = array[k];
      if (!x.initialized() || x.numel() == 0) continue;
      if (!sum[k].initialized()) {
        sum[k] = ctx.Scratch(x.dtype(), x.shape());
        WatchedMemcpy(sum[k].mutable_raw(), x.raw(), x.bytes());
        if (x.has_lod()) sum[k].set_lod(x.lod());
        continue;
      }
      HEDDLE_RETURN_IF_ERROR(CheckLike(sum[k], x, i));
      const auto add = AddLoop(x.dtype());
      if (add == nullptr) return Unimplemented("sum of ", Name(x.dtype()));
      add(sum[k].raw(), x.raw(), sum[k].mutable_raw(), x.numel(), nullptr);
    }
  }
  if (in_place) out->mutable_array() = std::move(aside);
  return Status::Ok();
}

Status Sum(KernelContext& ctx) {
  bool dense = false, rows = false;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Value* v = ctx.InVar("X", i);
    if (v == nullptr) continue;
    if (v->is_array()) return AddArrays(ctx, ctx.OutVar("Out"));
    rows |= v->is_rows();
    dense |= v->is_tensor() && v->tensor().initialized();
  }
  if (rows && !dense) return AddRows(ctx, ctx.OutVar("Out"));
  Tensor& out = ctx.Out("Out");
  HEDDLE_RETURN_IF_ERROR(AddDense(ctx, out));
  return rows ? AddRowsToDense(ctx, out) : Status::Ok();
}

// Whether Out's shape may be another: of no elements, or a scalar, which may be added to a [1].
bool SaysNothing(const Shape& s) { return s.is_static() && (s.numel() == 0 || s.rank() == 0); }

// Out has the shape of the first dense input that decides it, or else of the first one.
Status InferSum(ShapeContext& ctx) {
  int like = -1;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    if (!ctx.HasIn("X", i) || !ctx.InVar("X", i)->is_tensor()) continue;
    const Shape& s = ctx.InShape("X", i);
    if (like < 0) {
      like = i;
      continue;
    }
    const Shape& l = ctx.InShape("X", like);
    if (s.is_static() && l.is_static() && s.numel() != 0 && l.numel() != 0 &&
        s.numel() != l.numel())
      return InvalidArgument("input X[", i, "] has shape ", s.ToString(), ", X[", like, "] has ",
                             l.ToString(), ": all inputs of sum must have one shape");
    if (SaysNothing(l) && (l.numel() == 0 || !SaysNothing(s))) like = i;
  }
  if (like < 0) return Status::Ok();
  ctx.SetOut("Out", ctx.InShape("X", like), ctx.InDType("X", like));
  if (const LoD& lod = ctx.InLoD("X", like); !lod.empty()) ctx.SetOutLoD("Out", lod);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sum) {
  op.Doc("sum of all inputs")
      .Input("X", kList | kOptional | kAnyKind | kTakesRows | kTakesArray)
      .Output("Out", kTakesRows | kTakesArray);
  op.Inplace("X", "Out").InferShape(&InferSum).AnyKernel(&Sum);
}
