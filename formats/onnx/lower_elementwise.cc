// Operators that compute each element by itself, with NumPy's broadcasting.
#include <limits>

#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// Names of heddle's operators of the same meaning, as objects since they are template arguments.
constexpr char kAbs[] = "abs";
constexpr char kAcos[] = "acos";
constexpr char kAcosh[] = "acosh";
constexpr char kAsin[] = "asin";
constexpr char kAsinh[] = "asinh";
constexpr char kAtan[] = "atan";
constexpr char kAtanh[] = "atanh";
constexpr char kBitwiseAnd[] = "bitwise_and";
constexpr char kBitwiseOr[] = "bitwise_or";
constexpr char kBitwiseXor[] = "bitwise_xor";
constexpr char kCeil[] = "ceil";
constexpr char kCos[] = "cos";
constexpr char kCosh[] = "cosh";
constexpr char kElementwiseAdd[] = "elementwise_add";
constexpr char kElementwiseDiv[] = "elementwise_div";
constexpr char kElementwiseMax[] = "elementwise_max";
constexpr char kElementwiseMin[] = "elementwise_min";
constexpr char kElementwiseMul[] = "elementwise_mul";
constexpr char kElementwisePow[] = "elementwise_pow";
constexpr char kElementwiseSub[] = "elementwise_sub";
constexpr char kErf[] = "erf";
constexpr char kExp[] = "exp";
constexpr char kFloor[] = "floor";
constexpr char kGreaterEqual[] = "greater_equal";
constexpr char kGreaterThan[] = "greater_than";
constexpr char kIsnanV2[] = "isnan_v2";
constexpr char kLessEqual[] = "less_equal";
constexpr char kLessThan[] = "less_than";
constexpr char kLog[] = "log";
constexpr char kLogicalAnd[] = "logical_and";
constexpr char kLogicalNot[] = "logical_not";
constexpr char kLogicalOr[] = "logical_or";
constexpr char kLogicalXor[] = "logical_xor";
constexpr char kMish[] = "mish";
constexpr char kReciprocal[] = "reciprocal";
constexpr char kSigmoid[] = "sigmoid";
constexpr char kSign[] = "sign";
constexpr char kSin[] = "sin";
constexpr char kSinh[] = "sinh";
constexpr char kSoftplus[] = "softplus";
constexpr char kSoftsign[] = "softsign";
constexpr char kSqrt[] = "sqrt";
constexpr char kTan[] = "tan";
constexpr char kTanh[] = "tanh";

bool IsFloatVar(NodeLowering& n, int v) { return IsFloat(n.dtype(v)); }

// Before opset 7, B's axes are those of A from `axis` on, where B broadcasts at all.
Attrs OldBroadcast(const NodeLowering& n) {
  if (n.opset() >= 7) return {};
  return {{"axis", n.Int("axis", -1)}};
}

template <const char* kType>
bool LowerUnary(NodeLowering& n) {
  n.Result(0, n.Unary(kType, n.Required(0)));
  return true;
}

// One of Paddle's binary operators.
template <const char* kType>
bool LowerBinary(NodeLowering& n) {
  const int x = n.Required(0), y = n.Required(1);
  if (n.IsString(x) || n.IsString(y)) return false;
  if (n.IsPlane(x) && n.IsPlane(y)) {
    n.Result(0, n.AsLine(n.Binary(kType, n.AsPlane(x), n.AsPlane(y))));
    return true;
  }
  const int made = n.Make(kType, {{"X", {x}}, {"Y", {y}}}, OldBroadcast(n));
  n.Result(0, made);
  return true;
}

// Floats are compared exactly.
bool LowerEqual(NodeLowering& n) {
  const int x = n.Required(0), y = n.Required(1);
  if (n.IsString(x) || n.IsString(y)) return false;
  Attrs attrs = OldBroadcast(n);
  if (IsFloatVar(n, x)) attrs.emplace_back("exact", true);
  const int made = n.Make("equal", {{"X", {x}}, {"Y", {y}}}, std::move(attrs));
  n.SetType(made, kBool);
  n.Result(0, made);
  return true;
}

template <const char* kType>
bool LowerCompare(NodeLowering& n) {
  const int x = n.Required(0), y = n.Required(1);
  if (n.IsString(x) || n.IsString(y)) return false;
  const int made = n.Make(kType, {{"X", {x}}, {"Y", {y}}}, OldBroadcast(n));
  n.SetType(made, kBool);
  n.Result(0, made);
  return true;
}

// A variadic operator as binary ones, from left to right.
template <const char* kType>
bool LowerChain(NodeLowering& n) {
  int made = n.Required(0);
  for (size_t i = 1; i < n.inputs(); ++i) made = n.Binary(kType, made, n.Required(i));
  n.Result(0, made);
  return true;
}

bool LowerMean(NodeLowering& n) {
  int made = n.Required(0);
  for (size_t i = 1; i < n.inputs(); ++i) made = n.Binary("elementwise_add", made, n.Required(i));
  if (n.inputs() > 1) made = n.Times(made, 1.0 / static_cast<double>(n.inputs()));
  n.Result(0, made);
  return true;
}

bool LowerPow(NodeLowering& n) {
  const int x = n.Required(0), y = n.Required(1);
  if (n.opset() < 7) {
    n.Result(0, n.Make("elementwise_pow", {{"X", {x}}, {"Y", {y}}}, OldBroadcast(n)));
    return true;
  }
  if (!IsFloatVar(n, x)) {  // integers are powers in double, but for squares and cubes
    n.Result(0, n.Make("elementwise_pow", {{"X", {x}}, {"Y", {y}}}, {{"wrap_squares", true}}));
    return true;
  }
  const auto exponent = n.ConstantFloats(y);
  if (exponent && exponent->size() == 1 && n.rank(y) <= n.rank(x) && n.rank(y) <= 1) {
    const double e = (*exponent)[0];
    const int made = e == 2   ? n.Unary("square", x)
                     : e == 1 ? n.Unary("assign", x)
                              : n.Unary("pow", x, {{"factor", e}});
    n.Result(0, made);
    return true;
  }
  n.Result(0, n.Binary("elementwise_pow", x, y));
  return true;
}

bool LowerMod(NodeLowering& n) {
  const int x = n.Required(0), y = n.Required(1);
  n.Result(0, n.Make("elementwise_mod", {{"X", {x}}, {"Y", {y}}},
                     {{"truncate", n.Int("fmod", 0) != 0}}));
  return true;
}

bool LowerRelu(NodeLowering& n) {
  n.Result(0, n.Unary("relu", n.Required(0), {{"keep_nan", true}}));
  return true;
}

bool LowerAlpha(NodeLowering& n, const char* type, std::string_view name, double otherwise) {
  n.Result(0, n.Unary(type, n.Required(0), {{name, n.Float("alpha", otherwise)}}));
  return true;
}
bool LowerLeakyRelu(NodeLowering& n) { return LowerAlpha(n, "leaky_relu", "alpha", 0.01); }
bool LowerElu(NodeLowering& n) { return LowerAlpha(n, "elu", "alpha", 1); }
bool LowerCelu(NodeLowering& n) { return LowerAlpha(n, "celu", "alpha", 1); }
// Elements that are not above the threshold become 0, NaN among them.
bool LowerThresholded(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.dtype(x) == DType::kUnknown) return LowerAlpha(n, "thresholded_relu", "threshold", 1);
  const int above = n.Binary("greater_than", x, n.FloatConstant(n.Float("alpha", 1), n.dtype(x)));
  const int zero = n.Unary("fill_any_like", x, {{"value", 0.0}, {"dtype", int64_t{-1}}});
  n.Result(0, n.Make("where", {{"Condition", {above}}, {"X", {x}}, {"Y", {zero}}}));
  return true;
}
bool LowerSwish(NodeLowering& n) { return LowerAlpha(n, "swish", "beta", 1); }

bool LowerSelu(NodeLowering& n) {
  // The first version's defaults have fewer digits.
  const double alpha = n.opset() < 6 ? 1.6732 : 1.67326319217681884765625;
  const double gamma = n.opset() < 6 ? 1.0507 : 1.05070102214813232421875;
  n.Result(0, n.Unary("selu", n.Required(0),
                      {{"alpha", n.Float("alpha", alpha)}, {"scale", n.Float("gamma", gamma)}}));
  return true;
}

bool LowerHardSigmoid(NodeLowering& n) {
  n.Result(0, n.Unary("hard_sigmoid", n.Required(0),
                      {{"slope", n.Float("alpha", 0.2)}, {"offset", n.Float("beta", 0.5)}}));
  return true;
}

bool LowerGelu(NodeLowering& n) {
  const bool tanh = n.Str("approximate", "none") == "tanh";
  n.Result(0, n.Unary("gelu", n.Required(0), {{"approximate", tanh}}));
  return true;
}

// Behind a bias of the last dimension, which FastGelu may lack.
bool LowerBiasGelu(NodeLowering& n) {
  int x = n.Required(0);
  const bool tanh = n.node().op_type == "FastGelu";
  if (!tanh || n.Has(1)) x = n.Binary("elementwise_add", x, n.Required(1));
  n.Result(0, n.Unary("gelu", x, {{"approximate", tanh}}));
  return true;
}

bool LowerQuickGelu(NodeLowering& n) {
  n.Result(0, n.Unary("swish", n.Required(0), {{"beta", n.Float("alpha", 1.702)}}));
  return true;
}

bool LowerShrink(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.dtype(x) == DType::kUnknown) return false;
  const double bias = n.Float("bias", 0), lambd = n.Float("lambd", 0.5);
  const auto constant = [&](double v) { return n.FloatConstant(v, n.dtype(x)); };
  const int up = n.Binary("elementwise_add", x, constant(bias));
  const int down = n.Binary("elementwise_sub", x, constant(bias));
  const auto where = [&](int condition, int yes, int no) {
    return n.Make("where", {{"Condition", {condition}}, {"X", {yes}}, {"Y", {no}}});
  };
  const int zero = n.Unary("fill_any_like", x, {{"value", 0.0}, {"dtype", int64_t{-1}}});
  const int low = n.Binary("less_than", x, constant(-lambd));
  const int high = n.Binary("greater_than", x, constant(lambd));
  n.Result(0, where(low, up, where(high, down, zero)));
  return true;
}

// The greatest finite number of a floating-point dtype.
double GreatestOf(DType dtype) {
  if (dtype == DType::kF64) return std::numeric_limits<double>::max();
  return dtype == DType::kF16 ? 65504 : double{std::numeric_limits<float>::max()};
}

bool LowerClip(NodeLowering& n) {
  const int x = n.Required(0);
  // A missing limit is the greatest finite number: infinities are clipped to it.
  const double most = GreatestOf(n.dtype(x));
  constexpr std::string_view kNames[] = {"min", "max"}, kSlots[] = {"Min", "Max"};
  double bounds[2] = {-most, most};
  Ins ins{{"X", {x}}};
  bool known = IsFloatVar(n, x);
  for (size_t i = 0; i < 2; ++i) {
    int limit = n.Has(i + 1) ? n.In(i + 1) : kNoDraft;
    if (n.Find(kNames[i]) != nullptr) {  // before opset 11
      bounds[i] = n.Float(kNames[i], 0);
      if (!known)
        limit =
            n.FloatConstant(bounds[i], n.dtype(x) == DType::kUnknown ? DType::kF32 : n.dtype(x));
    } else if (limit != kNoDraft) {
      const auto value = n.ConstantFloats(limit);
      if (value && value->size() == 1)
        bounds[i] = (*value)[0];
      else
        known = false;
    }
    if (limit != kNoDraft) ins.emplace_back(kSlots[i], std::vector<int>{limit});
  }
  if (!known) {
    n.Result(0, n.Make("clip", std::move(ins), {{"finite", true}}));
    return true;
  }
  // With the lower limit above the upper one, all elements become the upper one.
  if (bounds[0] > bounds[1]) bounds[0] = bounds[1];
  n.Result(0, n.Unary("clip", x, {{"min", bounds[0]}, {"max", bounds[1]}}));
  return true;
}

bool LowerPRelu(NodeLowering& n) {
  const int x = n.Required(0), slope = n.Required(1);
  const Shape& s = n.shape(slope);
  // A slope per channel: [C, 1, 1], or [C] in old files.
  const bool old = n.opset() < 7;
  const bool known = s.is_static() && IsFloat(n.dtype(x));
  const bool all = known && s.numel() == 1 && n.rank(x) > 0 && s.rank() <= n.rank(x);
  const bool per_channel = known && n.rank(x) == 4 &&
                           ((s.rank() == 3 && s[1] == 1 && s[2] == 1) || (s.rank() == 1 && old));
  if (all || per_channel) {
    const int alpha = n.Reshape(slope, {all ? 1 : s[0]});
    n.Result(0, n.Make("prelu", {{"X", {x}}, {"Alpha", {alpha}}},
                       {{"mode", std::string(all ? "all" : "channel")}}));
    return true;
  }
  const bool vector = s.rank() < 0 || (s.rank() == 1 && s[0] != 1);
  n.Result(0,
           n.Make("prelu", {{"X", {x}}, {"Alpha", {slope}}},
                  {{"mode", std::string("broadcast")}, {"axis", int64_t{old && vector ? 1 : -1}}}));
  return true;
}

bool LowerHardSwish(NodeLowering& n) {
  n.Result(0, n.Unary("hard_swish", n.Required(0), {{"divide_first", true}}));
  return true;
}

bool LowerIdentity(NodeLowering& n) {
  n.Result(0, n.Required(0));
  return true;
}

bool LowerWhere(NodeLowering& n) {
  const int c = n.Required(0), x = n.Required(1), y = n.Required(2);
  if (n.IsString(x)) return false;
  const bool same = n.shape(c).is_static() && n.shape(c) == n.shape(x) && n.shape(x) == n.shape(y);
  if (!same) return false;
  const int made = n.Make("where", {{"Condition", {c}}, {"X", {x}}, {"Y", {y}}});
  if (n.dtype(made) == n.dtype(x)) n.SetType(made, n.type(x));
  n.Result(0, made);
  return true;
}

// Elements in wider storage are cut to the bits of their own type first.
bool LowerBitCast(NodeLowering& n) {
  const int x = n.Required(0), from = n.type(x), to = static_cast<int>(n.Int("to", 0));
  const auto narrow = [](int type) {
    return type == kUint16 ? DType::kI16 : type == kUint32 ? DType::kI32 : StorageOf(type);
  };
  if ((narrow(from) == StorageOf(from) && narrow(to) == StorageOf(to)) ||
      BitsOf(from) != BitsOf(to)) {
    Attrs attrs{{"to", int64_t{to}}};
    if (from != TypeOf(n.dtype(x))) attrs.emplace_back("from", int64_t{from});
    const int made = n.Unary("bitcast", x, std::move(attrs));
    n.SetType(made, to);
    n.Result(0, made);
    return true;
  }
  int bits = n.Cast(x, narrow(from));
  if (narrow(from) != narrow(to))
    bits = n.Unary("bitcast", bits, {{"to", int64_t{TypeOf(narrow(to))}}});
  n.draft_var(bits).dtype = narrow(to);
  const int made = bits == x ? n.Unary("assign", x) : n.Cast(bits, StorageOf(to));
  if (to == kUint16 || to == kUint32) {
    const int cut = CutToBits(n, made, to == kUint16 ? 16 : 32);
    n.SetType(cut, to);
    n.Result(0, cut);
    return true;
  }
  n.Result(0, made);
  return true;
}

bool LowerRound(NodeLowering& n) {
  n.Result(0, n.Unary("round", n.Required(0), {{"half_to_even", true}}));
  return true;
}

bool LowerIsInf(NodeLowering& n) {
  n.Result(0, n.Unary("isinf_v2", n.Required(0),
                      {{"negative", n.Int("detect_negative", 1) != 0},
                       {"positive", n.Int("detect_positive", 1) != 0}}));
  return true;
}

bool LowerCast(NodeLowering& n) {
  const int x = n.Required(0);
  int to = static_cast<int>(n.Int("to", 0));
  if (const Attribute* a = n.Find("to"); a != nullptr && a->kind == Attribute::kString) {
    static constexpr std::pair<std::string_view, int> kNames[] = {
        {"FLOAT", kFloat},     {"UINT8", kUint8},   {"INT8", kInt8},     {"UINT16", kUint16},
        {"INT16", kInt16},     {"INT32", kInt32},   {"INT64", kInt64},   {"BOOL", kBool},
        {"FLOAT16", kFloat16}, {"DOUBLE", kDouble}, {"UINT32", kUint32}, {"UINT64", kUint64}};
    for (const auto& [name, type] : kNames)
      if (a->s == name) to = type;
  }
  if (n.node().op_type == "CastLike") to = n.type(n.Required(1));
  const int from = n.type(x);
  if (to == kUndefinedType || (StorageOf(to) == DType::kUnknown && to != kString)) {
    n.Problem("casts to ", to, ", which is no element type");
    n.Result(0, x);
    return true;
  }
  if (from == to && !n.IsString(x)) {
    n.Result(0, x);
    return true;
  }
  const auto plain = [](int type) { return type == TypeOf(StorageOf(type)); };
  // uint16 and uint32 are held as values of wider types, so a plain cast from them is right.
  const bool widened = from == kUint16 || from == kUint32;
  if (plain(to) && from != kString && to != kString && (plain(from) || widened)) {
    const int made = n.Cast(x, StorageOf(to));
    const int cast = made == x ? n.Unary("assign", x) : made;
    n.SetType(cast, to);
    n.Result(0, cast);
    return true;
  }
  const bool text = n.IsString(x) || to == kString;
  const int made = n.Make(text ? "cast_string" : "cast_element_type", {{text ? "input" : "X", {x}}},
                          {{"from", int64_t{from}},
                           {"to", int64_t{to}},
                           {"saturate", n.Int("saturate", 1)},
                           {"round_mode", n.Str("round_mode", "up")}},
                          text ? "output" : "Out");
  n.SetType(made, to);
  n.Result(0, made);
  return true;
}

// Counts that are no width of the type shift all bits out.
bool LowerBitShift(NodeLowering& n) {
  const int x = n.Required(0), y = n.Required(1), type = n.type(x);
  const std::string direction = n.Str("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    n.Problem("has the direction '", direction, "', expected LEFT or RIGHT");
  Attrs attrs{{"direction", std::string(direction == "LEFT" ? "left" : "right")}};
  if (type != TypeOf(n.dtype(x))) attrs.emplace_back("elem_type", int64_t{type});
  const int made = n.Make("bit_shift", {{"X", {x}}, {"Y", {y}}}, std::move(attrs));
  n.SetType(made, type);
  n.Result(0, made);
  return true;
}

bool LowerNeg(NodeLowering& n) {
  n.Result(0, n.Times(n.Required(0), -1));
  return true;
}

// Min and Max as binary operators, from left to right; a NaN in any operand stays.
template <const char* kType>
bool LowerExtreme(NodeLowering& n) {
  int made = n.Required(0);
  for (size_t i = 1; i < n.inputs(); ++i)
    made = n.Make(kType, {{"X", {made}}, {"Y", {n.Required(i)}}}, {{"keep_nan", true}});
  n.Result(0, made);
  return true;
}

bool LowerBitwiseNot(NodeLowering& n) {
  n.Result(0, n.Unary("bitwise_not", n.Required(0)));
  return true;
}

constexpr HandlerEntry kElementwiseEntries[] = {
    {"", "Abs", &LowerUnary<kAbs>},
    {"", "Acos", &LowerUnary<kAcos>},
    {"", "Acosh", &LowerUnary<kAcosh>},
    {"", "Add", &LowerBinary<kElementwiseAdd>},
    {"", "And", &LowerCompare<kLogicalAnd>},
    {"", "Asin", &LowerUnary<kAsin>},
    {"", "Asinh", &LowerUnary<kAsinh>},
    {"", "Atan", &LowerUnary<kAtan>},
    {"", "Atanh", &LowerUnary<kAtanh>},
    {"", "BitCast", &LowerBitCast},
    {"", "BitShift", &LowerBitShift},
    {"", "BitwiseAnd", &LowerBinary<kBitwiseAnd>},
    {"", "BitwiseNot", &LowerBitwiseNot},
    {"", "BitwiseOr", &LowerBinary<kBitwiseOr>},
    {"", "BitwiseXor", &LowerBinary<kBitwiseXor>},
    {"", "Cast", &LowerCast},
    {"", "CastLike", &LowerCast},
    {"", "Ceil", &LowerUnary<kCeil>},
    {"", "Celu", &LowerCelu},
    {"", "Clip", &LowerClip},
    {"", "Cos", &LowerUnary<kCos>},
    {"", "Cosh", &LowerUnary<kCosh>},
    {"", "Div", &LowerBinary<kElementwiseDiv>},
    {"", "Elu", &LowerElu},
    {"", "Equal", &LowerEqual},
    {"", "Erf", &LowerUnary<kErf>},
    {"", "Exp", &LowerUnary<kExp>},
    {"", "Floor", &LowerUnary<kFloor>},
    {"", "Gelu", &LowerGelu},
    {"", "Greater", &LowerCompare<kGreaterThan>},
    {"", "GreaterOrEqual", &LowerCompare<kGreaterEqual>},
    {"", "HardSigmoid", &LowerHardSigmoid},
    {"", "HardSwish", &LowerHardSwish},
    {"", "Identity", &LowerIdentity},
    {"", "IsInf", &LowerIsInf},
    {"", "IsNaN", &LowerUnary<kIsnanV2>},
    {"", "LeakyRelu", &LowerLeakyRelu},
    {"", "Less", &LowerCompare<kLessThan>},
    {"", "LessOrEqual", &LowerCompare<kLessEqual>},
    {"", "Log", &LowerUnary<kLog>},
    {"", "Max", &LowerExtreme<kElementwiseMax>},
    {"", "Mean", &LowerMean},
    {"", "Min", &LowerExtreme<kElementwiseMin>},
    {"", "Mish", &LowerUnary<kMish>},
    {"", "Mod", &LowerMod},
    {"", "Mul", &LowerBinary<kElementwiseMul>},
    {"", "Neg", &LowerNeg},
    {"", "Not", &LowerUnary<kLogicalNot>},
    {"", "Or", &LowerCompare<kLogicalOr>},
    {"", "PRelu", &LowerPRelu},
    {"", "Pow", &LowerPow},
    {"", "Reciprocal", &LowerUnary<kReciprocal>},
    {"", "Relu", &LowerRelu},
    {"", "Round", &LowerRound},
    {"", "Selu", &LowerSelu},
    {"", "Shrink", &LowerShrink},
    {"", "Sigmoid", &LowerUnary<kSigmoid>},
    {"", "Sign", &LowerUnary<kSign>},
    {"", "Sin", &LowerUnary<kSin>},
    {"", "Sinh", &LowerUnary<kSinh>},
    {"", "Softplus", &LowerUnary<kSoftplus>},
    {"", "Softsign", &LowerUnary<kSoftsign>},
    {"", "Sqrt", &LowerUnary<kSqrt>},
    {"", "Sub", &LowerBinary<kElementwiseSub>},
    {"", "Sum", &LowerChain<kElementwiseAdd>},
    {"", "Swish", &LowerSwish},
    {"", "Tan", &LowerUnary<kTan>},
    {"", "Tanh", &LowerUnary<kTanh>},
    {"", "ThresholdedRelu", &LowerThresholded},
    {"", "Where", &LowerWhere},
    {"", "Xor", &LowerCompare<kLogicalXor>},
    {"com.microsoft", "BiasGelu", &LowerBiasGelu},
    {"com.microsoft", "FastGelu", &LowerBiasGelu},
    {"com.microsoft", "Gelu", &LowerGelu},
    {"com.microsoft", "QuickGelu", &LowerQuickGelu},
};

}  // namespace

std::span<const HandlerEntry> ElementwiseHandlers() { return kElementwiseEntries; }

}  // namespace heddle::onnx
