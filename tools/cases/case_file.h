// Operator cases: a small program, the values it is given and the files its results go to.
//
// A case is a directory with `program.pb` (a serialized ProgramDesc without feed and fetch
// operators) or `program.json` (a PIR program, whose inputs and outputs have the names below), the
// .npy files of its inputs, and `io.txt`: the line "opcase 1", then one line per input and one per
// output. Fields are separated by a tab:
//   in   ROLE TYPE                  FILE DTYPE SHAPE LOD [ROWS_FILE HEIGHT] NAME
//   out  ROLE TYPE CHECK RTOL ATOL  FILE DTYPE SHAPE LOD [ROWS_FILE HEIGHT] NAME
// ROLE is feed or param (set before the run in the feeds, in the scope), fetch or scope (read after
// it). TYPE is dense, selected_rows (the one with ROWS_FILE and HEIGHT) or tensor_array, where
// FILE … LOD are replaced by the number of elements and a line "item FILE DTYPE SHAPE LOD" follows
// for each. SHAPE and LOD are numbers with commas, levels separated by |; - is a scalar, or no LoD.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle::tools {

struct CaseTensor {
  std::string file;
  DType dtype = DType::kUnknown;
  Shape shape;
  LoD lod;
};

// An input or output of a case.
struct CaseEntry {
  enum class Role : uint8_t { kFeed, kParam, kFetch, kScope };

  Role role = Role::kFeed;
  Value::Kind kind = Value::Kind::kTensor;
  std::vector<CaseTensor> tensors;  // one, but for a tensor array
  std::string rows_file;            // selected rows only
  int64_t height = 0;
  bool no_buffer = false;  // the tensor has a shape, but memory was never allocated for it
  std::string name;
};

struct Case {
  std::string directory;
  std::vector<CaseEntry> inputs, outputs;

  // program.pb, or program.json where there is no such file.
  std::string program_file() const;
};

// Reads `io.txt`, and what is only in `meta.json`.
Result<Case> ReadCase(const std::string& directory);

// Reads the value of an input.
Result<Value> ReadInput(const Case& c, const CaseEntry& input);

}  // namespace heddle::tools
