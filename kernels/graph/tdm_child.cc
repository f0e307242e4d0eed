// tdm_child: the children of nodes of a tree.
#include "core/interrupts.h"
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
  for (const int64_t i : Watched(x.numel())) {
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

}  // namespace
}  // namespace heddle

HEDDLE_OP(tdm_child) {
  op.Doc("the children of nodes, and which of them are leaves").Input("X").Input("TreeInfo");
  op.Output("Child").Output("LeafMask").Attr("child_nums", 2).Attr("dtype", 2);
  op.AnyKernel(TdmChild);
}
