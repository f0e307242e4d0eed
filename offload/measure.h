// Which groups an engine computes faster than heddle, copies between both included.
//
// Threads: one at a time. Nothing that a model holds is written: trial runs have a scope of their
// own.
#pragma once

#include <memory>
#include <vector>

#include "heddle/engine.h"
#include "offload/split.h"

namespace heddle::offload {

// A group and what an engine has made of it.
struct Candidate {
  std::shared_ptr<const Group> group;
  std::shared_ptr<Module> module;
  OffloadedGroup* report = nullptr;
};

// Runs the program with `options.feeds` as `options` say: with all groups on their engines, each
// group on heddle, then the whole with and without the groups that are faster. Returns those that
// are taken and says in the reports, and of the whole in `report`, what decided. A group whose
// engine fails is not taken. Errors are those of the program itself.
Result<std::vector<Candidate>> TakeFaster(const Model& model, const Split& split,
                                          const OffloadOptions& options,
                                          std::vector<Candidate> candidates, OffloadReport* report);

}  // namespace heddle::offload
