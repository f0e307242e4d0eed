// Object arrays of texts, as numpy.save pickles them.
//
// The pickle is read as data: the few constructors that NumPy's own arrays, dtypes and scalars need
// are known by name, nothing is looked up or called, and every other one is an error. Lengths are
// checked against the bytes at hand, and what repeated references may expand to is limited.
#pragma once

#include <string>
#include <string_view>

#include "heddle/status.h"
#include "heddle/string_tensor.h"

namespace heddle::tools {

// The array that `pickle` holds, one element a text: str as UTF-8, bytes as they are. `shape`: what
// the .npy header says, which the pickle must agree with. `name` stands before messages.
// kUnimplemented: elements that are no texts, or an object of another class; kDataLoss: damaged.
Result<StringTensor> ParsePickledStrings(std::string_view pickle, const Shape& shape,
                                         const std::string& name);

// Appends the code point as UTF-8; false for what is none (a surrogate, above 10FFFF).
bool AppendUtf8(uint32_t code, std::string* to);

// The text of a NumPy `U` item: `bytes` of UTF-32 up to the trailing zeros. False: no Unicode.
bool FromUtf32(std::string_view bytes, bool big_endian, std::string* to);

}  // namespace heddle::tools
