// softmax(scale * Q K^T + mask) V for one query block after another: the scores of a block never
// leave the cache.
#pragma once

#include <cstdint>

#include "kernels/simd/attention_head.h"

namespace heddle {

// Whether a head has so few queries that its keys are read as they lie.
bool FewQueries(int64_t queries);

// Results do not depend on how queries are cut into calls. `work`: AttentionWork() elements of the
// caller. Threads: any.
void RunAttention(const AttentionHead& head, float* work);

}  // namespace heddle
