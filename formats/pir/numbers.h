// Reads the numbers of a file, whose widths differ between versions, as the types that operators
// declare.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attr.h"
#include "formats/pir/file.h"
#include "heddle/status.h"

namespace heddle::pir {

// A list of numbers of any type. A complex number counts as two.
struct Numbers {
  std::vector<double> reals;
  std::vector<int64_t> integers;  // the same as exact integers, if `integral`
  bool integral = true;

  size_t size() const { return reals.size(); }
  void Add(int64_t v);
  void Add(double v);
  void Append(const Numbers& other);
};

// Reads an attribute's value: a number, a list, or a dtype, as its number in ProgramDesc (-1:
// none). False: it holds none of these.
bool ReadNumbers(Json value, Numbers* numbers);
// The same for text.
bool ReadText(Json value, std::string_view* text);

// Converts to the type of `like`. Errors say what was expected.
Result<AttrValue> ToAttr(const Numbers& numbers, const AttrValue& like);
Result<AttrValue> ToAttr(const Attribute& attribute, const AttrValue& like);

// The numbers rounded to `dtype`, as a tensor holds them.
Numbers Rounded(const Numbers& numbers, DType dtype);

}  // namespace heddle::pir
