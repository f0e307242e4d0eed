// Convolution by oneDNN primitives.
#include "kernels/conv/conv_backend.h"

#ifdef HEDDLE_WITH_ONEDNN

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/threads/library_place.h"
#include "kernels/gemm/onednn.h"

namespace heddle {
namespace {

using dnnl::memory;
using Dims = memory::dims;

Dims SpatialDims(const ConvGeometry& g, const std::array<int64_t, 3>& v, int64_t less = 0) {
  Dims dims;
  for (int i = 3 - g.spatial; i < 3; ++i) dims.push_back(v[i] - less);
  return dims;
}

Dims SideDims(const ConvGeometry& g, int64_t channels, const std::array<int64_t, 3>& size) {
  Dims dims{g.batch, channels};
  for (int64_t d : SpatialDims(g, size)) dims.push_back(d);
  return dims;
}

Dims FilterDims(const ConvGeometry& g) {
  Dims dims;
  if (g.groups > 1) dims.push_back(g.groups);
  dims.push_back(g.out_c / g.groups);
  dims.push_back(g.in_c / g.groups);
  for (int64_t d : SpatialDims(g, g.kernel)) dims.push_back(d);
  return dims;
}

// The layout of the tensors outside: channels second or last.
memory::desc Plain(const ConvGeometry& g, const Dims& dims) {
  if (!g.channels_last) return onednn::Dense(dims);
  Dims strides(dims.size());
  int64_t step = dims[1];
  strides[1] = 1;
  for (size_t i = dims.size(); i-- > 2;) {
    strides[i] = step;
    step *= dims[i];
  }
  strides[0] = step;
  return onednn::Strided(dims, strides);
}

// One operand of the primitive: as given, or copied between layouts around the call.
struct Operand {
  memory::desc outside, inside;
  std::unique_ptr<onednn::Call> reorder;  // null when the layouts agree
  int64_t bytes() const { return static_cast<int64_t>(inside.get_size()); }
};

Operand MakeOperand(const memory::desc& outside, const memory::desc& inside, bool output) {
  Operand o{outside, inside, nullptr};
  if (outside != inside)
    o.reorder =
        output ? onednn::MakeReorder(inside, outside) : onednn::MakeReorder(outside, inside);
  return o;
}

// Copies an input to the primitive's layout where needed; `hold` keeps the copy.
const void* Bring(const KernelContext& ctx, const Operand& o, const void* data, Tensor& hold) {
  if (!o.reorder) return data;
  hold = ctx.CallScratch(DType::kU8, {o.bytes()});
  o.reorder->Run(ctx, {data, hold.raw()});
  return hold.raw();
}

class OnednnConv final : public ConvRunner {
 public:
  Operand src, filter, dst;
  std::optional<Operand> residual;  // outside -> the layout of dst, where that is not the same
  bool adds = false;                // dst.reorder adds what the primitive computed to the residual
  std::shared_ptr<const onednn::Packed> packed;
  std::unique_ptr<onednn::Call> call;
  Epilogue epilogue;
  onednn::LateEpilogue late;
  int64_t results = 0;
  std::string implementation;

  std::string name() const override { return implementation; }
  bool reads_filter() const override { return packed == nullptr; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    Tensor hold_src, hold_filter, hold_dst;
    const void* from = Bring(ctx, src, o.src, hold_src);
    const void* weights = packed ? packed->data() : Bring(ctx, filter, o.filter, hold_filter);
    void* to = o.dst;
    if (dst.reorder) {
      hold_dst = ctx.CallScratch(DType::kU8, {dst.bytes()});
      to = hold_dst.mutable_raw();
    }
    if (epilogue.residual) PlaceResidual(ctx, o.residual, to);
    if (adds) Copy(ctx, o.residual, o.dst, static_cast<int64_t>(dst.outside.get_size()));
    if (epilogue.bias)
      call->Run(ctx, {from, weights, to, o.bias});
    else
      call->Run(ctx, {from, weights, to});
    if (dst.reorder) dst.reorder->Run(ctx, {to, o.dst});
    late.Run(ctx, results, static_cast<float*>(o.dst));
  }

 private:
  // The primitive adds to what its destination holds.
  void PlaceResidual(const KernelContext& ctx, const void* from, void* to) const {
    if (residual && residual->reorder) return residual->reorder->Run(ctx, {from, to});
    Copy(ctx, from, to, dst.bytes());
  }
  static void Copy(const KernelContext& ctx, const void* from, void* to, int64_t bytes) {
    if (from == to) return;
    ctx.ParallelFor(bytes, 1 << 18, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                  static_cast<size_t>(end - begin));
    });
  }
};

// A product of the pixels with a matrix, by parts of the pixels: each thread calls oneDNN for
// a part of its own. Left to itself, oneDNN may let all threads read all pixels, or have work
// for only some of them; with parts, a thread mostly reads what it wrote in the instruction
// before.
class PartedConv final : public ConvRunner {
 public:
  struct Part {
    int64_t begin, count;  // pixels
    std::shared_ptr<const onednn::Call> call;
  };
  PartedConv(const ConvGeometry& g, const Epilogue& epilogue, const onednn::LateEpilogue& late,
             std::vector<Part> parts, std::shared_ptr<const onednn::Packed> packed,
             std::string implementation)
      : in_c_(g.in_c),
        out_c_(g.out_c),
        epilogue_(epilogue),
        late_(late),
        parts_(std::move(parts)),
        packed_(std::move(packed)),
        implementation_(std::move(implementation)) {}

  std::string name() const override { return implementation_; }
  bool reads_filter() const override { return packed_ == nullptr; }

  void Run(const KernelContext& ctx, const ConvOperands& o) const override {
    const void* const weights = packed_ ? packed_->data() : o.filter;
    ctx.ParallelFor(static_cast<int64_t>(parts_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Part& part = parts_[static_cast<size_t>(i)];
        const float* const from = static_cast<const float*>(o.src) + part.begin * in_c_;
        float* const to = static_cast<float*>(o.dst) + part.begin * out_c_;
        if (epilogue_.residual && o.residual != o.dst)  // the primitive adds to what is there
          std::copy_n(static_cast<const float*>(o.residual) + part.begin * out_c_,
                      part.count * out_c_, to);
        if (epilogue_.bias)
          part.call->RunPiece(ctx, {from, weights, to, o.bias}, parts_.size());
        else
          part.call->RunPiece(ctx, {from, weights, to}, parts_.size());
        late_.RunPiece(part.count * out_c_, to);
      }
    });
  }

 private:
  const int64_t in_c_, out_c_;
  const Epilogue epilogue_;
  const onednn::LateEpilogue late_;
  const std::vector<Part> parts_;
  const std::shared_ptr<const onednn::Packed> packed_;
  const std::string implementation_;
};

struct Layouts {
  memory::desc src, filter, dst;
};

void Finish(OnednnConv& conv, const dnnl::primitive& primitive, const Layouts& outside,
            const Layouts& inside, std::array<int, 4> args, const memory::desc* bias,
            const memory::desc& scratchpad) {
  conv.src = MakeOperand(outside.src, inside.src, false);
  conv.dst = MakeOperand(outside.dst, inside.dst, true);
  if (!conv.packed) conv.filter = MakeOperand(outside.filter, inside.filter, false);
  if (conv.epilogue.residual) conv.residual = MakeOperand(outside.dst, inside.dst, false);
  if (conv.adds) conv.dst.reorder = onednn::MakeReorder(inside.dst, outside.dst, true);
  std::vector<std::pair<int, memory::desc>> list{
      {args[0], inside.src}, {args[1], inside.filter}, {args[2], inside.dst}};
  if (bias) list.emplace_back(args[3], *bias);
  conv.call = std::make_unique<onednn::Call>(primitive, std::move(list), scratchpad);
}

struct Problem {
  const PrepareContext& ctx;
  const ConvGeometry& g;
  const Tensor* constant_filter;
  Dims in, out, filter, stride, dilation, pad_lo, pad_hi;
  bool copies = false;  // tensors may be copied to the layout that oneDNN likes best
  bool bf16 = false;    // multiplies in bf16

  memory::desc Wanted(const Dims& dims) const {
    return copies ? onednn::Any(dims) : Plain(g, dims);
  }
  // Layouts of the factors; rounded to bf16 where that is asked for.
  memory::desc WantedFactor(const Dims& dims) const { return Rounded(Wanted(dims)); }
  memory::desc WantedFilter(const Dims& dims) const { return Rounded(onednn::Any(dims)); }

 private:
  memory::desc Rounded(const memory::desc& desc) const {
    return bf16 ? onednn::InBf16(desc) : desc;
  }
};

// Whether oneDNN has only its reference loops, which are slower than any other implementation.
template <typename Descriptor>
bool IsReference(const Descriptor& pd) {
  return std::strncmp(pd.impl_info_str(), "ref", 3) == 0;
}

// Whether it wants more work space than the tensors are worth: its products over unrolled windows
// may ask for all of them at once, some kernel_size() times the input. heddle's own unrolls a part
// at a time.
template <typename Descriptor>
bool TakesTooMuch(const ConvGeometry& g, const Descriptor& pd) {
  constexpr size_t kLittle = 256 << 20, kTimes = 4;
  const auto elements =
      static_cast<size_t>(g.batch * (g.in_c * g.in_size() + g.out_c * g.out_size()) +
                          g.out_c * (g.in_c / g.groups) * g.kernel_size());
  const size_t worth = std::max(kLittle, kTimes * elements * sizeof(float));
  return pd.scratchpad_desc().get_size() > worth;
}

// oneDNN's name for what it has chosen, and whether tensors are used where they lie.
template <typename Descriptor>
std::string NameOf(const Problem& p, const Descriptor& pd) {
  return StrCat(p.bf16 ? "onednn_bf16 " : "onednn ", pd.impl_info_str(),
                p.copies ? ", reordered" : ", nhwc");
}

std::unique_ptr<ConvRunner> Forward(const Problem& p, Epilogue e) {
  const onednn::LateEpilogue late(&e);
  const dnnl::primitive_attr attr = onednn::Attributes(e);
  const auto kind =
      p.constant_filter ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  const memory::desc bias = e.bias ? onednn::Dense({p.g.out_c}) : memory::desc();
  const dnnl::convolution_forward::primitive_desc pd(
      onednn::Engine(), kind, dnnl::algorithm::convolution_direct, p.WantedFactor(p.in),
      p.WantedFilter(p.filter), bias, p.Wanted(p.out), p.stride, p.dilation, p.pad_lo, p.pad_hi,
      attr);
  if (IsReference(pd) || TakesTooMuch(p.g, pd)) return nullptr;
  auto conv = std::make_unique<OnednnConv>();
  conv->implementation = NameOf(p, pd);
  conv->epilogue = e;
  conv->late = late;
  conv->results = p.g.batch * p.g.out_c * p.g.out_size();
  const memory::desc plain = onednn::Dense(p.filter);
  if (p.constant_filter && pd.weights_desc() != plain)
    conv->packed = onednn::Pack(p.ctx, *p.constant_filter, plain, pd.weights_desc());
  Finish(*conv, dnnl::convolution_forward(pd), {Plain(p.g, p.in), plain, Plain(p.g, p.out)},
         {pd.src_desc(), pd.weights_desc(), pd.dst_desc()},
         {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}, e.bias ? &bias : nullptr,
         pd.scratchpad_desc());
  return conv;
}

dnnl::convolution_forward::primitive_desc Hint(const Problem& p) {
  return {onednn::Engine(),
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          p.Wanted(p.in),
          onednn::Any(p.filter),
          p.Wanted(p.out),
          p.stride,
          p.dilation,
          p.pad_lo,
          p.pad_hi};
}

// oneDNN's gradients have no post operations: a residual is added when the result is copied to the
// tensor's layout.
std::unique_ptr<ConvRunner> BackwardData(const Problem& p, bool adds) {
  const dnnl::convolution_backward_data::primitive_desc pd(
      onednn::Engine(), dnnl::algorithm::convolution_direct, p.Wanted(p.in), onednn::Any(p.filter),
      p.Wanted(p.out), p.stride, p.dilation, p.pad_lo, p.pad_hi, Hint(p), onednn::Attributes({}));
  if (IsReference(pd) || TakesTooMuch(p.g, pd)) return nullptr;
  auto conv = std::make_unique<OnednnConv>();
  conv->implementation = NameOf(p, pd);
  conv->adds = adds;
  const memory::desc plain = onednn::Dense(p.filter);
  if (p.constant_filter && pd.weights_desc() != plain)
    conv->packed = onednn::Pack(p.ctx, *p.constant_filter, plain, pd.weights_desc());
  Finish(*conv, dnnl::convolution_backward_data(pd), {Plain(p.g, p.out), plain, Plain(p.g, p.in)},
         {pd.diff_dst_desc(), pd.weights_desc(), pd.diff_src_desc()},
         {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC, 0}, nullptr,
         pd.scratchpad_desc());
  return conv;
}

// A transposed convolution's forward pass with an epilogue: the deconvolution primitive. Its filter
// is the same memory with the two channel dimensions swapped.
std::unique_ptr<ConvRunner> Deconvolution(const Problem& p, Epilogue e) {
  const onednn::LateEpilogue late(&e);
  const size_t o = p.g.groups > 1 ? 1 : 0;
  Dims swapped = p.filter;
  std::swap(swapped[o], swapped[o + 1]);
  Dims strides = onednn::Dense(p.filter).get_strides();
  std::swap(strides[o], strides[o + 1]);
  const memory::desc plain = onednn::Strided(swapped, strides);
  const memory::desc bias = e.bias ? onednn::Dense({p.g.in_c}) : memory::desc();
  const dnnl::deconvolution_forward::primitive_desc pd(
      onednn::Engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
      p.WantedFactor(p.out), p.WantedFilter(swapped), bias, p.Wanted(p.in), p.stride, p.dilation,
      p.pad_lo, p.pad_hi, onednn::Attributes(e));
  if (IsReference(pd) || TakesTooMuch(p.g, pd)) return nullptr;
  auto conv = std::make_unique<OnednnConv>();
  conv->implementation = NameOf(p, pd);
  conv->epilogue = e;
  conv->late = late;
  conv->results = p.g.batch * p.g.in_c * p.g.in_size();
  if (p.constant_filter && pd.weights_desc() != plain)
    conv->packed = onednn::Pack(p.ctx, *p.constant_filter, plain, pd.weights_desc());
  Finish(*conv, dnnl::deconvolution_forward(pd), {Plain(p.g, p.out), plain, Plain(p.g, p.in)},
         {pd.src_desc(), pd.weights_desc(), pd.dst_desc()},
         {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}, e.bias ? &bias : nullptr,
         pd.scratchpad_desc());
  return conv;
}

std::unique_ptr<ConvRunner> BackwardFilter(const Problem& p, bool adds) {
  const dnnl::convolution_backward_weights::primitive_desc pd(
      onednn::Engine(), dnnl::algorithm::convolution_direct, p.Wanted(p.in), onednn::Any(p.filter),
      p.Wanted(p.out), p.stride, p.dilation, p.pad_lo, p.pad_hi, Hint(p), onednn::Attributes({}));
  if (IsReference(pd) || TakesTooMuch(p.g, pd)) return nullptr;
  auto conv = std::make_unique<OnednnConv>();
  conv->implementation = NameOf(p, pd);
  conv->adds = adds;
  Finish(*conv, dnnl::convolution_backward_weights(pd),
         {Plain(p.g, p.in), Plain(p.g, p.out), onednn::Dense(p.filter)},
         {pd.src_desc(), pd.diff_dst_desc(), pd.diff_weights_desc()},
         {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, 0}, nullptr,
         pd.scratchpad_desc());
  return conv;
}

bool OnlyAdds(Epilogue epilogue) {
  epilogue.residual = false;
  return epilogue.empty();
}

std::unique_ptr<ConvRunner> Make(const Problem& p, ConvDirection direction,
                                 const Epilogue& epilogue) {
  try {
    switch (direction) {
      case ConvDirection::kForward:
        return Forward(p, epilogue);
      case ConvDirection::kBackwardData:
        return OnlyAdds(epilogue) && !p.constant_filter ? BackwardData(p, epilogue.residual)
                                                        : Deconvolution(p, epilogue);
      case ConvDirection::kBackwardFilter:
        return BackwardFilter(p, epilogue.residual);
    }
  } catch (const dnnl::error&) {  // no implementation for this case
  }
  return nullptr;
}

std::unique_ptr<ConvRunner> Choose(const PrepareContext& ctx, const ConvCase& c, bool bf16) {
  const ConvGeometry& g = c.g;
  Problem p{ctx,
            g,
            c.filter,
            SideDims(g, g.in_c, g.in),
            SideDims(g, g.out_c, g.out),
            FilterDims(g),
            SpatialDims(g, g.stride),
            SpatialDims(g, g.dilation, 1),
            SpatialDims(g, g.pad_lo),
            SpatialDims(g, g.pad_hi),
            false,
            bf16};
  // Channels-last tensors are used where they lie: oneDNN is as fast with them as with its own
  // layouts. Its channels-first kernels are not worth having.
  if (g.channels_last)
    if (auto runner = Make(p, c.direction, c.epilogue)) return runner;
  p.copies = true;
  return Make(p, c.direction, c.epilogue);
}

}  // namespace

std::unique_ptr<ConvRunner> MakeOnednnPartsConv(const PrepareContext& ctx, const ConvCase& c) {
  const ConvGeometry& g = c.g;
  const Tensor* const filter = c.filter;
  Epilogue epilogue = c.epilogue;
  const onednn::LateEpilogue late(&epilogue);
  const std::array<int64_t, 3> none{}, one{1, 1, 1};
  const int64_t pixels = g.batch * g.out_size(), threads = c.threads;
  const int64_t most = (pixels + threads - 1) / threads;
  const memory::desc bias = epilogue.bias ? onednn::Dense({g.out_c}) : memory::desc();
  const memory::desc plain = onednn::Dense(FilterDims(g));
  memory::desc weights = onednn::Any(FilterDims(g));
  std::string name;
  const auto make = [&](int64_t count) {
    ConvGeometry part = g;
    part.batch = 1;
    part.in = part.out = {1, 1, count};
    const Dims in = SideDims(part, g.in_c, part.in), out = SideDims(part, g.out_c, part.out);
    const Dims zero = SpatialDims(g, none);
    const dnnl::convolution_forward::primitive_desc pd(
        onednn::Engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        Plain(part, in), weights, bias, Plain(part, out), SpatialDims(g, one), zero, zero, zero,
        onednn::Attributes(epilogue));
    if (IsReference(pd)) throw dnnl::error(dnnl_unimplemented, "only by reference loops");
    weights = pd.weights_desc();  // of the other parts, too
    if (name.empty()) name = StrCat("onednn_parts ", pd.impl_info_str());
    std::vector<std::pair<int, memory::desc>> args{
        {DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, pd.dst_desc()}};
    if (epilogue.bias) args.emplace_back(DNNL_ARG_BIAS, bias);
    return std::make_shared<const onednn::Call>(dnnl::convolution_forward(pd), std::move(args),
                                                pd.scratchpad_desc());
  };
  std::vector<PartedConv::Part> parts;
  try {
    onednn::OnOneThread([&] {
      for (int64_t at = 0; at < pixels; at += most) {
        const int64_t count = std::min(most, pixels - at);
        const bool same = !parts.empty() && parts.back().count == count;
        parts.push_back({at, count, same ? parts.back().call : make(count)});
      }
    });
  } catch (const dnnl::error&) {  // no implementation for this case
    return nullptr;
  }
  std::shared_ptr<const onednn::Packed> packed;
  if (weights != plain) packed = onednn::Pack(ctx, *filter, plain, weights);
  return std::make_unique<PartedConv>(g, epilogue, late, std::move(parts), std::move(packed),
                                      std::move(name));
}

std::unique_ptr<ConvRunner> MakeOnednnConv(const PrepareContext& ctx, const ConvCase& c) {
  std::unique_ptr<ConvRunner> runner;
  LibraryPlace::Enter([&] { runner = Choose(ctx, c, false); });
  return runner;
}
std::unique_ptr<ConvRunner> MakeOnednnBf16Conv(const PrepareContext& ctx, const ConvCase& c) {
  std::unique_ptr<ConvRunner> runner;
  LibraryPlace::Enter([&] { runner = onednn::MultipliesBf16() ? Choose(ctx, c, true) : nullptr; });
  return runner;
}

}  // namespace heddle

#else

namespace heddle {
std::unique_ptr<ConvRunner> MakeOnednnConv(const PrepareContext&, const ConvCase&) {
  return nullptr;
}
std::unique_ptr<ConvRunner> MakeOnednnPartsConv(const PrepareContext&, const ConvCase&) {
  return nullptr;
}
std::unique_ptr<ConvRunner> MakeOnednnBf16Conv(const PrepareContext&, const ConvCase&) {
  return nullptr;
}
}  // namespace heddle

#endif  // HEDDLE_WITH_ONEDNN

namespace heddle {
namespace {

#ifdef HEDDLE_WITH_ONEDNN
constexpr bool kWithOnednn = true;
#else
constexpr bool kWithOnednn = false;
#endif

}  // namespace

bool OnednnCovers(const ConvCase& c, const Machine&) {
  return kWithOnednn && c.dtype == DType::kF32 && !c.empty();
}

bool OnednnPartsCover(const ConvCase& c, const Machine& m) {
  const ConvGeometry& g = c.g;
  const std::array<int64_t, 3> none{}, one{1, 1, 1};
  return OnednnCovers(c, m) && c.direction == ConvDirection::kForward && c.filter != nullptr &&
         c.threads > 1 && g.channels_last && g.groups == 1 && g.kernel_size() == 1 &&
         g.stride == one && g.pad_lo == none && g.pad_hi == none;
}

bool OnednnBf16Covers(const ConvCase& c, const Machine& m) {
  return OnednnCovers(c, m) && c.epilogue.bf16 && c.filter != nullptr && !c.g.depthwise() &&
         m.has(kAvx512Bf16);
}

}  // namespace heddle
