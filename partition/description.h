// A serialized ProgramDesc, read without objects for its messages: names stay in the bytes, and an
// attribute is parsed at its use. The partition relies on what the file says, not on what heddle
// makes of it: attributes that are absent, and those that heddle does not use.
//
// Ownership: a Description refers to the bytes from which it was made. Threads: any may read.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/status.h"
#include "partition/target.h"

namespace heddle::partition {

using VarId = uint32_t;
using TypeId = uint32_t;

struct Variable {
  std::string_view name;
  std::string_view bytes;  // VarDesc; empty for a name that no block declares
  DType dtype = DType::kUnknown;
  bool ranked = false;
  bool persistable = false;
  bool dense = true;
  std::vector<int64_t> dims;  // -1: unknown

  int64_t elements() const;  // unknown dimensions count as 1
};

// One argument of an operator.
struct Argument {
  std::string_view slot;
  std::string_view name;
  bool output = false;
};

struct Operator {
  TypeId type = 0;
  uint32_t first_argument = 0, num_arguments = 0;  // inputs, then outputs
  uint32_t first_attr = 0, num_attrs = 0;
  std::string_view bytes;  // OpDesc
};

struct Attr {
  std::string_view name;
  uint32_t type = 0;       // AttrType
  std::string_view bytes;  // OpDesc.Attr
};

// The value of an attribute; nullopt for a block, a variable, or a type of a later version.
std::optional<Literal> ValueOf(const Attr& attr);

struct BlockText {
  int parent = -1;
  int forward = -1;  // for the block of a gradient: the forward block
  std::vector<Operator> ops;
  std::vector<Variable> declared;
  std::unordered_map<std::string_view, uint32_t> names;  // of `declared`
};

// The names that a block, or a block that it runs, reads or writes and does not declare, each once.
struct OuterNames {
  std::vector<std::string_view> reads, writes;
};

// Whether an argument names a variable.
inline bool IsName(std::string_view name) { return !name.empty() && name != "@EMPTY@"; }

class Description {
 public:
  // kDataLoss: the bytes are not a ProgramDesc.
  static Result<Description> Parse(std::string_view bytes);

  const std::vector<BlockText>& blocks() const { return blocks_; }
  std::string_view type(TypeId id) const { return types_[id]; }
  size_t num_types() const { return types_.size(); }
  const Argument* arguments(const Operator& op) const { return &arguments_[op.first_argument]; }
  const Attr* attrs(const Operator& op) const { return attrs_.data() + op.first_attr; }
  // nullptr: the operator has no attribute of that name.
  const Attr* FindAttr(const Operator& op, std::string_view name) const;
  // The blocks that the operator's attributes name.
  std::vector<int> SubBlocks(const Operator& op) const;
  // One entry per block; empty if the program has only one block.
  const std::vector<OuterNames>& outer_names() const { return outer_names_; }
  // All bytes that were parsed.
  std::string_view bytes() const { return bytes_; }

 private:
  bool ReadBlock(std::string_view bytes, BlockText* block);
  bool ReadOp(std::string_view bytes, Operator* op);
  bool ReadSlot(std::string_view bytes, bool output);
  void FindOuterNames();

  std::string_view bytes_;
  std::vector<BlockText> blocks_;
  std::vector<OuterNames> outer_names_;
  std::vector<Argument> arguments_;
  std::vector<Attr> attrs_;
  std::vector<std::string_view> types_;
  std::unordered_map<std::string_view, TypeId> type_ids_;
};

}  // namespace heddle::partition
