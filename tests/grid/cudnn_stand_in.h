// A stand-in for libcudnn: descriptors that keep what they are given and check it as cuDNN's
// documentation says, heuristics that name the engines of a list, and an executor that interprets
// the graph by its definition.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/dnn/cudnn.h"

namespace heddle::testing {

struct StandInEngine {
  int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> notes = {};
  int64_t workspace = 0;
  size_t most_operations = 8;  // of a graph that it supports
  bool fallback = false;       // named in the mode FALLBACK instead of A
};

// State that the functions below share, since they are plain functions. One test uses it at a time.
struct CudnnStandIn {
  std::vector<StandInEngine> engines = {{1}};
  size_t version = 91900;
  bool refuses_handles = false;
  // Counted over all calls.
  int handles = 0, descriptors = 0;  // that are there
  int executed = 0;
  std::vector<std::string> mistakes;

  static CudnnStandIn& Get();
  static void Reset() { Get() = CudnnStandIn(); }
};

grid_on_host::CudnnApi StandInApi();

}  // namespace heddle::testing
