#include "kernels/common/gemm_epilogue.h"

#include <Eigen/Core>

#include "core/error.h"

namespace heddle {
namespace {

using Row = Eigen::Map<Eigen::ArrayXf>;

void Activate(const Epilogue& e, Row x) {
  switch (e.activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      x = x.max(0.f);
      return;
    case Activation::kLeakyRelu:
      x = (x < 0.f).select(e.alpha * x, x);
      return;
    case Activation::kClip:
      x = x.max(e.alpha).min(e.beta);
      return;
    case Activation::kHardSwish:
      x *= (e.alpha * x + e.beta).max(0.f).min(1.f);
      return;
    case Activation::kHardSigmoid:
      x = (e.alpha * x + e.beta).max(0.f).min(1.f);
      return;
    case Activation::kSwish:
      x = x / (1.f + (-e.alpha * x).exp());
      return;
    case Activation::kSigmoid:
      x = 1.f / (1.f + (-x).exp());
      return;
    case Activation::kGeluErf:
      for (float& v : x) v = 0.5f * v * (1.f + std::erf(v * 0.70710678118654752f));
      return;
    case Activation::kGeluTanh:
      x = 0.5f * x * (1.f + (0.79788456080286536f * (x + 0.044715f * x.cube())).tanh());
      return;
    case Activation::kTanh:
      x = x.tanh();
      return;
  }
}

}  // namespace

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
    e.activation = Activation::kClip;
  } else if (activation == "hard_swish") {
    e.activation = Activation::kHardSwish;
    if (usual) e.alpha = 1.f / 6.f, e.beta = 0.5f;
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
  } else {
    return InvalidArgument("fuse_activation '", activation,
                           "' is none of relu, relu6, leaky_relu, clip, hard_swish, hard_sigmoid, "
                           "swish, sigmoid, gelu, tanh");
  }
  return e;
}

void ApplyEpilogue(const Epilogue& epilogue, int64_t rows, int64_t width, int64_t row_step,
                   const float* bias, bool bias_per_row, float* c) {
  for (int64_t i = 0; i < rows; ++i) {
    Row x(c + i * row_step, width);
    if (epilogue.bias) {
      if (bias_per_row)
        x += bias[i];
      else
        x += Eigen::Map<const Eigen::ArrayXf>(bias, width);
    }
    Activate(epilogue, x);
    if (epilogue.linear()) x = epilogue.scale * x + epilogue.shift;
  }
}

}  // namespace heddle
