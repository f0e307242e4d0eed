#include "offload/onnx/known.h"

#include "core/guard.h"
#include "core/shape_context.h"

namespace heddle::offload::to_onnx {
namespace {

using ir::kNoVar;
using ir::VarId;
using Metas = std::vector<ShapeContext::OutMeta>;

// Sizes that open dimensions are tried with: what comes out alike does not depend on them. 1 fits
// whatever broadcasts, 2 and 3 tell ranks, the others are divided by most factors and large enough
// for windows.
constexpr int64_t kSizes[] = {1, 2, 3, 48, 96, 4032, 8064};

Shape Filled(Shape shape, int64_t size) {
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] < 0) shape[i] = size;
  return shape;
}

}  // namespace

bool KnownFacts::Try(const ir::Op& op, int64_t size, Metas* outs) const {
  BoundOp bound;
  std::deque<Value> values;
  std::vector<Value*> frame;
  bound.def = op.def;
  bound.attrs = op.attrs.data();
  const auto bind = [&](const auto& slots, size_t count, IdList* begin, IdList* list, bool inputs) {
    begin->push_back(0);
    for (size_t s = 0; s < count; ++s) {
      for (const VarId v : slots[s]) {
        list->push_back(v == kNoVar ? kNoSlot : static_cast<uint32_t>(frame.size()));
        if (v == kNoVar) continue;
        Value& value = values.emplace_back();
        if (inputs && facts_[v].value != nullptr)
          value = Value(*facts_[v].value);
        else if (inputs)
          value.tensor().SetMeta(facts_[v].dtype, Filled(facts_[v].shape, size));
        frame.push_back(&value);
      }
      begin->push_back(static_cast<uint32_t>(list->size()));
    }
  };
  bind(op.inputs, op.def->inputs().size(), &bound.in_begin, &bound.in, true);
  bind(op.outputs, op.def->outputs().size(), &bound.out_begin, &bound.out, false);
  ShapeContext ctx(bound, frame.data());
  if (!Guard([&] { return op.def->infer_shape()(ctx); }).ok() || ctx.deferred()) return false;
  *outs = ctx.outs();
  outs->resize(bound.out.size());
  return true;
}

std::vector<Facts> KnownFacts::Infer(const ir::Op& op) const {
  size_t count = 0;
  for (const auto& slot : op.outputs) count += slot.size();
  std::vector<Facts> made(count);
  if (op.def->infer_shape() == nullptr || !op.var_attrs.empty()) return made;
  bool open = false;
  for (size_t s = 0; s < op.def->inputs().size(); ++s)
    for (const VarId v : op.inputs[s]) {
      if (v == kNoVar) continue;
      if (facts_[v].dtype == DType::kUnknown || !facts_[v].shape.known_rank()) return made;
      open = open || !facts_[v].shape.is_static();
    }
  int tried = 0;  // sizes that the operator takes
  for (const int64_t size : kSizes) {
    Metas outs;
    if (!Try(op, size, &outs)) {
      if (!open) break;
      continue;
    }
    for (size_t k = 0; k < count; ++k) {
      Facts& to = made[k];
      const Facts now{outs[k].set ? outs[k].dtype : DType::kUnknown,
                      outs[k].set ? outs[k].shape : Shape::Unknown(), nullptr};
      if (tried == 0) {
        to = now;
        continue;
      }
      if (to.dtype != now.dtype) to.dtype = DType::kUnknown;
      if (!to.shape.known_rank() || !now.shape.known_rank() ||
          to.shape.rank() != now.shape.rank()) {
        to.shape = Shape::Unknown();
        continue;
      }
      for (int i = 0; i < to.shape.rank(); ++i)
        if (to.shape[i] != now.shape[i]) to.shape[i] = -1;
    }
    ++tried;
    if (!open) break;
  }
  // One size alone tells nothing of what depends on it; of 1 not even a rank.
  if (open && tried == 1)
    for (Facts& to : made) to.shape = Shape::Unknown();
  return made;
}

}  // namespace heddle::offload::to_onnx
