// Columns of blocks added up to images of any rank.
#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct Columns {
  int rank = 0;
  ShortInts image, block, strides, pads, dilations;
  Shape places;  // of blocks along each axis
};

template <typename Context>
Result<Columns> ColumnsOf(const Context& ctx) {
  Columns c;
  HEDDLE_ASSIGN_OR_RETURN(c.image, IntsIn(ctx, "image_shape"));
  HEDDLE_ASSIGN_OR_RETURN(c.block, IntsIn(ctx, "block_shape"));
  c.rank = static_cast<int>(c.image.size());
  if (c.rank < 1 || c.rank > Shape::kMaxRank - 2)
    return InvalidArgument("image_shape has ", c.rank, " elements, expected 1 to ",
                           Shape::kMaxRank - 2);
  if (c.block.size() != c.image.size())
    return InvalidArgument("block_shape has ", c.block.size(), " elements, image_shape ", c.rank);
  HEDDLE_ASSIGN_OR_RETURN(c.strides, ListOr(ctx.IntList("strides"), c.rank, 1, "strides"));
  HEDDLE_ASSIGN_OR_RETURN(c.pads, ListOr(ctx.IntList("pads"), 2 * c.rank, 0, "pads"));
  HEDDLE_ASSIGN_OR_RETURN(c.dilations, ListOr(ctx.IntList("dilations"), c.rank, 1, "dilations"));
  constexpr int64_t kMost = int64_t{1} << 31;
  for (size_t i = 0; i < c.image.size(); ++i) {
    for (const int64_t v : {c.image[i], c.block[i], c.strides[i], c.dilations[i], c.pads[i],
                            c.pads[i + c.image.size()]})
      if (v < -kMost || v > kMost)
        return InvalidArgument("a size, stride, dilation or padding of axis ", i, " is ", v,
                               ", expected at most ", kMost);
    const int64_t pads = c.pads[i] + c.pads[i + c.image.size()];
    const int64_t reach = c.dilations[i] * (c.block[i] - 1) + 1;
    if (c.image[i] < 0 || c.block[i] < 1 || c.strides[i] < 1 || c.dilations[i] < 1 ||
        c.pads[i] < 0 || pads < 0 || c.image[i] + pads < reach)
      return InvalidArgument("blocks of ", c.block[i], " do not fit ", c.image[i], " along axis ",
                             i);
    c.places.push_back((c.image[i] + pads - reach) / c.strides[i] + 1);
  }
  return c;
}

Status Col2imShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static() || !Known(ctx, "image_shape") || !Known(ctx, "block_shape"))
    return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckRank(x, 3, "input"));
  HEDDLE_ASSIGN_OR_RETURN(const Columns c, ColumnsOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const Shape block, MakeShape(c.block, "block_shape"));
  if (x[1] % block.numel() != 0 || x[2] != c.places.numel())
    return InvalidArgument("input ", x.ToString(), " does not hold blocks ", block.ToString(),
                           " at ", c.places.numel(), " places");
  ShortInts dims{x[0], x[1] / block.numel()};
  for (const int64_t d : c.image) dims.push_back(d);
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims, "image_shape"));
  ctx.SetOut("output", out, ctx.InDType("input"));
  return Status::Ok();
}

template <typename T>
struct Col2im {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    Tensor& out = ctx.Out("output");
    HEDDLE_ASSIGN_OR_RETURN(const Columns c, ColumnsOf(ctx));
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
    const Shape image(std::span<const int64_t>(c.image)), block(std::span<const int64_t>(c.block));
    const auto strides = RowMajorStrides(image);
    const T* from = x.data<T>();
    T* to = out.mutable_data<T>();
    const Walk<1>::Strides none{};
    ctx.ParallelFor(out.dim(0) * out.dim(1), 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* column = from + plane * block.numel() * c.places.numel();
        T* pixels = to + plane * image.numel();
        Walk<1> tap(block, {none});
        for (int64_t k = 0; k < block.numel(); ++k, tap.Next()) {
          Walk<1> place(c.places, {none});
          const int64_t places = c.places.numel();
          for (const int64_t l : Watched(places)) {
            if (l > 0) place.Next();
            int64_t at = 0;
            bool inside = true;
            for (int i = 0; i < c.rank; ++i) {
              const auto j = static_cast<size_t>(i);
              const int64_t p =
                  place.index(i) * c.strides[j] + tap.index(i) * c.dilations[j] - c.pads[j];
              inside = inside && p >= 0 && p < c.image[j];
              at += p * strides[i];
            }
            if (inside) pixels[at] += column[k * places + l];
          }
        }
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(col2im) {
  op.Doc("images from columns that hold their blocks; where those overlap, values add up");
  op.Input("input").Input("image_shape", kShapeValue).Input("block_shape", kShapeValue);
  op.Output("output").Attr("strides", Ints{}).Attr("pads", Ints{}).Attr("dilations", Ints{});
  op.InferShape(Col2imShape).Kernels<Col2im, float, double, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
