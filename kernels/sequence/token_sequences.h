// Token sequences as rows of a padded matrix with lengths, or packed.
#pragma once

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {

// Sequences of tokens: rows of a padded matrix with their lengths, or packed.
struct Tokens {
  std::vector<int64_t> begin, length;
};

inline Result<Tokens> TokensOf(const Tensor& t, const Tensor* lengths, const char* slot) {
  Tokens tokens;
  if (lengths == nullptr) {
    if (t.rank() < 1 || t.numel() != t.dim(0))
      return InvalidArgument(slot, " ", t.shape().ToString(), " is not one token per row");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(t, slot, 0));
    for (const int64_t i : Watched(SequenceCount(*offsets))) {
      tokens.begin.push_back(Begin(*offsets, i));
      tokens.length.push_back(Length(*offsets, i));
    }
    return tokens;
  }
  const Ints given = ToInts(*lengths);
  if (t.rank() < 2 || std::ssize(given) != t.dim(0))
    return InvalidArgument(slot, " ", t.shape().ToString(), " does not fit ", given.size(),
                           " lengths");
  const int64_t width = t.numel() / std::max<int64_t>(t.dim(0), 1);
  for (const int64_t i : Watched(t.dim(0))) {
    const int64_t n = given[static_cast<size_t>(i)];
    if (n < 0 || n > width) return OutOfRange("length ", n, " is not in [0, ", width, "]");
    tokens.begin.push_back(i * width);
    tokens.length.push_back(n);
  }
  return tokens;
}

}  // namespace heddle
