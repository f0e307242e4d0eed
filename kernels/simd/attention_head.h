// The operands of attention: softmax(scale * Q K^T + mask) V of one head, or softmax of the scores
// where the mask is infinite and of the mask elsewhere.
#pragma once

#include <cstdint>

namespace heddle {

// Queries of one head. Rows are `..._step` elements apart, elements of a row lie side by side.
// Precondition: there are keys.
struct AttentionHead {
  int64_t queries = 0, keys = 0;
  bool few = false;                    // FewQueries() of all the head's queries
  int64_t depth = 0, value_depth = 0;  // elements of a row of Q and K; of V and the output
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float* mask = nullptr;  // added to the scores, or in their place; may be null
  bool selects = false;         // the latter
  float* out = nullptr;
  int64_t q_step = 0, k_step = 0, v_step = 0, out_step = 0;
  int64_t mask_row = 0, mask_column = 0;  // steps of the mask; 0: the same for all
  float scale = 1;
};

// Queries whose scores are held at once.
constexpr int64_t kAttentionBlock = 48;

// Rows of the work space are padded to a multiple of the widest vector.
constexpr int64_t PaddedToVectors(int64_t n) { return (n + 15) / 16 * 16; }

// Elements of work space that a call needs.
constexpr int64_t AttentionWork(bool few, int64_t keys, int64_t depth, int64_t value_depth) {
  if (few) return PaddedToVectors(keys);
  return kAttentionBlock * (PaddedToVectors(keys) + PaddedToVectors(value_depth)) +
         PaddedToVectors(keys) * depth + keys * PaddedToVectors(value_depth);
}

}  // namespace heddle
