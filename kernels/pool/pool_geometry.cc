#include <algorithm>

#include "kernels/pool/pool.h"

namespace heddle {
namespace {

struct Pads {
  std::array<int64_t, 3> lo{}, hi{};
};

Result<Pads> PadsOf(const PoolAttrs& a, const PoolGeometry& g, const std::array<int64_t, 3>& kernel,
                    const std::array<int64_t, 3>& stride) {
  Pads p;
  const size_t n = static_cast<size_t>(g.spatial);
  if (a.paddings.size() != n && a.paddings.size() != 2 * n)
    return InvalidArgument("paddings has ", a.paddings.size(), " numbers, expected ", n, " or ",
                           2 * n);
  for (int i = 3 - g.spatial; i < 3; ++i) {
    const size_t at = static_cast<size_t>(i - (3 - g.spatial));
    if (a.global || a.adaptive || a.padding_algorithm == "VALID") continue;
    if (a.padding_algorithm == "SAME") {
      const int64_t steps = (g.in[i] + stride[i] - 1) / stride[i];
      const int64_t sum = std::max<int64_t>(0, (steps - 1) * stride[i] + kernel[i] - g.in[i]);
      p.lo[i] = sum / 2;
      p.hi[i] = sum - sum / 2;
    } else {
      p.lo[i] = a.paddings.size() == n ? a.paddings[at] : a.paddings[2 * at];
      p.hi[i] = a.paddings.size() == n ? a.paddings[at] : a.paddings[2 * at + 1];
    }
  }
  return p;
}

std::vector<PoolWindow> WindowCounts(int64_t in, int64_t out, bool adaptive, int64_t kernel,
                                     int64_t stride, int64_t pad) {
  std::vector<PoolWindow> windows(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    int64_t begin, end;
    if (adaptive) {
      begin = o * in / out;
      end = ((o + 1) * in + out - 1) / out;
    } else {
      begin = o * stride - pad;
      end = std::min(begin + kernel, in + pad);
    }
    const int64_t span = end - begin;
    begin = std::max<int64_t>(begin, 0);
    end = std::max(begin, std::min(end, in));
    windows[static_cast<size_t>(o)] = {begin, end, adaptive ? end - begin : span};
  }
  return windows;
}

bool IsHalved(const PoolGeometry& g) {
  const auto halves = [](const std::vector<PoolWindow>& windows) {
    for (size_t k = 0; k < windows.size(); ++k) {
      const auto at = static_cast<int64_t>(2 * k);
      if (windows[k].begin != at || windows[k].end != at + 2 || windows[k].span != 2) return false;
    }
    return true;
  };
  return g.spatial == 2 && halves(g.windows[1]) && halves(g.windows[2]);
}

}  // namespace

PoolAttrs PoolWithIndexAttrsOf(const OpContext& ctx) {
  PoolAttrs a;
  a.ksize = ctx.IntList("ksize");
  a.strides = ctx.IntList("strides");
  a.paddings = ctx.IntList("paddings");
  a.global = ctx.Bool("global_pooling");
  a.adaptive = ctx.Bool("adaptive");
  return a;
}

PoolAttrs PoolAttrsOf(const OpContext& ctx) {
  PoolAttrs a = PoolWithIndexAttrsOf(ctx);
  a.ceil = ctx.Bool("ceil_mode");
  a.exclusive = ctx.Bool("exclusive");
  a.max = ctx.Str("pooling_type") == "max";
  a.fixed_windows = a.max;
  a.skip_nan = ctx.Bool("skip_nan");
  a.keep_nan = ctx.Bool("keep_nan");
  a.from_infinity = ctx.Bool("from_infinity");
  a.padding_algorithm = ctx.Str("padding_algorithm");
  const std::string& format = ctx.Str("data_format");
  a.channels_last = format == "NHWC" || format == "NDHWC";
  return a;
}

Result<PoolGeometry> PoolGeometryOf(const PoolAttrs& a, const Shape& input) {
  if (input.rank() != 4 && input.rank() != 5)
    return InvalidArgument("X has shape ", input.ToString(), ", expected rank 4 or 5");
  PoolGeometry g;
  g.channels_last = a.channels_last;
  g.max = a.max;
  g.skip_nan = a.skip_nan;
  g.keep_nan = a.keep_nan;
  g.from_infinity = a.from_infinity;
  g.exclusive = a.exclusive || a.adaptive;
  g.spatial = input.rank() - 2;
  g.batch = input[0];
  g.channels = input[a.channels_last ? input.rank() - 1 : 1];
  const size_t n = static_cast<size_t>(g.spatial);
  if ((!a.global && a.ksize.size() != n) || (!a.global && !a.adaptive && a.strides.size() != n))
    return InvalidArgument("ksize has ", a.ksize.size(), " and strides ", a.strides.size(),
                           " numbers, expected ", n);
  const int first = 3 - g.spatial;
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1};
  for (int i = first; i < 3; ++i) {
    const size_t at = static_cast<size_t>(i - first);
    g.in[i] = input[static_cast<int>(at) + (a.channels_last ? 1 : 2)];
    kernel[i] = a.global ? g.in[i] : a.ksize[at];
    if (!a.global && at < a.strides.size()) stride[i] = a.strides[at];
    if (stride[i] < 1 || (kernel[i] < 1 && !a.global))
      return InvalidArgument("ksize holds ", kernel[i], " and strides ", stride[i],
                             ", expected at least 1");
  }
  HEDDLE_ASSIGN_OR_RETURN(const Pads pads, PadsOf(a, g, kernel, stride));
  for (int i = first; i < 3; ++i) {
    if (a.global) {
      g.out[i] = 1;
    } else if (a.adaptive) {
      g.out[i] = kernel[i];
    } else if (g.in[i] < 0) {
      g.out[i] = -1;
    } else {
      const int64_t room = g.in[i] - kernel[i] + pads.lo[i] + pads.hi[i];
      if (room < 0)
        return InvalidArgument("the window (", kernel[i], ") is larger than the padded input: X ",
                               input.ToString());
      g.out[i] = (room + (a.ceil ? stride[i] - 1 : 0)) / stride[i] + 1;
    }
  }
  if (!input.is_static()) return g;
  for (int i = 0; i < 3; ++i)
    g.windows[i] = WindowCounts(g.in[i], g.out[i], a.adaptive && !a.fixed_windows && i >= first,
                                kernel[i], stride[i], pads.lo[i]);
  g.halved = IsHalved(g);
  return g;
}

Shape PoolOutShape(const PoolGeometry& g) {
  Shape s{g.batch};
  if (!g.channels_last) s.push_back(g.channels);
  for (int i = 3 - g.spatial; i < 3; ++i) s.push_back(g.out[i]);
  if (g.channels_last) s.push_back(g.channels);
  return s;
}

}  // namespace heddle
