#include "formats/tensorflow/files/reshaped.h"

#include "core/error.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

using wire::Field;
using wire::Fields;

// The text of field `number`; empty: there is none.
std::string_view TextIn(std::string_view message, uint32_t number) {
  std::string_view found;
  Fields fields(message);
  for (Field f; !fields.done() && fields.Next(&f);)
    if (f.Is(number)) found = f.payload;
  return found;
}

}  // namespace

// TensorShapeProto.dim is field 2, its size field 1.
std::string ShapeMessage(const Shape& shape) {
  std::string message;
  for (const int64_t d : shape) {
    std::string dim;
    wire::AppendVarintField(1, static_cast<uint64_t>(d), &dim);
    wire::AppendBytesField(2, dim, &message);
  }
  return message;
}

namespace {

class Reshaper {
 public:
  Reshaper(std::string signature, const std::map<std::string, Shape>& variables,
           const std::map<std::string, Shape>& outputs)
      : signature_(std::move(signature)), variables_(variables), outputs_(outputs) {}

  // SavedModel.meta_graphs (2) has a graph (2), signatures (5) and an object graph (7).
  std::string SavedModel(std::string_view bytes) {
    return Copy(bytes, [&](const Field& f) -> std::string {
      if (!f.Is(2)) return std::string(f.whole);
      return Message(2, Copy(f.payload, [&](const Field& part) -> std::string {
                       if (part.Is(2)) return Message(2, Graph(part.payload));
                       if (part.Is(5)) return Message(5, Signature(part.payload));
                       if (part.Is(7)) return Message(7, Objects(part.payload));
                       return std::string(part.whole);
                     }));
    });
  }
  bool damaged() const { return damaged_; }

 private:
  template <typename Fn>
  std::string Copy(std::string_view message, Fn&& fn) {
    std::string out;
    Fields fields(message);
    for (Field f; !fields.done();) {
      if (!fields.Next(&f)) {
        damaged_ = true;
        return out;
      }
      out += fn(f);
    }
    return out;
  }
  static std::string Message(uint32_t number, std::string_view payload) {
    std::string out;
    wire::AppendBytesField(number, payload, &out);
    return out;
  }

  // GraphDef has nodes (1) and a library (2) of functions (1) with nodes (3).
  std::string Graph(std::string_view graph) {
    return Copy(graph, [&](const Field& f) -> std::string {
      if (f.Is(1)) return Message(1, Node(f.payload));
      if (!f.Is(2)) return std::string(f.whole);
      return Message(2, Copy(f.payload, [&](const Field& function) -> std::string {
                       if (!function.Is(1)) return std::string(function.whole);
                       return Message(1, Copy(function.payload, [&](const Field& part) {
                                        return part.Is(3) ? Message(3, Node(part.payload))
                                                          : std::string(part.whole);
                                      }));
                     }));
    });
  }

  // NodeDef has a name (1), an operator (2) and attributes (5): a key (1) and a value (2), with a
  // text (2) or a shape (7).
  std::string Node(std::string_view node) {
    const std::string_view op = TextIn(node, 2);
    const bool variable = op == "VarHandleOp" || op == "VariableV2";
    std::string name(TextIn(node, 1));
    Fields fields(node);
    for (Field f; variable && !fields.done() && fields.Next(&f);)
      if (f.Is(5) && TextIn(f.payload, 1) == "shared_name")
        if (const auto shared = TextIn(TextIn(f.payload, 2), 2);
            variables_.contains(std::string(shared)))
          name = std::string(shared);
    const auto found = variable ? variables_.find(name) : variables_.end();
    return Copy(node, [&](const Field& f) -> std::string {
      if (!f.Is(5)) return std::string(f.whole);
      const std::string_view key = TextIn(f.payload, 1);
      if (key == "_output_shapes" && op != "Placeholder") return {};
      if (found == variables_.end() || key != "shape") return std::string(f.whole);
      return Message(5, Message(1, key) + Message(2, Message(7, ShapeMessage(found->second))));
    });
  }

  // An entry of a map from keys (1) to SignatureDefs (2), whose outputs (2) are a map from keys (1)
  // to TensorInfos (2) with a shape (3).
  std::string Signature(std::string_view entry) {
    if (TextIn(entry, 1) != (signature_.empty() ? "serving_default" : signature_))
      return std::string(entry);
    return Copy(entry, [&](const Field& f) -> std::string {
      if (!f.Is(2)) return std::string(f.whole);
      return Message(2, Copy(f.payload, [&](const Field& output) -> std::string {
                       const auto found =
                           output.Is(2) ? outputs_.find(std::string(TextIn(output.payload, 1)))
                                        : outputs_.end();
                       if (found == outputs_.end()) return std::string(output.whole);
                       return Message(2, Output(output.payload, found->second));
                     }));
    });
  }
  std::string Output(std::string_view entry, const Shape& shape) {
    return Copy(entry, [&](const Field& f) -> std::string {
      if (!f.Is(2)) return std::string(f.whole);
      specs_.emplace(TextIn(f.payload, 3), ShapeMessage(shape));
      return Message(2, Copy(f.payload, [&](const Field& part) {
                       return part.Is(3) ? Message(3, ShapeMessage(shape))
                                         : std::string(part.whole);
                     }));
    });
  }

  // A StructuredValue has a TensorSpecProto (33) with a shape (2), or lists (51), tuples (52) or
  // maps (53) of such values. Specifications with the old shape of an output get the new one.
  std::string Structure(std::string_view value, int depth = 0) {
    constexpr int kMostDepth = 32;
    return Copy(value, [&](const Field& f) -> std::string {
      if (f.Is(33))
        return Message(
            33, Copy(f.payload, [&](const Field& part) -> std::string {
              const auto found = part.Is(2) ? specs_.find(std::string(part.payload)) : specs_.end();
              return found == specs_.end() ? std::string(part.whole) : Message(2, found->second);
            }));
      if (depth >= kMostDepth || !(f.Is(51) || f.Is(52) || f.Is(53))) return std::string(f.whole);
      return Message(f.number, Copy(f.payload, [&](const Field& item) -> std::string {
                       if (!item.Is(1)) return std::string(item.whole);
                       if (!f.Is(53)) return Message(1, Structure(item.payload, depth + 1));
                       return Message(1, Copy(item.payload, [&](const Field& part) {
                                        return part.Is(2)
                                                   ? Message(2, Structure(part.payload, depth + 1))
                                                   : std::string(part.whole);
                                      }));
                     }));
    });
  }

  // An entry of a map from keys (1) to SavedConcreteFunctions (2) with an output_signature (4).
  std::string Function(std::string_view entry) {
    return Copy(entry, [&](const Field& f) -> std::string {
      if (!f.Is(2)) return std::string(f.whole);
      return Message(2, Copy(f.payload, [&](const Field& part) {
                       return part.Is(4) ? Message(4, Structure(part.payload))
                                         : std::string(part.whole);
                     }));
    });
  }

  // SavedObjectGraph has nodes (1) that may be variables (7) with a shape (2) and a name (6), and
  // functions (2).
  std::string Objects(std::string_view graph) {
    return Copy(graph, [&](const Field& f) -> std::string {
      if (f.Is(2)) return Message(2, Function(f.payload));
      if (!f.Is(1)) return std::string(f.whole);
      return Message(1, Copy(f.payload, [&](const Field& object) -> std::string {
                       const auto found =
                           object.Is(7) ? variables_.find(std::string(TextIn(object.payload, 6)))
                                        : variables_.end();
                       if (found == variables_.end()) return std::string(object.whole);
                       return Message(7, Copy(object.payload, [&](const Field& part) {
                                        return part.Is(2) ? Message(2, ShapeMessage(found->second))
                                                          : std::string(part.whole);
                                      }));
                     }));
    });
  }

  const std::string signature_;
  const std::map<std::string, Shape>& variables_;
  const std::map<std::string, Shape>& outputs_;
  std::map<std::string, std::string> specs_;  // messages of old shapes of outputs, and new ones
  bool damaged_ = false;
};

}  // namespace

Result<std::string> WithShapes(std::string_view saved_model, const std::string& signature,
                               const std::map<std::string, Shape>& variables,
                               const std::map<std::string, Shape>& outputs) {
  Reshaper reshaper(signature, variables, outputs);
  std::string bytes = reshaper.SavedModel(saved_model);
  if (reshaper.damaged()) return DataLoss("the SavedModel is damaged");
  return bytes;
}

}  // namespace heddle::tensorflow
