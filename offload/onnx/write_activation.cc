// Functions of one element.
#include <cmath>

#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

// Template arguments must be objects.
constexpr char kAbs[] = "Abs";
constexpr char kAcos[] = "Acos";
constexpr char kAcosh[] = "Acosh";
constexpr char kAsin[] = "Asin";
constexpr char kAsinh[] = "Asinh";
constexpr char kAtan[] = "Atan";
constexpr char kAtanh[] = "Atanh";
constexpr char kCeil[] = "Ceil";
constexpr char kCos[] = "Cos";
constexpr char kCosh[] = "Cosh";
constexpr char kErf[] = "Erf";
constexpr char kExp[] = "Exp";
constexpr char kFloor[] = "Floor";
constexpr char kLog[] = "Log";
constexpr char kReciprocal[] = "Reciprocal";
constexpr char kRelu[] = "Relu";
constexpr char kSigmoid[] = "Sigmoid";
constexpr char kSign[] = "Sign";
constexpr char kSin[] = "Sin";
constexpr char kSinh[] = "Sinh";
constexpr char kSoftsign[] = "Softsign";
constexpr char kSqrt[] = "Sqrt";
constexpr char kTan[] = "Tan";
constexpr char kTanh[] = "Tanh";

template <const char* kType>
void WriteFloatFunction(NodeWriter& n) {
  if (n.IsFloat("X")) n.Out("Out", n.Make(kType, {n.In("X")}));
}

// Of integers, too.
template <const char* kType>
void WriteFunction(NodeWriter& n) {
  if (n.IsOneOf("X", {DType::kF32, DType::kF64, DType::kI8, DType::kI32, DType::kI64}))
    n.Out("Out", n.Make(kType, {n.In("X")}));
}

// One attribute that ONNX has, by another name.
void WriteWithAlpha(NodeWriter& n, const char* type, std::string_view name) {
  if (!n.IsFloat("X")) return;
  n.Out("Out", n.Make(type, {n.In("X")}, {{"alpha", n.Float(n.Real(name), n.dtype("X"))}}));
}

void WriteLeakyRelu(NodeWriter& n) {
  if (n.Int("op_version") == 0 && n.Real("alpha") > 1)
    return n.Refuse("its attribute op_version is 0 and alpha above 1");
  WriteWithAlpha(n, "LeakyRelu", "alpha");
}
void WriteElu(NodeWriter& n) { WriteWithAlpha(n, "Elu", "alpha"); }
void WriteThresholdedRelu(NodeWriter& n) { WriteWithAlpha(n, "ThresholdedRelu", "threshold"); }

void WriteCelu(NodeWriter& n) {  // ONNX has it for float32 alone
  if (n.IsOneOf("X", {DType::kF32})) WriteWithAlpha(n, "Celu", "alpha");
}

void WriteSelu(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const DType t = n.dtype("X");
  n.Out("Out",
        n.Make("Selu", {n.In("X")},
               {{"alpha", n.Float(n.Real("alpha"), t)}, {"gamma", n.Float(n.Real("scale"), t)}}));
}

void WriteHardSigmoid(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const DType t = n.dtype("X");
  n.Out("Out",
        n.Make("HardSigmoid", {n.In("X")},
               {{"alpha", n.Float(n.Real("slope"), t)}, {"beta", n.Float(n.Real("offset"), t)}}));
}

std::string Limited(NodeWriter& n, const std::string& x, double low, double high) {
  const DType t = n.dtype("X");
  return n.Make("Clip", {x, n.Scalar(low, t), n.Scalar(high, t)});
}

// heddle's operator goes by 6, 6 and 3, whatever its attributes say.
void WriteHardSwish(NodeWriter& n) {
  if (n.IsFloat("X")) n.Out("Out", n.Make("HardSwish", {n.In("X")}));
}

// x * Sigmoid(beta * x)
void WriteGated(NodeWriter& n, double beta) {
  if (!n.IsFloat("X")) return;
  const std::string x = n.In("X");
  const std::string scaled = beta == 1 ? x : n.Make("Mul", {x, n.Scalar(beta, n.dtype("X"))});
  n.Out("Out", n.Make("Mul", {x, n.Make("Sigmoid", {scaled})}));
}
void WriteSilu(NodeWriter& n) { WriteGated(n, 1); }
void WriteSwish(NodeWriter& n) { WriteGated(n, n.Real("beta")); }

void WriteGelu(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const DType t = n.dtype("X");
  const std::string x = n.In("X");
  std::string inner;
  if (n.Bool("approximate")) {
    const std::string square = n.Make("Mul", {x, x});
    const std::string cube = n.Make("Mul", {square, x});
    const std::string sum = n.Make("Add", {x, n.Make("Mul", {cube, n.Scalar(0.044715, t)})});
    inner = n.Make("Tanh", {n.Make("Mul", {sum, n.Scalar(std::sqrt(2 / M_PI), t)})});
  } else {
    inner = n.Make("Erf", {n.Make("Div", {x, n.Scalar(std::sqrt(2.0), t)})});
  }
  const std::string one = n.Make("Add", {inner, n.Scalar(1, t)});
  n.Out("Out", n.Make("Mul", {n.Make("Mul", {x, one}), n.Scalar(0.5, t)}));
}

// Softplus is x itself where x is large: with a high threshold no digit shows it.
bool IsHighThreshold(NodeWriter& n, double threshold) {
  if (threshold >= (n.dtype("X") == DType::kF32 ? 20 : 40)) return true;
  n.Refuse("its threshold ", threshold, " shows in its results");
  return false;
}

void WriteSoftplus(NodeWriter& n) {
  if (!n.IsFloat("X") || !IsHighThreshold(n, n.Real("threshold"))) return;
  const double beta = n.Real("beta");
  if (beta == 1) return n.Out("Out", n.Make("Softplus", {n.In("X")}));
  const std::string factor = n.Scalar(beta, n.dtype("X"));
  const std::string made = n.Make("Softplus", {n.Make("Mul", {n.In("X"), factor})});
  n.Out("Out", n.Make("Div", {made, factor}));
}

void WriteMish(NodeWriter& n) {
  if (!n.IsFloat("X") || !IsHighThreshold(n, n.Real("threshold"))) return;
  const std::string x = n.In("X");
  n.Out("Out", n.Make("Mul", {x, n.Make("Tanh", {n.Make("Softplus", {x})})}));
}

void WriteLogSigmoid(NodeWriter& n) {
  if (n.IsFloat("X"))
    n.Out("Out", n.Make("Neg", {n.Make("Softplus", {n.Make("Neg", {n.In("X")})})}));
}

void WriteRelu6(NodeWriter& n) {
  if (n.IsFloat("X")) n.Out("Out", Limited(n, n.In("X"), 0, n.Real("threshold")));
}
void WriteBrelu(NodeWriter& n) {
  if (n.IsFloat("X")) n.Out("Out", Limited(n, n.In("X"), n.Real("t_min"), n.Real("t_max")));
}

void WriteRsqrt(NodeWriter& n) {
  if (n.IsFloat("X")) n.Out("Out", n.Make("Reciprocal", {n.Make("Sqrt", {n.In("X")})}));
}

void WriteLogTo(NodeWriter& n, double base) {
  if (!n.IsFloat("X")) return;
  n.Out("Out",
        n.Make("Mul", {n.Make("Log", {n.In("X")}), n.Scalar(1 / std::log(base), n.dtype("X"))}));
}
void WriteLog2(NodeWriter& n) { WriteLogTo(n, 2); }
void WriteLog10(NodeWriter& n) { WriteLogTo(n, 10); }

void WriteStanh(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const DType t = n.dtype("X");
  const std::string inner = n.Make("Mul", {n.In("X"), n.Scalar(n.Real("scale_a"), t)});
  n.Out("Out", n.Make("Mul", {n.Make("Tanh", {inner}), n.Scalar(n.Real("scale_b"), t)}));
}

void WriteTanhShrink(NodeWriter& n) {
  if (n.IsFloat("X")) n.Out("Out", n.Make("Sub", {n.In("X"), n.Make("Tanh", {n.In("X")})}));
}

void WriteSoftshrink(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const double lambda = n.Real("lambda");
  n.Out("Out", n.Make("Sub", {n.In("X"), Limited(n, n.In("X"), -lambda, lambda)}));
}
void WriteHardShrink(NodeWriter& n) {
  const double threshold = n.Real("threshold");
  if (!n.IsFloat("X")) return;
  if (threshold < 0) return n.Refuse("its threshold ", threshold, " is negative");
  n.Out("Out", n.Make("Shrink", {n.In("X")}, {{"lambd", n.Float(threshold, n.dtype("X"))}}));
}

void WritePrelu(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const int rank = n.Rank("X");
  const Shape& alpha = n.shape("Alpha");
  if (!alpha.is_static()) return n.Refuse("the shape of Alpha is not known");
  Ints dims(static_cast<size_t>(rank), 1);
  const std::string& mode = n.Text("mode");
  const bool last = n.Text("data_format") == "NHWC";
  if (mode == "channel") {
    if (rank < 2) return n.Refuse("X has no channels");
    dims[static_cast<size_t>(last ? rank - 1 : 1)] = alpha.numel();
  } else if (mode == "element") {
    if (!n.shape("X").is_static()) return n.Refuse("the shape of X is not known");
    for (int i = 1; i < rank; ++i) dims[static_cast<size_t>(i)] = n.shape("X")[i];
  } else if (alpha.numel() != 1) {
    return n.Refuse("Alpha holds ", alpha.numel(), " elements for all");
  }
  n.Out("Out", n.Make("PRelu", {n.In("X"), n.Reshape(n.In("Alpha"), dims)}));
}

void WriteIsNan(NodeWriter& n) {
  if (n.IsFloat("X")) n.Out("Out", n.Make("IsNaN", {n.In("X")}));
}
void WriteRound(NodeWriter& n) {
  if (!n.Bool("half_to_even")) return n.Refuse("it rounds halves away from 0");
  if (n.IsFloat("X")) n.Out("Out", n.Make("Round", {n.In("X")}));
}
void WriteIsInf(NodeWriter& n) {
  if (n.IsFloat("X"))
    n.Out("Out", n.Make("IsInf", {n.In("X")},
                        {{"detect_negative", int64_t{n.Bool("negative")}},
                         {"detect_positive", int64_t{n.Bool("positive")}}}));
}
void WriteIsFinite(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const std::string x = n.In("X");
  const std::string either = n.Make("Or", {n.Make("IsNaN", {x}), n.Make("IsInf", {x})});
  n.Out("Out", n.Make("Not", {either}));
}

constexpr Handler kActivationTable[] = {
    {"abs", &WriteFunction<kAbs>},
    {"acos", &WriteFloatFunction<kAcos>},
    {"acosh", &WriteFloatFunction<kAcosh>},
    {"asin", &WriteFloatFunction<kAsin>},
    {"asinh", &WriteFloatFunction<kAsinh>},
    {"atan", &WriteFloatFunction<kAtan>},
    {"atanh", &WriteFloatFunction<kAtanh>},
    {"brelu", &WriteBrelu},
    {"ceil", &WriteFloatFunction<kCeil>},
    {"celu", &WriteCelu},
    {"cos", &WriteFloatFunction<kCos>},
    {"cosh", &WriteFloatFunction<kCosh>},
    {"elu", &WriteElu},
    {"erf", &WriteFloatFunction<kErf>},
    {"exp", &WriteFloatFunction<kExp>},
    {"floor", &WriteFloatFunction<kFloor>},
    {"gelu", &WriteGelu},
    {"hard_shrink", &WriteHardShrink},
    {"hard_sigmoid", &WriteHardSigmoid},
    {"hard_swish", &WriteHardSwish},
    {"isfinite_v2", &WriteIsFinite},
    {"isinf_v2", &WriteIsInf},
    {"isnan_v2", &WriteIsNan},
    {"leaky_relu", &WriteLeakyRelu},
    {"log", &WriteFloatFunction<kLog>},
    {"log10", &WriteLog10},
    {"log2", &WriteLog2},
    {"logsigmoid", &WriteLogSigmoid},
    {"mish", &WriteMish},
    {"prelu", &WritePrelu},
    {"reciprocal", &WriteFloatFunction<kReciprocal>},
    {"relu", &WriteFunction<kRelu>},
    {"relu6", &WriteRelu6},
    {"round", &WriteRound},
    {"rsqrt", &WriteRsqrt},
    {"selu", &WriteSelu},
    {"sigmoid", &WriteFloatFunction<kSigmoid>},
    {"sign", &WriteFunction<kSign>},
    {"silu", &WriteSilu},
    {"sin", &WriteFloatFunction<kSin>},
    {"sinh", &WriteFloatFunction<kSinh>},
    {"softplus", &WriteSoftplus},
    {"softshrink", &WriteSoftshrink},
    {"softsign", &WriteFloatFunction<kSoftsign>},
    {"sqrt", &WriteFloatFunction<kSqrt>},
    {"stanh", &WriteStanh},
    {"swish", &WriteSwish},
    {"tan", &WriteFloatFunction<kTan>},
    {"tanh", &WriteFloatFunction<kTanh>},
    {"tanh_shrink", &WriteTanhShrink},
    {"thresholded_relu", &WriteThresholdedRelu},
};

}  // namespace

std::span<const Handler> ActivationHandlers() { return kActivationTable; }

}  // namespace heddle::offload::to_onnx
