#include "kernels/operands/element_types.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

using E = ElementType;

struct TinyFormat {
  int mantissa, bias;
  double most;
  bool infinities;  // and NaN beyond them; else one bit pattern is NaN
  bool no_negative_zero;
};

TinyFormat FormatOf(ElementType type) {
  switch (type) {
    case E::kFloat8E4M3FN:
      return {3, 7, 448, false, false};
    case E::kFloat8E4M3FNUZ:
      return {3, 8, 240, false, true};
    case E::kFloat8E5M2:
      return {2, 15, 57344, true, false};
    case E::kFloat8E5M2FNUZ:
      return {2, 16, 57344, false, true};
    default:
      return {1, 1, 6, false, false};  // float4e2m1, which has neither infinities nor NaN
  }
}

uint8_t NanOf(ElementType type) {
  const TinyFormat f = FormatOf(type);
  return f.no_negative_zero ? 0x80 : f.infinities ? 0x7e : type == E::kFloat4E2M1 ? 0x8 : 0x7f;
}

// Powers of two alone: the exponent with bias 127, and 255 for NaN.
uint8_t ToPowerOfTwo(double x, bool saturate, Rounding rounding) {
  if (std::isnan(x)) return 255;
  if (std::isinf(x)) return saturate ? 254 : 255;
  if (x == 0) return saturate ? 0 : 255;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent) * 2;  // [1, 2)
  exponent -= 1;
  if (rounding == Rounding::kUp ? fraction > 1 : rounding == Rounding::kNearest && fraction >= 1.5)
    ++exponent;
  if (exponent > 127) return saturate ? 254 : 255;
  if (exponent < -127) return saturate ? 0 : 255;
  return static_cast<uint8_t>(exponent + 127);
}

}  // namespace

ElementType OwnElementType(DType dtype) {
  constexpr E kTypes[kNumDTypes] = {
      E::kBool,     E::kUint8, E::kInt8,   E::kInt16,     E::kInt32,      E::kInt64,    E::kFloat16,
      E::kBfloat16, E::kFloat, E::kDouble, E::kComplex64, E::kComplex128, E::kUndefined};
  return kTypes[static_cast<int>(dtype)];
}

Result<ElementType> StoredAs(int64_t number, DType dtype) {
  if (number == 0) return OwnElementType(dtype);
  HEDDLE_ASSIGN_OR_RETURN(const DType stored, DTypeOfOnnx(number, dtype));
  if (stored != dtype)
    return InvalidArgument("element type ", number, " is stored as ", Name(stored),
                           ", but an operand is ", Name(dtype));
  return static_cast<E>(number);
}

int BitsOf(ElementType type) {
  constexpr int kBits[] = {0,  32,  8,  8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64,
                           64, 128, 16, 8, 8,  8,  8,  4,  4, 4, 8,  2,  2};
  return kBits[static_cast<int>(type)];
}

bool IsUnsigned(ElementType type) {
  return type == E::kUint8 || type == E::kUint16 || type == E::kUint32 || type == E::kUint64 ||
         type == E::kUint4 || type == E::kUint2 || type == E::kBool;
}
bool IsIntegral(ElementType type) {
  return IsUnsigned(type) || type == E::kInt8 || type == E::kInt16 || type == E::kInt32 ||
         type == E::kInt64 || type == E::kInt4 || type == E::kInt2;
}
bool IsTinyFloat(ElementType type) {
  return (type >= E::kFloat8E4M3FN && type <= E::kFloat8E5M2FNUZ) || type == E::kFloat4E2M1 ||
         type == E::kFloat8E8M0;
}

uint8_t ToTinyFloat(double x, ElementType type, bool saturate, Rounding rounding) {
  if (type == E::kFloat8E8M0) return ToPowerOfTwo(x, saturate, rounding);
  const TinyFormat f = FormatOf(type);
  const int sign_bit = type == E::kFloat4E2M1 ? 3 : 7;
  const auto sign = static_cast<uint8_t>(std::signbit(x) ? 1 << sign_bit : 0);
  if (std::isnan(x)) return NanOf(type);
  double size = std::fabs(x);
  int quantum = 1 - f.bias - f.mantissa;  // exponent of the last bit
  if (size > 0 && std::isfinite(size))
    quantum = std::max(std::ilogb(size), 1 - f.bias) - f.mantissa;
  double units = std::nearbyint(std::ldexp(size, -quantum));
  if (!(std::ldexp(units, quantum) <= f.most)) {
    if (!saturate && type != E::kFloat4E2M1) {
      if (f.infinities) return static_cast<uint8_t>(sign | 0x7c);
      return static_cast<uint8_t>(NanOf(type) | (f.no_negative_zero ? 0 : sign));
    }
    size = f.most;
    quantum = std::ilogb(size) - f.mantissa;
    units = std::ldexp(size, -quantum);
  }
  if (units == 0) return f.no_negative_zero ? 0 : sign;
  // Rounded up to the next power of two, the mantissa carries into the exponent by itself.
  const int exponent = quantum + f.mantissa + f.bias;
  const int body = units < (1 << f.mantissa)
                       ? static_cast<int>(units)
                       : ((exponent - 1) << f.mantissa) + static_cast<int>(units);
  return static_cast<uint8_t>(sign | body);
}

double FromTinyFloat(uint8_t bits, ElementType type) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (type == E::kFloat8E8M0) return bits == 255 ? kNan : std::ldexp(1.0, bits - 127);
  const TinyFormat f = FormatOf(type);
  const int sign_bit = type == E::kFloat4E2M1 ? 3 : 7;
  const int body = bits & ((1 << sign_bit) - 1);
  const double sign = (bits >> sign_bit & 1) != 0 ? -1 : 1;
  if (f.no_negative_zero && bits == 0x80) return kNan;
  if (type == E::kFloat8E4M3FN && body == 0x7f) return kNan;
  if (f.infinities && body >= 0x7c)
    return body == 0x7c ? sign * std::numeric_limits<double>::infinity() : kNan;
  const int exponent = body >> f.mantissa, mantissa = body & ((1 << f.mantissa) - 1);
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - f.bias - f.mantissa);
  return sign * std::ldexp(mantissa + (1 << f.mantissa), exponent - f.bias - f.mantissa);
}

int64_t WrapInteger(int64_t x, ElementType type) {
  const int bits = BitsOf(type);
  if (type == E::kBool) return x != 0 ? 1 : 0;
  if (bits == 0 || bits >= 64) return x;
  const uint64_t low = static_cast<uint64_t>(x) << (64 - bits);
  return IsUnsigned(type) ? static_cast<int64_t>(low >> (64 - bits))
                          : static_cast<int64_t>(low) >> (64 - bits);
}

int64_t LeastOf(ElementType type) {
  return IsUnsigned(type) ? 0 : -(int64_t{1} << (BitsOf(type) - 1));
}
int64_t GreatestOf(ElementType type) {
  return (int64_t{1} << (BitsOf(type) - (IsUnsigned(type) ? 0 : 1))) - 1;
}

Number NumberAt(const Tensor& t, int64_t i, ElementType type) {
  Number n{true, 0, 0};
  if (IsTinyFloat(type)) return {false, 0, FromTinyFloat(t.data<uint8_t>()[i], type)};
  VisitOneOf<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double>(
      "an operand", t.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>)
          n.integer = static_cast<int64_t>(t.data<T>()[i]);
        else
          n = {false, 0, static_cast<double>(static_cast<ComputeType<T>>(t.data<T>()[i]))};
      });
  if (n.integral)
    n.real = type == E::kUint64 ? static_cast<double>(static_cast<uint64_t>(n.integer))
                                : static_cast<double>(n.integer);
  return n;
}

}  // namespace heddle
