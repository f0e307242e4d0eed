// The program that was given to Executor::Compile.
//
// Threads: one at a time.
#pragma once

#include <memory>

#include "core/ir.h"
#include "heddle/program.h"

namespace heddle::internal {

class SourceProgram {
 public:
  SourceProgram& operator=(const Program& program) {
    whole_ = program.impl();
    hash_ = program.hash();
    return *this;
  }
  uint64_t hash() const { return hash_; }

  // The program, parsed anew where it was let go.
  Result<std::shared_ptr<const ir::Program>> Get() const {
    if (whole_) return whole_;
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<ir::Program> parsed, ir::Unpack(packed_));
    return std::shared_ptr<const ir::Program>(std::move(parsed));
  }
  // Holds no more of it than is needed to make it again, where that can be done.
  void LetGo() {
    if (!whole_ || !whole_->as_parsed()) return;
    packed_ = ir::Pack(*whole_);
    whole_ = nullptr;
  }

 private:
  std::shared_ptr<const ir::Program> whole_;
  ir::PackedProgram packed_;  // where `whole_` is empty
  uint64_t hash_ = 0;
};

}  // namespace heddle::internal
