#include "kernels/pool/tf_windows.h"

namespace heddle {
namespace {

// The spatial elements of a list that has one for each dimension of the layout; those for batch and
// channels are 1.
Result<std::array<int64_t, 3>> SpatialSizesOf(const OpContext& ctx, Key name, const TfWindows& w) {
  const Ints& list = ctx.IntList(name);
  const auto rank = static_cast<size_t>(w.spatial) + 2;
  if (list.size() != rank)
    return InvalidArgument(name.name, " has ", list.size(), " numbers, expected ", rank);
  const size_t channel = w.channels_last ? rank - 1 : 1;
  if (list[0] != 1 || list[channel] != 1)
    return Unimplemented(name.name, " holds ", list[0], " for the batch and ", list[channel],
                         " for channels, expected 1 for both");
  std::array<int64_t, 3> made{};
  for (size_t i = 0; i < static_cast<size_t>(w.spatial); ++i) {
    made[i] = list[i + (w.channels_last ? 1 : 2)];
    if (made[i] < 1 || made[i] > int64_t{1} << 31)
      return InvalidArgument(name.name, " holds ", made[i], ", expected at least 1");
  }
  return made;
}

}  // namespace

void DeclareTfWindows(OpDef& op, const TfWindowAttrs& has) {
  if (has.ksize) op.Attr("ksize", Ints{});
  op.Attr("strides", Ints{}).Attr("padding", "VALID").Attr("data_format", "NHWC");
  if (has.explicit_paddings) op.Attr("explicit_paddings", Ints{});
  if (has.dilations) op.Attr("dilations", Ints{});
}

Result<TfWindows> TfWindowsOf(const OpContext& ctx, const Shape& input,
                              const std::array<int64_t, 3>* kernel) {
  TfWindows w;
  const std::string& format = ctx.Str("data_format");
  const std::string& padding = ctx.Str("padding");
  if (input.rank() != 4 && input.rank() != 5)
    return InvalidArgument("an image has shape ", input.ToString(), ", expected rank 4 or 5");
  if (format != "NHWC" && format != "NDHWC" && format != "NCHW" && format != "NCDHW")
    return InvalidArgument("data_format is '", format, "', expected NHWC, NCHW, NDHWC or NCDHW");
  w.spatial = input.rank() - 2;
  w.channels_last = format.back() == 'C';
  w.batch = input[0];
  w.channels = w.channels_last ? input[input.rank() - 1] : input[1];
  HEDDLE_ASSIGN_OR_RETURN(w.stride, SpatialSizesOf(ctx, "strides", w));
  w.dilation = {1, 1, 1};
  if (ctx.def().FindAttr("dilations") >= 0 && !ctx.IntList("dilations").empty()) {
    HEDDLE_ASSIGN_OR_RETURN(w.dilation, SpatialSizesOf(ctx, "dilations", w));
  }
  if (kernel != nullptr) {
    w.kernel = *kernel;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(w.kernel, SpatialSizesOf(ctx, "ksize", w));
  }
  const bool said = ctx.def().FindAttr("explicit_paddings") >= 0;
  if (padding != "SAME" && padding != "VALID" && !(said && padding == "EXPLICIT"))
    return InvalidArgument("padding is '", padding, "', expected SAME",
                           said ? ", VALID or EXPLICIT" : " or VALID");
  const Ints* const pads = said ? &ctx.IntList("explicit_paddings") : nullptr;
  const size_t rank = static_cast<size_t>(input.rank());
  if (padding == "EXPLICIT" && pads->size() != 2 * rank)
    return InvalidArgument("explicit_paddings has ", pads->size(), " numbers, expected ", 2 * rank);
  for (int i = 0; i < w.spatial; ++i) {
    const size_t dim = static_cast<size_t>(i) + (w.channels_last ? 1 : 2);
    w.in[i] = input[static_cast<int>(dim)];
    const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
    if (padding == "SAME") {
      const int64_t out = (w.in[i] + w.stride[i] - 1) / w.stride[i];
      const int64_t total = std::max<int64_t>((out - 1) * w.stride[i] + reach - w.in[i], 0);
      w.pad_lo[i] = total / 2;
      w.pad_hi[i] = total - total / 2;
    } else if (padding == "EXPLICIT") {
      w.pad_lo[i] = (*pads)[2 * dim];
      w.pad_hi[i] = (*pads)[2 * dim + 1];
      if (std::min(w.pad_lo[i], w.pad_hi[i]) < 0 || std::max(w.pad_lo[i], w.pad_hi[i]) > int64_t{1}
                                                                                             << 31)
        return InvalidArgument("explicit_paddings holds ", w.pad_lo[i], " and ", w.pad_hi[i],
                               " for dimension ", dim, ", expected 0 or more");
    }
    const int64_t room = w.in[i] + w.pad_lo[i] + w.pad_hi[i] - reach;
    if (w.in[i] < 0) return InvalidArgument("an image has shape ", input.ToString());
    w.out[i] = room < 0 ? 0 : room / w.stride[i] + 1;
  }
  return w;
}

}  // namespace heddle
