// Which slots of an arena share memory on purpose, in a plan whose instructions run in a known
// order: views, outputs computed in place, and pieces of a tensor that an operator joins or cuts.
//
// A buffer is named by one of its slots, which is as large as the buffer; every other slot lies in
// it at an offset. Pieces: where an operator joins tensors along the outermost axis (or cuts one),
// each piece is one run of memory in the whole, so what makes it may write there, and the operator
// has nothing left to copy. The instruction stays, as the point where the whole is complete.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/plan/lifetimes.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

class ArenaSharing {
 public:
  // Plans the values whose home is `block`. The slots' storages must be chosen before. `pieces`:
  // whether pieces of a larger value share its memory. Keeps a reference to the draft.
  ArenaSharing(const PlanDraft& draft, int block, bool pieces);

  // The slot that stands for the buffer which `slot` lies in, and where, in bytes.
  uint32_t BufferOf(uint32_t slot) { return Find(slot).buffer; }
  size_t OffsetOf(uint32_t slot) { return Find(slot).offset; }
  // Pieces that lie in their wholes.
  int pieces() const { return pieces_; }
  const Lifetimes& life() const { return life_; }  // of buffers

  // The inputs, by position, whose memory the pair's output may take over. Where a list becomes one
  // output, as in a sum of gradients, any of the list; else the first.
  static std::vector<uint32_t> TakeableInputs(const Instruction& in, const OpDef::SlotPair& pair);

 private:
  struct Place {
    uint32_t buffer;
    size_t offset;
  };
  Place Find(uint32_t slot);
  const Slot& At(uint32_t s) const { return plan_.slots[s]; }
  // One that may share; a variable that is written again and again has memory to itself meanwhile.
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
  int ReadsOf(const Instruction& in, uint32_t buffer);
  void PlacePieces(uint32_t i);
  bool PutIn(uint32_t whole, uint32_t piece, size_t offset);

  const Plan& plan_;
  const int block_;
  const LaneSchedule* const lanes_;
  const std::vector<Instruction>& ins_;
  std::vector<Place>
      places_;  // per slot: another of the buffer, nearer to the one that stands for it
  Lifetimes life_;
  int pieces_ = 0;
};

}  // namespace heddle
