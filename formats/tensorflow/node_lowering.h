// NodeLowering: the interface of a handler to the node that it lowers.
//
// A handler sees data inputs only; the reader deals with control edges. It makes operators with the
// functions of formats/lowering/op_maker.h (Make, Emit, Cast, IntsConstant, …) and sets each output
// with Result(). For an attribute that a file leaves out, the handler passes TensorFlow's default
// as `otherwise`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/lowering/node_maker.h"
#include "formats/tensorflow/lower.h"

namespace heddle::tensorflow {

using formats::Attrs;
using formats::Ins;
using formats::kNoDraft;
using formats::Outs;

class NodeLowering : public formats::NodeMaker<Attribute> {
 public:
  NodeLowering(Lowering& l, const Node& node, Instance& instance, int at);

  const Node& node() const { return node_; }
  std::string_view op() const { return node_.op; }

  // --- inputs, without control edges
  size_t inputs() const override;
  // The variable of input `i`. Where it is missing: reports an error and returns a variable of
  // unknown type.
  int In(size_t i);
  int Required(size_t i) override { return In(i); }
  // Whether this node is the only user of the list of input `i`, so that it may change it in place.
  bool MayTake(size_t i) const;
  // The integers of input `i`, which must be constant; otherwise an error is reported.
  Ints RequiredInts(size_t i, std::string_view what);

  // The type of the first operand of uint16, uint32 or uint64; kNoType: there is none.
  int UnsignedType();

  // Gives the handler numbers in place of the node's strings, for operators that only move, compare
  // or order elements; results that are strings are made of the numbers again.
  void EncodeStrings();

  // --- attributes
  const Attribute* Find(std::string_view name) const override;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  bool Bool(std::string_view name, bool otherwise) const;
  // The value of a type attribute as a DataType, and as the dtype that holds it.
  int Type(std::string_view name, int otherwise) const;
  DType TypeAttr(std::string_view name, DType otherwise) const;
  std::vector<std::string> StrList(std::string_view name) const;
  Shape ShapeAttr(std::string_view name) const;  // Shape::Unknown() if absent

  // --- variables
  Kind kind(int v) const { return v == kNoDraft ? Kind::kTensor : l_.facts(v).kind; }
  // Reports an error where the shapes of two variables are known to differ; `a` and `b` say what
  // they are.
  void ExpectAlike(int v, std::string_view a, int w, std::string_view b);
  // Adds a handle of a variable.
  int Handle(Kind kind, int target);
  // Sets a variable's TensorFlow type where its dtype does not determine it (uint16 is held in
  // int32).
  void SetType(int v, int type) { l_.SetType(v, type); }
  void SetKind(int v, Kind kind);
  // Records the value that a computed variable will have.
  void SetKnown(int v, Tensor value);

  // --- constants
  //
  // Adds a constant with contents from the file, named after `name`.
  int DataConstant(const TensorData& data, std::string_view name);

  // --- variables that are kept from run to run
  //
  // The variable that input `i` refers to, as a reference or a resource; an error if there is none.
  // Operators read it like any other, and write it by having it as an output too: Emit("sgd",
  // {{"Param", {v}}, …}, {}, {{"ParamOut", {v}}}).
  int Variable(size_t i);
  // Assigns a value to the variable.
  void Write(int variable, int value);
  // A copy of the present value of `v`, which later writes do not change.
  int Snapshot(int v);
  // Adds a state variable with this initial value. Its name, the node's with "@state", cannot occur
  // in a graph.
  int HoldState(Tensor value);
  // The output of an operator on references: the variable itself.
  void ResultVariable(int variable) { Result(0, variable); }

  // --- results
  //
  // Whether a node, or the caller, uses the output.
  bool Wants(size_t output) const;
  // Whether a node may have so many outputs as its attributes say; if not, the problem is noted.
  bool CheckOutputs(int64_t count, int64_t least = 0);
  // Makes variable `v` the node's output `output`.
  void Result(size_t output, int v);

  // --- for control flow
  //
  // Whether operators of the present block can read the variable; whether it belongs to the block
  // around the present one.
  bool Sees(int v) const;
  bool IsOutside(int v) const;
  VarFacts& facts(int v) { return l_.facts(v); }
  Lowering& lowering() { return l_; }
  Instance& instance() { return instance_; }

 protected:
  void SayProblem(const std::string& text) override;

 private:
  int Wide(int v);
  void SayDefinedType(size_t output, int v);
  int Operand(size_t i);
  // Converts a result as the use of unsigned operands requires.
  int AsResult(size_t output, int v);
  int Decoded(size_t output, int v);

  Lowering& l_;
  const Node& node_;
  Instance& instance_;
  const int at_;  // the node's index in the instance's graph
  // After EncodeStrings: by input, the numbers of its strings or kNoDraft; and the texts by number.
  std::vector<int> codes_;
  int texts_ = kNoDraft;
};

}  // namespace heddle::tensorflow
