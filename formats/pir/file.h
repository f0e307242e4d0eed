// A PIR program as its file has it: blocks of operators over numbered values, the abbreviations of
// the file resolved, its structure checked, nothing interpreted.
//
// Ownership: everything refers to the JSON document. Threads: any may read once it is made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "heddle/dtype.h"
#include "heddle/status.h"

namespace heddle::pir {

inline constexpr int64_t kNewestVersion = 4;  // of the file format, as Paddle 3.3 writes it

// The number of a value: from 1 on for results, from -1 down for arguments of blocks; 0: none.
using ValueId = int64_t;

struct Type {
  enum class Kind : uint8_t { kNone, kTensor, kList, kArray, kRows, kSparse, kStack, kOther };
  Kind kind = Kind::kNone;
  DType dtype = DType::kUnknown;
  bool ranked = false;         // dims are known
  std::vector<int64_t> dims;   // -1: open; hints, which files get wrong
  std::vector<Type> elements;  // of a list
};

struct Attribute {
  std::string_view name;
  Json value;  // {"#": type, "D": data}
};

struct Definition {
  ValueId id = 0;
  Type type;
};

struct Block;

struct Operation {
  std::string name;  // "pd_op.relu", "cf.yield", "builtin.combine"; "p" for a parameter
  int index = 0;     // in its block
  std::vector<Attribute> attributes;
  std::vector<ValueId> operands;
  std::vector<Definition> results;
  std::vector<Block> regions;  // of one block each
  bool persistable = false;    // "OA" says so of the first result

  const Attribute* Find(std::string_view attribute) const;
  // A parameter: "A" is [is_distributed, is_parameter, need_clip, name].
  std::string_view parameter;
};

struct Block {
  int number = 0;  // in the order of the file
  std::vector<Definition> arguments;
  std::vector<Operation> operations;
};

struct File {
  int64_t version = 0;
  int blocks = 0;  // in all
  Block main;
};

// kDataLoss: no PIR program, or damaged; kUnimplemented: of a newer version. The message says
// where.
Result<File> ReadFile(const JsonDocument& document);

// "operator 12 of block 0 (pd_op.relu)": for messages. `block` counts in the order of the file.
std::string Where(int block, const Operation& op);

}  // namespace heddle::pir
