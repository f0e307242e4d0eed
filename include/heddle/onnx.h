// Values of ONNX models as files hold them: TensorProto, SequenceProto and OptionalProto messages
// (the official test suite's input_<k>.pb and output_<k>.pb).
//
// heddle has no dtype for some of ONNX's element types and holds their elements in wider ones
// (uint16 as int32, uint32 and uint64 as int64, 4 and 2 bits as one byte, narrow floats as bytes
// with their bits), and strings in a Value of another kind; these functions convert. Threads: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/program.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle {

// An input or output of an ONNX model as the model declares it.
struct OnnxPort {
  std::string name;
  std::string type;           // as ONNX Runtime writes it: "tensor(float)", "seq(tensor(int64))"
  int element = 0;            // TensorProto.DataType of tensors, and of those in sequences
  bool ranked = false;        // dims are declared
  std::vector<int64_t> dims;  // -1: open
  // The keys, of one kind, of an output that is a sequence of maps (ZipMap). It is fetched as a
  // matrix: a row for each map, a column for each key.
  std::vector<std::string> keys;
  std::vector<int64_t> int_keys;
};

// Whether the program was read from an ONNX model. The others of these functions are
// kInvalidArgument for programs that were not.
bool IsOnnx(const Program& program);
Result<std::vector<OnnxPort>> OnnxInputs(const Program& program);
Result<std::vector<OnnxPort>> OnnxOutputs(const Program& program);

// The value to feed as `input` for this message. kDataLoss: damaged; kInvalidArgument: of another
// type than declared.
Result<Value> ReadOnnxInput(const Program& program, size_t input, std::string_view message);
// The value of a TensorProto, whatever it is for, and the name of its element type: "uint16",
// "float8e5m2", "string". kDataLoss: damaged.
Result<Value> ReadOnnxTensor(std::string_view message, std::string* type);
// The message for what output `output` was fetched as.
Result<std::string> WriteOnnxOutput(const Program& program, size_t output, const Value& value);

}  // namespace heddle
