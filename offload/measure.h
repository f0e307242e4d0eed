// Finds the groups that an engine computes faster than heddle, including the copies between both.
//
// Threads: one at a time. Nothing in the model is written: trial runs have their own scope.
#pragma once

#include <memory>
#include <vector>

#include "heddle/engine.h"
#include "offload/split.h"

namespace heddle::offload {

// A group, and the engine's module for it.
struct Candidate {
  std::shared_ptr<const Group> group;
  std::shared_ptr<Module> module;
  OffloadedGroup* report = nullptr;
};

// Runs the program with `options.feeds` according to `options`: with all groups on their engines,
// with each group on heddle, then the whole with and without the faster groups. Returns the groups
// to take, and writes the reasons to the groups' reports and, for the whole, to `report`. A group
// whose engine fails is not taken. Errors are those of the program itself.
Result<std::vector<Candidate>> TakeFaster(const Model& model, const Split& split,
                                          const OffloadOptions& options,
                                          std::vector<Candidate> candidates, OffloadReport* report);

}  // namespace heddle::offload
