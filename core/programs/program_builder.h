// Makes an ir::Program, whatever the format it is read from: a reader of a file hands over blocks,
// variables and operators, and the builder checks and connects them.
//
//   ProgramBuilder builder("model.pdmodel", hash);
//   builder.ReserveBlocks(1);
//   builder.AddBlock(-1, -1);
//   const VarId x = builder.AddVar({.name = "x", .dtype = DType::kF32}, dims);
//   builder.AddFeed(x, 0);
//   OpBuilder relu(builder, 0, 1, "relu");
//   relu.Input("X", 1)->push_back(x);
//   relu.Output("Out", 1)->push_back(builder.Resolve(0, "y"));
//   builder.Add(std::move(relu));
//   builder.AddFetch(builder.Resolve(0, "y"), 0);
//   Result<std::shared_ptr<Program>> program = std::move(builder).Finish(nullptr);
//
// Errors: mistakes are gathered, and Finish() lists them all (at most 20) in one kInvalidArgument;
// operators that heddle does not have go first, in one kUnimplemented. Each names its block and
// operator. Nothing that was added is undone by a mistake: further ones are still found.
//
// Ownership: owns the program until Finish(). Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/programs/ir.h"
#include "heddle/status.h"

namespace heddle::ir {

class OpBuilder;

// Begins the name of a bool attribute that the builder sets: "rewrites:X" is true where the
// operator gives the output that may be computed in X's memory (OpDef::Inplace) the same variable
// as X.
inline constexpr std::string_view kRewrites = "rewrites:";

class ProgramBuilder {
 public:
  // `name` stands before messages and becomes Program::name, `hash` becomes Program::hash.
  explicit ProgramBuilder(std::string name, uint64_t hash = 0);

  const std::string& name() const { return p_->name; }
  // False: there was a mistake, and Finish() will return it.
  bool ok() const { return problems_.empty() && unknown_.empty(); }
  template <typename... Parts>
  void Problem(const Parts&... parts) {
    problems_.push_back(StrCat(parts...));
  }
  size_t problems() const { return problems_.size(); }
  // Forgets the mistakes behind the first `count`: what they are about is read again.
  void ForgetProblems(size_t count) { problems_.resize(std::min(count, problems_.size())); }

  void SetVersion(int64_t version) { p_->version = version; }
  // The version of an operator's meaning that the file was written with, before its operators are
  // added. A file that names any says 0 for the others.
  void SetOpVersion(const std::string& type, int64_t version);

  // The number of blocks that will be added.
  void ReserveBlocks(int count) { block_count_ = count; }
  // The next block, before any variable. A parent comes before its children; the first block has
  // none. `forward_block`: the one that this is the gradient of, else -1.
  void AddBlock(int parent, int forward_block);

  void ReserveVars(size_t count) { p_->vars.reserve(count); }
  void ReserveOps(int block, size_t count);
  // A variable of unknown shape, whatever var.shape says.
  VarId AddVar(Var var);
  // The same with the shape in `dims` (-1: open); an array's is not kept.
  VarId AddVar(Var var, std::span<const int64_t> dims);
  // The variable that operators of `block` call `name`, made in that block where there is none;
  // kNoVar for "" and "@EMPTY@".
  VarId Resolve(int block, const std::string& name);

  // `col`: the place among the program's inputs or outputs; equal ones stay in their order.
  void AddFeed(VarId var, int col) { p_->feeds.push_back({var, col}); }
  void AddFetch(VarId var, int col) { p_->fetches.push_back({var, col}); }

  // The next operator of its block. Precondition: `op` is one that heddle has.
  void Add(OpBuilder op);
  // The same for who hears of mistakes at once: returns what is wrong, forgets it, and adds nothing
  // then. Precondition: ok() before `op` was begun.
  Status AddOrRefuse(OpBuilder op);

  // As far as it is made.
  const Program& program() const { return *p_; }
  void SetType(VarId var, DType dtype, const Shape& shape) {
    p_->vars[var].dtype = dtype;
    p_->vars[var].shape = shape;
  }

  // The checked program. `source`: what makes it again or writes it; null when nothing does.
  Result<std::shared_ptr<Program>> Finish(std::shared_ptr<const formats::ProgramSource> source) &&;

 private:
  friend class OpBuilder;

  Status Summary() const;
  Status UnknownOps() const;
  void DeclareArrays(const Op& op);
  void SetVersion(Op* op) const;
  static void SetRewrites(Op* op);
  void CheckNesting();
  void Visit(int block, int depth);

  std::shared_ptr<Program> p_;
  int64_t next_mark_ = 1;
  int block_count_ = 0;
  std::vector<std::string> problems_;
  std::map<std::string, std::string> unknown_;  // operator -> where it first stands
  std::vector<int> depths_;                     // per block: levels of blocks that it sees
  std::vector<int> nesting_;                    // per block: levels of blocks inside
};

// One operator, slot by slot and attribute by attribute, until ProgramBuilder::Add takes it.
class OpBuilder {
 public:
  // `index`: where the file has it in its block; errors name it.
  OpBuilder(ProgramBuilder& builder, int block, int index, std::string_view type);
  // False: heddle has no such operator. The builder has noted it; nothing else may be called.
  explicit operator bool() const { return op_.def != nullptr; }
  const OpDef& def() const { return *op_.def; }

  // The operands of a slot, to be filled with `count` variables. Null where none are to be added:
  // more than the slot takes, a slot given before, or no such slot. The former are mistakes, and so
  // is the latter for an input, while an output that heddle does not know is one that nothing here
  // computes, unless its name is nearly that of a slot left out; whoever reads its variable is told
  // so.
  std::vector<VarId>* Input(std::string_view slot, int count);
  std::vector<VarId>* Output(std::string_view slot, int count);

  // Attribute `a` of def(), which wants the type of its default. An error is noted.
  const AttrValue& Wanted(int a) const { return def().attrs()[a].default_value; }
  void SetAttr(int a, Result<AttrValue> value);
  // Variables hold its value. They are operands behind those of the slots.
  void SetAttrFrom(int a, std::vector<VarId> vars);

  void SetCallStack(CallStack stack) { op_.call_stack = std::move(stack); }
  void SetDevice(std::string device) { op_.device = std::move(device); }
  // The operator's wishes about a device's streams; empty until SetHints.
  StreamHints hints() const { return op_.hints ? *op_.hints : StreamHints(); }
  void SetHints(StreamHints hints) {
    op_.hints = std::make_shared<const StreamHints>(std::move(hints));
  }
  // A mark that no other operator bears, for those that are to come after this one.
  int64_t Mark();
  // The operator starts when the one with this mark, an earlier one of its block, has ended.
  void After(int64_t mark);

 private:
  friend class ProgramBuilder;

  std::string Where() const;
  std::vector<VarId>* Slot(const SlotDef& def, int count, std::vector<VarId>* operands,
                           std::vector<const SlotDef*>* given);
  void CheckUnknown();

  ProgramBuilder& builder_;
  const int block_;
  Op op_;
  std::vector<std::string> bad_attrs_;  // told behind what is wrong with the slots
  std::vector<const SlotDef*> given_in_, given_out_;
  std::vector<std::string> unknown_outputs_;
  bool broken_ = false;  // operands were left out, which was told
};

}  // namespace heddle::ir
