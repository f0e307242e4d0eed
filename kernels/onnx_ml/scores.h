// Scores of classes, and what classical models make of them.
#pragma once

#include <string>
#include <vector>

#include "kernels/onnx/operands.h"

namespace heddle {

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

Result<PostTransform> PostTransformOf(const std::string& name);

// Which second score a single one gets.
enum class SecondScore : uint8_t {
  kAbsent,      // none
  kComplement,  // 1 - score stands before it
  kNegative,    // -score stands before it
};

// One row of scores, transformed; a single one may become two.
template <typename T>
void TransformScores(PostTransform transform, SecondScore second, std::vector<T>* scores);

// Rows of a matrix, or a single row where X is a vector.
struct SampleRows {
  int64_t rows = 1, width = 0;
};
Result<SampleRows> SampleRowsOf(const Shape& x);

// X as floats, or as doubles where it is one of those.
template <typename T>
std::vector<T> Samples(const KernelContext& ctx, const Tensor& x);

}  // namespace heddle
