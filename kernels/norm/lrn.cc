#include "kernels/norm/lrn.h"

#include "core/shapes.h"
#include "core/threads/look_meter.h"

namespace heddle {
namespace {

struct View {
  int64_t batch, channels, pixels;
  int64_t channel_step, pixel_step;
};

Result<View> ViewOf(const OpContext& ctx, const Shape& x) {
  if (x.rank() != 4) return InvalidArgument("X has shape ", x.ToString(), ", expected rank 4");
  if (ctx.Int("n") < 1) return InvalidArgument("n is ", ctx.Int("n"), ", expected at least 1");
  if (ctx.Str("data_format") == "NHWC") return View{x[0], x[3], x[1] * x[2], 1, x[3]};
  return View{x[0], x[1], x[2] * x[3], x[2] * x[3], 1};
}

Status LrnShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(ViewOf(ctx, x).status());
  ctx.SetOut("Out", x, ctx.InDType("X"));
  ctx.SetOut("MidOut", x, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// Calls fn(image offset, channel) for all channels of all images; they are independent.
template <typename Fn>
void ForChannels(const KernelContext& ctx, const View& v, int64_t window, Fn&& fn) {
  ctx.ParallelFor(v.batch * v.channels, 1 + 16384 / (1 + v.pixels * std::min(window, v.channels)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                      fn(i / v.channels * v.channels * v.pixels, i % v.channels);
                  });
}

template <typename T>
struct Lrn {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const View v, ViewOf(ctx, in.shape()));
    const T* x = in.data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    T* mid = ctx.HasOut("MidOut") ? ctx.Out("MidOut").mutable_data<T>() : nullptr;
    const int64_t n = ctx.Int("n");
    const LrnNorm<T> norm{static_cast<T>(ctx.Float("k")), static_cast<T>(ctx.Float("alpha")), n,
                          (n - 1) / 2};
    WithNegativePower(static_cast<T>(ctx.Float("beta")), [&](auto power) {
      const auto write = [&](int64_t at, int64_t count, const T* sum) {
        if (mid != nullptr) std::copy_n(sum, count, mid + at);
        for (int64_t i = 0; i < count; ++i) out[at + i] = x[at + i] * power(sum[i]);
      };
      if (v.pixel_step == 1) {
        ForChannels(ctx, v, n, [&](int64_t image, int64_t c) {
          T sum[kLrnPiece];
          LookMeter meter;
          for (int64_t p = 0; p < v.pixels; p += kLrnPiece) {
            meter.Did(kLrnPiece * (4 + std::min(n, v.channels)));
            const int64_t count = std::min(kLrnPiece, v.pixels - p);
            norm.OfPixels(x + image + p, c, v.channels, v.channel_step, count, sum);
            write(image + c * v.channel_step + p, count, sum);
          }
        });
        return;
      }
      ctx.ParallelFor(v.batch * v.pixels, 1 + 16384 / (1 + v.channels * std::min(n, v.channels)),
                      [&](int64_t begin, int64_t end) {
                        LookMeter meter;
                        for (int64_t p = begin; p < end; ++p)
                          norm.ForPixel(x + p * v.channels, v.channels,
                                        [&](int64_t c, int64_t count, const T* sum) {
                                          meter.Did(count * (4 + std::min(n, v.channels)));
                                          write(p * v.channels + c, count, sum);
                                        });
                      });
    });
    return Status::Ok();
  }
};

Status LrnGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(ViewOf(ctx, x).status());
  for (const Key key : {Key("Out"), Key("MidOut"), Key("Out@GRAD")})
    if (x.is_static() && ctx.InShape(key).is_static() && !(ctx.InShape(key) == x))
      return InvalidArgument(key.name, " has shape ", ctx.InShape(key).ToString(), ", X ",
                             x.ToString());
  ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct LrnGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const View v, ViewOf(ctx, in.shape()));
    const T* x = in.data<T>();
    const T* out = ctx.In("Out").data<T>();
    const T* mid = ctx.In("MidOut").data<T>();
    const T* grad = ctx.In("Out@GRAD").data<T>();
    T* to = ctx.Out("X@GRAD").mutable_data<T>();
    const int64_t n = ctx.Int("n"), before = (n - 1) / 2;
    const T beta = static_cast<T>(ctx.Float("beta"));
    const T ratio = T(-2) * static_cast<T>(ctx.Float("alpha")) * beta;
    ForChannels(ctx, v, n, [&](int64_t image, int64_t c) {
      const int64_t at = image + c * v.channel_step;
      for (const int64_t p : Watched(v.pixels)) {
        const int64_t i = at + p * v.pixel_step;
        to[i] = std::pow(mid[i], -beta) * grad[i];
      }
      const int64_t first = std::max<int64_t>(0, c - before);
      const int64_t last = std::min(v.channels, c - before + n);
      for (int64_t d = first; d < last; ++d)
        for (const auto piece : Stretches(v.pixels))
          for (int64_t p = piece.begin; p < piece.end; ++p) {
            const int64_t i = at + p * v.pixel_step,
                          j = image + d * v.channel_step + p * v.pixel_step;
            to[i] += ratio * out[j] * grad[j] / mid[j] * x[i];
          }
    });
    return Status::Ok();
  }
};

void Attrs(OpDef& op) {
  op.Attr("n", 5).Attr("k", 2.0).Attr("alpha", 1e-4).Attr("beta", 0.75);
  op.Attr("data_format", "AnyLayout");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lrn) {
  op.Doc("local response normalisation across n neighbouring channels");
  op.Input("X").Output("Out").Output("MidOut", kOptional);
  Attrs(op);
  op.Traits(kChannelsLast).InferShape(LrnShape).Kernels<Lrn, float, double>();
}
HEDDLE_OP(lrn_grad) {
  op.Input("X").Input("Out").Input("MidOut").Input("Out@GRAD").Output("X@GRAD");
  Attrs(op);
  op.InferShape(LrnGradShape).Kernels<LrnGrad, float, double>();
}

HEDDLE_EXAMPLES(lrn, R"(
example float32 3x3x2x4, alpha 0.01, data_format NCHW, n 3
attr alpha FLOAT 0.01
attr data_format STRING "NCHW"
attr n INT 3
in X float32 [3, 3, 2, 4] 0.46 0.54 -0.38 0.19 -0.13 -0.11 -0.84 -0.32 -0.94 -0.54 -0.46 0.92 0.08
  -0.08 0.38 0.65 -0.59 0.62 0.43 0.67 -0.05 0.05 -0.92 0.57 -0.43 0.86 0.3 -0.81 0.27 0.35 0.7
  -0.78 0.84 -0.65 0 -0.67 -0.03 0.03 -0.3 -0.75 -0.27 0.16 0.59 0.14 -0.22 0.81 -0.16 0.32 0.73
  -0.35 -0.49 -0.24 0.4 0.22 -0.97 -0.19 -0.89 -0.57 0.11 -0.86 -0.51 0.76 0.89 0.78 -0.73 0.24 0.49
  0.94 -0.62 -0.7 0.51 -0.4
out MidOut float32 [3, 3, 2, 4] 2.010952 2.0058322 2.00356 2.008825 2.000233 2.000185 2.0085
  2.005249 2.014433 2.0096762 2.005409 2.013314 2.000258 2.00021 2.0169642 2.008498 2.012317
  2.0067601 2.003965 2.012953 2.000089 2.000089 2.0099082 2.007474 2.008905 2.011621 2.0009 2.01105
  2.0007381 2.001234 2.0058 2.011709 2.009634 2.011877 2.004381 2.011246 2.0012221 2.007795 2.006056
  2.012733 2.007785 2.004481 2.003481 2.004685 2.000493 2.00657 2.001156 2.006649 2.0132499 2.004474
  2.0025222 2.007972 2.004201 2.00626 2.01733 2.006445 2.0185788 2.00505 2.0049233 2.016808 2.008045
  2.01116 2.0199308 2.008045 2.0132499 2.003825 2.0025222 2.016232 2.006445 2.010676 2.010522
  2.007684
out Out float32 [3, 3, 2, 4] 0.27239966 0.3203855 -0.22564816 0.11260223 -0.077291705 -0.06540185
  -0.49788082 -0.18989946 -0.55592126 -0.31992576 -0.27296415 0.54431987 0.04756368 -0.04756454
  0.22452255 0.38526523 -0.34920442 0.36772242 0.25530005 0.39646018 -0.029729187 0.029729187
  -0.54501146 0.3379772 -0.25482905 0.5091419 0.1783209 -0.47964275 0.16049854 0.20801498 0.4153195
  -0.4617647 0.4976701 -0.3847798 0 -0.39671254 -0.017829936 0.017786141 -0.17797704 -0.44383508
  -0.16007587 0.094977014 0.35035884 0.083098546 -0.1307886 0.48044568 -0.095095344 0.18980008
  0.4319163 -0.20776276 -0.29108047 -0.14227971 0.23746744 0.13050653 -0.57304543 -0.1127024
  -0.52553993 -0.33828363 0.06528589 -0.5081595 -0.30233616 0.4500167 0.52527606 0.46239647
  -0.4319163 0.1425005 0.29108047 0.55554914 -0.36776572 -0.4145639 0.30205676 -0.23715837

example float32 2x1x3x5 with channels last
attr alpha FLOAT 0.3
attr beta FLOAT 0.75
attr data_format STRING "NHWC"
attr n INT 3
in X float32 [2, 1, 3, 5] -0.35 -0.70 0.30 -0.86 0.07 -0.27 -0.88 0.01 -0.93 -0.13 -0.86 -0.82 -0.15
  0.65 -0.75 -0.55 0.25 0.90 0.15 -0.21 0.95 -0.91 0.72 -0.42 -0.71 -0.76 -0.38 0.63 -0.64 0.16
out MidOut float32 [2, 1, 3, 5] 2.1837502 2.21075 2.39588 2.25035 2.22335 2.25419 2.25422 2.49182
  2.26457 2.26454 2.4236 2.43035 2.33522 2.3022501 2.2955 2.1095 2.3525 2.2685 2.2629802 2.0199802
  2.51918 2.6747 2.45687 2.3596702 2.2041502 2.2166 2.33567 2.28527 2.24963 2.13056
out Out float32 [2, 1, 3, 5] -0.19483449 -0.38609418 0.15578386 -0.4680701 0.0384452 -0.14676446
  -0.47833866 0.005042112 -0.50378317 -0.070422 -0.44274408 -0.42127165 -0.079404555 0.3477755
  -0.40216407 -0.31421584 0.13161118 0.48689845 0.08129816 -0.12393927 0.4750936 -0.435096
  0.36689845 -0.22060269 -0.39248896 -0.418358 -0.20112914 0.33895138 -0.34841484 0.09072974

example float32 1x2x2x3 with an exponent of 0.6 and a window beyond all channels
attr alpha FLOAT 0.3
attr beta FLOAT 0.6
attr n INT 9
in X float32 [1, 2, 2, 3] 0.28 -0.26 0.10 -0.87 -0.88 -0.59 0.36 -0.14 -0.37 0.17 -0.09 -0.40
out MidOut float32 [1, 2, 2, 3] 2.0624 2.02616 2.04407 2.2357402 2.23475 2.15243 2.0624 2.02616
  2.04407 2.2357402 2.23475 2.15243
out Out float32 [1, 2, 2, 3] 0.18135697 -0.17020373 0.06511822 -0.53686666 -0.5431819 -0.3724728
  0.23317325 -0.09164817 -0.24093743 0.10490499 -0.0555527 -0.25252396

example float32 1x3x1x4 with an exponent of 1/2
attr alpha FLOAT 0.2
attr beta FLOAT 0.5
attr data_format STRING "NCHW"
attr n INT 3
in X float32 [1, 3, 1, 4] 0.59 0.40 -0.51 0.15 0.05 0.75 0.46 -0.42 0.96 -0.76 -0.16 0.51
out MidOut float32 [1, 3, 1, 4] 2.0701199 2.1445 2.09434 2.03978 2.2544398 2.26002 2.0994601 2.0918
  2.18482 2.22802 2.04744 2.0873
out Out float32 [1, 3, 1, 4] 0.4100665 0.2731473 -0.35240865 0.105026685 0.033300493 0.4988904
  0.31747097 -0.29039505 0.64947647 -0.50915974 -0.111818686 0.35300246

example float32 1x3x1x4 with an exponent of 1
attr alpha FLOAT 0.2
attr beta FLOAT 1
attr data_format STRING "NCHW"
attr n INT 3
in X float32 [1, 3, 1, 4] -0.70 -0.02 -0.92 0.34 0.53 0.15 0.75 -0.37 0.39 0.19 0.16 -0.09
out MidOut float32 [1, 3, 1, 4] 2.15418 2.00458 2.28178 2.0505 2.1846 2.0118 2.2869 2.05212 2.0866
  2.01172 2.11762 2.029
out Out float32 [1, 3, 1, 4] -0.32494962 -0.009977153 -0.403194 0.16581322 0.24260731 0.0745601
  0.32795486 -0.18030135 0.18690692 0.09444655 0.07555652 -0.044356827
)")

HEDDLE_EXAMPLES(lrn_grad, R"(
example float32 3x2x3x3, alpha 0.01, data_format NCHW, n 3
attr alpha FLOAT 0.01
attr data_format STRING "NCHW"
attr n INT 3
in MidOut float32 [3, 2, 3, 3] 2.0082731 2.000085 2.009445 2.0019372 2.0088449 2.004637 2.006205
  2.0085 2.0094252 2.0082731 2.000085 2.009445 2.0019372 2.0088449 2.004637 2.006205 2.0085
  2.0094252 2.008586 2.003737 2.0088642 2.005629 2.002925 2.0039852 2.004097 2.0058398 2.007373
  2.008586 2.003737 2.0088642 2.005629 2.002925 2.0039852 2.004097 2.0058398 2.007373 2.000106
  2.013786 2.0089931 2.003994 2.0013251 2.0090292 2.010829 2.002873 2.0101452 2.000106 2.013786
  2.0089931 2.003994 2.0013251 2.0090292 2.010829 2.002873 2.0101452
in Out float32 [3, 2, 3, 3] 0.13633607 -0.011891691 -0.37327892 -0.24361052 -0.39114174 0.3502073
  -0.43898553 -0.49788082 0.11850212 -0.5216336 0.053512614 0.43845463 -0.095067516 0.3970681
  -0.20181438 -0.1601704 -0.2252318 0.56288505 -0.48008397 0.09500346 0.5452239 0.41534603
  0.26727846 0.24342376 -0.33246732 -0.30851847 -0.4565829 -0.2667133 -0.35032526 -0.118526936
  0.1602049 -0.17818566 -0.2849839 0.1840444 0.33225065 0.22532663 -0.05351219 0.4791539 -0.13629942
  0.37404016 0.20206481 0.011851964 0.45599425 0.30886114 0.2902522 -0.029728994 0.50281584
  -0.54519767 0.029685726 0.07726007 -0.56296825 -0.41454023 -0.077215284 0.52126926
in Out@GRAD float32 [3, 2, 3, 3] -0.4 0.9 0.1 -0.3 -0 -0.5 -0.3 -0.8 -0 -0 -0.7 0 -0.8 0 -1 -0.8
  -0.6 0.2 0.6 -0.9 -0.4 0.2 0.8 -0.9 0.2 0.2 0.7 0.3 -0.4 0 -0.7 -0.1 -0.8 -0.1 0.8 0.4 -0.3 0.5
  -0.8 -0.2 0 0.4 0.3 0.2 -0.7 -0.4 0.1 0.5 -0.7 0.2 0 -0.2 0.8 0.3
in X float32 [3, 2, 3, 3] 0.23 -0.02 -0.63 -0.41 -0.66 0.59 -0.74 -0.84 0.2 -0.88 0.09 0.74 -0.16
  0.67 -0.34 -0.27 -0.38 0.95 -0.81 0.16 0.92 0.7 0.45 0.41 -0.56 -0.52 -0.77 -0.45 -0.59 -0.2 0.27
  -0.3 -0.48 0.31 0.56 0.38 -0.09 0.81 -0.23 0.63 0.34 0.02 0.77 0.52 0.49 -0.05 0.85 -0.92 0.05
  0.13 -0.95 -0.7 -0.13 0.88
out X@GRAD float32 [3, 2, 3, 3] -0.23701252 0.5351189 0.059075076 -0.17779346 0 -0.2969038
  -0.17652951 -0.47082573 -0.00016807346 -0.00035844452 -0.4161767 0.00020619604 -0.4751588 0
  -0.5935038 -0.4740544 -0.35411528 0.117703766 0.35339132 -0.5344599 -0.2355557 0.11882251
  0.47438112 -0.53437215 0.11838248 0.11945461 0.413755 0.17657198 -0.23726737 -0.00032569087
  -0.41528732 -0.05887479 -0.47494122 -0.05917218 0.47378907 0.23783755 -0.1783551 0.29402518
  -0.4743658 -0.11829215 -3.9376548e-5 0.23703857 0.17639814 0.11879275 -0.41447487 -0.23782147
  0.057319604 0.29517955 -0.41556442 0.118846595 3.3626286e-5 -0.11729282 0.475171 0.17801273
)")
