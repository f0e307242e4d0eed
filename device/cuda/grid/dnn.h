// Convolutions of a library (cuDNN), as kernels see them: described in prepare, executed in runs.
// The library is chosen when the device is opened; there may be none (device/cuda/dnn/cudnn.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/error.h"
#include "device/cuda/grid/conv_geometry.h"
#include "heddle/dtype.h"

namespace heddle::HEDDLE_GRID {

// A convolution or one of its gradients. Tensors are of `dtype`; sums are float32. With channels
// last the filter is [out, height, width, in], otherwise [out, in, height, width].
struct DnnConv {
  enum class Kind {
    kForward,     // y = f(x * w + residual + bias)
    kInputGrad,   // x from y and w
    kFilterGrad,  // w from x and y
  };
  Kind kind = Kind::kForward;
  DType dtype = DType::kF32;
  ConvShape shape;
  bool add = false;  // to what the result holds; without those below
  bool residual = false, bias = false;
  bool relu = false;      // f is that, else the identity; only behind a bias
  bool keep_nan = false;  // of relu: NaN stays, else it gives 0
};

// Whether a library takes the geometry: padding on both sides is the same, and nothing is empty.
inline bool EvenlyPadded(const ConvAxis& a) {
  const int64_t reach = int64_t{a.dilation} * (a.kernel - 1) + 1;
  const int64_t room = int64_t{a.in} + 2 * int64_t{a.pad} - reach;
  return a.pad >= 0 && room >= 0 && room / a.stride + 1 == a.out;
}
inline bool DnnTakes(const ConvShape& g) {
  return g.batch > 0 && g.in_c > 0 && g.out_c > 0 && g.in_size() > 0 && g.out_size() > 0 &&
         EvenlyPadded(g.h) && EvenlyPadded(g.w);
}

// An algorithm for one convolution. Immutable; runs on several streams may share it.
class DnnPlan {
 public:
  virtual ~DnnPlan() = default;
  virtual size_t workspace_bytes() const = 0;
  virtual const std::string& name() const = 0;  // "engine 38"
};

// The operands' memory: x, w and y of the forward convolution, whichever of them is the result.
struct DnnOperands {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* y = nullptr;
  const void* residual = nullptr;
  const void* bias = nullptr;
  void* workspace = nullptr;
};

// Executes plans on one stream. Not thread-safe.
class DnnStream {
 public:
  virtual ~DnnStream() = default;
  virtual Status Run(const DnnPlan& plan, const DnnOperands& operands) = 0;
};

// The library. Thread-safe; outlives streams, but not every plan.
class Dnn {
 public:
  virtual ~Dnn() = default;
  virtual const std::string& name() const = 0;  // "cudnn"
  // `stream`: CUDA's.
  virtual Result<std::unique_ptr<DnnStream>> NewStream(void* stream) = 0;
  // nullptr: the library has no deterministic algorithm for it, or none in the precision that was
  // asked for.
  virtual std::unique_ptr<DnnPlan> Plan(const DnnConv& conv) = 0;
};

}  // namespace heddle::HEDDLE_GRID
