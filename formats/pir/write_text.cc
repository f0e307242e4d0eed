#include "formats/pir/write_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "core/error.h"
#include "core/shapes.h"

namespace heddle::pir {
namespace {

constexpr std::array<std::string_view, 13> kElements = {
    "bool", "ui8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128", "f32"};

std::string Tagged(std::string_view tag, const std::string& data) {
  return R"({"#":")" + std::string(tag) + R"(","D":)" + data + "}";
}

std::string DimsText(const Shape& shape) {
  std::vector<std::string> dims;
  for (int64_t d : shape) dims.push_back(std::to_string(d));
  return Joined(dims);
}

// One number of kind bool, i32, i64, f32 or f64.
std::optional<std::string> NumberText(std::string_view kind, double real, int64_t integer) {
  if (kind == "bool") return Tagged("0.a_bool", integer != 0 ? "true" : "false");
  if (kind == "i32" || kind == "i64")
    return Tagged("0.a_" + std::string(kind), std::to_string(integer));
  if (kind != "f32" && kind != "f64") return std::nullopt;
  const std::string tag = "0.a_" + std::string(kind);
  if (std::isfinite(real)) return Tagged(tag, RealText(real));
  const char* word = std::isnan(real) ? "NaN" : real > 0 ? "INF" : "-INF";
  return R"({"#":")" + tag + R"(","VD":")" + word + "\"}";
}

std::optional<std::string> OneText(std::string_view kind, const AttrValue& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return kind == "str" ? std::optional(Tagged("0.a_str", Quoted(*text))) : std::nullopt;
  if (const auto* v = std::get_if<bool>(&value)) return NumberText(kind, *v, *v);
  if (const auto* v = std::get_if<int64_t>(&value))
    return NumberText(kind, static_cast<double>(*v), *v);
  if (const auto* v = std::get_if<double>(&value))
    return NumberText(kind, *v, std::isfinite(*v) ? static_cast<int64_t>(*v) : 0);
  return std::nullopt;
}

std::optional<std::string> ListText(std::string_view kind, const AttrValue& value) {
  std::vector<std::string> items;
  const auto add = [&](const AttrValue& item) {
    if (auto text = OneText(kind, item)) items.push_back(*std::move(text));
  };
  size_t wanted = 0;
  if (const auto* list = std::get_if<Ints>(&value)) {
    for (int64_t v : *list) add(v);
    wanted = list->size();
  } else if (const auto* reals = std::get_if<Floats>(&value)) {
    for (double v : *reals) add(v);
    wanted = reals->size();
  } else if (const auto* texts = std::get_if<Strings>(&value)) {
    for (const std::string& v : *texts) add(v);
    wanted = texts->size();
  } else {
    add(value);
    wanted = 1;
  }
  if (items.size() != wanted) return std::nullopt;
  return Tagged("0.a_array", Joined(items));
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string RealText(double v) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof(text), v, std::chars_format::general, 17).ptr;
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

double RealIn(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double real = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), real).ec ==
      std::errc::result_out_of_range)
    real = std::strtod(std::string(text).c_str(), nullptr);
  return real;
}

std::string Joined(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) {
    if (out.size() > 1) out += ',';
    out += item;
  }
  return out + "]";
}

std::string TensorType(DType dtype, const Shape& shape) {
  const std::string element(kElements[static_cast<size_t>(dtype)]);
  return Tagged("0.t_dtensor",
                "[{\"#\":\"0.t_" + element + "\"}," + DimsText(shape) + ",\"NCHW\",[],0]");
}

std::string TypeOf(const ir::Var& var) {
  const std::string element(kElements[static_cast<size_t>(var.dtype)]);
  if (var.kind == ir::VarKind::kArray)
    return Tagged("1.t_dense_tensor_array", "[{\"#\":\"0.t_" + element + "\"},[0],\"NCHW\"]");
  if (var.kind == ir::VarKind::kRows)
    return Tagged("1.t_selected_rows",
                  "[{\"#\":\"0.t_" + element + "\"}," + DimsText(var.shape) + ",\"NCHW\",[],0]");
  return TensorType(var.dtype, var.shape);
}

std::string ListType(const std::vector<std::string>& types) {
  return Tagged("0.t_vec", Joined(types));
}

std::optional<std::string> AttributeText(std::string_view kind, const AttrValue& value) {
  if (kind == "place") return Tagged("1.a_place", "[0,0,\"\"]");
  if (kind == "ints") {
    const auto* list = std::get_if<Ints>(&value);
    if (list == nullptr) return std::nullopt;
    std::vector<std::string> items;
    for (int64_t v : *list) items.push_back(std::to_string(v));
    return Tagged("1.a_intarray", Joined(items));
  }
  if (kind == "dtype") {
    const auto* number = std::get_if<int64_t>(&value);
    if (number == nullptr) return std::nullopt;
    const DType dtype = *number < 0 ? DType::kUnknown : DTypeFromProto(*number);
    return Tagged("1.a_dtype",
                  Quoted(dtype == DType::kUnknown ? "Undefined(ALL_DTYPE)" : heddle::Name(dtype)));
  }
  if (kind == "scalar:float") return OneText("f32", value);
  if (kind == "scalar:double") return OneText("f64", value);
  if (kind == "scalar:int64_t") return OneText("i64", value);
  if (kind.ends_with("[]")) return ListText(kind.substr(0, kind.size() - 2), value);
  return OneText(kind, value);
}

std::string ElementsText(DType dtype, const Floats& values) {
  std::string_view kind = "f64";
  if (dtype == DType::kBool) kind = "bool";
  if (dtype == DType::kI32 || dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kU8)
    kind = "i32";
  if (dtype == DType::kI64) kind = "i64";
  if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) kind = "f32";
  return *ListText(kind, values);
}

std::string Named(std::string_view name, std::string_view value) {
  return R"({"AT":)" + std::string(value) + R"(,"N":)" + Quoted(name) + "}";
}

}  // namespace heddle::pir
