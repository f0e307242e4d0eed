// Writes variables as TensorFlow's checkpoints and SavedModels hold them: PREFIX.index, a sorted
// table of names, and PREFIX.data-00000-of-00001.
#pragma once

#include <string>

#include "heddle/params.h"
#include "heddle/status.h"

namespace heddle {

// Replaces both files. kInvalidArgument: two tensors of one name, or one that TensorFlow has no
// type for; kResourceExhausted: the disk is full. Threads: any.
Status SaveVariablesBundle(const std::string& prefix, const NamedTensors& tensors);

}  // namespace heddle
