#include "memory/token_planner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

namespace heddle {
namespace {

class TokenPlanner {
 public:
  TokenPlanner(std::span<const TokenValue> values, size_t range) : values_(values), range_(range) {
    plan_.token.assign(values.size(), kNoToken);
  }

  std::optional<TokenPlan> Run() {
    std::vector<uint32_t> order(values_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return values_[a].first < values_[b].first; });
    for (uint32_t v : order)
      if (values_[v].bytes > 0) Serve(v);
    for (size_t bytes : plan_.bytes)
      if (__builtin_add_overflow(plan_.total, bytes, &plan_.total)) return std::nullopt;
    return std::move(plan_);
  }

 private:
  // Tokens that may share memory: free ones by size, and used ones by the step that frees them.
  struct Pool {
    std::multimap<size_t, uint32_t> free;
    using Ending = std::pair<int32_t, uint32_t>;
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> taken;
  };

  void Serve(uint32_t v) {
    const TokenValue& value = values_[v];
    if (value.pinned) {
      plan_.token[v] = NewToken(value.bytes);
      return;
    }
    Pool& pool = pools_[{value.kind, value.scope}];
    for (; !pool.taken.empty() && pool.taken.top().first < value.first; pool.taken.pop())
      pool.free.emplace(plan_.bytes[pool.taken.top().second], pool.taken.top().second);
    uint32_t token = TakeFree(pool, value.bytes);
    if (token == kNoToken) token = NewToken(value.bytes);
    plan_.bytes[token] = std::max(plan_.bytes[token], value.bytes);
    plan_.token[v] = token;
    pool.taken.emplace(std::max(value.first, value.last), token);
  }

  uint32_t TakeFree(Pool& pool, size_t bytes) const {
    auto found = pool.free.lower_bound(bytes);
    if (found == pool.free.end() || found->first > Scaled(bytes)) {
      if (found == pool.free.begin()) return kNoToken;
      --found;
      if (Scaled(found->first) < bytes) return kNoToken;
    }
    const uint32_t token = found->second;
    pool.free.erase(found);
    return token;
  }
  // Times the range, or as much as there can be.
  size_t Scaled(size_t bytes) const {
    size_t scaled = 0;
    return __builtin_mul_overflow(bytes, range_, &scaled) ? std::numeric_limits<size_t>::max()
                                                          : scaled;
  }

  uint32_t NewToken(size_t bytes) {
    plan_.bytes.push_back(bytes);
    return static_cast<uint32_t>(plan_.bytes.size() - 1);
  }

  std::span<const TokenValue> values_;
  const size_t range_;
  TokenPlan plan_;
  std::map<std::pair<uint32_t, uint32_t>, Pool> pools_;  // by kind and scope
};

}  // namespace

std::optional<TokenPlan> PlanTokens(std::span<const TokenValue> values, size_t range) {
  return TokenPlanner(values, range).Run();
}

std::optional<size_t> TokenBytes(uint64_t elements, uint32_t bits, uint32_t numbers) {
  const uint64_t each =
      (uint64_t{bits} * numbers + 7) / 8;  // a product of two 32-bit numbers has room for 7 more
  size_t bytes = 0;
  if (__builtin_mul_overflow(elements, each, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace heddle
