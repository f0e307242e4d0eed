// Base of clean-ups that go through every block and erase operators.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>
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
      gone_.clear();  // assign() would write as many as the largest block has had
      gone_.resize(block.ops.size(), false);
      any_ = false;
      late_.clear();
      first_late_.clear();
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

  // Readers of `from` at `positions`, which the sweep has not come to, read `to` instead once it
  // has: a sweep that replaces reads has each operator settled when it comes to it. Then all of an
  // operator's operands are replaced at once, however many those are.
  void ReplaceLater(const std::vector<int>& positions, ir::VarId from, ir::VarId to) {
    if (first_late_.empty()) first_late_.resize(block_->ops.size(), kNone);
    for (const int at : positions) {
      size_t& first = first_late_[static_cast<size_t>(at)];
      late_.push_back({from, to, std::exchange(first, late_.size())});
    }
  }
  void Settle(size_t at) {
    if (first_late_.empty() || first_late_[at] == kNone) return;
    std::unordered_map<ir::VarId, ir::VarId> now;
    for (size_t k = first_late_[at]; k != kNone; k = late_[k].next)
      now[late_[k].from] = late_[k].to;
    for (auto& slot : block_->ops[at].inputs)
      for (ir::VarId& v : slot)
        if (const auto found = now.find(v); found != now.end()) v = found->second;
  }

  ir::Program& p_;
  VersionView view_;
  ir::Block* block_ = nullptr;

 private:
  static constexpr size_t kNone = ~size_t{0};
  struct Late {
    ir::VarId from, to;
    size_t next;  // of the same operator
  };
  std::vector<Late> late_;
  std::vector<size_t> first_late_;  // per operator; empty: there are none
  std::vector<bool> gone_;
  bool any_ = false;
};

// PassDef::run of a pass that is implemented by the sweep T.
template <typename T>
Result<bool> RunSweep(ir::Program& program, PassContext& context) {
  return T(program, context).Run();
}

}  // namespace heddle::passes
