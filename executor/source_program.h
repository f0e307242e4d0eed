// The program that was given to Executor::Compile.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>

#include "core/file.h"
#include "core/ir.h"
#include "heddle/program.h"

namespace heddle::internal {

class SourceProgram {
 public:
  SourceProgram& operator=(const Program& program) {
    whole_ = program.impl();
    name_ = whole_->name;
    hash_ = program.hash();
    return *this;
  }
  uint64_t hash() const { return hash_; }

  // The program, parsed anew where it was let go. kDataLoss where its file was written to
  // meanwhile.
  Result<std::shared_ptr<const ir::Program>> Get() const;
  // Holds no more of it than is needed to make it again, where that can be done: the file it was
  // read from, which stays open, else its bytes.
  void LetGo();

 private:
  std::shared_ptr<const ir::Program> whole_;
  // Where `whole_` is empty, one of these:
  FileHandle file_;
  ir::PackedProgram packed_;
  std::string name_;
  uint64_t hash_ = 0;
};

}  // namespace heddle::internal
