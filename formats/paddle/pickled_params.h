// State dicts as paddle.save pickles them; ReadPickledTensors() is in heddle/params.h.
#pragma once

#include "formats/data_file.h"
#include "heddle/params.h"

namespace heddle::paddle {

// Whether the file begins as a pickle of protocol 2 or later; no record begins so.
bool LooksPickled(const formats::DataFile& file);

// Implements heddle::ReadPickledTensors.
Result<NamedTensors> ReadPickledTensors(const formats::DataFile& file);

}  // namespace heddle::paddle
