// A program of another format said with heddle's operators, before ir::ProgramBuilder is given it:
// blocks can still get operators and variables another block or name.
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
  int64_t id = 0;  // of the file's value, where values have numbers
  int block = 0;
  ir::VarKind kind = ir::VarKind::kTensor;
  DType dtype = DType::kUnknown;
  bool ranked = false;
  std::vector<int64_t> dims;
  bool persistable = false;
  bool named = false;  // the file gives the name: it stays
  bool fed = false;
  bool shared = false;  // by values that are used apart from each other
};

struct DraftOp {
  template <typename T>
  using Slots = std::vector<std::pair<std::string_view, T>>;

  std::string_view type;
  int index = 0;                 // of the file's operator in its block
  const void* source = nullptr;  // the file's operator, for DraftLabel
  Slots<std::vector<int>> inputs, outputs;
  Slots<AttrValue> attributes;
  Slots<std::vector<int>> attributes_from;  // variables
  int sub_block = -1;
  bool optional = false;  // may go when nobody reads its only output
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

// Drops constants that are attributes now, and says which outer variables sub-blocks read and
// write. Then nothing more is changed.
void FinishDraft(Draft* draft);

// The operator `source` as the file has it, for messages.
using DraftLabel = std::string (*)(const void* source);

// Hands it over. Precondition: finished.
void Emit(const Draft& draft, DraftLabel label, ir::ProgramBuilder* builder);

}  // namespace heddle::formats
