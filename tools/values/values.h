// Values as files, and what can be said about them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle::tools {

// Writes `value` as `<stem>.npy`, with sequence offsets in `<stem>.lod`; the elements of a tensor
// array as `<stem>_<i>.npy`; selected rows as `<stem>.npy` and `<stem>_rows.npy`. Returns the paths
// of the .npy files. `type` as for WriteNpy: of the tensor, or of those in the array.
Result<std::vector<std::string>> WriteValue(const Value& value, const std::string& stem,
                                            const std::string& type = "");

// "" when both hold the same bits, otherwise what differs.
std::string Difference(const Value& a, const Value& b);

// Sequence offsets as text: levels joined by `level_separator`, offsets by commas.
std::string LodText(const LoD& lod, const std::string& level_separator);
// Parses levels separated by `|`: "0,2,5" or "0,2|0,3,5". Operators such as gru keep other numbers
// than offsets there, so any are taken.
Result<LoD> ParseLod(const std::string& text);
// Whether every level begins with 0 and does not decrease.
Status CheckOffsets(const LoD& lod);

// What is said of elements takes the type of heddle::OutputTypes: "uint64" is an int64 tensor's
// bits read without a sign, "float8e5m2" a uint8 tensor's bits; empty where the dtype says it.

// Element `i` of a contiguous tensor as a number; the real part of a complex one.
double NumberAt(const Tensor& tensor, int64_t i, std::string_view type = {});
// The same as text, short but exact for integers.
std::string TextAt(const Tensor& tensor, int64_t i, std::string_view type = {});

struct Summary {
  double min = 0, max = 0, mean = 0;  // of the finite elements
  int64_t finite = 0;
  int64_t nan = 0, inf = 0;
};
Summary Summarize(const Tensor& tensor, std::string_view type = {});

// Index of the largest element of row `row`, where the tensor is seen as rows of its last axis.
int64_t ArgMax(const Tensor& tensor, int64_t row);

// The type as messages name it: what the file says, or the dtype's name.
std::string TypeText(DType dtype, std::string_view type);
// A text for a terminal: in quotes, with escapes for what does not show, cut where it is long.
std::string Quoted(std::string_view text);

}  // namespace heddle::tools
