// Operators that compute each element by itself, with NumPy's broadcasting.
#include <algorithm>

#include "core/error.h"
#include "core/op_registry.h"
#include "formats/tensorflow/direct/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// Names of heddle's operators of the same meaning, as objects since they are template arguments.
constexpr char kAbs[] = "abs";
constexpr char kAcos[] = "acos";
constexpr char kAcosh[] = "acosh";
constexpr char kAngle[] = "angle";
constexpr char kAsin[] = "asin";
constexpr char kAsinh[] = "asinh";
constexpr char kAtan[] = "atan";
constexpr char kAtanh[] = "atanh";
constexpr char kBitwiseAnd[] = "bitwise_and";
constexpr char kBitwiseNot[] = "bitwise_not";
constexpr char kBitwiseOr[] = "bitwise_or";
constexpr char kBitwiseXor[] = "bitwise_xor";
constexpr char kCeil[] = "ceil";
constexpr char kConj[] = "conj";
constexpr char kCos[] = "cos";
constexpr char kCosh[] = "cosh";
constexpr char kDigamma[] = "digamma";
constexpr char kElementwiseAdd[] = "elementwise_add";
constexpr char kElementwiseMul[] = "elementwise_mul";
constexpr char kElementwiseSub[] = "elementwise_sub";
constexpr char kElu[] = "elu";
constexpr char kErf[] = "erf";
constexpr char kErfinv[] = "erfinv";
constexpr char kExp[] = "exp";
constexpr char kExpm1[] = "expm1";
constexpr char kFloor[] = "floor";
constexpr char kGreaterEqual[] = "greater_equal";
constexpr char kGreaterThan[] = "greater_than";
constexpr char kImag[] = "imag";
constexpr char kIsfinite[] = "isfinite_v2";
constexpr char kIsinf[] = "isinf_v2";
constexpr char kIsnan[] = "isnan_v2";
constexpr char kLessEqual[] = "less_equal";
constexpr char kLessThan[] = "less_than";
constexpr char kLgamma[] = "lgamma";
constexpr char kLog[] = "log";
constexpr char kLog1p[] = "log1p";
constexpr char kLogicalAnd[] = "logical_and";
constexpr char kLogicalNot[] = "logical_not";
constexpr char kLogicalOr[] = "logical_or";
constexpr char kReal[] = "real";
constexpr char kReciprocal[] = "reciprocal";
constexpr char kSigmoid[] = "sigmoid";
constexpr char kSin[] = "sin";
constexpr char kSinh[] = "sinh";
constexpr char kSoftsign[] = "softsign";
constexpr char kSqrt[] = "sqrt";
constexpr char kTan[] = "tan";
constexpr char kTanh[] = "tanh";

bool IsComplexVar(NodeLowering& n, int v) { return IsComplex(n.dtype(v)); }

template <const char* kType>
bool LowerUnary(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(n, 0, n.Unary(kType, x), x);
  return true;
}
// Operators whose result has another dtype than the operand.
template <const char* kType>
bool LowerTest(NodeLowering& n) {
  n.Result(0, n.Unary(kType, n.In(0)));
  return true;
}

template <const char* kType>
bool LowerBinary(NodeLowering& n) {
  const int x = n.In(0), y = n.In(1);
  ResultLike(n, 0, n.Binary(kType, x, y), x);
  return true;
}
template <const char* kType>
bool LowerCompare(NodeLowering& n) {
  n.Result(0, n.Binary(kType, n.In(0), n.In(1)));
  return true;
}

// Complex numbers are equal if both parts are.
bool LowerEqual(NodeLowering& n) {
  const bool equal = n.op() == "Equal";
  const int x = n.In(0), y = n.In(1);
  const char* type = equal ? "equal" : "not_equal";
  if (n.type(x) == kString || n.type(y) == kString) {
    const int made = n.Make("string_equal", {{"x", {x}}, {"y", {y}}}, {{"differ", !equal}}, "z");
    n.draft_var(made).dtype = DType::kBool;
    n.SetType(made, kBool);
    n.SetShape(made, n.rank(x) >= n.rank(y) && n.rank(y) == 0 ? n.shape(x) : Shape::Unknown());
    n.Result(0, made);
    return true;
  }
  if (!IsComplexVar(n, x)) {
    Attrs attrs;
    if (IsFloat(n.dtype(x))) attrs.emplace_back("exact", true);  // no tolerance
    n.Result(0, n.Make(type, {{"X", {x}}, {"Y", {y}}}, std::move(attrs)));
    return true;
  }
  const int re = n.Binary(type, n.Unary("real", x), n.Unary("real", y));
  const int im = n.Binary(type, n.Unary("imag", x), n.Unary("imag", y));
  n.Result(0, n.Binary(equal ? "logical_and" : "logical_or", re, im));
  return true;
}

bool LowerNeg(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(n, 0, n.Times(x, -1), x);
  return true;
}

bool LowerSquare(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(n, 0, IsComplexVar(n, x) ? n.Binary("elementwise_mul", x, x) : n.Unary("square", x),
             x);
  return true;
}

bool LowerRsqrt(NodeLowering& n) {
  const int x = n.In(0);
  n.Result(0, IsComplexVar(n, x) ? n.Unary("reciprocal", n.Unary("sqrt", x)) : n.Unary("rsqrt", x));
  return true;
}

// The sign of a complex number is the number divided by its absolute value.
bool LowerSign(NodeLowering& n) {
  const int x = n.In(0);
  if (!IsComplexVar(n, x)) {
    ResultLike(n, 0, n.Unary("sign", x), x);
    return true;
  }
  const int size = n.Cast(n.Unary("abs", x), n.dtype(x));
  n.Result(0, n.Binary("div_no_nan", x, size));
  return true;
}

// Rounds halves to even. For integers the result is 0, as in TensorFlow.
bool LowerRound(NodeLowering& n) {
  const int x = n.In(0);
  if (IsFloat(n.dtype(x)))
    n.Result(0, n.Unary("round", x, {{"half_to_even", true}}));
  else
    ResultLike(n, 0, n.Unary("fill_any_like", x, {{"value", 0.0}, {"dtype", int64_t{-1}}}), x);
  return true;
}

bool LowerErfc(NodeLowering& n) {
  n.Result(0, n.Unary("erfc", n.In(0)));
  return true;
}

bool LowerSquaredDifference(NodeLowering& n) {
  const int x = n.In(0), d = n.Binary("elementwise_sub", x, n.In(1));
  if (IsComplexVar(n, x))
    n.Result(0, n.Binary("elementwise_mul", n.Unary("conj", d), d));
  else
    ResultLike(n, 0, IsFloat(n.dtype(x)) ? n.Unary("square", d) : n.Binary("elementwise_mul", d, d),
               x);
  return true;
}

// Division of integers truncates; a divisor of 0 is an error.
bool LowerDivide(NodeLowering& n) {
  const int x = n.In(0), y = n.In(1);
  const int made = n.Binary("elementwise_div", x, y);
  if (n.op() == "TruncateDiv" && IsFloat(n.dtype(x)))
    n.Result(0, n.Unary("trunc", made));
  else
    ResultLike(n, 0, made, x);
  return true;
}

bool LowerPow(NodeLowering& n) {
  const int x = n.In(0), y = n.In(1);
  if (!IsFloat(n.dtype(x))) {
    ResultLike(n, 0, n.Make("elementwise_pow", {{"X", {x}}, {"Y", {y}}}, {{"wrap", true}}), x);
    return true;
  }
  const auto exponent = n.ConstantFloats(y);
  if (exponent && exponent->size() == 1 && n.rank(y) == 0 && (*exponent)[0] == 2)
    n.Result(0, n.Unary("square", x));
  else
    n.Result(0, n.Binary("elementwise_pow", x, y));
  return true;
}

bool LowerAtan2(NodeLowering& n) {
  const int y = n.In(0), x = n.In(1);
  n.Result(0, n.Make("atan2", {{"X1", {y}}, {"X2", {x}}}));
  return true;
}

// Adds from left to right; all inputs have one dtype and shape.
bool LowerAddN(NodeLowering& n) {
  const std::vector<int> inputs = n.AllInputs();
  if (inputs.empty()) return false;
  for (size_t i = 1; i < inputs.size(); ++i)
    n.ExpectAlike(inputs[0], "input 0", inputs[i], StrCat("input ", i));
  int made = inputs[0];
  const bool known = std::all_of(inputs.begin(), inputs.end(),
                                 [&](int v) { return n.rank(v) >= 0 && n.shape(v).is_static(); });
  if (inputs.size() == 1) {
    made = n.Unary("assign", made);
  } else if (known) {
    for (size_t i = 1; i < inputs.size(); ++i) made = n.Binary("elementwise_add", made, inputs[i]);
  } else {  // which does not broadcast
    made = n.Make("sum", {{"X", inputs}});
  }
  ResultLike(n, 0, made, inputs[0]);
  return true;
}

int Extreme(NodeLowering& n, const char* type, int x, int y) {
  return n.Make(type, {{"X", {x}}, {"Y", {y}}}, {{"keep_nan", true}});
}
bool LowerExtreme(NodeLowering& n) {
  const char* type = n.op() == "Maximum" ? "elementwise_max" : "elementwise_min";
  const int x = n.In(0);
  ResultLike(n, 0, Extreme(n, type, x, n.In(1)), x);
  return true;
}

// If the limits exclude each other, the lower one wins. Constant limits that do not are applied in
// the order in which activations are written.
bool LowerClipByValue(NodeLowering& n) {
  const auto low = n.ConstantFloats(n.In(1)), high = n.ConstantFloats(n.In(2));
  const bool apart =
      low && high && low->size() == 1 && high->size() == 1 && (*low)[0] <= (*high)[0];
  const auto limit = [&](int x, const char* type, size_t by) {
    return Extreme(n, type, x, n.In(by));
  };
  n.Result(0, apart ? limit(limit(n.In(0), "elementwise_max", 1), "elementwise_min", 2)
                    : limit(limit(n.In(0), "elementwise_min", 2), "elementwise_max", 1));
  return true;
}

bool LowerRelu(NodeLowering& n) {
  const int x = n.In(0);
  ResultLike(n, 0,
             n.op() == "Relu6" ? n.Unary("relu6", x) : n.Unary("relu", x, {{"keep_nan", true}}), x);
  return true;
}

bool LowerElu(NodeLowering& n) {
  n.Result(0, n.Unary("elu", n.In(0), {{"alpha", 1.0}}));
  return true;
}
bool LowerSelu(NodeLowering& n) {
  n.Result(0, n.Unary("selu", n.In(0),
                      {{"alpha", 1.6732632423543772848170429916717},
                       {"scale", 1.0507009873554804934193349852946}}));
  return true;
}
bool LowerLeakyRelu(NodeLowering& n) {
  n.Result(0, n.Unary("leaky_relu", n.In(0), {{"alpha", n.Float("alpha", 0.2)}}));
  return true;
}
// Above the threshold 1 + exp(-x) is 1 even in double precision, so the result is x.
bool LowerSoftplus(NodeLowering& n) {
  n.Result(0, n.Unary("softplus", n.In(0), {{"beta", 1.0}, {"threshold", 40.0}}));
  return true;
}

bool LowerComplex(NodeLowering& n) {
  n.Result(0, n.Binary("complex", n.In(0), n.In(1)));
  return true;
}

bool LowerLike(NodeLowering& n, double value) {
  const int x = n.In(0);
  ResultLike(n, 0, n.Unary("fill_any_like", x, {{"value", value}, {"dtype", int64_t{-1}}}), x);
  return true;
}
bool LowerZerosLike(NodeLowering& n) { return LowerLike(n, 0); }
bool LowerOnesLike(NodeLowering& n) { return LowerLike(n, 1); }

bool LowerApproximateEqual(NodeLowering& n) {
  const int x = n.In(0), d = n.Unary("abs", n.Binary("elementwise_sub", x, n.In(1)));
  const int most = n.FloatConstant(n.Float("tolerance", 1e-5), n.dtype(d));
  n.Result(0, n.Binary("less_than", d, most));
  return true;
}

bool LowerBessel(NodeLowering& n) {
  n.Result(0, n.Make(n.op() == "BesselI0e" ? "i0e" : "i1e", {{"x", {n.In(0)}}}, {}, "out"));
  return true;
}

// Φ⁻¹(p) = √2 erf⁻¹(2 p - 1)
bool LowerNdtri(NodeLowering& n) {
  const int p = n.Unary("scale", n.In(0), {{"scale", 2.0}, {"bias", -1.0}});
  n.Result(0, n.Unary("scale", n.Unary("erfinv", p),
                      {{"scale", 1.41421356237309504880}, {"bias", -0.0}}));
  return true;
}

bool LowerNextAfter(NodeLowering& n) {
  n.Result(0, n.Make("nextafter", {{"x", {n.In(0)}}, {"y", {n.In(1)}}}, {}, "out"));
  return true;
}

constexpr HandlerEntry kElementwiseEntries[] = {
    {"Abs", &LowerUnary<kAbs>},
    {"AccumulateNV2", &LowerAddN},
    {"Acos", &LowerUnary<kAcos>},
    {"Acosh", &LowerUnary<kAcosh>},
    {"Add", &LowerBinary<kElementwiseAdd>},
    {"AddN", &LowerAddN},
    {"AddV2", &LowerBinary<kElementwiseAdd>},
    {"Angle", &LowerTest<kAngle>},
    {"ApproximateEqual", &LowerApproximateEqual},
    {"Asin", &LowerUnary<kAsin>},
    {"Asinh", &LowerUnary<kAsinh>},
    {"Atan", &LowerUnary<kAtan>},
    {"Atan2", &LowerAtan2},
    {"Atanh", &LowerUnary<kAtanh>},
    {"BesselI0e", &LowerBessel},
    {"BesselI1e", &LowerBessel},
    {"BitwiseAnd", &LowerBinary<kBitwiseAnd>},
    {"BitwiseOr", &LowerBinary<kBitwiseOr>},
    {"BitwiseXor", &LowerBinary<kBitwiseXor>},
    {"Ceil", &LowerUnary<kCeil>},
    {"ClipByValue", &LowerClipByValue},
    {"Complex", &LowerComplex},
    {"ComplexAbs", &LowerTest<kAbs>},
    {"Conj", &LowerUnary<kConj>},
    {"Cos", &LowerUnary<kCos>},
    {"Cosh", &LowerUnary<kCosh>},
    {"Digamma", &LowerUnary<kDigamma>},
    {"Div", &LowerDivide},
    {"Elu", &LowerElu},
    {"Equal", &LowerEqual},
    {"Erf", &LowerUnary<kErf>},
    {"Erfc", &LowerErfc},
    {"Erfinv", &LowerUnary<kErfinv>},
    {"Exp", &LowerUnary<kExp>},
    {"Expm1", &LowerUnary<kExpm1>},
    {"Floor", &LowerUnary<kFloor>},
    {"Greater", &LowerCompare<kGreaterThan>},
    {"GreaterEqual", &LowerCompare<kGreaterEqual>},
    {"Imag", &LowerTest<kImag>},
    {"Inv", &LowerUnary<kReciprocal>},
    {"Invert", &LowerUnary<kBitwiseNot>},
    {"IsFinite", &LowerTest<kIsfinite>},
    {"IsInf", &LowerTest<kIsinf>},
    {"IsNan", &LowerTest<kIsnan>},
    {"LeakyRelu", &LowerLeakyRelu},
    {"Less", &LowerCompare<kLessThan>},
    {"LessEqual", &LowerCompare<kLessEqual>},
    {"Lgamma", &LowerUnary<kLgamma>},
    {"Log", &LowerUnary<kLog>},
    {"Log1p", &LowerUnary<kLog1p>},
    {"LogicalAnd", &LowerCompare<kLogicalAnd>},
    {"LogicalNot", &LowerTest<kLogicalNot>},
    {"LogicalOr", &LowerCompare<kLogicalOr>},
    {"Maximum", &LowerExtreme},
    {"Minimum", &LowerExtreme},
    {"Mul", &LowerBinary<kElementwiseMul>},
    {"Ndtri", &LowerNdtri},
    {"Neg", &LowerNeg},
    {"NextAfter", &LowerNextAfter},
    {"NotEqual", &LowerEqual},
    {"OnesLike", &LowerOnesLike},
    {"Pow", &LowerPow},
    {"Real", &LowerTest<kReal>},
    {"RealDiv", &LowerDivide},
    {"Reciprocal", &LowerUnary<kReciprocal>},
    {"Relu", &LowerRelu},
    {"Relu6", &LowerRelu},
    {"Rint", &LowerRound},
    {"Round", &LowerRound},
    {"Rsqrt", &LowerRsqrt},
    {"Selu", &LowerSelu},
    {"Sigmoid", &LowerUnary<kSigmoid>},
    {"Sign", &LowerSign},
    {"Sin", &LowerUnary<kSin>},
    {"Sinh", &LowerUnary<kSinh>},
    {"Softplus", &LowerSoftplus},
    {"Softsign", &LowerUnary<kSoftsign>},
    {"Sqrt", &LowerUnary<kSqrt>},
    {"Square", &LowerSquare},
    {"SquaredDifference", &LowerSquaredDifference},
    {"Sub", &LowerBinary<kElementwiseSub>},
    {"Tan", &LowerUnary<kTan>},
    {"Tanh", &LowerUnary<kTanh>},
    {"TruncateDiv", &LowerDivide},
    {"ZerosLike", &LowerZerosLike},
};

}  // namespace

std::span<const HandlerEntry> ElementwiseHandlers() { return kElementwiseEntries; }

}  // namespace heddle::tensorflow
