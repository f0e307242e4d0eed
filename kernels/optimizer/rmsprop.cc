#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferRmsprop(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"},
                                           {"Moment", "MomentOut"},
                                           {"MeanSquare", "MeanSquareOut"},
                                           {"MeanGrad", "MeanGradOut"}}));
  if (ctx.Bool("centered") && (!ctx.HasIn("MeanGrad") || !ctx.HasOut("MeanGradOut")))
    return InvalidArgument("centered RMSProp needs MeanGrad and MeanGradOut");
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct Rmsprop {
  static Status Run(KernelContext& ctx) {
    const Tensor& param = ctx.In("Param");
    HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
    HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, false));
    const bool centered = ctx.Bool("centered");
    const T *p = param.data<T>(), *ms = ctx.In("MeanSquare").template data<T>();
    const T* mom = ctx.In("Moment").template data<T>();
    T* p_out = ctx.Out("ParamOut").template mutable_data<T>();
    T* ms_out = ctx.Out("MeanSquareOut").template mutable_data<T>();
    T* mom_out = ctx.Out("MomentOut").template mutable_data<T>();
    const T* mg = centered ? ctx.In("MeanGrad").template data<T>() : nullptr;
    T* mg_out = centered ? ctx.Out("MeanGradOut").template mutable_data<T>() : nullptr;
    const T lr = static_cast<T>(rate), rho = static_cast<T>(ctx.Float("decay"));
    const T eps = static_cast<T>(ctx.Float("epsilon")), mu = static_cast<T>(ctx.Float("momentum"));
    grad.ForEach(ctx, [=](int64_t at, int64_t n, const T* g) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = at + i;
        const T square = rho * ms[k] + (T(1) - rho) * g[i] * g[i];
        T size = square;
        if (centered) {
          const T mean = rho * mg[k] + (T(1) - rho) * g[i];
          size -= mean * mean;
          mg_out[k] = mean;
        }
        const T step = mu * mom[k] + lr * g[i] / std::sqrt(size + eps);
        ms_out[k] = square;
        mom_out[k] = step;
        p_out[k] = p[k] - step;
      }
    });
    // Without centring the mean is only handed on.
    if (!centered && ctx.HasOut("MeanGradOut"))
      if (const Tensor* in = ctx.InOpt("MeanGrad")) CopyWhenApart(*in, ctx.Out("MeanGradOut"));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(rmsprop) {
  op.Doc("momentum of gradients divided by their root mean square")
      .Input("Param")
      .Input("MeanSquare")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("Moment")
      .Input("LearningRate")
      .Input("MeanGrad", kOptional)
      .Input("MasterParam", kOptional)
      .Output("ParamOut")
      .Output("MomentOut")
      .Output("MeanSquareOut")
      .Output("MeanGradOut", kOptional)
      .Output("MasterParamOut", kOptional)
      .Attr("epsilon", 1e-10f)
      .Attr("decay", 0.9f)
      .Attr("momentum", 0.0)
      .Attr("centered", false)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment", "MomentOut")
      .Inplace("MeanSquare", "MeanSquareOut")
      .Inplace("MeanGrad", "MeanGradOut")
      .InferShape(InferRmsprop)
      .Kernels<KeepsMaster<Rmsprop>::Kernel, float, double>();
}

HEDDLE_EXAMPLES(rmsprop, R"(
example float32 4x2x3, centered, decay 0.95, epsilon 0.0001
attr centered BOOLEAN true
attr decay FLOAT 0.95
attr epsilon FLOAT 0.0001
in Grad float32 [4, 2, 3] -0.34 0.76 -0.03 -0.89 0.83 0.91 0.68 -0.81 0.36 0.6 0.21 0.52 -0.73 0.05
  0.29 0.44 -0.42 -0.57 -0.1 -0.26 -0.5 -0.18 -0.65 0.13
in LearningRate float32 [1] 0.0313
in MeanGrad float32 [4, 2, 3] 0.43 0.356 0.803 0.095 0.878 0.244 0.952 0.393 0.728 0.766 0.84 0.617
  0.915 0.691 0.281 0.654 0.579 0.132 0.505 0.542 0.169 0.318 0.207 0.467
in MeanSquare float32 [4, 2, 3] 1.971 1.593 2.122 2.273 2.311 2.046 2.462 2.198 2.349 1.82 1.933
  2.084 2.009 2.424 1.782 1.744 2.16 1.668 2.235 1.706 1.631 1.857 1.895 2.386
in Moment float32 [4, 2, 3] 0.614 0.539 0.839 0.764 0.951 0.727 0.352 0.277 0.09 0.427 0.801 0.689
  0.315 0.652 0.465 0.24 0.876 0.202 0.914 0.502 0.128 0.39 0.165 0.577
in Param float32 [4, 2, 3] -0.04 -0.2 -0.91 0.67 -0.12 0.12 0.36 0.91 -0.43 -0.67 0.04 -0.51 -0.83
  0.44 -0.28 -0.59 0.28 -0.75 0.59 0.2 0.83 0.75 -0.35 0.51
out MeanGradOut=MeanGrad float32 [4, 2, 3] 0.3915 0.37620002 0.76135 0.045749992 0.87560004
  0.27730003 0.93840003 0.33284998 0.7096 0.75769997 0.8085 0.61215 0.83274996 0.65895 0.28144997
  0.6433 0.52904993 0.096899986 0.47474998 0.50189996 0.13554999 0.29309997 0.16415 0.45015
out MeanSquareOut=MeanSquare float32 [4, 2, 3] 1.87823 1.54223 2.015945 2.1989548 2.229895 1.9851049
  2.3620198 2.120905 2.23803 1.747 1.838555 1.9933201 1.9351951 2.3029249 1.6971049 1.66648 2.06082
  1.600845 2.1237497 1.62408 1.5619501 1.7657701 1.8213749 2.2675447
out MomentOut=Moment float32 [4, 2, 3] -0.0081025455 0.02009876 -0.00078348233 -0.018794168
  0.02147597 0.020618701 0.017486334 -0.01788167 0.008555542 0.017339969 0.0060382015 0.012792798
  -0.020503946 0.0011448057 0.0071359915 0.012304549 -0.009850504 -0.014141917 -0.0022716601
  -0.006946994 -0.012596103 -0.004346774 -0.015187365 0.002831566
out ParamOut=Param float32 [4, 2, 3] -0.031897455 -0.22009876 -0.9092165 0.6887942 -0.14147598
  0.0993813 0.34251368 0.9278817 -0.43855554 -0.68733996 0.0339618 -0.5227928 -0.80949605 0.4388552
  -0.287136 -0.6023045 0.2898505 -0.7358581 0.5922716 0.206947 0.8425961 0.7543468 -0.33481264
  0.5071684

example float64 4x2x3, centered, decay 0.95, epsilon 0.0001
attr centered BOOLEAN true
attr decay FLOAT 0.95
attr epsilon FLOAT 0.0001
in Grad float64 [4, 2, 3] -0.34 0.76 -0.03 -0.89 0.83 0.91 0.68 -0.81 0.36 0.6 0.21 0.52 -0.73 0.05
  0.29 0.44 -0.42 -0.57 -0.1 -0.26 -0.5 -0.18 -0.65 0.13
in LearningRate float64 [1] 0.0313
in MeanGrad float64 [4, 2, 3] 0.43 0.356 0.803 0.095 0.878 0.244 0.952 0.393 0.728 0.766 0.84 0.617
  0.915 0.691 0.281 0.654 0.579 0.132 0.505 0.542 0.169 0.318 0.207 0.467
in MeanSquare float64 [4, 2, 3] 1.971 1.593 2.122 2.273 2.311 2.046 2.462 2.198 2.349 1.82 1.933
  2.084 2.009 2.424 1.782 1.744 2.16 1.668 2.235 1.706 1.631 1.857 1.895 2.386
in Moment float64 [4, 2, 3] 0.614 0.539 0.839 0.764 0.951 0.727 0.352 0.277 0.09 0.427 0.801 0.689
  0.315 0.652 0.465 0.24 0.876 0.202 0.914 0.502 0.128 0.39 0.165 0.577
in Param float64 [4, 2, 3] -0.04 -0.2 -0.91 0.67 -0.12 0.12 0.36 0.91 -0.43 -0.67 0.04 -0.51 -0.83
  0.44 -0.28 -0.59 0.28 -0.75 0.59 0.2 0.83 0.75 -0.35 0.51
out MeanGradOut=MeanGrad float64 [4, 2, 3] 0.39149999082088466 0.3762000048160553 0.7613499900698663
  0.04574998825788498 0.8755999994277954 0.2773000079393387 0.9383999967575073 0.3328499856591225
  0.7095999956130981 0.7576999980211258 0.8084999924898147 0.6121499988436699 0.832749980390072
  0.6589499923586846 0.28145000010728843 0.6432999974489212 0.529049988090992 0.09689999163150786
  0.474749992787838 0.501899990439415 0.13554999202489854 0.2930999940633774 0.16414998978376388
  0.45014999598264693
out MeanSquareOut=MeanSquare float64 [4, 2, 3] 1.8782299778819085 1.5422299878954888
  2.0159449747145173 2.1989549823462964 2.2298949806630612 1.9851049854815006 2.3620199761629106
  2.1209049816191197 2.2380299735426905 1.7469999825954439 1.8385549774825574 1.9933199783802034
  1.9351949824035166 2.3029249711334705 1.6971049797594546 1.6664799815177918 2.0608199763536454
  1.6008449839890004 2.123749973475933 1.62407998046875 1.561949983537197 1.765769978249073
  1.8213749824464323 2.2675449717581273
out MomentOut=Moment float64 [4, 2, 3] -0.008102544728978723 0.020098762294150495
  -0.0007834823717002963 -0.01879416690757533 0.02147597213894296 0.02061870105548251
  0.0174863310504036 -0.017881667202852693 0.00855554027806191 0.017339968505061032
  0.0060382017547801845 0.012792797431942062 -0.02050394573465592 0.0011448056952258943
  0.007135991123657192 0.012304547823948651 -0.00985050481574846 -0.014141918052189945
  -0.0022716600236095106 -0.006946993482070839 -0.012596104067300865 -0.004346774047753011
  -0.015187362579514765 0.00283156551982946
out ParamOut=Param float64 [4, 2, 3] -0.03189745527102128 -0.2200987622941505 -0.9092165176282997
  0.6887941669075753 -0.14147597213894295 0.09938129894451748 0.3425136689495964 0.9278816672028527
  -0.43855554027806193 -0.6873399685050611 0.03396179824521982 -0.5227927974319421
  -0.809496054265344 0.4388551943047741 -0.28713599112365723 -0.6023045478239486 0.2898505048157485
  -0.7358580819478101 0.5922716600236094 0.20694699348207085 0.8425961040673008 0.754346774047753
  -0.3348126374204852 0.5071684344801706
)")
