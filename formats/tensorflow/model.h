// A GraphDef, MetaGraphDef or SavedModel as its file has it. Names and contents are left in the
// file's bytes.
//
// Ownership: everything here refers to the bytes that it was read from. Threads: any may read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/attr.h"
#include "formats/tensorflow/tensor_data.h"
#include "heddle/shape.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

struct Attribute;

// NameAttrList: a function and the attributes of its call.
struct FunctionName {
  std::string_view name;
  std::vector<Attribute> attributes;
};

// TensorShapeProto; Shape::Unknown() for an unknown rank. `too_large`: the rank is above heddle's
// limit.
struct ShapeData {
  Shape shape = Shape::Unknown();
  bool too_large = false;
};

// AttrValue
struct Attribute {
  enum Kind : uint8_t {
    kNone,
    kString,
    kInt,
    kFloat,
    kBool,
    kType,
    kShape,
    kTensor,
    kFunction,
    kList,
    kPlaceholder  // `s` names an attribute of the enclosing function
  };
  std::string_view name;
  Kind kind = kNone;
  std::string_view message;  // its bytes
  std::string_view s;
  int64_t i = 0;  // kInt, kBool, kType
  float f = 0;
  ShapeData shape;
  std::shared_ptr<const TensorData> tensor;
  std::shared_ptr<const FunctionName> function;
  // Elements of a list, all of one kind.
  Ints ints;  // integers, types, bools
  Floats floats;
  std::vector<std::string_view> strings;
  std::vector<ShapeData> shapes;
  std::vector<FunctionName> functions;
  bool IsInts() const { return kind == kList; }
};

// Calls fn(name) for each function that the attribute names, also in the attributes of their calls.
template <typename Fn>
void EachNamed(const Attribute& a, const Fn& fn) {
  const auto visit = [&](const FunctionName& f) {
    fn(f.name);
    for (const Attribute& inner : f.attributes) EachNamed(inner, fn);
  };
  if (a.function != nullptr) visit(*a.function);
  for (const FunctionName& f : a.functions) visit(f);
}

// NodeDef
struct Node {
  std::string_view name, op;
  int index = 0;                         // in its graph or function
  std::vector<std::string_view> inputs;  // "node", "node:1", "^node", "node:output:0"
  std::vector<Attribute> attributes;
  const Attribute* Find(std::string_view attribute) const;
};

// OpDef.ArgDef
struct Argument {
  std::string_view name;
  int64_t type = 0;
  std::string_view type_attribute, number_attribute, type_list_attribute;
};

// OpDef.AttrDef
struct DeclaredAttribute {
  std::string_view name, type;
  Attribute default_value;  // kNone: none
};

// FunctionDef
struct Function {
  std::string_view name;
  std::vector<Argument> inputs, outputs;
  std::vector<DeclaredAttribute> attributes;
  std::vector<Node> nodes;
  std::vector<std::pair<std::string_view, std::string_view>> results;  // output argument, reference
  std::vector<std::string_view> control_results;                       // nodes that must run
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Function> functions;
  int64_t producer = 0;
};

// TensorInfo of a signature: a key, and the tensor that it names.
struct SignatureValue {
  std::string_view key, tensor;
  int64_t type = 0;
  ShapeData shape;
};

struct Signature {
  std::string_view key;
  std::vector<SignatureValue> inputs, outputs;  // sorted by key
};

// A file beside a SavedModel: the tensor that holds its name, and its path below assets/.
struct Asset {
  std::string_view tensor, file;
};

// The contents of a file: a GraphDef, a MetaGraphDef, or the chosen meta graph of a SavedModel.
struct Model {
  Graph graph;
  bool is_meta_graph = false;         // a file of its own, beside a checkpoint
  std::vector<Signature> signatures;  // of a meta graph
  std::string_view restore_op;        // node that restores the variables
  std::string_view filename_tensor;   // tensor with the checkpoint's name
  std::string_view save_tensor;       // node that saves the variables
  std::vector<Asset> assets;
  std::vector<std::string_view> init_ops;  // nodes that run once when the model is loaded
};

// Whether the bytes begin as such a message does.
bool LooksLikeGraph(std::string_view bytes);
bool LooksLikeMetaGraph(std::string_view bytes);
bool LooksLikeSavedModel(std::string_view bytes);
// Parses a file. `signature` decides where no meta graph of a SavedModel is tagged "serve".
// kDataLoss: not a file of that kind, or cut short.
Result<Model> ReadModel(std::string_view bytes, std::string_view signature = {});
// Parses an AttrValue.
Status ParseAttribute(std::string_view message, Attribute* a);

}  // namespace heddle::tensorflow
