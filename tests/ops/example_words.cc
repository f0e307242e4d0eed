#include "tests/ops/example_words.h"

#include <cerrno>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/dtype_of.h"

namespace heddle::testing {
namespace {

[[noreturn]] void Fail(std::string_view word, const char* what) {
  throw BadExample("'" + std::string(word) + "' is not " + what);
}

// Reads the number at the beginning of *text, which must be one.
double TakeDouble(std::string* text, std::string_view word) {
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  if (end == text->c_str()) Fail(word, "a number");
  text->erase(0, static_cast<size_t>(end - text->c_str()));
  return value;
}

// "1.5-2j", "3", "2j".
std::complex<double> ToComplex(std::string_view word) {
  std::string text(word);
  const double first = TakeDouble(&text, word);
  if (text.empty()) return {first, 0};
  if (text == "j") return {0, first};
  const double second = TakeDouble(&text, word);
  if (text != "j") Fail(word, "a complex number");
  return {first, second};
}

template <typename T>
T ToElement(std::string_view word) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return T(ToComplex(word));
  } else if constexpr (std::is_same_v<T, bool>) {
    const int64_t value = ToInt(word);
    if (value != 0 && value != 1) Fail(word, "0 or 1");
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t value = ToInt(word);
    if (static_cast<int64_t>(static_cast<T>(value)) != value) Fail(word, "in the dtype's range");
    return static_cast<T>(value);
  } else {
    return T(static_cast<ComputeType<T>>(ToDouble(word)));
  }
}

template <typename T>
void ReadElements(Words* words, Tensor* tensor) {
  T* const data = tensor->mutable_data<T>();
  const int64_t count = tensor->numel();
  int64_t at = 0;
  while (!words->empty()) {
    const std::string word = words->Next("a value");
    const size_t star = word.find('*');
    const int64_t times = star == std::string::npos ? 1 : ToInt(word.substr(star + 1));
    if (times < 0 || times > count - at)
      throw BadExample("more values than the shape " + tensor->shape().ToString() + " has");
    std::fill_n(data + at, times, ToElement<T>(word.substr(0, star)));
    at += times;
  }
  if (at != count)
    throw BadExample(std::to_string(at) + " values, the shape " + tensor->shape().ToString() +
                     " has " + std::to_string(count));
}

// "[…]" without its brackets, cut at the commas.
std::vector<std::string> Items(std::string_view list) {
  if (list.size() < 2 || list.front() != '[' || list.back() != ']') Fail(list, "a list");
  list = list.substr(1, list.size() - 2);
  std::vector<std::string> items;
  if (list.find_first_not_of(' ') == std::string_view::npos) return items;
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const std::string_view item = list.substr(at, comma - at);
    const size_t first = item.find_first_not_of(' '), last = item.find_last_not_of(' ');
    if (first == std::string_view::npos) Fail(list, "a list");
    items.emplace_back(item.substr(first, last - first + 1));
    at = comma + 1;
  }
  return items;
}

bool ToBool(std::string_view word) {
  if (word == "true" || word == "1") return true;
  if (word == "false" || word == "0") return false;
  Fail(word, "true or false");
}

std::vector<std::string> ToStrings(const std::string& value) {
  const auto json = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) Fail(value, "a list of strings");
  std::vector<std::string> strings;
  for (const auto& item : json) {
    if (!item.is_string()) Fail(value, "a list of strings");
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

std::string ToString(const std::string& value) { return ToStrings("[" + value + "]").at(0); }

// A number without a point or exponent is an integer, as in Paddle.
void ToScalar(std::string_view word, proto::Scalar* scalar) {
  if (word == "true" || word == "false") {
    scalar->set_type(proto::Scalar::BOOLEAN);
    scalar->set_b(word == "true");
  } else if (word.find_first_not_of("+-0123456789") == std::string_view::npos) {
    scalar->set_type(proto::Scalar::LONG);
    scalar->set_i(ToInt(word));
  } else {
    scalar->set_type(proto::Scalar::FLOAT64);
    scalar->set_r(ToDouble(word));
  }
}

void SetOne(const std::string& value, proto::OpDesc_Attr* a) {
  switch (a->type()) {
    case proto::INT:
      return a->set_i(static_cast<int32_t>(ToInt(value)));
    case proto::LONG:
      return a->set_l(ToInt(value));
    case proto::FLOAT:
      return a->set_f(static_cast<float>(ToDouble(value)));
    case proto::FLOAT64:
      return a->set_float64(ToDouble(value));
    case proto::BOOLEAN:
      return a->set_b(ToBool(value));
    case proto::STRING:
      return a->set_s(ToString(value));
    case proto::SCALAR:
      return ToScalar(value, a->mutable_scalar());
    case proto::BLOCK:
      return a->set_block_idx(static_cast<int32_t>(ToInt(value)));
    case proto::VAR:
      return a->set_var_name(ToString(value));
    default:
      Fail(value, "of a known attribute type");
  }
}

void AddItem(const std::string& item, proto::OpDesc_Attr* a) {
  switch (a->type()) {
    case proto::INTS:
      return a->add_ints(static_cast<int32_t>(ToInt(item)));
    case proto::LONGS:
      return a->add_longs(ToInt(item));
    case proto::FLOATS:
      return a->add_floats(static_cast<float>(ToDouble(item)));
    case proto::FLOAT64S:
      return a->add_float64s(ToDouble(item));
    case proto::BOOLEANS:
      return a->add_bools(ToBool(item));
    case proto::BLOCKS:
      return a->add_blocks_idx(static_cast<int32_t>(ToInt(item)));
    default:
      return ToScalar(item, a->add_scalars());
  }
}

}  // namespace

void Words::SkipSpace() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
}

std::string_view Words::Peek() const {
  size_t end = 0;
  for (int depth = 0; end < rest_.size() && (depth > 0 || rest_[end] != ' '); ++end)
    depth += rest_[end] == '[' ? 1 : rest_[end] == ']' ? -1 : 0;
  return rest_.substr(0, end);
}

std::string Words::Next(const char* what) {
  if (rest_.empty()) throw BadExample(std::string(what) + " is missing");
  const std::string word(Peek());
  rest_.remove_prefix(word.size());
  SkipSpace();
  return word;
}

bool Words::Take(std::string_view word) {
  if (Peek() != word) return false;
  rest_.remove_prefix(word.size());
  SkipSpace();
  return true;
}

int64_t ToInt(std::string_view word) {
  const std::string text(word);
  char* end = nullptr;
  errno = 0;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0) Fail(word, "an integer");
  return value;
}

double ToDouble(std::string_view word) {
  std::string text(word);
  const double value = TakeDouble(&text, word);
  if (!text.empty()) Fail(word, "a number");
  return value;
}

DType ToDType(std::string_view word) {
  for (int i = 0; i + 1 < kNumDTypes; ++i)
    if (Name(static_cast<DType>(i)) == word) return static_cast<DType>(i);
  Fail(word, "a dtype");
}

std::vector<int64_t> ToIntList(std::string_view word) {
  std::vector<int64_t> ints;
  for (const std::string& item : Items(word)) ints.push_back(ToInt(item));
  return ints;
}

Shape ToShape(std::string_view word) {
  const std::vector<int64_t> dims = ToIntList(word);
  if (dims.size() > Shape::kMaxRank) Fail(word, "a shape");
  return Shape(std::span(dims.data(), dims.size()));
}

LoD ToLoD(std::string_view word) {
  const auto json = nlohmann::json::parse(word, nullptr, /*allow_exceptions=*/false);
  LoD lod;
  if (!json.is_array()) Fail(word, "a list of levels");
  for (const auto& level : json) {
    if (!level.is_array()) Fail(word, "a list of levels");
    lod.emplace_back();
    for (const auto& offset : level) {
      if (!offset.is_number_unsigned()) Fail(word, "a list of levels");
      lod.back().push_back(offset.get<size_t>());
    }
  }
  return lod;
}

Tensor ToTensor(DType dtype, const Shape& shape, Words* words) {
  for (int64_t d : shape)
    if (d < 0) throw BadExample("the shape " + shape.ToString() + " is not a tensor's");
  Tensor tensor = Tensor::Empty(dtype, shape);
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double,
             std::complex<float>, std::complex<double>>(
      dtype, [&](auto tag) { ReadElements<typename decltype(tag)::type>(words, &tensor); });
  return tensor;
}

proto::OpDesc_Attr ToAttr(const std::string& name, const std::string& type,
                          const std::string& value) {
  proto::OpDesc_Attr a;
  proto::AttrType kind;
  if (!proto::AttrType_Parse(type, &kind)) Fail(type, "an attribute type");
  a.set_name(name);
  a.set_type(kind);
  switch (kind) {
    case proto::STRINGS:
      for (std::string& s : ToStrings(value)) a.add_strings(std::move(s));
      break;
    case proto::VARS:
      for (std::string& s : ToStrings(value)) a.add_vars_name(std::move(s));
      break;
    case proto::INTS:
    case proto::LONGS:
    case proto::FLOATS:
    case proto::FLOAT64S:
    case proto::BOOLEANS:
    case proto::BLOCKS:
    case proto::SCALARS:
      for (const std::string& item : Items(value)) AddItem(item, &a);
      break;
    default:
      SetOne(value, &a);
  }
  return a;
}

}  // namespace heddle::testing
