// SourceProgram: the program that was given to Executor::Compile.
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

  // The program; it is parsed again if it was packed. kDataLoss: its file was written to meanwhile.
  Result<std::shared_ptr<const ir::Program>> Get() const;
  // Keeps only what is needed to make the program again, if that is possible.
  void LetGo();

 private:
  // One of the two is set.
  std::shared_ptr<const ir::Program> whole_;
  std::unique_ptr<const formats::PackedProgram> packed_;
  uint64_t hash_ = 0;
};

}  // namespace heddle::internal
