// Chooses the operators of a program that a piece of hardware, or a library, executes, and their
// groups (docs/partition.md): a greedy grouping, which is then improved.
//
//   HEDDLE_ASSIGN_OR_RETURN(const Target target, LoadTarget("npu.json"));
//   HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, ProgramBytesOf(program));
//   HEDDLE_ASSIGN_OR_RETURN(const Partition partition, PartitionBytes(bytes, {target}));
//
// Ownership: values. Threads: any. The same program and targets always give the same groups.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/program.h"
#include "heddle/status.h"
#include "partition/target.h"

namespace heddle::partition {

// Operators are identified by their indices in the block of the file. Programs of other formats
// have the operators that `heddle opt --opt 0` writes.
struct PlacedGroup {
  int target = 0;                    // index into the targets
  std::vector<int> operators;        // in the order in which the units take them
  std::vector<std::string> units;    // the unit of each
  std::vector<int> helpers;          // constants and shape operators inside, ascending
  std::vector<std::string> inputs;   // variables read inside and made outside, except parameters
  std::vector<std::string> outputs;  // variables made inside and needed outside
  double cost = 0;
};

struct RestOperator {
  int op = 0;
  std::string type, reason;
};

struct BlockPartition {
  int block = 0;
  int operators = 0;
  std::vector<PlacedGroup> groups;
  std::vector<RestOperator> rest;  // ascending; every operator is here or in one group
  double groups_cost = 0, host_cost = 0;
};

struct Partition {
  std::vector<std::string> targets;
  std::vector<BlockPartition> blocks;  // one per block of the program
  double ms = 0;                       // the time of the grouping, in ms
};

// The bytes for PartitionBytes: a ProgramDesc, as the file has it or as it is written at level 0.
// kUnimplemented: it cannot be written.
Result<std::string> ProgramBytesOf(const Program& program);

// Groups a ProgramDesc. Several targets claim operators in this order. kInvalidArgument: no target,
// or two of one name; kDataLoss: not a ProgramDesc.
Result<Partition> PartitionBytes(std::string_view program_desc, const std::vector<Target>& targets);

// The operators and their edges as a graph in the language of Graphviz, with each group as a
// cluster; operators that stay on the host are dashed, helpers dotted, edges without data dashed.
Result<std::string> PartitionDot(std::string_view program_desc, const Partition& partition);

}  // namespace heddle::partition
