#include "offload/group_shapes.h"

#include <deque>

#include "core/error.h"
#include "core/guard.h"
#include "core/kernel_selector.h"
#include "core/shape_context.h"

namespace heddle::offload {
namespace {

using ir::kNoVar;
using ir::VarId;
using Metas = std::vector<ShapeContext::OutMeta>;

class Walk {
 public:
  Walk(const Group& group, const std::vector<Value*>& inputs)
      : program_(*group.program), now_(program_.vars.size()) {
    for (size_t k = 0; k < program_.feeds.size(); ++k) {
      const Tensor& given = inputs[k]->tensor();
      Tensor t;  // dtype, shape and offsets, without contents
      t.SetMeta(given.dtype(), given.shape());
      if (given.has_lod()) t.set_lod(given.lod());
      Set(program_.feeds[k].var, Value(std::move(t)));
    }
    for (const auto& [var, tensor] : group.parameters) Set(var, Value(tensor));
  }

  // Infers the shapes of all operators. False: those of some operator are not known.
  Result<bool> Run() {
    for (const ir::Op& op : program_.blocks[0].ops) {
      if (op.def->infer_shape() == nullptr || !op.var_attrs.empty()) return false;
      auto known = Visit(op);
      if (!known.ok())
        return Status(known.status().code(), StrCat(op.type(), ": ", known.status().message()));
      if (!*known) return false;
    }
    return true;
  }

  // The shapes of the outputs; nullopt: an output has none.
  std::optional<Metas> Outputs() const {
    Metas metas;
    for (const ir::Port& fetch : program_.fetches) {
      const Value* value = now_[fetch.var];
      if (value == nullptr || !value->is_tensor()) return std::nullopt;
      const Tensor& t = value->tensor();
      ShapeContext::OutMeta meta;
      meta.set = true;
      meta.dtype = t.dtype();
      meta.shape = t.shape();
      meta.has_lod = t.has_lod();
      if (meta.has_lod) meta.lod = t.lod();
      metas.push_back(std::move(meta));
    }
    return metas;
  }

 private:
  void Set(VarId var, Value value) { now_[var] = &values_.emplace_back(std::move(value)); }

  Result<bool> Visit(const ir::Op& op) {
    BoundOp bound;
    std::vector<Value*> frame;
    bound.def = op.def;
    bound.attrs = op.attrs.data();
    const auto bind = [&](const auto& slots, size_t count, IdList* begin, IdList* list,
                          const auto& of) {
      begin->push_back(0);
      for (size_t s = 0; s < count; ++s) {
        for (const VarId v : slots[s]) {
          Value* value = v == kNoVar ? nullptr : of(v);
          list->push_back(value == nullptr ? kNoSlot : static_cast<uint32_t>(frame.size()));
          if (value != nullptr) frame.push_back(value);
        }
        begin->push_back(static_cast<uint32_t>(list->size()));
      }
    };
    bind(op.inputs, op.def->inputs().size(), &bound.in_begin, &bound.in,
         [&](VarId v) { return now_[v]; });
    std::vector<std::pair<VarId, Value*>> outs;
    bind(op.outputs, op.def->outputs().size(), &bound.out_begin, &bound.out, [&](VarId v) {
      outs.emplace_back(v, &values_.emplace_back());
      return outs.back().second;
    });
    HEDDLE_RETURN_IF_ERROR(CheckOperands(bound, frame.data()));
    ShapeContext ctx(bound, frame.data());
    HEDDLE_RETURN_IF_ERROR(Guard([&] { return op.def->infer_shape()(ctx); }));
    if (ctx.deferred()) return false;
    const Metas& metas = ctx.outs();
    for (size_t k = 0; k < bound.out.size(); ++k) {
      if (bound.out[k] == kNoSlot) continue;
      Value* value = frame[bound.out[k]];
      if (k < metas.size() && metas[k].set) {
        if (metas[k].dtype == DType::kUnknown || !metas[k].shape.is_static()) return false;
        value->tensor().SetMeta(metas[k].dtype, metas[k].shape);
        if (metas[k].has_lod) value->tensor().set_lod(metas[k].lod);
      } else {
        value = nullptr;  // not written
      }
      for (const auto& [var, made] : outs)
        if (made == frame[bound.out[k]]) now_[var] = value;
    }
    return true;
  }

  const ir::Program& program_;
  std::deque<Value> values_;
  std::vector<Value*> now_;  // of each variable: its present value; nullptr: none
};

}  // namespace

Result<std::optional<Metas>> ShapesOf(const Group& group, const std::vector<Value*>& inputs) {
  for (const Value* input : inputs)
    if (input == nullptr || !input->is_tensor() || !input->tensor().shape().is_static() ||
        input->tensor().dtype() == DType::kUnknown)
      return std::optional<Metas>();
  Walk walk(group, inputs);
  HEDDLE_ASSIGN_OR_RETURN(const bool known, walk.Run());
  if (!known) return std::optional<Metas>();
  return walk.Outputs();
}

}  // namespace heddle::offload
