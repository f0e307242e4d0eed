#include <algorithm>

#include "kernels/conv/conv.h"

namespace heddle {
namespace {

bool ChannelsLast(const OpContext& ctx) {
  const std::string& format = ctx.Str("data_format");
  return format == "NHWC" || format == "NDHWC";
}

// Copies `list` (one number per spatial dimension) behind the unused leading ones.
Status SpatialList(const Ints& list, int spatial, const char* name, int64_t least,
                   std::array<int64_t, 3>& to) {
  if (static_cast<int>(list.size()) != spatial)
    return InvalidArgument(name, " has ", list.size(), " numbers, expected ", spatial);
  for (int i = 0; i < spatial; ++i) {
    if (list[i] < least)
      return InvalidArgument(name, " holds ", list[i], ", expected at least ", least);
    to[3 - spatial + i] = list[i];
  }
  return Status::Ok();
}

// Strides, dilations and paddings; `size` are the dimensions that SAME padding is worked out for.
Status WindowAttrs(const OpContext& ctx, const std::array<int64_t, 3>& size, ConvGeometry& g) {
  const int first = 3 - g.spatial;
  HEDDLE_RETURN_IF_ERROR(SpatialList(ctx.IntList("strides"), g.spatial, "strides", 1, g.stride));
  HEDDLE_RETURN_IF_ERROR(
      SpatialList(ctx.IntList("dilations"), g.spatial, "dilations", 1, g.dilation));
  const Ints& pads = ctx.IntList("paddings");
  const std::string& algorithm = ctx.Str("padding_algorithm");
  const size_t n = static_cast<size_t>(g.spatial);
  if (pads.size() != n && pads.size() != 2 * n)
    return InvalidArgument("paddings has ", pads.size(), " numbers, expected ", n, " or ", 2 * n);
  for (int i = first; i < 3; ++i) {
    const size_t at = static_cast<size_t>(i - first);
    if (algorithm == "VALID") {
      g.pad_lo[i] = g.pad_hi[i] = 0;
    } else if (algorithm == "SAME" || algorithm == "SAME_DILATED") {
      if (algorithm == "SAME") g.dilation[i] = 1;
      const int64_t steps = (size[i] + g.stride[i] - 1) / g.stride[i];
      const int64_t sum = std::max<int64_t>(
          0, (steps - 1) * g.stride[i] + g.dilation[i] * (g.kernel[i] - 1) + 1 - size[i]);
      g.pad_lo[i] = sum / 2;
      g.pad_hi[i] = sum - sum / 2;
    } else {
      g.pad_lo[i] = pads.size() == n ? pads[at] : pads[2 * at];
      g.pad_hi[i] = pads.size() == n ? pads[at] : pads[2 * at + 1];
    }
  }
  return Status::Ok();
}

struct Side {
  int64_t batch, channels;
  std::array<int64_t, 3> size{1, 1, 1};
};

Side SideOf(const Shape& shape, bool channels_last) {
  const int spatial = shape.rank() - 2;
  Side s{shape[0], shape[channels_last ? shape.rank() - 1 : 1]};
  for (int i = 0; i < spatial; ++i) s.size[3 - spatial + i] = shape[i + (channels_last ? 1 : 2)];
  return s;
}

Shape ShapeOf(const ConvGeometry& g, int64_t channels, const std::array<int64_t, 3>& size) {
  Shape s{g.batch};
  if (!g.channels_last) s.push_back(channels);
  for (int i = 3 - g.spatial; i < 3; ++i) s.push_back(size[i]);
  if (g.channels_last) s.push_back(channels);
  return s;
}

// The part that both kinds share: ranks, groups, layout, kernel.
Result<ConvGeometry> Basics(const OpContext& ctx, const Shape& input, const Shape& filter) {
  if (input.rank() != 4 && input.rank() != 5)
    return InvalidArgument("Input has shape ", input.ToString(), ", expected rank 4 or 5");
  if (filter.rank() != input.rank())
    return InvalidArgument("Filter has shape ", filter.ToString(), ", expected the rank of Input, ",
                           input.ToString());
  ConvGeometry g;
  g.channels_last = ChannelsLast(ctx);
  g.spatial = input.rank() - 2;
  g.groups = ctx.Int("groups");
  if (g.groups < 0) return InvalidArgument("groups is ", g.groups, ", expected at least 0");
  for (int i = 0; i < g.spatial; ++i) {
    g.kernel[3 - g.spatial + i] = filter[2 + i];
    if (filter[2 + i] == 0)
      return InvalidArgument("Filter has an empty kernel: ", filter.ToString());
  }
  return g;
}

}  // namespace

ConvGeometry AlongWidth(const ConvGeometry& g) {
  ConvGeometry to = g;
  int at = 3;
  const auto move = [&](bool single) {
    for (int i = 2; i >= 3 - g.spatial; --i) {
      const bool is_single =
          g.in[i] == 1 && g.out[i] == 1 && g.kernel[i] == 1 && g.pad_lo[i] == 0 && g.pad_hi[i] == 0;
      if (is_single != single) continue;
      --at;
      to.in[at] = g.in[i], to.out[at] = g.out[i], to.kernel[at] = g.kernel[i];
      to.pad_lo[at] = g.pad_lo[i], to.pad_hi[at] = g.pad_hi[i];
      to.stride[at] = single ? 1 : g.stride[i], to.dilation[at] = single ? 1 : g.dilation[i];
    }
  };
  move(false);
  move(true);
  return to;
}

Shape ConvInShape(const ConvGeometry& g) { return ShapeOf(g, g.in_c, g.in); }
Shape ConvOutShape(const ConvGeometry& g) { return ShapeOf(g, g.out_c, g.out); }

Result<ConvGeometry> ConvGeometryOf(const OpContext& ctx, const Shape& input, const Shape& filter) {
  HEDDLE_ASSIGN_OR_RETURN(ConvGeometry g, Basics(ctx, input, filter));
  const Side in = SideOf(input, g.channels_last);
  g.batch = in.batch;
  g.in = in.size;
  g.out_c = filter[0];
  if (g.groups == 0) {  // as many as the channels say, where they are known
    const bool known = in.channels > 0 && filter[1] > 0;
    if (known && in.channels % filter[1] != 0)
      return InvalidArgument("Input has ", in.channels, " channels (shape ", input.ToString(),
                             "), not a multiple of the ", filter[1], " of Filter ",
                             filter.ToString());
    g.groups = known ? in.channels / filter[1] : 1;
  }
  const bool open = ctx.Int("groups") == 0 && in.channels < 0;
  g.in_c = in.channels >= 0 ? in.channels : open || filter[1] < 0 ? -1 : filter[1] * g.groups;
  if (filter[1] >= 0 && !open && g.in_c != filter[1] * g.groups)
    return InvalidArgument("Input has ", g.in_c, " channels (shape ", input.ToString(),
                           "), but Filter ", filter.ToString(), " with ", g.groups,
                           " groups expects ", filter[1] * g.groups);
  if (g.out_c >= 0 && g.out_c % g.groups != 0)
    return InvalidArgument("Filter has ", g.out_c,
                           " output channels, not a multiple of groups = ", g.groups);
  HEDDLE_RETURN_IF_ERROR(WindowAttrs(ctx, g.in, g));
  for (int i = 3 - g.spatial; i < 3; ++i) {
    if (g.in[i] < 0 || g.kernel[i] < 0) {
      g.out[i] = -1;
      continue;
    }
    const int64_t room =
        g.in[i] + g.pad_lo[i] + g.pad_hi[i] - (g.dilation[i] * (g.kernel[i] - 1) + 1);
    if (g.in[i] == 0 && ctx.Str("padding_algorithm").starts_with("SAME")) {
      g.out[i] = 0;
      continue;
    }
    // Files that leave channels open let a window that fits nowhere make nothing.
    if (room < 0 && room + g.stride[i] >= 0 && ctx.Int("groups") == 0) {
      g.out[i] = 0;
      continue;
    }
    if (room < 0)
      return InvalidArgument("the kernel is larger than the padded input: Input ", input.ToString(),
                             ", Filter ", filter.ToString());
    g.out[i] = room / g.stride[i] + 1;
  }
  return g;
}

Result<ConvGeometry> ConvTransposeGeometryOf(const OpContext& ctx, const Shape& input,
                                             const Shape& filter) {
  HEDDLE_ASSIGN_OR_RETURN(ConvGeometry g, Basics(ctx, input, filter));
  if (g.groups == 0) return InvalidArgument("groups is 0, expected at least 1");
  const Side in = SideOf(input, g.channels_last);
  g.batch = in.batch;
  g.out = in.size;
  g.out_c = in.channels >= 0 ? in.channels : filter[0];
  g.in_c = filter[1] < 0 ? -1 : filter[1] * g.groups;
  if (filter[0] >= 0 && g.out_c != filter[0])
    return InvalidArgument("Input has ", g.out_c, " channels (shape ", input.ToString(),
                           "), but Filter ", filter.ToString(), " expects ", filter[0]);
  if (g.out_c >= 0 && g.out_c % g.groups != 0)
    return InvalidArgument("Input has ", g.out_c,
                           " channels, not a multiple of groups = ", g.groups);
  HEDDLE_RETURN_IF_ERROR(WindowAttrs(ctx, g.out, g));
  const Ints& sizes = ctx.IntList("output_size");
  const Ints& extra = ctx.IntList("output_padding");
  const size_t n = static_cast<size_t>(g.spatial);
  if ((!sizes.empty() && sizes.size() != n) || (!extra.empty() && extra.size() != n))
    return InvalidArgument("output_size has ", sizes.size(), " and output_padding ", extra.size(),
                           " numbers, expected 0 or ", n);
  for (int i = 3 - g.spatial; i < 3; ++i) {
    const size_t at = static_cast<size_t>(i - (3 - g.spatial));
    if (g.out[i] < 0 || g.kernel[i] < 0) {
      g.in[i] = sizes.empty() ? -1 : sizes[at];
      continue;
    }
    const int64_t least = (g.out[i] - 1) * g.stride[i] - g.pad_lo[i] - g.pad_hi[i] +
                          g.dilation[i] * (g.kernel[i] - 1) + 1;
    g.in[i] = least + (extra.empty() ? 0 : extra[at]);
    if (!sizes.empty()) {
      if (sizes[at] < least || sizes[at] >= least + g.stride[i])
        return InvalidArgument("output_size holds ", sizes[at], ", expected ", least, " to ",
                               least + g.stride[i] - 1);
      g.in[i] = sizes[at];
    }
    if (g.in[i] < 0)
      return InvalidArgument("the output would have ", g.in[i],
                             " elements along a dimension: Input ", input.ToString(), ", Filter ",
                             filter.ToString());
  }
  return g;
}

double ConvCost(const ShapeContext& ctx, bool transposed) {
  const Shape &input = ctx.InShape("Input"), &filter = ctx.InShape("Filter");
  if (!input.is_static() || !filter.is_static()) return 0;
  const Result<ConvGeometry> g =
      transposed ? ConvTransposeGeometryOf(ctx, input, filter) : ConvGeometryOf(ctx, input, filter);
  if (!g.ok()) return 0;
  const double elements = static_cast<double>(ConvInShape(*g).numel() + ConvOutShape(*g).numel());
  return 1000 + std::max(g->work() / 40, elements / 4);  // by multiplications, or by memory
}

void ConvAttrs(OpDef& op, int spatial, bool transposed) {
  const size_t n = static_cast<size_t>(spatial);
  op.Attr("strides", Ints(n, 1)).Attr("paddings", Ints(n, 0)).Attr("dilations", Ints(n, 1));
  op.Attr("padding_algorithm", "EXPLICIT").Attr("groups", 1);
  op.Attr("data_format", spatial == 2 ? "NCHW" : "NCDHW");
  if (transposed) op.Attr("output_padding", Ints{}).Attr("output_size", Ints{});
}

}  // namespace heddle
