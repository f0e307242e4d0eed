// Element types that a program's file may give and that heddle holds in another dtype
// (heddle::InputTypes, heddle::OutputTypes): unsigned integers, integers of 4 and 2 bits, floats of
// 8 and 4 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/dtype.h"
#include "heddle/status.h"
#include "heddle/tensor.h"
#include "heddle/value.h"
#include "tools/values/npy.h"

namespace heddle::tools {

struct ElementType {
  enum class Kind : uint8_t {
    kWide,   // an unsigned integer, held as a signed one: of more bits, or uint64 by its bits
    kSmall,  // an integer of fewer bits than it is held in
    kFloat,  // a float, held by its bits
  };
  std::string_view name;
  Kind kind;
  DType held;
  int bits;
  int exponent_bits = 0;  // of floats
};

// The type called so; null where the dtype says it.
const ElementType* FindElementType(std::string_view name);

// The number that the bits of such a float stand for.
double FloatOf(const ElementType& type, uint8_t bits);

// The value to feed to an input for an array of a file. `dtype`: in which heddle holds the input;
// `type`: what the program's file says, "string" for texts, empty where `dtype` says it. `what`
// stands in messages, as in "input 'x'"; `file` before them. kInvalidArgument: the array is of
// another type, or holds a number that the input cannot hold. Types that heddle has are not
// compared here: the run does so.
Result<Value> FeedValue(const NpyArray& array, DType dtype, std::string_view type,
                        const std::string& file, const std::string& what);

}  // namespace heddle::tools
