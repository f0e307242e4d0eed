#include "kernels/common/gemm_epilogue.h"

#include <utility>

#include "core/error.h"
#include "kernels/common/fast_math.h"

namespace heddle {
namespace {

// v[i] = fn(v[i]), as a loop that the compiler vectorises.
template <typename Fn>
void Each(int64_t n, float* v, Fn fn) {
  for (int64_t i = 0; i < n; ++i) v[i] = fn(v[i]);
}

float ZeroToOne(float x) { return fast::Clamp(x, 0.f, 1.f); }

void Activate(const Epilogue& e, int64_t n, float* v) {
  const float alpha = e.alpha, beta = e.beta;
  switch (e.activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return Each(n, v, [](float x) { return fast::Select(x < 0.f, 0.f, x); });
    case Activation::kLeakyRelu:
      return Each(n, v, [=](float x) { return fast::Select(x < 0.f, alpha * x, x); });
    case Activation::kClip:
      return Each(n, v, [=](float x) { return fast::Clamp(x, alpha, beta); });
    case Activation::kHardSwish:
      return Each(n, v, [=](float x) { return x * ZeroToOne(alpha * x + beta); });
    case Activation::kHardSigmoid:
      return Each(n, v, [=](float x) { return ZeroToOne(alpha * x + beta); });
    case Activation::kSwish:
      return Each(n, v, [=](float x) { return x / (1.f + fast::Exp(-alpha * x)); });
    case Activation::kSigmoid:
      return Each(n, v, [](float x) { return fast::Sigmoid(x); });
    case Activation::kGeluErf:
      return Each(n, v, [](float x) {
        return 0.5f * x * (1.f + fast::Erf(x * 0.70710678118654752f));
      });
    case Activation::kGeluTanh:
      return Each(n, v, [](float x) {
        return 0.5f * x * (1.f + fast::Tanh(0.79788456080286536f * (x + 0.044715f * x * x * x)));
      });
    case Activation::kTanh:
      return Each(n, v, [](float x) { return fast::Tanh(x); });
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
  if (epilogue.bias) {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = c + i * row_step;
      if (bias_per_row)
        Each(width, row, [b = bias[i]](float x) { return x + b; });
      else
        for (int64_t k = 0; k < width; ++k) row[k] += bias[k];
    }
  }
  if (epilogue.activation == Activation::kNone && !epilogue.linear()) return;
  if (row_step == width) width *= std::exchange(rows, 1);  // one long row
  for (int64_t i = 0; i < rows; ++i) {
    float* row = c + i * row_step;
    Activate(epilogue, width, row);
    if (epilogue.linear())
      Each(width, row, [&e = epilogue](float x) { return e.scale * x + e.shift; });
  }
}

}  // namespace heddle
