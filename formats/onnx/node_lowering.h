// One node while it is lowered: what its handler may ask of it and make for it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/lowering/op_maker.h"
#include "formats/onnx/lower.h"

namespace heddle::onnx {

using formats::Attrs;
using formats::Ins;

class NodeLowering : public formats::OpMaker {
 public:
  NodeLowering(Lowering& l, const Node& node, const Surroundings& around, int64_t opset)
      : OpMaker(l.draft_, l.block_, node.index, &node),
        l_(l),
        node_(node),
        around_(around),
        opset_(opset) {}

  const Node& node() const { return node_; }
  // The version of the operator's domain that is imported.
  int64_t opset() const { return opset_; }
  const Surroundings& around() const { return around_; }
  template <typename... Parts>
  void Problem(const Parts&... parts) {
    l_.builder_.Problem(l_.Where(node_), ": ", parts...);
  }

  // --- inputs
  size_t inputs() const { return node_.inputs.size(); }
  bool Has(size_t i) const;
  // The variable; kNoDraft where it is left out.
  int In(size_t i);
  // The same, and a mistake where it is left out.
  int Required(size_t i);
  std::vector<int> AllInputs(size_t from = 0);
  // The variable that a name stands for here; kNoDraft, and a mistake, where there is none.
  int Lookup(std::string_view name);
  // The contents of a constant of at most so many elements; null for anything else.
  const Tensor* Constant(int v, int64_t max_count = 1024) override;
  // As far as they are known, of a small vector or scalar of integers; null for anything else.
  const Entries* EntriesOf(int v);

  // --- attributes
  const Attribute* Find(std::string_view name) const { return node_.Find(name); }
  int64_t Int(std::string_view name, int64_t otherwise) const;
  double Float(std::string_view name, double otherwise) const;
  std::string Str(std::string_view name, std::string_view otherwise) const;
  Ints IntList(std::string_view name) const;
  Floats FloatList(std::string_view name) const;

  // --- variables
  int type(int v) const { return v == kNoDraft ? int{kUndefinedType} : l_.facts(v).type; }
  Type::Kind kind(int v) const { return l_.facts(v).kind; }
  bool IsString(int v) const { return type(v) == kString && kind(v) == Type::Kind::kTensor; }
  const Shape& shape(int v) const override { return l_.facts(v).shape; }
  int NewVar(DType dtype, std::string_view stem = "") override;
  // Dimension `axis` of `v` must be `size`, or a run fails. Nothing follows for variables of other
  // blocks: a branch or the body of a loop may be left out.
  void ExpectDim(int v, int axis, int64_t size);
  void SetType(int v, int type);
  void SetKind(int v, Type::Kind kind, int element);
  int64_t block() const { return l_.block_; }

  // --- constants
  int TensorConstant(Tensor value, int type);
  int HoldConstant(Tensor value) override {
    const int type = TypeOf(value.dtype());
    return TensorConstant(std::move(value), type);
  }
  int StringsConstant(const Strings& values);

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
  int NewBlock();
  int SwitchBlock(int block) { return std::exchange(l_.block_, block); }
  VarFacts& facts(int v) { return l_.facts(v); }
  Lowering& lowering() { return l_; }

 private:
  std::optional<Entries> EntriesMade(const DraftOp& op);  // entries.cc
  void FollowValues(const DraftOp& op, int made) override;
  void SetShape(int v, const Shape& shape) override { l_.facts(v).shape = shape; }
  void SayProblem(const std::string& text) override { Problem(text); }
  void IsRead(int v) override {
    if (l_.facts(v).data != nullptr) l_.var(v).persistable = true;
  }
  DType StorageOfOnnxType(int64_t type) const override { return StorageOf(static_cast<int>(type)); }

  Lowering& l_;
  const Node& node_;
  const Surroundings& around_;
  const int64_t opset_;
};

// heddle's own operator of the same name. False: there is none.
bool LowerDirect(NodeLowering& n);

}  // namespace heddle::onnx
