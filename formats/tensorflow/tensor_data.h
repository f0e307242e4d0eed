// Tensors in TensorFlow's form (TensorProto).
//
// Ownership: TensorData refers to the bytes that it was read from. Threads: any may read.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/lowering/tensor_bytes.h"
#include "formats/tensorflow/types.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

using TensorData = formats::TensorBytes;

// Sets the type, and the fields that follow from it.
void SetType(TensorData* data, int64_t type);
Result<TensorData> ReadTensorData(std::string_view bytes);

}  // namespace heddle::tensorflow
