#include <limits>

#include "core/interrupts.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferSparseMomentum(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Param", "Velocity"));
  if (ctx.InDType("Grad") != ctx.InDType("Param") ||
      ctx.InDType("Velocity") != ctx.InDType("Param"))
    return InvalidArgument("Grad and Velocity must have the dtype of Param");
  const Shape &p = ctx.InShape("Param"), &g = ctx.InShape("Grad");
  if ((p.known_rank() && p.rank() != 2) || (g.known_rank() && g.rank() != 2))
    return InvalidArgument("Param ", p.ToString(), " and Grad ", g.ToString(),
                           " must have two axes");
  SetOutsLike(
      ctx, {{"Param", "ParamOut"}, {"Velocity", "VelocityOut"}, {"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct SparseMomentum {
  static Status Run(KernelContext& ctx) {
    const Tensor &param = ctx.In("Param"), &grad = ctx.In("Grad");
    HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
    int64_t axis = ctx.Int("axis");
    if (const Tensor* t = ctx.InOpt("Axis"))
      if (const Ints v = ToInts(*t); !v.empty()) axis = v[0];
    if (axis != 0 && axis != 1) return InvalidArgument("axis must be 0 or 1, not ", axis);
    const int a = static_cast<int>(axis);
    const Labels index(ctx, ctx.In("Index"));
    const int64_t count = ctx.In("Index").numel(), rows = param.dim(0), cols = param.dim(1);
    HEDDLE_RETURN_IF_ERROR(index.Check(count, param.dim(a), std::numeric_limits<int64_t>::min()));
    if (grad.dim(a) != count || grad.dim(1 - a) != param.dim(1 - a))
      return InvalidArgument("Grad ", grad.shape().ToString(), " does not fit Param ",
                             param.shape().ToString(), " and ", count, " indices");
    std::vector<std::vector<int64_t>> where(static_cast<size_t>(param.dim(a)));
    for (const auto part : Stretches(count))
      for (int64_t i = part.begin; i < part.end; ++i)
        where[static_cast<size_t>(index[i])].push_back(i);
    const T mu = static_cast<T>(ctx.Float("mu")), lr = static_cast<T>(rate);
    const bool l2 = ctx.Str("regularization_method") == "l2_decay";
    const T decay = l2 ? static_cast<T>(ctx.Float("regularization_coeff")) : T(0);
    const T rescale = static_cast<T>(ctx.Float("rescale_grad"));
    const bool nesterov = ctx.Bool("use_nesterov");
    const T *p = param.data<T>(), *v = ctx.In("Velocity").template data<T>(), *g = grad.data<T>();
    T* p_out = ctx.Out("ParamOut").template mutable_data<T>();
    T* v_out = ctx.Out("VelocityOut").template mutable_data<T>();
    for (const int64_t r : Watched(rows))
      for (int64_t c = 0; c < cols; ++c) {
        const int64_t k = r * cols + c;
        T slope = 0;  // an index that comes several times adds up
        for (int64_t at : where[static_cast<size_t>(a == 0 ? r : c)])
          slope += (a == 0 ? g[at * cols + c] : g[r * count + at]) * rescale;
        const T d = slope + decay * p[k];
        const T v_new = mu * v[k] + d;
        p_out[k] = p[k] - lr * (nesterov ? d + mu * v_new : v_new);
        v_out[k] = v_new;
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sparse_momentum) {
  op.Doc("momentum with a gradient for some rows or columns; the others have gradient 0")
      .Input("Param")
      .Input("Grad")
      .Input("Velocity")
      .Input("Index")
      .Input("Axis", kOptional)
      .Input("LearningRate")
      .Input("MasterParam", kOptional)
      .Output("ParamOut")
      .Output("VelocityOut")
      .Output("MasterParamOut", kOptional)
      .Attr("mu", 0.0)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", "")
      .Attr("regularization_coeff", 0.0)
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0)
      .Attr("axis", 0)
      .Inplace("Param", "ParamOut")
      .Inplace("Velocity", "VelocityOut")
      .InferShape(InferSparseMomentum)
      .Kernels<KeepsMaster<SparseMomentum>::Kernel, float, double>();
}

HEDDLE_EXAMPLES(sparse_momentum, R"(
example float32 axis 0
attr mu FLOAT 0.9
attr use_nesterov BOOLEAN false
attr axis INT 0
attr regularization_method STRING ""
attr regularization_coeff FLOAT 0.0
in Param float32 [3, 2] 0.47 -0.46 -0.31 -0.5 0.3 -0.71
in Grad float32 [2, 2] 0.72 -0.49 0.76 -0.97
in Velocity float32 [3, 2] -0.24 0.1 -0.67 0.8 -0.57 0.47
in Index int64 [2] 2 0
in Axis int32 [1] 0
in LearningRate float32 [1] 0.1
out ParamOut float32 [3, 2] 0.4156 -0.372 -0.24970001 -0.572 0.2793 -0.7033
out VelocityOut float32 [3, 2] 0.544 -0.88000005 -0.603 0.71999997 0.20700008 -0.06700003

example float32 axis 1, Nesterov
attr mu FLOAT 0.9
attr use_nesterov BOOLEAN true
attr axis INT 1
attr regularization_method STRING "l2_decay"
attr regularization_coeff FLOAT 0.5
in Param float32 [3, 2] 0.35 0.42 0.65 0.09 -0.72 0.37
in Grad float32 [3, 1] -0.86 0.34 0.63
in Velocity float32 [3, 2] 0.28 -0.8 0.71 0.55 -0.12 0.86
in Index int32 [1] 1
in Axis int32 [1] 1
in LearningRate float32 [1] 0.1
out ParamOut float32 [3, 2] 0.29407 0.6083 0.53073996 -0.0277 -0.64188004 0.14549
out VelocityOut float32 [3, 2] 0.427 -1.37 0.9639999 0.88 -0.468 1.589

example float64 axis 0
attr mu FLOAT 0.9
attr use_nesterov BOOLEAN false
attr axis INT 0
attr regularization_method STRING ""
attr regularization_coeff FLOAT 0.0
in Param float64 [3, 2] -0.26 0.38 0.27 0.63 -0.61 0.79
in Grad float64 [2, 2] 0.08 -0.5 -0.17 0.27
in Velocity float64 [3, 2] -0.47 0.02 0.23 0.21 0.93 -0.71
in Index int64 [2] 2 0
in Axis int32 [1] 0
in LearningRate float64 [1] 0.1
out ParamOut float64 [3, 2] -0.20070000112056732 0.3512000000476837 0.24930000054836274
  0.611100000500679 -0.7016999977827072 0.9038999983072281
out VelocityOut float64 [3, 2] -0.5929999887943268 0.28799999952316285 0.2069999945163727
  0.18899999499320982 0.9169999778270721 -1.138999983072281

example float64 axis 1, Nesterov
attr mu FLOAT 0.9
attr use_nesterov BOOLEAN true
attr axis INT 1
attr regularization_method STRING "l2_decay"
attr regularization_coeff FLOAT 0.5
in Param float64 [3, 2] -0.3 0.44 -0.37 0.89 -0.4 0.61
in Grad float64 [3, 1] -0.19 -0.16 -0.86
in Velocity float64 [3, 2] -0.47 0.82 0.97 -0.69 -0.14 -0.17
in Index int32 [1] 1
in Axis int32 [1] 1
in LearningRate float64 [1] 0.1
out ParamOut float64 [3, 2] -0.233430002374649 0.36788000359058376 -0.413419996278286
  0.8917399977183342 -0.350660001077652 0.729219997947216
out VelocityOut float64 [3, 2] -0.5729999887943268 0.7679999804496765 0.6879999768733978
  -0.335999983549118 -0.3259999966621399 -0.7079999959468841
)")
