// The types heddle._heddle.Rank and ReaderQueue: what executors exchange with others during runs.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "heddle/heddle.h"

namespace heddle::python {

// A rank of a group, for an executor.
struct Rank {
  std::shared_ptr<Communicator> communicator;
};

void BindExchange(nanobind::module_& module);

}  // namespace heddle::python
