// Writes variables in the form of TensorFlow's checkpoints and SavedModels: PREFIX.index, a sorted
// table of names, and PREFIX.data-00000-of-00001.
#pragma once

#include <string>

#include "heddle/params.h"
#include "heddle/status.h"

namespace heddle {

// Replaces both files. kInvalidArgument: two tensors with one name, or a dtype that TensorFlow
// lacks; kResourceExhausted: the disk is full. Threads: any.
Status SaveVariablesBundle(const std::string& prefix, const NamedTensors& tensors);

}  // namespace heddle
