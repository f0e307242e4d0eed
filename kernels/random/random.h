// Random numbers of operators: Paddle's values, bit by bit, for the same seed.
#pragma once

#include <optional>
#include <random>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/kernel_context.h"

namespace heddle {

// The generator an operator draws from: the run's own for seed 0, otherwise a new one.
class OpRandom {
 public:
  OpRandom(const KernelContext& ctx, int64_t seed) {
    if (seed == 0)
      engine_ = &ctx.random();
    else
      engine_ = &own_.emplace(static_cast<uint64_t>(seed));
  }
  OpRandom(const OpRandom&) = delete;
  OpRandom& operator=(const OpRandom&) = delete;
  std::mt19937_64& operator*() { return *engine_; }

 private:
  std::optional<std::mt19937_64> own_;
  std::mt19937_64* engine_;
};

// out[i] = draw(engine) in order, for tensors of floating types; `draw` is made by make(C{}), C
// being float or double, whichever the dtype computes in.
template <typename Make>
Status FillRandom(const KernelContext& ctx, Tensor& out, int64_t seed, Make&& make) {
  OpRandom random(ctx, seed);
  const bool known = VisitDType<float, double, float16, bfloat16>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto draw = make(ComputeType<T>{});
    T* y = out.mutable_data<T>();
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) y[i] = static_cast<T>(draw(*random));
  });
  if (!known) return InvalidArgument("no random numbers of dtype ", Name(out.dtype()));
  return Status::Ok();
}

}  // namespace heddle
