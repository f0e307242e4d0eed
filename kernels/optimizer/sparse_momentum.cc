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
    const Tensor* master = SteppedMaster(ctx, param);
    const T *p = (master != nullptr ? *master : param).template data<T>(),
            *v = ctx.In("Velocity").template data<T>(), *g = grad.data<T>();
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
    HandMasterOn(ctx, master);
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
      .Kernels<SparseMomentum, float, double>();
}
