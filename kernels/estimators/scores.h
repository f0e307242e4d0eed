// Scores of classes, and the transformations that classical models apply to them.
#pragma once

#include <memory_resource>
#include <string>
#include <vector>

#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

Result<PostTransform> PostTransformOf(const std::string& name);

// The second score that a single one gets.
enum class SecondScore : uint8_t {
  kAbsent,      // none
  kComplement,  // 1 - score stands before it
  kNegative,    // -score stands before it
};

// One row of scores, transformed; a single one may become two.
template <typename T>
void TransformScores(PostTransform transform, SecondScore second, std::pmr::vector<T>* scores);

// Rows of a matrix, or a single row where X is a vector.
struct SampleRows {
  int64_t rows = 1, width = 0;
};
Result<SampleRows> SampleRowsOf(const Shape& x);

// The number of labels that a classifier names: in attribute `ints`, or as texts in
// classlabels_strings, not in both.
Result<int64_t> LabelCountOf(const OpContext& ctx, Key ints);

// X as floats, or as doubles where it is one of those.
template <typename T>
std::pmr::vector<T> Samples(const KernelContext& ctx, const Tensor& x, CallHeap* heap);

}  // namespace heddle
