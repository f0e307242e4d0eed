#include "kernels/conv/conv_calls.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/ceil_div.h"

namespace heddle {
namespace {

// Rows [begin, end) of one image along a spatial axis.
struct Rows {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};

// Where the rows of an image lie: `runs` times `rows` rows of `bytes`.
struct RowPlace {
  int64_t runs, rows, bytes;
  int64_t image() const { return runs * rows * bytes; }
};

RowPlace PlaceOf(const ConvGeometry& g, const std::array<int64_t, 3>& size, int64_t channels,
                 int axis, int64_t element) {
  RowPlace p{1, size[axis], element};
  for (int i = 0; i < axis; ++i) p.runs *= size[i];
  for (int i = axis + 1; i < 3; ++i) p.bytes *= size[i];
  (g.channels_last ? p.bytes : p.runs) *= channels;
  return p;
}

// Copies rows of an image to a place of their own, or back.
void CopyRowsOf(const KernelContext& ctx, const RowPlace& from, int64_t first, const RowPlace& to,
                int64_t at, int64_t count, const void* src, void* dst) {
  const int64_t bytes = count * from.bytes;
  ctx.ParallelFor(from.runs, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, bytes)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t r = begin; r < end; ++r)
                      std::memcpy(
                          static_cast<std::byte*>(dst) + (r * to.rows + at) * to.bytes,
                          static_cast<const std::byte*>(src) + (r * from.rows + first) * from.bytes,
                          static_cast<size_t>(bytes));
                  });
}

// A strip: the rows of the result, the rows of both sides that its call uses, and the call.
struct Strip {
  Rows made, in, out;
  const ConvRunner* runner;
};

// One convolution by strips of each of its images.
class ByStrips final : public ConvRunner {
 public:
  std::vector<std::unique_ptr<ConvRunner>> runners;
  std::vector<Strip> strips;
  // The same for parts that are added to what is there: of a filter's gradient.
  std::vector<const ConvRunner*> adding;
  int64_t images = 1;
  RowPlace in{}, out{};
  ConvDirection direction{};

  std::string name() const override { return runners[0]->name(); }
  bool reads_filter() const override {
    return std::any_of(runners.begin(), runners.end(),
                       [](const auto& runner) { return runner->reads_filter(); });
  }
  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    for (int64_t i = 0; i < images; ++i)
      for (size_t k = 0; k < strips.size(); ++k) {
        LookForInterrupt();
        if (direction == ConvDirection::kBackwardFilter)
          AddPart(ctx, o, i, k);
        else
          MakeRows(ctx, o, i, strips[k]);
      }
  }

 private:
  // The rows as an image of their own.
  static const void* Bring(const KernelContext& ctx, const RowPlace& p, Rows rows, int64_t image,
                           const void* data, Tensor* hold) {
    const auto* const from = static_cast<const std::byte*>(data) + image * p.image();
    if (p.runs == 1) return from + rows.begin * p.bytes;
    *hold = ctx.CallScratch(DType::kU8, {p.runs * rows.count() * p.bytes});
    CopyRowsOf(ctx, p, rows.begin, {p.runs, rows.count(), p.bytes}, 0, rows.count(), from,
               hold->mutable_raw());
    return hold->raw();
  }

  void MakeRows(const KernelContext& ctx, const ConvOperands& o, int64_t image,
                const Strip& strip) const {
    const bool forward = direction == ConvDirection::kForward;
    const RowPlace &from = forward ? in : out, &to = forward ? out : in;
    const Rows seen = forward ? strip.in : strip.out, made = forward ? strip.out : strip.in;
    Tensor hold_src, hold_residual, hold_dst;
    ConvOperands now = o;
    now.src = Bring(ctx, from, seen, image, o.src, &hold_src);
    auto* const whole = static_cast<std::byte*>(o.dst) + image * to.image();
    const bool in_place = to.runs == 1 && made.count() == strip.made.count();
    // Copied in any case: it may be the memory of rows that were computed before.
    if (o.residual != nullptr && !in_place)
      now.residual = Bring(ctx, to, made, image, o.residual, &hold_residual);
    else if (o.residual != nullptr)
      now.residual =
          static_cast<const std::byte*>(o.residual) + image * to.image() + made.begin * to.bytes;
    if (in_place) {
      now.dst = whole + made.begin * to.bytes;
      return strip.runner->Run(ctx, now);
    }
    const RowPlace apart{to.runs, made.count(), to.bytes};
    hold_dst = ctx.CallScratch(DType::kU8, {apart.image()});
    now.dst = hold_dst.mutable_raw();
    strip.runner->Run(ctx, now);
    CopyRowsOf(ctx, apart, strip.made.begin - made.begin, to, strip.made.begin, strip.made.count(),
               hold_dst.raw(), whole);
  }

  void AddPart(const KernelContext& ctx, const ConvOperands& o, int64_t image, size_t k) const {
    const Strip& strip = strips[k];
    Tensor hold_src, hold_filter;
    ConvOperands now = o;
    now.src = Bring(ctx, in, strip.in, image, o.src, &hold_src);
    now.filter = Bring(ctx, out, strip.out, image, o.filter, &hold_filter);
    const bool first = image == 0 && k == 0;
    if (!first) now.residual = o.dst;
    (first ? strip.runner : adding[k])->Run(ctx, now);
  }
};

// Rows of the padded input that output rows [begin, end) read.
Rows SeenBy(const ConvGeometry& g, int axis, Rows out) {
  const int64_t reach = (g.kernel[axis] - 1) * g.dilation[axis] + 1;
  return {out.begin * g.stride[axis] - g.pad_lo[axis],
          (out.end - 1) * g.stride[axis] - g.pad_lo[axis] + reach};
}

// The convolution of a strip; nothing where it cannot be one by itself.
struct StripCase {
  ConvGeometry g;
  Rows in;
};
std::optional<StripCase> StripOf(const ConvGeometry& g, int axis, Rows out) {
  const Rows seen = SeenBy(g, axis, out);
  StripCase s{g, {std::max<int64_t>(0, seen.begin), std::min(g.in[axis], seen.end)}};
  if (out.count() <= 0 || s.in.count() <= 0) return std::nullopt;
  s.g.batch = 1;
  s.g.in[axis] = s.in.count();
  s.g.out[axis] = out.count();
  s.g.pad_lo[axis] = s.in.begin - seen.begin;
  s.g.pad_hi[axis] = seen.end - s.in.end;
  return s;
}

// The output rows that read input rows [begin, end).
Rows Reaching(const ConvGeometry& g, int axis, Rows in) {
  const int64_t reach = (g.kernel[axis] - 1) * g.dilation[axis], stride = g.stride[axis];
  const int64_t lowest = in.begin + g.pad_lo[axis] - reach;
  return {lowest <= 0 ? 0 : CeilDiv(lowest, stride),
          std::min(g.out[axis], (in.end - 1 + g.pad_lo[axis]) / stride + 1)};
}

// A strip of a gradient computes what other strips compute as well, where windows overlap: up to
// so many times the work of one call.
constexpr double kMostAgain = 1.5;

Result<std::unique_ptr<ConvRunner>> MakeByStrips(const ConvCase& c, MakeConvCall make,
                                                 double call_work) {
  const ConvGeometry& g = c.g;
  const bool backward = c.direction == ConvDirection::kBackwardData;
  const auto& size = backward ? g.in : g.out;
  int axis = 0;
  while (axis < 2 && g.out[axis] == 1) ++axis;
  const int64_t pieces = std::min(
      size[axis], static_cast<int64_t>(g.work() / static_cast<double>(g.batch) / call_work));
  if (pieces < 2) return std::unique_ptr<ConvRunner>();
  const auto element = static_cast<int64_t>(SizeOf(c.dtype));
  auto all = std::make_unique<ByStrips>();
  all->direction = c.direction;
  all->images = g.batch;
  all->in = PlaceOf(g, g.in, g.in_c, axis, element);
  all->out = PlaceOf(g, g.out, g.out_c, axis, element);
  Epilogue adds = c.epilogue;
  adds.residual = true;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool>;
  std::map<Key, const ConvRunner*> known;
  const auto runner_of = [&](const ConvGeometry& part, bool adding) -> Result<const ConvRunner*> {
    const ConvRunner*& found =
        known[{part.in[axis], part.out[axis], part.pad_lo[axis], part.pad_hi[axis], adding}];
    if (found != nullptr) return found;
    HEDDLE_ASSIGN_OR_RETURN(auto made, make({part, c.dtype, c.direction, c.filter,
                                             adding ? adds : c.epilogue, c.threads, c.lean}));
    found = made.get();
    all->runners.push_back(std::move(made));
    return found;
  };
  const int64_t step = CeilDiv(size[axis], pieces);
  double work = 0;  // of all strips of an image
  for (int64_t at = 0; at < size[axis]; at += step) {
    const Rows made{at, std::min(at + step, size[axis])};
    const Rows out = backward ? Reaching(g, axis, made) : made;
    const auto part = StripOf(g, axis, out);
    if (!part || (backward && (part->in.begin > made.begin || part->in.end < made.end)))
      return std::unique_ptr<ConvRunner>();
    HEDDLE_ASSIGN_OR_RETURN(const ConvRunner* const runner, runner_of(part->g, false));
    all->strips.push_back({made, part->in, out, runner});
    work += part->g.work();
    if (c.direction != ConvDirection::kBackwardFilter) continue;
    HEDDLE_ASSIGN_OR_RETURN(const ConvRunner* const adding, runner_of(part->g, true));
    all->adding.push_back(adding);
  }
  // Windows that overlap a lot are computed again for each strip, and no call gets shorter.
  if (backward && work > kMostAgain * g.work() / static_cast<double>(g.batch))
    return std::unique_ptr<ConvRunner>();
  return std::unique_ptr<ConvRunner>(std::move(all));
}

// The gradient of a convolution's input, which is also a transposed convolution, by groups, or by
// channels of the result where there is one group; image after image.
class ByChannels final : public ConvRunner {
 public:
  struct Part {
    int64_t src, src_channels;  // first channel, and how many
    int64_t dst, dst_channels;
    const ConvRunner* runner;
  };
  ByChannels(const ConvGeometry& g, int64_t element) : g_(g), element_(element) {}
  std::vector<std::unique_ptr<ConvRunner>> runners;
  std::vector<Part> parts;

  std::string name() const override { return runners[0]->name(); }
  bool reads_filter() const override { return true; }
  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    const Side src{g_.out_c, g_.out_size(), g_.channels_last, element_};
    const Side dst{g_.in_c, g_.in_size(), g_.channels_last, element_};
    for (const Part& part : parts) {
      LookForInterrupt();
      Tensor hold_filter, hold_src, hold_residual, hold_dst;
      ConvOperands now = o;
      now.filter = FilterOf(ctx, part, o.filter, &hold_filter);
      if (o.bias != nullptr) now.bias = static_cast<const std::byte*>(o.bias) + part.dst * element_;
      for (int64_t i = 0; i < g_.batch; ++i) {
        LookForInterrupt();
        now.src = src.Bring(ctx, o.src, i, part.src, part.src_channels, &hold_src);
        if (o.residual != nullptr)
          now.residual = dst.Bring(ctx, o.residual, i, part.dst, part.dst_channels, &hold_residual);
        auto* const to = static_cast<std::byte*>(o.dst) + dst.At(i, part.dst);
        if (dst.AreTogether(part.dst_channels)) {
          now.dst = to;
          part.runner->Run(ctx, now);
          continue;
        }
        const int64_t bytes = part.dst_channels * element_;
        hold_dst = ctx.CallScratch(DType::kU8, {dst.pixels * bytes});
        now.dst = hold_dst.mutable_raw();
        part.runner->Run(ctx, now);
        CopyPieces(ctx, dst.pixels, bytes, hold_dst.raw(), bytes, to, g_.in_c * element_);
      }
    }
  }

 private:
  // Copies `count` pieces of so many bytes between places a step apart.
  static void CopyPieces(const KernelContext& ctx, int64_t count, int64_t bytes, const void* from,
                         int64_t from_step, void* to, int64_t to_step) {
    ctx.ParallelFor(count, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, bytes)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i)
                        std::memcpy(static_cast<std::byte*>(to) + i * to_step,
                                    static_cast<const std::byte*>(from) + i * from_step,
                                    static_cast<size_t>(bytes));
                    });
  }

  // One of the tensors with channels.
  struct Side {
    int64_t channels, pixels;
    bool channels_last;
    int64_t element;

    bool AreTogether(int64_t count) const { return !channels_last || count == channels; }
    int64_t At(int64_t image, int64_t channel) const {
      return (image * channels * pixels + channel * (channels_last ? 1 : pixels)) * element;
    }
    // Some channels of an image, by themselves.
    const void* Bring(const KernelContext& ctx, const void* data, int64_t image, int64_t first,
                      int64_t count, Tensor* hold) const {
      const auto* const from = static_cast<const std::byte*>(data) + At(image, first);
      if (AreTogether(count)) return from;
      const int64_t bytes = count * element;
      *hold = ctx.CallScratch(DType::kU8, {pixels * bytes});
      CopyPieces(ctx, pixels, bytes, from, channels * element, hold->mutable_raw(), bytes);
      return hold->raw();
    }
  };

  const void* FilterOf(const KernelContext& ctx, const Part& part, const void* filter,
                       Tensor* hold) const {
    const int64_t window = g_.kernel_size() * element_, row = g_.in_c / g_.groups * window;
    const auto* const from = static_cast<const std::byte*>(filter);
    if (g_.groups > 1) return from + part.src * row;
    const int64_t bytes = part.dst_channels * window;
    *hold = ctx.CallScratch(DType::kU8, {g_.out_c * bytes});
    CopyPieces(ctx, g_.out_c, bytes, from + part.dst * window, row, hold->mutable_raw(), bytes);
    return hold->raw();
  }

  const ConvGeometry g_;
  const int64_t element_;
};

Result<std::unique_ptr<ConvRunner>> MakeByChannels(const ConvCase& c, MakeConvCall make,
                                                   double call_work) {
  const ConvGeometry& g = c.g;
  const int64_t units = g.groups > 1 ? g.groups : g.in_c;
  const int64_t pieces =
      std::min(units, static_cast<int64_t>(g.work() / static_cast<double>(g.batch) / call_work));
  if (pieces < 2) return std::unique_ptr<ConvRunner>();
  auto all = std::make_unique<ByChannels>(g, static_cast<int64_t>(SizeOf(c.dtype)));
  const int64_t src_each = g.groups > 1 ? g.out_c / g.groups : 0;
  const int64_t dst_each = g.in_c / units;
  std::map<int64_t, const ConvRunner*> known;
  const int64_t step = CeilDiv(units, pieces);
  for (int64_t at = 0; at < units; at += step) {
    const int64_t count = std::min(step, units - at);
    const int64_t src_channels = g.groups > 1 ? count * src_each : g.out_c;
    const ConvRunner*& runner = known[count];
    if (runner == nullptr) {
      ConvGeometry some = g;
      some.batch = 1;
      some.groups = g.groups > 1 ? count : 1;
      some.in_c = count * dst_each;
      some.out_c = src_channels;
      // Without the constant filter, of which a call sees a part.
      HEDDLE_ASSIGN_OR_RETURN(
          auto made, make({some, c.dtype, c.direction, nullptr, c.epilogue, c.threads, c.lean}));
      runner = made.get();
      all->runners.push_back(std::move(made));
    }
    all->parts.push_back({at * src_each, src_channels, at * dst_each, count * dst_each, runner});
  }
  return std::unique_ptr<ConvRunner>(std::move(all));
}

// A convolution by some images at a time.
class ByImages final : public ConvRunner {
 public:
  std::vector<std::unique_ptr<ConvRunner>> runners;
  struct Part {
    const ConvRunner* runner;
    int64_t images;
  };
  std::vector<Part> parts;
  int64_t src_bytes = 0, filter_bytes = 0, dst_bytes = 0;  // of an image; 0: all have the same

  std::string name() const override { return runners[0]->name(); }
  bool reads_filter() const override {
    return std::any_of(runners.begin(), runners.end(),
                       [](const auto& runner) { return runner->reads_filter(); });
  }
  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    ConvOperands now = o;
    const auto after = [](const void* p, int64_t bytes) {
      return p == nullptr ? p : static_cast<const std::byte*>(p) + bytes;
    };
    for (const Part& part : parts) {
      LookForInterrupt();
      part.runner->Run(ctx, now);
      now.src = after(now.src, part.images * src_bytes);
      now.filter = after(now.filter, part.images * filter_bytes);
      now.dst = static_cast<std::byte*>(now.dst) + part.images * dst_bytes;
      now.residual = dst_bytes == 0 ? now.dst : after(now.residual, part.images * dst_bytes);
    }
  }
};

Result<std::unique_ptr<ConvRunner>> MakeByImages(const ConvCase& c, MakeConvCall make,
                                                 double call_work) {
  const ConvGeometry& g = c.g;
  const bool sums = c.direction == ConvDirection::kBackwardFilter;
  const auto images = std::max<int64_t>(
      1, static_cast<int64_t>(call_work * static_cast<double>(g.batch) / g.work()));
  auto all = std::make_unique<ByImages>();
  Epilogue adds = c.epilogue;
  adds.residual = true;
  std::map<std::pair<int64_t, bool>, const ConvRunner*> known;
  for (int64_t at = 0; at < g.batch; at += images) {
    const int64_t count = std::min(images, g.batch - at);
    const bool adding = sums && at > 0;
    const ConvRunner*& runner = known[{count, adding}];
    if (runner == nullptr) {
      ConvGeometry some = g;
      some.batch = count;
      HEDDLE_ASSIGN_OR_RETURN(auto made, make({some, c.dtype, c.direction, c.filter,
                                               adding ? adds : c.epilogue, c.threads, c.lean}));
      runner = made.get();
      all->runners.push_back(std::move(made));
    }
    all->parts.push_back({runner, count});
  }
  const auto size = static_cast<int64_t>(SizeOf(c.dtype));
  const int64_t in = g.in_c * g.in_size() * size, out = g.out_c * g.out_size() * size;
  const bool forward = c.direction == ConvDirection::kForward;
  all->src_bytes = forward || sums ? in : out;
  all->filter_bytes = sums ? out : 0;
  all->dst_bytes = sums ? 0 : forward ? out : in;
  return std::unique_ptr<ConvRunner>(std::move(all));
}

// heddle's own implementations check for interrupts between their steps.
bool IsOneCall(const ConvRunner& runner) { return runner.name().starts_with("onednn"); }

// If oneDNN multiplies columns that it copies from the image (im2col), an element of a column takes
// about as long as this many multiplications.
constexpr double kColumnWork = 512;

// A call's cost in multiplications. Each row of the result costs something, however short it is,
// and so does each element that is written: memory may be touched for the first time. Gradients of
// a few channels are computed with as many as a vector has, which are copied to a place of their
// own.
double CostOf(const ConvGeometry& g, bool by_columns, bool backward) {
  constexpr double kRowWork = 8192, kChannels = 16, kElementWork = 48;
  const auto channels = [&](int64_t count) {
    const auto c = static_cast<double>(count);
    return backward ? std::ceil(c / kChannels) * kChannels : c;
  };
  const double rows = static_cast<double>(g.batch) * static_cast<double>(g.out[0]) *
                      static_cast<double>(g.out[1]) *
                      std::ceil(static_cast<double>(g.out_c) / kChannels);
  const double columns =
      by_columns ? kColumnWork * static_cast<double>(g.groups) / static_cast<double>(g.out_c) : 0;
  const double written = static_cast<double>(g.batch) *
                         std::max(channels(g.in_c) * static_cast<double>(g.in_size()),
                                  channels(g.out_c) * static_cast<double>(g.out_size()));
  return g.work() * (1 + columns) + rows * kRowWork + written * kElementWork;
}

}  // namespace

Result<std::unique_ptr<ConvRunner>> MakeConvInCalls(const ConvCase& c, MakeConvCall make,
                                                    double call_work) {
  const ConvGeometry& g = c.g;
  const bool backward = c.direction != ConvDirection::kForward;
  if (g.work() <= 0 || CostOf(g, true, backward) <= call_work) return make(c);
  {
    HEDDLE_ASSIGN_OR_RETURN(auto whole, make(c));
    const bool one_call = IsOneCall(*whole);
    if (!one_call && c.direction == ConvDirection::kBackwardFilter) return whole;
    if (one_call)
      call_work *= g.work() / CostOf(g, whole->name().find("gemm") != std::string::npos, backward);
    if (g.work() <= call_work) return whole;
  }
  const double image = g.work() / static_cast<double>(g.batch);
  if (image > 2 * call_work) {
    ConvGeometry one = g;
    one.batch = 1;
    HEDDLE_ASSIGN_OR_RETURN(
        auto whole, make({one, c.dtype, c.direction, c.filter, c.epilogue, c.threads, c.lean}));
    if (IsOneCall(*whole)) {
      HEDDLE_ASSIGN_OR_RETURN(auto strips, MakeByStrips(c, make, call_work));
      if (strips != nullptr) return strips;
      if (c.direction == ConvDirection::kBackwardData) {
        HEDDLE_ASSIGN_OR_RETURN(auto channels, MakeByChannels(c, make, call_work));
        if (channels != nullptr) return channels;
      }
    }
    if (g.batch == 1) return whole;
  }
  return g.batch > 1 ? MakeByImages(c, make, call_work) : make(c);
}

}  // namespace heddle
