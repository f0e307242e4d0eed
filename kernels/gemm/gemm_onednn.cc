// Matrix products by oneDNN's matmul primitive.
#include "kernels/gemm/gemm_implementations.h"

#ifdef HEDDLE_WITH_ONEDNN

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/interrupts.h"
#include "core/threads/library_place.h"
#include "kernels/gemm/gemm_calls.h"
#include "kernels/gemm/onednn.h"

namespace heddle {
namespace {

using dnnl::memory;

// K-split: single-precision sums are cut into parts of at most this length, since rounding errors
// grow with the length of a chain. Packed operands, which serve inference, are not split.
constexpr int64_t kLongestSum = 256;

class OnednnGemmRunner final : public GemmRunner {
 public:
  // A part of the result, or a range of the inner dimension; offsets into the operands in elements.
  struct Part {
    std::shared_ptr<const onednn::Call> call;
    int64_t a_at = 0, b_at = 0, c_at = 0, bias_at = 0;
  };
  std::vector<Part> parts;
  std::shared_ptr<const onednn::Packed> packed;
  std::unique_ptr<onednn::Call> round;  // converts A to bf16; null: A is used directly
  int64_t rounded_bytes = 0;
  Epilogue epilogue;
  onednn::LateEpilogue late;
  int64_t c_size = 0;
  std::string implementation;

  std::string name() const override { return implementation; }
  bool reads_b() const override { return packed == nullptr; }

  void Run(const KernelContext& ctx, const float* a, const float* b, const float* bias,
           const float* residual, float* c) const override {
    if (epilogue.residual && residual != c) {
      ctx.ParallelFor(c_size, 1 << 16, [&](int64_t begin, int64_t end) {
        std::memcpy(c + begin, residual + begin, static_cast<size_t>(end - begin) * sizeof(float));
      });
    }
    Tensor rounded;
    if (round) {
      rounded = ctx.CallScratch(DType::kU8, {rounded_bytes});
      round->Run(ctx, {a, rounded.raw()});
      a = static_cast<const float*>(rounded.raw());
    }
    for (const Part& part : parts) {
      LookForInterrupt();
      const void* weights = packed ? packed->data() : b + part.b_at;
      const void* from =
          round ? static_cast<const void*>(reinterpret_cast<const uint16_t*>(a) + part.a_at)
                : a + part.a_at;
      if (epilogue.bias)
        part.call->Run(ctx, {from, weights, c + part.c_at, bias + part.bias_at});
      else
        part.call->Run(ctx, {from, weights, c + part.c_at});
    }
    late.Run(ctx, c_size, c);
  }
};

// One call for `k` elements of the inner dimension.
std::shared_ptr<const onednn::Call> MakeCall(const BatchedGemm& g, int64_t k,
                                             const Epilogue& epilogue, std::string* name) {
  const GemmDims& d = g.one;
  const memory::desc a = onednn::MatrixOf(g, g.a_stride, d.m, k, d.trans_a, d.lda);
  const memory::desc b = onednn::MatrixOf(g, g.b_stride, k, d.n, d.trans_b, d.ldb);
  const memory::desc c = onednn::MatrixOf(g, g.c_stride, d.m, d.n, false, d.ldc);
  const dnnl::matmul::primitive_desc pd(onednn::Engine(), a, b, c,
                                        onednn::Attributes(epilogue, nullptr, 1.f));
  *name = StrCat("onednn ", pd.impl_info_str(), ", K in parts");
  return std::make_shared<onednn::Call>(
      dnnl::matmul(pd),
      std::vector<std::pair<int, memory::desc>>{
          {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}},
      pd.scratchpad_desc());
}

// Parts of equal length except the last; all but the first accumulate into C.
void AddInParts(const GemmCall& whole, OnednnGemmRunner* runner) {
  const BatchedGemm& g = whole.g;
  const GemmDims& d = g.one;
  const int64_t count = (d.k + kLongestSum - 1) / kLongestSum;
  const int64_t length = (d.k + count - 1) / count;
  Epilogue add;
  add.residual = true;
  std::shared_ptr<const onednn::Call> middle;
  for (int64_t at = 0; at < d.k; at += length) {
    const int64_t k = std::min(length, d.k - at);
    auto call = middle;
    if (at == 0 || k != length || !middle)
      call = MakeCall(g, k, at == 0 ? Epilogue() : add, &runner->implementation);
    if (at > 0 && k == length) middle = call;
    runner->parts.push_back({std::move(call), whole.a_at + at * (d.trans_a ? d.lda : 1),
                             whole.b_at + at * (d.trans_b ? 1 : d.ldb), whole.c_at});
  }
}

// The products that a runner's calls compute, which are all alike but for their sizes.
struct Products {
  const PrepareContext& ctx;
  const GemmCase& product;
  bool bf16;
  Epilogue epilogue;

  void Add(const GemmCall& part, OnednnGemmRunner* runner) {
    const BatchedGemm& g = part.g;
    const GemmDims& d = g.one;
    const float alpha = product.alpha;
    const memory::desc a = bf16 ? onednn::InBf16(onednn::Dense({d.m, d.k})) : Given(g);
    const memory::desc b = onednn::MatrixOf(g, g.b_stride, d.k, d.n, d.trans_b, d.ldb);
    const memory::desc c = onednn::MatrixOf(g, g.c_stride, d.m, d.n, false, d.ldc);
    const bool pack = product.constant_b != nullptr && g.dims.rank() == 0;
    const memory::desc packed = weights ? *weights : onednn::Any({d.k, d.n});
    memory::dims bias_dims(static_cast<size_t>(g.dims.rank() + 2), 1);
    bias_dims.back() = d.n;
    const memory::desc bias = epilogue.bias ? onednn::Dense(bias_dims) : memory::desc();
    // oneDNN adds its own bias before anything else: with a factor the bias follows it instead.
    const bool scaled = alpha != 1.f;
    dnnl::primitive_attr attr = onednn::Attributes(epilogue, scaled ? &bias : nullptr, alpha);
    const dnnl::matmul::primitive_desc pd(onednn::Engine(), a,
                                          bf16 && !weights  ? onednn::InBf16(packed)
                                          : pack || weights ? packed
                                                            : b,
                                          scaled ? memory::desc() : bias, c, attr);
    if (runner->implementation.empty())
      runner->implementation = StrCat(bf16 ? "onednn_bf16 " : "onednn ", pd.impl_info_str());
    if (pack && !weights) {
      weights = pd.weights_desc();
      if (pd.weights_desc() != b)
        runner->packed = onednn::Pack(ctx, *product.constant_b, b, pd.weights_desc());
    }
    std::vector<std::pair<int, memory::desc>> args{
        {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, c}};
    if (epilogue.bias) args.emplace_back(scaled ? onednn::ScaledBiasArg() : DNNL_ARG_BIAS, bias);
    runner->parts.push_back(
        {std::make_shared<onednn::Call>(dnnl::matmul(pd), args, pd.scratchpad_desc())});
  }
  static memory::desc Given(const BatchedGemm& g) {
    const GemmDims& d = g.one;
    return onednn::MatrixOf(g, g.a_stride, d.m, d.k, d.trans_a, d.lda);
  }
  std::optional<memory::desc> weights = {};  // the layout of a packed B, for all calls
};

bool Alike(const BatchedGemm& g, const BatchedGemm& h) {
  return g.one.m == h.one.m && g.one.n == h.one.n && g.dims == h.dims;
}

std::unique_ptr<GemmRunner> MakeUnguarded(const PrepareContext& ctx, const GemmCase& product,
                                          bool bf16) {
  const BatchedGemm& g = product.g;
  Epilogue epilogue = product.epilogue;
  const onednn::LateEpilogue late(&epilogue);
  auto runner = std::make_unique<OnednnGemmRunner>();
  const std::vector<GemmCall> calls = CallsOf(g, product.constant_b == nullptr);
  if (product.constant_b == nullptr && epilogue.empty() && !late && product.alpha == 1.f &&
      g.one.k > kLongestSum) {
    for (size_t i = 0; i < calls.size(); ++i) AddInParts(calls[i], runner.get());
    return runner;
  }
  Products products{ctx, product, bf16, epilogue, std::nullopt};
  std::vector<size_t> made;  // the first calls of their sizes, in the order of their parts
  for (size_t i = 0; i < calls.size(); ++i) {
    const GemmCall& call = calls[i];
    const auto same =
        std::find_if(made.begin(), made.end(), [&](size_t k) { return Alike(calls[k].g, call.g); });
    if (same == made.end()) {
      products.Add(call, runner.get());
      made.push_back(i);
    } else {
      runner->parts.push_back({runner->parts[*same].call});
    }
    OnednnGemmRunner::Part& part = runner->parts.back();
    part.a_at = bf16 ? call.row * g.one.k : call.a_at;
    part.b_at = call.b_at;
    part.c_at = call.c_at;
    part.bias_at = call.column;
  }
  runner->epilogue = epilogue;
  runner->late = late;
  runner->c_size = g.batch * g.one.m * g.one.n;
  if (bf16) {
    const memory::desc all = onednn::InBf16(onednn::Dense({g.one.m, g.one.k}));
    runner->round = onednn::MakeReorder(Products::Given(g), all);
    runner->rounded_bytes = static_cast<int64_t>(all.get_size());
  }
  return runner;
}

std::unique_ptr<GemmRunner> Make(const PrepareContext& ctx, const GemmCase& c, bool bf16) {
  try {
    std::unique_ptr<GemmRunner> runner;
    LibraryPlace::Enter([&] { runner = MakeUnguarded(ctx, c, bf16); });
    return runner;
  } catch (const dnnl::error&) {  // no implementation for this case
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<GemmRunner> MakeOnednnGemm(const PrepareContext& ctx, const GemmCase& c) {
  return Make(ctx, c, false);
}
std::unique_ptr<GemmRunner> MakeOnednnBf16Gemm(const PrepareContext& ctx, const GemmCase& c) {
  return onednn::MultipliesBf16() ? Make(ctx, c, true) : nullptr;
}

}  // namespace heddle

#else

namespace heddle {
std::unique_ptr<GemmRunner> MakeOnednnGemm(const PrepareContext&, const GemmCase&) {
  return nullptr;
}
std::unique_ptr<GemmRunner> MakeOnednnBf16Gemm(const PrepareContext&, const GemmCase&) {
  return nullptr;
}
}  // namespace heddle

#endif  // HEDDLE_WITH_ONEDNN

namespace heddle {

bool OnednnGemmCovers(const GemmCase& c, const Machine&) { return kWithOnednn && !c.g.sums; }

bool OnednnBf16GemmCovers(const GemmCase& c, const Machine& m) {
  return OnednnGemmCovers(c, m) && c.epilogue.bf16 && c.constant_b != nullptr &&
         c.g.dims.rank() == 0 && m.has(kAvx512Bf16);
}

}  // namespace heddle
