#include "benchmarks/scheduling/workload.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

namespace heddle::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Slot = Workload::Slot;

constexpr std::array<std::string_view, 5> kNames = {"empty", "100ns", "1us", "10us", "check"};
constexpr std::array<double, 5> kNominalNs = {0, 100, 1'000, 10'000, 0};

// Every step waits for the one before: the time is that of the latencies, whatever else the core
// does, and no memory is touched.
uint64_t MultiplyAdd(uint64_t x, uint32_t steps) {
  for (uint32_t i = 0; i < steps; ++i) x = x * 0x5851f42d4c957f2d + 0x14057b7ef767814f;
  return x;
}

uint64_t Hash(uint64_t x) {
  x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 29)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}

void RunEmpty(void* slot) { ++static_cast<Slot*>(slot)->count; }

void RunChain(void* arg) {
  Slot& slot = *static_cast<Slot*>(arg);
  ++slot.count;
  slot.value = MultiplyAdd(slot.value, slot.steps);
}

// The least time of a call of `work`, in trials of `calls` for 30 ms: whatever disturbs a trial
// makes it longer.
template <typename Work>
double LeastNs(int calls, Work work) {
  double least = std::numeric_limits<double>::max();
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(30);
  for (Clock::time_point begin = Clock::now(); begin < end;) {
    for (int i = 0; i < calls; ++i) work();
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double, std::nano> time = now - begin;
    least = std::min(least, time.count() / calls);
    begin = now;
  }
  return least;
}

// How many steps take the body's nominal time. Measured once a process.
uint32_t Steps(Body body) {
  static const double step_ns = [] {
    constexpr uint32_t kSteps = 10'000;
    volatile uint64_t value = 1;
    return LeastNs(1, [&] { value = MultiplyAdd(value, kSteps); }) / kSteps;
  }();
  return static_cast<uint32_t>(kNominalNs[static_cast<size_t>(body)] / step_ns);
}

}  // namespace

std::string_view BodyName(Body body) { return kNames[static_cast<size_t>(body)]; }

double BodyNs(Body body) {
  static std::array<double, kNames.size()> measured = {};
  double& ns = measured[static_cast<size_t>(body)];
  if (ns == 0) {
    std::array<Slot, 64> slots;
    std::vector<Task> tasks;
    for (Slot& slot : slots) {
      slot.steps = Steps(body);
      tasks.push_back({slot.steps > 0 ? &RunChain : &RunEmpty, &slot});
    }
    const int passes = 1 + static_cast<int>(10'000 / (1 + kNominalNs[static_cast<size_t>(body)]));
    const double pass_ns = LeastNs(passes, [&] {
      for (const Task& task : tasks) task();
    });
    ns = pass_ns / static_cast<double>(tasks.size());
  }
  return ns;
}

Workload::Workload(const Graph& graph, Body body)
    : graph_(graph),
      slots_(new Slot[graph.size()]),
      tasks_(graph.size()),
      cost_ns_(graph.size(), body == Body::kCheck ? 100.0f : static_cast<float>(BodyNs(body))) {
  const uint32_t steps = Steps(body);
  for (uint32_t v = 0; v < graph.size(); ++v) {
    slots_[v].task = v;
    slots_[v].steps = steps;
    slots_[v].workload = this;
    tasks_[v] = {body == Body::kCheck ? &RunCheck : steps > 0 ? &RunChain : &RunEmpty, &slots_[v]};
  }
}

int64_t Workload::TakeCount() {
  auto count = static_cast<int64_t>(slots_[0].count);
  for (uint32_t v = 0; v < graph_.size(); ++v) {
    if (static_cast<int64_t>(slots_[v].count) != count) count = -1;
  }
  for (uint32_t v = 0; v < graph_.size(); ++v) slots_[v].count = 0;
  return count;
}

void Workload::RunCheck(void* arg) {
  Slot& slot = *static_cast<Slot*>(arg);
  const Workload& workload = *slot.workload;
  uint64_t value = Hash(slot.task + (workload.epoch_ << 32));
  for (const uint32_t p : workload.graph_.Predecessors(slot.task)) {
    value = Hash(value + workload.slots_[p].value);
  }
  // Some tasks dawdle, others in every epoch: the threads meet in many orders.
  if (value % 16 == 0) {
    volatile uint64_t unused = MultiplyAdd(value, 50 + static_cast<uint32_t>(value >> 8) % 1000);
    static_cast<void>(unused);
  }
  slot.value = value;
  ++slot.count;
}

bool Workload::ValuesAreRight() const {
  std::vector<uint64_t> values(graph_.size());
  for (uint32_t v = 0; v < graph_.size(); ++v) {
    values[v] = Hash(v + (epoch_ << 32));
    for (const uint32_t p : graph_.Predecessors(v)) values[v] = Hash(values[v] + values[p]);
    if (values[v] != slots_[v].value) return false;
  }
  return true;
}

}  // namespace heddle::bench
