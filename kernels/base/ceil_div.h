// Integer division that rounds up.
#pragma once

#include <cstdint>

namespace heddle {

// n / by rounded up, for n >= 0 and by > 0. At most 0 for negative n.
constexpr int64_t CeilDiv(int64_t n, int64_t by) { return (n + by - 1) / by; }

}  // namespace heddle
