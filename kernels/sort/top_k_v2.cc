// The k greatest or smallest elements along an axis: top_k, top_k_v2 and their gradients.
#include <algorithm>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/index_args.h"
#include "kernels/sort/pick_grad.h"

namespace heddle {
namespace {

struct TopKAttrs {
  int64_t k = 1, axis = -1;
  bool largest = true;
  bool known = true;  // `k` is
  DType index = DType::kI64;
};

Result<TopKAttrs> ReadAttrs(const OpContext& ctx) {
  TopKAttrs a;
  IntArg k;
  HEDDLE_RETURN_IF_ERROR(ReadInt(ctx, "K", "k", &k));
  a.k = k.value;
  a.known = k.known;
  if (ctx.def().FindAttr("axis") >= 0) {
    a.axis = ctx.Int("axis");
    a.largest = ctx.Bool("largest");
    a.index = DTypeFromProto(ctx.Int("index_type"));
    if (a.index != DType::kI32 && a.index != DType::kI64)
      return InvalidArgument("index_type is ", Name(a.index), ", expected int32 or int64");
  }
  return a;
}

Status InferTopK(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const DType dtype = ctx.InDType("X");
  HEDDLE_ASSIGN_OR_RETURN(const TopKAttrs a, ReadAttrs(ctx));
  const auto set = [&](const Shape& out) {
    if (ctx.HasOut("Out")) ctx.SetOut("Out", out, dtype);
    if (ctx.HasOut("Indices")) ctx.SetOut("Indices", out, a.index);
    return Status::Ok();
  };
  if (!x.known_rank()) return set(Shape::Unknown());
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(a.axis, x.rank()));
  Shape out = x;
  if (x.rank() > 0) {
    if (a.known && (a.k < 0 || (x[axis] >= 0 && a.k > x[axis])))
      return InvalidArgument("k is ", a.k, ", expected 0 to ", x[axis], " for X ", x.ToString(),
                             " and axis ", a.axis);
    out[axis] = a.known ? a.k : -1;
  } else if (a.known) {
    if (a.k != 1) return InvalidArgument("k is ", a.k, ", expected 1 for a scalar X");
  }
  HEDDLE_RETURN_IF_ERROR(set(out));
  if (ctx.HasOut("Out")) ctx.ShareLoD("X", "Out");
  if (ctx.HasOut("Indices")) ctx.ShareLoD("X", "Indices");
  return Status::Ok();
}

// The positions of the first k in `order`, best first; of equal elements the earlier comes first.
template <typename T, bool kLargest>
void Select(const T* x, int64_t stride, int64_t n, int64_t k, int64_t* order) {
  const auto before = [&](int64_t a, int64_t b) {
    const T va = x[a * stride], vb = x[b * stride];
    if (kLargest ? Greater(va, vb) : Less(va, vb)) return true;
    if (kLargest ? Greater(vb, va) : Less(vb, va)) return false;
    return a < b;
  };
  if (k == 1) {
    int64_t best = 0;
    for (const auto part : Stretches(Stretches::Range{1, n}))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (kLargest ? Greater(x[i * stride], x[best * stride])
                     : Less(x[i * stride], x[best * stride]))
          best = i;
    order[0] = best;
    return;
  }
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) order[i] = i;
  LookCount looks;
  std::partial_sort(order, order + k, order + n, looks.In(before));
}

// `out` and `indices` may be null.
template <typename T, bool kLargest>
void RunLines(const KernelContext& ctx, const AxisLines& lines, int64_t k, const T* x, T* out,
              Tensor* indices) {
  if (k == 0) return;
  const int64_t grain = std::max<int64_t>(1, (1 << 12) / std::max<int64_t>(1, lines.n));
  ctx.ParallelFor(lines.lines(), grain, [&](int64_t begin, int64_t end) {
    const Tensor scratch = k > 1 ? ctx.Scratch(DType::kI64, Shape{lines.n}) : Tensor();
    int64_t one = 0;
    int64_t* order = k > 1 ? const_cast<int64_t*>(scratch.data<int64_t>()) : &one;
    const AxisLines to{lines.outer, k, lines.inner};
    for (int64_t l = begin; l < end; ++l) {
      const T* from = x + lines.Begin(l);
      const int64_t at = to.Begin(l);
      Select<T, kLargest>(from, lines.inner, lines.n, k, order);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t place = at + i * lines.inner;
        if (out != nullptr) out[place] = from[order[i] * lines.inner];
        if (indices == nullptr) continue;
        if (indices->dtype() == DType::kI64)
          indices->mutable_data<int64_t>()[place] = order[i];
        else
          indices->mutable_data<int32_t>()[place] = static_cast<int32_t>(order[i]);
      }
    }
  });
}

template <typename T>
struct TopK {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    Tensor *out = ctx.OutOpt("Out"), *indices = ctx.OutOpt("Indices");
    HEDDLE_ASSIGN_OR_RETURN(const TopKAttrs a, ReadAttrs(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), a.axis));
    if (a.k < 0 || a.k > lines.n) return InvalidArgument("k is ", a.k, ", expected 0 to ", lines.n);
    const T* from = x.data<T>();
    T* to = out == nullptr ? nullptr : out->mutable_data<T>();
    if (a.largest)
      RunLines<T, true>(ctx, lines, a.k, from, to, indices);
    else
      RunLines<T, false>(ctx, lines, a.k, from, to, indices);
    return Status::Ok();
  }
};

void DefineTopK(OpDef& op) {
  op.Input("X").Input("K", kOptional | kShapeValue).Output("Out");
  op.Output("Indices").Attr("k", 1);
  op.InferShape(&InferTopK);
  op.Kernels<TopK, float, double, int32_t, int64_t, float16, bfloat16, uint8_t, int8_t, int16_t>();
}

void DefineTopKGrad(OpDef& op) {
  DefinePickGradSlots(op);
  op.Input("K", kOptional).Attr("k", 1);
  op.Kernels<PickGrad, float, double, int32_t, int64_t, float16, bfloat16>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(top_k_v2) {
  op.Doc("the k greatest (or smallest) elements along an axis, and their positions");
  DefineTopK(op);
  op.Attr("axis", -1).Attr("largest", true).Attr("sorted", true).Attr("index_type", 3);
}

HEDDLE_OP(top_k) {
  op.Doc("the k greatest elements of each row, and their positions");
  DefineTopK(op);
}

HEDDLE_OP(top_k_v2_grad) {
  op.Doc("gradient of top_k_v2");
  DefineTopKGrad(op);
  op.Attr("axis", -1).Attr("largest", true).Attr("sorted", true);
}

HEDDLE_OP(top_k_grad) {
  op.Doc("gradient of top_k");
  DefineTopKGrad(op);
}
