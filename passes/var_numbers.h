// Numbers for the variables that a block names, so that tables of them take memory and time in
// proportion to the block: a program may have very many small ones. A block that names many of the
// program's variables uses their ids, at no cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/programs/ir.h"

namespace heddle::passes {

class VarNumbers {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  VarNumbers(const ir::Program& program, int block)
      : own_(block == 0 || program.vars.size() < kFewVars ||
             16 * program.blocks[static_cast<size_t>(block)].ops.size() >= program.vars.size()),
        size_(own_ ? program.vars.size() : 0) {}

  // Whether all variables have numbers already.
  bool complete() const { return own_; }
  // One more than the largest number.
  size_t size() const { return size_; }
  uint32_t Add(ir::VarId v) {
    if (own_) return v;
    const auto [at, is_new] = numbers_.try_emplace(v, static_cast<uint32_t>(size_));
    size_ += is_new;
    return at->second;
  }
  uint32_t Find(ir::VarId v) const {
    if (own_) return v;
    const auto at = numbers_.find(v);
    return at == numbers_.end() ? kNone : at->second;
  }

 private:
  static constexpr size_t kFewVars = 1024;
  const bool own_;
  size_t size_;
  std::unordered_map<ir::VarId, uint32_t> numbers_;
};

}  // namespace heddle::passes
