#include "kernels/pool/windows.h"

#include "core/memory/watched_bytes.h"
#include "core/threads/look_meter.h"

namespace heddle {

void DeclareWindows(OpDef& op, bool dilations) {
  op.Attr("auto_pad", "NOTSET").Attr("kernel_shape", Ints{}).Attr("pads", Ints{});
  op.Attr("strides", Ints{});
  if (dilations) op.Attr("dilations", Ints{});
}

Result<Shape> SpatialOf(const Shape& x, Key key) {
  if (x.rank() < 3)
    return InvalidArgument("input ", key.name, " has shape ", x.ToString(),
                           ", expected [N, C, …] with at least one more dimension");
  return Shape(x.dims().subspan(2));
}

Result<Shape> KernelOf(const OpContext& ctx, const Shape* filter, int rank) {
  const Ints& given = ctx.IntList("kernel_shape");
  HEDDLE_RETURN_IF_ERROR(MakeShape(given, "kernel_shape").status());
  Shape kernel(
      std::span<const int64_t>(given).first(std::min<size_t>(given.size(), Shape::kMaxRank)));
  if (filter != nullptr) {
    if (filter->rank() != rank + 2)
      return InvalidArgument("the filter has shape ", filter->ToString(), ", expected rank ",
                             rank + 2);
    const Shape own(filter->dims().subspan(2));
    if (!given.empty() && !(kernel == own))
      return InvalidArgument("kernel_shape is ", kernel.ToString(), ", but the filter has shape ",
                             filter->ToString());
    kernel = own;
  }
  bool good =
      kernel.rank() == rank && (filter != nullptr || given.size() == static_cast<size_t>(rank));
  for (const int64_t k : kernel) good = good && k > 0;
  if (!good)
    return InvalidArgument("kernel_shape is ", kernel.ToString(), ", expected ", rank,
                           " positive numbers");
  return kernel;
}

Result<Windows> WindowsOf(const OpContext& ctx, const Shape& in, const Shape& kernel,
                          bool ceil_mode) {
  Windows w;
  w.rank = in.rank();
  w.in = in;
  w.kernel = kernel;
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts strides,
                          ListOr(ctx.IntList("strides"), w.rank, 1, "strides"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts pads, ListOr(ctx.IntList("pads"), 2 * w.rank, 0, "pads"));
  ShortInts dilations(static_cast<size_t>(w.rank), 1);
  if (ctx.def().FindAttr("dilations") >= 0) {
    HEDDLE_ASSIGN_OR_RETURN(dilations, ListOr(ctx.IntList("dilations"), w.rank, 1, "dilations"));
  }
  const bool said = ctx.def().FindAttr("auto_pad") >= 0;
  const std::string auto_pad = said ? ctx.Str("auto_pad") : "NOTSET";
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    return InvalidArgument("auto_pad is '", auto_pad,
                           "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  for (int i = 0; i < w.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    constexpr int64_t kMost = int64_t{1} << 31;  // products of two do not overflow
    const auto unusable = [](int64_t pad) { return pad < -kMost || pad > kMost; };
    if (strides[at] < 1 || dilations[at] < 1 || strides[at] > kMost || dilations[at] > kMost ||
        kernel[i] > kMost)
      return InvalidArgument("stride ", strides[at], ", dilation ", dilations[at], " and kernel ",
                             kernel[i], " of axis ", i, " cannot be used");
    w.stride[at] = strides[at];
    w.dilation[at] = dilations[at];
    const int64_t reach = (kernel[i] - 1) * dilations[at] + 1, n = in[i];
    if (same) {
      const int64_t out = (n + strides[at] - 1) / strides[at];
      const int64_t total = std::max<int64_t>(0, (out - 1) * strides[at] + reach - n);
      const int64_t smaller = total / 2;
      w.pad_lo[at] = auto_pad == "SAME_UPPER" ? smaller : total - smaller;
      w.pad_hi[at] = total - w.pad_lo[at];
      w.out.push_back(out);
      continue;
    }
    if (auto_pad != "VALID") {
      w.pad_lo[at] = pads[at];
      w.pad_hi[at] = pads[at + static_cast<size_t>(w.rank)];
    }
    if (unusable(w.pad_lo[at]) || unusable(w.pad_hi[at]))
      return InvalidArgument("pads of axis ", i, " are ", w.pad_lo[at], " and ", w.pad_hi[at],
                             ", expected -", kMost, " to ", kMost);
    const int64_t span = n + w.pad_lo[at] + w.pad_hi[at] - reach;
    if (span < 0)
      return InvalidArgument("a window of ", reach, " does not fit the ", n, " elements of axis ",
                             i, " and their padding");
    int64_t out = span / strides[at] + 1;
    if (ceil_mode && span % strides[at] != 0 && out * strides[at] < n + w.pad_lo[at]) ++out;
    w.out.push_back(out);
  }
  return w;
}

WindowAt WindowOf(const Windows& w, const Walk<1>& position) {
  WindowAt at;
  for (int i = 0; i < w.rank; ++i) {
    const int64_t begin = w.Begin(i, position.index(i)), d = w.dilation[i];
    at.begin[i] = begin;
    at.lo[i] = begin >= 0 ? 0 : std::min(w.kernel[i], (-begin + d - 1) / d);
    at.hi[i] = begin >= w.in[i] ? at.lo[i] : std::min(w.kernel[i], (w.in[i] - 1 - begin) / d + 1);
    at.hi[i] = std::max(at.lo[i], at.hi[i]);
    at.inside *= at.hi[i] - at.lo[i];
  }
  return at;
}

template <typename T>
void ToColumns(const Windows& w, const T* x, int64_t channels, T* columns) {
  const int64_t taps = w.kernel.numel(), places = w.out.numel(), plane = w.in.numel();
  WatchedFill(columns, channels * taps * places, T(0));
  Walk<1> position(w.out, {Walk<1>::Strides{}});
  LookMeter meter;
  for (int64_t p = 0; p < places; ++p, position.Next()) {
    const WindowAt at = WindowOf(w, position);
    ForEachTap(w, at, [&](int64_t pixel, int64_t k) {
      meter.Did(2 + channels);
      for (int64_t c = 0; c < channels; ++c)
        columns[(c * taps + k) * places + p] = x[c * plane + pixel];
    });
  }
}

template <typename T>
void AddColumns(const Windows& w, const T* columns, int64_t channels, T* x) {
  const int64_t taps = w.kernel.numel(), places = w.out.numel(), plane = w.in.numel();
  Walk<1> position(w.out, {Walk<1>::Strides{}});
  LookMeter meter;
  for (int64_t p = 0; p < places; ++p, position.Next()) {
    const WindowAt at = WindowOf(w, position);
    ForEachTap(w, at, [&](int64_t pixel, int64_t k) {
      meter.Did(2 + channels);
      for (int64_t c = 0; c < channels; ++c)
        x[c * plane + pixel] += columns[(c * taps + k) * places + p];
    });
  }
}
template void ToColumns(const Windows&, const float*, int64_t, float*);
template void ToColumns(const Windows&, const double*, int64_t, double*);
template void ToColumns(const Windows&, const int32_t*, int64_t, int32_t*);
template void AddColumns(const Windows&, const float*, int64_t, float*);
template void AddColumns(const Windows&, const double*, int64_t, double*);

}  // namespace heddle
