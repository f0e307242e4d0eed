#include "formats/pir/numbers.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/half.h"
#include "core/shapes.h"

namespace heddle::pir {
namespace {

DType DTypeNamed(std::string_view name) {
  for (int i = 0; i + 1 < kNumDTypes; ++i)
    if (heddle::Name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return DType::kUnknown;
}

// A number that is not finite is stored as text under "VD".
bool ReadOne(Json value, Numbers* numbers) {
  const Json data = value["D"];
  int64_t integer = 0;
  double real = 0;
  bool flag = false;
  std::string_view text;
  if (data.Get(&integer)) {
    numbers->Add(integer);
  } else if (data.Get(&real)) {
    numbers->Add(real);
  } else if (data.Get(&flag)) {
    numbers->Add(int64_t{flag});
  } else if (value["VD"].Get(&text)) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (text != "INF" && text != "-INF" && text != "NaN") return false;
    numbers->Add(text == "INF"    ? infinity
                 : text == "-INF" ? -infinity
                                  : std::numeric_limits<double>::quiet_NaN());
  } else {
    return false;
  }
  return true;
}

// Reads a list of plain JSON numbers.
bool ReadPlain(Json list, Numbers* numbers) {
  for (const Json item : list) {
    int64_t integer = 0;
    double real = 0;
    if (item.Get(&integer))
      numbers->Add(integer);
    else if (item.Get(&real))
      numbers->Add(real);
    else
      return false;
  }
  return list.is_array();
}

// Whether all numbers are integers, which may also be written as 1e3 or 2.0.
bool AllIntegers(const Numbers& numbers, std::vector<int64_t>* integers) {
  if (numbers.integral) {
    *integers = numbers.integers;
    return true;
  }
  for (double v : numbers.reals) {
    if (!(std::fabs(v) < 9.2e18) || v != std::trunc(v)) return false;
    integers->push_back(static_cast<int64_t>(v));
  }
  return true;
}

}  // namespace

void Numbers::Add(int64_t v) {
  reals.push_back(static_cast<double>(v));
  if (integral) integers.push_back(v);
}
void Numbers::Add(double v) {
  reals.push_back(v);
  integral = false;
}
void Numbers::Append(const Numbers& other) {
  reals.insert(reals.end(), other.reals.begin(), other.reals.end());
  integers.insert(integers.end(), other.integers.begin(), other.integers.end());
  integral &= other.integral;
}

bool ReadNumbers(Json value, Numbers* numbers) {
  std::string_view type, name;
  if (!value["#"].Get(&type)) return false;
  const Json data = value["D"];
  if (type == "1.a_intarray" || type == "0.a_c64" || type == "0.a_c128")
    return ReadPlain(data, numbers);
  if (type == "0.a_array") {
    for (const Json element : data) {
      std::string_view kind;
      element["#"].Get(&kind);
      if (kind == "0.a_array" || !ReadNumbers(element, numbers)) return false;
    }
    return data.is_array();
  }
  if (type == "1.a_scalar") {  // [dtype, number]
    size_t i = 0;
    for (const Json part : data) {
      int64_t integer = 0;
      double real = 0;
      if (i++ != 1) continue;
      if (part.Get(&integer))
        numbers->Add(integer);
      else if (part.Get(&real))
        numbers->Add(real);
      else
        return false;
    }
    return i == 2;
  }
  if (type == "1.a_dtype") {
    if (!data.Get(&name)) return false;
    const DType dtype = DTypeNamed(name);
    numbers->Add(dtype == DType::kUnknown ? int64_t{-1} : DTypeToProto(dtype));
    return dtype != DType::kUnknown || name.starts_with("Undefined");
  }
  return ReadOne(value, numbers);
}

bool ReadText(Json value, std::string_view* text) {
  std::string_view type;
  return value["#"].Get(&type) && (type == "0.a_str" || type == "0.a_tensorname") &&
         value["D"].Get(text);
}

Result<AttrValue> ToAttr(const Numbers& numbers, const AttrValue& like) {
  const bool list = std::holds_alternative<Ints>(like) || std::holds_alternative<Floats>(like);
  if (!list && numbers.size() != 1)
    return InvalidArgument("has ", numbers.size(), " elements; it is one number");
  if (std::holds_alternative<double>(like)) return AttrValue(numbers.reals[0]);
  if (std::holds_alternative<Floats>(like)) return AttrValue(numbers.reals);
  if (std::holds_alternative<bool>(like)) return AttrValue(numbers.reals[0] != 0);
  if (std::holds_alternative<std::string>(like)) {  // old programs store tolerances as text
    char text[32];
    std::snprintf(text, sizeof(text), "%.17g", numbers.reals[0]);
    return AttrValue(std::string(text));
  }
  std::vector<int64_t> integers;
  if (!std::holds_alternative<int64_t>(like) && !std::holds_alternative<Ints>(like))
    return InvalidArgument("is a number, which is not expected");
  if (!AllIntegers(numbers, &integers)) return InvalidArgument("is no integer");
  if (list) return AttrValue(std::move(integers));
  return AttrValue(integers[0]);
}

Result<AttrValue> ToAttr(const Attribute& attribute, const AttrValue& like) {
  std::string_view text;
  if (std::holds_alternative<std::string>(like)) {
    if (ReadText(attribute.value, &text)) return AttrValue(std::string(text));
    return InvalidArgument("attribute '", std::string(attribute.name), "' is no text");
  }
  if (std::holds_alternative<Strings>(like)) {
    Strings texts;
    for (const Json element : attribute.value["D"]) {
      if (!ReadText(element, &text))
        return InvalidArgument("attribute '", std::string(attribute.name), "' is no list of texts");
      texts.emplace_back(text);
    }
    return AttrValue(std::move(texts));
  }
  Numbers numbers;
  if (!ReadNumbers(attribute.value, &numbers))
    return InvalidArgument("attribute '", std::string(attribute.name), "' is no number");
  auto value = ToAttr(numbers, like);
  if (value.ok()) return value;
  return InvalidArgument("attribute '", std::string(attribute.name), "' ",
                         value.status().message());
}

Numbers Rounded(const Numbers& numbers, DType dtype) {
  if (IsInteger(dtype) && numbers.integral) return numbers;
  Numbers rounded;
  for (double v : numbers.reals) {
    if (dtype == DType::kF32)
      rounded.Add(static_cast<double>(static_cast<float>(v)));
    else if (dtype == DType::kF16)
      rounded.Add(static_cast<double>(static_cast<float>(float16(static_cast<float>(v)))));
    else if (dtype == DType::kBF16)
      rounded.Add(static_cast<double>(static_cast<float>(bfloat16(static_cast<float>(v)))));
    else if (IsInteger(dtype) && std::fabs(v) < 9.2e18)
      rounded.Add(static_cast<int64_t>(v));
    else
      rounded.Add(v);
  }
  return rounded;
}

}  // namespace heddle::pir
