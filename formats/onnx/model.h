// An ONNX model as its file has it: graphs of nodes over named values, parsed with bounds checks
// and not interpreted. Field names are those of onnx.proto.
//
// Ownership: everything refers to the bytes that it was read from. Threads: any may read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/tensor_data.h"
#include "heddle/status.h"

namespace heddle::onnx {

inline constexpr int64_t kNewestIr = 14;
inline constexpr int64_t kNewestOpset = 28;

struct Type {
  enum class Kind : uint8_t { kNone, kTensor, kSparse, kSequence, kOptional, kMap, kOpaque };
  Kind kind = Kind::kNone;
  int element = 0;            // element type of a tensor; key type of a map
  bool ranked = false;        // dims are given
  std::vector<int64_t> dims;  // -1: not known
  std::vector<Type> inner;    // the one type inside a sequence, an optional or a map
};

struct ValueInfo {
  std::string_view name;
  Type type;
};

struct Graph;

struct Attribute {
  enum Kind : int {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparse = 11,
    kSparses = 12,
    kType = 13,
    kTypes = 14
  };
  std::string_view name;
  std::string_view reference;  // name of the function's attribute from which it takes its value
  std::string_view message;    // its bytes
  int kind = kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::shared_ptr<const TensorData> tensor;
  std::shared_ptr<const SparseData> sparse;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Type> type;
  bool has_others = false;  // lists of tensors, graphs or types, which no operator uses
  bool IsInts() const { return kind == kInts; }
};

struct Node {
  int index = 0;  // in its graph
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Attribute> attributes;

  const Attribute* Find(std::string_view attribute) const;
  // "com.microsoft.Gelu"; the domain of ONNX itself is left out.
  std::string FullName() const;
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<TensorData> initializers;
  std::vector<SparseData> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs;
};

struct OpsetImport {
  std::string_view domain;  // "" for ONNX itself
  int64_t version = 0;
};

struct Function {
  std::string_view domain, name, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> attributes;  // without a default
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::vector<OpsetImport> opsets;
  Graph graph;
  std::vector<Function> functions;
};

// Parses a model. kDataLoss: no model, or damaged; kUnimplemented: of a newer version. The message
// says where.
Result<Model> ReadModel(std::string_view bytes);

// The domain with "ai.onnx" replaced by "", its other name.
std::string_view Domain(std::string_view name);

Result<Type> ReadType(std::string_view bytes, int depth = 0);

}  // namespace heddle::onnx
