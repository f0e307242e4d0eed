// Transposed convolutions over any number of dimensions.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/check.h"
#include "kernels/conv_ops/convolve.h"

namespace heddle {
namespace {

// The convolution whose input is this operator's output.
template <typename Context>
Result<Convolution> TransposedOf(const Context& ctx) {
  const Shape &x = ShapeIn(ctx, "X"), &w = ShapeIn(ctx, "W");
  HEDDLE_ASSIGN_OR_RETURN(const Shape in, SpatialOf(x, "X"));
  const int rank = in.rank();
  HEDDLE_ASSIGN_OR_RETURN(const Shape kernel, KernelOf(ctx, &w, rank));
  Convolution c;
  c.batch = x[0];
  c.out_channels = x[1];
  c.groups = ctx.Int("group");
  if (c.groups < 1 || x[1] % c.groups != 0 || w[0] != x[1])
    return InvalidArgument("a filter ", w.ToString(), " in ", c.groups,
                           " groups does not fit the input ", x.ToString());
  c.in_channels = w[1] * c.groups;
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts strides,
                          ListOr(ctx.IntList("strides"), rank, 1, "strides"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dilations,
                          ListOr(ctx.IntList("dilations"), rank, 1, "dilations"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts pads, ListOr(ctx.IntList("pads"), 2 * rank, 0, "pads"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts more,
                          ListOr(ctx.IntList("output_padding"), rank, 0, "output_padding"));
  const Ints& given = ctx.IntList("output_shape");
  // Some exporters name the batch and the channels, too.
  const size_t skip = given.size() == static_cast<size_t>(rank) + 2 ? 2 : 0;
  if (!given.empty() && given.size() != static_cast<size_t>(rank) + skip)
    return InvalidArgument("output_shape has ", given.size(), " elements, expected ", rank);
  const std::string& auto_pad = ctx.Str("auto_pad");
  const bool upper = auto_pad == "SAME_UPPER", same = upper || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    return InvalidArgument("auto_pad is '", auto_pad,
                           "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  Windows& win = c.windows;
  win.rank = rank;
  win.kernel = kernel;
  win.out = in;
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    constexpr int64_t kMost = int64_t{1} << 31;  // products of two do not overflow
    const auto unusable = [](int64_t pad) { return pad < -kMost || pad > kMost; };
    if (strides[at] < 1 || dilations[at] < 1 || strides[at] > kMost || dilations[at] > kMost ||
        unusable(pads[at]) || unusable(pads[at + static_cast<size_t>(rank)]) || more[at] < 0 ||
        more[at] > kMost)
      return InvalidArgument("stride ", strides[at], ", dilation ", dilations[at],
                             " and the padding of axis ", i, " cannot be used");
    win.stride[at] = strides[at];
    win.dilation[at] = dilations[at];
    const int64_t full = strides[at] * (in[i] - 1) + more[at] + (kernel[i] - 1) * dilations[at] + 1;
    int64_t out = full;
    if (!given.empty() || same) {
      out = !given.empty() ? given[at + skip] : in[i] * strides[at];
      // Windows smaller than their stride leave gaps: a padding below zero moves the result.
      const int64_t total = same ? full - out : std::max<int64_t>(0, full - out);
      const int64_t half = total >= 0 ? total / 2 : -((1 - total) / 2);
      win.pad_lo[at] = upper ? half : total - half;
      win.pad_hi[at] = total - win.pad_lo[at];
    } else if (auto_pad != "VALID") {
      win.pad_lo[at] = pads[at];
      win.pad_hi[at] = pads[at + static_cast<size_t>(rank)];
      out = full - win.pad_lo[at] - win.pad_hi[at];
    }
    if (out < 0)
      return InvalidArgument("the padding of axis ", i, " cuts more than the ", full,
                             " elements of the result");
    win.in.push_back(out);
  }
  return c;
}

Status OnnxConvTransposeShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "W", "B"})) return SameRank(ctx, "X", "Y", 1);
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c, TransposedOf(ctx));
  if (ctx.HasIn("B")) HEDDLE_RETURN_IF_ERROR(CheckBias(ctx.InShape("B"), c.in_channels));
  ShortInts dims{c.batch, c.in_channels};
  for (const int64_t d : c.windows.in) dims.push_back(d);
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims, "the result"));
  ctx.SetOut("Y", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct OnnxConvTranspose {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &w = ctx.In("W");
    const Tensor* bias = ctx.InOpt("B");
    Tensor& out = ctx.Out("Y");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&w, bias}));
    HEDDLE_ASSIGN_OR_RETURN(const Convolution c, TransposedOf(ctx));
    const int64_t channels = c.in_channels / c.groups, filters = c.out_channels / c.groups;
    const int64_t places = c.windows.out.numel(), plane = c.windows.in.numel();
    const int64_t depth = c.depth();
    T* y = out.template mutable_data<T>();
    WatchedFill(y, out.numel(), T(0));
    if (filters > 0 && places > 0 && depth > 0) {
      Tensor scratch = ctx.Scratch(kDTypeOf<T>, {depth, places});
      T* columns = scratch.mutable_data<T>();
      const GemmDims dims = GemmDims::Dense(depth, places, filters, true);
      for (const int64_t n : Watched(c.batch))
        for (int64_t g = 0; g < c.groups; ++g) {
          ParallelGemm<T>(ctx, dims, T(1), w.data<T>() + g * filters * depth,
                          x.data<T>() + (n * c.out_channels + g * filters) * places, T(0), columns);
          AddColumns(c.windows, columns, channels, y + (n * c.in_channels + g * channels) * plane);
        }
    }
    if (bias != nullptr) AddBias(bias->data<T>(), c.batch, c.in_channels, plane, y);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_conv_transpose) {
  op.Doc("transposed convolution over any number of dimensions").Input("X").Input("W");
  op.Input("B", kOptional).Output("Y").Attr("group", 1);
  DeclareWindows(op, true);
  op.Attr("output_padding", Ints{}).Attr("output_shape", Ints{});
  op.InferShape(OnnxConvTransposeShape).Kernels<OnnxConvTranspose, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
