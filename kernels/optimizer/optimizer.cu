// Optimizers for dense gradients. Learning rates and powers lie on the device, where kernels read
// them.
#include <cmath>

#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {
namespace {

struct SgdBody {
  const float* p;
  const float* g;
  const float* rate;
  float* out;
  HEDDLE_BODY void operator()(int64_t i) const { out[i] = p[i] - *rate * g[i]; }
};
Status Sgd(Queue& queue, KernelContext& ctx) {
  const Tensor& p = ctx.In("Param");
  return Each(
      queue, p.numel(),
      SgdBody{p.data<float>(), ctx.In("Grad").data<float>(), ctx.In("LearningRate").data<float>(),
              ctx.Out("ParamOut").mutable_data<float>()});
}

struct MomentumBody {
  const float* p;
  const float* g;
  const float* v;
  const float* rate;
  float* p_out;
  float* v_out;
  float mu, decay;
  bool nesterov;
  HEDDLE_BODY void operator()(int64_t i) const {
    const float d = g[i] + decay * p[i];
    const float v_new = mu * v[i] + d;
    p_out[i] = p[i] - *rate * (nesterov ? d + mu * v_new : v_new);
    v_out[i] = v_new;
  }
};
// As on the host: rescale_grad counts for selected rows alone, which stay there.
Status Momentum(Queue& queue, KernelContext& ctx) {
  const Tensor& p = ctx.In("Param");
  const bool l2 = ctx.Str("regularization_method") == "l2_decay";
  return Each(queue, p.numel(),
              MomentumBody{
                  p.data<float>(), ctx.In("Grad").data<float>(), ctx.In("Velocity").data<float>(),
                  ctx.In("LearningRate").data<float>(), ctx.Out("ParamOut").mutable_data<float>(),
                  ctx.Out("VelocityOut").mutable_data<float>(), static_cast<float>(ctx.Float("mu")),
                  l2 ? static_cast<float>(ctx.Float("regularization_coeff")) : 0.0f,
                  ctx.Bool("use_nesterov")});
}

// Each thread computes the terms of the powers, in double as on the host.
struct AdamBody {
  const float* p;
  const float* g;
  const float* m;
  const float* v;
  const float* rate;
  const float* power1;
  const float* power2;
  float* p_out;
  float* m_out;
  float* v_out;
  double beta1, beta2, epsilon, lr_ratio, coeff;
  HEDDLE_BODY void operator()(int64_t i) const {
    const auto lr = static_cast<double>(*rate);
    const double correction = sqrt(1 - static_cast<double>(*power2));
    const auto step = static_cast<float>(lr * correction / (1 - static_cast<double>(*power1)));
    const auto eps = static_cast<float>(epsilon * correction);
    const auto keep = static_cast<float>(1 - lr * lr_ratio * coeff);
    const auto b1 = static_cast<float>(beta1), b2 = static_cast<float>(beta2);
    const float m_new = b1 * m[i] + (1 - b1) * g[i];
    const float v_new = b2 * v[i] + (1 - b2) * g[i] * g[i];
    m_out[i] = m_new;
    v_out[i] = v_new;
    p_out[i] = keep * p[i] - step * (m_new / (sqrtf(v_new) + eps));
  }
};
// Runs after the update of the parameters, which reads the old powers.
struct PowersBody {
  const float* from1;
  const float* from2;
  float* to1;
  float* to2;
  float beta1, beta2;
  HEDDLE_BODY void operator()(int64_t) const {
    *to1 = *from1 * beta1;
    *to2 = *from2 * beta2;
  }
};

Status RunAdam(Queue& queue, KernelContext& ctx, double lr_ratio, double coeff) {
  const Tensor& p = ctx.In("Param");
  const double beta1 = ctx.Float("beta1"), beta2 = ctx.Float("beta2");
  const float *const power1 = ctx.In("Beta1Pow").data<float>(), *const power2 = ctx.In("Beta2Pow")
                                                                                    .data<float>();
  HEDDLE_RETURN_IF_ERROR(
      Each(queue, p.numel(),
           AdamBody{p.data<float>(), ctx.In("Grad").data<float>(), ctx.In("Moment1").data<float>(),
                    ctx.In("Moment2").data<float>(), ctx.In("LearningRate").data<float>(), power1,
                    power2, ctx.Out("ParamOut").mutable_data<float>(),
                    ctx.Out("Moment1Out").mutable_data<float>(),
                    ctx.Out("Moment2Out").mutable_data<float>(), beta1, beta2, ctx.Float("epsilon"),
                    lr_ratio, coeff}));
  if (ctx.Bool("use_global_beta_pow")) return Status::Ok();
  return Each(queue, 1,
              PowersBody{power1, power2, ctx.Out("Beta1PowOut").mutable_data<float>(),
                         ctx.Out("Beta2PowOut").mutable_data<float>(), static_cast<float>(beta1),
                         static_cast<float>(beta2)});
}
Status Adam(Queue& queue, KernelContext& ctx) { return RunAdam(queue, ctx, 1, 0); }
Status AdamW(Queue& queue, KernelContext& ctx) {
  return RunAdam(queue, ctx, ctx.Float("lr_ratio"),
                 ctx.Bool("with_decay") ? ctx.Float("coeff") : 0);
}

struct AdagradBody {
  const float* p;
  const float* g;
  const float* m;
  const float* rate;
  float* p_out;
  float* m_out;
  float epsilon;
  HEDDLE_BODY void operator()(int64_t i) const {
    const float size = m[i] + g[i] * g[i];
    p_out[i] = p[i] - *rate * g[i] / (sqrtf(size) + epsilon);
    m_out[i] = size;
  }
};
Status Adagrad(Queue& queue, KernelContext& ctx) {
  const Tensor& p = ctx.In("Param");
  return Each(
      queue, p.numel(),
      AdagradBody{p.data<float>(), ctx.In("Grad").data<float>(), ctx.In("Moment").data<float>(),
                  ctx.In("LearningRate").data<float>(), ctx.Out("ParamOut").mutable_data<float>(),
                  ctx.Out("MomentOut").mutable_data<float>(),
                  static_cast<float>(ctx.Float("epsilon"))});
}

// A dense gradient and rates in single precision.
bool Plain(const CallView& call) {
  return call.InVar("Grad") != nullptr && call.InVar("Grad")->is_tensor() &&
         call.InDType("Grad") == DType::kF32 && call.InDType("LearningRate") == DType::kF32 &&
         call.InShape("Grad").numel() == call.InShape("Param").numel();
}
bool PlainAdam(const CallView& call) {
  return Plain(call) && !call.HasIn("SkipUpdate") && !call.HasIn("Beta1Tensor") &&
         !call.HasIn("Beta2Tensor") && !call.HasIn("EpsilonTensor") &&
         call.InDType("Beta1Pow") == DType::kF32 && call.InDType("Beta2Pow") == DType::kF32;
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(sgd) { kernel = {Sgd, Plain}; }
HEDDLE_CUDA_KERNEL(momentum) { kernel = {Momentum, Plain}; }
HEDDLE_CUDA_KERNEL(adam) { kernel = {Adam, PlainAdam}; }
HEDDLE_CUDA_KERNEL(adamw) { kernel = {AdamW, PlainAdam}; }
HEDDLE_CUDA_KERNEL(adagrad) { kernel = {Adagrad, Plain}; }
