// The program under construction: an ir::ProgramBuilder, and the shapes inferred so far.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "builder/trial_shapes.h"
#include "core/programs/program_builder.h"
#include "heddle/program_builder.h"
#include "heddle/scope.h"
#include "heddle/status.h"

namespace heddle::builder {

class Draft {
 public:
  explicit Draft(std::string name);

  // --- variables
  bool IsTaken(const std::string& name) const { return names_.contains(name); }
  std::string FreshName(std::string_view stem);
  // Precondition: the name is not taken.
  ir::VarId NewVar(ir::Var var, Known known);
  // Whether the variable can be named in the present block.
  bool IsVisible(ir::VarId v) const;
  // Fixes the variable's dtype and shape, whatever operators write to it.
  void Declare(ir::VarId v, Known known);
  // Shape functions may read `value` until an operator writes to the variable. The draft keeps the
  // pointer.
  void SetValue(ir::VarId v, const Tensor* value) { known_[v].value = value; }
  const Known& known(ir::VarId v) const { return known_[v]; }
  const ir::Var& var(ir::VarId v) const { return builder.program().vars[v]; }
  size_t vars() const { return known_.size(); }

  // --- operators of the present block
  //
  // Infers the operator's outputs, slot by slot. The error says why it rejects its operands.
  Result<std::vector<Known>> Ask(const ir::Op& op) const;
  // Appends the operator. `written`: the answer of Ask() for it.
  Status Add(const ir::Op& op, const std::vector<Known>& written);
  // The error with the position of the operator that is to be added next.
  Status Here(const Status& status, std::string_view type) const;
  void SetPlace(std::string place) { place_ = std::move(place); }
  // Control edges of the operator that is to be added next.
  int64_t MarkNext();
  void NextAfter(const std::vector<int64_t>& marks);

  // --- blocks
  int block() const { return open_.empty() ? 0 : open_.back().block; }
  size_t open_blocks() const { return open_.size(); }
  void BeginBlock(bool loop, ir::VarId condition);
  Status EndBlock();

  Result<Model> Finish();

  ir::ProgramBuilder builder;
  const std::shared_ptr<Scope> scope = std::make_shared<Scope>();

 private:
  struct Open {
    int block = 0;
    bool loop = false;
    ir::VarId condition = ir::kNoVar;
  };
  // For each variable that changed since a block began: what was known of it at that moment.
  struct Before {
    size_t vars = 0;  // the number of variables at that moment
    std::unordered_map<ir::VarId, Known> known;
  };
  // A block that has ended.
  struct Ended {
    bool loop = false;
    std::vector<ir::VarId> written;  // variables of outer blocks
    // For those: what holds before every turn of a loop.
    std::unordered_map<ir::VarId, Known> settled;
  };
  struct Uses {
    std::vector<ir::VarId> read, written;
  };

  void SetKnown(ir::VarId v, const Known& known);
  Uses UsesOf(int block) const;
  void Begin() { before_.push_back({known_.size(), {}}); }
  Before End();
  Status Settle(int block, Before before);
  Status Revisit(int block);
  ir::OpBuilder Copy(const ir::Op& op);

  std::unordered_set<std::string> names_;
  std::vector<Known> known_;    // by variable
  std::vector<bool> declared_;  // by variable
  std::vector<Open> open_;
  std::vector<Before> before_;  // of open blocks, or of blocks that are visited again
  std::map<int, Ended> ended_;  // by block
  std::string place_;
  ir::StreamHints next_;  // for the next operator
  int64_t last_mark_ = 0;
  std::shared_ptr<CallStackTable> places_ = std::make_shared<CallStackTable>();
  Status broken_;
  int blocks_ = 0, next_name_ = 0;
};

}  // namespace heddle::builder
