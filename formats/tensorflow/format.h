// TensorFlow's graphs: GraphDef messages, and SavedModels.
#pragma once

#include "formats/program_source.h"

namespace heddle::tensorflow {

const formats::Format& TensorflowFormat();

}  // namespace heddle::tensorflow
