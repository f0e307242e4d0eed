// Tensors as TensorFlow stores them (TensorProto), and heddle's tensors of them.
//
// Ownership: TensorData refers to the bytes that it was read from. Threads: any may read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensorflow/types.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle::tensorflow {

struct TensorData {
  int type = kNoType;
  std::vector<int64_t> dims;
  bool unknown_rank = false;
  std::string_view content;  // raw little-endian elements
  bool has_content = false;
  // The values of the type's own field as they stand on the wire, in stretches.
  std::vector<std::string_view> typed;
  std::vector<std::string_view> strings;

  // Elements; an error where the dimensions are impossible.
  Result<int64_t> Count() const;
  // "float32 [2, 3]"
  std::string What() const;
};

Result<TensorData> ReadTensorData(std::string_view bytes);

// Whether raw contents of this type are heddle's storage byte for byte.
bool IsRawStorage(int64_t type);
// `raw` elements of a file widened to heddle's storage. Precondition: its length fits the count.
void UnpackRaw(int64_t type, std::string_view raw, int64_t count, void* to);

// The tensor in memory of its own; a StringTensor for strings. kInvalidArgument: the data does not
// fit type and dims; kUnimplemented; kResourceExhausted.
Result<Value> MakeValue(const TensorData& data);
Result<Tensor> MakeTensor(const TensorData& data);

}  // namespace heddle::tensorflow
