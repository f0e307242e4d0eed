// Which operators of a program a piece of hardware, or a library, takes, in which groups
// (docs/partition.md): greedy grouping, then what makes it better and never worse.
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

// Operators are told by their indices in the block of the file; programs of other formats have the
// operators that `heddle opt --opt 0` writes.
struct PlacedGroup {
  int target = 0;                    // among the targets
  std::vector<int> operators;        // in the order in which the units take them
  std::vector<std::string> units;    // of each
  std::vector<int> helpers;          // constants and operators of shapes inside, ascending
  std::vector<std::string> inputs;   // variables read inside and made outside; no parameters
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
  std::vector<RestOperator> rest;  // ascending; every operator is there or in one group
  double groups_cost = 0, host_cost = 0;
};

struct Partition {
  std::vector<std::string> targets;
  std::vector<BlockPartition> blocks;  // of the program
  double ms = 0;                       // that the grouping took
};

// The bytes that the partition goes by: a ProgramDesc, as the file has it or as it is written at
// level 0. kUnimplemented: it cannot be written.
Result<std::string> ProgramBytesOf(const Program& program);

// Several targets claim operators in this order. kInvalidArgument: no target, or two of one name;
// kDataLoss: no ProgramDesc.
Result<Partition> PartitionBytes(std::string_view program_desc, const std::vector<Target>& targets);

// The operators and their edges as a graph in Graphviz's language, each group a cluster; operators
// that stay are dashed, helpers dotted, edges without data dashed.
Result<std::string> PartitionDot(std::string_view program_desc, const Partition& partition);

}  // namespace heddle::partition
