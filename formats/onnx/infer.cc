// The dtypes and shapes of what an operator makes, by its own shape function, as far as they can be
// known before any run.
#include <deque>

#include "core/guard.h"
#include "core/op_context.h"
#include "core/shapes.h"
#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {
namespace {

// An operator of the draft, bound to values that have a dtype and a shape and no contents.
class Bound {
 public:
  Bound(const DraftOp& op, const OpDef& def) {
    op_.def = &def;
    for (const AttrDef& a : def.attrs()) attrs_.push_back(a.default_value);
    for (const auto& [name, value] : op.attributes)
      if (const int a = def.FindAttr(name); a >= 0) attrs_[static_cast<size_t>(a)] = value;
    op_.attrs = attrs_.data();
  }

  // `value_of(var, slot)`: the operand, or nothing.
  template <typename ValueOf>
  void Bind(const DraftOp& op, ValueOf value_of) {
    std::vector<uint32_t> begin{0}, all;
    for (const SlotDef& slot : op_.def->inputs()) {
      for (const auto& [name, vars] : op.inputs) {
        if (name != slot.name) continue;
        for (int v : vars) all.push_back(v == kNoDraft ? kNoSlot : Add(value_of(v, slot)));
      }
      begin.push_back(static_cast<uint32_t>(all.size()));
    }
    op_.in = IdList(std::span<const uint32_t>(all));
    op_.in_begin = IdList(std::span<const uint32_t>(begin));
    begin.assign(1, 0);
    all.clear();
    for (const SlotDef& slot : op_.def->outputs()) {
      for (const auto& [name, vars] : op.outputs)
        if (name == slot.name)
          for (int v : vars) {
            all.push_back(v == kNoDraft ? kNoSlot : Add(Value()));
            outputs.push_back(v);
          }
      begin.push_back(static_cast<uint32_t>(all.size()));
    }
    op_.out = IdList(std::span<const uint32_t>(all));
    op_.out_begin = IdList(std::span<const uint32_t>(begin));
  }

  const BoundOp& op() const { return op_; }
  Value* const* frame() const { return frame_.data(); }
  std::vector<int> outputs;  // variables, in the order of op().out

 private:
  uint32_t Add(Value v) {
    values_.push_back(std::move(v));
    frame_.push_back(&values_.back());
    return static_cast<uint32_t>(frame_.size() - 1);
  }

  BoundOp op_;
  std::vector<AttrValue> attrs_;
  std::deque<Value> values_;
  std::vector<Value*> frame_;
};

}  // namespace

void NodeLowering::Infer(const DraftOp& op, const OpDef& def) {
  if (def.infer_shape() == nullptr) return;
  bool known = true, open = false;
  for (const auto& [slot, vars] : op.inputs)
    for (int v : vars) {
      if (v == kNoDraft) continue;
      known = known && dtype(v) != DType::kUnknown;
      open = open || !shape(v).is_static();
      known = known && shape(v).known_rank();
    }
  Bound bound(op, def);
  bound.Bind(op, [&](int v, const SlotDef& slot) {
    if ((slot.flags & kShapeValue) != 0) {
      if (const Tensor* t = Constant(v)) return Value(*t);
    }
    Value value;
    value.tensor().SetMeta(dtype(v), shape(v));
    return value;
  });
  // Without ranks, most shape functions cannot say anything. The dtype is the first operand's then,
  // which handlers correct where it is another.
  ShapeContext context(bound.op(), bound.frame());
  const bool inferred =
      known && Guard([&] { return def.infer_shape()(context); }).ok() && !context.deferred();
  for (size_t i = 0; i < bound.outputs.size(); ++i) {
    const int v = bound.outputs[i];
    if (v == kNoDraft) continue;
    if (inferred && i < context.outs().size() && context.outs()[i].set) {
      const ShapeContext::OutMeta& out = context.outs()[i];
      l_.var(v).dtype = out.dtype;
      Shape shape = out.shape;
      // Products of open dimensions are not to be believed.
      for (int d = 0; d < shape.rank(); ++d)
        if (open || shape[d] < 0) shape[d] = -1;
      l_.facts(v).shape = shape;
    }
  }
  if (inferred) return;
  for (size_t i = 0; i < bound.outputs.size(); ++i) {
    const int v = bound.outputs[i];
    if (v == kNoDraft || l_.var(v).dtype != DType::kUnknown) continue;
    for (const auto& [slot, vars] : op.inputs)
      if (!vars.empty() && l_.var(v).dtype == DType::kUnknown) l_.var(v).dtype = dtype(vars[0]);
    for (const auto& [name, value] : op.attributes)
      if (name == "out_dtype" || name == "dtype")
        if (const auto* proto = std::get_if<int64_t>(&value); proto != nullptr && *proto >= 0)
          l_.var(v).dtype = DTypeFromProto(*proto);
    if (def.name().starts_with("equal") || def.name().starts_with("less_") ||
        def.name().starts_with("greater_") || def.name().starts_with("not_equal") ||
        def.name().starts_with("logical_") || def.name().starts_with("is"))
      l_.var(v).dtype = DType::kBool;
    if (def.name() == "shape") l_.var(v).dtype = DType::kI32;
  }
}

}  // namespace heddle::onnx
