// The program that was given to Executor::Compile.
//
// Threads: one at a time.
#pragma once

#include <memory>

#include "core/programs/ir.h"
#include "formats/program_source.h"
#include "heddle/program.h"

namespace heddle::internal {

class SourceProgram {
 public:
  SourceProgram& operator=(const Program& program) {
    whole_ = program.impl();
    packed_ = nullptr;
    hash_ = program.hash();
    return *this;
  }
  uint64_t hash() const { return hash_; }

  // The program, parsed anew where it was let go. kDataLoss where its file was written to
  // meanwhile.
  Result<std::shared_ptr<const ir::Program>> Get() const;
  // Holds no more of it than is needed to make it again, where that can be done.
  void LetGo();

 private:
  // One of both:
  std::shared_ptr<const ir::Program> whole_;
  std::unique_ptr<const formats::PackedProgram> packed_;
  uint64_t hash_ = 0;
};

}  // namespace heddle::internal
