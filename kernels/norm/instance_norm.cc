#include <cmath>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/norm/norm.h"

namespace heddle {
namespace {

template <typename T>
const T* DataOr(const Tensor* t) {
  return t ? t->data<T>() : nullptr;
}
template <typename T>
T* DataOr(Tensor* t) {
  return t ? t->mutable_data<T>() : nullptr;
}

Status CheckRank(const Shape& x) {
  if (x.rank() >= 2) return Status::Ok();
  return InvalidArgument("x has shape ", x.ToString(), ", expected rank 2 to 5");
}

Status CheckCount(const ShapeContext& ctx, Key key, int64_t expected) {
  if (!ctx.HasIn(key) || expected < 0) return Status::Ok();
  const Shape& s = ctx.InShape(key);
  if (!s.is_static() || s.numel() == expected) return Status::Ok();
  return InvalidArgument(key.name, " has shape ", s.ToString(), ", expected ", expected,
                         " elements");
}

int64_t Groups(const Shape& x) { return x[0] < 0 || x[1] < 0 ? -1 : x[0] * x[1]; }

Status InstanceNormShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckRank(x));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Scale", x[1]));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Bias", x[1]));
  const DType dtype = ctx.InDType("X");
  ctx.SetOut("Y", x, dtype);
  ctx.ShareLoD("X", "Y");
  if (ctx.HasOut("SavedMean")) ctx.SetOut("SavedMean", {Groups(x)}, dtype);
  if (ctx.HasOut("SavedVariance")) ctx.SetOut("SavedVariance", {Groups(x)}, dtype);
  return Status::Ok();
}

template <typename T>
struct InstanceNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const NormLayout layout = InstanceLayout(x.shape());
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {2 * layout.groups});
    T* mean = DataOr<T>(ctx.OutOpt("SavedMean"));
    T* inverse = DataOr<T>(ctx.OutOpt("SavedVariance"));
    if (!mean) mean = scratch.mutable_data<T>();
    if (!inverse) inverse = scratch.mutable_data<T>() + layout.groups;
    NormMoments(ctx, layout, x.data<T>(), mean, inverse);
    const T epsilon = static_cast<T>(ctx.Float("epsilon"));
    for (const int64_t g : Watched(layout.groups))
      inverse[g] = T(1) / std::sqrt(inverse[g] + epsilon);
    NormForward<T>(ctx, layout, x.data<T>(), {mean, inverse, false},
                   {DataOr<T>(ctx.InOpt("Scale")), DataOr<T>(ctx.InOpt("Bias"))},
                   ctx.Out("Y").mutable_data<T>());
    return Status::Ok();
  }
};

Status GradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckRank(x));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Scale", x[1]));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "SavedMean", Groups(x)));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "SavedVariance", Groups(x)));
  if (x.is_static()) HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Y@GRAD", x.numel()));
  const DType dtype = ctx.InDType("X");
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, dtype);
  if (ctx.HasOut("Scale@GRAD")) ctx.SetOut("Scale@GRAD", {x[1]}, dtype);
  if (ctx.HasOut("Bias@GRAD")) ctx.SetOut("Bias@GRAD", {x[1]}, dtype);
  return Status::Ok();
}

template <typename T>
struct InstanceNormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const NormLayout layout = InstanceLayout(x.shape());
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {2 * layout.groups});
    T* sum_dy = scratch.mutable_data<T>();
    T* sum_dy_x = sum_dy + layout.groups;
    NormBackward<T>(ctx, layout, x.data<T>(), ctx.In("Y@GRAD").data<T>(),
                    {ctx.In("SavedMean").data<T>(), ctx.In("SavedVariance").data<T>(), false},
                    DataOr<T>(ctx.InOpt("Scale")), DataOr<T>(ctx.OutOpt("X@GRAD")), sum_dy,
                    sum_dy_x);
    if (Tensor* t = ctx.OutOpt("Scale@GRAD")) SumGroups(layout, sum_dy_x, t->mutable_data<T>());
    if (Tensor* t = ctx.OutOpt("Bias@GRAD")) SumGroups(layout, sum_dy, t->mutable_data<T>());
    return Status::Ok();
  }
};

Status DoubleGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("x");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckRank(x));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "saved_mean", Groups(x)));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "saved_variance", Groups(x)));
  for (const Key key : {Key("fwd_scale"), Key("grad_scale@GRAD"), Key("grad_bias@GRAD")})
    HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, key, x[1]));
  if (x.is_static())
    for (const Key key : {Key("grad_y"), Key("grad_x@GRAD")})
      HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, key, x.numel()));
  const DType dtype = ctx.InDType("x");
  if (ctx.HasOut("x@GRAD")) ctx.SetOut("x@GRAD", x, dtype);
  if (ctx.HasOut("grad_y@GRAD")) ctx.SetOut("grad_y@GRAD", x, dtype);
  if (ctx.HasOut("fwd_scale@GRAD")) ctx.SetOut("fwd_scale@GRAD", {x[1]}, dtype);
  return Status::Ok();
}

template <typename T>
struct InstanceNormDoubleGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("x");
    const NormLayout layout = InstanceLayout(x.shape());
    Tensor scratch = ctx.Scratch(kDTypeOf<T>, {layout.groups});
    Tensor* dscale = ctx.OutOpt("fwd_scale@GRAD");
    const NormSecond<T> io{x.data<T>(),
                           ctx.In("grad_y").data<T>(),
                           DataOr<T>(ctx.InOpt("grad_x@GRAD")),
                           DataOr<T>(ctx.InOpt("grad_scale@GRAD")),
                           DataOr<T>(ctx.InOpt("grad_bias@GRAD")),
                           DataOr<T>(ctx.OutOpt("x@GRAD")),
                           DataOr<T>(ctx.OutOpt("grad_y@GRAD")),
                           dscale ? scratch.mutable_data<T>() : nullptr};
    NormDoubleBackward<T>(
        ctx, layout, {ctx.In("saved_mean").data<T>(), ctx.In("saved_variance").data<T>(), false},
        DataOr<T>(ctx.InOpt("fwd_scale")), io);
    if (dscale) SumGroups(layout, scratch.data<T>(), dscale->mutable_data<T>());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(instance_norm) {
  op.Doc("normalises each channel of each image to mean 0 and variance 1");
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional).Output("Y");
  op.Output("SavedMean", kOptional).Output("SavedVariance", kOptional).Attr("epsilon", 1e-5);
  op.InferShape(InstanceNormShape).Kernels<InstanceNorm, float, double>();
}
HEDDLE_OP(instance_norm_grad) {
  op.Input("X").Input("Scale", kOptional).Input("SavedMean").Input("SavedVariance");
  op.Input("Y@GRAD").Output("X@GRAD", kOptional).Output("Scale@GRAD", kOptional);
  op.Output("Bias@GRAD", kOptional).InferShape(GradShape);
  op.Kernels<InstanceNormGrad, float, double>();
}
HEDDLE_OP(instance_norm_double_grad) {
  op.Input("x").Input("fwd_scale", kOptional).Input("saved_mean").Input("saved_variance");
  op.Input("grad_y").Input("grad_x@GRAD", kOptional).Input("grad_scale@GRAD", kOptional);
  op.Input("grad_bias@GRAD", kOptional).Output("x@GRAD", kOptional);
  op.Output("fwd_scale@GRAD", kOptional).Output("grad_y@GRAD", kOptional);
  op.InferShape(DoubleGradShape).Kernels<InstanceNormDoubleGrad, float, double>();
}

HEDDLE_EXAMPLES(instance_norm, R"(
example float32 1x4x4
in Bias float32 [4] 0.13 -0.12 -0.61 -0.37
in Scale float32 [4] 0.669 0.769 0.868 0.968
in X float32 [1, 4, 4] 0.54 -0.55 0.1 0.75 0.43 -0.45 -0.77 -0.34 -0.66 0.64 0.21 -0.12 0.86 0.32
  -0.01 -0.23
out SavedMean float32 [4] 0.21000001 -0.2825 0.017499989 0.23500001
out SavedVariance float32 [4] 2.0098321 2.269338 2.1052456 2.4358747
out Y float32 [1, 4, 4] 0.5737107 -0.8918791 -0.017903566 0.85607195 1.1233985 -0.41230774
  -0.97074634 -0.22034445 -1.8480318 0.52752733 -0.25823453 -0.861261 1.1037042 -0.16957629
  -0.9476921 -1.466436

example float64 2x2x4x3
in Bias float64 [2] 0.12 0.14
in Scale float64 [2] 1.3 0.69
in X float64 [2, 2, 4, 3] 0.143 0.061 0.306 0.367 0.51 0.714 0.939 0.469 0.633 0.694 0.327 0.918
  0.265 0.429 0.449 0.959 0.735 0.347 0.877 0.796 0.225 0.082 0.102 0.857 0.898 0.204 0.979 0.755
  0.612 0.123 0.592 0.551 0.775 0.021 0.408 0.49 0.673 0.816 0.184 0.571 0.163 0.245 0.531 0.041
  0.388 0.837 0.653 0.286
out SavedMean float64 [4] 0.5067499999999999 0.5102500000000001 0.534 0.449
out SavedVariance float64 [4] 3.7040758024881915 3.2776782610186195 3.4535807653749533
  3.899532045244682
out Y float64 [2, 2, 4, 3] -1.6315648451016034 -2.0264193256468443 -0.8466711825543554
  -0.5529379714170419 0.13564972026551303 1.1179706230853812 2.201412795313177 -0.06177752000710776
  0.7279314410833748 1.0216646522206883 -0.7455499131464277 2.10029152590525 -0.4146569095252235
  -0.04375483750835657 0.001477122493700439 1.1548921025461523 0.6482941505231147
  -0.22920587351679006 0.969441066537719 0.7862516285293885 -0.5051208295293373 -0.8285293435440445
  -0.7832973835419876 0.924209106535662 1.754234418175428 -1.3615861483458551 2.1178964727694103
  1.1122137538922239 0.4701930896090201 -1.7252482029398375 0.38039998970927125 0.19632413491478654
  1.202006853791973 -2.183193012428556 -0.44569652936841764 -0.07754481977944752 0.7427116729130181
  1.1274784998173106 -0.5730294344729902 0.46826260756869714 -0.6295336538085855
  -0.40889813068864145 0.3606355231199442 -0.9577962613772829 -0.024131303784348634
  1.183982719152906 0.6888981306886415 -0.2985803691286694
)")

HEDDLE_EXAMPLES(instance_norm_grad, R"(
example float64 1x4x4
in SavedMean float64 [4] 0.017499999999999988 0.18 0.10249999999999998 -0.12000000000000001
in SavedVariance float64 [4] 2.225087837946722 2.1790164352838564 2.1318678699232834
  1.7538192635412915
in Scale float64 [4] 0.669 0.769 0.968 0.868
in X float64 [1, 4, 4] -0.23 -0.55 0.64 0.21 -0.12 0.86 -0.34 0.32 0.1 0.54 -0.66 0.43 -0.77 0.75
  -0.01 -0.45
in Y@GRAD float64 [1, 4, 4] 0.3 1 -0.2 0.7 -0.1 0.1 0.2 -0.3 1 -0.5 0.9 -0.9 -0.2 0.7 0.2 -0.8
out Bias@GRAD float64 [4] 1.7999999999999998 -0.09999999999999998 0.5 -0.10000000000000009
out Scale@GRAD float64 [4] -1.405142969663355 -0.10459278889362511 -2.563038146615267
  1.7976647451298235
out X@GRAD float64 [1, 4, 4] -0.5112634779195904 0.15841266252167258 -0.24327639146216645
  0.5961272068600846 -0.15431723574838974 0.27438087062001887 0.32737738311977416
  -0.44744101799140334 1.7986446518933006 -0.0564791232525228 -0.5501400731582635 -1.192025455482514
  0.5135173794771289 0.059782159039035575 0.2105340132203902 -0.7838335517365548

example float32 1x4x4
in SavedMean float32 [4] 0.0175 0.18 0.1025 -0.12
in SavedVariance float32 [4] 2.225088 2.1790164 2.131868 1.7538192
in Scale float32 [4] 0.669 0.769 0.968 0.868
in X float32 [1, 4, 4] -0.23 -0.55 0.64 0.21 -0.12 0.86 -0.34 0.32 0.1 0.54 -0.66 0.43 -0.77 0.75
  -0.01 -0.45
in Y@GRAD float32 [1, 4, 4] 0.3 1 -0.2 0.7 -0.1 0.1 0.2 -0.3 1 -0.5 0.9 -0.9 -0.2 0.7 0.2 -0.8
out Bias@GRAD float32 [4] 1.8 -0.10000001 0.5 -0.100000024
out Scale@GRAD float32 [4] -1.405143 -0.104592755 -2.5630383 1.7976646
out X@GRAD float32 [1, 4, 4] -0.51126343 0.15841262 -0.24327633 0.5961272 -0.15431722 0.27438083
  0.3273774 -0.447441 1.7986445 -0.05647892 -0.55014026 -1.1920253 0.51351726 0.059782285 0.21053404
  -0.7838335
)")

HEDDLE_EXAMPLES(instance_norm_double_grad, R"(
example float32
attr epsilon FLOAT 1e-05
in x float32 [2, 2, 2, 2] -0.56 0.1 0.7 0.47 -0 -0.24 0.58 -0.66 0.17 -0.14 -0.88 -0.42 0.47 -0.42
  -0.22 0.27
in fwd_scale float32 [2] 1.75 0.98
in saved_mean float32 [4] 0.1775 -0.08000001 -0.3175 0.025000006
in saved_variance float32 [4] 2.0982823 2.2304432 2.590389 2.7838526
in grad_y float32 [2, 2, 2, 2] -0.68 0.42 0.75 0.19 0.39 -0.65 0.06 0.74 0.68 0.94 0.56 -0.61 0.22
  -0.04 0.23 -0.72
in grad_x@GRAD float32 [2, 2, 2, 2] -0.18 0.56 0.88 -0.79 0.88 0.59 -0.34 -0.38 -0.42 -0.65 0.76
  0.64 0.47 0.69 0.22 -0.31
in grad_scale@GRAD float32 [2] -0.54 0.89
in grad_bias@GRAD float32 [2] -0.42 -0.18
close 2e-05 2e-06
out x@GRAD float32 [2, 2, 2, 2] 1.793501 -2.3869848 -3.2604756 3.8539598 1.1569505 -1.6444947
  0.7379369 -0.25039285 2.5397217 4.071298 -0.72409457 -5.886926 0.8176483 0.8023227 1.3244636
  -2.944435
out fwd_scale@GRAD float32 [2] -0.7185972 0.05212176
out grad_y@GRAD float32 [2, 2, 2, 2] 0.27133843 1.3923031 1.1161493 -4.459791 1.4985874 0.37000406
  0.027373612 -2.6159656 -0.36504397 -2.8911476 -0.040553957 1.6167456 2.0107024 -0.6655925
  -1.2115445 -0.8535653

example float64
attr epsilon FLOAT 1e-05
in x float64 [2, 2, 2, 2] -0.12 -0.33 0.66 -0.72 -0.24 0.55 0.47 0.95 -0.75 -0.53 0.11 0.63 -0.81
  -0.17 0.93 -0.69
in fwd_scale float64 [2] 1.74 1.01
in saved_mean float64 [4] -0.1275 0.4325 -0.13499999999999998 -0.185
in saved_variance float64 [4] 1.9877975895572049 2.3323476388367927 1.8415082088254198
  1.4551170309473862
in grad_y float64 [2, 2, 2, 2] 0.24 0.69 -0.25 0.09 -0.06 0.89 -0.31 -0.7 0.14 0.76 0.65 0.15 -0.63
  -0.64 -0.02 -0.01
in grad_x@GRAD float64 [2, 2, 2, 2] 0.04 0.53 0.8 0.54 0.87 0.06 0.07 0.9 0.85 0.9 -0.9 0.42 -0.81
  0.75 -0.65 -0.65
in grad_scale@GRAD float64 [2] -0.3 -0.8
in grad_bias@GRAD float64 [2] 0.88 -0.53
out x@GRAD float64 [2, 2, 2, 2] -0.64546036614097 -0.46376800800533224 0.57697056093034
  0.5322578132159621 -0.7347809091936246 -1.5375700710959168 0.1627094190265056 2.1096415612630364
  -1.052918916025674 0.20499246780548205 0.28658167582490746 0.5613447723952844 0.1516337985003275
  0.09401094602744964 0.35816548080865496 -0.6038102253364321
out fwd_scale@GRAD float64 [2] -0.7438601901153166 -2.0022972616608
out grad_y@GRAD float64 [2, 2, 2, 2] -0.642886012689302 1.3228129460558002 0.9795673652976661
  1.8605057013358355 1.4190592549122596 -1.6855691289029069 -1.5408443387144235 -0.3126457872949291
  1.6271612264584228 2.130460903999128 -2.6390672762300347 2.4014451457724837 -0.4343526004676721
  1.053064944471024 -2.388519496545152 -0.35019284745820073
)")
