// Conversion of values of ONNX models: TensorProto, SequenceProto and OptionalProto messages in
// files (such as the official test suite's input_<k>.pb and output_<k>.pb).
//
// heddle has no dtype for some of ONNX's element types and uses wider ones (uint16 as int32, uint32
// and uint64 as int64, 4 and 2 bits as one byte, narrow floats as bytes with their bits), and holds
// strings in a Value of another kind; these functions convert. Threads: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/program.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle {

// An input or an output of an ONNX model, as the model declares it.
struct OnnxPort {
  std::string name;
  std::string type;           // in ONNX Runtime's notation: "tensor(float)", "seq(tensor(int64))"
  int element = 0;            // TensorProto.DataType of the tensor, or of those in the sequence
  bool ranked = false;        // whether dims are declared
  std::vector<int64_t> dims;  // -1: an open dimension
  // For an output that is a sequence of maps (ZipMap): the keys, of one kind. It is fetched as a
  // matrix with a row per map and a column per key.
  std::vector<std::string> keys;
  std::vector<int64_t> int_keys;
};

// Whether the program was read from an ONNX model. For other programs the functions below return
// kInvalidArgument.
bool IsOnnx(const Program& program);
Result<std::vector<OnnxPort>> OnnxInputs(const Program& program);
Result<std::vector<OnnxPort>> OnnxOutputs(const Program& program);

// The value to feed as `input` for this message. kDataLoss: the message is damaged;
// kInvalidArgument: its type is not the declared one.
Result<Value> ReadOnnxInput(const Program& program, size_t input, std::string_view message);
// The value of any TensorProto, and the name of its element type: "uint16", "float8e5m2", "string".
// kDataLoss: the message is damaged.
Result<Value> ReadOnnxTensor(std::string_view message, std::string* type);
// The message for a fetched value of output `output`.
Result<std::string> WriteOnnxOutput(const Program& program, size_t output, const Value& value);

}  // namespace heddle
