// momentum and merged_momentum (the same update for a list of parameters).
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

struct MomentumRule {
  double mu, lr, decay, rescale;
  bool nesterov;
};

// One run of elements; in and out may be the same memory.
template <typename T>
void MomentumUpdate(const MomentumRule& rule, int64_t n, const T* g, const T* p, const T* v,
                    T* p_out, T* v_out) {
  const T mu = static_cast<T>(rule.mu), lr = static_cast<T>(rule.lr);
  const T decay = static_cast<T>(rule.decay), rescale = static_cast<T>(rule.rescale);
  const T ahead = rule.nesterov ? mu : T(0), now = rule.nesterov ? T(1) : T(0);
  const T direct = rule.nesterov ? T(0) : T(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T d = g[i] * rescale + decay * p[i];
    const T v_new = mu * v[i] + d;
    p_out[i] = p[i] - lr * (now * d + (ahead + direct) * v_new);
    v_out[i] = v_new;
  }
}

Status InferMomentum(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"}, {"Velocity", "VelocityOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct Momentum {
  static Status Run(KernelContext& ctx) {
    const Tensor& param = ctx.In("Param");
    HEDDLE_ASSIGN_OR_RETURN(const double lr, ScalarOf(ctx, "LearningRate"));
    const bool l2 = ctx.Str("regularization_method") == "l2_decay";
    HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, false));
    // Paddle's CPU kernel scales the gradient of selected rows alone.
    const MomentumRule rule{ctx.Float("mu"), lr, l2 ? ctx.Float("regularization_coeff") : 0.0,
                            grad.dense() ? 1.0 : ctx.Float("rescale_grad"),
                            ctx.Bool("use_nesterov")};
    const T *p = param.data<T>(), *v = ctx.In("Velocity").data<T>();
    T* p_out = ctx.Out("ParamOut").mutable_data<T>();
    T* v_out = ctx.Out("VelocityOut").mutable_data<T>();
    grad.ForEach(ctx, [=](int64_t at, int64_t n, const T* g) {
      MomentumUpdate(rule, n, g, p + at, v + at, p_out + at, v_out + at);
    });
    return Status::Ok();
  }
};

Status InferMergedMomentum(ShapeContext& ctx) {
  const int count = ctx.InCount("Param");
  if (ctx.InCount("Grad") != count || ctx.InCount("Velocity") != count)
    return InvalidArgument("Param, Grad and Velocity must be equally many");
  const int rates = ctx.InCount("LearningRate");
  if (rates != 1 && rates != count)
    return InvalidArgument("LearningRate must be one or one per Param");
  const auto methods = ctx.Attr<Strings>("regularization_method").size();
  const auto coeffs = ctx.Attr<Floats>("regularization_coeff").size();
  if (methods != 0 && (methods != static_cast<size_t>(count) || coeffs != methods))
    return InvalidArgument("regularization_method and _coeff must be empty or one per Param");
  for (int i = 0; i < count; ++i) {
    const Shape& p = ctx.InShape("Param", i);
    for (Key key : {Key("Grad"), Key("Velocity")}) {
      const Shape& s = ctx.InShape(key, i);
      if (p.is_static() && s.is_static() && s.numel() != p.numel())
        return InvalidArgument(key.name, "[", i, "] ", s.ToString(), " must fit Param ",
                               p.ToString());
      if (ctx.InDType(key, i) != ctx.InDType("Param", i))
        return InvalidArgument(key.name, "[", i, "] must have the dtype of Param");
    }
    ctx.SetOut("ParamOut", p, ctx.InDType("Param", i), i);
    ctx.SetOut("VelocityOut", ctx.InShape("Velocity", i), ctx.InDType("Velocity", i), i);
  }
  SetMastersLike(ctx);
  return Status::Ok();
}

template <typename T>
struct MergedMomentum {
  static Status Run(KernelContext& ctx) {
    const auto& methods = ctx.Attr<Strings>("regularization_method");
    const auto& coeffs = ctx.Attr<Floats>("regularization_coeff");
    const bool one_rate = ctx.InCount("LearningRate") == 1;
    for (int i = 0, count = ctx.InCount("Param"); i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool l2 = at < methods.size() && methods[at] == "l2_decay";
      const Tensor& rate = ctx.In("LearningRate", one_rate ? 0 : i);
      if (rate.numel() < 1 || rate.dtype() != kDTypeOf<T>)
        return InvalidArgument("LearningRate must hold one value of Param's dtype");
      const MomentumRule rule{ctx.Float("mu"), static_cast<double>(*rate.data<T>()),
                              l2 ? coeffs[at] : 0.0, 1.0, ctx.Bool("use_nesterov")};
      const Tensor& param = ctx.In("Param", i);
      // With multi_precision, the master copy is what is updated; parameters of full precision
      // become the same.
      const Tensor* held = ctx.Bool("multi_precision") ? ctx.InOpt("MasterParam", i) : nullptr;
      if (held != nullptr && (held->dtype() != param.dtype() || held->numel() != param.numel()))
        return InvalidArgument("MasterParam[", i, "] has ", held->numel(), " elements of ",
                               Name(held->dtype()), ", expected ", param.numel(), " of Param's ",
                               Name(param.dtype()));
      const bool from_master = held != nullptr && ctx.OutOpt("MasterParamOut", i) != nullptr;
      const T* p = (from_master ? *held : param).template data<T>();
      const T* g = ctx.In("Grad", i).template data<T>();
      const T* v = ctx.In("Velocity", i).template data<T>();
      T* p_out = ctx.Out("ParamOut", i).template mutable_data<T>();
      T* v_out = ctx.Out("VelocityOut", i).template mutable_data<T>();
      ctx.ParallelFor(param.numel(), 16384, [=](int64_t b, int64_t e) {
        MomentumUpdate(rule, e - b, g + b, p + b, v + b, p_out + b, v_out + b);
      });
      if (!from_master)
        KeepMaster(ctx, i);
      else if (param.bytes() > 0)
        WatchedMemcpy(ctx.OutOpt("MasterParamOut", i)->mutable_raw(), p_out, param.bytes());
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(momentum) {
  op.Doc("v = mu v + grad; param -= lr v, or Nesterov's form")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("Velocity")
      .Input("LearningRate")
      .Input("MasterParam", kOptional)
      .Input("GradRows", kOptional)
      .Output("ParamOut")
      .Output("VelocityOut")
      .Output("MasterParamOut", kOptional)
      .Attr("mu", 0.0)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", "")
      .Attr("regularization_coeff", 0.0)
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0)
      .Inplace("Param", "ParamOut")
      .Inplace("Velocity", "VelocityOut")
      .InferShape(InferMomentum)
      .Kernels<KeepsMaster<Momentum>::Kernel, float, double>();
}

HEDDLE_OP(merged_momentum) {
  op.Doc("momentum for a list of parameters")
      .Input("Param", kList)
      .Input("Grad", kList)
      .Input("Velocity", kList)
      .Input("LearningRate", kList)
      .Input("MasterParam", kList | kOptional)
      .Output("ParamOut", kList)
      .Output("VelocityOut", kList)
      .Output("MasterParamOut", kList | kOptional)
      .Attr("mu", 0.0)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", Strings{})
      .Attr("regularization_coeff", Floats{})
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0)
      .InferShape(InferMergedMomentum)
      .Kernels<MergedMomentum, float, double>();
}

HEDDLE_EXAMPLES(momentum, R"(
example rows as tensors
attr mu FLOAT 0.9
in Param float32 [3, 2] 0.15 0.61 -0.4 0.17 0.92 -0.79
in Grad float32 [2, 2] 0.26 -0.06 0.69 -0.82
in GradRows int64 [2] 0 2
in LearningRate float32 [1] 0.1
in Velocity float32 [3, 2] 0.92 0.58 0.32 0.23 0.79 0.12
out ParamOut=Param float32 [3, 2] 0.041199997 0.56380004 -0.42880002 0.14930001 0.7799 -0.7188
out VelocityOut=Velocity float32 [3, 2] 1.088 0.46199995 0.288 0.207 1.401 -0.712

example float32 3x1x1, mu 0.5, regularization_coeff 0.01
attr mu FLOAT 0.5
attr regularization_coeff FLOAT 0.01
attr regularization_method STRING "l2_decay"
attr use_nesterov BOOLEAN true
in Grad float32 [3, 1, 1] -0.535 -0.055 0.107
in LearningRate float32 [1] 0.0863
in Param float32 [3, 1, 1] -0.753 -0.616 -0.724
in Velocity float32 [3, 1, 1] -0.712 -0.696 -0.703
out ParamOut float32 [3, 1, 1] -0.6674081 -0.59306663 -0.7217467
out VelocityOut float32 [3, 1, 1] -0.89853 -0.40916 -0.25174

example float32 3, mu 0.9, regularization_coeff 0.01, regularization_method l2_decay
attr mu FLOAT 0.9
attr regularization_coeff FLOAT 0.01
attr regularization_method STRING "l2_decay"
in Grad float32 [3] 0.22 -0.08 -0.53
in LearningRate float32 [1] 0.0516
in Param float32 [3] -0.04 0.23 -0.61
in Velocity float32 [3] 0.329 0.154 0.364
out ParamOut float32 [3] -0.06661012 0.22685756 -0.59924144
out VelocityOut float32 [3] 0.5157 0.060899995 -0.2085

example float32 2x4, mu 0.9, regularization_coeff 2, regularization_method l2_decay
attr mu FLOAT 0.9
attr regularization_coeff FLOAT 2.0
attr regularization_method STRING "l2_decay"
in Grad float32 [2, 4] 0.122 0.871 0.764 0.657 0.229 0.55 0.336 0.443
in LearningRate float32 [1] 0.58
in Param float32 [2, 4] 0.346 0.446 0.745 0.845 0.645 0.545 0.246 0.147
in Velocity float32 [2, 4] 0.653 0.546 0.117 0.438 0.331 0.76 0.868 0.224
out ParamOut float32 [2, 4] -0.46698603 -0.861552 -0.6233939 -0.74489605 -0.4088019 -0.80292004
  -0.68733597 -0.39738798
out VelocityOut float32 [2, 4] 1.4017 2.2544 2.3593 2.7412002 1.8168999 2.3240001 1.6092 0.9386

example float64 3x1x1, mu 0.5, regularization_coeff 0.01
attr mu FLOAT 0.5
attr regularization_coeff FLOAT 0.01
attr regularization_method STRING "l2_decay"
attr use_nesterov BOOLEAN true
in Grad float64 [3, 1, 1] -0.535 -0.055 0.107
in LearningRate float64 [1] 0.0863
in Param float64 [3, 1, 1] -0.753 -0.616 -0.724
in Velocity float64 [3, 1, 1] -0.712 -0.696 -0.703
out ParamOut float64 [3, 1, 1] -0.6674080915217876 -0.5930666380178236 -0.7217467070209485
out VelocityOut float64 [3, 1, 1] -0.8985299998316914 -0.4091599998623132 -0.25173999983817336

example rows
attr mu FLOAT 0.9
in Param float32 [3, 2] 0.15 0.61 -0.4 0.17 0.92 -0.79
in Grad float32 [2, 2] rows [0, 2] height 3 0.26 -0.06 0.69 -0.82
in LearningRate float32 [1] 0.1
in Velocity float32 [3, 2] 0.92 0.58 0.32 0.23 0.79 0.12
out ParamOut=Param float32 [3, 2] 0.041199997 0.56380004 -0.42880002 0.14930001 0.7799 -0.7188
out VelocityOut=Velocity float32 [3, 2] 1.088 0.46199995 0.288 0.207 1.401 -0.712

example float32 3x1x1, mu 0.5, regularization_coeff 0.01, rescale_grad 2.0
attr mu FLOAT 0.5
attr regularization_coeff FLOAT 0.01
attr regularization_method STRING "l2_decay"
attr use_nesterov BOOLEAN true
attr rescale_grad FLOAT 2.0
in Grad float32 [3, 1, 1] -0.535 -0.055 0.107
in LearningRate float32 [1] 0.0863
in Param float32 [3, 1, 1] -0.753 -0.616 -0.724
in Velocity float32 [3, 1, 1] -0.712 -0.696 -0.703
out ParamOut float32 [3, 1, 1] -0.6674081 -0.59306663 -0.7217467
out VelocityOut float32 [3, 1, 1] -0.89853 -0.40916 -0.25174
)")

HEDDLE_EXAMPLES(merged_momentum, R"(
example float32
attr mu FLOAT 0.9
attr use_nesterov BOOLEAN false
attr regularization_method STRINGS ["l2_decay", ""]
attr regularization_coeff FLOATS [0.5, 0.0]
in Param float32 [2] 0.01 0.66
in Param float32 [3] -0.81 0.62 -0.8
in Grad float32 [2] -0.07 -0.81
in Grad float32 [3] 0.77 0.63 0.79
in Velocity float32 [2] -0.55 -0.97
in Velocity float32 [3] -0.28 0.54 0.78
in LearningRate float32 [1] 0.1
out ParamOut=Param.0 float32 [2] 0.066 0.7953
out ParamOut=Param.1 float32 [3] -0.8618 0.5084 -0.94920003
out VelocityOut=Velocity.0 float32 [2] -0.56 -1.353
out VelocityOut=Velocity.1 float32 [3] 0.518 1.1159999 1.492

example float64
attr mu FLOAT 0.9
attr use_nesterov BOOLEAN true
attr regularization_method STRINGS []
attr regularization_coeff FLOATS []
in Param float64 [2] 0.89 -0.11
in Param float64 [3] 0.59 -0.24 0.39
in Grad float64 [2] -0.13 -0.6
in Grad float64 [3] -0.37 -0.95 0.68
in Velocity float64 [2] 0.14 0.6
in Velocity float64 [3] 0.05 0.67 0.25
in LearningRate float64 [1] 0.1
out ParamOut=Param.0 float64 [2] 0.9033600002908707 -0.044599998855590864
out ParamOut=Param.1 float64 [3] 0.6562499993324279 -0.11376999938964846 0.24055000269412993
out VelocityOut=Velocity.0 float64 [2] -0.004000003337860103 -0.0600000143051147
out VelocityOut=Velocity.1 float64 [3] -0.3250000011920929 -0.34700001597404473 0.9049999940395356

example float32, rescale_grad 2.0
attr mu FLOAT 0.9
attr use_nesterov BOOLEAN false
attr regularization_method STRINGS ["l2_decay", ""]
attr regularization_coeff FLOATS [0.5, 0.0]
attr rescale_grad FLOAT 2.0
in Param float32 [2] 0.01 0.66
in Param float32 [3] -0.81 0.62 -0.8
in Grad float32 [2] -0.07 -0.81
in Grad float32 [3] 0.77 0.63 0.79
in Velocity float32 [2] -0.55 -0.97
in Velocity float32 [3] -0.28 0.54 0.78
in LearningRate float32 [1] 0.1
out ParamOut=Param.0 float32 [2] 0.066 0.7953
out ParamOut=Param.1 float32 [3] -0.8618 0.5084 -0.94920003
out VelocityOut=Velocity.0 float32 [2] -0.56 -1.353
out VelocityOut=Velocity.1 float32 [3] 0.518 1.1159999 1.492
)")
