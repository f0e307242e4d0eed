#include "formats/tensorflow/model.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "core/error.h"
#include "core/interrupts.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

using wire::Field;
using wire::Fields;

// The deepest nesting of attributes that hold functions, which have attributes.
constexpr int kMostNesting = 32;

Status Damaged(const char* what) { return DataLoss("damaged or cut short in ", what); }

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

// Reads an entry of a map: its key and the bytes of its value.
Status ReadEntry(std::string_view message, std::string_view* key, std::string_view* value) {
  return ForFields(message, "an entry of a map", [&](const Field& f) {
    if (f.Is(1)) *key = f.payload;
    if (f.Is(2)) *value = f.payload;
    return Status::Ok();
  });
}

Status ReadShape(std::string_view message, ShapeData* shape) {
  std::vector<int64_t> dims;
  bool unknown = false;
  HEDDLE_RETURN_IF_ERROR(ForFields(message, "a shape", [&](const Field& f) {
    if (f.IsVarint(3)) unknown = f.varint != 0;
    if (!f.Is(2)) return Status::Ok();
    int64_t size = 0;
    HEDDLE_RETURN_IF_ERROR(ForFields(f.payload, "a dimension", [&](const Field& d) {
      if (d.IsVarint(1)) size = d.integer();
      return Status::Ok();
    }));
    dims.push_back(std::max<int64_t>(size, -1));
    return Status::Ok();
  }));
  shape->too_large = dims.size() > static_cast<size_t>(Shape::kMaxRank);
  if (!unknown && !shape->too_large) shape->shape = Shape(std::span<const int64_t>(dims));
  return Status::Ok();
}

float FloatOf(std::string_view bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

Status AppendInts(const Field& f, Ints* to) {
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

Status AppendFloats(const Field& f, Floats* to) {
  if (f.wire_type == Field::kVarint || f.payload.size() % sizeof(float) != 0)
    return Damaged("numbers");
  for (size_t i = 0; i < f.payload.size(); i += sizeof(float))
    to->push_back(double{FloatOf(f.payload.substr(i))});
  return Status::Ok();
}

Status ReadAttribute(std::string_view message, int depth, Attribute* a);

Status ReadFunctionName(std::string_view message, int depth, FunctionName* function) {
  if (depth > kMostNesting) return InvalidArgument("attributes lie in each other too deep");
  return ForFields(message, "the name of a function", [&](const Field& f) {
    if (f.Is(1)) function->name = f.payload;
    if (!f.Is(2)) return Status::Ok();
    Attribute& a = function->attributes.emplace_back();
    std::string_view value;
    HEDDLE_RETURN_IF_ERROR(ReadEntry(f.payload, &a.name, &value));
    return ReadAttribute(value, depth + 1, &a);
  });
}

Status ReadList(std::string_view message, int depth, Attribute* a) {
  return ForFields(message, "a list", [&](const Field& f) {
    switch (f.number) {
      case 2:
        a->strings.push_back(f.payload);
        return Status::Ok();
      case 3:
      case 5:
      case 6:
        return AppendInts(f, &a->ints);
      case 4:
        return AppendFloats(f, &a->floats);
      case 7:
        return ReadShape(f.payload, &a->shapes.emplace_back());
      case 9:
        return ReadFunctionName(f.payload, depth, &a->functions.emplace_back());
      default:
        return Status::Ok();
    }
  });
}

Status ReadAttribute(std::string_view message, int depth, Attribute* a) {
  a->message = message;
  return ForFields(message, "an attribute", [&](const Field& f) {
    if (f.Is(1)) {
      a->kind = Attribute::kList;
      return ReadList(f.payload, depth, a);
    }
    if (f.Is(2)) {
      a->kind = Attribute::kString;
      a->s = f.payload;
    } else if (f.IsVarint(3) || f.IsVarint(5) || f.IsVarint(6)) {
      a->kind = f.number == 3   ? Attribute::kInt
                : f.number == 5 ? Attribute::kBool
                                : Attribute::kType;
      a->i = f.integer();
    } else if (f.number == 4 && f.wire_type == Field::kFixed32) {
      a->kind = Attribute::kFloat;
      a->f = FloatOf(f.payload);
    } else if (f.Is(7)) {
      a->kind = Attribute::kShape;
      return ReadShape(f.payload, &a->shape);
    } else if (f.Is(8)) {
      a->kind = Attribute::kTensor;
      HEDDLE_ASSIGN_OR_RETURN(TensorData data, ReadTensorData(f.payload));
      a->tensor = std::make_shared<const TensorData>(std::move(data));
    } else if (f.Is(9)) {
      a->kind = Attribute::kPlaceholder;
      a->s = f.payload;
    } else if (f.Is(10)) {
      a->kind = Attribute::kFunction;
      FunctionName function;
      HEDDLE_RETURN_IF_ERROR(ReadFunctionName(f.payload, depth + 1, &function));
      a->function = std::make_shared<const FunctionName>(std::move(function));
    }
    return Status::Ok();
  });
}

Status ReadNode(std::string_view message, Node* node) {
  LookForInterrupt();
  return ForFields(message, "a node", [&](const Field& f) {
    if (f.Is(1)) node->name = f.payload;
    if (f.Is(2)) node->op = f.payload;
    if (f.Is(3)) node->inputs.push_back(f.payload);
    if (!f.Is(5)) return Status::Ok();
    Attribute& a = node->attributes.emplace_back();
    std::string_view value;
    HEDDLE_RETURN_IF_ERROR(ReadEntry(f.payload, &a.name, &value));
    // Attributes with a leading '_' are hints for other runtimes, and often long.
    if (a.name.starts_with('_')) {
      node->attributes.pop_back();
      return Status::Ok();
    }
    return ReadAttribute(value, 0, &a);
  });
}

Status AppendNode(std::string_view message, std::vector<Node>* nodes) {
  Node& node = nodes->emplace_back();
  node.index = static_cast<int>(nodes->size() - 1);
  return ReadNode(message, &node);
}

Status ReadArgument(std::string_view message, Argument* argument) {
  return ForFields(message, "an argument", [&](const Field& f) {
    if (f.Is(1)) argument->name = f.payload;
    if (f.IsVarint(3)) argument->type = f.integer();
    if (f.Is(4)) argument->type_attribute = f.payload;
    if (f.Is(5)) argument->number_attribute = f.payload;
    if (f.Is(6)) argument->type_list_attribute = f.payload;
    return Status::Ok();
  });
}

Status ReadDeclaredAttribute(std::string_view message, DeclaredAttribute* declared) {
  return ForFields(message, "an attribute of a signature", [&](const Field& f) {
    if (f.Is(1)) declared->name = f.payload;
    if (f.Is(2)) declared->type = f.payload;
    if (f.Is(3)) return ReadAttribute(f.payload, 0, &declared->default_value);
    return Status::Ok();
  });
}

Status ReadFunction(std::string_view message, Function* function) {
  return ForFields(message, "a function", [&](const Field& f) {
    if (f.Is(1)) {
      return ForFields(f.payload, "a function's signature", [&](const Field& s) {
        if (s.Is(1)) function->name = s.payload;
        if (s.Is(2)) return ReadArgument(s.payload, &function->inputs.emplace_back());
        if (s.Is(3)) return ReadArgument(s.payload, &function->outputs.emplace_back());
        if (s.Is(4)) return ReadDeclaredAttribute(s.payload, &function->attributes.emplace_back());
        return Status::Ok();
      });
    }
    if (f.Is(3)) return AppendNode(f.payload, &function->nodes);
    if (f.Is(4)) {
      auto& result = function->results.emplace_back();
      return ReadEntry(f.payload, &result.first, &result.second);
    }
    if (f.Is(6)) {
      std::string_view key;
      return ReadEntry(f.payload, &key, &function->control_results.emplace_back());
    }
    return Status::Ok();
  });
}

Status ReadGraph(std::string_view message, Graph* graph) {
  return ForFields(message, "the graph", [&](const Field& f) {
    if (f.Is(1)) return AppendNode(f.payload, &graph->nodes);
    if (f.Is(2)) {
      return ForFields(f.payload, "the library of functions", [&](const Field& l) {
        if (!l.Is(1)) return Status::Ok();
        return ReadFunction(l.payload, &graph->functions.emplace_back());
      });
    }
    if (f.Is(4)) {
      return ForFields(f.payload, "the versions", [&](const Field& v) {
        if (v.IsVarint(1)) graph->producer = v.integer();
        return Status::Ok();
      });
    }
    return Status::Ok();
  });
}

Status ReadSignature(std::string_view message, Signature* signature) {
  HEDDLE_RETURN_IF_ERROR(ForFields(message, "a signature", [&](const Field& f) {
    if (!f.Is(1) && !f.Is(2)) return Status::Ok();
    SignatureValue value;
    std::string_view info;
    HEDDLE_RETURN_IF_ERROR(ReadEntry(f.payload, &value.key, &info));
    HEDDLE_RETURN_IF_ERROR(ForFields(info, "a signature", [&](const Field& i) {
      if (i.Is(1)) value.tensor = i.payload;
      if (i.IsVarint(2)) value.type = i.integer();
      if (i.Is(3)) return ReadShape(i.payload, &value.shape);
      return Status::Ok();
    }));
    (f.number == 1 ? signature->inputs : signature->outputs).push_back(std::move(value));
    return Status::Ok();
  }));
  for (auto* values : {&signature->inputs, &signature->outputs})
    std::sort(values->begin(), values->end(),
              [](const SignatureValue& a, const SignatureValue& b) { return a.key < b.key; });
  return Status::Ok();
}

// Reads which nodes run once when the model is loaded. The key depends on the version of the file;
// a meta graph beside a checkpoint lists only those that fill tables.
Status ReadCollection(std::string_view entry, Model* model) {
  std::string_view key, value;
  HEDDLE_RETURN_IF_ERROR(ReadEntry(entry, &key, &value));
  if (key != "saved_model_main_op" && key != "legacy_init_op" &&
      !(model->is_meta_graph && key == "table_initializer"))
    return Status::Ok();
  return ForFields(value, "a collection", [&](const Field& f) {
    if (!f.Is(1)) return Status::Ok();
    return ForFields(f.payload, "a collection", [&](const Field& name) {
      if (name.Is(1)) model->init_ops.push_back(name.payload);
      return Status::Ok();
    });
  });
}

Status ReadAsset(std::string_view message, Model* model) {
  Asset& asset = model->assets.emplace_back();
  return ForFields(message, "an asset", [&](const Field& f) {
    if (f.Is(2)) asset.file = f.payload;
    if (!f.Is(1)) return Status::Ok();
    return ForFields(f.payload, "an asset", [&](const Field& i) {
      if (i.Is(1)) asset.tensor = i.payload;
      return Status::Ok();
    });
  });
}

Status ReadTags(std::string_view message, std::vector<std::string_view>* tags) {
  return ForFields(message, "a meta graph", [&](const Field& f) {
    if (!f.Is(1)) return Status::Ok();
    return ForFields(f.payload, "a meta graph", [&](const Field& i) {
      if (i.Is(4)) tags->push_back(i.payload);
      return Status::Ok();
    });
  });
}

Status ReadMetaGraph(std::string_view message, Model* model) {
  return ForFields(message, "a meta graph", [&](const Field& f) {
    if (f.Is(2)) return ReadGraph(f.payload, &model->graph);
    if (f.Is(3)) {
      return ForFields(f.payload, "a saver", [&](const Field& s) {
        if (s.Is(1)) model->filename_tensor = s.payload;
        if (s.Is(2)) model->save_tensor = s.payload;
        if (s.Is(3)) model->restore_op = s.payload;
        return Status::Ok();
      });
    }
    if (f.Is(4)) return ReadCollection(f.payload, model);
    if (f.Is(6)) return ReadAsset(f.payload, model);
    if (f.Is(5)) {
      Signature& signature = model->signatures.emplace_back();
      std::string_view value;
      HEDDLE_RETURN_IF_ERROR(ReadEntry(f.payload, &signature.key, &value));
      return ReadSignature(value, &signature);
    }
    return Status::Ok();
  });
}

Result<Model> ReadOneOfSavedModel(std::string_view meta) {
  Model model;
  HEDDLE_RETURN_IF_ERROR(ReadMetaGraph(meta, &model));
  for (const Signature& signature : model.signatures)
    if (signature.key == "__saved_model_init_op")
      for (const SignatureValue& op : signature.outputs) model.init_ops.push_back(op.tensor);
  return model;
}

// The order of choice: a meta graph tagged "serve" alone; one tagged "serve" with others ("tpu",
// "gpu"); the only one; the only one with the signature.
Result<Model> ReadSavedModel(std::string_view bytes, std::string_view signature) {
  std::vector<std::string_view> metas;
  HEDDLE_RETURN_IF_ERROR(ForFields(bytes, "a SavedModel", [&](const Field& f) {
    if (f.Is(2)) metas.push_back(f.payload);
    return Status::Ok();
  }));
  const std::string_view* serving = nullptr;
  size_t fewest = ~size_t{0};
  std::string all;
  for (const std::string_view& meta : metas) {
    std::vector<std::string_view> tags;
    HEDDLE_RETURN_IF_ERROR(ReadTags(meta, &tags));
    std::string text;
    for (std::string_view tag : tags) text += StrCat(text.empty() ? "'" : ", '", tag, "'");
    all += StrCat(all.empty() ? "" : "; ", text.empty() ? "nothing" : text);
    if (std::find(tags.begin(), tags.end(), "serve") == tags.end() || tags.size() >= fewest)
      continue;
    serving = &meta;
    fewest = tags.size();
  }
  if (serving == nullptr && metas.size() == 1) serving = metas.data();
  if (serving != nullptr) return ReadOneOfSavedModel(*serving);
  std::optional<Model> found;
  bool several = false;
  for (std::string_view meta : metas) {
    HEDDLE_ASSIGN_OR_RETURN(Model model, ReadOneOfSavedModel(meta));
    for (const Signature& s : model.signatures) {
      if (signature.empty() || s.key != signature) continue;
      several = found.has_value();
      found = std::move(model);
      break;
    }
  }
  if (found && !several) return *std::move(found);
  return InvalidArgument("the SavedModel has ", metas.size(), " meta graphs, tagged ", all,
                         ": one tagged 'serve' is expected, or a signature that only one has");
}

// Takes `byte`, a varint, and as many bytes as it says, or those that are left. False: another
// field. `whole`: all of the bytes were there.
bool TakeField(char byte, std::string_view* rest, std::string_view* payload, bool* whole) {
  *whole = false;
  if (rest->empty()) return true;
  if (rest->front() != byte) return false;
  rest->remove_prefix(1);
  uint64_t length = 0;
  const std::string_view before = *rest;
  if (!wire::TakeVarint(rest, &length)) return before.size() < 10;
  *whole = length <= rest->size();
  *payload = rest->substr(0, std::min<uint64_t>(length, rest->size()));
  return true;
}

}  // namespace

Status ParseAttribute(std::string_view message, Attribute* a) {
  return ReadAttribute(message, 0, a);
}

const Attribute* Node::Find(std::string_view attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

// Whether the bytes begin with a node, whose first fields are a name and an operator.
bool LooksLikeGraph(std::string_view bytes) {
  std::string_view node, name;
  bool whole = false;
  if (bytes.size() < 5 || !TakeField('\x0a', &bytes, &node, &whole)) return false;
  const bool whole_node = whole;
  if (!TakeField('\x0a', &node, &name, &whole) || (whole_node && !whole)) return false;
  const bool named = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isgraph(static_cast<unsigned char>(c)) != 0;
  });
  if (!named) return false;
  if (!whole) return true;
  node.remove_prefix(name.size());
  return node.empty() || node.front() == '\x12';
}

// Whether the bytes begin with a MetaInfoDef, followed by a graph. A plain GraphDef looks alike: it
// begins with a node, whose name and operator stand where a MetaInfoDef has a version and a list of
// operators.
bool LooksLikeMetaGraph(std::string_view bytes) {
  std::string_view info, part, inner;
  bool whole = false;
  const auto is_list = [&](std::string_view rest) {  // of nodes, or of operators
    return TakeField('\x12', &rest, &part, &whole) && (part.empty() || part.front() == '\x0a');
  };
  if (bytes.starts_with('\x12')) {  // the graph itself: a node, its name
    return TakeField('\x12', &bytes, &part, &whole) && TakeField('\x0a', &part, &info, &whole) &&
           TakeField('\x0a', &info, &inner, &whole) && !inner.empty() &&
           std::isgraph(static_cast<unsigned char>(inner.front())) != 0;
  }
  if (bytes.size() < 2 || !TakeField('\x0a', &bytes, &info, &whole)) return false;
  if (info.empty()) return whole && bytes.starts_with('\x12') && is_list(bytes);
  if (info.front() == '\x12') return is_list(info);
  constexpr std::string_view kOthers = "\x1a\x22\x2a\x32\x38\x42";  // tags, versions
  if (info.front() != '\x0a') return kOthers.find(info.front()) != std::string_view::npos;
  if (!TakeField('\x0a', &info, &inner, &whole) || !whole) return false;
  info.remove_prefix(inner.size());
  if (info.starts_with('\x12')) return is_list(info) && !part.empty();
  return !info.empty() && kOthers.find(info.front()) != std::string_view::npos;
}

// Whether the bytes are a version, followed by a meta graph that begins with a MetaInfoDef.
bool LooksLikeSavedModel(std::string_view bytes) {
  std::string_view meta;
  bool whole = false;
  if (!bytes.starts_with("\x08\x01\x12")) return false;
  bytes.remove_prefix(2);
  return TakeField('\x12', &bytes, &meta, &whole) && (meta.empty() || meta.front() == '\x0a');
}

Result<Model> ReadModel(std::string_view bytes, std::string_view signature) {
  if (LooksLikeSavedModel(bytes)) return ReadSavedModel(bytes, signature);
  Model model;
  model.is_meta_graph = LooksLikeMetaGraph(bytes);
  if (model.is_meta_graph)
    HEDDLE_RETURN_IF_ERROR(ReadMetaGraph(bytes, &model));
  else
    HEDDLE_RETURN_IF_ERROR(ReadGraph(bytes, &model.graph));
  return model;
}

}  // namespace heddle::tensorflow
