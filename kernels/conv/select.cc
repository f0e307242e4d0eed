#include "kernels/conv/select.h"

#include <stdexcept>

#include "core/memory/contents_error.h"
#include "core/memory/lazy_buffer.h"
#include "kernels/conv/conv_backend.h"
#include "kernels/conv/conv_calls.h"
#include "kernels/conv/cost.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

std::string DescribeWinograd(const ConvCase& c, const Machine& m) {
  const int tile = simd::WinogradTileOf(c.g.kernel[2]);
  return StrCat("winograd ", c.g.kernel[1] == 1 ? 1 : tile, "x", tile, ", ", simd::VectorsOf(m));
}
std::string DescribeDepthwise(const ConvCase&, const Machine& m) {
  return StrCat("depthwise, ", simd::VectorsOf(m));
}
std::string DescribePlanes(const ConvCase&, const Machine& m) {
  return StrCat("planes, ", simd::VectorsOf(m));
}
std::string DescribePatches(const ConvCase&, const Machine& m) {
  return StrCat("patches, ", simd::VectorsOf(m));
}
std::string DescribeDirect(const ConvCase&, const Machine& m) {
  return StrCat("direct, ", simd::VectorsOf(m));
}

constexpr ConvImplementation kImplementations[] = {
    {"winograd", WinogradCovers, convcost::Winograd, DescribeWinograd, MakeWinogradConv},
    {"depthwise", DepthwiseCovers, convcost::Depthwise, DescribeDepthwise, MakeDepthwiseConv},
    {"planes", PlanesCover, convcost::Planes, DescribePlanes, MakePlanesConv},
    {"patches", PatchesCover, convcost::Patches, DescribePatches, MakePatchConv},
    {"onednn_bf16", OnednnBf16Covers, convcost::OnednnBf16,
     [](const ConvCase&, const Machine&) -> std::string { return "onednn_bf16"; },
     MakeOnednnBf16Conv},
    {"onednn_parts", OnednnPartsCover, convcost::OnednnParts,
     [](const ConvCase&, const Machine&) -> std::string { return "onednn_parts"; },
     MakeOnednnPartsConv},
    {"onednn", OnednnCovers, convcost::Onednn,
     [](const ConvCase&, const Machine&) -> std::string { return "onednn"; }, MakeOnednnConv},
    {"direct", DirectCovers, convcost::Direct, DescribeDirect, MakeDirectConv},
    {"im2col", [](const ConvCase&, const Machine&) { return true; }, convcost::Im2col,
     [](const ConvCase&, const Machine&) -> std::string { return "im2col + gemm"; },
     MakeIm2colConv},
};

class NamedConv final : public ConvRunner {
 public:
  explicit NamedConv(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void Run(const KernelContext&, const ConvOperands&) const override {
    throw std::logic_error("this plan is for a machine that was only described");
  }

 private:
  const std::string name_;
};

std::string KeyOf(const ConvCase& c) {
  const ConvGeometry& g = c.g;
  if (c.filter == nullptr || c.dtype != DType::kF32 || c.empty() ||
      c.direction == ConvDirection::kBackwardFilter)
    return "";
  const auto three = [](const std::array<int64_t, 3>& a) {
    return StrCat(a[0], "x", a[1], "x", a[2]);
  };
  const Epilogue& e = c.epilogue;
  return StrCat("conv f32 direction ", static_cast<int>(c.direction),
                g.channels_last ? " nhwc" : " nchw", " spatial ", g.spatial, " batch ", g.batch,
                " groups ", g.groups, " channels ", g.in_c, "-", g.out_c, " in ", three(g.in),
                " kernel ", three(g.kernel), " stride ", three(g.stride), " dilation ",
                three(g.dilation), " pads ", three(g.pad_lo), "-", three(g.pad_hi), " activation ",
                static_cast<int>(e.activation), e.bias ? " bias" : "",
                e.residual ? " residual" : "", e.linear() ? " linear" : "", e.bf16 ? " bf16" : "");
}

class ConvTrial final : public Trial<ConvRunner> {
 public:
  explicit ConvTrial(const ConvCase& c) {
    // Some implementations read the filter while they are measured.
    if (const Status s = MakeResident(*c.filter); !s.ok())
      throw ContentsError(s, c.filter->buffer().get());
    const bool forward = c.direction == ConvDirection::kForward;
    const int64_t in = c.g.batch * c.g.in_c * c.g.in_size(),
                  out = c.g.batch * c.g.out_c * c.g.out_size();
    src_ = TrialOperand(forward ? in : out);
    bias_ = TrialOperand(forward ? c.g.out_c : c.g.in_c);
    residual_ = TrialOperand(c.epilogue.residual ? (forward ? out : in) : 1);
    dst_ = TrialOperand(forward ? out : in);
    operands_ = {src_.raw(), c.filter->raw(), c.epilogue.bias ? bias_.raw() : nullptr,
                 c.epilogue.residual ? residual_.raw() : nullptr, dst_.mutable_raw()};
  }
  void Run(const KernelContext& ctx, const ConvRunner& runner) override {
    runner.Run(ctx, operands_);
  }

 private:
  Tensor src_, bias_, residual_, dst_;
  ConvOperands operands_;
};

const Family<ConvCase, ConvRunner>& ConvFamily() {
  static const Family<ConvCase, ConvRunner> family{
      "conv", kImplementations,
      [](std::string name) -> std::unique_ptr<ConvRunner> {
        return std::make_unique<NamedConv>(std::move(name));
      },
      KeyOf,
      [](const ConvCase& c) -> std::unique_ptr<Trial<ConvRunner>> {
        return std::make_unique<ConvTrial>(c);
      }};
  return family;
}

}  // namespace

std::span<const ConvImplementation> ConvImplementations() { return kImplementations; }

std::string DescribeConv(const ConvCase& c, const Machine& m) {
  return Ranked(ConvImplementations(), c, m).front()->describe(c, m);
}

Result<std::unique_ptr<ConvRunner>> MakeConv(const PrepareContext& ctx,
                                             const ConvGeometry& geometry, DType dtype,
                                             ConvDirection direction, const Tensor* filter,
                                             const Epilogue& epilogue) {
  const ConvGeometry g = AlongWidth(geometry);
  const ConvCase c{g, dtype, direction, filter, epilogue, ctx.threads(), ctx.lean()};
  return MakeConvInCalls(c,
                         [&](const ConvCase& part) { return MakeBest(ctx, ConvFamily(), part); });
}

}  // namespace heddle
