#include "kernels/gemm/gemm_epilogue.h"

#include <limits>
#include <utility>

#include "core/error.h"
#include "kernels/simd/microkernels.h"

namespace heddle {

Result<Epilogue> ParseEpilogue(std::string_view activation, double alpha, double beta, bool bias,
                               bool residual) {
  Epilogue e;
  e.bias = bias;
  e.residual = residual;
  e.alpha = static_cast<float>(alpha);
  e.beta = static_cast<float>(beta);
  const bool usual = alpha == 0 && beta == 0;
  if (activation.empty() || activation == "identity") {
    e.activation = Activation::kNone;
  } else if (activation == "relu") {
    e.activation = Activation::kRelu;
  } else if (activation == "relu6") {
    e.activation = Activation::kClip;
    e.alpha = 0.f, e.beta = 6.f;
  } else if (activation == "leaky_relu") {
    e.activation = Activation::kLeakyRelu;
  } else if (activation == "clip") {
    const bool is_relu = e.alpha == 0.f && e.beta == std::numeric_limits<float>::infinity();
    e.activation = is_relu ? Activation::kReluKeepsNan : Activation::kClip;
  } else if (activation == "hard_swish") {
    e.activation = Activation::kHardSwish;
    if (usual) e.alpha = 1.f / 6.f, e.beta = 0.5f;
  } else if (activation == "hard_swish_divided_last") {
    e.activation = Activation::kHardSwish;
    e.alpha = 1.f, e.beta = 3.f, e.limit = 6.f;
    e.scale = 1.f / 6.f;
  } else if (activation == "hard_sigmoid") {
    e.activation = Activation::kHardSigmoid;
    if (usual) e.alpha = 0.2f, e.beta = 0.5f;
  } else if (activation == "swish") {
    e.activation = Activation::kSwish;
    if (alpha == 0) e.alpha = 1.f;
  } else if (activation == "sigmoid") {
    e.activation = Activation::kSigmoid;
  } else if (activation == "gelu") {
    e.activation = alpha == 1 ? Activation::kGeluTanh : Activation::kGeluErf;
  } else if (activation == "tanh") {
    e.activation = Activation::kTanh;
  } else if (activation == "mish") {
    e.activation = Activation::kMish;
  } else {
    return InvalidArgument(
        "fuse_activation '", activation,
        "' is none of relu, relu6, leaky_relu, clip, hard_swish, "
        "hard_swish_divided_last, hard_sigmoid, swish, sigmoid, gelu, tanh, mish");
  }
  return e;
}

bool FollowsOnednn(const Epilogue& epilogue) {
  switch (epilogue.activation) {
    case Activation::kReluKeepsNan:
    case Activation::kClip:
    case Activation::kHardSigmoid:
    case Activation::kSigmoid:
    case Activation::kGeluErf:
      return true;
    case Activation::kLeakyRelu:
      return epilogue.alpha == 0.f;
    default:
      return false;
  }
}

Epilogue TakeActivation(Epilogue* epilogue) {
  Epilogue late = *epilogue;
  late.bias = late.residual = false;
  const Epilogue plain;
  epilogue->activation = plain.activation;
  epilogue->scale = plain.scale;
  epilogue->shift = plain.shift;
  return late;
}

void ApplyEpilogue(const Epilogue& epilogue, int64_t rows, int64_t width, int64_t row_step,
                   const float* bias, bool bias_per_row, float* c) {
  if (epilogue.bias) {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = c + i * row_step;
      if (bias_per_row) {
        const float b = bias[i];
        for (int64_t k = 0; k < width; ++k) row[k] += b;
      } else {
        for (int64_t k = 0; k < width; ++k) row[k] += bias[k];
      }
    }
  }
  if (epilogue.activation == Activation::kNone && !epilogue.linear()) return;
  if (row_step == width) width *= std::exchange(rows, 1);  // one long row
  simd::BestMicrokernels()->activate(epilogue, rows, width, row_step, c, c);
}

void ActivateMany(Activation activation, float alpha, const float* x, int64_t n, float* y) {
  Epilogue e;
  e.activation = activation;
  e.alpha = alpha;
  simd::BestMicrokernels()->activate(e, 1, n, n, x, y);
}

}  // namespace heddle
