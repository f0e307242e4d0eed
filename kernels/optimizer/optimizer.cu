// Optimizers, for dense gradients and for those of some rows (GradRows in optimizer.h). Learning
// rates and powers lie on the device, where kernels read them.
#include <cmath>
#include <initializer_list>

#include "core/kernel_context.h"
#include "device/cuda/grid/addend.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/sorted_rows.h"

namespace heddle::HEDDLE_GRID {
namespace {

// The gradients of some rows of a parameter.
struct SomeRows {
  SortedRows rows;
  const float* grads = nullptr;
  int64_t height = 0, width = 0;
};
Result<SomeRows> SomeRowsOf(Queue& queue, const KernelContext& ctx, Scratch& scratch) {
  const Tensor &ids = ctx.In("GradRows"), &param = ctx.In("Param");
  SomeRows some;
  HEDDLE_ASSIGN_OR_RETURN(some.rows, SortRows(queue, Ids(ids), ids.numel(), scratch));
  some.grads = ctx.In("Grad").data<float>();
  some.height = param.dim(0);
  some.width = some.height == 0 ? 0 : param.numel() / some.height;
  return some;
}

// rule.Update(element of the parameter, its gradient, whether its row is absent) for the rows that
// have a gradient. A row out of range is left out: a card cannot report an error in time.
template <typename Rule>
struct PresentRowsBody {
  Rule rule;
  SomeRows some;
  HEDDLE_BODY void operator()(Group& group, int64_t at) const {
    const int64_t row = some.rows.row[at];
    if (!some.rows.Begins(at) || row < 0 || row >= some.height) return;
    for (int64_t k = group.rank(); k < some.width; k += group.size())
      rule.Update(row * some.width + k, some.rows.Sum(some.grads, some.width, at, k), false);
  }
};
// The same for all rows: those without have gradients of zero.
template <typename Rule>
struct AllRowsBody {
  Rule rule;
  SomeRows some;
  HEDDLE_BODY void operator()(Group& group, int64_t row) const {
    const int64_t at = some.rows.Find(row);
    const bool there = at < some.rows.count && some.rows.row[at] == row;
    for (int64_t k = group.rank(); k < some.width; k += group.size())
      rule.Update(row * some.width + k, there ? some.rows.Sum(some.grads, some.width, at, k) : 0.0f,
                  !there);
  }
};
template <typename Rule>
struct DenseBody {
  Rule rule;
  const float* grads;
  HEDDLE_BODY void operator()(int64_t i) const { rule.Update(i, grads[i], false); }
};

bool GivesRows(const KernelContext& ctx) { return ctx.InOpt("GradRows") != nullptr; }

struct Companion {
  Key in, out;
};
// Puts the parameter and its companions where an update of some rows leaves the others.
Status KeepRest(Queue& queue, const KernelContext& ctx, std::initializer_list<Companion> pairs) {
  for (const auto& [in, out] : pairs)
    HEDDLE_RETURN_IF_ERROR(BeginWith(queue, &ctx.In(in), ctx.Out(out)).status());
  return Status::Ok();
}

// `lazy`: rows without a gradient stay as they are.
template <typename Rule>
Status Update(Queue& queue, KernelContext& ctx, const Rule& rule, bool lazy) {
  if (!GivesRows(ctx))
    return Each(queue, ctx.In("Param").numel(),
                DenseBody<Rule>{rule, ctx.In("Grad").data<float>()});
  Scratch scratch(queue);
  HEDDLE_ASSIGN_OR_RETURN(const SomeRows some, SomeRowsOf(queue, ctx, scratch));
  if (lazy) return Groups(queue, some.rows.count, some.width, PresentRowsBody<Rule>{rule, some});
  return Groups(queue, some.height, some.width, AllRowsBody<Rule>{rule, some});
}

// As on the host, parts of a row are subtracted one by one.
struct SgdRowsBody {
  SomeRows some;
  const float* rate;
  float* p;
  HEDDLE_BODY void operator()(Group& group, int64_t at) const {
    const int64_t row = some.rows.row[at];
    if (!some.rows.Begins(at) || row < 0 || row >= some.height) return;
    for (int64_t k = group.rank(); k < some.width; k += group.size()) {
      float value = p[row * some.width + k];
      for (int64_t i = at; i < some.rows.count && some.rows.row[i] == row; ++i)
        value -= *rate * some.grads[static_cast<int64_t>(some.rows.from[i]) * some.width + k];
      p[row * some.width + k] = value;
    }
  }
};
struct SgdBody {
  const float* p;
  const float* g;
  const float* rate;
  float* out;
  HEDDLE_BODY void operator()(int64_t i) const { out[i] = p[i] - *rate * g[i]; }
};
Status Sgd(Queue& queue, KernelContext& ctx) {
  const Tensor& p = ctx.In("Param");
  if (GivesRows(ctx)) {
    HEDDLE_RETURN_IF_ERROR(KeepRest(queue, ctx, {{"Param", "ParamOut"}}));
    Scratch scratch(queue);
    HEDDLE_ASSIGN_OR_RETURN(const SomeRows some, SomeRowsOf(queue, ctx, scratch));
    return Groups(queue, some.rows.count, some.width,
                  SgdRowsBody{some, ctx.In("LearningRate").data<float>(),
                              ctx.Out("ParamOut").mutable_data<float>()});
  }
  return Each(
      queue, p.numel(),
      SgdBody{p.data<float>(), ctx.In("Grad").data<float>(), ctx.In("LearningRate").data<float>(),
              ctx.Out("ParamOut").mutable_data<float>()});
}

struct MomentumRule {
  const float* p;
  const float* v;
  const float* rate;
  float* p_out;
  float* v_out;
  float mu, decay, rescale;
  bool nesterov;
  HEDDLE_BODY void Update(int64_t i, float g, bool) const {
    const float d = g * rescale + decay * p[i];
    const float v_new = mu * v[i] + d;
    p_out[i] = p[i] - *rate * (nesterov ? d + mu * v_new : v_new);
    v_out[i] = v_new;
  }
};
// As on the host: rescale_grad counts for selected rows alone, and none is left out.
Status Momentum(Queue& queue, KernelContext& ctx) {
  const bool l2 = ctx.Str("regularization_method") == "l2_decay";
  const MomentumRule rule{ctx.In("Param").data<float>(),
                          ctx.In("Velocity").data<float>(),
                          ctx.In("LearningRate").data<float>(),
                          ctx.Out("ParamOut").mutable_data<float>(),
                          ctx.Out("VelocityOut").mutable_data<float>(),
                          static_cast<float>(ctx.Float("mu")),
                          l2 ? static_cast<float>(ctx.Float("regularization_coeff")) : 0.0f,
                          GivesRows(ctx) ? static_cast<float>(ctx.Float("rescale_grad")) : 1.0f,
                          ctx.Bool("use_nesterov")};
  return Update(queue, ctx, rule, false);
}

// Each thread computes the terms of the powers, in double as on the host.
struct AdamRule {
  const float* p;
  const float* m;
  const float* v;
  const float* rate;
  const float* power1;
  const float* power2;
  float* p_out;
  float* m_out;
  float* v_out;
  double beta1, beta2, epsilon, lr_ratio, coeff;
  bool steps1, steps2;  // the powers are stepped first, see adam.cc
  HEDDLE_BODY void Update(int64_t i, float g, bool absent) const {
    const auto lr = static_cast<double>(*rate);
    const auto pow1 = static_cast<double>(steps1 ? *power1 * static_cast<float>(beta1) : *power1);
    const auto pow2 = static_cast<double>(steps2 ? *power2 * static_cast<float>(beta2) : *power2);
    const double correction = sqrt(1 - pow2);
    const auto step = static_cast<float>(lr * correction / (1 - pow1));
    const auto eps = static_cast<float>(absent ? epsilon : epsilon * correction);
    const auto keep = static_cast<float>(1 - lr * lr_ratio * coeff);
    const auto b1 = static_cast<float>(beta1), b2 = static_cast<float>(beta2);
    const float m_new = b1 * m[i] + (1 - b1) * g;
    const float v_new = b2 * v[i] + (1 - b2) * g * g;
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
  const double beta1 = ctx.Float("beta1"), beta2 = ctx.Float("beta2");
  const bool global = ctx.Bool("use_global_beta_pow"), rows = GivesRows(ctx);
  const bool lazy = rows && ctx.Bool("lazy_mode");
  const bool nothing = rows && ctx.In("GradRows").numel() == 0;
  if (lazy || nothing)
    HEDDLE_RETURN_IF_ERROR(KeepRest(
        queue, ctx, {{"Param", "ParamOut"}, {"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}));
  const auto copy_powers = [&] {
    return KeepRest(queue, ctx, {{"Beta1Pow", "Beta1PowOut"}, {"Beta2Pow", "Beta2PowOut"}});
  };
  if (nothing) return global ? Status::Ok() : copy_powers();
  const float* const power1 = ctx.In("Beta1Pow").data<float>();
  const float* const power2 = ctx.In("Beta2Pow").data<float>();
  const AdamRule rule{ctx.In("Param").data<float>(),
                      ctx.In("Moment1").data<float>(),
                      ctx.In("Moment2").data<float>(),
                      ctx.In("LearningRate").data<float>(),
                      power1,
                      power2,
                      ctx.Out("ParamOut").mutable_data<float>(),
                      ctx.Out("Moment1Out").mutable_data<float>(),
                      ctx.Out("Moment2Out").mutable_data<float>(),
                      beta1,
                      beta2,
                      ctx.Float("epsilon"),
                      lr_ratio,
                      coeff,
                      rows && !global && ctx.Bool("rewrites:Beta1Pow"),
                      rows && !global && ctx.Bool("rewrites:Beta2Pow")};
  HEDDLE_RETURN_IF_ERROR(Update(queue, ctx, rule, lazy));
  if (global) return Status::Ok();
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

struct AdagradRule {
  const float* p;
  const float* m;
  const float* rate;
  float* p_out;
  float* m_out;
  float epsilon;
  HEDDLE_BODY void Update(int64_t i, float g, bool) const {
    const float size = m[i] + g * g;
    p_out[i] = p[i] - *rate * g / (sqrtf(size) + epsilon);
    m_out[i] = size;
  }
};
Status Adagrad(Queue& queue, KernelContext& ctx) {
  if (GivesRows(ctx))
    HEDDLE_RETURN_IF_ERROR(KeepRest(queue, ctx, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}}));
  const AdagradRule rule{ctx.In("Param").data<float>(),
                         ctx.In("Moment").data<float>(),
                         ctx.In("LearningRate").data<float>(),
                         ctx.Out("ParamOut").mutable_data<float>(),
                         ctx.Out("MomentOut").mutable_data<float>(),
                         static_cast<float>(ctx.Float("epsilon"))};
  return Update(queue, ctx, rule, true);
}

// A gradient that is a tensor, and rates in single precision.
bool Plain(const CallView& call) {
  if (call.InVar("Grad") == nullptr || !call.InVar("Grad")->is_tensor() ||
      call.InDType("Grad") != DType::kF32 || call.InDType("LearningRate") != DType::kF32)
    return false;
  const Shape &param = call.InShape("Param"), &grad = call.InShape("Grad");
  if (!call.HasIn("GradRows")) return grad.numel() == param.numel();
  return AreIds(call.InDType("GradRows")) && param.rank() > 0 && param[0] > 0 &&
         grad.numel() == call.InShape("GradRows").numel() * (param.numel() / param[0]);
}
bool PlainMomentum(const CallView& call) {
  return Plain(call) && !call.HasIn("MuTensor") && !call.Bool("each_row") &&
         !call.Bool("velocity_of_steps");
}
bool PlainAdagrad(const CallView& call) {
  return Plain(call) && !call.HasIn("EpsilonTensor") && !call.Bool("each_row") &&
         call.Bool("update_moment");
}
bool PlainAdamW(const CallView& call) {
  return Plain(call) && call.HasOut("Beta1PowOut") && call.HasOut("Beta2PowOut") &&
         !call.HasIn("SkipUpdate") && !call.HasIn("Beta1Tensor") && !call.HasIn("Beta2Tensor") &&
         !call.HasIn("EpsilonTensor") && call.InDType("Beta1Pow") == DType::kF32 &&
         call.InDType("Beta2Pow") == DType::kF32;
}
bool PlainAdam(const CallView& call) {
  return PlainAdamW(call) && !call.HasIn("Moment2Max") && !call.Bool("use_nesterov") &&
         call.Bool("epsilon_is_corrected");
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(sgd) { kernel = {Sgd, Plain}; }
HEDDLE_CUDA_KERNEL(momentum) { kernel = {Momentum, PlainMomentum}; }
HEDDLE_CUDA_KERNEL(adam) { kernel = {Adam, PlainAdam}; }
HEDDLE_CUDA_KERNEL(adamw) { kernel = {AdamW, PlainAdamW}; }
HEDDLE_CUDA_KERNEL(adagrad) { kernel = {Adagrad, PlainAdagrad}; }
