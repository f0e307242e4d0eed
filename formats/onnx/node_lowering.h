// One node while it is lowered: what its handler may ask of it and make for it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/lowering/node_maker.h"
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
  // The version of the operator's domain that is imported.
  int64_t opset() const { return opset_; }
  const Surroundings& around() const { return around_; }

  // --- inputs
  size_t inputs() const override { return node_.inputs.size(); }
  bool Has(size_t i) const;
  // The variable; kNoDraft where it is left out.
  int In(size_t i);
  int Required(size_t i) override;
  // The variable that a name stands for here; kNoDraft, and a mistake, where there is none.
  int Lookup(std::string_view name);
  // As far as they are known, of a small vector or scalar of integers; null for anything else.
  const Entries* EntriesOf(int v);

  // The first operand of uint16, uint32 or uint64 has this type; kUndefinedType: there is none.
  int UnsignedType();

  const Attribute* Find(std::string_view name) const override { return node_.Find(name); }

  // --- variables
  Type::Kind kind(int v) const { return l_.facts(v).kind; }
  bool IsString(int v) const { return type(v) == kString && kind(v) == Type::Kind::kTensor; }
  // Dimension `axis` of `v` must be `size`, or a run fails. Nothing follows for variables of other
  // blocks: a branch or the body of a loop may be left out.
  void ExpectDim(int v, int axis, int64_t size);
  void SetType(int v, int type);
  void SetKind(int v, Type::Kind kind, int element);

  // --- lines and planes
  // Element by element, as a plane where `x` is known as one.
  int Unary(std::string_view type, int x, Attrs attrs = {});
  // Operators of planes compute what has one dimension: [n, c, l] as [n, c, 1, l], and the reverse,
  // which costs nothing where only planes are read.
  int AsPlane(int v);
  int AsLine(int plane);
  bool IsPlane(int v) const { return v != kNoDraft && l_.facts(v).plane != kNoDraft; }

  // --- results
  bool Wants(size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }
  // The node's output `output` is this variable.
  void Result(size_t output, int v);
  // The node's only output is this attribute of a Constant.
  void ResultConstant(const Attribute& value);

  // --- graphs inside
  // Lowers the nodes of a graph into a block of its own whose names are `names`; its outputs.
  std::vector<int> LowerBody(const Graph& graph, NameScope* names, int block);
  VarFacts& facts(int v) { return l_.facts(v); }
  Lowering& lowering() { return l_; }

 private:
  std::optional<Entries> EntriesMade(const DraftOp& op);  // entries.cc
  void FollowValues(const DraftOp& op, int made) override;
  void SayProblem(const std::string& text) override { l_.Problem(l_.Where(node_), ": ", text); }
  DType StorageOfOnnxType(int64_t type) const override { return StorageOf(static_cast<int>(type)); }

  // A result as the use of unsigned operands wants it.
  int AsResult(int v);

  Lowering& l_;
  const Node& node_;
  const Surroundings& around_;
  const int64_t opset_;
};

// heddle's own operator of the same name. False: there is none.
bool LowerDirect(NodeLowering& n);

}  // namespace heddle::onnx
