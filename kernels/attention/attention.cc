#include "kernels/attention/attention.h"

#include <algorithm>

#include "kernels/simd/microkernels.h"

namespace heddle {

bool FewQueries(int64_t queries) { return queries < 4; }

void RunAttention(const AttentionHead& head, float* work) {
  if (head.keys == 0) {  // empty sums are 0, as in the products that this operator replaces
    for (int64_t i = 0; i < head.queries; ++i)
      std::fill_n(head.out + i * head.out_step, head.value_depth, 0.f);
    return;
  }
  simd::BestMicrokernels()->attention(head, work);
}

}  // namespace heddle
