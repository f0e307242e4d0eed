// What OpenVINO is asked to compute: the target file of the engine, and what patterns cannot say.
#pragma once

#include <string>

#include "heddle/heddle_engine.h"

namespace heddle_openvino {

// docs/partition.md.
std::string TargetText();

// Why an operator of the group is not for OpenVINO, by the types of its operands; empty: all
// may be. OpenVINO's processor plug-in computes float64 as float32, int64 as int32, and sums of
// int32 as float32: integers are taken where they name places, and nowhere else.
std::string WhyNot(const heddle_engine_group& group);

}  // namespace heddle_openvino
