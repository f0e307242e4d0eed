// Base of clean-ups that go through every block and erase operators.
#pragma once

#include <vector>

#include "passes/pass.h"
#include "passes/version_view.h"

namespace heddle::passes {

class BlockSweep {
 public:
  BlockSweep(ir::Program& program, const PassContext& context)
      : p_(program), view_(program, context) {}
  virtual ~BlockSweep() = default;

  // Sweeps each block; returns whether an operator was erased.
  bool Run() {
    bool changed = false;
    for (ir::Block& block : p_.blocks) {
      view_.Enter(block.id);
      block_ = &block;
      gone_.assign(block.ops.size(), false);
      any_ = false;
      Sweep();
      if (any_) EraseOps(&block, gone_);
      changed = changed || any_;
    }
    return changed;
  }

 protected:
  // Erases operators of block_, which view_ shows, with Erase.
  virtual void Sweep() = 0;
  // Marks an operator, which is erased after the sweep, so that positions stay valid during it.
  void Erase(size_t at) { gone_[at] = any_ = true; }

  ir::Program& p_;
  VersionView view_;
  ir::Block* block_ = nullptr;

 private:
  std::vector<bool> gone_;
  bool any_ = false;
};

// PassDef::run of a pass that is implemented by the sweep T.
template <typename T>
Result<bool> RunSweep(ir::Program& program, PassContext& context) {
  return T(program, context).Run();
}

}  // namespace heddle::passes
