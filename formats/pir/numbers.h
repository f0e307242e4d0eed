// Numbers of a file, whose widths differ between versions, in the types that operators declare.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attr.h"
#include "formats/pir/file.h"
#include "heddle/status.h"

namespace heddle::pir {

// Numbers, whatever type the file has them in. A complex number is two.
struct Numbers {
  std::vector<double> reals;
  std::vector<int64_t> integers;  // the same, exactly; as far as `integral`
  bool integral = true;

  size_t size() const { return reals.size(); }
  void Add(int64_t v);
  void Add(double v);
  void Append(const Numbers& other);
};

// The numbers in an attribute's value: one, a list, or the number that stands for a dtype in
// ProgramDesc (-1: none). False where it holds none.
bool ReadNumbers(Json value, Numbers* numbers);
// The same for a text.
bool ReadText(Json value, std::string_view* text);

// `like` gives the wanted type. Errors say what is expected.
Result<AttrValue> ToAttr(const Numbers& numbers, const AttrValue& like);
Result<AttrValue> ToAttr(const Attribute& attribute, const AttrValue& like);

// The number, rounded to `dtype` as a tensor of it holds it.
Numbers Rounded(const Numbers& numbers, DType dtype);

}  // namespace heddle::pir
