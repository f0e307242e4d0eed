// Functions that a model's file defines and calls: TensorFlow's library of FunctionDefs, the local
// functions of an ONNX model.
//
// A definition has a signature (arguments, results, attributes) and nodes. The attributes of nodes
// may be placeholders for attributes of the function, which a call gives or which have a default.
// An instance is a definition with a value for each; calls with the same values share it.
//
// Ownership: a library owns its definitions and instances; references to them and their contents
// are valid until it is destroyed. Values of Kind::kMessage refer to bytes that their maker must
// keep, see Keep. Threads: one at a time, since definitions are read at their first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/program.h"
#include "heddle/status.h"

namespace heddle {

struct NamedFunctionValue;

// The value of an attribute.
struct FunctionValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kType,         // `i`: an element type, as the file's format numbers it
    kFunction,     // `text`: a function; `attributes`: those of the call
    kList,         // `items`
    kPlaceholder,  // `text`: an attribute of the enclosing function
    kMessage       // a message of the format; `text` says which: "shape", "tensor", "graph"
  };
  Kind kind = Kind::kNone;
  int64_t i = 0;  // kInt, kType; kBool: 0 or 1
  double f = 0;   // kFloat
  std::string text;
  std::string_view message;  // kMessage: its bytes in the file
  std::vector<FunctionValue> items;
  std::vector<NamedFunctionValue> attributes;
};

struct NamedFunctionValue {
  std::string name = {};
  FunctionValue value = {};
};

// An argument or a result of a signature. One with `number` or `types` is a list of values.
struct FunctionArgument {
  std::string name = {};
  int type = 0;                     // 0: not declared, or an attribute gives it
  std::string type_attribute = {};  // the attribute that holds the type
  std::string number = {};          // the attribute that holds the number of values
  std::string types = {};           // the attribute that lists their types
  std::string from = {};            // of a result: the value in the body
};

struct FunctionAttribute {
  std::string name = {};
  std::string type = {};             // "int", "type", "list(float)"; empty: any
  FunctionValue default_value = {};  // kNone: none
  bool may_be_absent = false;        // if it is not given, nodes that name it lack it
};

struct FunctionNode {
  std::string name = {}, op = {};
  // In the format's notation; TensorFlow's nodes name no outputs.
  std::vector<std::string> inputs = {}, outputs = {};
  std::vector<NamedFunctionValue> attributes = {};
};

struct FunctionDefinition {
  std::string name = {};
  std::vector<FunctionArgument> arguments = {}, results = {};
  std::vector<FunctionAttribute> attributes = {};
  std::vector<FunctionNode> nodes = {};
  // Nodes that run although no result depends on them.
  std::vector<std::string> control_results = {};
};

// One value that a body takes or returns.
struct FunctionPort {
  std::string name = {};  // that of the argument; "name:1" in a list
  int type = 0;           // 0: unknown
  std::string from = {};  // as in FunctionArgument
};

// A definition with a value for each attribute.
struct FunctionBody {
  const FunctionDefinition* definition = nullptr;
  std::vector<NamedFunctionValue> attributes = {};
  std::vector<FunctionPort> arguments = {}, results = {};
  // The number of ports of each argument and result of the signature.
  std::vector<size_t> argument_sizes = {}, result_sizes = {};
  // Indices of `attributes`, sorted by name. Empty: they are searched one by one.
  std::vector<uint32_t> by_name = {};
  // Where the attribute is in `attributes`; their number: nowhere.
  size_t Place(std::string_view attribute) const;
  // The node's attributes, without placeholders.
  std::vector<NamedFunctionValue> AttributesOf(const FunctionNode& node) const;
};

class FunctionLibrary {
 public:
  using Handle = size_t;  // of an instance
  using TypeName = std::string_view (*)(int type);

  // `format`: the format of the definitions, such as "tensorflow"; `type_name`: the format's name
  // of an element type.
  explicit FunctionLibrary(std::string format = "", TypeName type_name = nullptr);
  FunctionLibrary(FunctionLibrary&&) noexcept;
  FunctionLibrary& operator=(FunctionLibrary&&) noexcept;
  ~FunctionLibrary();

  // kInvalidArgument: the library has a function of that name. Mistakes inside the definition are
  // reported by Instantiate.
  Status Add(FunctionDefinition definition);
  // Adds a function that `make` makes at its first use, with this name.
  Status Add(std::string name, std::function<FunctionDefinition()> make);
  // nullptr: there is none.
  const FunctionDefinition* Find(std::string_view name);
  bool Has(std::string_view name) const;
  // The names, in the order of addition.
  const std::vector<std::string>& names() const;

  // The instance of a function for a call with these attributes; the same one for the same values.
  // Attributes that the definition does not have are ignored. kNotFound: there is no such function;
  // kInvalidArgument: an attribute is missing or of another type than the signature says, or the
  // function calls itself, directly or through others, or there would be more than 65,536 instances
  // or ports, or more than 1 MiB of attributes. A function that its nodes call need not exist yet.
  Result<Handle> Instantiate(std::string_view name,
                             const std::vector<NamedFunctionValue>& attributes);
  const FunctionBody& Body(Handle instance) const;
  size_t instances() const;

  // The number of nodes that call the function: in the library's functions, and those that
  // CountCalls has counted.
  size_t CallsOf(std::string_view name);
  void CountCalls(const FunctionNode& caller);

  const std::string& format() const;
  // "f(x: T, y: N*int32) -> (z: T) {T: type, N: int = 2}"; empty: there is no such function.
  std::string Signature(std::string_view name);

  // Keeps the bytes alive that values of Kind::kMessage refer to.
  void Keep(std::shared_ptr<const void> bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The functions of the file that the program was read from, with the calls of its graph counted;
// none if the format has no functions, or the program is not from a file.
Result<FunctionLibrary> FunctionsOf(const Program& program);

// For functions of TensorFlow: a GraphDef of the instance. Its arguments are placeholders of the
// same names, its results identities of theirs; a name that is taken gets a number. Functions that
// it calls are in its library. kInvalidArgument: functions of another format.
Result<std::string> ToGraphDef(FunctionLibrary& library, FunctionLibrary::Handle instance);
// The definition as a FunctionDef.
Result<std::string> ToFunctionDef(FunctionLibrary& library, std::string_view name);

}  // namespace heddle
