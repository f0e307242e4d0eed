// tdm_child: the children of nodes of a tree. similarity_focus: the largest elements of a plane,
// each row and column once.
#include <numeric>

#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Rows of TreeInfo: item, layer, parent, children; node 0 is none.
Status TdmChild(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &tree = ctx.In("TreeInfo");
  const int64_t count = ctx.Int("child_nums");
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  if (tree.rank() != 2 || count < 1 || tree.dim(1) < 3 + count ||
      (dtype != DType::kI32 && dtype != DType::kI64))
    return InvalidArgument("TreeInfo ", tree.shape().ToString(), " has no ", count, " children");
  const Ints nodes = ToInts(x), info = ToInts(tree);
  Shape shape = x.shape();
  shape.push_back(count);
  Tensor &child = ctx.Alloc("Child", dtype, shape), &mask = ctx.Alloc("LeafMask", dtype, shape);
  const auto at = [&](int64_t node, int64_t k) {
    return info[static_cast<size_t>(node * tree.dim(1) + k)];
  };
  const auto put = [&](Tensor& t, int64_t i, int64_t v) {
    if (dtype == DType::kI32)
      t.mutable_data<int32_t>()[i] = static_cast<int32_t>(v);
    else
      t.mutable_data<int64_t>()[i] = v;
  };
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t node = nodes[static_cast<size_t>(i)];
    if (node < 0 || node >= tree.dim(0))
      return OutOfRange("node ", node, " is not in [0, ", tree.dim(0), ")");
    const bool none = node == 0 || at(node, 3) == 0;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t c = none ? 0 : at(node, 3 + k);
      if (c < 0 || c >= tree.dim(0)) return OutOfRange("TreeInfo names node ", c);
      put(child, i * count + k, c);
      put(mask, i * count + k, !none && at(c, 0) != 0 ? 1 : 0);
    }
  }
  return Status::Ok();
}

Status InferFocus(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const int64_t axis = ctx.Int("axis");
  if (x.known_rank() && x.rank() != 4) return InvalidArgument("X must be 4-D");
  if (axis < 1 || axis > 3) return InvalidArgument("axis must be 1, 2 or 3, not ", axis);
  ctx.SetOut("Out", x, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct SimilarityFocus {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const auto axis = static_cast<int>(ctx.Int("axis"));
    Tensor& out = ctx.Out("Out");
    ZeroAll(out);
    const int row_axis = axis == 1 ? 2 : 1, col_axis = axis == 3 ? 2 : 3;
    int64_t stride[4];
    for (int d = 0; d < 4; ++d) stride[d] = x.shape().Product(d + 1, 4);
    const int64_t rows = x.dim(row_axis), cols = x.dim(col_axis);
    std::vector<int64_t> order(static_cast<size_t>(rows * cols));
    for (int64_t n = 0; n < x.dim(0); ++n)
      for (int64_t index : ctx.IntList("indexes")) {
        if (index < 0 || index >= x.dim(axis))
          return OutOfRange("index ", index, " is not in [0, ", x.dim(axis), ")");
        const int64_t base = n * stride[0];
        const auto place = [&](int64_t i) {
          return base + i / cols * stride[row_axis] + i % cols * stride[col_axis];
        };
        const T* plane = x.data<T>() + index * stride[axis];
        std::iota(order.begin(), order.end(), int64_t{0});
        std::sort(order.begin(), order.end(),
                  [&](int64_t a, int64_t b) { return plane[place(a)] > plane[place(b)]; });
        std::vector<bool> row_used(static_cast<size_t>(rows)), col_used(static_cast<size_t>(cols));
        for (int64_t i : order) {
          const auto r = static_cast<size_t>(i / cols), c = static_cast<size_t>(i % cols);
          if (row_used[r] || col_used[c]) continue;
          row_used[r] = col_used[c] = true;
          for (int64_t k = 0; k < x.dim(axis); ++k)
            out.mutable_data<T>()[place(i) + k * stride[axis]] = T(1);
        }
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tdm_child) {
  op.Doc("the children of nodes, and which of them are leaves").Input("X").Input("TreeInfo");
  op.Output("Child").Output("LeafMask").Attr("child_nums", 2).Attr("dtype", 2);
  op.AnyKernel(TdmChild);
}
HEDDLE_OP(similarity_focus) {
  op.Doc("1 where an element is the largest left in its row and column, all along an axis");
  op.Input("X").Output("Out").Attr("axis", 1).Attr("indexes", Ints{});
  op.InferShape(InferFocus).Kernels<SimilarityFocus, float, double>();
}

HEDDLE_EXAMPLES(similarity_focus, R"(
example axis 1
attr axis INT 1
attr indexes INTS [0]
in X float32 [1, 2, 2, 3] 0.7 0.9 0.49 0.87 0.35 0.67 0.61 0.19 0.39 0.95 0.61 0.69
out Out float32 [1, 2, 2, 3] 0 1 0 1 0 0 0 1 0 1 0 0

example axis 2, two indexes
attr axis INT 2
attr indexes INTS [0, 1]
in X float32 [1, 2, 2, 2] 0.04 0.79 0.06 0.45 0.09 0.9 0.17 0.44
out Out float32 [1, 2, 2, 2] 1*8
)")

HEDDLE_EXAMPLES(tdm_child, R"(
example int32
attr child_nums INT 2
attr dtype INT 2
in X int32 [2, 1] 1 2
in TreeInfo int32 [7, 5] 0 0 0 1 2 0 1 0 3 4 0 1 0 5 6 0 2 1 0 0 10 2 1 0 0 11 2 2 0 0 12 2 2 0 0
out Child int32 [2, 1, 2] 3 4 5 6
out LeafMask int32 [2, 1, 2] 0 1 1 1

example int64
attr child_nums INT 2
attr dtype INT 3
in X int64 [2, 1] 1 2
in TreeInfo int64 [7, 5] 0 0 0 1 2 0 1 0 3 4 0 1 0 5 6 0 2 1 0 0 10 2 1 0 0 11 2 2 0 0 12 2 2 0 0
out Child int64 [2, 1, 2] 3 4 5 6
out LeafMask int64 [2, 1, 2] 0 1 1 1
)")
