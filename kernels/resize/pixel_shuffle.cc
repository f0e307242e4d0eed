// pixel_shuffle, pixel_unshuffle, channel_shuffle and shuffle_channel: each is a transpose of the
// tensor seen with more dimensions.
#include "core/shapes.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// X seen as `split`, its axes then in the order `perm`, and seen as `out`.
struct Shuffle {
  Shape split, out;
  std::array<int, 6> perm{};
};
using MakeFn = Status (*)(const OpContext&, const Shape&, Shuffle*);

bool ChannelsLast(const OpContext& ctx) { return ctx.Str("data_format") == "NHWC"; }

int64_t Over(int64_t a, int64_t b) { return a < 0 ? -1 : a / b; }
int64_t Times(int64_t a, int64_t b) { return a < 0 ? -1 : a * b; }
bool Divides(int64_t b, int64_t a) { return a < 0 || a % b == 0; }

Status CheckFactor(int64_t factor, const Shape& x, const char* name) {
  if (factor < 1 || factor > 1 << 16) return InvalidArgument("'", name, "' is ", factor);
  if (x.rank() != 4)
    return InvalidArgument("the tensor must have four dimensions, not the shape ", x.ToString());
  return Status::Ok();
}

// Channels become pixels: factor² channels of one pixel make a square of pixels.
Status ToPixels(const Shape& x, int64_t r, bool last, Shuffle* s) {
  const int64_t c = x[last ? 3 : 1], h = x[last ? 1 : 2], w = x[last ? 2 : 3];
  if (!Divides(r * r, c))
    return InvalidArgument(c, " channels cannot be divided into squares of ", r, " by ", r);
  const int64_t k = Over(c, r * r);
  s->split = last ? Shape{x[0], h, w, k, r, r} : Shape{x[0], k, r, r, h, w};
  s->perm = {0, 1, 4, 2, 5, 3};
  s->out =
      last ? Shape{x[0], Times(h, r), Times(w, r), k} : Shape{x[0], k, Times(h, r), Times(w, r)};
  return Status::Ok();
}

// And back.
Status ToChannels(const Shape& x, int64_t r, bool last, Shuffle* s) {
  const int64_t c = x[last ? 3 : 1], h = x[last ? 1 : 2], w = x[last ? 2 : 3];
  if (!Divides(r, h) || !Divides(r, w))
    return InvalidArgument("pixels of ", x.ToString(), " cannot be divided into squares of ", r,
                           " by ", r);
  const int64_t oh = Over(h, r), ow = Over(w, r);
  s->split = last ? Shape{x[0], oh, r, ow, r, c} : Shape{x[0], c, oh, r, ow, r};
  s->perm = {0, 1, 3, 5, 2, 4};
  s->out = last ? Shape{x[0], oh, ow, Times(c, r * r)} : Shape{x[0], Times(c, r * r), oh, ow};
  return Status::Ok();
}

// Channels as a matrix of `groups` rows, transposed.
Status Mix(const Shape& x, int64_t rows, bool by_rows, bool last, Shuffle* s) {
  const int64_t c = x[last ? 3 : 1];
  if (!Divides(rows, c)) return InvalidArgument(c, " channels cannot be divided into ", rows);
  const int64_t a = by_rows ? rows : Over(c, rows), b = by_rows ? Over(c, rows) : rows;
  s->out = x;
  s->split = last ? Shape{x[0], x[1], x[2], a, b, 1} : Shape{x[0], a, b, x[2], x[3], 1};
  s->perm = last ? std::array<int, 6>{0, 1, 2, 4, 3, 5} : std::array<int, 6>{0, 2, 1, 3, 4, 5};
  return Status::Ok();
}

Status PixelShuffle(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("upscale_factor"), x, "upscale_factor"));
  return ToPixels(x, ctx.Int("upscale_factor"), ChannelsLast(ctx), s);
}
Status PixelShuffleGrad(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("upscale_factor"), x, "upscale_factor"));
  return ToChannels(x, ctx.Int("upscale_factor"), ChannelsLast(ctx), s);
}
Status PixelUnshuffle(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("downscale_factor"), x, "downscale_factor"));
  return ToChannels(x, ctx.Int("downscale_factor"), ChannelsLast(ctx), s);
}
Status PixelUnshuffleGrad(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("downscale_factor"), x, "downscale_factor"));
  return ToPixels(x, ctx.Int("downscale_factor"), ChannelsLast(ctx), s);
}
Status ChannelShuffle(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("groups"), x, "groups"));
  return Mix(x, ctx.Int("groups"), true, ChannelsLast(ctx), s);
}
Status ChannelShuffleGrad(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("groups"), x, "groups"));
  return Mix(x, ctx.Int("groups"), false, ChannelsLast(ctx), s);
}
Status ShuffleChannel(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("group"), x, "group"));
  return Mix(x, ctx.Int("group"), true, false, s);
}
Status ShuffleChannelGrad(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("group"), x, "group"));
  return Mix(x, ctx.Int("group"), false, false, s);
}

struct ForwardSlots {
  static constexpr Key kIn = "X";
  static constexpr Key kOut = "Out";
};
struct BackwardSlots {
  static constexpr Key kIn = "Out@GRAD";
  static constexpr Key kOut = "X@GRAD";
};

template <typename Slots, MakeFn kMake>
struct Shuffled {
  static Status Shapes(ShapeContext& ctx) {
    const Shape& x = ctx.InShape(Slots::kIn);
    if (!x.known_rank()) return ctx.Defer();
    Shuffle s;
    HEDDLE_RETURN_IF_ERROR(kMake(ctx, x, &s));
    ctx.SetOut(Slots::kOut, s.out, ctx.InDType(Slots::kIn));
    return Status::Ok();
  }
  static StridedCopy Build(const OpContext& ctx, const Tensor& x) {
    Shuffle s;
    (void)kMake(ctx, x.shape(), &s);  // checked with the shapes
    return PermuteCopy(SizeOf(x.dtype()), s.split, s.perm);
  }
  static Result<std::unique_ptr<KernelState>> Prepare(PrepareContext& ctx) {
    return std::unique_ptr<KernelState>(new CopyState(Build(ctx, ctx.InVar(Slots::kIn)->tensor())));
  }
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In(Slots::kIn);
    Tensor& out = ctx.Out(Slots::kOut);
    if (ctx.has_state())
      ctx.State<CopyState>().copy.Run(ctx, x.raw(), out.mutable_raw());
    else
      Build(ctx, x).Run(ctx, x.raw(), out.mutable_raw());
    return Status::Ok();
  }
  static OpDef& Declare(OpDef& op) {
    return op.Input(Slots::kIn.name)
        .Output(Slots::kOut.name)
        .InferShape(Shapes)
        .Prepare(Prepare)
        .AnyKernel(Run);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(pixel_shuffle) {
  Shuffled<ForwardSlots, PixelShuffle>::Declare(op)
      .Doc("upscale_factor² channels of a pixel become a square of pixels.")
      .Attr("upscale_factor", 1)
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(pixel_shuffle_grad) {
  Shuffled<BackwardSlots, PixelShuffleGrad>::Declare(op)
      .Attr("upscale_factor", 1)
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(pixel_unshuffle) {
  Shuffled<ForwardSlots, PixelUnshuffle>::Declare(op)
      .Doc("A square of pixels becomes downscale_factor² channels of one pixel.")
      .Attr("downscale_factor", 1)
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(pixel_unshuffle_grad) {
  Shuffled<BackwardSlots, PixelUnshuffleGrad>::Declare(op)
      .Attr("downscale_factor", 1)
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(channel_shuffle) {
  Shuffled<ForwardSlots, ChannelShuffle>::Declare(op)
      .Doc("Channels taken from the groups in turn.")
      .Attr("groups", 1)
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(channel_shuffle_grad) {
  Shuffled<BackwardSlots, ChannelShuffleGrad>::Declare(op)
      .Attr("groups", 1)
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(shuffle_channel) {
  Shuffled<ForwardSlots, ShuffleChannel>::Declare(op)
      .Doc("Channels taken from the groups in turn (NCHW).")
      .Attr("group", 1);
}
HEDDLE_OP(shuffle_channel_grad) {
  Shuffled<BackwardSlots, ShuffleChannelGrad>::Declare(op).Attr("group", 1);
}

HEDDLE_EXAMPLES(pixel_shuffle, R"(
example float32 3x2x3x4, data_format NHWC, upscale_factor 2
attr data_format STRING "NHWC"
attr upscale_factor INT 2
in X float32 [3, 2, 3, 4] 0.21 0.56 -0.61 0.97 -0.36 -0.58 -0.55 -0.31 0.45 0.54 -0.88 -0.96 -0.94
  0.51 0.81 0.92 -0.01 0.94 0.64 0.75 -0.12 0.7 0.37 0.05 0.59 -0.23 -0.69 0.4 0.43 -0.74 0.07 0.29
  -0.47 0.62 0.15 0.24 -0.28 0.89 -0.83 0.73 0.13 -0.72 -0.53 0.48 -0.15 -0.34 -0.17 0.18 -0.39 0.26
  -0.25 0.67 0.02 0.34 -0.8 -0.77 0.78 -0.66 -0.09 -0.64 -0.45 -0.42 -0.04 0.83 0.32 -0.06 -0.85
  0.86 -0.91 -0.2 -0.5 0.1
out Out float32 [3, 4, 6, 1] 0.21 0.56 -0.36 -0.58 0.45 0.54 -0.61 0.97 -0.55 -0.31 -0.88 -0.96
  -0.94 0.51 -0.01 0.94 -0.12 0.7 0.81 0.92 0.64 0.75 0.37 0.05 0.59 -0.23 0.43 -0.74 -0.47 0.62
  -0.69 0.4 0.07 0.29 0.15 0.24 -0.28 0.89 0.13 -0.72 -0.15 -0.34 -0.83 0.73 -0.53 0.48 -0.17 0.18
  -0.39 0.26 0.02 0.34 0.78 -0.66 -0.25 0.67 -0.8 -0.77 -0.09 -0.64 -0.45 -0.42 0.32 -0.06 -0.91
  -0.2 -0.04 0.83 -0.85 0.86 -0.5 0.1

example float64 3x2x3x4, data_format NHWC, upscale_factor 2
attr data_format STRING "NHWC"
attr upscale_factor INT 2
in X float64 [3, 2, 3, 4] 0.21 0.56 -0.61 0.97 -0.36 -0.58 -0.55 -0.31 0.45 0.54 -0.88 -0.96 -0.94
  0.51 0.81 0.92 -0.01 0.94 0.64 0.75 -0.12 0.7 0.37 0.05 0.59 -0.23 -0.69 0.4 0.43 -0.74 0.07 0.29
  -0.47 0.62 0.15 0.24 -0.28 0.89 -0.83 0.73 0.13 -0.72 -0.53 0.48 -0.15 -0.34 -0.17 0.18 -0.39 0.26
  -0.25 0.67 0.02 0.34 -0.8 -0.77 0.78 -0.66 -0.09 -0.64 -0.45 -0.42 -0.04 0.83 0.32 -0.06 -0.85
  0.86 -0.91 -0.2 -0.5 0.1
out Out float64 [3, 4, 6, 1] 0.21 0.56 -0.36 -0.58 0.45 0.54 -0.61 0.97 -0.55 -0.31 -0.88 -0.96
  -0.94 0.51 -0.01 0.94 -0.12 0.7 0.81 0.92 0.64 0.75 0.37 0.05 0.59 -0.23 0.43 -0.74 -0.47 0.62
  -0.69 0.4 0.07 0.29 0.15 0.24 -0.28 0.89 0.13 -0.72 -0.15 -0.34 -0.83 0.73 -0.53 0.48 -0.17 0.18
  -0.39 0.26 0.02 0.34 0.78 -0.66 -0.25 0.67 -0.8 -0.77 -0.09 -0.64 -0.45 -0.42 0.32 -0.06 -0.91
  -0.2 -0.04 0.83 -0.85 0.86 -0.5 0.1
)")

HEDDLE_EXAMPLES(pixel_unshuffle, R"(
example float32 1x3x3x1, data_format NHWC, downscale_factor 3
attr data_format STRING "NHWC"
attr downscale_factor INT 3
in X float32 [1, 3, 3, 1] -0.36 0.33 0.16 -0.53 -0.01 0.67 -0.7 0.5 -0.19
out Out float32 [1, 1, 1, 9] -0.36 0.33 0.16 -0.53 -0.01 0.67 -0.7 0.5 -0.19

example float64 2x3x3x1, data_format NHWC, downscale_factor 3
attr data_format STRING "NHWC"
attr downscale_factor INT 3
in X float64 [2, 3, 3, 1] 0.631 0.053 0.894 0.21 0.368 0.316 0.789 0.683 0.841 0.263 0.105 0.526
  0.736 0.158 0.578 0.473 0.946 0.421
out Out float64 [2, 1, 1, 9] 0.631 0.053 0.894 0.21 0.368 0.316 0.789 0.683 0.841 0.263 0.105 0.526
  0.736 0.158 0.578 0.473 0.946 0.421

example float32 1x3x4x2, downscale_factor 2
attr downscale_factor INT 2
in X float32 [1, 3, 4, 2] -0.83 0.52 0.67 -0.51 -0.43 0.04 0.2 0.36 -0.19 0.12 -0.04 0.75 -0.27
  -0.12 0.83 -0.67 -0.35 -0.75 0.44 0.28 0.91 -0.59 0.6 -0.91
out Out float32 [1, 12, 2, 1] -0.83 -0.43 0.52 0.04 0.67 0.2 -0.51 0.36 -0.19 -0.27 0.12 -0.12 -0.04
  0.83 0.75 -0.67 -0.35 0.91 -0.75 -0.59 0.44 0.6 0.28 -0.91
)")

HEDDLE_EXAMPLES(pixel_unshuffle_grad, R"(
example float64 2x1x1x9, data_format NHWC, downscale_factor 3
attr data_format STRING "NHWC"
attr downscale_factor INT 3
in Out@GRAD float64 [2, 1, 1, 9] -0.4 -0.5 0.9 0.8 0.4 0.1 0.1 -0.6 0.5 0.8 0.4 -0 -0.1 0.6 0.7 -0.5
  0.9 -0.9
out X@GRAD float64 [2, 3, 3, 1] -0.4 -0.5 0.9 0.8 0.4 0.1 0.1 -0.6 0.5 0.8 0.4 -0 -0.1 0.6 0.7 -0.5
  0.9 -0.9

example float64 1x12x2x1, downscale_factor 2
attr downscale_factor INT 2
in Out@GRAD float64 [1, 12, 2, 1] -0.8 0.9 -0 -0.5 0.1 -0.4 0.7 -0.9 -0.8 0.5 -0.9 0.6 -1 0.2 0.6
  0.8 1 -0 -0.3 0.7 -0.2 0.3 -1 0.6
out X@GRAD float64 [1, 3, 4, 2] -0.8 -0 0.1 0.7 0.9 -0.5 -0.4 -0.9 -0.8 -0.9 -1 0.6 0.5 0.6 0.2 0.8
  1 -0.3 -0.2 -1 -0 0.7 0.3 0.6

example float32 2x1x1x9, data_format NHWC, downscale_factor 3
attr data_format STRING "NHWC"
attr downscale_factor INT 3
in Out@GRAD float32 [2, 1, 1, 9] -0.4 -0.5 0.9 0.8 0.4 0.1 0.1 -0.6 0.5 0.8 0.4 -0 -0.1 0.6 0.7 -0.5
  0.9 -0.9
out X@GRAD float32 [2, 3, 3, 1] -0.4 -0.5 0.9 0.8 0.4 0.1 0.1 -0.6 0.5 0.8 0.4 -0 -0.1 0.6 0.7 -0.5
  0.9 -0.9
)")

HEDDLE_EXAMPLES(channel_shuffle, R"(
example float32 1x1x3x2, data_format NHWC, groups 2
attr data_format STRING "NHWC"
attr groups INT 2
in X float32 [1, 1, 3, 2] -0.7 -0.16 0.12 0.39 0.66 -0.43
out Out float32 [1, 1, 3, 2] -0.7 -0.16 0.12 0.39 0.66 -0.43

example float32 1x2x4x2, data_format NCHW, groups 2
attr data_format STRING "NCHW"
attr groups INT 2
in X float32 [1, 2, 4, 2] 0.05 -0.39 -0.5 -0.72 0.38 -0.17 0.71 -0.83 0.82 0.16 0.49 -0.28 0.6 -0.06
  -0.61 0.27
out Out float32 [1, 2, 4, 2] 0.05 -0.39 -0.5 -0.72 0.38 -0.17 0.71 -0.83 0.82 0.16 0.49 -0.28 0.6
  -0.06 -0.61 0.27

example float64 1x1x3x2, data_format NHWC, groups 2
attr data_format STRING "NHWC"
attr groups INT 2
in X float64 [1, 1, 3, 2] -0.7 -0.16 0.12 0.39 0.66 -0.43
out Out float64 [1, 1, 3, 2] -0.7 -0.16 0.12 0.39 0.66 -0.43
)")

HEDDLE_EXAMPLES(channel_shuffle_grad, R"(
example float64 1x1x3x2, data_format NHWC, groups 2
attr data_format STRING "NHWC"
attr groups INT 2
in Out@GRAD float64 [1, 1, 3, 2] 0.9 -0.1 -0.6 0.2 0.2 0.4
out X@GRAD float64 [1, 1, 3, 2] 0.9 -0.1 -0.6 0.2 0.2 0.4

example float32 1x1x3x2, data_format NHWC, groups 2
attr data_format STRING "NHWC"
attr groups INT 2
in Out@GRAD float32 [1, 1, 3, 2] 0.9 -0.1 -0.6 0.2 0.2 0.4
out X@GRAD float32 [1, 1, 3, 2] 0.9 -0.1 -0.6 0.2 0.2 0.4
)")

HEDDLE_EXAMPLES(shuffle_channel, R"(
example float32 2x2x2x2, group 2
attr group INT 2
in X float32 [2, 2, 2, 2] 0.353 0.177 0.823 0.588 0.412 0.941 0.294 0.647 0.529 0.765 0.118 0.706
  0.059 0.882 0.471 0.235
out Out float32 [2, 2, 2, 2] 0.353 0.177 0.823 0.588 0.412 0.941 0.294 0.647 0.529 0.765 0.118 0.706
  0.059 0.882 0.471 0.235
)")

HEDDLE_EXAMPLES(shuffle_channel_grad, R"(
example float32
attr group INT 2
in Out@GRAD float32 [1, 6, 1, 2] -0.3 0.41 -0.32 0.75 -0.15 0.21 -0.75 -0.39 -0.86 0.98 0.21 -0.53
from reshape2 X=Out@GRAD -> Out=a XShape=s1
attr shape INTS [1, 3, 2, 2]
from transpose2 X=a -> Out=b XShape=s2
attr axis INTS [0, 2, 1, 3]
from reshape2 X=b -> Out=X@GRAD XShape=s3
attr shape INTS [1, 6, 1, 2]
out X@GRAD float32 [1, 6, 1, 2] -0.3 0.41 -0.15 0.21 -0.86 0.98 -0.32 0.75 -0.75 -0.39 0.21 -0.53

example float64
attr group INT 2
in Out@GRAD float64 [1, 6, 1, 2] 0.69 -0.78 0.65 0.62 0.57 0.46 -0.77 0.76 0.4 -0.72 0.05 0.74
from reshape2 X=Out@GRAD -> Out=a XShape=s1
attr shape INTS [1, 3, 2, 2]
from transpose2 X=a -> Out=b XShape=s2
attr axis INTS [0, 2, 1, 3]
from reshape2 X=b -> Out=X@GRAD XShape=s3
attr shape INTS [1, 6, 1, 2]
out X@GRAD float64 [1, 6, 1, 2] 0.69 -0.78 0.57 0.46 0.4 -0.72 0.65 0.62 -0.77 0.76 0.05 0.74
)")

HEDDLE_EXAMPLES(pixel_shuffle_grad, R"(
example float32
attr upscale_factor INT 2
attr data_format STRING "NCHW"
in Out@GRAD float32 [1, 1, 4, 2] 0.35 -0.16 0.36 -0.56 0.1 0.7 0.47 -0
out X@GRAD float32 [1, 4, 2, 1] 0.35 0.1 -0.16 0.7 0.36 0.47 -0.56 -0

example float32, channels last
attr upscale_factor INT 2
attr data_format STRING "NHWC"
in Out@GRAD float32 [1, 2, 2, 2] -0.24 0.58 -0.66 0.17 -0.14 -0.88 -0.42 0.47
out X@GRAD float32 [1, 1, 1, 8] -0.24 -0.66 -0.14 -0.42 0.58 0.17 -0.88 0.47

example float64
attr upscale_factor INT 2
attr data_format STRING "NCHW"
in Out@GRAD float64 [1, 1, 4, 2] -0.17 -0.63 0.73 -0.09 -0.7 -0.28 -0.22 0.27
out X@GRAD float64 [1, 4, 2, 1] -0.17 -0.7 -0.63 -0.28 0.73 -0.22 -0.09 0.27

example float64, channels last
attr upscale_factor INT 2
attr data_format STRING "NHWC"
in Out@GRAD float64 [1, 2, 2, 2] 0.96 -0.24 0.34 0.65 0.88 -0.78 -0 -0.64
out X@GRAD float64 [1, 1, 1, 8] 0.96 0.34 0.88 -0 -0.24 0.65 -0.78 -0.64
)")
