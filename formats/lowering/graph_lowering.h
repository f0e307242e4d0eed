// GraphLowering: the state of a reader that lowers a graph to heddle's operators: the draft, what
// is known of each variable, the names in use, the constants, and operators that heddle lacks.
//
// Ownership: refers to the builder, which collects errors, and to the file's tensors; both must
// outlive it. All else is its own. Threads: one at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/programs/program_builder.h"
#include "formats/lowering/draft.h"
#include "formats/lowering/tensor_bytes.h"

namespace heddle::formats {

// What the reader knows of a variable beyond its DraftVar. Each format derives its own.
struct ValueFacts {
  int type = 0;                         // the format's element type; 0: not known
  Shape shape = Shape::Unknown();       // -1: open
  const TensorBytes* data = nullptr;    // a constant of the file
  std::shared_ptr<const Tensor> value;  // the contents, where known and small
  bool unreadable = false;              // `data` is malformed; the error has been reported
  bool exact_name = false;              // the file gives the variable's name
  bool is_variable = false;             // keeps its value from run to run
  bool joined = false;                  // `shape` holds for all operators that write it

  // The facts of another variable that is to hold such values.
  ValueFacts Alike() const;
};

// A parameter of the program: its name and its contents.
struct Parameter {
  std::string name;
  TensorBytes data;
  std::optional<Tensor> made;  // the contents, if the reader computed them; `data` is empty then
};

// The result of lowering a graph. Each format derives its own, with the parameters.
struct LoweredGraph {
  Draft draft;
  std::deque<std::string> texts;  // strings that parameters refer to
};

class GraphLowering {
 public:
  virtual ~GraphLowering() = default;
  GraphLowering(const GraphLowering&) = delete;
  GraphLowering& operator=(const GraphLowering&) = delete;

  template <typename... Parts>
  void Problem(const Parts&... parts) {
    builder_.Problem(parts...);
  }
  Draft& draft() { return draft_; }
  const ElementTypes& types() const { return types_; }

  // --- names
  //
  // Makes a name that no variable has, from `stem`, and keeps it.
  std::string FreshName(std::string_view stem);
  // Reserves a name for FreshName; gives it back.
  void KeepName(std::string name) { names_.insert(std::move(name)); }
  void FreeName(const std::string& name) { names_.erase(name); }
  bool IsKept(const std::string& name) const { return names_.contains(name); }

  // --- variables
  //
  // Adds a variable to the present block. The name must be unused; this is not checked.
  int NewVar(std::string name, DType dtype);
  DraftVar& var(int v) { return draft_.vars[static_cast<size_t>(v)]; }
  virtual ValueFacts& known(int v) = 0;
  // Sets the facts of `to` to Alike() of those of `from`.
  virtual void TakeFacts(int from, int to) = 0;
  // Sets a variable's element type, and its dtype where that is not known yet.
  void SetType(int v, int type);

  // --- constants
  //
  // Adds a constant, which becomes a parameter if an operator reads it. `data` must outlive this.
  int AddConstant(const TensorBytes& data, std::string_view name);
  int AddConstant(Tensor value, int type, std::string_view name);
  int AddConstant(const Strings& values, int type, std::string_view name);
  // An empty tensor of this type that belongs to this, for AddConstant.
  TensorBytes& OwnTensor(int type);

  // --- texts in lists (kernels/strings/text_pool.h)
  //
  // Makes the pool, whose operator is dropped if nothing reads it. Names must be reserved before,
  // and no operator made.
  void MakeTextPool();
  int text_pool() const { return text_pool_; }

  // --- blocks
  int block() const { return block_; }
  // Adds a block inside the present one.
  int NewBlock();
  // Makes `block` the present block and returns the former one.
  int SwitchBlock(int block) { return std::exchange(block_, block); }

  // --- undo
  //
  // A state that GoBack restores: what was added since is removed. Precondition: since then
  // operators were added only to `block` and to blocks that are newer than the mark.
  struct Mark {
    int block = 0;
    size_t operators = 0, blocks = 0, vars = 0, problems = 0, unknown = 0;
  };
  Mark MarkAt(int block) const;
  void GoBack(const Mark& mark);

  // --- operators that heddle lacks
  void NoteUnknown(std::string_view op, const std::string& where);
  bool has_unknown() const { return !unknown_.empty(); }
  // kUnimplemented with the list of these operators, how often and where each occurs first; OK if
  // there are none.
  Status UnknownOperators() const;

 protected:
  GraphLowering(const ElementTypes& types, ir::ProgramBuilder* builder, size_t blocks = 1);

  // --- at the end
  //
  // Merges small constants of equal contents, so that passes recognise equal operators.
  void MergeConstants();
  // Declares the known shapes, which passes rely on. A variable that several operators write is
  // skipped unless its shape is `joined`: a loop may give it another shape.
  void DeclareShapes();
  // Clears `persistable` on constants that are not used, and returns the others: the parameters.
  std::vector<int> KeptVariables();
  Parameter ParameterOf(int v);
  // Moves the draft and the texts to `made`. This must not be used afterwards.
  void MoveTo(LoweredGraph* made) {
    made->draft = std::move(draft_);
    made->texts = std::move(texts_);
  }

  ir::ProgramBuilder& builder_;
  Draft draft_;
  int block_ = 0;  // the present block: new operators go here

 private:
  struct Unknown {
    int count = 0;
    std::string first;
  };
  int text_pool_ = kNoDraft;
  virtual void ResizeFacts() = 0;  // to the number of the draft's variables
  std::vector<int> Writers() const;

  const ElementTypes& types_;
  std::unordered_set<std::string> names_;
  std::unordered_map<int, Tensor> made_constants_;
  std::deque<TensorBytes> owned_;  // tensors that no message of the file holds
  std::deque<std::string> texts_;
  std::map<std::string, Unknown, std::less<>> unknown_;
  // In the order of the calls of NoteUnknown, for GoBack.
  std::vector<decltype(unknown_)::iterator> noted_;
};

// A GraphLowering with a format's own Facts, which derive from ValueFacts.
template <typename Facts>
class GraphLoweringOf : public GraphLowering {
 public:
  Facts& facts(int v) { return facts_[static_cast<size_t>(v)]; }
  ValueFacts& known(int v) final { return facts(v); }
  void TakeFacts(int from, int to) final { facts(to) = facts(from).Alike(); }

 protected:
  using GraphLowering::GraphLowering;
  const std::deque<Facts>& all_facts() const { return facts_; }

 private:
  void ResizeFacts() final { facts_.resize(draft_.vars.size()); }
  std::deque<Facts> facts_;  // by variable; a deque, so that references stay valid
};

}  // namespace heddle::formats
