// An ONNX model while it is made: nodes, constants, inputs and outputs, and its bytes.
//
// Ownership: values; constants share the memory of their tensors until Serialize copies it.
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "core/attr.h"
#include "heddle/dtype.h"
#include "heddle/shape.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle::offload::to_onnx {

inline constexpr int64_t kOpset = 17;

// TensorProto.DataType; 0: not among those that are written.
int ElementType(DType dtype);

// A FLOAT attribute is a double here, and must be a number that a float holds.
struct Attribute {
  std::string_view name;
  std::variant<int64_t, double, std::string, Ints, Floats, Strings, std::shared_ptr<const Tensor>>
      value;
};
using Attributes = std::vector<Attribute>;

struct Node {
  std::string type;
  std::vector<std::string> inputs, outputs;  // empty: none
  Attributes attributes;
};

class ModelBuilder {
 public:
  // A name that no value has, like `stem`; it is taken.
  std::string FreshName(std::string_view stem);
  // False: it is taken.
  bool TakeName(const std::string& name) { return names_.insert(name).second; }

  void AddInput(const std::string& name, DType dtype, const Shape& shape);
  // `shape`: as far as it is known.
  void AddOutput(const std::string& name, DType dtype, const Shape& shape);
  // The tensor must be contiguous.
  void AddConstant(const std::string& name, Tensor value);
  std::vector<Node>& nodes() { return nodes_; }

  // A ModelProto. kUnimplemented: more bytes than a message of protobuf may have.
  Result<std::string> Serialize(const std::string& graph) const;
  // What tells models apart whose parameters are equal: nodes, inputs, outputs, and constants, of
  // which those that lie where a parameter does are told by the number of that. `parameters`:
  // numbers by address.
  std::string Outline(const std::unordered_map<const void*, uint32_t>& parameters) const;

 private:
  struct Port {
    std::string name;
    DType dtype;
    Shape shape;
  };
  static std::string PortBytes(const Port& port);
  std::string NodesBytes() const;
  std::string PortsBytes() const;

  std::unordered_set<std::string> names_;
  std::vector<Port> inputs_, outputs_;
  std::vector<std::pair<std::string, Tensor>> constants_;
  std::vector<Node> nodes_;
};

}  // namespace heddle::offload::to_onnx
