#include "offload/onnx/model.h"

#include <bit>

#include "core/error.h"
#include "formats/wire_fields.h"

namespace heddle::offload::to_onnx {
namespace {

using wire::AppendBytesField;
using wire::AppendVarint;
using wire::AppendVarintField;

constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;  // of a message
constexpr int64_t kIrVersion = 8;

// Fields of onnx.proto.
namespace field {
constexpr uint32_t kModelIrVersion = 1, kModelProducer = 2, kModelGraph = 7, kModelOpset = 8;
constexpr uint32_t kOpsetDomain = 1, kOpsetVersion = 2;
constexpr uint32_t kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11,
                   kGraphOutput = 12;
constexpr uint32_t kNodeInput = 1, kNodeOutput = 2, kNodeType = 4, kNodeAttribute = 5;
constexpr uint32_t kAttributeName = 1, kAttributeF = 2, kAttributeI = 3, kAttributeS = 4,
                   kAttributeT = 5, kAttributeFloats = 7, kAttributeInts = 8, kAttributeStrings = 9,
                   kAttributeType = 20;
constexpr uint32_t kTensorDims = 1, kTensorType = 2, kTensorName = 8, kTensorRaw = 9;
constexpr uint32_t kValueName = 1, kValueType = 2, kTypeTensor = 1, kTensorTypeElement = 1,
                   kTensorTypeShape = 2, kShapeDim = 1, kDimValue = 1;
}  // namespace field

void AppendFixed32(float value, std::string* to) {
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) to->push_back(static_cast<char>(bits >> shift));
}

uint64_t VarintBytes(uint64_t v) {
  uint64_t n = 1;
  for (; v >= 0x80; v >>= 7) ++n;
  return n;
}

// A tensor's message but for its contents, which come last.
std::string TensorHead(const std::string& name, const Tensor& t) {
  std::string head;
  for (int64_t d : t.shape())
    AppendVarintField(field::kTensorDims, static_cast<uint64_t>(d), &head);
  AppendVarintField(field::kTensorType, static_cast<uint64_t>(ElementType(t.dtype())), &head);
  if (!name.empty()) AppendBytesField(field::kTensorName, name, &head);
  AppendVarint(field::kTensorRaw << 3 | wire::Field::kBytes, &head);
  AppendVarint(t.bytes(), &head);
  return head;
}

void AppendContents(const Tensor& t, std::string* to) {
  if (t.bytes() > 0) to->append(static_cast<const char*>(t.raw()), t.bytes());
}

std::string AttributeBytes(const Attribute& a) {
  std::string bytes;
  AppendBytesField(field::kAttributeName, a.name, &bytes);
  int type = 0;  // AttributeProto.AttributeType
  if (const auto* i = std::get_if<int64_t>(&a.value)) {
    type = 2;
    AppendVarintField(field::kAttributeI, static_cast<uint64_t>(*i), &bytes);
  } else if (const auto* f = std::get_if<double>(&a.value)) {
    type = 1;
    AppendVarint(field::kAttributeF << 3 | wire::Field::kFixed32, &bytes);
    AppendFixed32(static_cast<float>(*f), &bytes);
  } else if (const auto* s = std::get_if<std::string>(&a.value)) {
    type = 3;
    AppendBytesField(field::kAttributeS, *s, &bytes);
  } else if (const auto* ints = std::get_if<Ints>(&a.value)) {
    type = 7;
    for (int64_t v : *ints)
      AppendVarintField(field::kAttributeInts, static_cast<uint64_t>(v), &bytes);
  } else if (const auto* floats = std::get_if<Floats>(&a.value)) {
    type = 6;
    for (double v : *floats) {
      AppendVarint(field::kAttributeFloats << 3 | wire::Field::kFixed32, &bytes);
      AppendFixed32(static_cast<float>(v), &bytes);
    }
  } else if (const auto* strings = std::get_if<Strings>(&a.value)) {
    type = 8;
    for (const std::string& text : *strings)
      AppendBytesField(field::kAttributeStrings, text, &bytes);
  } else {
    type = 4;
    const Tensor& t = *std::get<std::shared_ptr<const Tensor>>(a.value);
    std::string tensor = TensorHead("", t);
    AppendContents(t, &tensor);
    AppendBytesField(field::kAttributeT, tensor, &bytes);
  }
  AppendVarintField(field::kAttributeType, static_cast<uint64_t>(type), &bytes);
  return bytes;
}

std::string NodeBytes(const Node& node) {
  std::string bytes;
  for (const std::string& name : node.inputs) AppendBytesField(field::kNodeInput, name, &bytes);
  for (const std::string& name : node.outputs) AppendBytesField(field::kNodeOutput, name, &bytes);
  AppendBytesField(field::kNodeType, node.type, &bytes);
  for (const Attribute& a : node.attributes)
    AppendBytesField(field::kNodeAttribute, AttributeBytes(a), &bytes);
  return bytes;
}

}  // namespace

int ElementType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 1;
    case DType::kU8:
      return 2;
    case DType::kI8:
      return 3;
    case DType::kI16:
      return 5;
    case DType::kI32:
      return 6;
    case DType::kI64:
      return 7;
    case DType::kBool:
      return 9;
    case DType::kF64:
      return 11;
    default:
      return 0;
  }
}

std::string ModelBuilder::FreshName(std::string_view stem) {
  for (size_t k = nodes_.size();; ++k)
    if (std::string name = StrCat(stem, "/", k); TakeName(name)) return name;
}

void ModelBuilder::AddInput(const std::string& name, DType dtype, const Shape& shape) {
  inputs_.push_back({name, dtype, shape});
}
void ModelBuilder::AddOutput(const std::string& name, DType dtype, const Shape& shape) {
  outputs_.push_back({name, dtype, shape});
}
void ModelBuilder::AddConstant(const std::string& name, Tensor value) {
  constants_.emplace_back(name, std::move(value));
}

std::string ModelBuilder::PortBytes(const Port& port) {
  std::string tensor, type, value;
  AppendVarintField(field::kTensorTypeElement, static_cast<uint64_t>(ElementType(port.dtype)),
                    &tensor);
  if (port.shape.known_rank()) {
    std::string shape;
    for (int64_t d : port.shape) {
      std::string dim;
      if (d >= 0) AppendVarintField(field::kDimValue, static_cast<uint64_t>(d), &dim);
      AppendBytesField(field::kShapeDim, dim, &shape);
    }
    AppendBytesField(field::kTensorTypeShape, shape, &tensor);
  }
  AppendBytesField(field::kTypeTensor, tensor, &type);
  AppendBytesField(field::kValueName, port.name, &value);
  AppendBytesField(field::kValueType, type, &value);
  return value;
}

std::string ModelBuilder::NodesBytes() const {
  std::string bytes;
  for (const Node& node : nodes_) AppendBytesField(field::kGraphNode, NodeBytes(node), &bytes);
  return bytes;
}

std::string ModelBuilder::PortsBytes() const {
  std::string bytes;
  for (const Port& port : inputs_) AppendBytesField(field::kGraphInput, PortBytes(port), &bytes);
  for (const Port& port : outputs_) AppendBytesField(field::kGraphOutput, PortBytes(port), &bytes);
  return bytes;
}

std::string ModelBuilder::Outline(
    const std::unordered_map<const void*, uint32_t>& parameters) const {
  std::string bytes = StrCat(kOpset, " ", kIrVersion, "\n") + NodesBytes() + PortsBytes();
  for (const auto& [name, tensor] : constants_) {
    const auto parameter = parameters.find(tensor.raw());
    std::string constant = TensorHead(name, tensor);
    if (tensor.bytes() > 0 && parameter != parameters.end())
      AppendVarint(parameter->second, &constant);
    else
      AppendContents(tensor, &constant);
    AppendBytesField(field::kGraphInitializer, constant, &bytes);
  }
  return bytes;
}

Result<std::string> ModelBuilder::Serialize(const std::string& graph) const {
  // The weights are the bulk: they are written once, into memory that is there already.
  std::string head = NodesBytes();
  AppendBytesField(field::kGraphName, graph, &head);
  uint64_t size = head.size();
  for (const auto& [name, tensor] : constants_) {
    const uint64_t whole = TensorHead(name, tensor).size() + tensor.bytes();
    size += 1 + VarintBytes(whole) + whole;
  }
  const std::string tail = PortsBytes();
  size += tail.size();
  std::string opset, model;
  AppendBytesField(field::kOpsetDomain, "", &opset);
  AppendVarintField(field::kOpsetVersion, static_cast<uint64_t>(kOpset), &opset);
  AppendVarintField(field::kModelIrVersion, static_cast<uint64_t>(kIrVersion), &model);
  AppendBytesField(field::kModelProducer, "heddle", &model);
  AppendBytesField(field::kModelOpset, opset, &model);
  const uint64_t all = model.size() + 1 + VarintBytes(size) + size;
  if (all > kMostBytes)
    return Unimplemented("the model takes ", all, " bytes, and a message may have ", kMostBytes);
  model.reserve(all);
  AppendVarint(field::kModelGraph << 3 | wire::Field::kBytes, &model);
  AppendVarint(size, &model);
  model += head;
  for (const auto& [name, tensor] : constants_) {
    const std::string message = TensorHead(name, tensor);
    AppendVarint(field::kGraphInitializer << 3 | wire::Field::kBytes, &model);
    AppendVarint(message.size() + tensor.bytes(), &model);
    model += message;
    AppendContents(tensor, &model);
  }
  model += tail;
  return model;
}

}  // namespace heddle::offload::to_onnx
