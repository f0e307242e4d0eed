// tril_indices and triu_indices: coordinates of the elements of a triangle.
#include <algorithm>

#include "core/interrupts.h"
#include "kernels/base/shape_arg.h"
#include "kernels/base/visit_one_of.h"

namespace heddle {
namespace {

struct Triangle {
  int64_t rows, cols, offset;
  bool upper;

  Triangle(const OpContext& ctx, bool upper) : offset(ctx.Int("offset")), upper(upper) {
    rows = upper ? ctx.Int("row") : ctx.Int("rows");
    cols = upper ? ctx.Int("col") : ctx.Int("cols");
  }
  // Columns [begin, end) of a row belong to it.
  int64_t Begin(int64_t row) const {
    return upper ? std::clamp<int64_t>(row + offset, 0, cols) : 0;
  }
  int64_t End(int64_t row) const {
    return upper ? cols : std::clamp<int64_t>(row + offset + 1, 0, cols);
  }
};

template <bool kUpper>
Status TriangleShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  if (dtype != DType::kI32 && dtype != DType::kI64)
    return InvalidArgument("attribute dtype must name int32 or int64, not ", Name(dtype));
  const Triangle t(ctx, kUpper);
  constexpr int64_t kMax = int64_t{1} << 31;
  if (t.rows < 0 || t.cols < 0 || t.rows > kMax || t.offset > kMax || t.offset < -kMax)
    return InvalidArgument("cannot make a matrix of ", t.rows, " x ", t.cols, ", offset ",
                           t.offset);
  int64_t n = 0;
  for (int64_t r = 0; r < t.rows; ++r) n += t.End(r) - t.Begin(r);
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({2, n}, "the list"));
  ctx.SetOut("out", shape, dtype);
  return Status::Ok();
}

template <bool kUpper>
Status RunTriangle(KernelContext& ctx) {
  Tensor& out = ctx.Out("out");
  const Triangle t(ctx, kUpper);
  VisitOneOf<int32_t, int64_t>("out", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* row = out.mutable_data<T>();
    T* col = row + out.dim(1);
    for (const int64_t r : Watched(t.rows)) {
      for (int64_t c = t.Begin(r); c < t.End(r); ++c) {
        *row++ = static_cast<T>(r);
        *col++ = static_cast<T>(c);
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tril_indices) {
  op.Doc("Row and column numbers of a lower triangle.").Output("out").Attr("rows", 0);
  op.Attr("cols", 0).Attr("offset", 0).Attr("dtype", 3);
  op.InferShape(TriangleShape<false>).AnyKernel(RunTriangle<false>);
}

HEDDLE_OP(triu_indices) {
  op.Doc("Row and column numbers of an upper triangle.").Output("out").Attr("row", 0);
  op.Attr("col", 0).Attr("offset", 0).Attr("dtype", 3);
  op.InferShape(TriangleShape<true>).AnyKernel(RunTriangle<true>);
}
