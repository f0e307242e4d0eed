// Products and convolutions of 8-bit integers by oneDNN's primitives.
#include "kernels/integers/select.h"

#ifdef HEDDLE_WITH_ONEDNN

#include <tbb/task_arena.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "core/threads/library_place.h"
#include "kernels/conv/conv_calls.h"
#include "kernels/gemm/gemm_calls.h"
#include "kernels/gemm/onednn.h"
#include "kernels/gemm/pack_once.h"

namespace heddle {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Arguments = std::vector<std::pair<int, memory::desc>>;

constexpr int kScales = DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS;
constexpr int kZeroOfX = DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC;
constexpr int kZeroOfY = DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_WEIGHTS;

memory::data_type TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return memory::data_type::u8;
    case DType::kI8:
      return memory::data_type::s8;
    case DType::kI32:
      return memory::data_type::s32;
    default:
      return memory::data_type::f32;
  }
}

Dims DenseStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}
memory::desc Vector(int64_t n, memory::data_type type) { return {{n}, type, Dims{1}}; }

// A constant, minus zero points, as signed integers of 8 bits. One may not be enough: then they are
// the sum of two. Of the values -255 to 255 only the last is no such sum.
struct SignedParts {
  std::vector<int8_t> first, second;  // `second` may be empty
  bool complete = true;               // false: a value is no sum of two
};

// There may be no zero points, or one for all.
int32_t ZeroOf(std::span<const int32_t> zero, size_t at) {
  return zero.empty() ? 0 : zero[zero.size() == 1 ? 0 : at];
}

// `outer` blocks of `n` runs of `inner` elements; a run has one zero point.
SignedParts Split(const Tensor& w, std::span<const int32_t> zero, int64_t outer, int64_t n,
                  int64_t inner) {
  const auto* const bytes = static_cast<const uint8_t*>(w.raw());
  const bool is_signed = w.dtype() == DType::kI8;
  SignedParts parts;
  parts.first.resize(static_cast<size_t>(w.numel()));
  constexpr int32_t kLeast = -128, kMost = 127;
  size_t i = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < n; ++c) {
      const int32_t z = ZeroOf(zero, static_cast<size_t>(c));
      for (int64_t k = 0; k < inner; ++k, ++i) {
        const int32_t v = (is_signed ? int32_t{static_cast<int8_t>(bytes[i])} : bytes[i]) - z;
        const int32_t part = std::clamp(v, kLeast, kMost), rest = v - part;
        parts.first[i] = static_cast<int8_t>(part);
        if (rest == 0) continue;
        if (parts.second.empty()) parts.second.resize(parts.first.size());
        parts.second[i] = static_cast<int8_t>(rest);
        parts.complete = parts.complete && rest <= kMost;
      }
    }
  return parts;
}

struct PackedInt8 {
  static constexpr int kPackingVersion = 1;  // see PackOnce
  BufferRef memory;
};

// `values`, laid out as `from`, in the layout that the primitive wants.
std::shared_ptr<const PackedInt8> PackInt8(const PrepareContext& ctx, const Tensor& source,
                                           const std::vector<int8_t>& values,
                                           const memory::desc& from, const memory::desc& to,
                                           std::string_view use) {
  // Layouts may hold sums for zero points, of which a description says nothing.
  const std::string key =
      StrCat("onednn int8 ", use, " ", XXH3_64bits(values.data(), values.size()), " ",
             onednn::Describe(from), ">", onednn::Describe(to), " ", to.get_size());
  return PackOnce<PackedInt8>(ctx, source, key, [&](const Tensor&, PackedInt8* packed) {
    packed->memory = PackMemory(ctx, to.get_size());
    const auto reorder = [&] {
      dnnl::stream stream(onednn::Engine());
      memory src(from, onednn::Engine(), const_cast<int8_t*>(values.data()));
      memory dst(to, onednn::Engine(), packed->memory->data());
      dnnl::reorder(src, dst).execute(stream, src, dst);
    };
    LibraryPlace::Enter([&] { tbb::this_task_arena::isolate(reorder); });
  });
}

// What a primitive does besides sums: zero points, factors, bounds.
dnnl::primitive_attr AttributesOf(const IntegerResult& result, bool x_shifted, bool y_shifted,
                                  int scale_mask) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (x_shifted) attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
  if (y_shifted) attr.set_zero_points_mask(DNNL_ARG_WEIGHTS, 0);
  if (!result.scaled()) return attr;
  attr.set_scales_mask(DNNL_ARG_WEIGHTS, scale_mask);
  if (result.clips()) {
    dnnl::post_ops ops;
    ops.append_eltwise(dnnl::algorithm::eltwise_clip, result.least, result.most);
    attr.set_post_ops(ops);
  }
  return attr;
}

template <typename Description>
bool IsSlow(const Description& pd) {
  const std::string name = pd.impl_info_str();
  return name.find("ref") != std::string::npos;
}

// Which arguments calls have besides the integers, in this order.
struct ByteCall {
  bool x_shifted, y_shifted, scaled, offset;

  Arguments ArgumentsOf(const memory::desc& x, const memory::desc& y, const memory::desc& out,
                        int64_t columns, const memory::desc& bias) const {
    Arguments args{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, y}, {DNNL_ARG_DST, out}};
    if (x_shifted) args.emplace_back(kZeroOfX, Vector(1, memory::data_type::s32));
    if (y_shifted) args.emplace_back(kZeroOfY, Vector(1, memory::data_type::s32));
    if (scaled) args.emplace_back(kScales, Vector(columns, memory::data_type::f32));
    if (offset) args.emplace_back(DNNL_ARG_BIAS, bias);
    return args;
  }
  void Run(const KernelContext& ctx, const onednn::Call& call, const IntegerOperands& o,
           const void* x, const void* y, const int32_t* y_zero, void* out) const {
    std::array<const void*, 8> data{x, y, out};
    size_t n = 3;
    if (x_shifted) data[n++] = &o.x_zero;
    if (y_shifted) data[n++] = y_zero;
    if (scaled) data[n++] = o.factor;
    if (offset) data[n++] = o.offset;
    call.Run(ctx, std::span<const void* const>(data.data(), n));
  }
};

// A primitive with the constant that it multiplies by, called for one image or product at a time
// where all of them would take long.
struct BytePart {
  ByteCall use;
  std::unique_ptr<onednn::Call> call;
  std::shared_ptr<const PackedInt8> packed;  // null: the constant is an operand
};

class OnednnIntegerConv final : public IntegerRunner {
 public:
  OnednnIntegerConv(const IntegerConvCase& c, std::string name)
      : result_(c.result),
        channels_(c.g.out_c),
        pixels_(c.g.out_size()),
        x_step_(c.g.in_c * c.g.in_size()),
        name_(std::move(name)) {}
  std::vector<BytePart> parts;
  int64_t calls = 1;   // one after another
  int64_t images = 1;  // of a call

  std::string name() const override { return name_; }

  void Run(const KernelContext& ctx, const IntegerOperands& o) const override {
    const int64_t count = images * pixels_ * channels_;
    for (int64_t n = 0; n < calls; ++n) {
      LookForInterrupt();
      const auto* const x = static_cast<const uint8_t*>(o.x) + n * images * x_step_;
      auto* const out =
          static_cast<uint8_t*>(o.out) + n * count * static_cast<int64_t>(SizeOf(result_.dtype));
      if (parts.size() == 1)
        RunPart(ctx, 0, o, x, out);
      else
        RunBoth(ctx, o, x, out);
    }
  }

 private:
  void RunPart(const KernelContext& ctx, size_t i, const IntegerOperands& o, const void* x,
               void* out) const {
    const BytePart& part = parts[i];
    part.use.Run(ctx, *part.call, o, x, part.packed->memory->data(), nullptr, out);
  }
  // Sums of both parts of the filter are added before they are scaled.
  void RunBoth(const KernelContext& ctx, const IntegerOperands& o, const void* x,
               uint8_t* out) const {
    const int64_t rows = images * pixels_, count = rows * channels_;
    Tensor first = result_.scaled() ? ctx.CallScratch(DType::kI32, {count}) : Tensor();
    Tensor second = ctx.CallScratch(DType::kI32, {count});
    auto* const sums = result_.scaled() ? first.mutable_data<int32_t>()
                                        : static_cast<int32_t*>(static_cast<void*>(out));
    const auto* const more = second.data<int32_t>();
    RunPart(ctx, 0, o, x, sums);
    RunPart(ctx, 1, o, x, second.mutable_raw());
    const auto size = static_cast<int64_t>(SizeOf(result_.dtype));
    ctx.ParallelFor(rows, 1 + (1 << 15) / channels_, [&](int64_t begin, int64_t end) {
      for (const int64_t r : Watched(begin, end)) {
        int32_t* const row = sums + r * channels_;
        for (int64_t c = 0; c < channels_; ++c)
          row[c] = static_cast<int32_t>(static_cast<uint32_t>(row[c]) +
                                        static_cast<uint32_t>(more[r * channels_ + c]));
        if (result_.scaled())
          StoreResults(result_,
                       {1, channels_, row, channels_, o.factor, result_.offset ? o.offset : nullptr,
                        out + r * channels_ * size, channels_});
      }
    });
  }

  const IntegerResult result_;
  const int64_t channels_, pixels_, x_step_;
  const std::string name_;
};

Dims SpatialOfSide(const ConvGeometry& g, const std::array<int64_t, 3>& v, int64_t less = 0) {
  Dims dims;
  for (int i = 3 - g.spatial; i < 3; ++i) dims.push_back(v[i] - less);
  return dims;
}
memory::desc ChannelsLastImage(const ConvGeometry& g, int64_t images, int64_t channels,
                               const std::array<int64_t, 3>& size, memory::data_type type) {
  Dims dims{images, channels};
  for (const int64_t d : SpatialOfSide(g, size)) dims.push_back(d);
  Dims strides(dims.size());
  int64_t step = channels;
  strides[1] = 1;
  for (size_t i = dims.size(); i-- > 2;) {
    strides[i] = step;
    step *= dims[i];
  }
  strides[0] = step;
  return {dims, type, strides};
}

// With a zero point, oneDNN 3.2 takes wrong amounts off the sums in the padding of depthwise
// volumes, and at the end of a dilated dimension that is padded more there than at its beginning.
bool MissesZeroPoint(const ConvGeometry& g) {
  for (size_t i = 0; i < g.kernel.size(); ++i) {
    if (g.depthwise() && g.kernel[0] > 1 && (g.pad_lo[i] > 0 || g.pad_hi[i] > 0)) return true;
    if (g.dilation[i] > 1 && g.kernel[i] > 1 && g.pad_hi[i] > g.pad_lo[i]) return true;
  }
  return false;
}

std::unique_ptr<IntegerRunner> MakeConvUnguarded(const PrepareContext& ctx,
                                                 const IntegerConvCase& c) {
  const ConvGeometry& g = c.g;
  if (c.x_shifted && MissesZeroPoint(g)) return nullptr;
  const BorrowedContents contents(c.w);
  const SignedParts values =
      Split(contents.tensor(), c.w_zero, 1, g.out_c, c.w.numel() / std::max<int64_t>(1, g.out_c));
  if (!values.complete) return nullptr;
  // An image at a time, where all of them would keep a run from ending for long.
  const int64_t images = g.work() > kConvCallWork ? 1 : g.batch;
  Dims filter;
  if (g.groups > 1) filter.push_back(g.groups);
  filter.push_back(g.out_c / g.groups);
  filter.push_back(g.in_c / g.groups);
  for (const int64_t d : SpatialOfSide(g, g.kernel)) filter.push_back(d);
  const memory::desc x = ChannelsLastImage(g, images, g.in_c, g.in, TypeOf(c.x));
  const memory::desc y(filter, memory::data_type::s8, memory::format_tag::any);
  const memory::desc dense(filter, memory::data_type::s8, DenseStrides(filter));
  const std::string use = StrCat(c.x_shifted ? "shifted " : "", Name(c.x));
  std::unique_ptr<OnednnIntegerConv> runner;
  const auto add = [&](const std::vector<int8_t>& part, const IntegerResult& result) {
    const memory::desc out = ChannelsLastImage(g, images, g.out_c, g.out, TypeOf(result.dtype));
    const memory::desc bias =
        result.offset ? Vector(g.out_c, memory::data_type::f32) : memory::desc();
    const dnnl::convolution_forward::primitive_desc pd(
        onednn::Engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        x, y, bias, out, SpatialOfSide(g, g.stride), SpatialOfSide(g, g.dilation, 1),
        SpatialOfSide(g, g.pad_lo), SpatialOfSide(g, g.pad_hi),
        AttributesOf(result, c.x_shifted, false, g.groups > 1 ? 3 : 1));
    if (IsSlow(pd)) return false;
    if (!runner)
      runner = std::make_unique<OnednnIntegerConv>(c, StrCat("onednn_int8 ", pd.impl_info_str()));
    BytePart made;
    made.use = {c.x_shifted, false, result.scaled(), result.offset};
    made.packed = PackInt8(ctx, c.w, part, dense, pd.weights_desc(), use);
    made.call = std::make_unique<onednn::Call>(
        dnnl::convolution_forward(pd),
        made.use.ArgumentsOf(x, pd.weights_desc(), out, g.out_c, bias), pd.scratchpad_desc());
    runner->parts.push_back(std::move(made));
    return true;
  };
  const IntegerResult sums;
  if (values.second.empty()) {
    if (!add(values.first, c.result)) return nullptr;
  } else if (!add(values.first, sums) || !add(values.second, sums)) {
    return nullptr;
  }
  runner->images = images;
  runner->calls = images == 0 ? 0 : g.batch / images;
  return runner;
}

class OnednnIntegerGemm final : public IntegerRunner {
 public:
  struct Part {
    std::shared_ptr<const onednn::Call> call;
    int64_t x_at, y_at, out_at;
  };
  std::vector<Part> parts;
  std::shared_ptr<const PackedInt8> packed;
  ByteCall call{};
  int32_t y_zero = 0;
  std::vector<int32_t>
      shift;           // per column: what rows' sums are to be multiplied with and taken off
  GemmDims rows = {};  // of all products, where there is a shift
  bool x_signed = false;
  IntegerResult result = {};
  int64_t unsigned_size = 0;  // elements of an unsigned y, of which 128 is subtracted; 0: none
  DType out = DType::kI32;
  std::string implementation;

  std::string name() const override { return implementation; }
  void Run(const KernelContext& ctx, const IntegerOperands& o) const override {
    const auto* y = static_cast<const uint8_t*>(packed ? packed->memory->data() : o.y);
    Tensor hold;
    if (unsigned_size > 0) {
      hold = ctx.CallScratch(DType::kU8, {unsigned_size});
      auto* const to = hold.mutable_data<uint8_t>();
      ctx.ParallelFor(unsigned_size, 1 << 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = y[i] ^ 0x80u;
      });
      y = to;
    }
    Tensor sums;
    void* to = o.out;
    if (!shift.empty() && out != DType::kI32) {
      sums = ctx.CallScratch(DType::kI32, {rows.m * rows.n});
      to = sums.mutable_raw();
    }
    const auto size = static_cast<int64_t>(shift.empty() ? SizeOf(out) : sizeof(int32_t));
    for (const Part& part : parts) {
      LookForInterrupt();
      call.Run(ctx, *part.call, o, static_cast<const uint8_t*>(o.x) + part.x_at,
               packed ? y : y + part.y_at, &y_zero, static_cast<uint8_t*>(to) + part.out_at * size);
    }
    if (!shift.empty()) Shift(ctx, o, static_cast<const int32_t*>(to));
  }

 private:
  // Takes off the zero points of columns.
  void Shift(const KernelContext& ctx, const IntegerOperands& o, const int32_t* sums) const {
    const int64_t n = rows.n, grain = std::max<int64_t>(1, 16384 / (rows.k + n));
    const auto size = static_cast<int64_t>(SizeOf(out));
    ctx.ParallelFor(rows.m, grain, [&](int64_t begin, int64_t end) {
      for (const int64_t r : Watched(begin, end)) {
        const int32_t sum = SumOfRow(o, r);
        StoreResults(result, {1, n, sums + r * n, n, o.factor, result.offset ? o.offset : nullptr,
                              static_cast<uint8_t*>(o.out) + r * n * size, n, &sum, shift.data()});
      }
    });
  }
  int32_t SumOfRow(const IntegerOperands& o, int64_t r) const {
    const auto* const bytes = static_cast<const uint8_t*>(o.x) + r * rows.lda;
    const auto sum = [k = rows.k](const auto* x) {
      int32_t all = 0;
      for (int64_t i = 0; i < k; ++i) all += x[i];
      return all;
    };
    return (x_signed ? sum(reinterpret_cast<const int8_t*>(bytes)) : sum(bytes)) -
           static_cast<int32_t>(rows.k) * o.x_zero;
  }
};

// The elements that the strides of y reach.
int64_t SizeOfY(const BatchedGemm& g) {
  int64_t last = (g.one.trans_b ? g.one.n : g.one.k) * g.one.ldb;
  for (int i = 0; i < g.dims.rank(); ++i) last += (g.dims[i] - 1) * g.b_stride[i];
  return last;
}

// The constant as signed integers without its zero points, which the runner then takes off.
// nullopt: the rows of x do not lie as that needs it.
std::optional<SignedParts> ShiftedParts(const IntegerGemmCase& c, const Tensor& y,
                                        OnednnIntegerGemm* runner) {
  const GemmDims& d = c.g.one;
  if (d.trans_a || d.ldc != d.n || d.lda != d.k) return std::nullopt;
  const bool is_signed = c.y == DType::kI8;
  SignedParts parts;
  const auto* const bytes = static_cast<const uint8_t*>(y.raw());
  parts.first.resize(static_cast<size_t>(y.numel()));
  for (size_t i = 0; i < parts.first.size(); ++i)
    parts.first[i] = static_cast<int8_t>(is_signed ? bytes[i] : bytes[i] ^ 0x80u);
  runner->shift.resize(static_cast<size_t>(d.n));
  for (size_t i = 0; i < runner->shift.size(); ++i)
    runner->shift[i] = ZeroOf(c.y_zero, i) - (is_signed ? 0 : 128);
  runner->rows = d;
  runner->x_signed = c.x == DType::kI8;
  runner->result = c.result;
  return parts;
}

std::unique_ptr<IntegerRunner> MakeGemmUnguarded(const PrepareContext& ctx,
                                                 const IntegerGemmCase& c) {
  const BatchedGemm& g = c.g;
  auto runner = std::make_unique<OnednnIntegerGemm>();
  std::optional<SignedParts> values;
  if (c.constant_y != nullptr && g.dims.rank() == 0) {
    const BorrowedContents contents(*c.constant_y);
    const bool transposed = g.one.trans_b;
    values = Split(contents.tensor(), c.y_zero, transposed ? 1 : g.one.k, g.one.n,
                   transposed ? g.one.k : 1);
    if (!values->second.empty()) values = ShiftedParts(c, contents.tensor(), runner.get());
  }
  const bool shifts = !runner->shift.empty();
  const IntegerResult plain;
  const IntegerResult& result = shifts ? plain : c.result;
  if (!values) {
    if (c.y_zero.size() > 1) return nullptr;
    runner->y_zero = c.y_zero.empty() ? 0 : c.y_zero[0];
    if (c.y == DType::kU8) {
      runner->y_zero -= 128;
      runner->unsigned_size = SizeOfY(g);
    }
  }
  runner->call = {c.x_shifted, runner->y_zero != 0, result.scaled(), result.offset};
  runner->out = c.result.dtype;
  std::optional<memory::desc> weights;
  const std::vector<GemmCall> calls = CallsOf(g, false);
  for (size_t i = 0; i < calls.size(); ++i) {
    const GemmCall& part = calls[i];
    const GemmDims& d = part.g.one;
    if (i > 0 && calls[i - 1].g.one.m == d.m && calls[i - 1].g.dims == part.g.dims) {
      runner->parts.push_back({runner->parts.back().call, part.a_at, part.b_at, part.c_at});
      continue;
    }
    const memory::desc x =
        onednn::MatrixOf(part.g, part.g.a_stride, d.m, d.k, d.trans_a, d.lda, TypeOf(c.x));
    const memory::desc given = onednn::MatrixOf(part.g, part.g.b_stride, d.k, d.n, d.trans_b, d.ldb,
                                                memory::data_type::s8);
    const memory::desc any({d.k, d.n}, memory::data_type::s8, memory::format_tag::any);
    const memory::desc out =
        onednn::MatrixOf(part.g, part.g.c_stride, d.m, d.n, false, d.ldc, TypeOf(result.dtype));
    Dims row(static_cast<size_t>(part.g.dims.rank() + 2), 1);
    row.back() = d.n;
    const memory::desc bias = result.offset
                                  ? memory::desc(row, memory::data_type::f32, DenseStrides(row))
                                  : memory::desc();
    const dnnl::matmul::primitive_desc pd(
        onednn::Engine(), x,
        !values   ? given
        : weights ? *weights
                  : any,
        bias, out,
        AttributesOf(result, c.x_shifted, runner->y_zero != 0, 1 << (part.g.dims.rank() + 1)));
    if (IsSlow(pd)) return nullptr;
    if (runner->implementation.empty())
      runner->implementation = StrCat("onednn_int8 ", pd.impl_info_str());
    if (values && !weights) {
      weights = pd.weights_desc();
      runner->packed = PackInt8(ctx, *c.constant_y, values->first, given, *weights,
                                StrCat(c.x_shifted ? "shifted " : "", Name(c.x)));
    }
    runner->parts.push_back(
        {std::make_shared<onednn::Call>(
             dnnl::matmul(pd), runner->call.ArgumentsOf(x, pd.weights_desc(), out, d.n, bias),
             pd.scratchpad_desc()),
         part.a_at, part.b_at, part.c_at});
  }
  return runner;
}

template <typename Make>
std::unique_ptr<IntegerRunner> Guarded(const Make& make) {
  try {
    std::unique_ptr<IntegerRunner> runner;
    LibraryPlace::Enter([&] { runner = make(); });
    return runner;
  } catch (const dnnl::error&) {  // no implementation for this case
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<IntegerRunner> MakeOnednnIntegerConv(const PrepareContext& ctx,
                                                     const IntegerConvCase& c) {
  return Guarded([&] { return MakeConvUnguarded(ctx, c); });
}
std::unique_ptr<IntegerRunner> MakeOnednnIntegerGemm(const PrepareContext& ctx,
                                                     const IntegerGemmCase& c) {
  return Guarded([&] { return MakeGemmUnguarded(ctx, c); });
}

}  // namespace heddle

#else

namespace heddle {
std::unique_ptr<IntegerRunner> MakeOnednnIntegerConv(const PrepareContext&,
                                                     const IntegerConvCase&) {
  return nullptr;
}
std::unique_ptr<IntegerRunner> MakeOnednnIntegerGemm(const PrepareContext&,
                                                     const IntegerGemmCase&) {
  return nullptr;
}
}  // namespace heddle

#endif  // HEDDLE_WITH_ONEDNN
