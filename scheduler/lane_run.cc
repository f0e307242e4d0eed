#include "scheduler/lane_run.h"

#include "scheduler/spin.h"

namespace heddle {

LaneStats& LaneStats::operator+=(const LaneStats& o) {
  waits += o.waits;
  switches += o.switches;
  parks += o.parks;
  spun_ns += o.spun_ns;
  parked_ns += o.parked_ns;
  return *this;
}

LaneRun::LaneRun(const LaneSchedule& schedule)
    : schedule_(schedule),
      count_(static_cast<uint32_t>(schedule.lanes)),
      lanes_(std::make_unique<Lane[]>(count_)),
      idle_(std::make_unique<LaneStats[]>(count_)) {}

void LaneRun::Begin(const OnWait* on_wait) {
  on_wait_ = on_wait;
  // Relaxed: the caller publishes the run to other threads afterwards, which orders these stores
  // before their reads.
  for (uint32_t l = 0; l < count_; ++l) {
    lanes_[l].progress.store(0, std::memory_order_relaxed);
    lanes_[l].at.store(schedule_.segment_begin[l], std::memory_order_relaxed);
    lanes_[l].hold.store(kFree, std::memory_order_relaxed);
    lanes_[l].stats = LaneStats();
    idle_[l] = LaneStats();
  }
  free_.store(count_, std::memory_order_relaxed);
  unfinished_.store(count_, std::memory_order_relaxed);
  stopped_.store(false, std::memory_order_relaxed);
}

void LaneRun::Stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  changed_.Notify();
}

LaneStats LaneRun::stats() const {
  LaneStats sum;
  for (uint32_t l = 0; l < count_; ++l) {
    sum += lanes_[l].stats;
    sum += idle_[l];
  }
  return sum;
}

// Whether `lane` is free and all waits of its next segment are fulfilled. The answer may be out of
// date when it is used.
bool LaneRun::CanGoOn(const Lane& lane) const {
  if (lane.hold.load(std::memory_order_seq_cst) != kFree) return false;
  const uint32_t l = static_cast<uint32_t>(&lane - lanes_.get());
  const uint32_t at = lane.at.load(std::memory_order_relaxed);
  // The lane has no segment left: it only has to be marked as done.
  if (at >= schedule_.segment_begin[l + 1]) return true;
  const LaneSegment& s = schedule_.segments[at];
  for (uint32_t w = s.wait_begin; w < s.wait_end; ++w)
    if (!Reached(schedule_.waits[w], std::memory_order_seq_cst)) return false;
  return true;
}

bool LaneRun::AnyCanGoOn() const {
  if (free_.load(std::memory_order_seq_cst) == 0) return false;
  for (uint32_t l = 0; l < count_; ++l)
    if (CanGoOn(lanes_[l])) return true;
  return false;
}

bool LaneRun::TryTake(Lane& lane) {
  uint32_t expected = kFree;
  // Acquire: what the thread that let go of the lane did happens before what this thread does in
  // it.
  if (!lane.hold.compare_exchange_strong(expected, kTaken, std::memory_order_acquire,
                                         std::memory_order_relaxed))
    return false;
  free_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

LaneRun::Lane* LaneRun::TakeOneThatCanGoOn(uint32_t first) {
  if (free_.load(std::memory_order_relaxed) == 0) return nullptr;
  for (uint32_t k = 0; k < count_; ++k) {
    Lane& lane = lanes_[(first + k) % count_];
    if (CanGoOn(lane) && TryTake(lane)) return &lane;
  }
  return nullptr;
}

void LaneRun::LetGo(Lane& lane, uint32_t at) {
  ++lane.stats.switches;
  lane.at.store(at, std::memory_order_relaxed);
  free_.fetch_add(1, std::memory_order_relaxed);
  lane.hold.store(kFree, std::memory_order_seq_cst);
  // If the wait was fulfilled meanwhile, its signal woke nobody for this lane: notify again.
  if (CanGoOn(lane)) changed_.Notify();
}

LaneRun::Outcome LaneRun::Await(int participant, const LaneWait& wait, Lane& lane) {
  if (Reached(wait, std::memory_order_acquire)) return Outcome::kReady;
  if (on_wait_ == nullptr) return AwaitLong(wait, lane);
  const uint64_t begin = Ticks();
  const Outcome outcome = AwaitLong(wait, lane);
  (*on_wait_)(participant, &wait, begin);
  return outcome;
}

LaneRun::Outcome LaneRun::AwaitLong(const LaneWait& wait, Lane& lane) {
  ++lane.stats.waits;
  for (;;) {
    Spin spin(kSpinNs);
    do {
      if (Reached(wait, std::memory_order_acquire)) {
        lane.stats.spun_ns += spin.waited();
        return Outcome::kReady;
      }
      if (stopped_.load(std::memory_order_relaxed)) return Outcome::kStopped;
      if (spin.waited() > kSwitchNs && AnyCanGoOn()) return Outcome::kSwitch;
    } while (spin.Once());
    lane.stats.spun_ns += spin.waited();
    const uint32_t key = changed_.PrepareWait();
    if (Reached(wait, std::memory_order_seq_cst) || stopped_.load(std::memory_order_seq_cst) ||
        AnyCanGoOn()) {
      changed_.CancelWait();
      continue;
    }
    ++lane.stats.parks;
    const uint64_t start = NowNs();
    changed_.Wait(key);
    lane.stats.parked_ns += NowNs() - start;
  }
}

void LaneRun::Execute(int participant, Lane& lane, Body body) {
  const uint32_t l = static_cast<uint32_t>(&lane - lanes_.get());
  const uint32_t end = schedule_.segment_begin[l + 1];
  for (uint32_t at = lane.at.load(std::memory_order_relaxed); at < end; ++at) {
    const LaneSegment& s = schedule_.segments[at];
    for (uint32_t w = s.wait_begin; w < s.wait_end; ++w) {
      const Outcome outcome = Await(participant, schedule_.waits[w], lane);
      if (outcome == Outcome::kStopped) return;
      if (outcome == Outcome::kSwitch) return LetGo(lane, at);
    }
    if (!body(l, s.begin, s.end)) return Stop();
    if (s.signal == 0) continue;
    // seq_cst: the store is also the first half of the EventCount's protocol.
    lane.progress.store(s.signal, std::memory_order_seq_cst);
    changed_.Notify();
  }
  lane.hold.store(kDone, std::memory_order_relaxed);
  // Release: all work of this lane happens before whatever a thread does that reads 0 here. seq_cst
  // for the EventCount: the last lane ends the run.
  if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1) changed_.Notify();
}

// Waits, without holding a lane: true when a lane can be taken, false when the run is over.
bool LaneRun::AwaitLane(int participant) {
  LaneStats* const stats = &idle_[participant];
  if (on_wait_ == nullptr) return AwaitLaneLong(stats);
  const uint64_t begin = Ticks();
  const bool more = AwaitLaneLong(stats);
  (*on_wait_)(participant, nullptr, begin);
  return more;
}

bool LaneRun::AwaitLaneLong(LaneStats* stats) {
  for (;;) {
    Spin spin(kSpinNs);
    do {
      if (finished() || stopped_.load(std::memory_order_acquire)) {
        stats->spun_ns += spin.waited();
        return false;
      }
      if (AnyCanGoOn()) return true;
    } while (spin.Once());
    stats->spun_ns += spin.waited();
    const uint32_t key = changed_.PrepareWait();
    if (unfinished_.load(std::memory_order_seq_cst) == 0 ||
        stopped_.load(std::memory_order_seq_cst) || AnyCanGoOn()) {
      changed_.CancelWait();
      continue;
    }
    ++stats->parks;
    const uint64_t start = NowNs();
    changed_.Wait(key);
    stats->parked_ns += NowNs() - start;
  }
}

void LaneRun::Participate(int participant, Body body) {
  const auto own = static_cast<uint32_t>(participant);
  if (own >= count_) return;
  // A participant begins with the lane of its own number in every run: that lane's data may still
  // be in its cache.
  if (TryTake(lanes_[own])) Execute(participant, lanes_[own], body);
  while (!stopped_.load(std::memory_order_acquire)) {
    if (Lane* lane = TakeOneThatCanGoOn(own))
      Execute(participant, *lane, body);
    else if (!AwaitLane(participant))
      return;
  }
}

}  // namespace heddle
