// Products with an epilogue as one call of cuBLASLt: which ones it can take, what the call is, and
// the algorithm, which is chosen once for each kind of product.
//
// A plan that places a product on the device chooses its algorithm (GridKernel::prepare), so that
// runs, captured ones in particular, only look it up.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/thread_annotations.h"
#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/epilogue.h"

namespace heddle::HEDDLE_GRID {

// The activation of a cuBLASLt epilogue. Its gelu is the approximation with tanh.
enum class LtActivation : uint8_t { kNone, kRelu, kGelu };

// d = f(alpha op(a) op(b) + beta c + bias), by columns, where d is gemm.c. Bias has an element for
// each row of d, that is for each column of the row-major result.
struct LtProduct {
  ColumnMajorGemm gemm;
  const void* c = nullptr;     // like d, and may be d; not read where beta is 0
  const void* bias = nullptr;  // of d's type; may be null
  LtActivation activation = LtActivation::kNone;
};

// nullopt: several calls, an activation that cuBLASLt does not have, or nothing that it would save.
// `residual` is added to the product; it and `bias` have the result's type and may be null.
std::optional<LtProduct> LtProductOf(const BatchedProduct& product, const void* residual,
                                     const void* bias, const Activation& activation);

// All that an algorithm may depend on.
struct LtKey {
  std::array<int64_t, 10> numbers{};  // sizes, leading dimensions, steps
  uint64_t kinds = 0;                 // types, transposition, epilogue, alignment
  bool operator==(const LtKey&) const = default;
};
LtKey KeyOf(const LtProduct& p);
// The greatest power of two up to 16 that all addresses of the product are multiples of.
unsigned AlignmentOf(const LtProduct& p);

struct LtChoice {
  std::array<uint64_t, 8> algorithm{};
  size_t workspace = 0;
};

// Thread-safe.
class LtChoices {
 public:
  virtual ~LtChoices() = default;
  // nullptr: cuBLASLt has no algorithm. What it returns stays as it is.
  const LtChoice* Get(const LtProduct& p);

 private:
  // Called once for each kind of product.
  virtual std::optional<LtChoice> Choose(const LtProduct& p) = 0;

  struct Hash {
    size_t operator()(const LtKey& key) const;
  };
  Mutex mutex_;
  std::unordered_map<LtKey, std::optional<LtChoice>, Hash> made_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle::HEDDLE_GRID
