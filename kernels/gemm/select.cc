#include "kernels/gemm/select.h"

#include <stdexcept>

#include "core/memory/contents_error.h"
#include "core/memory/lazy_buffer.h"
#include "kernels/gemm/cost.h"
#include "kernels/gemm/gemm_implementations.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

class NamedGemm final : public GemmRunner {
 public:
  explicit NamedGemm(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void Run(const KernelContext&, const float*, const float*, const float*, const float*,
           float*) const override {
    throw std::logic_error("this plan is for a machine that was only described");
  }

 private:
  const std::string name_;
};

constexpr GemmImplementation kImplementations[] = {
    {"panels_int8", PanelsInt8Cover, gemmcost::PanelsInt8,
     [](const GemmCase&, const Machine& m) { return StrCat("panels_int8, ", simd::VectorsOf(m)); },
     MakeInt8Gemm},
    {"onednn_bf16", OnednnBf16GemmCovers, gemmcost::OnednnBf16,
     [](const GemmCase&, const Machine&) -> std::string { return "onednn_bf16"; },
     MakeOnednnBf16Gemm},
    {"panels", PanelsCover, gemmcost::Panels,
     [](const GemmCase&, const Machine& m) { return StrCat("panels, ", simd::VectorsOf(m)); },
     MakePanelGemm},
    {"onednn", OnednnGemmCovers, gemmcost::Onednn,
     [](const GemmCase&, const Machine&) -> std::string { return "onednn"; }, MakeOnednnGemm},
    {"panels_variable", PanelsVariableCover, gemmcost::PanelsVariable,
     [](const GemmCase&, const Machine& m) {
       return StrCat("panels_variable, ", simd::VectorsOf(m));
     },
     MakeVariableGemm},
    {"plain", [](const GemmCase&, const Machine&) { return true; }, gemmcost::Plain,
     [](const GemmCase&, const Machine&) -> std::string { return "plain"; }, MakePlainGemm},
};

std::string KeyOf(const GemmCase& c) {
  const BatchedGemm& g = c.g;
  const GemmDims& d = g.one;
  const Epilogue& e = c.epilogue;
  // Not tuned: rounded weights, which an option asks for, and products without a constant matrix.
  if (c.constant_b == nullptr || e.int8 || g.batch != 1 || g.work() == 0) return "";
  return StrCat("gemm f32 ", d.m, "x", d.n, "x", d.k, d.trans_a ? " ta" : "",
                d.trans_b ? " tb" : "", " lda ", d.lda, " ldb ", d.ldb, " alpha ", c.alpha,
                " activation ", static_cast<int>(e.activation), e.bias ? " bias" : "",
                e.residual ? " residual" : "", e.linear() ? " linear" : "", e.bf16 ? " bf16" : "",
                c.use.piece > 0 ? " pieces" : "", c.use.unfused ? " unfused" : "");
}

// A lies in one piece here.
class GemmTrial final : public Trial<GemmRunner> {
 public:
  explicit GemmTrial(const GemmCase& c) : b_(c.constant_b->data<float>()) {
    const GemmDims& d = c.g.one;
    a_ = TrialOperand(d.lda * (d.trans_a ? d.k : d.m));
    bias_ = TrialOperand(d.n);
    residual_ = TrialOperand(c.epilogue.residual ? d.m * d.ldc : 1);
    c_ = TrialOperand(d.m * d.ldc);
  }
  void Run(const KernelContext& ctx, const GemmRunner& runner) override {
    runner.Run(ctx, a_.data<float>(), b_, bias_.data<float>(), residual_.data<float>(),
               c_.mutable_data<float>());
  }

 private:
  const float* const b_;
  Tensor a_, bias_, residual_, c_;
};

std::unique_ptr<Trial<GemmRunner>> MakeTrial(const GemmCase& c) {
  // Some implementations read B while they are measured.
  if (const Status s = MakeResident(*c.constant_b); !s.ok())
    throw ContentsError(s, c.constant_b->buffer().get());
  return std::make_unique<GemmTrial>(c);
}

const Family<GemmCase, GemmRunner>& GemmFamily() {
  static const Family<GemmCase, GemmRunner> family{
      "gemm", kImplementations,
      [](std::string name) -> std::unique_ptr<GemmRunner> {
        return std::make_unique<NamedGemm>(std::move(name));
      },
      KeyOf, MakeTrial};
  return family;
}

}  // namespace

std::span<const GemmImplementation> GemmImplementations() { return kImplementations; }

Result<std::unique_ptr<GemmRunner>> MakeGemm(const PrepareContext& ctx, const BatchedGemm& g,
                                             float alpha, const Tensor* constant_b,
                                             const Epilogue& epilogue, GemmUse use) {
  const GemmCase c{g, alpha, constant_b, epilogue, use, ctx.threads(), ctx.lean()};
  return MakeBest(ctx, GemmFamily(), c);
}

}  // namespace heddle
