#include "executor/plan/arena_sharing.h"

namespace heddle {
namespace {

constexpr size_t kAlignment = 64;  // of every offset in an arena

struct Pieces {
  std::span<const uint32_t> list;
  uint32_t whole = kNoSlot;
  bool joined = false;  // the list is joined to the whole; else the whole is cut into the list
};

// The operands of an operator that joins or cuts along the outermost axis whose length is not 1, so
// that every piece is contiguous. An empty list if the operator does not, or if that is not known.
Pieces FindPieces(const Plan& plan, const Instruction& in) {
  const OpDef& def = *in.op.def;
  if (!def.has(kAlongAxis) || in.mode != Instruction::Mode::kStatic) return {};
  const bool joined = def.inputs()[0].flags & kList;
  const auto operands = [](const IdList& all, const IdList& begin) {
    return std::span<const uint32_t>(all.begin() + begin[0], all.begin() + begin[1]);
  };
  const auto ins = operands(in.op.in, in.op.in_begin), outs = operands(in.op.out, in.op.out_begin);
  const auto one = joined ? outs : ins;
  if (one.size() != 1 || one[0] == kNoSlot) return {};
  if (const int at = def.FindInput("AxisTensor"); at >= 0)  // only the kernel reads its value
    if (in.op.in_begin[at] != in.op.in_begin[at + 1]) return {};
  const Slot& whole = plan.slots[one[0]];
  if (!whole.is_static) return {};
  int64_t axis = std::get<int64_t>(in.op.attrs[def.FindAttr("axis")]);
  if (axis < 0) axis += whole.shape().rank();
  if (whole.shape().Product(0, static_cast<int>(axis)) != 1) return {};
  return {joined ? ins : outs, one[0], joined};
}

}  // namespace

ArenaSharing::ArenaSharing(const PlanDraft& draft, int block, bool pieces, const BlockSlots& slots,
                           BlockAccess& blocks)
    : plan_(*draft.plan),
      block_(block),
      lanes_(plan_.LanesOf(block)),
      ins_(plan_.blocks[block].instructions),
      slots_(slots),
      life_(slots.all().size(), lanes_),
      reads_(slots.all().size(), 0) {
  places_.reserve(slots.all().size());
  for (uint32_t s : slots.all()) places_.push_back({plan_.RootOf(s), At(s).shift});
  Walk([&](uint32_t i) {
    Touch(ins_[i].op.in, i);
    Touch(ins_[i].op.out, i);
    for (int sub : BlocksOf(plan_, ins_[i])) {
      Touch(blocks.Of(sub).reads, i);
      Touch(blocks.Of(sub).writes, i);
      const uint32_t workspace = plan_.blocks[sub].workspace;
      Touch({&workspace, 1}, i);
    }
  });
  if (draft.request.reuse == Reuse::kNone) return;
  Walk([&](uint32_t i) {
    if (pieces) PlacePieces(i);
    if (draft.request.in_place) TakeOver(i);
  });
}

template <typename Fn>
void ArenaSharing::Walk(Fn&& fn) {
  if (lanes_ == nullptr) {
    for (uint32_t i = 0; i < ins_.size(); ++i) fn(i);
  } else {
    for (uint32_t i : plan_.SerialOrderOf(block_)) fn(i);
  }
}

ArenaSharing::Place ArenaSharing::Find(uint32_t slot) {
  for (;;) {
    const Place up = PlaceOf(slot), over = PlaceOf(up.buffer);
    if (over.buffer == up.buffer) return up;
    PlaceOf(slot) = {over.buffer, up.offset + over.offset};
  }
}

void ArenaSharing::Touch(std::span<const uint32_t> slots, uint32_t at) {
  for (uint32_t s : slots)
    if (s != kNoSlot) life_.Touch(slots_[BufferOf(s)], at);
}

std::vector<uint32_t> ArenaSharing::TakeableInputs(const Instruction& in,
                                                   const OpDef::SlotPair& pair) {
  const uint32_t b = in.op.out_begin[pair.out], outs = in.op.out_begin[pair.out + 1] - b;
  std::vector<uint32_t> inputs;
  if (outs == 0 || in.op.out[b] == kNoSlot) return inputs;
  const uint32_t first = in.op.in_begin[pair.in], end = in.op.in_begin[pair.in + 1];
  for (uint32_t a = first; a < (outs == 1 ? end : std::min(end, first + 1)); ++a)
    if (in.op.in[a] != kNoSlot) inputs.push_back(a);
  return inputs;
}

// Places an output in the memory of an input whose last user is the instruction, if the operator
// allows it.
void ArenaSharing::TakeOver(uint32_t i) {
  const Instruction& in = ins_[i];
  using Mode = Instruction::Mode;
  if (in.mode != Mode::kStatic && in.mode != Mode::kPooled) return;
  for (const auto& pair : in.op.def->inplace())
    for (uint32_t a : TakeableInputs(in, pair))
      if (TakeOver(i, in.op.in[a], in.op.out[in.op.out_begin[pair.out]])) break;
}

// The comparisons of sizes ensure that neither slot is a piece of a larger buffer.
bool ArenaSharing::TakeOver(uint32_t i, uint32_t from, uint32_t to) {
  const uint32_t r = BufferOf(from);
  if (!InArena(r) || !InArena(to) || !At(from).is_dense() || BufferOf(to) == r ||
      BufferOf(to) != to || At(r).bytes() != At(to).bytes() || At(from).bytes() != At(to).bytes() ||
      !life_.IsLastUser(slots_[r], i) || ReadsOf(i, r) != 1)
    return false;
  PlaceOf(to) = {r, 0};
  life_.Merge(slots_[r], slots_[to]);
  read_by_ = kNoSlot;
  return true;
}

// The number of operands of instruction `i` in the buffer; an operand that is taken over must be
// the only one.
uint32_t ArenaSharing::ReadsOf(uint32_t i, uint32_t buffer) {
  if (read_by_ != i) {
    for (uint32_t n : read_) reads_[n] = 0;
    read_.clear();
    for (uint32_t s : ins_[i].op.in) {
      if (s == kNoSlot) continue;
      const uint32_t n = slots_[BufferOf(s)];
      if (++reads_[n] == 1) read_.push_back(n);
    }
    read_by_ = i;
  }
  return reads_[slots_[buffer]];
}

void ArenaSharing::PlacePieces(uint32_t i) {
  const Pieces found = FindPieces(plan_, ins_[i]);
  if (found.list.empty() || !InArena(found.whole)) return;
  size_t offset = 0;
  for (uint32_t s : found.list) {
    if (s == kNoSlot || !At(s).is_static || At(s).dtype != At(found.whole).dtype) return;
    if (found.joined ? PutIn(found.whole, s, offset)
                     : BufferOf(s) == s && PutIn(found.whole, s, offset))
      ++pieces_;
    offset += At(s).bytes();
  }
}

// Makes `piece`, and all slots in its memory, a part of `whole`. Not possible, so that it is
// copied, if the piece shares memory with something larger, or is in the whole already (an operand
// named twice). Nor if the whole lies in memory of another block or of a variable: a variable that
// a loop carries is in use before the whole is written, and is rewritten while pieces cut from it
// may still be read.
bool ArenaSharing::PutIn(uint32_t whole, uint32_t piece, size_t offset) {
  const Place w = Find(whole), p = Find(piece);
  if (!InArena(piece) || !InArena(p.buffer) || !InArena(w.buffer) || !At(piece).is_dense() ||
      p.buffer == w.buffer || At(p.buffer).bytes() != At(piece).bytes() || At(piece).bytes() == 0)
    return false;
  if ((w.offset + offset) % kAlignment != 0 || offset + At(piece).bytes() > At(whole).bytes())
    return false;
  PlaceOf(p.buffer) = {w.buffer, w.offset + offset};
  life_.Merge(slots_[w.buffer], slots_[p.buffer]);
  read_by_ = kNoSlot;
  return true;
}

}  // namespace heddle
