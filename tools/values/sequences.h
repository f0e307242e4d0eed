// Sequences in archives: an array NAME.lod beside NAME holds its sequence offsets (0, 2, 5, …);
// NAME.lod.1, NAME.lod.2, … those of further, nested levels. NAME's rows are all sequences' rows,
// one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "heddle/tensor.h"
#include "tools/values/npy.h"

namespace heddle::tools {

// Takes the offsets out of `arrays` and gives them to the arrays they belong to. `path` is for
// messages.
Status AttachOffsets(const std::string& path, NamedTensors* arrays);

// Sequences of the outermost level.
inline int64_t SequenceCount(const Tensor& t) {
  return static_cast<int64_t>(t.lod().front().size()) - 1;
}
// The given sequences of the outermost level, one after the other. Without `keep_outermost` the
// next level takes its place (a whole batch out of several); a tensor of one level has none then.
// Not initialized() when out of memory.
Tensor TakeSequences(const Tensor& t, std::vector<int64_t> sequences, bool keep_outermost);

// Rows of the first axis, one after another. Not initialized() when out of memory.
Tensor GatherRows(const Tensor& t, const int64_t* rows, int64_t count);

}  // namespace heddle::tools
