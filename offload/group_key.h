// What makes two groups equal for an engine: all that it is told of them, but for names.
//
// Ownership: values; tensors are shared. Threads: any.
#pragma once

#include <memory>
#include <string>

#include "heddle/heddle_engine.h"
#include "offload/digest.h"
#include "offload/group.h"
#include "offload/group_description.h"

namespace heddle::offload {

// The group with its variables named by their positions, so that equal groups are given to engines
// with equal names. Parameters in memory that heddle does not keep alive are copied: what is
// compiled from the group may outlive the program that it came from. kResourceExhausted.
Result<std::shared_ptr<const Group>> WithoutNames(const Group& group);

// `about`: who compiles it and how.
DigestBytes KeyOf(const GroupDescription& description, const std::string& about);

// What answers about the group's operators hang on, for an engine that wants ONNX where `onnx` is
// not null. Names of variables count, since answers speak of them, and contents of parameters by
// checksums that are no secret: a wrong answer costs time, and no result.
DigestBytes AnswersKeyOf(const Group& group, OnnxWriter* onnx, const std::string& about);

// Whether the parameters of a group that was equal once still are those of the other.
bool HaveEqualParameters(const heddle_engine_group& a, const heddle_engine_group& b);

}  // namespace heddle::offload
