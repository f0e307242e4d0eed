// Unary(Binary(X, Y)) or Binary(X, Unary(Y)), named by functor_list: the outer function comes
// first.
#include <cmath>

#include "core/error.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"

namespace heddle {
namespace {

enum class Unary { kScale, kRelu, kTanh, kSigmoid, kGelu };

struct Functors {
  bool unary_outside = false;
  bool multiply = false;  // else add
  Unary unary = Unary::kScale;
};

bool ParseUnary(std::string_view name, Unary* unary) {
  constexpr std::pair<std::string_view, Unary> kNames[] = {{"scale", Unary::kScale},
                                                           {"relu", Unary::kRelu},
                                                           {"tanh", Unary::kTanh},
                                                           {"sigmoid", Unary::kSigmoid},
                                                           {"gelu", Unary::kGelu}};
  for (const auto& [n, u] : kNames) {
    if (n != name) continue;
    *unary = u;
    return true;
  }
  return false;
}

Result<Functors> ReadFunctors(const OpContext& ctx) {
  const Strings& list = ctx.Attr<Strings>("functor_list");
  if (list.size() != 2)
    return InvalidArgument("attribute functor_list has ", list.size(), " names, expected 2");
  std::string_view names[2] = {list[0], list[1]};
  for (std::string_view& n : names)
    if (n.ends_with("_grad")) n.remove_suffix(5);
  Functors f;
  f.unary_outside = !names[0].starts_with("elementwise_");
  const std::string_view binary = names[f.unary_outside ? 1 : 0];
  f.multiply = binary == "elementwise_mul";
  if ((!f.multiply && binary != "elementwise_add") ||
      !ParseUnary(names[f.unary_outside ? 0 : 1], &f.unary))
    return Unimplemented("functor_list [", list[0], ", ", list[1], "]");
  return f;
}

template <typename T, typename Fn>
void ForAll(const KernelContext& ctx, int64_t n, Fn fn) {
  ctx.ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i);
  });
}

// The tanh of the approximate gelu, which is what Paddle uses here.
template <typename T>
T FusedGeluTanh(T x) {
  return std::tanh(T(0.5 * M_2_SQRTPI * M_SQRT2) * x * (T(1) + T(0.044715) * x * x));
}

template <typename T>
void Apply(const KernelContext& ctx, Unary unary, T scale, const T* x, T* out, int64_t n) {
  switch (unary) {
    case Unary::kScale:
      return ForAll<T>(ctx, n, [=](int64_t i) { out[i] = x[i] * scale; });
    case Unary::kRelu:
      return ForAll<T>(ctx, n, [=](int64_t i) { out[i] = x[i] > T(0) ? x[i] : T(0); });
    case Unary::kTanh:
      return ForAll<T>(ctx, n, [=](int64_t i) { out[i] = std::tanh(x[i]); });
    case Unary::kSigmoid:
      return ForAll<T>(ctx, n, [=](int64_t i) { out[i] = T(1) / (T(1) + std::exp(-x[i])); });
    case Unary::kGelu:
      return ForAll<T>(ctx, n,
                       [=](int64_t i) { out[i] = T(0.5) * x[i] * (T(1) + FusedGeluTanh(x[i])); });
  }
}

// d = dout * unary'(x), where z = unary(x). `d` may be dout.
template <typename T>
void ApplyGrad(const KernelContext& ctx, Unary unary, T scale, const T* x, const T* z,
               const T* dout, T* d, int64_t n) {
  switch (unary) {
    case Unary::kScale:
      return ForAll<T>(ctx, n, [=](int64_t i) { d[i] = dout[i] * scale; });
    case Unary::kRelu:
      return ForAll<T>(ctx, n, [=](int64_t i) { d[i] = z[i] > T(0) ? dout[i] : T(0); });
    case Unary::kTanh:
      return ForAll<T>(ctx, n, [=](int64_t i) { d[i] = dout[i] * (T(1) - z[i] * z[i]); });
    case Unary::kSigmoid:
      return ForAll<T>(ctx, n, [=](int64_t i) { d[i] = dout[i] * z[i] * (T(1) - z[i]); });
    case Unary::kGelu:
      return ForAll<T>(ctx, n, [=](int64_t i) {
        const T t = FusedGeluTanh(x[i]);
        const T slope = T(0.5 * M_2_SQRTPI * M_SQRT2) * (T(1) + T(3 * 0.044715) * x[i] * x[i]);
        d[i] = dout[i] * T(0.5) * (T(1) + t + x[i] * (T(1) - t * t) * slope);
      });
  }
}

template <typename T>
const BinaryLoops& Loops(bool multiply) {
  return multiply ? BinaryLoop<MulFn, T, T>::kLoops : BinaryLoop<AddFn, T, T>::kLoops;
}

template <typename T>
struct Forward {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Functors f, ReadFunctors(ctx));
    BroadcastPlan local;
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan* plan, PlanOf<SlotsXY>(ctx, &local));
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, x, y));
    Tensor& out = ctx.Out("Out");
    Tensor* saved = ctx.Bool("save_intermediate_out") ? ctx.OutOpt("IntermediateOut") : nullptr;
    const T scale = static_cast<T>(ctx.Float("scale"));
    if (f.unary_outside) {
      Tensor& inner = saved != nullptr ? *saved : out;
      RunBinary(ctx, *plan, Loops<T>(f.multiply), x.raw(), y.raw(), inner.mutable_raw());
      Apply(ctx, f.unary, scale, inner.data<T>(), out.mutable_data<T>(), plan->numel);
      return Status::Ok();
    }
    Tensor scratch;
    if (saved == nullptr) scratch = ctx.Scratch(y.dtype(), y.shape());
    Tensor& inner = saved != nullptr ? *saved : scratch;
    Apply(ctx, f.unary, scale, y.data<T>(), inner.mutable_data<T>(), y.numel());
    RunBinary(ctx, *plan, Loops<T>(f.multiply), x.raw(), inner.raw(), out.mutable_raw());
    return Status::Ok();
  }
};

Status Infer(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferBinary<SlotsXY>(ctx));
  if (!ctx.Bool("save_intermediate_out") || !ctx.HasOut("IntermediateOut")) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const Functors f, ReadFunctors(ctx));
  if (!f.unary_outside) {
    ctx.SetOut("IntermediateOut", ctx.InShape("Y"), ctx.InDType("Y"));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                          BroadcastShape(ctx.InShape("X"), ctx.InShape("Y"), ctx.Int("axis")));
  ctx.SetOut("IntermediateOut", shape, ctx.InDType("X"));
  return Status::Ok();
}

// One run of the gradient: `inner` is what the inner function gave, d_inner its gradient.
template <typename T>
class Backward {
 public:
  explicit Backward(KernelContext& ctx)
      : ctx_(ctx),
        x_(ctx.In("X")),
        y_(ctx.In("Y")),
        out_(ctx.In("Out")),
        dout_(ctx.In("Out@GRAD")),
        dx_(ctx.OutOpt("X@GRAD")),
        dy_(ctx.OutOpt("Y@GRAD")),
        d_inner_out_(ctx.OutOpt("IntermediateOut@GRAD")),
        scale_(static_cast<T>(ctx.Float("scale"))) {}

  Status Run() {
    HEDDLE_ASSIGN_OR_RETURN(f_, ReadFunctors(ctx_));
    BroadcastPlan local;
    HEDDLE_ASSIGN_OR_RETURN(plan_, PlanOf<SlotsXY>(ctx_, &local));
    HEDDLE_RETURN_IF_ERROR(
        CheckDType(kDTypeOf<T>, {&x_, &y_, &out_, ctx_.InOpt("IntermediateOut")}));
    if (dout_.numel() != plan_->numel || out_.numel() != plan_->numel)
      return InvalidArgument("Out and Out@GRAD do not fit X and Y");
    const int64_t inner_size = f_.unary_outside ? plan_->numel : y_.numel();
    inner_ = ctx_.InOpt("IntermediateOut");
    if (inner_ != nullptr && inner_->numel() != inner_size)
      return InvalidArgument("IntermediateOut has shape ", inner_->shape().ToString());
    Tensor recomputed, scratch;
    if (inner_ == nullptr) {
      recomputed = ctx_.Scratch(x_.dtype(), Shape{inner_size});
      if (f_.unary_outside)
        RunBinary(ctx_, *plan_, Loops<T>(f_.multiply), x_.raw(), y_.raw(),
                  recomputed.mutable_raw());
      else
        Apply(ctx_, f_.unary, scale_, y_.data<T>(), recomputed.mutable_data<T>(), inner_size);
      inner_ = &recomputed;
    }
    d_inner_ = d_inner_out_;
    if (d_inner_ == nullptr) {
      scratch = ctx_.Scratch(x_.dtype(), Shape{inner_size});
      d_inner_ = &scratch;
    }
    if (f_.unary_outside)
      UnaryOutside();
    else
      BinaryOutside();
    return Status::Ok();
  }

 private:
  void Binary(const Tensor& y, const Tensor& dout, Tensor* d, bool of_x) {
    const GradInputs in{x_.raw(), y.raw(), nullptr, dout.raw()};
    const GradLoops loops = !f_.multiply ? LoopsOf<PassGrad, T>()
                            : of_x       ? LoopsOf<MulGradX, T>()
                                         : LoopsOf<MulGradY, T>();
    RunBinaryGrad(ctx_, *plan_, loops, in, x_.dtype(), d, of_x);
  }
  void UnaryOutside() {
    ApplyGrad(ctx_, f_.unary, scale_, inner_->data<T>(), out_.data<T>(), dout_.data<T>(),
              d_inner_->mutable_data<T>(), plan_->numel);
    if (dy_ != nullptr) Binary(y_, *d_inner_, dy_, false);
    if (dx_ != nullptr) Binary(y_, *d_inner_, dx_, true);
  }
  void BinaryOutside() {
    Binary(*inner_, dout_, d_inner_, false);
    if (dy_ != nullptr)
      ApplyGrad(ctx_, f_.unary, scale_, y_.data<T>(), inner_->data<T>(), d_inner_->data<T>(),
                dy_->mutable_data<T>(), y_.numel());
    if (dx_ != nullptr) Binary(*inner_, dout_, dx_, true);
  }

  KernelContext& ctx_;
  const Tensor &x_, &y_, &out_, &dout_;
  Tensor *dx_, *dy_, *d_inner_out_;
  const T scale_;
  Functors f_;
  const BroadcastPlan* plan_ = nullptr;
  const Tensor* inner_ = nullptr;
  Tensor* d_inner_ = nullptr;
};

template <typename T>
struct Grad {
  static Status Run(KernelContext& ctx) { return Backward<T>(ctx).Run(); }
};

Status InferGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(GradLikeInputs(ctx));
  if (!ctx.HasOut("IntermediateOut@GRAD")) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const Functors f, ReadFunctors(ctx));
  ctx.SetOut("IntermediateOut@GRAD", f.unary_outside ? ctx.InShape("Out@GRAD") : ctx.InShape("Y"),
             ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

void DefineAttrs(OpDef& op) {
  op.Attr("axis", -1).Attr("scale", 0.0).Attr("save_intermediate_out", false);
  op.Attr("functor_list", Strings{}).Prepare(&PrepareBroadcast<SlotsXY>);
}

void DefineForward(OpDef& op) {
  op.Doc("a binary and a unary function of X and Y, one applied to the other's result");
  op.Input("X").Input("Y").Output("Out").Output("IntermediateOut", kOptional).InferShape(&Infer);
  DefineAttrs(op);
  op.Kernels<Forward, float, double>();
}

void DefineBackward(OpDef& op) {
  op.Doc("gradient of a fused binary and unary function");
  op.Input("X").Input("Y").Input("Out").Input("IntermediateOut", kOptional).Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional);
  op.Output("IntermediateOut@GRAD", kOptional).KernelKey("Out@GRAD").InferShape(&InferGrad);
  DefineAttrs(op);
  op.Kernels<Grad, float, double>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_elemwise_activation) { DefineForward(op); }
HEDDLE_OP(fused_elemwise_activation_grad) { DefineBackward(op); }
// The same, as the passes for inference name it.
HEDDLE_OP(fused_elemwise_add_activation) { DefineForward(op); }
HEDDLE_OP(fused_elemwise_add_activation_grad) { DefineBackward(op); }
