// Operators that go on with a sequence of Philox from call to call: with a seed its numbers are
// TensorFlow's, without one they come of the run's generator.
#pragma once

#include "kernels/random/philox.h"

namespace heddle::philox {

// Takes so many blocks of the operator's sequence, of which State counts those that are used.
Philox Take(KernelContext& ctx, uint64_t blocks);
// As many as a distribution may need for its elements: it may drop what it has drawn.
Philox TakeFor(KernelContext& ctx, int64_t elements);

// Shape function of StateOut.
Status KeepState(ShapeContext& ctx);
// State, StateOut and the seeds.
void DefineState(OpDef& op);

// One word after the other.
class Words {
 public:
  explicit Words(const Philox& generator) : generator_(generator) {}
  uint32_t operator()() {
    if (at_ == block_.size()) {
      block_ = generator_.Next();
      at_ = 0;
    }
    return block_[at_++];
  }

 private:
  Philox generator_;
  Block block_{};
  size_t at_ = 4;
};

}  // namespace heddle::philox
