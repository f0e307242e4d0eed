#include "executor/plan/transfers/insert_casts.h"

#include <algorithm>
#include <memory>

#include "core/op_registry.h"
#include "core/operands/promoted.h"
#include "core/shapes.h"

namespace heddle {
namespace {

bool IsWide(DType t) { return t == DType::kF64 || t == DType::kC128; }

class CastInserter {
 public:
  CastInserter(PlanDraft& d, Instruction& in) : d_(d), in_(in) {}

  std::vector<Instruction> Run() {
    std::vector<Instruction> casts;
    const DType to = CommonType();
    if (to == DType::kUnknown) return casts;
    ForEachOperand([&](uint32_t& s) {
      if (TypeOf(s) == to) return;
      const uint32_t made = AddSlot(s);
      casts.push_back(MakeCast(s, made, to));
      s = made;
    });
    return casts;
  }

 private:
  template <typename Fn>
  void ForEachOperand(Fn&& fn) {
    const auto& inputs = in_.op.def->inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if ((inputs[i].flags & kPromoted) != 0)
        for (uint32_t k = in_.op.in_begin[i]; k < in_.op.in_begin[i + 1]; ++k) fn(in_.op.in[k]);
  }

  DType TypeOf(uint32_t s) const {
    if (s == kNoSlot || !d_.frame[s]->is_tensor()) return DType::kUnknown;
    return d_.frame[s]->tensor().dtype();
  }

  // The complex type to which real operands must be cast; kUnknown if none needs a cast, or no type
  // would help.
  DType CommonType() {
    bool complex = false, wide = false, mixed = false, known = true;
    DType first = DType::kUnknown;
    ForEachOperand([&](uint32_t s) {
      const DType t = TypeOf(s);
      if (first == DType::kUnknown) first = t;
      mixed = mixed || t != first;
      complex = complex || IsComplex(t);
      wide = wide || IsWide(t);
      known = known && (IsComplex(t) || t == DType::kF32 || t == DType::kF64);
    });
    if (!complex || !mixed || !known) return DType::kUnknown;
    return wide ? DType::kC128 : DType::kC64;
  }

  // Adds a slot for the variable in another type, in the instruction's block.
  uint32_t AddSlot(uint32_t like) {
    Plan& plan = *d_.plan;
    Slot slot;
    slot.var = plan.slots[like].var;
    slot.versioned = true;
    slot.home = in_.ir_block;
    plan.slots.push_back(slot);
    plan.constant.push_back(false);
    d_.frame.push_back(plan.metas.Of(DType::kUnknown, Shape::Unknown()));
    d_.known_meta.push_back(false);
    d_.unsure.push_back(false);
    d_.handed.push_back(false);
    return static_cast<uint32_t>(plan.slots.size() - 1);
  }

  Instruction MakeCast(uint32_t from, uint32_t to, DType type) const {
    const OpDef& def = *FindOp("cast");
    Instruction cast;
    cast.ir_block = in_.ir_block;
    cast.ir_op = in_.ir_op;
    cast.fixed_attrs = std::make_unique<std::vector<AttrValue>>();
    for (const AttrDef& attr : def.attrs()) cast.fixed_attrs->push_back(attr.default_value);
    (*cast.fixed_attrs)[static_cast<size_t>(def.FindAttr("in_dtype"))] = DTypeToProto(TypeOf(from));
    (*cast.fixed_attrs)[static_cast<size_t>(def.FindAttr("out_dtype"))] = DTypeToProto(type);
    cast.op.def = &def;
    cast.op.attrs = cast.fixed_attrs->data();
    cast.op.in_begin = {0, 1};
    cast.op.out_begin = {0, 1};
    cast.op.in = {from};
    cast.op.out = {to};
    return cast;
  }

  PlanDraft& d_;
  Instruction& in_;
};

}  // namespace

std::vector<Instruction> InsertCasts(PlanDraft& draft, Instruction& in) {
  const auto& inputs = in.op.def->inputs();
  if (std::none_of(inputs.begin(), inputs.end(),
                   [](const SlotDef& slot) { return (slot.flags & kPromoted) != 0; }))
    return {};
  return CastInserter(draft, in).Run();
}

}  // namespace heddle
