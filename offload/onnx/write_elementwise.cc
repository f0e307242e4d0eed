// Operators of several operands that broadcast, casts, and numbers times tensors.
#include <cmath>

#include "core/shapes.h"
#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

constexpr char kAdd[] = "Add";
constexpr char kAnd[] = "And";
constexpr char kDiv[] = "Div";
constexpr char kEqual[] = "Equal";
constexpr char kGreater[] = "Greater";
constexpr char kGreaterOrEqual[] = "GreaterOrEqual";
constexpr char kLess[] = "Less";
constexpr char kLessOrEqual[] = "LessOrEqual";
constexpr char kMax[] = "Max";
constexpr char kMin[] = "Min";
constexpr char kMul[] = "Mul";
constexpr char kOr[] = "Or";
constexpr char kPow[] = "Pow";
constexpr char kSub[] = "Sub";
constexpr char kXor[] = "Xor";

// X and Y with their ends aligned, as ONNX wants them: with `axis`, the dimensions of the one of
// the lower rank begin at that dimension of the other one.
Names Operands(NodeWriter& n) {
  Names both = {n.In("X"), n.In("Y")};
  const int64_t axis = n.Int("axis");
  if (axis == -1) return both;
  const int x = n.Rank("X"), y = n.Rank("Y");
  if (x == y) return both;
  const bool lower_x = x < y;
  const int rank = std::max(x, y);
  const Shape& lower = n.shape(lower_x ? "X" : "Y");
  std::string& name = both[lower_x ? 0 : 1];
  int kept = lower.rank();
  if (axis >= 0)
    while (kept > 0 && axis + kept > rank && lower[kept - 1] == 1) --kept;
  const int64_t start = axis < 0 ? rank - kept : axis;
  if (start + kept > rank) {
    n.Refuse("axis ", axis, " leaves no room for ", lower.ToString());
    return both;
  }
  Ints dropped, added;
  for (int i = kept; i < lower.rank(); ++i) dropped.push_back(i);
  for (int64_t i = kept; start + i < rank; ++i) added.push_back(i);
  name = n.Unsqueeze(n.Squeeze(name, dropped), added);
  return both;
}

bool AreAlike(NodeWriter& n) {
  if (n.dtype("X") == n.dtype("Y")) return true;
  n.Refuse("X is ", Name(n.dtype("X")), " and Y ", Name(n.dtype("Y")));
  return false;
}

// Integers that stand for those of another type are refused.
bool IsOwnType(NodeWriter& n) {
  if (n.definition().FindAttr("elem_type") < 0 || n.Int("elem_type") == 0) return true;
  n.Refuse("its operands stand for another element type");
  return false;
}

template <const char* kType>
void WriteArithmetic(NodeWriter& n) {
  if (!AreAlike(n) || !IsOwnType(n) ||
      !n.IsOneOf("X", {DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kF32,
                       DType::kF64}))
    return;
  n.Out("Out", n.Make(kType, Operands(n)));
}

template <const char* kType>
void WriteOfFloats(NodeWriter& n) {
  if (AreAlike(n) && n.IsFloat("X")) n.Out("Out", n.Make(kType, Operands(n)));
}

void WriteDivNoNan(NodeWriter& n) {
  if (!AreAlike(n) || !n.IsFloat("X")) return;
  const std::string x = n.In("X"), y = n.In("Y"), zero = n.Scalar(0, n.dtype("X"));
  n.Out("Out", n.Make("Where", {n.Make("Equal", {y, zero}), zero, n.Make("Div", {x, y})}));
}

// Of floats, ONNX has the one with the dividend's sign.
void WriteMod(NodeWriter& n) {
  const bool cut = n.Bool("truncate");
  if (!AreAlike(n) || !IsOwnType(n)) return;
  if (cut ? n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})
          : n.IsOneOf("X", {DType::kI32, DType::kI64}))
    n.Out("Out", n.Make("Mod", Operands(n), {{"fmod", int64_t{cut ? 1 : 0}}}));
}

template <const char* kType>
void WriteCompare(NodeWriter& n) {
  WriteArithmetic<kType>(n);
}

// Floats that are near enough count as equal, unless the attribute says otherwise.
bool IsExact(NodeWriter& n) {
  const DType t = n.dtype("X");
  if (t == DType::kF32 || t == DType::kF64) {
    if (n.Bool("exact")) return true;
    n.Refuse("floats that differ by less than 1e-8 are equal to it");
    return false;
  }
  return n.IsOneOf("X",
                   {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64});
}
void WriteEqual(NodeWriter& n) {
  if (AreAlike(n) && IsExact(n)) n.Out("Out", n.Make(kEqual, Operands(n)));
}
void WriteNotEqual(NodeWriter& n) {
  if (AreAlike(n) && IsExact(n)) n.Out("Out", n.Make("Not", {n.Make(kEqual, Operands(n))}));
}

std::string AsBool(NodeWriter& n, const std::string& x, DType t) {
  return t == DType::kBool ? x : n.CastTo(x, DType::kBool);
}

template <const char* kType>
void WriteLogical(NodeWriter& n) {
  Names both = Operands(n);
  n.Out("Out", n.Make(kType, {AsBool(n, both[0], n.dtype("X")), AsBool(n, both[1], n.dtype("Y"))}));
}
void WriteLogicalNot(NodeWriter& n) {
  n.Out("Out", n.Make("Not", {AsBool(n, n.In("X"), n.dtype("X"))}));
}

// Of integers ONNX has them from opset 18 on.
template <const char* kType>
void WriteBitwise(NodeWriter& n) {
  if (AreAlike(n) && n.IsOneOf("X", {DType::kBool})) n.Out("Out", n.Make(kType, Operands(n)));
}
void WriteBitwiseNot(NodeWriter& n) {
  if (n.IsOneOf("X", {DType::kBool})) n.Out("Out", n.Make("Not", {n.In("X")}));
}

void WriteSum(NodeWriter& n) {
  const size_t count = n.Count("X");
  std::string sum;
  for (size_t k = 0; k < count; ++k) {
    if (!n.Has("X", k)) continue;
    if (!n.shape("X", k).known_rank() || n.shape("X", k).rank() != n.Rank("X"))
      return n.Refuse("its operands have several ranks");
    if (n.dtype("X", k) != n.dtype("X") || n.dtype("X", k) == DType::kBool)
      return n.Refuse("operand ", k, " is ", Name(n.dtype("X", k)));
    sum = sum.empty() ? n.In("X", k) : n.Make("Add", {sum, n.In("X", k)});
  }
  if (sum.empty()) return n.Refuse("it has no operands");
  n.Out("Out", sum);
}

void WriteScale(NodeWriter& n) {
  if (n.Has("ScaleTensor")) return n.Refuse("its scale is an operand");
  if (!n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  const DType t = n.dtype("X");
  const double scale = n.Real("scale"), bias = n.Real("bias");
  std::string x = n.In("X");
  const auto times = [&] {
    if (scale != 1) x = n.Make("Mul", {x, n.Scalar(scale, t)});
  };
  if (n.Bool("bias_after_scale")) times();
  if (bias != 0) x = n.Make("Add", {x, n.Scalar(bias, t)});
  if (!n.Bool("bias_after_scale")) times();
  n.Out("Out", x);
}

void WriteClip(NodeWriter& n) {
  if (!n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  const DType t = n.dtype("X");
  const auto bound = [&](const char* slot, const char* attribute) {
    if (!n.Has(slot)) return n.Bool("finite") ? std::string() : n.Scalar(n.Real(attribute), t);
    if (n.dtype(slot) != t) n.Refuse(slot, " is ", Name(n.dtype(slot)), " and X ", Name(t));
    return n.AsScalar(slot);
  };
  const std::string low = bound("Min", "min"), high = bound("Max", "max");
  n.Out("Out", n.Make("Clip", {n.In("X"), low, high}));
}

void WritePower(NodeWriter& n) {
  if (n.Has("FactorTensor")) return n.Refuse("its exponent is an operand");
  if (n.IsFloat("X"))
    n.Out("Out", n.Make("Pow", {n.In("X"), n.Scalar(n.Real("factor"), n.dtype("X"))}));
}
void WriteSquare(NodeWriter& n) {
  if (n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64}))
    n.Out("Out", n.Make("Mul", {n.In("X"), n.In("X")}));
}

// What a cast makes of numbers that the type does not hold is nobody's rule.
void WriteCast(NodeWriter& n) {
  n.Out("Out", n.CastTo(n.In("X"), DTypeFromProto(n.Int("out_dtype"))));
}

void WriteAssign(NodeWriter& n) { n.Out("Out", n.In("X")); }

void WriteIncrement(NodeWriter& n) {
  if (n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64}))
    n.Out("Out", n.Make("Add", {n.In("X"), n.Scalar(n.Real("step"), n.dtype("X"))}));
}

void WriteWhere(NodeWriter& n) {
  if (n.dtype("Condition") != DType::kBool || !AreAlike(n))
    return n.Refuse("Condition is ", Name(n.dtype("Condition")));
  if (n.Bool("leading_axes") && n.Rank("Condition") != n.Rank("X"))
    return n.Refuse("its condition has X's first axes");
  n.Out("Out", n.Make("Where", {n.In("Condition"), n.In("X"), n.In("Y")}));
}

void WriteDropout(NodeWriter& n) {
  if (!n.Bool("is_test")) return n.Refuse("it drops elements at random");
  if (!n.IsFloat("X")) return;
  if (n.Text("dropout_implementation") == "upscale_in_train") return n.Out("Out", n.In("X"));
  const std::string kept = n.Scalar(1 - n.Real("dropout_prob"), n.dtype("X"));
  n.Out("Out", n.Make("Mul", {n.In("X"), kept}));
}

constexpr Handler kElementwiseTable[] = {
    {"assign", &WriteAssign},
    {"bitwise_and", &WriteBitwise<kAnd>},
    {"bitwise_not", &WriteBitwiseNot},
    {"bitwise_or", &WriteBitwise<kOr>},
    {"bitwise_xor", &WriteBitwise<kXor>},
    {"cast", &WriteCast},
    {"clip", &WriteClip},
    {"div_no_nan", &WriteDivNoNan},
    {"dropout", &WriteDropout},
    {"elementwise_add", &WriteArithmetic<kAdd>},
    {"elementwise_div", &WriteArithmetic<kDiv>},
    {"elementwise_max", &WriteArithmetic<kMax>},
    {"elementwise_min", &WriteArithmetic<kMin>},
    {"elementwise_mod", &WriteMod},
    {"elementwise_mul", &WriteArithmetic<kMul>},
    {"elementwise_pow", &WriteOfFloats<kPow>},
    {"elementwise_sub", &WriteArithmetic<kSub>},
    {"equal", &WriteEqual},
    {"greater_equal", &WriteCompare<kGreaterOrEqual>},
    {"greater_than", &WriteCompare<kGreater>},
    {"increment", &WriteIncrement},
    {"less_equal", &WriteCompare<kLessOrEqual>},
    {"less_than", &WriteCompare<kLess>},
    {"logical_and", &WriteLogical<kAnd>},
    {"logical_not", &WriteLogicalNot},
    {"logical_or", &WriteLogical<kOr>},
    {"logical_xor", &WriteLogical<kXor>},
    {"not_equal", &WriteNotEqual},
    {"pow", &WritePower},
    {"scale", &WriteScale},
    {"share_data", &WriteAssign},
    {"square", &WriteSquare},
    {"sum", &WriteSum},
    {"where", &WriteWhere},
};

}  // namespace

std::span<const Handler> ElementwiseHandlers() { return kElementwiseTable; }

}  // namespace heddle::offload::to_onnx
