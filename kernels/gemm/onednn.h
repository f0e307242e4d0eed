// oneDNN: the engine, primitives called from kernels, weights in oneDNN's layouts.
//
// Only sources that hold primitives include this; no other header of heddle shows a oneDNN type.
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "core/threads/near_list.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/gemm/onednn_library.h"

namespace heddle::onednn {

// The CPU engine. The first call opens the library and fixes the instruction sets that it may use;
// throws dnnl::error where the library is not found.
const dnnl::engine& Engine();

// dnnl_sgemm; false when oneDNN refuses or is not found.
bool Sgemm(const GemmDims& d, float alpha, const float* a, const float* b, float beta, float* c);

// A float memory descriptor with row-major strides, or the given ones.
dnnl::memory::desc Dense(const dnnl::memory::dims& dims);
dnnl::memory::desc Strided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides);
dnnl::memory::desc Any(const dnnl::memory::dims& dims);
// A matrix operand of a batched product, with its batch dimensions; those that it is broadcast
// along have size 1.
dnnl::memory::desc MatrixOf(const BatchedGemm& g, const Shape& batch_stride, int64_t rows,
                            int64_t cols, bool transposed, int64_t leading,
                            dnnl::memory::data_type type = dnnl::memory::data_type::f32);
// The same layout, of bf16 numbers.
dnnl::memory::desc InBf16(const dnnl::memory::desc& desc);
// Does the processor have instructions that multiply bf16 numbers, and oneDNN use them?
bool MultipliesBf16();
// Text that tells layouts apart.
std::string Describe(const dnnl::memory::desc& desc);
// The part of an epilogue that heddle applies to what oneDNN has computed (FollowsOnednn); nothing:
// oneDNN computes all of it.
class LateEpilogue {
 public:
  LateEpilogue() = default;
  // Takes the part out of `epilogue`.
  explicit LateEpilogue(Epilogue* epilogue);
  explicit operator bool() const { return late_.has_value(); }
  // Applies it to n elements, by the threads of the run.
  void Run(const KernelContext& ctx, int64_t n, float* data) const;
  // The same within a piece of a ParallelFor.
  void RunPiece(int64_t n, float* data) const;

 private:
  std::optional<Epilogue> late_;
};

// User-mode scratchpad and the epilogue's post operations, but for the bias. A residual must lie in
// the destination when the primitive runs: the result is added to it.
// With `scaled_bias` the primitive's result is first multiplied by `factor`, then the epilogue's
// bias, if any, is added, whose layout that is: argument ScaledBiasArg().
dnnl::primitive_attr Attributes(const Epilogue& epilogue,
                                const dnnl::memory::desc* scaled_bias = nullptr, float factor = 1);
int ScaledBiasArg();

// A primitive and what it is called with. Re-entrant: oneDNN's memory objects are made per
// concurrent call and kept for the next one.
class Call {
 public:
  Call(dnnl::primitive primitive, std::vector<std::pair<int, dnnl::memory::desc>> args,
       const dnnl::memory::desc& scratchpad);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // `data` in the order of the constructor's `args`. Throws std::runtime_error when oneDNN
  // reports a failure.
  void Run(const KernelContext& ctx, std::initializer_list<const void*> data) const {
    Run(ctx, std::span(data.begin(), data.size()));
  }
  void Run(const KernelContext& ctx, std::span<const void* const> data) const;
  // The same within one of `pieces` pieces of a ParallelFor, for a primitive that was made
  // OnOneThread.
  void RunPiece(const KernelContext& ctx, std::initializer_list<const void*> data,
                size_t pieces) const {
    RunPiece(ctx, std::span(data.begin(), data.size()), pieces);
  }
  void RunPiece(const KernelContext& ctx, std::span<const void* const> data, size_t pieces) const;

 private:
  struct Handles;
  std::unique_ptr<Handles> NewHandles() const;

  dnnl::primitive primitive_;
  std::vector<std::pair<int, dnnl::memory::desc>> args_;
  dnnl::memory::desc scratchpad_;
  mutable NearSpares<Handles> spares_;
  mutable std::atomic<bool> reserved_{false};  // spares for all pieces were made; orders nothing
};

// Calls `make`, whose primitives will use the calling thread alone.
void OnOneThread(FunctionRef<void()> make);

// Copies between layouts as a Call of (source, destination); with `add` adds to the destination.
std::unique_ptr<Call> MakeReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                                  bool add = false);

// A constant in another layout.
struct Packed {
  static constexpr int kPackingVersion = 1;  // see PackOnce
  BufferRef memory;
  const void* data() const { return memory->data(); }
};
// `source`, laid out as `from`, in layout `to`; shared through the plan's cache of such copies.
std::shared_ptr<const Packed> Pack(const PrepareContext& ctx, const Tensor& source,
                                   const dnnl::memory::desc& from, const dnnl::memory::desc& to);

}  // namespace heddle::onednn
