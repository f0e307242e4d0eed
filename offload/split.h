// A program and the groups that can be taken out of it, and the program with some of them as one
// operator each.
//
// Ownership: values; programs are shared. Threads: any may read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/program.h"
#include "offload/group.h"
#include "offload/group_op.h"
#include "partition/graph.h"
#include "partition/partition.h"

namespace heddle::offload {

class Split {
 public:
  // `fetches`: instead of the program's own; empty: those. `targets` claim in their order.
  static Result<std::unique_ptr<Split>> Make(const Model& model,
                                             const std::vector<std::string>& fetches,
                                             const std::vector<partition::Target>& targets);

  const std::vector<std::shared_ptr<Group>>& groups() const { return groups_; }
  // Puts a rewritten group in the place of one with the same interface.
  void Replace(size_t index, std::shared_ptr<Group> group) { groups_[index] = std::move(group); }
  // Takes `program`, which passes made of that of Join(calls), for what stays: each of `calls`
  // once. `form`: equal ones for equal programs.
  void SetHost(std::shared_ptr<const ir::Program> program, uint64_t form,
               std::vector<std::shared_ptr<const GroupOp>> calls);
  int operators() const { return operators_; }
  // The program with the group of each definition as one operator of that definition. Keeps the
  // definitions alive.
  Result<Program> Join(const std::vector<std::shared_ptr<const GroupOp>>& ops) const;

 private:
  Split() = default;
  Status Read(const Model& model, const std::vector<std::string>& fetches);
  void AddGroups(const partition::Partition& partition, const Scope& scope);
  std::string WhyWhole(int block) const;
  void AddGroup(const partition::PlacedGroup& placed, int block, const Scope& scope);
  void Cut(const partition::PlacedGroup& placed, const Scope& scope, Group* group) const;
  Program JoinHost(const std::vector<std::shared_ptr<const GroupOp>>& ops) const;
  std::vector<ir::Op> Ordered(int block, std::vector<ir::Op> ops,
                              const std::vector<std::shared_ptr<const GroupOp>>& groups) const;

  std::string bytes_;
  partition::Description description_;
  std::shared_ptr<const ir::Program> program_;
  std::vector<bool> written_;                              // of its variables, by any operator
  std::vector<std::unique_ptr<partition::Graph>> graphs_;  // of each block that has groups
  std::vector<std::vector<int>> positions_;  // of each operator of the file in its block; -1: none
  std::vector<std::shared_ptr<Group>> groups_;
  int operators_ = 0;
  // What passes made of the host's program. Null: nothing.
  std::shared_ptr<const ir::Program> host_;
  uint64_t host_form_ = 0;
  std::vector<std::shared_ptr<const GroupOp>> calls_;  // in it
};

}  // namespace heddle::offload
