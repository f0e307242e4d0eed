// The checked program: blocks, operators with slots in their definition's order, typed attributes,
// variables as dense ids. Names are for messages and for the interface; nothing inside looks one
// up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/attr.h"
#include "core/op_def.h"
#include "core/programs/call_stack.h"
#include "heddle/dtype.h"
#include "heddle/program.h"
#include "heddle/shape.h"

namespace heddle::formats {
class ProgramSource;  // formats/program_source.h
}

namespace heddle::ir {

using VarId = uint32_t;
inline constexpr VarId kNoVar = ~0u;  // "@EMPTY@", or a name without a variable

enum class VarKind : uint8_t { kTensor, kRows, kArray, kScopes, kFeedHolder, kFetchHolder, kRaw };

struct Var {
  std::string name;
  int block = 0;
  VarKind kind = VarKind::kTensor;
  DType dtype = DType::kUnknown;
  Shape shape = {};  // Unknown() if the file gives none
  bool persistable = false;
  bool input = false;  // declared as an input (need_check_feed), with or without a feed operator
  int lod_level = 0;   // as declared; a feed may have more levels
};

// When and where an operator should be executed: attributes of these names, and its control edges.
struct StreamHints {
  std::string execution_stream;             // operators with the same name share a stream
  int64_t stream_priority = 0;              // less goes first
  int64_t scheduling_priority = 0;          // of ready operators, those with less go first
  std::string event_to_record;              // after the operator
  std::vector<std::string> events_to_wait;  // before the operator
  // Control edges: the operator starts when those of its block that have a mark in `after` have
  // ended. They come before it in the program; no two operators of a program have the same mark.
  // Unlike hints, control edges are kept by every pass and every schedule.
  std::vector<int64_t> marks, after;
};

// An operator's role in a training step, as Paddle's attributes op_role and op_role_var say it.
struct OpRole {
  static constexpr int64_t kBackward = 1, kOptimize = 2, kRate = 16, kLoss = 256;
  int64_t bits = 0;                // a sum of these
  std::vector<std::string> pairs;  // a parameter, its gradient, the next parameter, …
};

struct Op {
  const OpDef* def = nullptr;
  std::vector<std::vector<VarId>> inputs;   // per input slot of def, then per entry of var_attrs
  std::vector<std::vector<VarId>> outputs;  // per output slot of def
  std::vector<AttrValue> attrs;             // per attribute of def
  std::vector<int> var_attrs;               // attributes whose values are in variables
  int index = -1;                           // in the file's block; -1: a pass made the operator
  CallStack call_stack;
  std::string device;  // attribute op_device, as in the file; empty: not given
  std::shared_ptr<const StreamHints> hints;  // null: none
  std::shared_ptr<const OpRole> role;        // null: forward, without pairs

  // Whether it waits for an operator, or one for it, without data.
  bool has_control_edges() const {
    return hints != nullptr && !(hints->marks.empty() && hints->after.empty());
  }
  const std::string& type() const { return def->name(); }
  const std::vector<VarId>& In(std::string_view slot) const { return inputs[def->FindInput(slot)]; }
  const std::vector<VarId>& Out(std::string_view slot) const {
    return outputs[def->FindOutput(slot)];
  }
  template <typename T>
  const T& Attr(std::string_view name) const {
    return std::get<T>(attrs[def->FindAttr(name)]);
  }
  // Ids of the sub-blocks named by attributes.
  std::vector<int> SubBlocks() const;
};

struct Block {
  int id = 0;
  int parent = -1;
  int forward_block = -1;
  std::vector<Op> ops;
};

// A feed or fetch operator, which is not in the list of operators.
struct Port {
  VarId var = kNoVar;
  int col = 0;
};

// Finds a block's variables by name. The table holds only ids; the names are in the variables.
class NameTable {
 public:
  // The first variable added with this name; kNoVar: there is none.
  VarId Find(const std::vector<Var>& vars, std::string_view name) const;
  void Add(const std::vector<Var>& vars, VarId id);

 private:
  size_t PlaceOf(const std::vector<Var>& vars, std::string_view name) const;
  // Open addressing; the size is a power of two, at least a quarter is free.
  std::vector<VarId> table_;
  size_t used_ = 0;
};

class Program {
 public:
  std::vector<Block> blocks;
  std::vector<Var> vars;
  std::vector<Port> feeds;    // by col
  std::vector<Port> fetches;  // by col
  std::unordered_map<std::string, int64_t> op_versions;
  int64_t version = 0;
  uint64_t hash = 0;  // XXH64 of the file's bytes (of the source, for a rewritten program)
  std::string name;
  // The file's contents, kept by its format: the program can be parsed again, and written with
  // details that heddle does not use. Null: the program came from no file, or cannot be written.
  std::shared_ptr<const formats::ProgramSource> source;
  // Definitions of operators that lie in no registry. Copies share them.
  std::shared_ptr<const void> definitions;

  // The variable called `name` that is visible from `block`; kNoVar: there is none.
  VarId Find(int block, std::string_view name) const;
  VarId AddVar(Var var);
  // Removes variables that neither an operator, a feed, a fetch nor `kept` names; the others get
  // new ids.
  void DropUnusedVars(const std::vector<VarId>& kept = {});
  // A name that no variable has.
  std::string FreshName(const std::string& stem) const;
  // The location of `op`, for errors.
  OpLocation Locate(int block, const Op& op) const;
  // Whether `source` makes exactly this program again. False for copies, which are made to be
  // changed.
  bool as_parsed() const { return as_parsed_.value; }

 private:
  friend class ProgramBuilder;
  struct AsParsed {
    bool value = false;
    AsParsed() = default;
    AsParsed(const AsParsed&) {}
    AsParsed& operator=(const AsParsed&) {
      value = false;
      return *this;
    }
  };
  AsParsed as_parsed_;
  // Per block, since a name may mean different variables in different blocks.
  std::vector<NameTable> names_;
};

// A new operator for passes: every attribute has its default, every slot is empty.
Op MakeOp(const OpDef& def);

// Describes a mark of the program's control edges that two operators have, or for which an operator
// waits although no earlier one of its block has it. Empty: there is none.
std::string FindBrokenControl(const Program& program);

}  // namespace heddle::ir
