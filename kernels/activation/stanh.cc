#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Stanh : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit Stanh(const KernelContext& ctx) : a(ctx.Float("scale_a")), b(ctx.Float("scale_b")) {}
  static void Declare(OpDef& op) {
    op.Attr("scale_a", double{0.67f}).Attr("scale_b", double{1.7159f});
  }
  template <typename T>
  T Forward(T x) const {
    return T(b) * fast::Tanh(T(a) * x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T t = fast::Tanh(T(a) * x);
    return dy * T(a) * T(b) * fast::Conj(T(1) - t * t);
  }
  double a, b;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(stanh) { DefineUnary<Stanh, complex64, complex128>(op, "scale_b * tanh(scale_a * x)"); }
HEDDLE_OP(stanh_grad) { DefineUnaryGrad<Stanh, complex64, complex128>(op); }

HEDDLE_TILE(stanh) { return UnaryTile<Stanh>(); }
HEDDLE_TILE(stanh_grad) { return UnaryGradTile<Stanh>(); }

HEDDLE_EXAMPLES(stanh, R"(
example float32 2x3, scale_b 1.75811
attr scale_b FLOAT 1.7581146
in X float32 [2, 3] 1.13 1.47 2.17 0.78 1.82 2.51
out Out float32 [2, 3] 1.1240782 1.3276917 1.5760818 0.84337497 1.475897 1.6404648

example float64 4x3, scale_a 2
attr scale_a FLOAT 2.0
in X float64 [4, 3] 0.585 0.447 0.516 0.31 0.791 0.86 0.241 0.928 0.722 0.379 0.172 0.654
out Out float64 [4, 3] 1.4143685711813117 1.2240608895788472 1.3293235261858551 0.9456805534737621
  1.5767638993625361 1.6092791238269657 0.7684553456243701 1.6340649348156806 1.5348726240668975
  1.0979999297201222 0.5680379323246035 1.4821402888582924

example complex128 4x3
in X complex128 [4, 3] 0.9-0.2j -1.5-1j -0.5+1.3j 0.4-0.3j -2-1.4j -0.3-0.9j -0.6+1.7j -1.1+1.9j
  -0.2-0.5j 1+1.3j 1.9-0.8j -1.1-0.3j
out Out complex128 [4, 3] 0.937043260241359-0.1632070190661767j
  -1.561351824006175-0.4147588041802376j -1.1647020891929274+1.5911982200538832j
  0.46647859769577804-0.3247375003025105j -1.7725380927215957-0.23292363343949607j
  -0.49248869594915484-1.114226545566118j -2.2177357210798423+1.8869076443173791j
  -2.4148665059686083+0.6548333383346323j -0.2557136571391053-0.5854833151897806j
  1.6319645894022492+0.9041419346358418j 1.5773541227960886-0.21852235383929935j
  -1.1030997632224018-0.2086196209616621j

example complex64 4x3
in X complex64 [4, 3] 1-1.7j 1.4+0.2j -0.4-0.7j -0.6+0.8j 0.6+0.1j -1.3+1.1j -0.2+1.4j -1.5+0.1j
  -0.5-0.1j 0.2+1.6j -0.3-1.7j -1.7-1.1j
out Out complex64 [4, 3] 2.194451-0.9379188j 1.2704377+0.10555655j -0.55472296-0.79588413j
  -0.84265184+0.8282183j 0.6574061+0.09830181j -1.5624061+0.56205654j -0.63262725+2.224731j
  -1.3128616+0.047861807j -0.5564805-0.10307656j 0.9424563+2.9194837j -1.6393924-3.0181391j
  -1.647921-0.33977517j
)")

HEDDLE_EXAMPLES(stanh_grad, R"(
example float64 6x1, scale_b 1.67557
attr scale_b FLOAT 1.67557
in Out@GRAD float64 [6, 1] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float64 [6, 1] -0.8 1.28 -0.28 0.76 1.8 0.24
out X@GRAD float64 [6, 1] -0.5118830632143857 0.34820572648419235 0.7588217950594848
  -0.2626073597809282 -0.16950648343361957 0.6564585475133102

example complex64 4x3
in Out@GRAD complex64 [4, 3] 0.083333336+0j*12
in X complex64 [4, 3] -1.1-0.6j 0.8-0.6j -0.7-1.6j -1.6+0.4j 0.9+1.6j 1.7+1.4j 1-0.8j 1.4+0.3j
  1.2-1.6j 0.5-0.6j -1.5+0.6j 1.8+0j
out X@GRAD complex64 [4, 3] 0.055540606+0.03189543j 0.07553835-0.032897558j 0.04446892+0.20099074j
  0.033630066-0.015316509j 0.0015387097+0.14998902j -0.004303657+0.04116582j
  0.059680056-0.047170952j 0.04300345+0.0131625645j -0.018534012-0.091415524j
  0.09576249-0.026807103j 0.03451608-0.02505485j 0.02893107+0j

example float64 2, scale_b 1.82105
attr scale_b FLOAT 1.8210495
in Out@GRAD float64 [2] -0.7 -0.7
in X float64 [2] 1.78 1.24
out X@GRAD float64 [2] -0.26373876164114035 -0.45809692911177824

example float32 6x1, scale_b 1.67557
attr scale_b FLOAT 1.67557
in Out@GRAD float32 [6, 1] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float32 [6, 1] -0.8 1.28 -0.28 0.76 1.8 0.24
out X@GRAD float32 [6, 1] -0.51188314 0.3482057 0.7588218 -0.2626074 -0.1695065 0.6564586
)")
