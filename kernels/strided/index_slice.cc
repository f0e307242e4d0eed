#include "kernels/strided/index_slice.h"

#include <algorithm>

#include "core/shapes.h"

namespace heddle {
namespace {

bool Contains(const Ints& list, int64_t v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

StridedCopy BuildSlice(const Shape& x, const SliceSpec& part, size_t element_size, bool out_of) {
  const auto strides = RowMajorStrides(x);
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t dense = 1, offset = 0;
  for (int i = part.rank - 1; i >= 0; --i) {
    const int64_t stride = strides[i] * part.step[i];
    offset += strides[i] * part.start[i];
    dims[i] =
        out_of ? CopyDim{part.count[i], stride, dense} : CopyDim{part.count[i], dense, stride};
    dense *= part.count[i];
  }
  const std::span<const CopyDim> used(dims.data(), static_cast<size_t>(part.rank));
  return out_of ? StridedCopy(element_size, used, offset, 0)
                : StridedCopy(element_size, used, 0, offset);
}

}  // namespace

SliceSpec WholeSlice(const Shape& x) {
  SliceSpec spec;
  spec.rank = x.rank();
  for (int i = 0; i < x.rank(); ++i) {
    spec.step[i] = 1;
    spec.count[i] = x[i];
  }
  return spec;
}

void SetRange(SliceSpec* spec, int axis, int64_t dim, int64_t start, int64_t end, int64_t step) {
  const bool to_front = step < 0 && end == -1;
  if (start < 0) start = std::max<int64_t>(start + dim, 0);
  if (end < 0 && !to_front) end += dim;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, start, dim);
    spec->count[axis] = (end - start + step - 1) / step;
  } else {
    start = std::clamp<int64_t>(start, -1, dim - 1);
    end = to_front ? -1 : std::clamp<int64_t>(end, -1, dim - 1);
    spec->count[axis] = start > end ? (start - end - step - 1) / -step : 0;
  }
  spec->start[axis] = spec->count[axis] > 0 ? start : 0;
  spec->step[axis] = step;
}

Status ResolveSlice(const Shape& x, std::span<const int64_t> axes, const IntArgs& starts,
                    const IntArgs& ends, const IntArgs* steps, const Ints& decrease,
                    const Ints& flags, SliceSpec* spec) {
  *spec = WholeSlice(x);
  const int n = static_cast<int>(axes.size());
  const bool counted = starts.n >= 0 && ends.n >= 0 && (steps == nullptr || steps->n >= 0);
  if (counted && (starts.n != n || ends.n != n || (steps != nullptr && steps->n != n)))
    return InvalidArgument("'axes' has ", n, " values, but there are ", starts.n, " starts, ",
                           ends.n, " ends and ", steps == nullptr ? n : steps->n, " strides");
  const bool known = counted && starts.known && ends.known && (steps == nullptr || steps->known);
  for (int i = 0; i < n; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axes[i], x.rank()));
    if (x.rank() == 0) return InvalidArgument("a tensor without dimensions cannot be sliced");
    if (!known || x[axis] < 0) {
      spec->count[axis] = Contains(decrease, axis) ? 1 : -1;
      continue;
    }
    const int64_t step = steps == nullptr ? 1 : (*steps)[i];
    if (step == 0) return InvalidArgument("the stride of axis ", axis, " is 0");
    int64_t end = ends[i];
    // Programs write x[-1] as -1:0 if the index comes from a tensor.
    if (starts[i] == -1 && end == 0 && Contains(decrease, axis) &&
        i < static_cast<int>(flags.size()) && flags[i] == -1)
      end = step > 0 ? x[axis] : x[axis] - 2;
    SetRange(spec, axis, x[axis], starts[i], end, step);
  }
  return Status::Ok();
}

Result<Shape> DropAxes(const Shape& shape, const Ints& decrease) {
  if (decrease.empty()) return shape;
  unsigned drop = 0;
  for (int64_t d : decrease) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(d, shape.rank()));
    if (shape[axis] != 1 && shape[axis] >= 0)
      return InvalidArgument("axis ", axis, " of 'decrease_axis' has ", shape[axis],
                             " elements after slicing; only single ones can be dropped");
    drop |= 1u << axis;
  }
  Shape out;
  for (int i = 0; i < shape.rank(); ++i)
    if ((drop >> i & 1) == 0) out.push_back(shape[i]);
  return out;
}

StridedCopy CopyOutOf(const Shape& x, const SliceSpec& part, size_t element_size) {
  return BuildSlice(x, part, element_size, true);
}

StridedCopy CopyInto(const Shape& x, const SliceSpec& part, size_t element_size) {
  return BuildSlice(x, part, element_size, false);
}

}  // namespace heddle
