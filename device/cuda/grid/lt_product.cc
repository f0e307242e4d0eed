#include "device/cuda/grid/lt_product.h"

namespace heddle::HEDDLE_GRID {
namespace {

std::optional<LtActivation> LtActivationOf(const Activation& a) {
  if (a.none) return LtActivation::kNone;
  // Limits, which keep NaN, are left to a kernel: the library does not say what its own do with it.
  if (a.op == Element::kRelu) return LtActivation::kRelu;
  if (a.op == Element::kGeluTanh) return LtActivation::kGelu;
  return std::nullopt;
}

}  // namespace

std::optional<LtProduct> LtProductOf(const BatchedProduct& product, const void* residual,
                                     const void* bias, const Activation& activation) {
  const auto last = LtActivationOf(activation);
  const std::optional<RowMajorGemm> one = product.AsOne();
  if (!last || !one || one->k == 0) return std::nullopt;
  if (bias == nullptr && *last == LtActivation::kNone) return std::nullopt;  // cuBLAS does it
  LtProduct p;
  p.gemm = ByColumns(*one);
  p.c = residual != nullptr ? residual : p.gemm.c;
  p.gemm.beta = residual != nullptr ? 1.0f : product.beta;
  p.bias = bias;
  p.activation = *last;
  return p;
}

unsigned AlignmentOf(const LtProduct& p) {
  uintptr_t bits = 16;
  for (const void* at : {p.gemm.a, p.gemm.b, static_cast<const void*>(p.gemm.c), p.c, p.bias})
    bits |= reinterpret_cast<uintptr_t>(at);
  return static_cast<unsigned>(bits & (~bits + 1));  // the lowest bit that is set
}

LtKey KeyOf(const LtProduct& p) {
  const ColumnMajorGemm& g = p.gemm;
  LtKey key;
  key.numbers = {g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.batch, g.a_step, g.b_step, g.c_step};
  const uint32_t parts[] = {static_cast<uint32_t>(g.type),
                            static_cast<uint32_t>(g.c_type),
                            g.trans_a,
                            g.trans_b,
                            p.bias != nullptr,
                            static_cast<uint32_t>(p.activation),
                            g.beta != 0,
                            AlignmentOf(p)};
  for (const uint32_t part : parts) key.kinds = key.kinds << 5 | part;
  return key;
}

size_t LtChoices::Hash::operator()(const LtKey& key) const {
  uint64_t h = key.kinds;
  for (const int64_t n : key.numbers) h = (h ^ static_cast<uint64_t>(n)) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(h ^ (h >> 32));
}

const LtChoice* LtChoices::Get(const LtProduct& p) {
  const LtKey key = KeyOf(p);
  MutexLock lock(mutex_);
  auto found = made_.find(key);
  if (found == made_.end()) found = made_.emplace(key, Choose(p)).first;
  return found->second ? &*found->second : nullptr;
}

}  // namespace heddle::HEDDLE_GRID
