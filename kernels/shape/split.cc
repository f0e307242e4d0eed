#include <vector>

#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/index/index_args.h"
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
  const int given = from_tensors ? listed : num > 0 ? 0 : static_cast<int>(sections.size());
  if (given != 0 ? given != count : num != count)
    return InvalidArgument("'Out' names ", count, " tensors, but X is split into ",
                           given != 0 ? given : num);
  if (given == 0 && whole >= 0 && whole % count != 0)
    return InvalidArgument("dimension ", at, " of X ", x.ToString(), " cannot be split into ", num,
                           " equal parts");
  int open = -1;
  int64_t sum = 0;
  bool known = true;
  auto length = [&](int i) -> int64_t {
    if (given == 0) return whole < 0 ? -1 : whole / count;
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
  op.Doc("X cut along `axis` into `num` equal parts or into `sections`.")
      .Input("X")
      .Input("AxisTensor", kOptional | kShapeValue)
      .Input("SectionsTensorList", kOptional | kList | kShapeValue)
      .Output("Out", kList)
      .Attr("sections", Ints{})
      .Attr("num", 0)
      .Attr("axis", 0)
      .Traits(kAlongAxis | kWindows)
      .InferShape(SplitShape)
      .Prepare(PrepareSplit)
      .AnyKernel(Split);
}

HEDDLE_EXAMPLES(split, R"(
example float64 1x10, axis 1, sections 3 -1
attr axis INT 1
attr sections INTS [3, -1]
in SectionsTensorList int32 [1] 3
in SectionsTensorList int32 [1] 7
in X float64 [1, 10] 0.323 0.239 0.829 0.492 0.913 0.576 0.66 0.408 0.155 0.745
out Out float64 [1, 3] 0.323 0.239 0.829
out Out float64 [1, 7] 0.492 0.913 0.576 0.66 0.408 0.155 0.745

example float32 5x1, axis -1, sections -1
attr axis INT -1
attr sections INTS [-1]
in X float32 [5, 1] -0.37 -0.65 -0.09 0.19 0.47
out Out float32 [5, 1] -0.37 -0.65 -0.09 0.19 0.47

example float32 3x4x1x2, axis 3, num 2
attr axis INT 3
attr num INT 2
in X float32 [3, 4, 1, 2] -0.47 0.77 -0.62 -0.4 0.84 0.62 -0.69 0.4 0.48 0.33 0.18 -0.11 0.26 -0.55
  -0.04 0.04 -0.18 -0.26 0.11 0.7 -0.77 -0.84 -0.33 0.55
out Out float32 [3, 4, 1, 1] -0.47 -0.62 0.84 -0.69 0.48 0.18 0.26 -0.04 -0.18 0.11 -0.77 -0.33
out Out float32 [3, 4, 1, 1] 0.77 -0.4 0.62 0.4 0.33 -0.11 -0.55 0.04 -0.26 0.7 -0.84 0.55

example int64 2x4x3, axis -2, sections 4
attr axis INT -2
attr sections INTS [4]
in X int64 [2, 4, 3] -4 -2 1 -4 -3 0 1 0 -8 -5 -1 -6 -9 -6 -7 -2 -5 -3 -9 0 -1 -1 1 -6
out Out int64 [2, 4, 3] -4 -2 1 -4 -3 0 1 0 -8 -5 -1 -6 -9 -6 -7 -2 -5 -3 -9 0 -1 -1 1 -6

example bool 5x1, axis -1, sections -1
attr axis INT -1
attr sections INTS [-1]
in X bool [5, 1] 0 0 0 1 1
out Out bool [5, 1] 0 0 0 1 1

example complex64 5x1, axis -1, sections -1
attr axis INT -1
attr sections INTS [-1]
in X complex64 [5, 1] -0.37+0.8j -0.65+0.3j -0.09+0.5j 0.19-0.7j 0.47-0.8j
out Out complex64 [5, 1] -0.37+0.8j -0.65+0.3j -0.09+0.5j 0.19-0.7j 0.47-0.8j

example bfloat16 5x1, axis -1, sections -1
attr axis INT -1
attr sections INTS [-1]
in X bfloat16 [5, 1] -0.37 -0.65 -0.09 0.19 0.47
out Out bfloat16 [5, 1] -0.37 -0.65 -0.09 0.19 0.47

example float16 5x1, axis -1, sections -1
attr axis INT -1
attr sections INTS [-1]
in X float16 [5, 1] -0.37 -0.65 -0.09 0.19 0.47
out Out float16 [5, 1] -0.37 -0.65 -0.09 0.19 0.47
)")
