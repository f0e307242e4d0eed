// softmax(scale * Q K^T + mask) V for one query block after another: the scores of a block never
// leave the cache.
#pragma once

#include <cstdint>

namespace heddle {

// Queries of one head. Rows are `..._step` elements apart, elements of a row lie side by side.
struct AttentionHead {
  int64_t queries = 0, keys = 0;
  bool few = false;                    // FewQueries() of all the head's queries
  int64_t depth = 0, value_depth = 0;  // of a row of Q and K; of V and the output
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float* mask = nullptr;  // added to the scores; may be null
  float* out = nullptr;
  int64_t q_step = 0, k_step = 0, v_step = 0, out_step = 0;
  int64_t mask_row = 0, mask_column = 0;  // steps of the mask; 0: the same for all
  float scale = 1;
};

// So few queries in a head that its keys are read as they lie.
bool FewQueries(int64_t queries);
// Elements of work space that a call needs.
int64_t AttentionWork(bool few, int64_t keys, int64_t depth, int64_t value_depth);

// Results do not depend on how queries are cut into calls. Threads: any; `work` is the caller's.
void RunAttention(const AttentionHead& head, float* work);

}  // namespace heddle
