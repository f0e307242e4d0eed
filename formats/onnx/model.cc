#include "formats/onnx/model.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/interrupts.h"
#include "formats/wire_fields.h"
#include "heddle/bounds.h"

namespace heddle::onnx {
namespace {

using wire::Field;
using wire::Fields;

Status Damaged(const char* what) { return DataLoss("damaged or cut short in ", what); }

// Calls `each` for every field of a message. It returns a bool, whether the field is well-formed,
// or a Status.
template <typename Each>
Status ForFields(std::string_view message, const char* what, Each each) {
  Fields fields(message);
  Field f;
  while (!fields.done()) {
    if (!fields.Next(&f)) return Damaged(what);
    HEDDLE_RETURN_IF_ERROR(each(f));
  }
  return Status::Ok();
}

template <typename T, typename Read>
Status Append(std::vector<T>* to, const Field& f, Read read) {
  HEDDLE_ASSIGN_OR_RETURN(T made, read(f.payload));
  to->push_back(std::move(made));
  return Status::Ok();
}

float FloatOf(std::string_view bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

Status AppendInts(const Field& f, std::vector<int64_t>* to) {
  if (f.wire_type == Field::kVarint) {
    to->push_back(f.integer());
    return Status::Ok();
  }
  std::string_view rest = f.payload;
  uint64_t v = 0;
  while (!rest.empty()) {
    if (f.wire_type != Field::kBytes || !wire::TakeVarint(&rest, &v)) return Damaged("integers");
    to->push_back(static_cast<int64_t>(v));
  }
  return Status::Ok();
}

Status AppendFloats(const Field& f, std::vector<double>* to) {
  if (f.wire_type == Field::kVarint || f.payload.size() % sizeof(float) != 0)
    return Damaged("numbers");
  for (size_t i = 0; i < f.payload.size(); i += sizeof(float))
    to->push_back(FloatOf(f.payload.substr(i)));
  return Status::Ok();
}

Status ReadDims(std::string_view bytes, Type* type) {
  type->ranked = true;
  return ForFields(bytes, "a shape", [&](const Field& f) {
    if (!f.Is(1)) return Status::Ok();
    int64_t dim = -1;
    HEDDLE_RETURN_IF_ERROR(ForFields(f.payload, "a dimension", [&](const Field& d) {
      if (d.IsVarint(1)) dim = std::max<int64_t>(d.integer(), -1);
      return Status::Ok();
    }));
    type->dims.push_back(dim);
    return Status::Ok();
  });
}

Status ReadInner(std::string_view bytes, Type::Kind kind, int depth, Type* type) {
  type->kind = kind;
  const uint32_t inner = kind == Type::Kind::kMap ? 2 : 1;
  return ForFields(bytes, "a type", [&](const Field& f) {
    if (kind == Type::Kind::kMap && f.IsVarint(1)) type->element = static_cast<int>(f.varint);
    if (!f.Is(inner)) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(Type made, ReadType(f.payload, depth + 1));
    type->inner.assign(1, std::move(made));
    return Status::Ok();
  });
}

Result<Graph> ReadGraph(std::string_view bytes, int depth);

Status ReadAttributeField(const Field& f, int depth, Attribute* a) {
  switch (f.number) {
    case 1:
      a->name = f.payload;
      return Status::Ok();
    case 2:
      if (f.wire_type != Field::kFixed32) return Damaged("an attribute");
      a->f = FloatOf(f.payload);
      return Status::Ok();
    case 3:
      a->i = f.integer();
      return Status::Ok();
    case 4:
      a->s = f.payload;
      return Status::Ok();
    case 5: {
      HEDDLE_ASSIGN_OR_RETURN(TensorData t, ReadTensorData(f.payload));
      a->tensor = std::make_shared<TensorData>(std::move(t));
      return Status::Ok();
    }
    case 6: {
      HEDDLE_ASSIGN_OR_RETURN(Graph g, ReadGraph(f.payload, depth + 1));
      a->graph = std::make_shared<Graph>(std::move(g));
      return Status::Ok();
    }
    case 7:
      return AppendFloats(f, &a->floats);
    case 8:
      return AppendInts(f, &a->ints);
    case 9:
      a->strings.push_back(f.payload);
      return Status::Ok();
    case 10:
    case 11:
    case 15:
    case 23:
      a->has_others = true;
      return Status::Ok();
    case 14: {
      HEDDLE_ASSIGN_OR_RETURN(Type t, ReadType(f.payload));
      a->type = std::make_shared<Type>(std::move(t));
      return Status::Ok();
    }
    case 20:
      a->kind = static_cast<int>(f.varint);
      return Status::Ok();
    case 21:
      a->reference = f.payload;
      return Status::Ok();
    case 22: {
      HEDDLE_ASSIGN_OR_RETURN(SparseData t, ReadSparseData(f.payload));
      a->sparse = std::make_shared<SparseData>(std::move(t));
      return Status::Ok();
    }
    default:
      return Status::Ok();
  }
}

// The kind of an attribute; files of the first versions leave it out.
int KindOf(const Attribute& a, uint32_t seen) {
  static constexpr std::pair<uint32_t, int> kKinds[] = {
      {2, Attribute::kFloat},  {3, Attribute::kInt},    {4, Attribute::kString},
      {5, Attribute::kTensor}, {6, Attribute::kGraph},  {7, Attribute::kFloats},
      {8, Attribute::kInts},   {9, Attribute::kStrings}};
  for (const auto& [field, kind] : kKinds)
    if (a.kind == Attribute::kUndefined && (seen >> field & 1) != 0) return kind;
  return a.kind;
}

Result<Attribute> ReadAttribute(std::string_view bytes, int depth) {
  Attribute a;
  a.message = bytes;
  uint32_t seen = 0;
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "an attribute", [&](const Field& f) {
    if (f.number < 32) seen |= 1u << f.number;
    return ReadAttributeField(f, depth, &a);
  }));
  a.kind = KindOf(a, seen);
  return a;
}

Result<Node> ReadNode(std::string_view bytes, int index, int depth) {
  LookForInterrupt();
  Node n;
  n.index = index;
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "a node", [&](const Field& f) {
    if (f.Is(1)) n.inputs.push_back(f.payload);
    if (f.Is(2)) n.outputs.push_back(f.payload);
    if (f.Is(3)) n.name = f.payload;
    if (f.Is(4)) n.op_type = f.payload;
    if (f.Is(5))
      return Append(&n.attributes, f, [&](std::string_view b) { return ReadAttribute(b, depth); });
    if (f.Is(7)) n.domain = Domain(f.payload);
    if (f.Is(8)) n.overload = f.payload;
    return Status::Ok();
  }));
  return n;
}

Result<ValueInfo> ReadValueInfo(std::string_view bytes) {
  ValueInfo info;
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "a value's description", [&](const Field& f) {
    if (f.Is(1)) info.name = f.payload;
    if (!f.Is(2)) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(info.type, ReadType(f.payload));
    return Status::Ok();
  }));
  return info;
}

Result<Graph> ReadGraph(std::string_view bytes, int depth) {
  Graph g;
  if (depth > kMostNestedGraphs)
    return DataLoss("more than ", kMostNestedGraphs, " levels of graphs");
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "a graph", [&](const Field& f) {
    if (f.Is(1)) {
      const int index = static_cast<int>(g.nodes.size());
      return Append(&g.nodes, f, [&](std::string_view b) { return ReadNode(b, index, depth); });
    }
    if (f.Is(2)) g.name = f.payload;
    if (f.Is(5)) return Append(&g.initializers, f, ReadTensorData);
    if (f.Is(11)) return Append(&g.inputs, f, ReadValueInfo);
    if (f.Is(12)) return Append(&g.outputs, f, ReadValueInfo);
    if (f.Is(15)) return Append(&g.sparse_initializers, f, ReadSparseData);
    return Status::Ok();
  }));
  return g;
}

Result<OpsetImport> ReadOpset(std::string_view bytes) {
  OpsetImport opset;
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "an opset", [&](const Field& f) {
    if (f.Is(1)) opset.domain = Domain(f.payload);
    if (f.IsVarint(2)) opset.version = f.integer();
    return Status::Ok();
  }));
  return opset;
}

Result<Function> ReadFunction(std::string_view bytes) {
  Function fn;
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "a function", [&](const Field& f) {
    if (f.Is(1)) fn.name = f.payload;
    if (f.Is(4)) fn.inputs.push_back(f.payload);
    if (f.Is(5)) fn.outputs.push_back(f.payload);
    if (f.Is(6)) fn.attributes.push_back(f.payload);
    if (f.Is(7)) {
      const int index = static_cast<int>(fn.nodes.size());
      return Append(&fn.nodes, f, [&](std::string_view b) { return ReadNode(b, index, 0); });
    }
    if (f.Is(9)) return Append(&fn.opsets, f, ReadOpset);
    if (f.Is(10)) fn.domain = Domain(f.payload);
    if (f.Is(11))
      return Append(&fn.defaults, f, [](std::string_view b) { return ReadAttribute(b, 0); });
    if (f.Is(13)) fn.overload = f.payload;
    return Status::Ok();
  }));
  return fn;
}

}  // namespace

std::string_view Domain(std::string_view name) { return name == "ai.onnx" ? "" : name; }

const Attribute* Node::Find(std::string_view attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

std::string Node::FullName() const {
  return domain.empty() ? std::string(op_type) : StrCat(domain, ".", op_type);
}

Result<Type> ReadType(std::string_view bytes, int depth) {
  Type type;
  if (depth > kMostNestedGraphs)
    return DataLoss("more than ", kMostNestedGraphs, " levels of types");
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "a type", [&](const Field& f) {
    if (f.Is(1) || f.Is(8)) {
      type.kind = f.number == 1 ? Type::Kind::kTensor : Type::Kind::kSparse;
      return ForFields(f.payload, "a tensor's type", [&](const Field& t) {
        if (t.IsVarint(1)) type.element = static_cast<int>(t.varint);
        return t.Is(2) ? ReadDims(t.payload, &type) : Status::Ok();
      });
    }
    if (f.Is(4)) return ReadInner(f.payload, Type::Kind::kSequence, depth, &type);
    if (f.Is(5)) return ReadInner(f.payload, Type::Kind::kMap, depth, &type);
    if (f.Is(9)) return ReadInner(f.payload, Type::Kind::kOptional, depth, &type);
    if (f.Is(7)) type.kind = Type::Kind::kOpaque;
    return Status::Ok();
  }));
  return type;
}

Result<Model> ReadModel(std::string_view bytes) {
  Model m;
  bool has_graph = false;
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "the model", [&](const Field& f) {
    if (f.IsVarint(1)) m.ir_version = f.integer();
    if (f.Is(8)) return Append(&m.opsets, f, ReadOpset);
    if (f.Is(25)) return Append(&m.functions, f, ReadFunction);
    if (!f.Is(7)) return Status::Ok();
    if (has_graph) return DataLoss("the model has two graphs");
    has_graph = true;
    HEDDLE_ASSIGN_OR_RETURN(m.graph, ReadGraph(f.payload, 0));
    return Status::Ok();
  }));
  if (!has_graph) return DataLoss("an ONNX model without a graph: damaged or cut short");
  return m;
}

}  // namespace heddle::onnx
