// Texts joined: those of several operands, along axes, and of segments.
#include <algorithm>
#include <numeric>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/operands/operands.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

using SharedStrings = std::shared_ptr<const StringTensor>;

Status Join(KernelContext& ctx) {
  const std::string& separator = ctx.Str("separator");
  std::vector<SharedStrings> all;
  const Shape* shape = nullptr;  // of the first operand that is no scalar
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(SharedStrings x, StringsOf(ctx, "X", i));
    all.push_back(std::move(x));
    const Shape& mine = all.back()->shape;
    if (mine.rank() == 0) continue;
    if (shape == nullptr) shape = &mine;
    if (mine != *shape)
      return InvalidArgument("'X' [", i, "] has the shape ", mine.ToString(), ", one before it ",
                             shape->ToString(), "; all but scalars must have one shape");
  }
  StringTensor out{shape == nullptr ? Shape() : *shape, {}};
  for (const int64_t i : Watched(out.shape.numel())) {
    std::string& text = out.elements.emplace_back();
    for (size_t k = 0; k < all.size(); ++k) {
      if (k > 0) text += separator;
      text += all[k]->elements[all[k]->shape.rank() == 0 ? 0 : static_cast<size_t>(i)];
    }
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

// Joins along the axes, of which the first named one varies fastest.
Status ReduceJoin(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedStrings x, StringsOf(ctx, "X"));
  const std::string& separator = ctx.Str("separator");
  const int rank = x->shape.rank();
  std::vector<int> axes;
  for (const int64_t given : ToInts(ctx.In("Axes"))) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(given, rank));
    if (rank == 0) return OutOfRange("axis ", given, " of a scalar");
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      return InvalidArgument("axis ", given, " is there twice");
    axes.push_back(axis);
  }
  Ints strides(static_cast<size_t>(rank), 1);
  for (int d = rank - 2; d >= 0; --d)
    strides[static_cast<size_t>(d)] = strides[static_cast<size_t>(d) + 1] * x->shape[d + 1];
  std::reverse(axes.begin(), axes.end());
  StringTensor out;
  std::vector<int> kept;
  for (int d = 0; d < rank; ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
      kept.push_back(d);
      out.shape.push_back(x->shape[d]);
    } else if (ctx.Bool("keep_dims")) {
      out.shape.push_back(1);
    }
  }
  const auto offset = [&](int64_t i, const std::vector<int>& dims) {
    int64_t at = 0;
    for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
      at += i % x->shape[*d] * strides[static_cast<size_t>(*d)];
      i /= x->shape[*d];
    }
    return at;
  };
  const int64_t each = std::accumulate(axes.begin(), axes.end(), int64_t{1},
                                       [&](int64_t n, int d) { return n * x->shape[d]; });
  for (const int64_t i : Watched(out.shape.numel())) {
    const int64_t base = offset(i, kept);
    std::string& text = out.elements.emplace_back();
    for (const int64_t k : Watched(each)) {
      if (k > 0) text += separator;
      text += x->elements[static_cast<size_t>(base + offset(k, axes))];
    }
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

// Texts whose numbers are equal, joined in their order. The numbers stand for the first axes of X.
Status SegmentJoin(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedStrings x, StringsOf(ctx, "X"));
  const Tensor& segments = ctx.In("Segments");
  const Ints counts = ToInts(ctx.In("Count")), of = ToInts(segments);
  if (counts.size() != 1 || counts[0] < 0)
    return InvalidArgument("'Count' must be one number that is not negative");
  bool fits = segments.rank() > 0 && segments.rank() <= x->shape.rank();
  for (int d = 0; fits && d < segments.rank(); ++d) fits = segments.dim(d) == x->shape[d];
  if (!fits)
    return InvalidArgument("'Segments' has the shape ", segments.shape().ToString(), ", and 'X' ",
                           x->shape.ToString(), "; the first axes of that are expected");
  StringTensor out{Shape{counts[0]}, {}};
  for (int d = segments.rank(); d < x->shape.rank(); ++d) out.shape.push_back(x->shape[d]);
  const int64_t each = x->shape.Product(segments.rank(), x->shape.rank());
  HEDDLE_ASSIGN_OR_RETURN(const Shape checked, MakeShape({counts[0], each}, "Count"));
  const auto total = static_cast<size_t>(checked.numel());
  out.elements.resize(total);
  std::vector<bool> begun(total, false);
  const std::string& separator = ctx.Str("separator");
  for (const int64_t i : Watched(std::ssize(of))) {
    if (of[static_cast<size_t>(i)] < 0 || of[static_cast<size_t>(i)] >= counts[0])
      return InvalidArgument("'Segments' holds ", of[static_cast<size_t>(i)],
                             "; expected one from 0 to ", counts[0] - 1);
    for (int64_t k = 0; k < each; ++k) {
      const auto at = static_cast<size_t>(of[static_cast<size_t>(i)] * each + k);
      if (begun[at]) out.elements[at] += separator;
      begun[at] = true;
      out.elements[at] += x->elements[static_cast<size_t>(i * each + k)];
    }
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_segment_join) {
  op.Doc("texts of X whose Segments are equal, joined with a separator; Count: how many segments");
  op.Input("X", kAnyKind | kOtherOnly).Input("Segments").Input("Count").Output("Out", kOtherOnly);
  op.Attr("separator", "").AnyKernel(SegmentJoin);
}

HEDDLE_OP(string_join) {
  op.Doc("the texts of all X, element by element, with a separator between; scalars repeat");
  op.Input("X", kList | kAnyKind | kOtherOnly).Output("Out", kOtherOnly);
  op.Attr("separator", "").AnyKernel(Join);
}

HEDDLE_OP(string_reduce_join) {
  op.Doc("texts joined along Axes, the first of which varies fastest, with a separator between");
  op.Input("X", kAnyKind | kOtherOnly)
      .Input("Axes")
      .Output("Out", kOtherOnly)
      .Attr("keep_dims", false)
      .Attr("separator", "")
      .AnyKernel(ReduceJoin);
}
