#include "passes/functions/find_repeats.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "core/interrupts.h"

namespace heddle::passes {
namespace {

// The periods that are tried: those that the most pairs of equal elements are apart. Elements that
// occur several times in a period have pairs at other distances, so earlier occurrences count, too.
constexpr size_t kTriedPeriods = 24, kEarlier = 8;
constexpr size_t kMostRepeats = 16;

class Finder {
 public:
  Finder(const std::vector<uint64_t>& signs, const RepeatLimits& limits)
      : signs_(signs), limits_(limits) {}

  std::vector<Repeat> Run() {
    std::vector<std::pair<size_t, size_t>> open = {{0, signs_.size()}};
    while (!open.empty() && found_.size() < kMostRepeats) {
      const auto [begin, end] = open.back();
      open.pop_back();
      const Repeat best = BestIn(begin, end);
      if (best.length == 0) continue;
      found_.push_back(best);
      open.emplace_back(begin, best.begin);
      open.emplace_back(best.begin + best.length, end);
    }
    std::sort(found_.begin(), found_.end(),
              [](const Repeat& a, const Repeat& b) { return a.begin < b.begin; });
    return std::move(found_);
  }

 private:
  std::vector<size_t> PeriodsIn(size_t begin, size_t end) const {
    struct Earlier {
      std::array<size_t, kEarlier> at;
      size_t count = 0;
    };
    std::unordered_map<uint64_t, Earlier> earlier;
    std::unordered_map<size_t, size_t> pairs;  // by distance
    for (size_t i = begin; i < end; ++i) {
      LookForInterrupt();
      if (signs_[i] == 0) continue;
      Earlier& e = earlier[signs_[i]];
      for (size_t k = 0; k < std::min(e.count, kEarlier); ++k) ++pairs[i - e.at[k]];
      e.at[e.count++ % kEarlier] = i;
    }
    std::vector<std::pair<size_t, size_t>> ranked;  // number of pairs, period
    for (const auto& [period, count] : pairs)
      if (period >= limits_.least_period) ranked.emplace_back(count, period);
    const size_t kept = std::min(ranked.size(), kTriedPeriods);
    std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept),
                      ranked.end(), [](const auto& a, const auto& b) {
                        return a.first != b.first ? a.first > b.first : a.second < b.second;
                      });
    std::vector<size_t> periods;
    for (size_t k = 0; k < kept; ++k) periods.push_back(ranked[k].second);
    return periods;
  }

  // The repeat that saves the most elements; of equal ones that with the shortest period.
  Repeat BestIn(size_t begin, size_t end) const {
    Repeat best;
    size_t saved = 0;
    const auto take = [&](size_t from, size_t period, size_t equal) {
      const Repeat r{from, period, equal + period};
      const size_t saves = (r.count() - 1) * period;
      if (r.count() < limits_.least_count || saves < limits_.least_saved) return;
      if (saves < saved || (saves == saved && period >= best.period)) return;
      best = r;
      saved = saves;
    };
    for (const size_t period : PeriodsIn(begin, end)) {
      size_t equal = 0;
      for (size_t i = begin; i + period < end; ++i) {
        LookForInterrupt();
        if (signs_[i] != 0 && signs_[i] == signs_[i + period]) {
          ++equal;
          continue;
        }
        if (equal > 0) take(i - equal, period, equal);
        equal = 0;
      }
      if (equal > 0) take(end - period - equal, period, equal);
    }
    return best;
  }

  const std::vector<uint64_t>& signs_;
  const RepeatLimits& limits_;
  std::vector<Repeat> found_;
};

}  // namespace

std::vector<Repeat> FindRepeats(const std::vector<uint64_t>& signs, const RepeatLimits& limits) {
  return Finder(signs, limits).Run();
}

}  // namespace heddle::passes
