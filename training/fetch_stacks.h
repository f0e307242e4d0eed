// The fetched values of all steps of a training job, stacked along a new first axis.
//
// Threads: one at a time. Errors: kInvalidArgument: a value has another dtype or shape than those
// before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/params.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle::training {

class FetchStacks {
 public:
  explicit FetchStacks(std::vector<std::string> names) : stacks_(names.size()) {
    for (size_t k = 0; k < names.size(); ++k) stacks_[k].name = std::move(names[k]);
  }
  // Fails when a value has another dtype or shape than those before it, and then adds none.
  Status Add(int64_t step, const std::vector<Value>& values);
  // Begins with the values of earlier steps.
  Status Restore(const NamedTensors& stacked);
  Result<NamedTensors> Stacked() const;
  // DIR/out_<k>.npy
  Status Write(const std::string& directory) const;

 private:
  struct Stack {
    std::string name;
    DType dtype = DType::kUnknown;
    Shape shape;  // of one step
    std::string bytes;
  };
  std::vector<Stack> stacks_;
  int64_t steps_ = 0;
};

}  // namespace heddle::training
