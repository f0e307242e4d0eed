// ArenaSharing: which slots of an arena share memory on purpose, in a plan whose instructions run
// in a known order: views, outputs computed in place, and pieces of a tensor that an operator joins
// or cuts.
//
// A buffer is identified by one of its slots, which is as large as the buffer; every other slot
// lies in it at an offset. Pieces: where an operator joins tensors along the outermost axis (or
// cuts one), each piece is contiguous in the whole, so the instruction that makes it can write
// there, and the operator has nothing left to copy. Its instruction stays, as the point where the
// whole is complete.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/plan/block_access.h"
#include "executor/plan/lifetimes.h"
#include "executor/plan/plan_draft.h"
#include "executor/plan/slot_index.h"

namespace heddle {

class ArenaSharing {
 public:
  // Plans the slots whose home is `block`. Their storages must be chosen before. `pieces`: whether
  // pieces may share the memory of their whole. `slots`: all slots that the block's instructions
  // and those of its sub-blocks touch, and the slots that these lie in. Keeps references to all
  // arguments except `blocks`.
  ArenaSharing(const PlanDraft& draft, int block, bool pieces, const BlockSlots& slots,
               BlockAccess& blocks);

  // The slot that identifies the buffer of `slot`, and the offset in it, in bytes.
  uint32_t BufferOf(uint32_t slot) { return Find(slot).buffer; }
  size_t OffsetOf(uint32_t slot) { return Find(slot).offset; }
  // The number of pieces that share memory with their whole.
  int pieces() const { return pieces_; }
  // The functions of Lifetimes for a buffer, given by the slot that identifies it.
  bool touched(uint32_t buffer) const { return life_.touched(slots_[buffer]); }
  int regions() const { return life_.regions(); }
  Lifetimes::Range RangeOf(uint32_t buffer) const { return life_.RangeOf(slots_[buffer]); }
  Lifetimes::Range WalkRange(uint32_t buffer) const { return life_.WalkRange(slots_[buffer]); }
  bool Before(uint32_t a, uint32_t b) const { return life_.Before(slots_[a], slots_[b]); }

  // The positions of the inputs whose memory the pair's output may take over. If a list becomes one
  // output, as in a sum of gradients, this is any of the list; otherwise the first.
  static std::vector<uint32_t> TakeableInputs(const Instruction& in, const OpDef::SlotPair& pair);

 private:
  struct Place {
    uint32_t buffer;
    size_t offset;
  };
  Place Find(uint32_t slot);
  Place& PlaceOf(uint32_t slot) { return places_[slots_[slot]]; }
  const Slot& At(uint32_t s) const { return plan_.slots[s]; }
  // Whether the slot may share memory. A variable that is written repeatedly has its memory to
  // itself.
  bool InArena(uint32_t s) const {
    return s != kNoSlot && At(s).storage == Storage::kArena && At(s).home == block_ &&
           At(s).versioned;
  }
  // Calls fn(instruction) in an order that one thread could follow.
  template <typename Fn>
  void Walk(Fn&& fn);
  void Touch(std::span<const uint32_t> slots, uint32_t at);
  void TakeOver(uint32_t i);
  bool TakeOver(uint32_t i, uint32_t from, uint32_t to);
  uint32_t ReadsOf(uint32_t i, uint32_t buffer);
  void PlacePieces(uint32_t i);
  bool PutIn(uint32_t whole, uint32_t piece, size_t offset);

  const Plan& plan_;
  const int block_;
  const LaneSchedule* const lanes_;
  const std::vector<Instruction>& ins_;
  const BlockSlots& slots_;
  // By number of a slot: another slot of its buffer, nearer to the one that identifies it
  // (union-find).
  std::vector<Place> places_;
  Lifetimes life_;  // by number of a slot
  // By number of a buffer: how many operands of instruction `read_by_` lie in it.
  std::vector<uint32_t> reads_;
  std::vector<uint32_t> read_;  // buffers with a number above 0
  uint32_t read_by_ = kNoSlot;
  int pieces_ = 0;
};

}  // namespace heddle
