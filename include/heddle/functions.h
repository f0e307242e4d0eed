// Functions that a model's file names and calls: TensorFlow's library of FunctionDefs, the local
// functions of an ONNX model.
//
// A definition has a signature (arguments, results, attributes) and nodes. The attributes of nodes
// may be placeholders: attributes of the function, which a call gives or which have a default. An
// instance is a definition with a value for each; calls that give the same values share it.
//
// Ownership: a library owns its definitions and instances; references to them, and what an instance
// says, hold until it dies. Values of Kind::kMessage refer to bytes that whoever made them keeps.
// Threads: one at a time, since definitions are read when they are first asked for.
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

// What an attribute holds.
struct FunctionValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kType,         // `i`: an element type, by the number that the file's format has for it
    kFunction,     // `text`: a function; `attributes`: what it is called with
    kList,         // `items`
    kPlaceholder,  // `text`: an attribute of the function around it
    kMessage       // what only its format reads; `text` says what: "shape", "tensor", "graph"
  };
  Kind kind = Kind::kNone;
  int64_t i = 0;  // kInt, kType; of a kBool 0 or 1
  double f = 0;   // kFloat
  std::string text;
  std::string_view message;  // of a kMessage: its bytes in the file
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
  int type = 0;                     // 0: not said, or an attribute says it
  std::string type_attribute = {};  // names an attribute that holds the type
  std::string number = {};          // names an attribute that holds how many values it is
  std::string types = {};           // names an attribute that lists their types
  std::string from = {};            // of a result: the value in the body that it is
};

struct FunctionAttribute {
  std::string name = {};
  std::string type = {};             // "int", "type", "list(float)"; empty: any
  FunctionValue default_value = {};  // kNone: none
  bool may_be_absent = false;        // nodes that name it go without, if nobody gives it
};

struct FunctionNode {
  std::string name = {}, op = {};
  // As the format names them; TensorFlow's nodes name no outputs.
  std::vector<std::string> inputs = {}, outputs = {};
  std::vector<NamedFunctionValue> attributes = {};
};

struct FunctionDefinition {
  std::string name = {};
  std::vector<FunctionArgument> arguments = {}, results = {};
  std::vector<FunctionAttribute> attributes = {};
  std::vector<FunctionNode> nodes = {};
  std::vector<std::string> control_results = {};  // nodes that run although no result needs them
};

// One value that a body takes or gives.
struct FunctionPort {
  std::string name = {};  // the argument's; "name:1" in a list
  int type = 0;           // 0: not known
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

  // `format`: the one that definitions are of, as in "tensorflow"; `type_name`: what it calls its
  // element types.
  explicit FunctionLibrary(std::string format = "", TypeName type_name = nullptr);
  FunctionLibrary(FunctionLibrary&&) noexcept;
  FunctionLibrary& operator=(FunctionLibrary&&) noexcept;
  ~FunctionLibrary();

  // kInvalidArgument: the library has a function of that name. What is wrong inside the definition
  // is told by Instantiate.
  Status Add(FunctionDefinition definition);
  // The same of one that is made when it is first asked for; `make` gives it this name.
  Status Add(std::string name, std::function<FunctionDefinition()> make);
  // Null: there is none.
  const FunctionDefinition* Find(std::string_view name);
  bool Has(std::string_view name) const;
  // Names, in the order in which they were added.
  const std::vector<std::string>& names() const;

  // The instance of a function for a call that gives these attributes; the same one for the same
  // values. Attributes that the definition does not mention count for nothing. kNotFound: there is
  // no such function; kInvalidArgument: an attribute is missing or of another type than the
  // signature says, or the function calls itself, by itself or through others, or there would be
  // more than 65,536 instances or ports, or more than 1 MiB of attributes. A function that its
  // nodes call and that is not there is no error yet.
  Result<Handle> Instantiate(std::string_view name,
                             const std::vector<NamedFunctionValue>& attributes);
  const FunctionBody& Body(Handle instance) const;
  size_t instances() const;

  // The number of nodes that name the function, in the functions of the library and among those
  // that were counted.
  size_t CallsOf(std::string_view name);
  void CountCalls(const FunctionNode& caller);

  const std::string& format() const;
  // "f(x: T, y: N*int32) -> (z: T) {T: type, N: int = 2}"; empty: there is no such function.
  std::string Signature(std::string_view name);

  // Keeps alive what values of Kind::kMessage refer to.
  void Keep(std::shared_ptr<const void> bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The functions of the file that the program was read from, with the calls of its graph counted;
// none where its format has no functions, or it is of no file.
Result<FunctionLibrary> FunctionsOf(const Program& program);

// Of functions of TensorFlow. A GraphDef of the instance: its arguments are placeholders, which are
// called as they are; its results are identities, called as the results; a name that is taken gets
// a number. Functions that it calls are in its library. kInvalidArgument: functions of another
// format.
Result<std::string> ToGraphDef(FunctionLibrary& library, FunctionLibrary::Handle instance);
// A FunctionDef of the definition.
Result<std::string> ToFunctionDef(FunctionLibrary& library, std::string_view name);

}  // namespace heddle
