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

// Whether the channels of one place in a square lie together, else those of one channel of its
// pixels do.
bool PlacesFirst(const OpContext& ctx) { return ctx.Str("mode") == "DCR"; }

Status CheckMode(const OpContext& ctx) {
  if (const std::string& format = ctx.Str("data_format"); format != "NCHW" && format != "NHWC")
    return InvalidArgument("data_format is '", format, "', expected NCHW or NHWC");
  if (const std::string& mode = ctx.Str("mode"); mode != "CRD" && mode != "DCR")
    return InvalidArgument("mode is '", mode, "', expected CRD or DCR");
  return Status::Ok();
}

// Channels become pixels: factor² channels of one pixel make a square of pixels.
Status ToPixels(const Shape& x, int64_t r, bool last, bool places_first, Shuffle* s) {
  const int64_t c = x[last ? 3 : 1], h = x[last ? 1 : 2], w = x[last ? 2 : 3];
  if (!Divides(r * r, c))
    return InvalidArgument(c, " channels cannot be divided into squares of ", r, " by ", r);
  const int64_t k = Over(c, r * r);
  if (places_first) {
    s->split = last ? Shape{x[0], h, w, r, r, k} : Shape{x[0], r, r, k, h, w};
    s->perm = last ? std::array<int, 6>{0, 1, 3, 2, 4, 5} : std::array<int, 6>{0, 3, 4, 1, 5, 2};
  } else {
    s->split = last ? Shape{x[0], h, w, k, r, r} : Shape{x[0], k, r, r, h, w};
    s->perm = {0, 1, 4, 2, 5, 3};
  }
  s->out =
      last ? Shape{x[0], Times(h, r), Times(w, r), k} : Shape{x[0], k, Times(h, r), Times(w, r)};
  return Status::Ok();
}

// And back.
Status ToChannels(const Shape& x, int64_t r, bool last, bool places_first, Shuffle* s) {
  const int64_t c = x[last ? 3 : 1], h = x[last ? 1 : 2], w = x[last ? 2 : 3];
  if (!Divides(r, h) || !Divides(r, w))
    return InvalidArgument("pixels of ", x.ToString(), " cannot be divided into squares of ", r,
                           " by ", r);
  const int64_t oh = Over(h, r), ow = Over(w, r);
  s->split = last ? Shape{x[0], oh, r, ow, r, c} : Shape{x[0], c, oh, r, ow, r};
  s->perm = {0, 1, 3, 5, 2, 4};
  if (places_first)
    s->perm = last ? std::array<int, 6>{0, 1, 3, 2, 4, 5} : std::array<int, 6>{0, 3, 5, 1, 2, 4};
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
  HEDDLE_RETURN_IF_ERROR(CheckMode(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("upscale_factor"), x, "upscale_factor"));
  return ToPixels(x, ctx.Int("upscale_factor"), ChannelsLast(ctx), PlacesFirst(ctx), s);
}
Status PixelShuffleGrad(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckMode(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("upscale_factor"), x, "upscale_factor"));
  return ToChannels(x, ctx.Int("upscale_factor"), ChannelsLast(ctx), PlacesFirst(ctx), s);
}
Status PixelUnshuffle(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckMode(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("downscale_factor"), x, "downscale_factor"));
  return ToChannels(x, ctx.Int("downscale_factor"), ChannelsLast(ctx), PlacesFirst(ctx), s);
}
Status PixelUnshuffleGrad(const OpContext& ctx, const Shape& x, Shuffle* s) {
  HEDDLE_RETURN_IF_ERROR(CheckMode(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckFactor(ctx.Int("downscale_factor"), x, "downscale_factor"));
  return ToPixels(x, ctx.Int("downscale_factor"), ChannelsLast(ctx), PlacesFirst(ctx), s);
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
      .Doc(
          "upscale_factor² channels of a pixel become a square of pixels; in mode DCR those of one "
          "place lie together")
      .Attr("upscale_factor", 1)
      .Attr("mode", "CRD")
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(pixel_shuffle_grad) {
  Shuffled<BackwardSlots, PixelShuffleGrad>::Declare(op)
      .Attr("upscale_factor", 1)
      .Attr("mode", "CRD")
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(pixel_unshuffle) {
  Shuffled<ForwardSlots, PixelUnshuffle>::Declare(op)
      .Doc(
          "a square of pixels becomes downscale_factor² channels of one pixel; in mode DCR those "
          "of "
          "one place lie together")
      .Attr("downscale_factor", 1)
      .Attr("mode", "CRD")
      .Attr("data_format", "NCHW");
}
HEDDLE_OP(pixel_unshuffle_grad) {
  Shuffled<BackwardSlots, PixelUnshuffleGrad>::Declare(op)
      .Attr("downscale_factor", 1)
      .Attr("mode", "CRD")
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
