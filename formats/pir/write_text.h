// Writes parts of a PIR file as text: types, attributes, numbers.
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
// A finite number with 17 digits, which read back as the same double, in any locale.
std::string RealText(double v);
// The number at the beginning of a text, in any locale; 0 if there is none.
double RealIn(std::string_view text);
// The items as "[a, b]".
std::string Joined(const std::vector<std::string>& items);

// The type of a dense tensor; dims of unknown rank are left out.
std::string TensorType(DType dtype, const Shape& shape);
std::string TypeOf(const ir::Var& var);
std::string ListType(const std::vector<std::string>& types);
inline constexpr std::string_view kNoType = R"({"#":"NULL"})";  // type of a result that is not made

// An attribute's value in PIR's kind ("i32", "f32[]", "dtype"); nothing if the value is not of that
// kind.
std::optional<std::string> AttributeText(std::string_view kind, const AttrValue& value);
// The elements of a tensor of this dtype, for the kind "scalar[]".
std::string ElementsText(DType dtype, const Floats& values);
// One attribute of an operator: its name and value.
std::string Named(std::string_view name, std::string_view value);

}  // namespace heddle::pir
