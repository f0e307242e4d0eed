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

HEDDLE_EXAMPLES(fused_elemwise_activation, R"(
example float32 2x1, axis 1, functor_list elementwise_add scale, save_intermediate_out
attr axis INT 1
attr functor_list STRINGS ["elementwise_add", "scale"]
attr save_intermediate_out BOOLEAN true
attr scale FLOAT 0.1
in X float32 [1] 0.729
in Y float32 [2, 1] 0.3752 0.3488
out IntermediateOut float32 [2, 1] 0.037520003 0.03488
out Out float32 [2, 1] 0.76651996 0.76387995

example float32 2x1, axis 1, functor_list relu elementwise_add
attr axis INT 1
attr functor_list STRINGS ["relu", "elementwise_add"]
in X float32 [2, 1] 0.37 0.3822
in Y float32 [1] 0.729
out IntermediateOut ?
out Out float32 [2, 1] 1.099 1.1112

example float32 2x3x4, axis 0, functor_list elementwise_add relu
attr axis INT 0
attr functor_list STRINGS ["elementwise_add", "relu"]
in X float32 [2] 0.1247 0.127
in Y float32 [2, 3, 4] 0.12 0.919 0.5 0.881 0.31 0.577 0.272 0.082 0.729 0.957 0.234 0.424 0.348
  0.653 0.462 0.386 0.843 0.615 0.196 0.539 0.691 0.767 0.158 0.805
out IntermediateOut ?
out Out float32 [2, 3, 4] 0.2447 1.0437 0.6247 1.0057 0.4347 0.70170003 0.39670002 0.2067 0.8537
  1.0817 0.3587 0.5487 0.475 0.78 0.589 0.513 0.97 0.742 0.323 0.666 0.81799996 0.89400005
  0.28500003 0.93200004

example float32 2x3x4, axis 1, functor_list elementwise_mul scale, scale 0.1
attr axis INT 1
attr functor_list STRINGS ["elementwise_mul", "scale"]
attr scale FLOAT 0.1
in X float32 [2, 3, 4] 0.539 0.424 0.234 0.12 0.272 0.767 0.957 0.31 0.615 0.5 0.691 0.881 0.386
  0.462 0.158 0.729 0.843 0.919 0.805 0.653 0.196 0.577 0.082 0.348
in Y float32 [3] 0.669 0.715 0.771
out IntermediateOut ?
out Out float32 [2, 3, 4] 0.036059104 0.028365603 0.015654601 0.008028001 0.019448 0.054840498
  0.0684255 0.022164999 0.0474165 0.03855 0.0532761 0.0679251 0.025823403 0.030907804 0.010570202
  0.048770104 0.060274497 0.065708496 0.057557497 0.046689495 0.0151116 0.0444867 0.0063222004
  0.0268308

example float64 2x1, axis 1, functor_list elementwise_add scale, save_intermediate_out
attr axis INT 1
attr functor_list STRINGS ["elementwise_add", "scale"]
attr save_intermediate_out BOOLEAN true
attr scale FLOAT 0.1
in X float64 [1] 0.729
in Y float64 [2, 1] 0.3752 0.3488
out IntermediateOut float64 [2, 1] 0.03752000055909156 0.0348800005197525
out Out float64 [2, 1] 0.7665200005590915 0.7638800005197525
)")

HEDDLE_EXAMPLES(fused_elemwise_activation_grad, R"(
example float64 2x1, axis 1, functor_list scale_grad elementwise_add_grad
attr axis INT 1
attr functor_list STRINGS ["scale_grad", "elementwise_add_grad"]
attr save_intermediate_out BOOLEAN true
attr scale FLOAT 0.1
in IntermediateOut float64 [2, 1] 1.013 1.092
in Out float64 [2, 1] 0.10130000150948762 0.1092000016272068
in Out@GRAD float64 [2, 1] -0.3 -0.4
in X float64 [1] 0.423
in Y float64 [2, 1] 0.59 0.669
out IntermediateOut@GRAD float64 [2, 1] -0.030000000447034835 -0.04000000059604645
out X@GRAD float64 [1] -0.07000000104308128

example float64 4, functor_list elementwise_add_grad scale_grad, scale 0.1
attr functor_list STRINGS ["elementwise_add_grad", "scale_grad"]
attr scale FLOAT 0.1
in Out float64 [4] 0.8532000008374453 0.49770000111311674 0.2737000005617738 0.6292000002861022
in Out@GRAD float64 [4] 0.5 -0.8 -1 -0.4
in X float64 [4] 0.797 0.423 0.236 0.61
in Y float64 [4] 0.562 0.747 0.377 0.192
out X@GRAD float64 [4] 0.5 -0.8 -1 -0.4
out Y@GRAD float64 [4] 0.05000000074505806 -0.0800000011920929 -0.10000000149011612
  -0.04000000059604645

example float64 2x3x4, functor_list relu_grad elementwise_add_grad
attr functor_list STRINGS ["relu_grad", "elementwise_add_grad"]
in Out float64 [2, 3, 4] 0.855 1.482 1.555 1.0030000000000001 1.04 1.2610000000000001 1.334 1.408
  1.15 1.297 1.224 1.592 1.113 1.187 1.629 0.9289999999999999 1.076 0.892 1.4449999999999998 1.371
  1.666 0.966 1.5190000000000001 0.819
in Out@GRAD float64 [2, 3, 4] 0.7 0.6 1 0.5 0.5 -0.4 0.5 0.4 -0.4 0.2 -0.2 0.5 -0.7 0.1 -0.6 0.4 0.1
  0 0.1 0.3 0.8 -0.1 1 -0.4
in X float64 [2, 3, 4] 0.133 0.76 0.833 0.281 0.318 0.539 0.612 0.686 0.428 0.575 0.502 0.87 0.391
  0.465 0.907 0.207 0.354 0.17 0.723 0.649 0.944 0.244 0.797 0.097
in Y float64 [1] 0.722
out Y@GRAD float64 [1] 4.9

example float32 2x1, axis 1, functor_list scale_grad elementwise_add_grad
attr axis INT 1
attr functor_list STRINGS ["scale_grad", "elementwise_add_grad"]
attr save_intermediate_out BOOLEAN true
attr scale FLOAT 0.1
in IntermediateOut float32 [2, 1] 1.013 1.092
in Out float32 [2, 1] 0.1013 0.1092
in Out@GRAD float32 [2, 1] -0.3 -0.4
in X float32 [1] 0.423
in Y float32 [2, 1] 0.59 0.669
out IntermediateOut@GRAD float32 [2, 1] -0.030000001 -0.040000003
out X@GRAD float32 [1] -0.07000001
)")

HEDDLE_EXAMPLES(fused_elemwise_add_activation, R"(
example elementwise_add relu
attr functor_list STRINGS ["elementwise_add", "relu"]
attr axis INT -1
attr save_intermediate_out BOOLEAN true
in X float32 [2, 3] -0.54 1 -0.25 -0 -0 -0.98
in Y float32 [3] -0.25 0.46 0.48
out Out float32 [2, 3] -0.54 1.46 0.22999999 -0 0.46 -0.5
out IntermediateOut float32 [3] -0 0.46 0.48

example elementwise_add scale
attr scale FLOAT 0.5
attr functor_list STRINGS ["elementwise_add", "scale"]
attr axis INT -1
attr save_intermediate_out BOOLEAN true
in X float32 [2, 3] -0.44 -0.16 0.23 0.02 0.36 0.96
in Y float32 [3] -0.36 -0.77 -0.49
out Out float32 [2, 3] -0.62 -0.54499996 -0.015000001 -0.16000001 -0.024999976 0.715
out IntermediateOut float32 [3] -0.18 -0.385 -0.245

example tanh elementwise_add
attr functor_list STRINGS ["tanh", "elementwise_add"]
attr axis INT -1
attr save_intermediate_out BOOLEAN true
in X float32 [2, 3] 0.9 -0.11 0.41 0.22 -0.44 0.45
in Y float32 [3] -0.4 0.62 -0.16
out Out float32 [2, 3] 0.4621172 0.4699452 0.2449187 -0.17808092 0.17808092 0.28213477
out IntermediateOut float32 [2, 3] 0.49999997 0.51 0.25 -0.18 0.18 0.29

example relu elementwise_add
attr functor_list STRINGS ["relu", "elementwise_add"]
attr axis INT -1
attr save_intermediate_out BOOLEAN true
in X float32 [2, 3] -0 -0.64 -0.87 0.48 0.52 0.37
in Y float32 [3] 0.06 0.97 -0.38
out Out float32 [2, 3] 0.06 0.33000004 -0 0.53999996 1.49 -0
out IntermediateOut float32 [2, 3] 0.06 0.33000004 -1.25 0.53999996 1.49 -0.00999999

example elementwise_add relu, no. 2
attr functor_list STRINGS ["elementwise_add", "relu"]
attr axis INT -1
attr save_intermediate_out BOOLEAN true
in X float32 [2, 3] 0.84 -0.99 0.77 0.58 0.92 0.54
in Y float32 [3] -0.86 -0.26 -0.96
out Out float32 [2, 3] 0.84 -0.99 0.77 0.58 0.92 0.54
out IntermediateOut float32 [3] -0 -0 -0

example scale of elementwise_add
attr scale FLOAT 0.5
attr functor_list STRINGS ["scale", "elementwise_add"]
attr axis INT -1
attr save_intermediate_out BOOLEAN true
in X float32 [2, 3] -0.68 -0.33 0.11 0.8 0.68 -0.8
in Y float32 [3] -0.46 -0.13 0.2
out Out float32 [2, 3] -0.57 -0.23 0.155 0.17 0.275 -0.3
out IntermediateOut float32 [2, 3] -1.14 -0.46 0.31 0.34 0.55 -0.6
)")

HEDDLE_EXAMPLES(fused_elemwise_add_activation_grad, R"(
example elementwise_add relu
attr functor_list STRINGS ["elementwise_add_grad", "relu_grad"]
attr save_intermediate_out BOOLEAN true
in IntermediateOut float64 [3] -0 0.46 0.48
in Out float64 [2, 3] -0.54 1.46 0.22999999999999998 -0 0.46 -0.5
in Out@GRAD float64 [2, 3] 0.9 -0.4 0.7 0.6 -0.3 -0.2
in X float64 [2, 3] -0.54 1 -0.25 -0 -0 -0.98
in Y float64 [3] -0.25 0.46 0.48
out IntermediateOut@GRAD float64 [3] 1.5 -0.7 0.49999999999999994
out X@GRAD float64 [2, 3] 0.9 -0.4 0.7 0.6 -0.3 -0.2
out Y@GRAD float64 [3] 0 -0.7 0.49999999999999994

example elementwise_add scale
attr functor_list STRINGS ["elementwise_add_grad", "scale_grad"]
attr save_intermediate_out BOOLEAN true
attr scale FLOAT 0.5
in IntermediateOut float64 [3] -0.18 -0.385 -0.245
in Out float64 [2, 3] -0.62 -0.545 -0.014999999999999986 -0.16 -0.025000000000000022 0.715
in Out@GRAD float64 [2, 3] 0.9 -0.4 0.7 0.6 -0.3 -0.2
in X float64 [2, 3] -0.44 -0.16 0.23 0.02 0.36 0.96
in Y float64 [3] -0.36 -0.77 -0.49
out IntermediateOut@GRAD float64 [3] 1.5 -0.7 0.49999999999999994
out X@GRAD float64 [2, 3] 0.9 -0.4 0.7 0.6 -0.3 -0.2
out Y@GRAD float64 [3] 0.75 -0.35 0.24999999999999997

example tanh elementwise_add
attr functor_list STRINGS ["tanh_grad", "elementwise_add_grad"]
attr save_intermediate_out BOOLEAN true
in IntermediateOut float64 [2, 3] 0.5 0.51 0.24999999999999997 -0.18000000000000002 0.18
  0.29000000000000004
in Out float64 [2, 3] 0.4621171572600098 0.46994519893303766 0.2449186624037092 -0.17808086811733026
  0.17808086811733026 0.28213481266963414
in Out@GRAD float64 [2, 3] 0.8 -0.9 -0.8 0.6 1 -0.5
in X float64 [2, 3] 0.9 -0.11 0.41 0.22 -0.44 0.45
in Y float64 [3] -0.4 0.62 -0.16
out IntermediateOut@GRAD float64 [2, 3] 0.629158186372742 -0.701236358999809 -0.7520118790451025
  0.5809723226463468 0.968287204410578 -0.4601999737399352
out X@GRAD float64 [2, 3] 0.629158186372742 -0.701236358999809 -0.7520118790451025
  0.5809723226463468 0.968287204410578 -0.4601999737399352
out Y@GRAD float64 [3] 1.2101305090190888 0.26705084541076907 -1.2122118527850376

example relu elementwise_add
attr functor_list STRINGS ["relu_grad", "elementwise_add_grad"]
attr save_intermediate_out BOOLEAN true
in IntermediateOut float64 [2, 3] 0.06 0.32999999999999996 -1.25 0.54 1.49 -0.010000000000000009
in Out float64 [2, 3] 0.06 0.32999999999999996 -0 0.54 1.49 -0
in Out@GRAD float64 [2, 3] 0.8 -0.9 -0.8 0.6 1 -0.5
in X float64 [2, 3] -0 -0.64 -0.87 0.48 0.52 0.37
in Y float64 [3] 0.06 0.97 -0.38
out IntermediateOut@GRAD float64 [2, 3] 0.8 -0.9 -0 0.6 1 -0
out X@GRAD float64 [2, 3] 0.8 -0.9 -0 0.6 1 -0
out Y@GRAD float64 [3] 1.4 0.09999999999999998 -0

example elementwise_add relu, no. 2
attr functor_list STRINGS ["elementwise_add_grad", "relu_grad"]
attr save_intermediate_out BOOLEAN true
in IntermediateOut float64 [3] -0 -0 -0
in Out float64 [2, 3] 0.84 -0.99 0.77 0.58 0.92 0.54
in Out@GRAD float64 [2, 3] 0.9 -0.4 0.7 0.6 -0.3 -0.2
in X float64 [2, 3] 0.84 -0.99 0.77 0.58 0.92 0.54
in Y float64 [3] -0.86 -0.26 -0.96
out IntermediateOut@GRAD float64 [3] 1.5 -0.7 0.49999999999999994
out X@GRAD float64 [2, 3] 0.9 -0.4 0.7 0.6 -0.3 -0.2
out Y@GRAD float64 [3] 0 -0 0

example scale of elementwise_add
attr functor_list STRINGS ["scale_grad", "elementwise_add_grad"]
attr save_intermediate_out BOOLEAN true
attr scale FLOAT 0.5
in IntermediateOut float64 [2, 3] -1.1400000000000001 -0.46 0.31 0.34 0.55 -0.6000000000000001
in Out float64 [2, 3] -0.5700000000000001 -0.23 0.155 0.17 0.275 -0.30000000000000004
in Out@GRAD float64 [2, 3] 0.8 -0.9 -0.8 0.6 1 -0.5
in X float64 [2, 3] -0.68 -0.33 0.11 0.8 0.68 -0.8
in Y float64 [3] -0.46 -0.13 0.2
out IntermediateOut@GRAD float64 [2, 3] 0.4 -0.45 -0.4 0.3 0.5 -0.25
out X@GRAD float64 [2, 3] 0.4 -0.45 -0.4 0.3 0.5 -0.25
out Y@GRAD float64 [3] 0.7 0.04999999999999999 -0.65
)")
