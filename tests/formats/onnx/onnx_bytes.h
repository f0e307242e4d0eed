// Writes small ONNX models byte by byte, for tests of what reads them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "formats/wire_fields.h"

namespace heddle::testing {

// A protobuf message.
class Message {
 public:
  Message& Int(uint32_t field, int64_t value) {
    wire::AppendVarintField(field, static_cast<uint64_t>(value), &bytes_);
    return *this;
  }
  Message& Bytes(uint32_t field, std::string_view value) {
    wire::AppendBytesField(field, value, &bytes_);
    return *this;
  }
  Message& Add(uint32_t field, const Message& value) { return Bytes(field, value.bytes_); }
  Message& Float(uint32_t field, float value) {
    wire::AppendVarint(field << 3 | 5, &bytes_);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

template <typename T>
std::string RawOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// TensorProto without contents.
inline Message TensorHead(std::string_view name, int type, const std::vector<int64_t>& dims) {
  Message t;
  for (int64_t d : dims) t.Int(1, d);
  t.Int(2, type);
  if (!name.empty()) t.Bytes(8, name);
  return t;
}
inline Message Tensor32(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<float>& values) {
  return TensorHead(name, 1, dims).Bytes(9, RawOf(values));
}
inline Message Tensor64(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<int64_t>& values) {
  return TensorHead(name, 7, dims).Bytes(9, RawOf(values));
}

// AttributeProto
inline Message IntAttr(std::string_view name, int64_t value) {
  return Message().Bytes(1, name).Int(3, value).Int(20, 2);
}
inline Message FloatAttr(std::string_view name, float value) {
  return Message().Bytes(1, name).Float(2, value).Int(20, 1);
}
inline Message IntsAttr(std::string_view name, const std::vector<int64_t>& values) {
  Message a = Message().Bytes(1, name).Int(20, 7);
  for (int64_t v : values) a.Int(8, v);
  return a;
}
inline Message TensorAttr(std::string_view name, const Message& tensor) {
  return Message().Bytes(1, name).Add(5, tensor).Int(20, 4);
}
inline Message GraphAttr(std::string_view name, const Message& graph) {
  return Message().Bytes(1, name).Add(6, graph).Int(20, 5);
}
inline Message ReferenceAttr(std::string_view name, std::string_view of, int kind) {
  return Message().Bytes(1, name).Bytes(21, of).Int(20, kind);
}

inline Message Node(std::string_view type, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs,
                    const std::vector<Message>& attributes = {}, std::string_view domain = "") {
  Message n;
  for (const std::string& name : inputs) n.Bytes(1, name);
  for (const std::string& name : outputs) n.Bytes(2, name);
  n.Bytes(4, type);
  for (const Message& a : attributes) n.Add(5, a);
  if (!domain.empty()) n.Bytes(7, domain);
  return n;
}

// ValueInfoProto of a tensor.
inline Message TensorInfoOf(std::string_view name, int type, const std::vector<int64_t>& dims) {
  Message shape;
  for (int64_t d : dims) shape.Add(1, d < 0 ? Message().Bytes(2, "n") : Message().Int(1, d));
  const Message tensor = Message().Int(1, type).Add(2, shape);
  return Message().Bytes(1, name).Add(2, Message().Add(1, tensor));
}

// GraphProto, part by part.
class OnnxGraph {
 public:
  OnnxGraph& Add(const Message& node) {
    graph_.Add(1, node);
    return *this;
  }
  OnnxGraph& Weight(const Message& tensor) {
    graph_.Add(5, tensor);
    return *this;
  }
  OnnxGraph& In(std::string_view name, int type = 1, const std::vector<int64_t>& dims = {-1}) {
    graph_.Add(11, TensorInfoOf(name, type, dims));
    return *this;
  }
  OnnxGraph& Out(std::string_view name, int type = 1, const std::vector<int64_t>& dims = {-1}) {
    graph_.Add(12, TensorInfoOf(name, type, dims));
    return *this;
  }
  OnnxGraph& Raw(uint32_t field, const Message& value) {
    graph_.Add(field, value);
    return *this;
  }
  const Message& message() const { return graph_; }
  // The ModelProto; `more`: further fields of it.
  std::string Model(int64_t opset = 17, const Message& more = {}) const {
    const Message import = Message().Int(2, opset);
    return Message().Int(1, 8).Add(8, import).Add(7, graph_).bytes() + more.bytes();
  }

 private:
  Message graph_;
};

}  // namespace heddle::testing
