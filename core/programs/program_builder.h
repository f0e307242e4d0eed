// ProgramBuilder: makes an ir::Program from a file of any format. The reader adds blocks, variables
// and operators; the builder checks and connects them.
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
// Errors: errors are collected, and Finish() lists them all (at most 20) in one kInvalidArgument;
// if heddle lacks operators, they are listed instead, in one kUnimplemented. Each names its block
// and operator. An error undoes nothing that was added, so further ones are found.
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

// The prefix of a bool attribute that the builder sets: "rewrites:X" is true if the output that may
// be computed in the memory of X (OpDef::Inplace) is the same variable as X.
inline constexpr std::string_view kRewrites = "rewrites:";

class ProgramBuilder {
 public:
  // `name` begins messages and becomes Program::name, `hash` becomes Program::hash.
  explicit ProgramBuilder(std::string name, uint64_t hash = 0);

  const std::string& name() const { return p_->name; }
  // False: there was an error, which Finish() will return.
  bool ok() const { return problems_.empty() && unknown_.empty(); }
  template <typename... Parts>
  void Problem(const Parts&... parts) {
    problems_.push_back(StrCat(parts...));
  }
  size_t problems() const { return problems_.size(); }
  // Forgets the errors after the first `count`, since what they are about is read again.
  void ForgetProblems(size_t count) { problems_.resize(std::min(count, problems_.size())); }

  void SetVersion(int64_t version) { p_->version = version; }
  // Sets the version of an operator's meaning in the file; to be called before its operators are
  // added. A file that names versions of some operators means 0 for the others.
  void SetOpVersion(const std::string& type, int64_t version);

  // The number of blocks that will be added.
  void ReserveBlocks(int count) { block_count_ = count; }
  // Adds the next block, before any variable. A parent comes before its children; the first block
  // has none. `forward_block`: the block of which this is the gradient, else -1.
  void AddBlock(int parent, int forward_block);

  void ReserveVars(size_t count) { p_->vars.reserve(count); }
  void ReserveOps(int block, size_t count);
  // Adds a variable of unknown shape, whatever var.shape is.
  VarId AddVar(Var var);
  // The same with the shape `dims` (-1: not known); it is ignored for an array.
  VarId AddVar(Var var, std::span<const int64_t> dims);
  // The variable that `name` means in `block`; it is made there if there is none. kNoVar for "" and
  // "@EMPTY@".
  VarId Resolve(int block, const std::string& name);

  // `col`: the position among the program's inputs or outputs; equal ones keep their order.
  void AddFeed(VarId var, int col) { p_->feeds.push_back({var, col}); }
  void AddFetch(VarId var, int col) { p_->fetches.push_back({var, col}); }

  // Adds the next operator of its block. Precondition: heddle has the operator.
  void Add(OpBuilder op);
  // The same for callers that handle errors at once: returns the error, forgets it, and then adds
  // nothing. Precondition: ok() was true before `op` was begun.
  Status AddOrRefuse(OpBuilder op);

  // The program as far as it is made.
  const Program& program() const { return *p_; }
  void SetType(VarId var, DType dtype, const Shape& shape) {
    p_->vars[var].dtype = dtype;
    p_->vars[var].shape = shape;
  }

  // Returns the checked program. `source`: makes it again, or writes it; may be null.
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
  std::map<std::string, std::string> unknown_;  // operator -> where it occurs first
  std::vector<int> depths_;                     // per block: number of blocks around it
  std::vector<int> nesting_;                    // per block: levels of blocks inside it
};

// OpBuilder: one operator, slot by slot and attribute by attribute, until ProgramBuilder::Add takes
// it.
class OpBuilder {
 public:
  // `index`: its position in the file's block, for errors.
  OpBuilder(ProgramBuilder& builder, int block, int index, std::string_view type);
  // False: heddle lacks the operator. The builder has noted it; no other method may be called.
  explicit operator bool() const { return op_.def != nullptr; }
  const OpDef& def() const { return *op_.def; }

  // The operands of a slot, to be filled with `count` variables. Null: more than the slot accepts,
  // a slot given before, or an unknown slot; nothing must be added. The first two are errors, and
  // so is an unknown input. An unknown output is one that heddle does not compute, unless its name
  // is nearly that of a slot that was left out; readers of its variable get an error that says so.
  std::vector<VarId>* Input(std::string_view slot, int count);
  std::vector<VarId>* Output(std::string_view slot, int count);

  // Attribute `a` of def() has the type of its default. An error is noted.
  const AttrValue& Wanted(int a) const { return def().attrs()[a].default_value; }
  void SetAttr(int a, Result<AttrValue> value);
  // The attribute's value is in variables, which become operands after those of the slots.
  void SetAttrFrom(int a, std::vector<VarId> vars);

  void SetCallStack(CallStack stack) { op_.call_stack = std::move(stack); }
  void SetDevice(std::string device) { op_.device = std::move(device); }
  // The operator's hints for streams of a device; empty until SetHints.
  StreamHints hints() const { return op_.hints ? *op_.hints : StreamHints(); }
  void SetHints(StreamHints hints) {
    op_.hints = std::make_shared<const StreamHints>(std::move(hints));
  }
  // The operator's role in a training step; empty until SetRole.
  OpRole role() const { return op_.role ? *op_.role : OpRole(); }
  void SetRole(OpRole role) { op_.role = std::make_shared<const OpRole>(std::move(role)); }
  // Makes a mark of its own, for operators that are to come after this one.
  int64_t Mark();
  // The operator starts after the earlier operator of its block with this mark.
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
  std::vector<std::string> bad_attrs_;  // reported after errors in the slots
  std::vector<const SlotDef*> given_in_, given_out_;
  std::vector<std::string> unknown_outputs_;
  bool broken_ = false;  // operands were left out, and an error reported
};

}  // namespace heddle::ir
