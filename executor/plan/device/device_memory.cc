#include "executor/plan/device/device_memory.h"

#include <algorithm>
#include <numeric>

#include "executor/plan/block_access.h"
#include "executor/plan/device/insert_copies.h"
#include "memory/arena_planner.h"
#include "scheduler/stream_arena.h"

namespace heddle {
namespace {

// How much more memory than for serial execution may be used so that streams can overlap: a tenth,
// or this many bytes.
constexpr size_t kSlack = 2 << 10;
constexpr size_t kAlign = 256;
constexpr uint32_t kNone = StreamBuffer::kNoUser;

class Layouter {
 public:
  Layouter(PlanDraft& d, uint8_t place, int block, const std::vector<uint32_t>& stream_of,
           const StreamSync& sync, const std::vector<BodyMemory>& bodies)
      : d_(d),
        plan_(*d.plan),
        place_(place),
        block_(block),
        ins_(plan_.blocks[block].instructions),
        stream_of_(stream_of),
        sync_(sync),
        bodies_(bodies),
        access_(plan_),
        root_(plan_.slots.size() + plan_.blocks.size()),
        buffer_of_(root_.size(), kNone),
        elsewhere_(plan_.slots.size(), false) {
    std::iota(root_.begin(), root_.end(), 0u);
    if (block_ != 0) FindElsewhere();
    for (const BodyMemory& body : bodies_)
      for (const auto& [s, at] : body.places) elsewhere_[s] = true;
  }

  std::vector<std::pair<uint32_t, uint32_t>> Run(BodyMemory* memory) {
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
    StreamArena arena = PlanStreamArena(buffers, sync_, stream_of_, serial.offsets, serial_bytes,
                                        serial_bytes + std::max(serial_bytes / 10, kSlack));
    std::vector<size_t> offset(root_.size(), DevicePlan::kNoOffset);
    for (size_t k = 0; k < owners_.size(); ++k) offset[owners_[k]] = arena.offsets[k];
    for (uint32_t s = 0; s < plan_.slots.size(); ++s)
      if (Eligible(s) && offset[Root(s)] != DevicePlan::kNoOffset)
        memory->places.emplace_back(s, offset[Root(s)]);
    for (size_t b = 0; b < bodies_.size(); ++b)
      if (const size_t at = offset[WorkspaceOf(b)]; at != DevicePlan::kNoOffset)
        for (const auto& [s, inside] : bodies_[b].places)
          memory->places.emplace_back(s, at + inside);
    memory->bytes = arena.bytes;
    if (block_ == 0) plan_.stats.device_arena_bytes += arena.bytes;
    if (block_ == 0) plan_.stats.device_serial_bytes += serial_bytes;
    return std::move(arena.waits);
  }

 private:
  // The number, after those of the slots, that stands for the memory of block `block`'s
  // temporaries.
  uint32_t WorkspaceOf(size_t block) const {
    return static_cast<uint32_t>(plan_.slots.size() + block);
  }

  // Finds the slots that blocks outside of this one touch.
  void FindElsewhere() {
    std::vector<bool> inside(plan_.blocks.size(), false);
    MarkInside(block_, &inside);
    const auto touch = [&](uint32_t s) {
      if (s != kNoSlot) elsewhere_[s] = true;
    };
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      if (inside[b]) continue;
      for (const Instruction& in : plan_.blocks[b].instructions) {
        for (uint32_t s : in.op.in) touch(s);
        for (uint32_t s : in.op.out) touch(s);
      }
    }
    for (uint32_t s = 0; s < plan_.slots.size(); ++s)
      if (!plan_.slots[s].versioned) elsewhere_[s] = true;
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      const auto& ins = plan_.blocks[b].instructions;
      for (size_t i = ins.size(); inside[b] && i-- > 0;)
        if (ins[i].mode == Instruction::Mode::kShare && elsewhere_[ViewOf(ins[i])])
          elsewhere_[ViewedBy(ins[i])] = true;
    }
  }
  static uint32_t ViewedBy(const Instruction& in) { return in.op.in[in.takeovers[0]]; }
  static uint32_t ViewOf(const Instruction& in) { return in.op.out[in.takeovers[1]]; }
  void MarkInside(int b, std::vector<bool>* inside) const {
    (*inside)[b] = true;
    for (const Instruction& in : plan_.blocks[b].instructions)
      for (int inner : BlocksOf(plan_, in)) MarkInside(inner, inside);
  }

  uint32_t Root(uint32_t s) {
    while (root_[s] != s) s = root_[s] = root_[root_[s]];
    return s;
  }
  bool Eligible(uint32_t s) const {
    if (s >= plan_.slots.size()) return true;
    const Slot& slot = plan_.slots[s];
    return slot.place == place_ && slot.is_static && !plan_.constant[s] && slot.bytes() > 0 &&
           !elsewhere_[s];
  }
  size_t BytesOf(uint32_t s) const {
    return s < plan_.slots.size() ? plan_.slots[s].bytes() : bodies_[s - plan_.slots.size()].bytes;
  }

  // Only work on streams touches device memory: an instruction's operands. Instructions of the host
  // read dtypes and shapes, and tasks nothing of the device.
  void Visit(uint32_t i) {
    if (stream_of_[i] == 0) return;
    const Instruction& in = ins_[i];
    for (int b : BlocksOf(plan_, in)) VisitBody(b, i);
    if (in.mode == Instruction::Mode::kShare) {
      // The view has the memory of its base, also if that lies elsewhere.
      root_[ViewOf(in)] = ViewedBy(in);
    }
    for (const auto* list : {&in.op.in, &in.op.out})
      for (uint32_t s : *list)
        if (s != kNoSlot) Touch(Root(s), i);
  }
  // On its stream the instruction stands for all steps of its block.
  void VisitBody(int b, uint32_t i) {
    if (!d_.RunsOnDevice(b)) return;
    TakeViews(b);
    for (const auto* list : {&access_.Of(b).reads, &access_.Of(b).writes})
      for (uint32_t s : *list) Touch(Root(s), i);
    if (bodies_[b].bytes > 0) Touch(WorkspaceOf(b), i);
  }
  void TakeViews(int b) {
    for (const Instruction& in : plan_.blocks[b].instructions) {
      if (in.mode == Instruction::Mode::kShare) root_[ViewOf(in)] = ViewedBy(in);
      for (int inner : BlocksOf(plan_, in)) TakeViews(inner);
    }
  }
  void Touch(uint32_t s, uint32_t i) {
    if (!Eligible(s)) return;
    if (buffer_of_[s] == kNone) {
      buffer_of_[s] = static_cast<uint32_t>(buffers_.size());
      owners_.push_back(s);
      StreamBuffer b;
      b.bytes = BytesOf(s);
      b.first = i;
      b.users.assign(sync_.streams, kNone);
      buffers_.push_back(std::move(b));
    }
    buffers_[buffer_of_[s]].users[stream_of_[i]] = i;
  }

  void ShareInPlace(uint32_t i) {
    const Instruction& in = ins_[i];
    if (stream_of_[i] == 0 || in.mode != Instruction::Mode::kPooled) return;
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
      if (u != kNone && u != i && (u > i || !sync_.Knows(i, u, stream_of_))) return;
    root_[to] = r;
    for (size_t stream = 0; stream < a.users.size(); ++stream)
      if (b.users[stream] != kNone) a.users[stream] = b.users[stream];
  }
  // The number of operands in r's memory; an operand that is taken over must be the only one.
  int Readers(uint32_t i, uint32_t r) {
    int n = 0;
    for (uint32_t s : ins_[i].op.in) n += s != kNoSlot && Root(s) == r;
    return n;
  }

  PlanDraft& d_;
  Plan& plan_;
  const uint8_t place_;
  const int block_;
  const std::vector<Instruction>& ins_;
  const std::vector<uint32_t>& stream_of_;
  const StreamSync& sync_;
  const std::vector<BodyMemory>& bodies_;
  BlockAccess access_;
  std::vector<uint32_t> root_;       // per slot: the slot whose memory it shares (union-find)
  std::vector<uint32_t> buffer_of_;  // per root
  std::vector<uint32_t> owners_;     // roots, in the order of their first users
  std::vector<bool> elsewhere_;      // per slot: another block plans its memory
  std::vector<StreamBuffer> buffers_;
};

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> PlanDeviceMemory(
    PlanDraft& draft, uint8_t place, int block, const std::vector<uint32_t>& stream_of,
    const StreamSync& sync, const std::vector<BodyMemory>& bodies, BodyMemory* memory) {
  return Layouter(draft, place, block, stream_of, sync, bodies).Run(memory);
}

}  // namespace heddle
