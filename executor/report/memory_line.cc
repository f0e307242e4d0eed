// Computes the bytes alive in the course of a run from its trace.
//
// The memory of a planned value is alive from the beginning of the first instruction that touches
// it, in the order in which they ran, to the end of the last one. For other values the instructions
// recorded the memory that they took, and the plan says which instruction releases it. Lists
// (arrays, rows, records of steps) share memory with slots: it is alive as long as any of them
// holds it.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "executor/plan/block_access.h"
#include "executor/plan/device_plan.h"
#include "executor/report/trace_story.h"

namespace heddle::internal {
namespace {

class Line {
 public:
  Line(const Plan& plan, const RunTrace& trace)
      : plan_(plan),
        trace_(trace),
        on_device_(plan.dispatch == Dispatch::kDevice),
        blocks_(plan),
        left_(plan.slots.size(), 0),
        bytes_(plan.slots.size(), 0),
        memory_of_(plan.slots.size(), nullptr) {
    const auto& ins = plan.blocks[0].instructions;
    for (size_t i = 0; i < ins.size(); ++i)
      if (HasEvents(i)) EachRoot(ins[i], [&](uint32_t root) { ++left_[root]; });
    // a fetched value stays to the end.
    for (const PlanFetch& f : plan.fetches) ++left_[RootOf(f.slot)];
    readers_.assign(plan.consumers.begin(), plan.consumers.end());
  }

  std::vector<MemorySample> Run(const std::vector<std::string>& places, const TraceStory& clock) {
    alive_.assign(places.size(), 0);
    GatherMarks(clock);
    for (const Mark& m : marks_) {
      const std::vector<size_t> before = alive_;
      m.begins ? Begin(*m.in) : Take(m);
      Note(m, before, places, false);
      if (m.begins) continue;
      const std::vector<size_t> taken = alive_;
      GiveBack(m);
      Note(m, taken, places, true);
    }
    return std::move(samples_);
  }

 private:
  struct Mark {
    double at;  // us
    bool begins;
    const Instruction* in;
    const RunTrace::Thread* thread;  // nullptr: a stream
    uint32_t event;                  // index in the thread's events
  };

  // Adds a sample if the bytes have changed, and on the host one after each instruction of block 0.
  void Note(const Mark& m, const std::vector<size_t>& before,
            const std::vector<std::string>& places, bool after) {
    for (size_t place = 0; place < alive_.size(); ++place)
      if (alive_[place] != before[place] || (place == 0 && after && m.in->ir_block == 0))
        samples_.push_back({m.at, places[place], alive_[place]});
  }

  // Ends come before beginnings at the same time.
  void GatherMarks(const TraceStory& clock) {
    constexpr double kLeast = 1e-6;
    for (const RunTrace::Thread& t : trace_.threads)
      for (uint32_t k = 0; k < t.events.size(); ++k) {
        const RunTrace::Event& e = t.events[k];
        const double begin = clock.Us(e.begin);
        marks_.push_back({begin, true, e.in, &t, k});
        marks_.push_back({std::max(clock.Us(e.end), begin + kLeast), false, e.in, &t, k});
      }
    for (const RunTrace::DeviceWork& work : trace_.device) {
      const double begin = clock.UsOfNs(work.begin_ns);
      marks_.push_back({begin, true, work.in, nullptr, 0});
      marks_.push_back(
          {std::max(clock.UsOfNs(work.end_ns), begin + kLeast), false, work.in, nullptr, 0});
    }
    std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
      return a.at != b.at ? a.at < b.at : !a.begins && b.begins;
    });
  }

  // Views on a device and waits of the host are no timed work.
  bool HasEvents(size_t i) const {
    if (!on_device_) return true;
    const DeviceStep::Kind kind = plan_.device->steps[i].kind;
    return kind != DeviceStep::Kind::kShare && kind != DeviceStep::Kind::kAwait;
  }

  // The slot that identifies a slot's memory; kNoSlot: it is not counted.
  uint32_t RootOf(uint32_t slot) const {
    if (slot == kNoSlot) return kNoSlot;
    const uint32_t s = plan_.RootOf(slot);
    return s < plan_.buffers.size() && plan_.slots[s].storage == Storage::kArena ? plan_.buffers[s]
                                                                                 : s;
  }
  // Whether the memory's place, or on a device its size, is known before the run.
  bool IsPlanned(uint32_t root) const {
    const Slot& slot = plan_.slots[root];
    if (slot.home != 0) return false;  // part of a work space, which is counted as a whole
    if (slot.storage == Storage::kArena || slot.storage == Storage::kOutput) return true;
    return on_device_ && slot.storage == Storage::kPool && slot.is_static &&
           !(root < plan_.constant.size() && plan_.constant[root]);
  }
  template <typename Fn>
  void EachRoot(const Instruction& in, Fn&& fn) {
    const auto call = [&](uint32_t slot) {
      if (const uint32_t root = RootOf(slot); root != kNoSlot && IsPlanned(root)) fn(root);
    };
    for (uint32_t s : in.op.in) call(s);
    for (uint32_t s : in.op.out) call(s);
    for (int block : BlocksOf(plan_, in)) {
      for (uint32_t s : blocks_.Of(block).reads) call(s);
      for (uint32_t s : blocks_.Of(block).writes) call(s);
      call(plan_.blocks[static_cast<size_t>(block)].workspace);
    }
  }

  // On a device, values computed in place share an offset: the count of those alive there.
  size_t* Sharers(uint32_t root) {
    if (!on_device_ || plan_.slots[root].place == 0 || plan_.device->offsets.empty())
      return nullptr;
    const size_t offset = plan_.device->offsets[root];
    return offset == DevicePlan::kNoOffset ? nullptr : &sharers_[{plan_.slots[root].place, offset}];
  }
  void Raise(uint32_t root) {
    if (bytes_[root] > 0) return;
    bytes_[root] = plan_.slots[root].bytes();
    if (size_t* n = Sharers(root); n != nullptr && (*n)++ > 0) return;
    alive_[plan_.slots[root].place] += bytes_[root];
  }
  void Lower(uint32_t root) {
    if (bytes_[root] == 0) return;
    const size_t bytes = std::exchange(bytes_[root], 0);
    if (size_t* n = Sharers(root); n != nullptr && --*n > 0) return;
    alive_[plan_.slots[root].place] -= bytes;
  }

  void Begin(const Instruction& in) {
    if (in.ir_block == 0) EachRoot(in, [&](uint32_t root) { Raise(root); });
  }
  // Memory that an instruction takes is alive together with the memory that it releases at its end.
  void Take(const Mark& m) {
    if (m.thread == nullptr) return;
    const auto& made = m.thread->made;
    auto at = std::lower_bound(made.begin(), made.end(), m.event,
                               [](const RunTrace::Made& x, uint32_t e) { return x.event < e; });
    for (; at != made.end() && at->event == m.event; ++at) {
      if (at->what == RunTrace::Made::What::kPutIn)
        PutIn(at->slot, at->memory, at->bytes);
      else if (at->what == RunTrace::Made::What::kTakenOut)
        TakeOut(at->slot, at->memory);
      else if (!on_device_ || !IsPlanned(RootOf(at->slot)))
        Hold(at->slot, at->memory, at->bytes, m.in->mode == Instruction::Mode::kShare);
    }
  }
  void GiveBack(const Mark& m) {
    const Instruction& in = *m.in;
    if (in.ir_block == 0)
      EachRoot(in, [&](uint32_t root) {
        if (--left_[root] == 0) Lower(root);
      });
    if (m.thread == nullptr) return;
    for (uint32_t s : in.release) Drop(s);
    for (uint32_t s : in.reads) {
      if (s >= readers_.size() || --readers_[s] > 0) continue;
      Drop(s);
      readers_[s] = plan_.consumers[s];  // the next iteration counts anew
    }
  }

  // Records that a slot now has this memory. `shares`: the instruction did not take it; unknown
  // memory then belongs to a feed or a parameter.
  void Hold(uint32_t slot, const void* memory, size_t bytes, bool shares) {
    if (memory_of_[slot] == memory) return;
    Drop(slot);
    auto& [holders, size] = taken_[memory];
    if (holders == 0 && shares) return;
    memory_of_[slot] = memory;
    if (holders++ > 0) return;
    size = bytes;
    alive_[0] += bytes;
  }
  void Drop(uint32_t slot) {
    if (const auto list = lists_.find(slot); list != lists_.end()) {
      for (const void* memory : std::exchange(list->second, {})) LetGo(memory);
    }
    if (memory_of_[slot] == nullptr) return;
    LetGo(std::exchange(memory_of_[slot], nullptr));
  }
  void LetGo(const void* memory) {
    auto& [holders, bytes] = taken_[memory];
    if (--holders == 0) alive_[0] -= bytes;
  }

  // Records that the slot's list also holds this memory.
  void PutIn(uint32_t slot, const void* memory, size_t bytes) {
    lists_[slot].push_back(memory);
    auto& [holders, size] = taken_[memory];
    if (holders++ > 0) return;
    size = bytes;
    alive_[0] += bytes;
  }
  void TakeOut(uint32_t slot, const void* memory) {
    auto& list = lists_[slot];
    const auto at = std::find(list.rbegin(), list.rend(), memory);
    if (at == list.rend()) return;
    list.erase(std::next(at).base());
    LetGo(memory);
  }

  const Plan& plan_;
  const RunTrace& trace_;
  const bool on_device_;
  BlockAccess blocks_;
  std::vector<uint32_t> left_;  // per root: accesses still to come
  std::vector<size_t> bytes_;   // per root: bytes alive
  std::vector<uint32_t> readers_;
  std::vector<const void*> memory_of_;  // per slot, of recorded memory
  std::unordered_map<const void*, std::pair<int, size_t>> taken_;
  std::unordered_map<uint32_t, std::vector<const void*>> lists_;  // per slot
  std::map<std::pair<uint8_t, size_t>, size_t> sharers_;          // by place and offset
  std::vector<size_t> alive_;                                     // bytes per place
  std::vector<Mark> marks_;
  std::vector<MemorySample> samples_;
};

}  // namespace

std::vector<MemorySample> MemoryLine(const Plan& plan, const RunTrace& trace,
                                     const TraceStory& clock,
                                     const std::vector<std::string>& places) {
  return Line(plan, trace).Run(places, clock);
}

}  // namespace heddle::internal
