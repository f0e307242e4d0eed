// A copy of a program that is changed before gradients are added, and what is asked of it.
//
// Threads: one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradient/block_gradient.h"
#include "gradient/op_gradient.h"
#include "heddle/program.h"

namespace heddle::gradient {

class Edit {
 public:
  explicit Edit(const Program& program);

  ir::Program& ir() { return *program_; }
  const ir::Program& ir() const { return *program_; }
  std::vector<ir::Op>& ops() { return program_->blocks[0].ops; }
  const std::vector<ir::Op>& ops() const { return program_->blocks[0].ops; }
  ir::Var& var(ir::VarId v) { return program_->vars[v]; }
  const ir::Var& var(ir::VarId v) const { return program_->vars[v]; }
  Shared& shared() { return shared_; }

  // The variable of an output, by the file's name of it or the variable's; empty: the only floating
  // output.
  Result<ir::VarId> Output(const std::string& name, std::string_view option) const;
  // The file's name of an output variable, or the variable's.
  std::string NameOf(ir::VarId v) const;
  // The operator of block 0 that writes the variable last; -1: none.
  int WriterOf(ir::VarId v) const;
  // The operators of block 0 that read it, in their order. Operators of other blocks count as -1.
  std::vector<int> ReadersOf(ir::VarId v) const;
  // Follows copies (assign, a scale by 1) back to what they copy.
  ir::VarId Source(ir::VarId v) const;
  // Follows copies and reshapes back to a parameter; kNoVar: the value is none.
  ir::VarId Parameter(ir::VarId v) const;
  std::string PlaceOf(int op) const;

  using Slots = std::vector<std::pair<std::string_view, std::vector<ir::VarId>>>;
  // An operator that writes a new variable, added at `at` (-1: the end of block 0); returns the
  // variable, whose dtype and shape are inferred.
  ir::VarId Emit(std::string_view type, const Slots& in, const Settings& settings,
                 const std::string& name, std::string_view out = {}, int at = -1);
  ir::VarId AddParameter(const std::string& name, DType dtype, const Shape& shape);

  // Infers dtypes and shapes anew of all that depends on the `changed` variables, whose shapes are
  // already new; returns those whose shapes are other ones now. `mend` is called before each
  // operator that is looked at, to change what the operator says of shapes. kUnimplemented: the
  // operator's shape does not follow; the message names it.
  Result<std::vector<ir::VarId>> InferAgain(const std::vector<ir::VarId>& changed,
                                            const std::function<void(ir::Op*)>& mend);

  Program Finish() && { return Program(std::shared_ptr<const ir::Program>(std::move(program_))); }

 private:
  std::shared_ptr<ir::Program> program_;
  Shared shared_;
  std::vector<TensorInfo> outputs_;
};

// Numbers in [-limit, limit), the same everywhere for the same seed and name.
Tensor UniformTensor(DType dtype, const Shape& shape, double limit, uint64_t seed,
                     const std::string& name);

}  // namespace heddle::gradient
