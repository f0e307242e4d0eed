// Running sums, products and logarithms of sums along an axis, and positions of extremes.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/unary_map.h"
#include "kernels/onnx/operands.h"
#include "kernels/reduce/along_line.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Sum {
  template <typename T>
  static T Init() {
    return T(0);
  }
  template <typename T>
  static T Take(T a, T b) {
    return AddFn::Apply(a, b);
  }
};
struct Product {
  template <typename T>
  static T Init() {
    return T(1);
  }
  template <typename T>
  static T Take(T a, T b) {
    return MulFn::Apply(a, b);
  }
};
struct LogSum {
  template <typename T>
  static T Init() {
    return -std::numeric_limits<T>::infinity();
  }
  template <typename T>
  static T Take(T a, T b) {
    const T most = std::max(a, b), least = std::min(a, b);
    if (most == -std::numeric_limits<T>::infinity()) return most;
    return most + std::log1p(std::exp(least - most));
  }
};

template <typename F>
struct Scan {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& x = ctx.In("x");
      HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, IntIn(ctx, "axis", 0));
      HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), axis));
      const bool exclusive = ctx.Bool("exclusive"), reverse = ctx.Bool("reverse");
      const T* from = x.data<T>();
      T* to = ctx.Out("out").template mutable_data<T>();
      lines.ForEach(ctx, 4, [&](int64_t line) {
        const int64_t begin = lines.Begin(line);
        T sum = F::template Init<T>();
        for (const int64_t k : Watched(lines.n)) {
          const int64_t at = begin + (reverse ? lines.n - 1 - k : k) * lines.inner;
          const T next = F::Take(sum, from[at]);
          to[at] = exclusive ? sum : next;
          sum = next;
        }
      });
      return Status::Ok();
    }
  };
};

void DefineScan(OpDef& op, const char* doc) {
  op.Doc(doc).Input("x").Input("axis").Output("out").Attr("exclusive", false);
  op.Attr("reverse", false).InferShape(SameShape).KernelKey("x");
}

Status ArgShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  const DType dtype = DTypeFromProto(ctx.Int("output_type"));
  if (dtype != DType::kI32 && dtype != DType::kI64 && dtype != DType::kI16)
    return InvalidArgument("output_type is ", Name(dtype), ", expected int16, int32 or int64");
  if (!x.known_rank()) return ctx.Defer();
  Shape out = x;
  if (x.rank() < 1) return InvalidArgument("input is a scalar, expected at least one dimension");
  if (!Known(ctx, "dimension")) {
    out.erase(0);
    for (int i = 0; i < out.rank(); ++i) out[i] = -1;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t given, IntIn(ctx, "dimension", 0));
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(given, x.rank()));
    if (x[axis] == 0)
      return InvalidArgument("input ", x.ToString(), " is empty along dimension ", axis);
    out.erase(axis);
  }
  ctx.SetOut("output", out, dtype);
  return Status::Ok();
}

// NaN is passed over: it is no greater and no less than what came before.
template <bool kMax>
struct Arg {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& x = ctx.In("input");
      HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, IntIn(ctx, "dimension", 0));
      HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), axis));
      Tensor& out = ctx.Out("output");
      const T* from = x.data<T>();
      lines.ForEach(ctx, 2, [&](int64_t line) {
        int64_t best = 0;
        T most = kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
        AlongLine(lines, line, [&](int64_t k, int64_t at) {
          const T v = from[at];
          if (kMax ? v > most : v < most) {
            most = v;
            best = k;
          }
        });
        if (out.dtype() == DType::kI64)
          out.mutable_data<int64_t>()[line] = best;
        else if (out.dtype() == DType::kI32)
          out.mutable_data<int32_t>()[line] = static_cast<int32_t>(best);
        else
          out.mutable_data<int16_t>()[line] = static_cast<int16_t>(best);
      });
      return Status::Ok();
    }
  };
};

template <bool kMax>
void DefineArg(OpDef& op, const char* doc) {
  op.Doc(doc).Input("input").Input("dimension", kShapeValue).Output("output");
  op.Attr("output_type", 3).InferShape(ArgShape).KernelKey("input");
  op.Kernels<Arg<kMax>::template Kernel, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t,
             bool>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_cumsum) {
  DefineScan(op, "running sums along an axis");
  op.Kernels<Scan<Sum>::Kernel, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t,
             complex64, complex128>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_cumprod) {
  DefineScan(op, "running products along an axis");
  op.Kernels<Scan<Product>::Kernel, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t,
             complex64, complex128>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_cumulative_logsumexp) {
  DefineScan(op, "logarithms of running sums of exponentials along an axis");
  op.Kernels<Scan<LogSum>::Kernel, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_arg_max) { DefineArg<true>(op, "the position of the first of the greatest elements"); }
HEDDLE_OP(tf_arg_min) { DefineArg<false>(op, "the position of the first of the least elements"); }

HEDDLE_EXAMPLES(tf_cumsum, R"(
example recorded case 1
attr exclusive BOOLEAN true
attr reverse BOOLEAN false
in x float32 [1] -0.39670408
in axis int64 [] 0
out out float32 [1] 0

example recorded case 2
attr exclusive BOOLEAN true
attr reverse BOOLEAN true
in x int32 [3] 0 -4 5
in axis int32 [] -1
out out int32 [3] 1 5 0

example recorded case 3
attr exclusive BOOLEAN false
attr reverse BOOLEAN true
in x int32 [2, 7, 2] 6 5 3 -6 6 -4 -3 6 1 -2 -7 5 8 3 -8 8 -4 -5 2 8 8 -4 -4 7 2 2 5 5
in axis int64 [] -3
out out int32 [2, 7, 2] -2 13 -1 -11 8 4 5 2 -3 5 -5 7 13 8 -8 8 -4 -5 2 8 8 -4 -4 7 2 2 5 5
)")

HEDDLE_EXAMPLES(tf_cumprod, R"(
example recorded case 1
attr exclusive BOOLEAN false
attr reverse BOOLEAN true
in x float64 [2, 1, 3] -0.1185499471083773 0.8021285827868934 -0.21430409197446276
  -0.10847436566403135 -0.15403850775912897 -0.23250073486766543
in axis int32 [] 0
out out float64 [2, 1, 3] 0.012859630312085694 -0.123558689923438 0.04982585886921035
  -0.10847436566403135 -0.15403850775912897 -0.23250073486766543

example recorded case 2
attr exclusive BOOLEAN false
attr reverse BOOLEAN false
in x int32 [2, 3] -6 -9 6 -6 7 4
in axis int64 [] -2
out out int32 [2, 3] -6 -9 6 36 -63 24

example recorded case 3
attr reverse BOOLEAN true
in x int64 [4, 7] 5 -2 -5 3 0 -1 -2 9 4 6 1 2 2 9 8 3 -6 -7 -1 -8 -1 2 8 2 -7 7 4 1
in axis int32 [] 0
out out int64 [4, 7] 720 -192 360 147 0 64 18 144 96 -72 49 -14 -64 -9 16 24 -12 49 -7 -32 -1 2 8 2
  -7 7 4 1

example recorded case 4
attr exclusive BOOLEAN true
attr reverse BOOLEAN false
in x float64 [2, 7, 2] -0.24833744948626468 0.16420794767915226 -0.8908177123453767
  -0.6721274576512892 -0.47171831069495457 -0.005868449363341188 0.015269138546654126
  -0.8780333460735064 -0.4451692121071743 0.9363095236924266 0.3208779322288988 0.8842709299380958
  -0.7890754678482899 -0.34965313027380485 0.41298471875655274 -0.4065808827517172
  0.4549957341211599 0.8617317078159084 0.9323477095606387 -0.259682710449181 -0.6919448632693088
  0.6902967248387171 -0.3207956571309779 -0.21562990482967903 0.12925697979494277 0.3662420920854894
  -0.7662824417004601 0.8769344549726261
in axis int32 [] 0
out out float64 [2, 7, 2] 1*14 -0.24833744948626468 0.16420794767915226 -0.8908177123453767
  -0.6721274576512892 -0.47171831069495457 -0.005868449363341188 0.015269138546654126
  -0.8780333460735064 -0.4451692121071743 0.9363095236924266 0.3208779322288988 0.8842709299380958
  -0.7890754678482899 -0.34965313027380485
)")

HEDDLE_EXAMPLES(tf_cumulative_logsumexp, R"(
example recorded case 1
in x float32 [2, 1] 0.9781244 -1.3645597
in axis int32 [] -1
out out float32 [2, 1] 0.9781244 -1.3645597

example recorded case 2
attr exclusive BOOLEAN false
attr reverse BOOLEAN false
in x float64 [5, 4, 4] 0.19049345990393646 -1.8721285745441532 2.8286323166704674
  -1.3659001917658486 1.510070615083219 -0.07350361344483539 0.6850124254518224 1.0520991404795814
  1.5367488595097152 0.9304389420618813 -1.2244121468809501 -0.12592432573977091
  -0.35634242992290643 -0.07210509818141117 -0.9054079364366261 -2.066490843667338
  -0.10724362576308957 -1.8194983944309997 -1.5602322703119007 -2.157438243925128
  -2.0568663735419124 -0.7153000838888148 0.8413856864835603 -1.1055513907165273 -0.2886259393094661
  -0.18984611698683806 0.7532981542131769 4.23322297745195 -3.675256804190184 -1.267937292530421
  0.3659236905582266 1.0389972767555644 -1.0039449404913374 -0.5445844574017978 0.04116303771294955
  -0.47596250317030414 1.0321199294355423 -0.18915505997597365 2.1537924562604314 3.107754156120829
  0.3134706519040755 -0.9043715886536092 0.6867439028582696 -0.9206535938197224 0.7456865910604162
  0.5761706215833406 -0.16562846006263288 0.854707337104157 2.4772824823700463 2.39175262612884
  0.10159716657100662 1.333104875863891 -0.729538134904772 1.3673946396208043 0.9490737060668822
  2.793761262206227 -0.42548236834894426 -0.49832782383050855 -1.710826882959593 0.03354840947939819
  1.20044186210119 -0.9818581558380794 0.03886118102298221 0.16094105938066686 1.8584414015808868
  0.04409544469887658 -0.5038080386137356 0.601861803601343 -1.721129599268839 -2.3971872945241346
  2.9706686537346974 0.6751832110406377 -1.422448504756784 3.522352116467517 -1.0067253508160412
  1.8531825572089868 0.5998198470266718 0.28295795376184263 0.2996016527166136 -2.604495511196011
in axis int32 [] 1
out out float64 [5, 4, 4] 0.19049345990393646 -1.8721285745441532 2.8286323166704674
  -1.3659001917658486 1.7469184582580501 0.079669162930145 2.939484469338979 1.1374505304262346
  2.3404921148177538 1.2860735754840817 2.9549117146676447 1.386416474233975 2.405735311840078
  1.5149038593968398 2.975754258112511 1.4175793056008115 -0.10724362576308957 -1.8194983944309997
  -1.5602322703119007 -2.157438243925128 0.02582444510077364 -0.42901159428871627 0.9280873685727232
  -0.8059816890861546 0.574055724949015 0.39085136440767887 1.5376539991589109 4.239680978754635
  0.5882288534916498 0.5651150798138636 1.8075516432736805 4.279607543027702 -1.0039449404913374
  -0.5445844574017978 0.04116303771294955 -0.47596250317030414 1.1548165614516808
  0.34198625107763364 2.2679418759395613 3.1351477870165723 1.5132808132918332 0.594727590939681
  2.4550258189855083 3.1523210718222656 1.8945408724208033 1.278639331342804 2.5252561531839652
  3.248084215930071 2.4772824823700463 2.39175262612884 0.10159716657100662 1.333104875863891
  2.5169695546257778 2.698521548841615 1.3056950496251867 3.0024682159317595 2.568362295653154
  2.7385984655564974 1.3535049695168555 3.0525515985605765 2.7952077398559005 2.7625326487813227
  1.5913952307780705 3.106553659059991 1.8584414015808868 0.04409544469887658 -0.5038080386137356
  0.601861803601343 1.885947281972647 0.1275622390263747 3.001176559442716 1.3323415410038615
  1.9218690986846567 3.5553492750914404 3.019184911977195 2.319442159293223 2.158196113023722
  3.5925637945651814 3.0830065007189487 2.326686302799388
)")

HEDDLE_EXAMPLES(tf_arg_max, R"(
example recorded case 1
attr output_type INT 2
in input float64 [5] 2.205683340961048 1.3748085261997236 -2.1127555261580078 -2.128274698962695
  -0.6378031937637564
in dimension int64 [] -1
out output int32 [] 0

example recorded case 2
attr output_type INT 3
in input float32 [3, 5, 1, 3] 1.568622 -2.595782 -0.33625993 -0.3007633 -2.678132 -1.6496096
  -2.6556442 3.2134874 0.25360674 1.352328 -0.4114482 0.9943036 -0.64546174 -0.8947664 -1.8785669
  0.92947364 -0.25760838 -3.2506797 -1.8011087 0.28593573 1.0175544 -2.384708 1.0864321 0.2811834
  1.8756863 -2.499506 -0.76130724 -0.9986418 1.8084016 -0.9884099 -0.23555055 -2.182144 3.7930038
  -0.102290735 1.5395194 0.9544758 -0.7119667 0.40216213 0.3041755 4.734645 -3.957943 1.7370925
  -1.0585277 1.6298264 0.8613445
in dimension int32 [] 3
out output int64 [3, 5, 1] 0 0 1 0 0 0 2 1 0 1 2 1 1 0 1
)")

HEDDLE_EXAMPLES(tf_arg_min, R"(
example recorded case 1
in input float32 [5, 1] -0.8509772 1.8142468 -0.94655263 -1.619377 2.5778124
in dimension int64 [] 0
out output int64 [1] 3

example recorded case 2
attr output_type INT 3
in input uint8 [2, 1, 7, 5] 9 7 2 3 7 2 4 0 5 9 0 4 0 1 7 0 4 9 5 6 0 2 1 9 8 6 5 5 4 5 4 1 7 7 5 5
  4 1 3 3 0 1 2 9 8 9 8 3 8 7 7 8 8 6 6 6 7 5 6 7 4 2 2 0 9 4 0 4 2 3
in dimension int32 [] -4
out output int64 [1, 7, 5] 1 1 1 0 1 1 1 0 0 1 0*7 1 0*5 1*6 0 0 1*4
)")
