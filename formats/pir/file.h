// A PIR program as its file has it: blocks of operators over numbered values. Abbreviations are
// expanded and the structure is checked; nothing is interpreted.
//
// Ownership: everything refers to the JSON document. Threads: any may read.
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

// The number of a value: 1, 2, … for results, -1, -2, … for arguments of blocks; 0: none.
using ValueId = int64_t;

struct Type {
  enum class Kind : uint8_t { kNone, kTensor, kList, kArray, kRows, kSparse, kStack, kOther };
  Kind kind = Kind::kNone;
  DType dtype = DType::kUnknown;
  bool ranked = false;         // dims are known
  std::vector<int64_t> dims;   // -1: not known; hints, which may be wrong in files
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
  std::vector<Block> regions;  // each has one block
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
  int blocks = 0;  // number of blocks in all
  Block main;
};

// Parses a document. kDataLoss: no PIR program, or damaged; kUnimplemented: of a newer version. The
// message says where.
Result<File> ReadFile(const JsonDocument& document);

// The operator's place for messages: "operator 12 of block 0 (pd_op.relu)". `block` is its number
// in the file's order.
std::string Where(int block, const Operation& op);

}  // namespace heddle::pir
