// Gradients of pooling, and maxima with the places that they come from.
#include "kernels/onnx/operands.h"
#include "kernels/tf_nn/tf_windows.h"

namespace heddle {
namespace {

// fn(channel, offset of the plane's first element in the input, in the output) for all planes.
template <typename Fn>
void ForEachPlane(const KernelContext& ctx, const TfWindows& w, Fn&& fn) {
  const int64_t in = w.in_size(), out = w.out_size();
  ctx.ParallelFor(w.batch * w.channels, 1 + 16384 / (1 + in), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t b = p / w.channels, c = p % w.channels;
      fn(b, c, b * in * w.channels + c * w.channel_step(in),
         b * out * w.channels + c * w.channel_step(out));
    }
  });
}

// The first of the greatest elements of a window; -1 where the window is empty.
template <typename T>
int64_t MaxTap(const TfWindows& w, const std::array<int64_t, 3>& at, const T* plane) {
  int64_t best = -1;
  T most{};
  ForEachTfTap(w, at, [&](int64_t pixel, int64_t) {
    const T v = plane[pixel * w.pixel_step()];
    if (best >= 0 && !(v > most)) return;
    best = pixel;
    most = v;
  });
  return best;
}

Status MaxGradShape(ShapeContext& ctx) {
  ctx.SetOut("output", ctx.InShape("orig_input"), ctx.InDType("orig_input"));
  return Status::Ok();
}

Status CheckOut(const TfWindows& w, const Tensor& t, const char* slot) {
  const Shape want = w.Layout(w.out, w.channels);
  if (t.shape() == want) return Status::Ok();
  return InvalidArgument(slot, " has shape ", t.shape().ToString(), ", expected ", want.ToString());
}

template <typename T>
struct MaxPoolGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("orig_input"), &grad = ctx.In("grad");
    HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, x.shape(), nullptr));
    HEDDLE_RETURN_IF_ERROR(CheckOut(w, grad, "grad"));
    if (grad.dtype() != x.dtype())
      return InvalidArgument("grad is ", Name(grad.dtype()), ", orig_input ", Name(x.dtype()));
    const T *from = x.data<T>(), *dy = grad.data<T>();
    Tensor& out = ctx.Out("output");
    T* dx = out.template mutable_data<T>();
    ZeroBytes(ctx, dx, out.bytes());
    ForEachPlane(ctx, w, [&](int64_t, int64_t, int64_t in_at, int64_t out_at) {
      ForEachTfPosition(w, [&](const std::array<int64_t, 3>& at, int64_t i) {
        const int64_t tap = MaxTap(w, at, from + in_at);
        if (tap >= 0) dx[in_at + tap * w.pixel_step()] += dy[out_at + i * w.pixel_step()];
      });
    });
    return Status::Ok();
  }
};

Status AvgGradShape(ShapeContext& ctx) {
  if (!Known(ctx, "orig_input_shape")) {
    Shape open = ctx.InShape("grad");
    if (!open.known_rank()) return ctx.Defer();
    for (int i = 0; i < open.rank(); ++i) open[i] = -1;
    ctx.SetOut("output", open, ctx.InDType("grad"));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "orig_input_shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "orig_input_shape"));
  ctx.SetOut("output", shape, ctx.InDType("grad"));
  return Status::Ok();
}

template <typename T>
struct AvgPoolGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& grad = ctx.In("grad");
    Tensor& out = ctx.Out("output");
    HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, out.shape(), nullptr));
    HEDDLE_RETURN_IF_ERROR(CheckOut(w, grad, "grad"));
    const T* dy = grad.data<T>();
    T* dx = out.template mutable_data<T>();
    ZeroBytes(ctx, dx, out.bytes());
    ForEachPlane(ctx, w, [&](int64_t, int64_t, int64_t in_at, int64_t out_at) {
      ForEachTfPosition(w, [&](const std::array<int64_t, 3>& at, int64_t i) {
        int64_t taps = 0;
        ForEachTfTap(w, at, [&](int64_t, int64_t) { ++taps; });
        if (taps == 0) return;
        const T share = dy[out_at + i * w.pixel_step()] / static_cast<T>(taps);
        ForEachTfTap(w, at,
                     [&](int64_t pixel, int64_t) { dx[in_at + pixel * w.pixel_step()] += share; });
      });
    });
    return Status::Ok();
  }
};

Status ArgmaxShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, x, nullptr));
  const DType dtype = DTypeFromProto(ctx.Int("Targmax"));
  if (dtype != DType::kI32 && dtype != DType::kI64)
    return InvalidArgument("Targmax is ", Name(dtype), ", expected int32 or int64");
  ctx.SetOut("output", w.Layout(w.out, w.channels), ctx.InDType("input"));
  ctx.SetOut("argmax", w.Layout(w.out, w.channels), dtype);
  return Status::Ok();
}

template <typename T>
struct MaxPoolWithArgmax {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, x.shape(), nullptr));
    if (w.in_size() == 0 && w.out_size() > 0)
      return InvalidArgument("input has no pixels: ", x.shape().ToString());
    const T* from = x.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    Tensor& places = ctx.Out("argmax");
    const int64_t image = ctx.Bool("include_batch_in_index") ? w.in_size() * w.channels : 0;
    ForEachPlane(ctx, w, [&](int64_t b, int64_t c, int64_t in_at, int64_t out_at) {
      ForEachTfPosition(w, [&](const std::array<int64_t, 3>& at, int64_t i) {
        const int64_t tap = std::max<int64_t>(0, MaxTap(w, at, from + in_at));
        const int64_t o = out_at + i * w.pixel_step();
        const int64_t place = tap * w.channels + c + b * image;
        to[o] = from[in_at + tap * w.pixel_step()];
        if (places.dtype() == DType::kI64)
          places.mutable_data<int64_t>()[o] = place;
        else
          places.mutable_data<int32_t>()[o] = static_cast<int32_t>(place);
      });
    });
    return Status::Ok();
  }
};

void DefineMaxGrad(OpDef& op, const char* doc) {
  op.Doc(doc).Input("orig_input").Input("orig_output", kNoBuffer).Input("grad").Output("output");
  DeclareTfWindows(op, true, false);
  op.InferShape(MaxGradShape).KernelKey("orig_input").Kernels<MaxPoolGrad, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
void DefineAvgGrad(OpDef& op, const char* doc) {
  op.Doc(doc).Input("orig_input_shape", kShapeValue).Input("grad").Output("output");
  DeclareTfWindows(op, true, false);
  op.InferShape(AvgGradShape).KernelKey("grad").Kernels<AvgPoolGrad, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_max_pool_grad) {
  DefineMaxGrad(op, "gradient of max pooling: all of it goes to the first of the greatest");
}
HEDDLE_OP(tf_max_pool3d_grad) { DefineMaxGrad(op, "gradient of 3-D max pooling"); }
HEDDLE_OP(tf_avg_pool_grad) { DefineAvgGrad(op, "gradient of average pooling"); }
HEDDLE_OP(tf_avg_pool3d_grad) { DefineAvgGrad(op, "gradient of 3-D average pooling"); }
HEDDLE_OP(tf_max_pool_with_argmax) {
  op.Doc("maxima of windows, and the flat place of each in its image (or in the batch)");
  op.Input("input").Output("output").Output("argmax").Attr("Targmax", 3);
  op.Attr("include_batch_in_index", false);
  DeclareTfWindows(op, true, false);
  op.InferShape(ArgmaxShape)
      .Kernels<MaxPoolWithArgmax, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_EXAMPLES(tf_avg_pool_grad, R"(
example recorded case 1
attr ksize INTS [1, 2, 3, 1]
attr strides INTS [1, 2, 1, 1]
attr padding STRING "VALID"
attr data_format STRING "NHWC"
in orig_input_shape int32 [4] 1 6 5 1
in grad float32 [1, 3, 3, 1] -1.5447084 0.29326484 0.13988592 0.15808442 0.6116156 0.052107457
  -1.4827979 -0.50726604 0.19919172
out output float32 [1, 6, 5, 1] -0.25745142 -0.20857394 -0.18525961 0.07219179 0.02331432
  -0.25745142 -0.20857394 -0.18525961 0.07219179 0.02331432 0.026347404 0.12828334 0.13696791
  0.11062051 0.0086845765 0.026347404 0.12828334 0.13696791 0.11062051 0.0086845765 -0.24713299
  -0.33167732 -0.2984787 -0.051345725 0.03319862 -0.24713299 -0.33167732 -0.2984787 -0.051345725
  0.03319862

example recorded case 2
attr ksize INTS [1, 1, 3, 1]
attr strides INTS [1, 1, 2, 1]
attr padding STRING "VALID"
attr data_format STRING "NHWC"
in orig_input_shape int32 [4] 2 7 5 1
in grad float64 [2, 7, 2, 1] 2.2486187861882443 0.31350766809098085 2.587738466556459
  0.06217411819578236 1.9287107485136237 -1.1848644319617543 0.5121229661062354 -1.2773800633051953
  -0.6585996946909765 -0.555886569277635 -0.36466104035408053 -2.0333124289862043 -0.846768059792221
  1.6579903319255185 -0.4508877269210447 -2.1608953919386 0.6143518949718243 2.0017953659177667
  0.5196417800436902 -1.368281491676612 0.3307574429406587 -0.35924543764067196 -3.022260013349386
  -2.7685706251612556 1.3836878775357557 -2.3607575451176723 -0.6749196853472509 2.179640058965114
out output float64 [2, 7, 5, 1] 0.7495395953960814 0.7495395953960814 0.8540421514264084
  0.10450255603032695 0.10450255603032695 0.862579488852153 0.862579488852153 0.8833041949174137
  0.020724706065260785 0.020724706065260785 0.6429035828378745 0.6429035828378745
  0.24794877218395645 -0.3949548106539181 -0.3949548106539181 0.17070765536874513
  0.17070765536874513 -0.25508569906631995 -0.42579335443506505 -0.42579335443506505
  -0.2195332315636588 -0.2195332315636588 -0.4048287546562038 -0.185295523092545 -0.185295523092545
  -0.12155368011802684 -0.12155368011802684 -0.7993244897800948 -0.677770809662068
  -0.677770809662068 -0.28225601993074034 -0.28225601993074034 0.2704074240444324 0.5526634439751728
  0.5526634439751728 -0.15029590897368156 -0.15029590897368156 -0.8705943729532148
  -0.7202984639795332 -0.7202984639795332 0.20478396499060808 0.20478396499060808 0.8720490869631969
  0.6672651219725889 0.6672651219725889 0.17321392668123006 0.17321392668123006 -0.2828799038776406
  -0.45609383055887065 -0.45609383055887065 0.11025248098021956 0.11025248098021956
  -0.009495998233337757 -0.11974847921355732 -0.11974847921355732 -1.0074200044497954
  -1.0074200044497954 -1.9302768795035472 -0.9228568750537518 -0.9228568750537518 0.4612292925119186
  0.4612292925119186 -0.3256898891939721 -0.7869191817058907 -0.7869191817058907
  -0.22497322844908363 -0.22497322844908363 0.5015734578726211 0.7265466863217047 0.7265466863217047

example recorded case 3
attr ksize INTS [1, 3, 2, 1]
attr strides INTS [1, 1, 1, 1]
attr padding STRING "VALID"
attr data_format STRING "NHWC"
in orig_input_shape int32 [4] 2 5 6 1
in grad float32 [2, 3, 5, 1] -0.75267226 0.054838095 -2.6302023 -0.863089 1.338069 -0.7682349
  0.31027105 -0.40595683 -1.1418588 1.4059476 -0.10949836 -0.92709917 -2.7020886 -1.1748463
  -0.977261 -0.4666967 -2.0586612 -2.0936244 -0.88011616 -1.835312 1.1409035 0.80075157 0.08868513
  1.748605 -1.4883791 0.033577908 -0.48488152 -2.7647636 1.2917461 -1.1270769
out output float32 [2, 5, 6, 1] -0.12544538 -0.116305694 -0.42922738 -0.58221525 0.07916331
  0.2230115 -0.25348455 -0.192633 -0.44517502 -0.84018457 0.12317811 0.4573361 -0.27173427
  -0.36539924 -1.0500396 -1.4863404 -0.23550646 0.29445925 -0.14628887 -0.24909356 -0.6208123
  -0.9041251 -0.3146698 0.07144776 -0.018249728 -0.17276627 -0.60486466 -0.64615583 -0.35868457
  -0.16287684 -0.07778279 -0.42089298 -0.6920476 -0.4956234 -0.4525714 -0.30588534 0.1123678
  -0.097283795 -0.5438081 -0.18940839 -0.40920043 -0.5539485 0.11796412 -0.17250106 -1.0854156
  -0.4349113 -0.38175556 -0.7417947 0.19574691 0.2483919 -0.39336807 0.0607121 0.07081583
  -0.43590933 0.0055963183 -0.07521727 -0.5416075 -0.24550292 0.02744487 -0.18784615

example recorded case 4
attr ksize INTS [1, 1, 3, 1]
attr strides INTS [1, 2, 1, 1]
attr padding STRING "SAME"
attr data_format STRING "NHWC"
in orig_input_shape int32 [4] 1 8 8 1
in grad float32 [1, 4, 8, 1] -0.5282909 -1.285224 -1.670158 -1.0245156 -0.15051793 -0.5423893
  0.40411216 -0.47338715 -0.54296386 -1.1493115 -1.395342 -2.2626135 -0.8499327 -0.6792203 1.1067226
  0.7602124 2.4387844 -0.5226389 0.12595092 -0.4725636 -0.013518543 0.80466104 -1.7449974 3.4000335
  -0.8152776 3.2408645 2.2416577 -0.093623884 -0.58632255 0.74325913 1.2364734 -1.2889626
out output float32 [1, 8, 8, 1] -0.69255346 -1.2492728 -1.3266325 -0.9483972 -0.5724743 -0.09626502
  -0.28278595 -0.10198952 0*8 -0.6545858 -1.1196997 -1.6024224 -1.5026294 -1.2639222 -0.14081016
  0.52260697 0.7490138 0*8 1.0451792 1.0871629 -0.28975052 -0.12004374 0.106192976 -0.31795162
  1.3865713 1.118351 0*8 0.6726494 1.4198687 1.7962996 0.5205704 0.021104231 0.46447003 0.015429616
  -0.23232347 0*8
)")

HEDDLE_EXAMPLES(tf_avg_pool3d_grad, R"(
example recorded case 1
attr ksize INTS [1, 2, 2, 2, 1]
attr strides INTS [1, 2, 2, 2, 1]
attr padding STRING "SAME"
in orig_input_shape int32 [5] 1 4 5 6 2
in grad float32 [1, 2, 3, 3, 2] -0.77489424 2.3055325 1.4604001 -0.37036088 -1.3735065 -2.5481603
  -0.39355403 1.3182673 -3.20798 -1.5565403 0.043191474 1.3360122 0.1631647 1.2939543 1.1184412
  -0.45046303 1.0399504 0.9521317 -0.9638745 -1.5724416 0.7261559 0.68882567 0.46619812 0.7937621
  1.3852942 3.465607 1.7218685 0.3861464 -0.2885336 3.3581133 1.4207351 0.078307524 -1.4684601
  0.988891 -1.4787285 0.37793663
out output float32 [1, 4, 5, 6, 2] -0.09686178 0.28819156 -0.09686178 0.28819156 0.18255001
  -0.04629511 0.18255001 -0.04629511 -0.17168832 -0.31852004 -0.17168832 -0.31852004 -0.09686178
  0.28819156 -0.09686178 0.28819156 0.18255001 -0.04629511 0.18255001 -0.04629511 -0.17168832
  -0.31852004 -0.17168832 -0.31852004 -0.049194254 0.16478342 -0.049194254 0.16478342 -0.4009975
  -0.19456753 -0.4009975 -0.19456753 0.0053989342 0.16700153 0.0053989342 0.16700153 -0.049194254
  0.16478342 -0.049194254 0.16478342 -0.4009975 -0.19456753 -0.4009975 -0.19456753 0.0053989342
  0.16700153 0.0053989342 0.16700153 0.040791176 0.32348856 0.040791176 0.32348856 0.2796103
  -0.11261576 0.2796103 -0.11261576 0.2599876 0.23803292 0.2599876 0.23803292 -0.09686178 0.28819156
  -0.09686178 0.28819156 0.18255001 -0.04629511 0.18255001 -0.04629511 -0.17168832 -0.31852004
  -0.17168832 -0.31852004 -0.09686178 0.28819156 -0.09686178 0.28819156 0.18255001 -0.04629511
  0.18255001 -0.04629511 -0.17168832 -0.31852004 -0.17168832 -0.31852004 -0.049194254 0.16478342
  -0.049194254 0.16478342 -0.4009975 -0.19456753 -0.4009975 -0.19456753 0.0053989342 0.16700153
  0.0053989342 0.16700153 -0.049194254 0.16478342 -0.049194254 0.16478342 -0.4009975 -0.19456753
  -0.4009975 -0.19456753 0.0053989342 0.16700153 0.0053989342 0.16700153 0.040791176 0.32348856
  0.040791176 0.32348856 0.2796103 -0.11261576 0.2796103 -0.11261576 0.2599876 0.23803292 0.2599876
  0.23803292 -0.120484315 -0.1965552 -0.120484315 -0.1965552 0.090769485 0.08610321 0.090769485
  0.08610321 0.058274765 0.09922026 0.058274765 0.09922026 -0.120484315 -0.1965552 -0.120484315
  -0.1965552 0.090769485 0.08610321 0.090769485 0.08610321 0.058274765 0.09922026 0.058274765
  0.09922026 0.17316177 0.43320087 0.17316177 0.43320087 0.21523356 0.0482683 0.21523356 0.0482683
  -0.0360667 0.41976416 -0.0360667 0.41976416 0.17316177 0.43320087 0.17316177 0.43320087 0.21523356
  0.0482683 0.21523356 0.0482683 -0.0360667 0.41976416 -0.0360667 0.41976416 0.35518378 0.019576881
  0.35518378 0.019576881 -0.36711502 0.24722275 -0.36711502 0.24722275 -0.36968213 0.09448416
  -0.36968213 0.09448416 -0.120484315 -0.1965552 -0.120484315 -0.1965552 0.090769485 0.08610321
  0.090769485 0.08610321 0.058274765 0.09922026 0.058274765 0.09922026 -0.120484315 -0.1965552
  -0.120484315 -0.1965552 0.090769485 0.08610321 0.090769485 0.08610321 0.058274765 0.09922026
  0.058274765 0.09922026 0.17316177 0.43320087 0.17316177 0.43320087 0.21523356 0.0482683 0.21523356
  0.0482683 -0.0360667 0.41976416 -0.0360667 0.41976416 0.17316177 0.43320087 0.17316177 0.43320087
  0.21523356 0.0482683 0.21523356 0.0482683 -0.0360667 0.41976416 -0.0360667 0.41976416 0.35518378
  0.019576881 0.35518378 0.019576881 -0.36711502 0.24722275 -0.36711502 0.24722275 -0.36968213
  0.09448416 -0.36968213 0.09448416
)")

HEDDLE_EXAMPLES(tf_max_pool_grad, R"(
example overlapping windows, equal elements
attr ksize INTS [1, 2, 2, 1]
attr strides INTS [1, 1, 2, 1]
attr padding STRING "SAME"
in orig_input float32 [1, 3, 3, 2] 1 2 1 0 3 -1 0 2 1 2 -4 -3 5 5 0 1 2 -3
in orig_output float32 [1, 3, 2, 2] 1 2 3 -1 5 5 2 1 5 5 2 -3
in grad float32 [1, 3, 2, 2] 0.5 1 -2 3 0.25 4 -0.5 1.5 2 -1 3 0.75
out output float32 [1, 3, 3, 2] 0.5 1 0 0 -2 3 0*5 1.5 2.25 3 0 0 2.5 0.75
)")

HEDDLE_EXAMPLES(tf_max_pool3d_grad, R"(
example halves
attr ksize INTS [1, 2, 2, 2, 1]
attr strides INTS [1, 2, 2, 2, 1]
attr padding STRING "VALID"
attr data_format STRING "NDHWC"
in orig_input float32 [1, 2, 2, 4, 1] 1 2 3 4 8 7 6 5 0 -1 -2 -3 9 2 9 4
in orig_output float32 [1, 1, 1, 2, 1] 9 9
in grad float32 [1, 1, 1, 2, 1] 0.5 -2
out output float32 [1, 2, 2, 4, 1] 0*12 0.5 0 -2 0
)")

HEDDLE_EXAMPLES(tf_max_pool_with_argmax, R"(
example places in each image
attr Targmax INT 3
attr ksize INTS [1, 2, 2, 1]
attr strides INTS [1, 2, 2, 1]
attr padding STRING "VALID"
in input float32 [2, 2, 4, 1] 1 2 3 4 8 7 6 5 0 -1 -2 -3 9 2 9 4
out output float32 [2, 1, 2, 1] 8 6 9 9
out argmax int64 [2, 1, 2, 1] 4 6 4 6

example places in the batch
attr Targmax INT 2
attr include_batch_in_index BOOLEAN true
attr ksize INTS [1, 2, 2, 1]
attr strides INTS [1, 1, 2, 1]
attr padding STRING "SAME"
in input float32 [2, 2, 3, 1] 1 2 3 4 8 7 0 -1 -2 9 2 9
out output float32 [2, 2, 2, 1] 8 7 8 7 9*4
out argmax int32 [2, 2, 2, 1] 4 5 4 5 9 11 9 11
)")
