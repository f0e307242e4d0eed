#include "kernels/gemm/gemm_epilogue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "kernels/simd/conv_loops.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

// Rows of `width` floats, row_step apart.
struct Rows {
  int64_t rows, width, row_step;
  float* data;
};

// x = fn(x) for each of them, as a loop that the compiler vectorises.
template <typename Fn>
inline void Each(const Rows& v, Fn fn) {
  for (int64_t r = 0; r < v.rows; ++r) {
    float* const row = v.data + r * v.row_step;
    for (int64_t i = 0; i < v.width; ++i) row[i] = fn(row[i]);
  }
}

float ZeroToOne(float x) { return fast::Clamp(x, 0.f, 1.f); }

// For processors without loops of their own.
void ActivateRows(const Epilogue& e, const Rows& v) {
  const float alpha = e.alpha, beta = e.beta;
  switch (e.activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return Each(v, [](float x) { return fast::Select(x < 0.f, 0.f, x); });
    case Activation::kLeakyRelu:
      return Each(v, [=](float x) { return fast::Select(x < 0.f, alpha * x, x); });
    case Activation::kClip:
      return Each(v, [=](float x) { return fast::Clamp(x, alpha, beta); });
    case Activation::kHardSwish:
      return Each(v, [=](float x) { return x * ZeroToOne(alpha * x + beta); });
    case Activation::kHardSigmoid:
      return Each(v, [=](float x) { return ZeroToOne(alpha * x + beta); });
    case Activation::kSwish:
      return Each(v, [=](float x) { return x / (1.f + fast::Exp(-alpha * x)); });
    case Activation::kSigmoid:
      return Each(v, [](float x) { return fast::Sigmoid(x); });
    case Activation::kGeluErf:
      return Each(v,
                  [](float x) { return 0.5f * x * (1.f + fast::Erf(x * 0.70710678118654752f)); });
    case Activation::kGeluTanh:
      return Each(v, [](float x) {
        return 0.5f * x * (1.f + fast::Tanh(0.79788456080286536f * (x + 0.044715f * x * x * x)));
      });
    case Activation::kTanh:
      return Each(v, [](float x) { return fast::Tanh(x); });
    case Activation::kMish:
      return Each(v, [](float x) {
        const float e = fast::Exp(fast::Select(x > 20.f, 20.f, x)), n = e * (e + 2);
        return x * (n / (n + 2));
      });
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
  } else if (activation == "mish") {
    e.activation = Activation::kMish;
  } else {
    return InvalidArgument("fuse_activation '", activation,
                           "' is none of relu, relu6, leaky_relu, clip, hard_swish, hard_sigmoid, "
                           "swish, sigmoid, gelu, tanh, mish");
  }
  return e;
}

void ApplyEpilogue(const Epilogue& epilogue, int64_t rows, int64_t width, int64_t row_step,
                   const float* bias, bool bias_per_row, float* c) {
  if (epilogue.bias) {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = c + i * row_step;
      if (bias_per_row)
        Each({1, width, width, row}, [b = bias[i]](float x) { return x + b; });
      else
        for (int64_t k = 0; k < width; ++k) row[k] += bias[k];
    }
  }
  if (epilogue.activation == Activation::kNone && !epilogue.linear()) return;
  if (row_step == width) width *= std::exchange(rows, 1);  // one long row
  if (const convloops::ConvLoops* loops = convloops::BestLoops(); loops != nullptr)
    return loops->activate(epilogue, rows, width, row_step, c);
  const Rows all{rows, width, row_step, c};
  ActivateRows(epilogue, all);
  if (epilogue.linear()) Each(all, [&e = epilogue](float x) { return e.scale * x + e.shift; });
}

bool ActivateMany(Activation activation, float alpha, const float* x, int64_t n, float* y) {
  constexpr int64_t kNear = 2048;  // elements that stay in the first cache
  const convloops::ConvLoops* const loops = convloops::BestLoops();
  if (loops == nullptr) return false;
  Epilogue e;
  e.activation = activation;
  e.alpha = alpha;
  for (int64_t at = 0; at < n; at += kNear) {
    const int64_t some = std::min(kNear, n - at);
    if (x != y) std::memcpy(y + at, x + at, static_cast<size_t>(some) * sizeof(float));
    loops->activate(e, 1, some, some, y + at);
  }
  return true;
}

}  // namespace heddle
