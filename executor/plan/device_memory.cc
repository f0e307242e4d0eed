#include "executor/plan/device_memory.h"

#include <algorithm>
#include <numeric>

#include "executor/plan/place_instructions.h"
#include "memory/arena_planner.h"
#include "scheduler/stream_arena.h"

namespace heddle {
namespace {

// The memory beyond that of instructions one after another that may be used to let streams go side
// by side: a tenth, or as much as never matters.
constexpr size_t kSlack = 2 << 10;
constexpr size_t kAlign = 256;
constexpr uint32_t kNone = StreamBuffer::kNoUser;

class Layouter {
 public:
  Layouter(PlanDraft& d, uint8_t place, const std::vector<uint32_t>& lane_of,
           const StreamSync& sync)
      : plan_(*d.plan),
        place_(place),
        ins_(plan_.blocks[0].instructions),
        lane_of_(lane_of),
        sync_(sync),
        root_(plan_.slots.size()),
        buffer_of_(plan_.slots.size(), kNone) {
    std::iota(root_.begin(), root_.end(), 0u);
  }

  std::vector<std::pair<uint32_t, uint32_t>> Run(DevicePlan* device) {
    for (uint32_t i = 0; i < ins_.size(); ++i) Visit(i);
    for (uint32_t i = 0; i < ins_.size(); ++i) ShareInPlace(i);
    std::erase_if(owners_, [&](uint32_t s) { return root_[s] != s; });
    std::vector<StreamBuffer> buffers;
    std::vector<LiveRange> ranges;
    for (uint32_t s : owners_) {
      StreamBuffer& b = buffers_[buffer_of_[s]];
      ranges.push_back({b.bytes, static_cast<int32_t>(b.first), static_cast<int32_t>(b.last())});
      buffers.push_back(std::move(b));
    }
    const ArenaLayout serial = PlanArena(ranges, kAlign);
    const size_t serial_bytes = (serial.bytes + kAlign - 1) / kAlign * kAlign;
    StreamArena arena = PlanStreamArena(buffers, sync_, lane_of_, serial.offsets, serial_bytes,
                                        serial_bytes + std::max(serial_bytes / 10, kSlack));
    for (size_t k = 0; k < owners_.size(); ++k) device->offsets[owners_[k]] = arena.offsets[k];
    for (uint32_t s = 0; s < root_.size(); ++s)
      if (Eligible(s)) device->offsets[s] = device->offsets[Root(s)];
    device->arena_bytes[place_ - kOnDevice] = arena.bytes;
    plan_.stats.device_arena_bytes += arena.bytes;
    plan_.stats.device_serial_bytes += serial_bytes;
    return std::move(arena.waits);
  }

 private:
  uint32_t Root(uint32_t s) {
    while (root_[s] != s) s = root_[s] = root_[root_[s]];
    return s;
  }
  bool Eligible(uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    return slot.place == place_ && slot.is_static && !plan_.constant[s] && slot.bytes() > 0;
  }

  // Streams touch what the instruction names; the host's instructions look at dtypes and shapes,
  // and tasks at nothing of the device's.
  void Visit(uint32_t i) {
    if (lane_of_[i] == 0) return;
    const Instruction& in = ins_[i];
    if (in.mode == Instruction::Mode::kShare) {
      const uint32_t from = in.op.in[in.takeovers[0]], to = in.op.out[in.takeovers[1]];
      // A view of what lies elsewhere is no temporary.
      root_[to] = from;
    }
    for (const auto* list : {&in.op.in, &in.op.out})
      for (uint32_t s : *list)
        if (s != kNoSlot) Touch(Root(s), i);
  }
  void Touch(uint32_t s, uint32_t i) {
    if (!Eligible(s)) return;
    if (buffer_of_[s] == kNone) {
      buffer_of_[s] = static_cast<uint32_t>(buffers_.size());
      owners_.push_back(s);
      StreamBuffer b;
      b.bytes = plan_.slots[s].bytes();
      b.first = i;
      b.users.assign(sync_.lanes, kNone);
      buffers_.push_back(std::move(b));
    }
    buffers_[buffer_of_[s]].users[lane_of_[i]] = i;
  }

  void ShareInPlace(uint32_t i) {
    const Instruction& in = ins_[i];
    if (lane_of_[i] == 0 || in.mode != Instruction::Mode::kPooled) return;
    for (size_t t = 0; t < in.takeovers.size(); t += 2)
      TakeOver(i, in.op.in[in.takeovers[t]], in.op.out[in.takeovers[t + 1]]);
  }
  void TakeOver(uint32_t i, uint32_t from, uint32_t to) {
    const uint32_t r = Root(from);
    if (!Eligible(r) || !Eligible(to) || root_[to] != to || r == to || buffer_of_[r] == kNone ||
        buffer_of_[to] == kNone)
      return;
    StreamBuffer &a = buffers_[buffer_of_[r]], &b = buffers_[buffer_of_[to]];
    if (a.bytes != b.bytes || b.first != i || Readers(i, r) != 1) return;
    for (uint32_t u : a.users)
      if (u != kNone && u != i && (u > i || !sync_.Knows(i, u, lane_of_))) return;
    root_[to] = r;
    for (size_t lane = 0; lane < a.users.size(); ++lane)
      if (b.users[lane] != kNone) a.users[lane] = b.users[lane];
  }
  // Operands in r's memory: the taken one must be the only one.
  int Readers(uint32_t i, uint32_t r) {
    int n = 0;
    for (uint32_t s : ins_[i].op.in) n += s != kNoSlot && Root(s) == r;
    return n;
  }

  Plan& plan_;
  const uint8_t place_;
  const std::vector<Instruction>& ins_;
  const std::vector<uint32_t>& lane_of_;
  const StreamSync& sync_;
  std::vector<uint32_t> root_;       // per slot: whose memory it is
  std::vector<uint32_t> buffer_of_;  // per root
  std::vector<uint32_t> owners_;     // roots, in the order of their first users
  std::vector<StreamBuffer> buffers_;
};

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> PlanDeviceMemory(PlanDraft& draft, uint8_t place,
                                                            const std::vector<uint32_t>& lane_of,
                                                            const StreamSync& sync,
                                                            DevicePlan* device) {
  return Layouter(draft, place, lane_of, sync).Run(device);
}

}  // namespace heddle
