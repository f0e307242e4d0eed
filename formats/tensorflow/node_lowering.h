// One node while it is lowered: what its handler may ask of it and make for it.
//
// A handler sees data inputs only; the reader keeps control edges. It makes operators with the
// functions of formats/lowering/op_maker.h (Make, Emit, Cast, IntsConstant, …) and says with
// Result() which variable each output is. An attribute that a file leaves out has TensorFlow's
// default, which the handler gives as `otherwise`.
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
  // The variable of input `i`; a mistake, and a variable of unknown type, where there is none.
  int In(size_t i);
  int Required(size_t i) override { return In(i); }
  // Whether nobody needs the list of input `i` besides this node, which may change it in place.
  bool MayTake(size_t i) const;
  // The numbers of input `i`, which the handler needs to be known; a mistake where they are not.
  Ints RequiredInts(size_t i, std::string_view what);

  // The first operand of uint16, uint32 or uint64 has this type; kNoType: there is none.
  int UnsignedType();

  // --- attributes
  const Attribute* Find(std::string_view name) const override;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  bool Bool(std::string_view name, bool otherwise) const;
  // A DataType, and the dtype that heddle holds it in.
  int Type(std::string_view name, int otherwise) const;
  DType TypeAttr(std::string_view name, DType otherwise) const;
  std::vector<std::string> StrList(std::string_view name) const;
  Shape ShapeAttr(std::string_view name) const;  // Shape::Unknown() where it is left out

  // --- variables
  Kind kind(int v) const { return v == kNoDraft ? Kind::kTensor : l_.facts(v).kind; }
  // A new handle of a variable.
  int Handle(Kind kind, int target);
  // Says a variable's TensorFlow type where its dtype does not tell it (uint16 is held in int32).
  void SetType(int v, int type) { l_.SetType(v, type); }
  void SetKind(int v, Kind kind);
  // Says what a variable that operators compute will hold.
  void SetKnown(int v, Tensor value);

  // --- constants
  // The contents of a constant of the file, under a name like this.
  int DataConstant(const TensorData& data, std::string_view name);

  // --- variables that are kept from run to run
  // The variable behind input `i`, which is a reference or a resource. Operators read it like any
  // other, and write it by having it as their output, too: Emit("sgd", {{"Param", {v}}, …}, {},
  // {{"ParamOut", {v}}}). A mistake where the input is no variable.
  int Variable(size_t i);
  // Overwrites it: an assignment.
  void Write(int variable, int value);
  // A copy of what `v` holds now, whoever writes to it later.
  int Snapshot(int v);
  // A variable of heddle's own, which begins with this value. Its name, the node's and "@state", is
  // none that a graph could give.
  int HoldState(Tensor value);
  // The output of operators on references: the variable again.
  void ResultVariable(int variable) { Result(0, variable); }

  // --- results
  // Whether some node, or the caller, uses the output.
  bool Wants(size_t output) const;
  // The node's output `output` is this variable.
  void Result(size_t output, int v);

  // --- for control flow
  // Whether operators of the present block can read the variable; whether it is of the block that
  // the present one lies in.
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
  // The result as the use of unsigned operands wants it.
  int AsResult(size_t output, int v);

  Lowering& l_;
  const Node& node_;
  Instance& instance_;
  const int at_;  // the node's place in the instance's graph
};

}  // namespace heddle::tensorflow
