#include <utility>

#include "device/cuda/grid/sorted_rows.h"

namespace heddle::HEDDLE_GRID {
namespace {

constexpr int64_t kFirstRun = 64;  // elements that are sorted by counting

struct RowList {
  int64_t* row;
  int32_t* from;
};

// Sorts runs of kFirstRun elements: each has its place behind the lesser ones and its equals before
// it.
struct FirstRunsBody {
  Ids ids;
  RowList to;
  int64_t count;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t begin = i / kFirstRun * kFirstRun;
    const int64_t end = begin + kFirstRun < count ? begin + kFirstRun : count;
    const int64_t id = ids[i];
    int64_t place = begin;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t other = ids[k];
      if (other < id || (other == id && k < i)) ++place;
    }
    to.row[place] = id;
    to.from[place] = static_cast<int32_t>(i);
  }
};

// Merges pairs of sorted runs of `run` elements. Elements of the first one go before their equals
// of the second one.
struct MergeRunsBody {
  RowList in, to;
  int64_t run, count;
  HEDDLE_BODY void operator()(int64_t i) const {
    const bool second = i / run % 2 != 0;
    const int64_t pair = i / (2 * run) * 2 * run;
    const int64_t other = second ? pair : pair + run < count ? pair + run : count;
    const int64_t other_end = other + run < count ? other + run : count;
    const int64_t id = in.row[i];
    int64_t begin = other, end = other_end;
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      if (in.row[middle] < id || (second && in.row[middle] == id))
        begin = middle + 1;
      else
        end = middle;
    }
    const int64_t own = i - pair - (second ? run : 0);
    const int64_t place = pair + own + (begin - other);
    to.row[place] = id;
    to.from[place] = in.from[i];
  }
};

}  // namespace

Result<SortedRows> SortRows(Queue& queue, const Ids& ids, int64_t count, Scratch& scratch) {
  constexpr int64_t kFloats = 2 * (sizeof(int64_t) + sizeof(int32_t)) / sizeof(float);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(kFloats * count));
  auto* const rows = reinterpret_cast<int64_t*>(scratch.data());
  auto* const from = reinterpret_cast<int32_t*>(rows + 2 * count);
  RowList now{rows, from}, next{rows + count, from + count};
  HEDDLE_RETURN_IF_ERROR(Each(queue, count, FirstRunsBody{ids, now, count}));
  for (int64_t run = kFirstRun; run < count; run *= 2) {
    HEDDLE_RETURN_IF_ERROR(Each(queue, count, MergeRunsBody{now, next, run, count}));
    std::swap(now, next);
  }
  return SortedRows{now.row, now.from, count};
}

}  // namespace heddle::HEDDLE_GRID
