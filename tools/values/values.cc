#include "tools/values/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>

#include "heddle/string_tensor.h"
#include "tools/values/element_types.h"
#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

float FromBits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}

float HalfToFloat(uint16_t h) {
  const float sign = h & 0x8000 ? -1.0f : 1.0f;
  const int exponent = (h >> 10) & 31;
  const float fraction = static_cast<float>(h & 0x3ff);
  if (exponent == 31)
    return FromBits(uint32_t{h & 0x8000u} << 16 | 0x7f800000 | (h & 0x3ffu) << 13);
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

std::string Short(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", x);
  return text;
}

Status WriteTensor(const Tensor& tensor, const std::string& stem, std::vector<std::string>* paths,
                   const std::string& type = "") {
  paths->push_back(stem + ".npy");
  HEDDLE_RETURN_IF_ERROR(WriteNpy(paths->back(), tensor, type));
  if (!tensor.has_lod()) return Status::Ok();
  std::ofstream file(stem + ".lod");
  file << LodText(tensor.lod(), "\n") << "\n";
  file.close();
  if (!file) return Status(StatusCode::kResourceExhausted, stem + ".lod: cannot be written");
  return Status::Ok();
}

std::string TensorDifference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    return "data type " + std::string(Name(b.dtype())) + ", was " + std::string(Name(a.dtype()));
  if (a.shape() != b.shape())
    return "shape " + b.shape().ToString() + ", was " + a.shape().ToString();
  if (a.lod() != b.lod()) return "sequence offsets differ";
  if (a.initialized() != b.initialized()) return "one of them holds no data";
  if (!a.initialized() || a.bytes() == 0) return "";
  const Tensor x = a.Contiguous(), y = b.Contiguous();
  if (std::memcmp(x.raw(), y.raw(), x.bytes()) == 0) return "";
  const size_t item = SizeOf(a.dtype());
  int64_t differ = 0, first = -1;
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (std::memcmp(x.data<char>() + i * item, y.data<char>() + i * item, item) == 0) continue;
    ++differ;
    if (first < 0) first = i;
  }
  return std::to_string(differ) + " of " + std::to_string(x.numel()) +
         " elements differ, first element " + std::to_string(first) + ": " + TextAt(y, first) +
         ", was " + TextAt(x, first);
}

}  // namespace

std::string LodText(const LoD& lod, const std::string& level_separator) {
  std::string text;
  for (size_t l = 0; l < lod.size(); ++l) {
    if (l > 0) text += level_separator;
    for (size_t i = 0; i < lod[l].size(); ++i) text += (i ? "," : "") + std::to_string(lod[l][i]);
  }
  return text;
}

Result<LoD> ParseLod(const std::string& text) {
  LoD lod(1);
  const char* p = text.data();
  const char* end = p + text.size();
  while (true) {
    size_t number = 0;
    const auto [next, error] = std::from_chars(p, end, number);
    if (error != std::errc() || (next != end && *next != ',' && *next != '|'))
      return Status(StatusCode::kInvalidArgument,
                    "sequence offsets '" + text + "' are not of the form 0,2,5|0,1,2,3,4,5");
    lod.back().push_back(number);
    if (next == end) return lod;
    if (*next == '|') lod.emplace_back();
    p = next + 1;
  }
}

Status CheckOffsets(const LoD& lod) {
  for (const auto& level : lod)
    if (level.size() < 2 || level.front() != 0 || !std::is_sorted(level.begin(), level.end()))
      return Status(StatusCode::kInvalidArgument, "sequence offsets '" + LodText(lod, "|") +
                                                      "' must begin with 0 and not decrease");
  return Status::Ok();
}

namespace {

Status WriteStrings(const StringTensor& strings, const std::string& stem,
                    std::vector<std::string>* paths) {
  paths->push_back(stem + ".npy");
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, NpyBytes(strings, paths->back()));
  std::ofstream file(paths->back(), std::ios::binary);
  file << bytes;
  file.close();
  if (!file) return Status(StatusCode::kResourceExhausted, paths->back() + ": cannot be written");
  return Status::Ok();
}

std::string StringDifference(const StringTensor& x, const StringTensor& y) {
  if (x.shape != y.shape) return "shape " + y.shape.ToString() + ", was " + x.shape.ToString();
  for (size_t i = 0; i < x.elements.size(); ++i)
    if (x.elements[i] != y.elements[i])
      return "element " + std::to_string(i) + ": " + Quoted(y.elements[i]) + ", was " +
             Quoted(x.elements[i]);
  return "";
}

}  // namespace

Result<std::vector<std::string>> WriteValue(const Value& value, const std::string& stem,
                                            const std::string& type) {
  std::vector<std::string> paths;
  if (value.is_array()) {
    for (size_t i = 0; i < value.array().size(); ++i)
      HEDDLE_RETURN_IF_ERROR(
          WriteTensor(value.array()[i], stem + "_" + std::to_string(i), &paths, type));
    return paths;
  }
  if (value.is_rows()) {
    const SelectedRows& s = value.rows();
    HEDDLE_RETURN_IF_ERROR(WriteTensor(s.value, stem, &paths));
    const Shape count{static_cast<int64_t>(s.rows.size())};
    HEDDLE_RETURN_IF_ERROR(
        WriteTensor(Tensor::Of(DType::kI64, count, s.rows), stem + "_rows", &paths));
    return paths;
  }
  if (const auto strings = StringsIn(value)) {
    HEDDLE_RETURN_IF_ERROR(WriteStrings(*strings, stem, &paths));
    return paths;
  }
  if (const auto texts = StringListIn(value)) {
    for (size_t i = 0; i < texts->size(); ++i)
      HEDDLE_RETURN_IF_ERROR(WriteStrings((*texts)[i], stem + "_" + std::to_string(i), &paths));
    return paths;
  }
  if (!value.is_tensor())
    return Status(StatusCode::kUnimplemented, stem + ".npy: this kind of value has no file format");
  HEDDLE_RETURN_IF_ERROR(WriteTensor(value.tensor(), stem, &paths, type));
  return paths;
}

std::string Difference(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return "another kind of value";
  if (a.is_array()) {
    if (a.array().size() != b.array().size())
      return std::to_string(b.array().size()) + " elements, were " +
             std::to_string(a.array().size());
    for (size_t i = 0; i < a.array().size(); ++i) {
      const std::string why = TensorDifference(a.array()[i], b.array()[i]);
      if (!why.empty()) return "element " + std::to_string(i) + ": " + why;
    }
    return "";
  }
  if (a.is_rows()) {
    if (a.rows().rows != b.rows().rows || a.rows().height != b.rows().height)
      return "row numbers differ";
    return TensorDifference(a.rows().value, b.rows().value);
  }
  if (const auto x = StringsIn(a), y = StringsIn(b); x != nullptr && y != nullptr)
    return StringDifference(*x, *y);
  if (const auto x = StringListIn(a), y = StringListIn(b); x != nullptr && y != nullptr) {
    if (x->size() != y->size())
      return std::to_string(y->size()) + " elements, were " + std::to_string(x->size());
    for (size_t i = 0; i < x->size(); ++i) {
      const std::string why = StringDifference((*x)[i], (*y)[i]);
      if (!why.empty()) return "element " + std::to_string(i) + ": " + why;
    }
    return "";
  }
  return a.is_tensor() ? TensorDifference(a.tensor(), b.tensor()) : "";
}

double NumberAt(const Tensor& t, int64_t i, std::string_view type) {
  if (const ElementType* given = type.empty() ? nullptr : FindElementType(type);
      given != nullptr && given->held == t.dtype()) {
    if (given->kind == ElementType::Kind::kFloat) return FloatOf(*given, t.data<uint8_t>()[i]);
    if (given->bits == 64) return static_cast<double>(static_cast<uint64_t>(t.data<int64_t>()[i]));
  }
  switch (t.dtype()) {
    case DType::kBool:
    case DType::kU8:
      return t.data<uint8_t>()[i];
    case DType::kI8:
      return t.data<int8_t>()[i];
    case DType::kI16:
      return t.data<int16_t>()[i];
    case DType::kI32:
      return t.data<int32_t>()[i];
    case DType::kI64:
      return static_cast<double>(t.data<int64_t>()[i]);
    case DType::kF16:
      return HalfToFloat(t.data<uint16_t>()[i]);
    case DType::kBF16:
      return FromBits(uint32_t{t.data<uint16_t>()[i]} << 16);
    case DType::kF32:
      return t.data<float>()[i];
    case DType::kF64:
      return t.data<double>()[i];
    case DType::kC64:
      return t.data<std::complex<float>>()[i].real();
    case DType::kC128:
      return t.data<std::complex<double>>()[i].real();
    case DType::kUnknown:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string TextAt(const Tensor& t, int64_t i, std::string_view type) {
  if (t.dtype() == DType::kBool) return t.data<uint8_t>()[i] ? "true" : "false";
  if (t.dtype() == DType::kI64 && type == "uint64")
    return std::to_string(static_cast<uint64_t>(t.data<int64_t>()[i]));
  if (t.dtype() == DType::kU8 && type.starts_with("float")) return Short(NumberAt(t, i, type));
  if (t.dtype() == DType::kI64) return std::to_string(t.data<int64_t>()[i]);
  if (IsInteger(t.dtype())) return std::to_string(static_cast<int64_t>(NumberAt(t, i)));
  std::string text = Short(NumberAt(t, i));
  if (!IsComplex(t.dtype())) return text;
  const double imaginary = t.dtype() == DType::kC64 ? t.data<std::complex<float>>()[i].imag()
                                                    : t.data<std::complex<double>>()[i].imag();
  return text + (std::signbit(imaginary) ? "-" : "+") + Short(std::abs(imaginary)) + "j";
}

Summary Summarize(const Tensor& tensor, std::string_view type) {
  Summary s;
  double sum = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const double x = NumberAt(tensor, i, type);
    if (std::isnan(x)) {
      ++s.nan;
    } else if (std::isinf(x)) {
      ++s.inf;
    } else {
      s.min = s.finite == 0 ? x : std::min(s.min, x);
      s.max = s.finite == 0 ? x : std::max(s.max, x);
      ++s.finite;
      sum += x;
    }
  }
  if (s.finite > 0) s.mean = sum / static_cast<double>(s.finite);
  return s;
}

int64_t ArgMax(const Tensor& tensor, int64_t row) {
  const int64_t width = tensor.dim(-1);
  int64_t best = 0;
  for (int64_t i = 1; i < width; ++i)
    if (NumberAt(tensor, row * width + i) > NumberAt(tensor, row * width + best)) best = i;
  return best;
}

std::string TypeText(DType dtype, std::string_view type) {
  return std::string(type.empty() ? Name(dtype) : type);
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMostShown = 60;
  size_t shown = std::min(text.size(), kMostShown);
  // Not within a character.
  while (shown > 0 && shown < text.size() && (text[shown] & 0xc0) == 0x80) --shown;
  std::string quoted = "\"";
  for (const char c : text.substr(0, shown)) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\x%02x", static_cast<unsigned>(c));
      quoted += code;
    } else {
      quoted += c;
    }
  }
  return quoted + (shown < text.size() ? "…\"" : "\"");
}

}  // namespace heddle::tools
