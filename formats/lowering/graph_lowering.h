// A graph while a reader says it in heddle's operators: its draft, what is known of each variable,
// names, constants, and operators that heddle does not have.
//
// Ownership: refers to the builder, which takes mistakes, and to the tensors of the file; both must
// outlive it. What it takes is its own. Threads: one at a time.
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

// The reader knows this of a variable, beside what the draft has. Readers derive their own.
struct ValueFacts {
  int type = 0;                         // the format's element type; 0: not known
  Shape shape = Shape::Unknown();       // -1: open
  const TensorBytes* data = nullptr;    // a constant of the file
  std::shared_ptr<const Tensor> value;  // the contents, where they are small and known
  bool unreadable = false;              // `data` is not what it claims, which was told
  bool exact_name = false;              // the file gives the variable's name
  bool is_variable = false;             // kept from run to run
  bool joined = false;                  // `shape` holds for whichever operator writes it

  // What a variable that takes over such a value has.
  ValueFacts Alike() const;
};

// A parameter of the program: a variable and where the file has its contents.
struct Parameter {
  std::string name;
  TensorBytes data;
  std::optional<Tensor> made;  // in place of data
};

// What becomes of a graph. Readers derive their own, with the parameters.
struct LoweredGraph {
  Draft draft;
  std::deque<std::string> texts;  // that parameters refer to
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
  // One that no variable has, like `stem`; it is taken.
  std::string FreshName(std::string_view stem);
  // Keeps a name from FreshName, and lets it be free again.
  void KeepName(std::string name) { names_.insert(std::move(name)); }
  void FreeName(const std::string& name) { names_.erase(name); }
  bool IsKept(const std::string& name) const { return names_.contains(name); }

  // --- variables
  // In the present block; the name is not looked at.
  int NewVar(std::string name, DType dtype);
  DraftVar& var(int v) { return draft_.vars[static_cast<size_t>(v)]; }
  virtual ValueFacts& known(int v) = 0;
  // Says of `to` what Facts::Alike() of `from` has.
  virtual void TakeFacts(int from, int to) = 0;
  // Says a variable's type where its dtype does not tell it.
  void SetType(int v, int type);

  // --- constants
  // A parameter, should an operator read it. `data` must outlive this.
  int AddConstant(const TensorBytes& data, std::string_view name);
  int AddConstant(Tensor value, int type, std::string_view name);
  int AddConstant(const Strings& values, int type, std::string_view name);
  // A tensor of this type that no message of the file holds, for AddConstant.
  TensorBytes& OwnTensor(int type);

  // --- blocks
  int block() const { return block_; }
  // A block inside the present one.
  int NewBlock();
  // Has operators go to another block; the one before.
  int SwitchBlock(int block) { return std::exchange(block_, block); }

  // --- once more
  // A place to go back to. What was made since is forgotten; all of it must be in `block` and in
  // blocks that began since.
  struct Mark {
    int block = 0;
    size_t operators = 0, blocks = 0, vars = 0, problems = 0, unknown = 0;
  };
  Mark MarkAt(int block) const;
  void GoBack(const Mark& mark);

  // --- operators that heddle does not have
  void NoteUnknown(std::string_view op, const std::string& where);
  bool has_unknown() const { return !unknown_.empty(); }
  // kUnimplemented, with all of them, their number and where they first stand; OK: there are none.
  Status UnknownOperators() const;

 protected:
  GraphLowering(const ElementTypes& types, ir::ProgramBuilder* builder, size_t blocks = 1);

  // --- at the end
  // Small constants of the same contents become one, so that equal operators are seen to be equal.
  void MergeConstants();
  // Declares the shapes that are known; passes go by them. A variable that is written several times
  // stays without, but for what branches write: a loop may give it another shape.
  void DeclareShapes();
  // The parameters: the others are no longer persistable.
  std::vector<int> KeptVariables();
  Parameter ParameterOf(int v);
  // Moves what was made out of this; names and facts are of no use any more.
  void MoveTo(LoweredGraph* made) {
    made->draft = std::move(draft_);
    made->texts = std::move(texts_);
  }

  ir::ProgramBuilder& builder_;
  Draft draft_;
  int block_ = 0;  // where operators go

 private:
  struct Unknown {
    int count = 0;
    std::string first;
  };
  virtual void ResizeFacts() = 0;  // to those of the draft's variables
  std::vector<int> Writers() const;

  const ElementTypes& types_;
  std::unordered_set<std::string> names_;
  std::unordered_map<int, Tensor> made_constants_;
  std::deque<TensorBytes> owned_;  // tensors that no message of the file holds
  std::deque<std::string> texts_;
  std::map<std::string, Unknown, std::less<>> unknown_;
  std::vector<decltype(unknown_)::iterator> noted_;  // in the order of the calls of NoteUnknown
};

// With the facts of a format, which derive from ValueFacts.
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
  std::deque<Facts> facts_;  // by variable; references to them outlive additions
};

}  // namespace heddle::formats
