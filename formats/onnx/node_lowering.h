// NodeLowering: the interface of a handler to the node that it lowers.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/lowering/node_maker.h"
#include "formats/lowering/type_list.h"
#include "formats/onnx/lower.h"

namespace heddle::onnx {

using formats::Attrs;
using formats::Ins;

class NodeLowering : public formats::NodeMaker<Attribute> {
 public:
  NodeLowering(Lowering& l, const Node& node, const Surroundings& around, int64_t opset)
      : NodeMaker(l, node.index, &node, node.op_type),
        l_(l),
        node_(node),
        around_(around),
        opset_(opset) {}

  const Node& node() const { return node_; }
  // The imported version of the operator's domain.
  int64_t opset() const { return opset_; }
  const Surroundings& around() const { return around_; }

  // --- inputs
  size_t inputs() const override { return node_.inputs.size(); }
  bool Has(size_t i) const;
  // The variable of input `i`; kNoDraft where it is absent.
  int In(size_t i);
  int Required(size_t i) override;
  // The variable that a name denotes in this scope. Where there is none: reports an error and
  // returns a variable of unknown type.
  int Lookup(std::string_view name);
  // The elements of a small vector or scalar of integers, as far as they are known; null for any
  // other.
  const Entries* EntriesOf(int v);

  // The type of the first operand of uint16, uint32 or uint64; kUndefinedType: there is none.
  int UnsignedType();

  const Attribute* Find(std::string_view name) const override { return node_.Find(name); }

  // --- variables
  Type::Kind kind(int v) const { return l_.facts(v).kind; }
  bool IsString(int v) const { return type(v) == kString && kind(v) == Type::Kind::kTensor; }
  // Records that dimension `axis` of `v` must be `size`, or a run fails. Ignored for variables of
  // other blocks, since a branch or a loop's body may not run.
  void ExpectDim(int v, int axis, int64_t size);
  void SetType(int v, int type);
  void SetKind(int v, Type::Kind kind, int element);
  // What is put into a list in place of `v`: numbers for strings.
  int AsItem(int v) { return v != kNoDraft && IsString(v) ? NumbersOf(v) : v; }
  // What was taken out of a list of this element type.
  int FromItem(int v, int element) { return element == kString ? TextsOf(v, kString) : v; }

  // --- lines and planes
  //
  // Makes an element-wise operator, on the plane form of `x` where there is one.
  int Unary(std::string_view type, int x, Attrs attrs = {});
  // AsPlane turns [n, c, l] into [n, c, 1, l], for operators on planes, and AsLine back. They cost
  // nothing where only planes are read.
  int AsPlane(int v);
  int AsLine(int plane);
  bool IsPlane(int v) const { return v != kNoDraft && l_.facts(v).plane != kNoDraft; }

  // --- results
  bool Wants(size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }
  // Makes variable `v` the node's output `output`.
  void Result(size_t output, int v);
  // Gives result `output`, once it is made, a type that its operator's definition says.
  void SayType(size_t output, formats::FileType said);
  // Makes an attribute of a Constant the node's only output.
  void ResultConstant(const Attribute& value);

  // --- nested graphs
  //
  // Lowers the nodes of a graph into `block`, with the scope `names`, and returns its outputs.
  std::vector<int> LowerBody(const Graph& graph, NameScope* names, int block);
  VarFacts& facts(int v) { return l_.facts(v); }
  Lowering& lowering() { return l_; }

 private:
  std::optional<Entries> EntriesMade(const DraftOp& op);  // entries.cc
  void FollowValues(const DraftOp& op, int made) override;
  void SayProblem(const std::string& text) override { l_.Problem(l_.Where(node_), ": ", text); }
  DType StorageOfOnnxType(int64_t type) const override { return StorageOf(static_cast<int>(type)); }

  // Converts a result as the use of unsigned operands requires.
  int AsResult(int v);

  Lowering& l_;
  const Node& node_;
  const Surroundings& around_;
  const int64_t opset_;
};

// Lowers the node to heddle's own operator of the same name. False: there is none.
bool LowerDirect(NodeLowering& n);
// The same for operators that the program that uses heddle has added.
bool LowerOwn(NodeLowering& n);

}  // namespace heddle::onnx
