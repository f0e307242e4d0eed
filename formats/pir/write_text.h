// Pieces of a PIR file: types, attributes, numbers, as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attr.h"
#include "core/programs/ir.h"

namespace heddle::pir {

std::string Quoted(std::string_view text);
// A finite number, so that it is read as the same float again, whatever the locale.
std::string RealText(double v);
// The number that a text begins with, whatever the locale; 0 if there is none.
double RealIn(std::string_view text);
// "[a, b]" of texts.
std::string Joined(const std::vector<std::string>& items);

// A dense tensor; dims of an unknown rank are left out.
std::string TensorType(DType dtype, const Shape& shape);
std::string TypeOf(const ir::Var& var);
std::string ListType(const std::vector<std::string>& types);
inline constexpr std::string_view kNoType = R"({"#":"NULL"})";  // of a result that is not made

// The value of an attribute in the kind that PIR has it in ("i32", "f32[]", "dtype"); nothing where
// it is none of that kind.
std::optional<std::string> AttributeText(std::string_view kind, const AttrValue& value);
// Elements of a tensor of this dtype, for the kind "scalar[]".
std::string ElementsText(DType dtype, const Floats& values);
// One attribute of an operator.
std::string Named(std::string_view name, std::string_view value);

}  // namespace heddle::pir
