// Draft: a program that a reader expresses in heddle's operators, before it is given to
// ir::ProgramBuilder. Unlike there, operators can still be added to any block, and variables can be
// renamed or moved to another block.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/attr.h"
#include "core/programs/ir.h"

namespace heddle::ir {
class ProgramBuilder;  // core/programs/program_builder.h
}

namespace heddle::formats {

inline constexpr int kNoDraft = -1;  // no variable

struct DraftVar {
  std::string name;
  int64_t id = 0;  // number of the file's value, where values have numbers
  int block = 0;
  ir::VarKind kind = ir::VarKind::kTensor;
  DType dtype = DType::kUnknown;
  bool ranked = false;
  std::vector<int64_t> dims;
  bool persistable = false;
  bool named = false;  // the name comes from the file and must not change
  bool fed = false;
  bool shared = false;  // holds several values of the file, which are used separately
};

struct DraftOp {
  template <typename T>
  using Slots = std::vector<std::pair<std::string_view, T>>;

  std::string_view type;
  int index = 0;                 // of the file's operator in its block
  const void* source = nullptr;  // the file's operator, for DraftLabel
  Slots<std::vector<int>> inputs, outputs;
  Slots<AttrValue> attributes;
  Slots<std::vector<int>> attributes_from;  // per attribute: the variables it is read from
  int sub_block = -1;
  int64_t role = 0;       // ir::OpRole::bits
  bool optional = false;  // to be dropped if its only output is not read
};

struct DraftBlock {
  int parent = -1;
  std::vector<DraftOp> ops;
};

struct Draft {
  std::vector<DraftVar> vars;
  std::vector<DraftBlock> blocks;                   // as the file numbers them
  std::vector<std::pair<int, int>> feeds, fetches;  // variable and column
};

// Drops optional operators whose output is not read, and fills in which outer variables each
// sub-block reads and writes. The draft must not be changed afterwards.
void FinishDraft(Draft* draft);

// Describes the file's operator `source` in messages.
using DraftLabel = std::string (*)(const void* source);

// Adds the draft to the builder. Precondition: FinishDraft was called.
void Emit(const Draft& draft, DraftLabel label, ir::ProgramBuilder* builder);

}  // namespace heddle::formats
