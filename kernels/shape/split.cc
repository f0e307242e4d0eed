#include <algorithm>
#include <vector>

#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Lengths of the parts along the axis, into dimension `at` of `part` one after another.
Status SplitShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const int count = ctx.OutCount("Out");
  if (!x.known_rank()) return ctx.Defer();
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "AxisTensor", "axis", x.rank(), &axis));
  if (x.rank() == 0) return InvalidArgument("'X' must have at least one dimension");
  if (!axis.known) return ctx.Defer();
  const int at = static_cast<int>(axis.value);
  const int64_t whole = x[at], num = ctx.Int("num");
  const int listed = ctx.InCount("SectionsTensorList");
  const bool from_tensors = listed > 0 && Holds(ctx.InVar("SectionsTensorList"));
  const Ints& sections = ctx.IntList("sections");
  const bool one_tensor = ctx.HasIn("SectionsTensor"), uneven = ctx.Bool("uneven");
  const Tensor* lengths = one_tensor ? ctx.InValue("SectionsTensor") : nullptr;
  if (lengths != nullptr) HEDDLE_RETURN_IF_ERROR(CheckIntDType(lengths->dtype(), "SectionsTensor"));
  const int given = from_tensors ? listed
                    : lengths != nullptr
                        ? static_cast<int>(std::min<int64_t>(lengths->numel(), INT32_MAX))
                    : one_tensor ? count
                    : num > 0    ? 0
                                 : static_cast<int>(sections.size());
  if (given != 0 ? given != count : num != count)
    return InvalidArgument("'Out' names ", count, " tensors, but X is split into ",
                           given != 0 ? given : num);
  if (count == 0) return InvalidArgument("'Out' names no tensors");
  if (given == 0 && !uneven && whole >= 0 && whole % count != 0)
    return InvalidArgument("dimension ", at, " of X ", x.ToString(), " cannot be split into ", num,
                           " equal parts");
  int open = -1;
  int64_t sum = 0;
  bool known = true;
  auto length = [&](int i) -> int64_t {
    if (given == 0 && uneven && whole >= 0) {
      const int64_t part = whole / count + (whole % count != 0 ? 1 : 0);
      return std::clamp<int64_t>(whole - i * part, 0, part);
    }
    if (given == 0) return whole < 0 ? -1 : whole / count;
    if (!from_tensors && one_tensor) {
      known = known && lengths != nullptr;
      return known ? IntAt(*lengths, i) : -1;
    }
    if (!from_tensors) return sections[i];
    const Tensor* t = ctx.InValue("SectionsTensorList", i);
    known = known && t != nullptr && t->numel() > 0;
    return known ? IntAt(*t, 0) : -1;
  };
  for (int i = 0; i < count; ++i) {
    const int64_t n = length(i);
    if (n >= 0) {
      sum += n;
    } else if (given != 0 && known) {
      if (n < -1 || open >= 0)
        return InvalidArgument("the sections must not be negative, but for one -1");
      open = i;
    }
  }
  if (given != 0 && known && whole >= 0 && (open >= 0 ? sum > whole : sum != whole))
    return InvalidArgument("the sections make ", sum, ", but dimension ", at, " of X ",
                           x.ToString(), " is ", whole);
  for (int i = 0; i < count; ++i) {
    Shape part = x;
    part[at] = i == open ? (whole < 0 ? -1 : whole - sum) : known ? length(i) : -1;
    ctx.SetOut("Out", part, ctx.InDType("X"), i);
    if (at != 0 && !ctx.InLoD("X").empty()) ctx.SetOutLoD("Out", ctx.InLoD("X"), i);
  }
  return Status::Ok();
}

struct SplitState final : KernelState, WindowState {
  std::vector<int64_t> starts;  // of the parts; empty: they are not known
  int axis = 0;
  bool WindowOf(int i, Window* window) const override {
    if (starts.empty()) return false;
    for (int d = 0; d < Shape::kMaxRank; ++d) window->axis[d] = d, window->step[d] = 1;
    window->start[axis] = starts[static_cast<size_t>(i)];
    return true;
  }
};

// The kernel does without the state: it is for the plan alone.
Result<std::unique_ptr<KernelState>> PrepareSplit(PrepareContext& ctx) {
  auto state = std::make_unique<SplitState>();
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "AxisTensor", "axis", ctx.InShape("X").rank(), &axis));
  state->axis = static_cast<int>(axis.value);
  int64_t start = 0;
  for (int i = 0; axis.known && i < ctx.OutCount("Out"); ++i) {
    if (!ctx.HasOut("Out", i)) {
      state->starts.clear();
      break;
    }
    state->starts.push_back(start);
    start += ctx.OutShape("Out", i).dim(state->axis);
  }
  return std::unique_ptr<KernelState>(std::move(state));
}

Status Split(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "AxisTensor", "axis", x.rank(), &axis));
  const int at = static_cast<int>(axis.value);
  const int64_t rows = x.shape().Product(0, at);
  const int64_t inner =
      x.shape().Product(at + 1, x.rank()) * static_cast<int64_t>(SizeOf(x.dtype()));
  const int64_t row = x.dim(at) * inner;
  const std::byte* src = static_cast<const std::byte*>(x.raw());
  const int count = ctx.OutCount("Out");
  int64_t left = x.dim(at);
  for (int i = 0; i < count; ++i) {
    if (!ctx.HasOut("Out", i))
      return InvalidArgument("'Out' [", i, "] is missing: its length is not known");
    Tensor& out = ctx.Out("Out", i);
    if (out.rank() != x.rank() || out.dim(at) < 0 || (left -= out.dim(at)) < 0)
      return InvalidArgument("'SectionsTensorList' does not say how long 'Out' [", i, "] is");
    const int64_t bytes = out.dim(at) * inner;
    CopyRows(ctx, src, row, out.mutable_raw(), bytes, rows, bytes);
    src += bytes;
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(split) {
  op.Doc(
        "X cut along `axis` into `num` equal parts, or with `uneven` the last of them shorter, or "
        "into "
        "`sections`.")
      .Input("X")
      .Input("AxisTensor", kOptional | kShapeValue)
      .Input("SectionsTensorList", kOptional | kList | kShapeValue)
      .Input("SectionsTensor", kOptional | kShapeValue)
      .Output("Out", kList)
      .Attr("sections", Ints{})
      .Attr("num", 0)
      .Attr("uneven", false)
      .Attr("axis", 0)
      .Traits(kAlongAxis | kWindows)
      .InferShape(SplitShape)
      .Prepare(PrepareSplit)
      .AnyKernel(Split);
}
