// Infers the shapes and dtypes that are known before running, computes values that are already
// known, and selects the kernel of each instruction.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/kernel_selector.h"
#include "core/memory/lazy_buffer.h"
#include "core/programs/ir.h"
#include "core/programs/sub_block_slots.h"
#include "executor/plan/calls/plan_calls.h"
#include "executor/plan/plan_draft.h"
#include "executor/plan/shapes/array_items.h"
#include "executor/plan/shapes/instruction_facts.h"
#include "executor/plan/shapes/open_shapes.h"
#include "executor/plan/shapes/unwritten.h"
#include "executor/plan/transfers/insert_casts.h"

namespace heddle {
namespace {

class ShapePropagator {
 public:
  explicit ShapePropagator(PlanDraft& draft)
      : d_(draft), plan_(*draft.plan), arrays_(draft), open_shapes_(draft) {}

  Status Run() {
    open_.assign(plan_.blocks.size(), false);
    open_[0] = true;
    HEDDLE_RETURN_IF_ERROR(Seed());
    HEDDLE_RETURN_IF_ERROR(VisitBlock(0));
    open_[0] = true;
    for (const PlanFetch& f : plan_.fetches) NoteRead(f.slot);
    arrays_.Spread();
    if (d_.CompilesBodies()) return Status::Ok();
    for (size_t b = 1; b < plan_.blocks.size(); ++b)
      for (Instruction& in : plan_.blocks[b].instructions) KeepCalls(&in);
    return Status::Ok();
  }

 private:
  // Visits instructions, removes those with known results, and inserts casts.
  Status VisitBlock(int b) {
    auto& instructions = plan_.blocks[b].instructions;
    open_[b] = true;
    std::vector<Instruction> kept;
    kept.reserve(instructions.size());
    const auto visit = [&](Instruction& in) {
      bool evaluated = false;
      HEDDLE_RETURN_IF_ERROR(Visit(in, &evaluated));
      if (!evaluated) kept.push_back(std::move(in));
      return Status::Ok();
    };
    for (Instruction& in : instructions) {
      LookForInterrupt();
      std::vector<Instruction> casts = InsertCasts(d_, in);
      if (!casts.empty()) arrays_.Fit();
      for (Instruction& cast : casts) HEDDLE_RETURN_IF_ERROR(visit(cast));
      HEDDLE_RETURN_IF_ERROR(visit(in));
    }
    instructions = std::move(kept);
    open_[b] = false;
    return Status::Ok();
  }

  // Records what is known at the start: feeds, and variables of the scope that nothing writes.
  Status Seed() {
    const size_t n = plan_.slots.size();
    d_.frame.assign(n, plan_.metas.Of(DType::kUnknown, Shape()));
    d_.known_meta.assign(n, false);
    plan_.constant.assign(n, false);
    d_.unsure.assign(n, false);
    d_.shared.varies.resize(d_.program.vars.size());
    d_.shared.contradicted = false;
    if (d_.CompilesBodies()) arrays_.Seed();
    // Sequence offsets are not part of a signature: runs with them infer all shapes.
    for (const FeedSignature& f : d_.request.feeds) infer_now_ = infer_now_ && !f.has_lod;
    if (infer_now_) open_shapes_.Seed();
    for (size_t i = 0; i < plan_.feeds.size(); ++i) {
      const FeedSignature& f = d_.request.feeds[i];
      const uint32_t s = plan_.feeds[i].slot;
      if (f.kind != Value::Kind::kTensor) continue;
      if (!plan_.feeds[i].copied || (infer_now_ && MayHaveShape(s)))
        SetKnown(s, f.dtype, f.shape);
      else if (open_shapes_.used())
        SetVarying(s, passes::Fact{f.dtype, f.shape});
    }
    return SeedScope();
  }

  bool IsArray(uint32_t s) const { return arrays_.IsArray(s); }

  Status SeedScope() {
    std::vector<int> writers(plan_.slots.size(), 0);  // per slot: writers that may change its shape
    std::vector<int> updates(plan_.slots.size(), 0);  // per slot: writers in place
    std::vector<bool> first_is_write(plan_.slots.size(), false), seen(plan_.slots.size(), false);
    for (const BlockPlan& block : plan_.blocks) {
      for (const Instruction& in : block.instructions) {
        LookForInterrupt();
        for (uint32_t s : in.op.in)
          if (s != kNoSlot) seen[s] = true;
        for (uint32_t s : in.op.out) {
          if (s == kNoSlot) continue;
          if (!seen[s]) first_is_write[s] = true;
          seen[s] = true;
          ++writers[s];
        }
        for (const auto& r : in.rewrites) ++(r.inplace ? updates : writers)[r.real];
      }
    }
    for (uint32_t s : plan_.scope_slots) {
      const ir::Var& var = d_.program.vars[plan_.slots[s].var];
      plan_.scope_uses.emplace_back();
      Plan::ScopeUse& use = plan_.scope_uses.back();
      use.written = writers[s] + updates[s] > 0;
      plan_.writes_scope = plan_.writes_scope || use.written;
      use.stamp = plan_.scope->StampOf(var.name);
      if (use.stamp.value == nullptr) {
        plan_.root_scope->Ensure(var.name);
        use.stamp = plan_.scope->StampOf(var.name);
      }
      const Value* v = use.stamp.value;
      if (!v->initialized()) {
        if (writers[s] == 0 && seen[s] && !first_is_write[s] && Required(s))
          return NotFound("parameter '", var.name,
                          "' has no value: load the parameters, or run the startup program first");
        continue;
      }
      if (!v->is_tensor() || writers[s] > 0 || Varies(s)) continue;
      SetKnown(s, v->tensor().dtype(), v->tensor().shape());
      use.meta = true;
      if (updates[s] > 0) continue;
      d_.frame[s] = &d_.contents.emplace_back(*v);
      plan_.constant[s] = true;
      use.contents = true;
    }
    return Status::Ok();
  }

  // Whether some operator requires the slot as an input.
  bool Required(uint32_t slot) {
    if (required_.empty()) required_ = FindRequired(plan_);
    return required_[slot];
  }

  // Whether the slot is a shared variable whose shape may be part of the plan.
  bool MayHaveShape(uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    // A feed's memory is reused, which an operator that keeps the value would see.
    if (slot.storage == Storage::kFeed && d_.handed[s]) return false;
    return d_.CompilesBodies() && !slot.versioned && slot.storage != Storage::kScope &&
           d_.program.vars[slot.var].kind == ir::VarKind::kTensor && !d_.shared.varies[slot.var];
  }

  // Notes a write to a shared variable with a shape that is not known, or not that of other writes.
  // `fact`: what is known of it.
  void NoteVarying(uint32_t s, const passes::Fact* fact = nullptr) {
    if (IsArray(s)) return arrays_.NoteVarying(s);
    if (MayHaveShape(s)) {
      const Slot& slot = plan_.slots[s];
      const passes::Fact before{slot.dtype, slot.is_static ? slot.shape() : Shape::Unknown()};
      d_.shared.varies[slot.var] = true;
      d_.shared.contradicted = d_.shared.contradicted || slot.is_static;
      if (slot.is_static) open_shapes_.NoteWrite(s, &before);
    }
    open_shapes_.NoteWrite(s, fact);
  }

  void NoteRead(uint32_t s) {
    if (!plan_.slots[s].versioned && (!d_.known_meta[s] || !open_[plan_.slots[s].home]))
      d_.unsure[s] = true;
  }

  void SetKnown(uint32_t s, DType dtype, const Shape& shape) {
    if (!plan_.slots[s].versioned && !d_.known_meta[s]) became_known_.push_back(s);
    if (!open_[plan_.slots[s].home]) d_.unsure[s] = true;
    d_.frame[s] = plan_.metas.Of(dtype, shape);
    d_.known_meta[s] = true;
    open_shapes_.Forget(s);
    Slot& slot = plan_.slots[s];
    slot.is_static = true;
    slot.dtype = dtype;
    slot.meta = d_.frame[s];
  }

  void SetUnknown(uint32_t s) {
    const ir::Var& var = d_.program.vars[plan_.slots[s].var];
    d_.frame[s] = plan_.metas.Of(var.dtype, Shape::Unknown());
    d_.known_meta[s] = false;
    open_shapes_.Forget(s);
  }
  // Notes a write to a shared variable, by an instruction left to the run.
  void SetVarying(uint32_t s, const passes::Fact& fact) {
    NoteVarying(s, &fact);
    const bool knew = d_.known_meta[s] || open_shapes_.Knows(s);
    if (!open_shapes_.SetShared(s)) return SetUnknown(s);
    if (!knew) became_known_.push_back(s);
  }

  // An operand that may be empty counts as known if the operator fails for an empty one.
  bool InputsKnown(const Instruction& in) const {
    const bool selects = ir::SelectsOperand(*in.op.def);
    for (uint32_t k = 0; k < in.op.in.size(); ++k) {
      const uint32_t s = in.op.in[k];
      if (s == kNoSlot || d_.known_meta[s]) continue;
      const bool any_kind = OfAnyKind(in.op.def->inputs(), in.op.in_begin, k);
      if (!any_kind || !(IsArray(s) || (selects && plan_.slots[s].is_static && !Varies(s))))
        return false;
    }
    return true;
  }
  bool Varies(uint32_t s) const { return d_.shared.varies[plan_.slots[s].var]; }
  Status Visit(Instruction& in, bool* evaluated) {
    for (uint32_t s : in.op.in)
      if (s != kNoSlot) NoteRead(s);
    if (in.op.def->has(kControlFlow)) return VisitControl(in, evaluated);
    bool settled = false;
    if (ir::SelectsOutput(*in.op.def) && d_.CompilesBodies()) {
      VisitSelector(in);
      return Status::Ok();
    }
    // In a sub-block the run, which may not reach the operator, reports the error.
    if (Status status = Infer(in, &settled); !status.ok() && in.ir_block == 0)
      return status.At(plan_.Locate(in));
    if (!settled) {
      OpenShapes::Facts facts;
      const bool told = infer_now_ && !arrays_.TakesVarying(in) && open_shapes_.Infer(in, &facts);
      LeaveForRun(in, told ? &facts : nullptr);
      return Status::Ok();
    }
    in.mode = in.rewrites.empty() ? Instruction::Mode::kStatic : Instruction::Mode::kReplace;
    *evaluated = in.rewrites.empty() && ComputeKnown(d_, in);
    return Status::Ok();
  }

  Status Infer(Instruction& in, bool* settled) {
    const OpDef& def = *in.op.def;
    HEDDLE_RETURN_IF_ERROR(FixVarAttrs(d_, &in));
    if (!infer_now_ || !in.var_attrs.empty() || def.infer_shape() == nullptr || !InputsKnown(in) ||
        arrays_.TakesVarying(in))
      return Status::Ok();
    HEDDLE_RETURN_IF_ERROR(CheckOperands(in.op, d_.frame.data()));
    ShapeContext ctx(in.op, d_.frame.data());
    HEDDLE_RETURN_IF_ERROR(GuardPlanning([&] { return def.infer_shape()(ctx); }));
    if (ctx.deferred()) return Status::Ok();
    HEDDLE_RETURN_IF_ERROR(CheckSizes(ctx.outs()));
    if (!MaySettle(in, ctx.outs())) return Status::Ok();
    KernelFn fn = nullptr;
    HEDDLE_RETURN_IF_ERROR(SelectKernel(in.op, d_.frame.data(), &fn));
    in.fn = fn;
    Settle(in, ctx.outs());
    *settled = true;
    return Status::Ok();
  }

  static void KeepCalls(Instruction* in) {
    if (in->var_attrs.empty() && !in->op.def->has(kControlFlow))
      in->calls = std::make_unique<ShapedCalls>(in->ir_block != 0);
  }
  // Leaves the shapes to the run. `facts`: what is known of the outputs nevertheless.
  void LeaveForRun(Instruction& in, const OpenShapes::Facts* facts = nullptr) {
    static const passes::Fact kNothing;
    KeepCalls(&in);
    const auto fact_of = [&](size_t i) -> const passes::Fact& {
      return facts != nullptr && (*facts)[i] ? *(*facts)[i] : kNothing;
    };
    for (size_t i = 0; i < in.op.out.size(); ++i) {
      const uint32_t s = in.op.out[i];
      if (s == kNoSlot) continue;
      if (IsArray(s))
        NoteVarying(s);
      else if (!plan_.slots[s].versioned && plan_.slots[s].storage != Storage::kScope)
        SetVarying(s, fact_of(i));
      else
        SetTold(s, fact_of(i), &in);
    }
    size_t at = 0;  // position of a hidden slot; they are in the order of the rewrites
    for (const auto& r : in.rewrites) {
      if (IsArray(r.real) || plan_.slots[r.real].storage == Storage::kScope) {
        NoteVarying(r.real);
        continue;
      }
      while (in.op.out[at] != r.hidden) ++at;
      SetVarying(r.real, fact_of(at));
    }
  }
  // Sets the expected shape of an output, whose memory is taken at run time.
  void SetTold(uint32_t s, const passes::Fact& fact, Instruction* in) {
    const bool hidden = RewriteOf(*in, s) != nullptr;
    if (hidden || !fact.shape.is_static() || fact.dtype == DType::kUnknown) {
      SetUnknown(s);
      if (!hidden) open_shapes_.Set(s, fact);
      return;
    }
    SetKnown(s, fact.dtype, fact.shape);
    d_.handed[s] = in->told = true;
    plan_.misjudged = d_.request.misjudged;
  }

  // An operator that writes one of its outputs: afterwards any of them may be empty.
  void VisitSelector(Instruction& in) {
    for (uint32_t s : in.op.in)
      if (s == kNoSlot || !d_.known_meta[s]) return LeaveForRun(in);
    TakeTold(in, Ask(in, true), true);
    for (uint32_t s : in.op.out)
      if (s != kNoSlot) d_.known_meta[s] = false;
  }

  // Visits an operator that runs sub-blocks. Its shape function knows what its own kernel writes,
  // not the blocks. It is called before the blocks are visited, for the values passed to them
  // (core/programs/sub_block_slots.h), and again with the values that they return.
  Status VisitControl(Instruction& in, bool* dropped) {
    if (!d_.CompilesBodies()) {
      LeaveForRun(in);
      return Status::Ok();
    }
    const auto blocks = d_.program.blocks[in.ir_block].ops[in.ir_op].SubBlocks();
    if (blocks.size() == 1 && d_.IsFunction(blocks[0])) return VisitFunction(in);
    if (in.op.def->infer_shape() == nullptr) LeaveForRun(in);
    const std::optional<bool> runs = Decided(in);
    if (runs == false) {
      for (int sub : blocks) DropBlock(sub);
      const Told told = Ask(in, true);
      *dropped = told.nothing();
      if (!*dropped) TakeBehind(in, told);  // a gradient operator writes zeros
      return Status::Ok();
    }
    const size_t before = became_known_.size();
    TakeTold(in, Ask(in, false), false);
    const std::vector<uint32_t> carried = KnownIn(d_, in, "sub_block:carried");
    for (int sub : blocks) {
      const size_t outside = became_known_.size();
      Recall(in, sub);
      const std::vector<uint32_t> given = CertainInside(in);
      if (d_.run_once[sub]) {
        HEDDLE_RETURN_IF_ERROR(VisitBlock(sub));
      } else {
        LeaveBlock(sub);
      }
      Record(in, sub, carried, outside);
      for (uint32_t s : given) d_.known_meta[s] = false;
      if (sub != blocks.back()) ForgetKnown(outside);
    }
    const Told told = Ask(in, true);
    if (!runs) ForgetKnown(before);
    TakeBehind(in, told);
    return Status::Ok();
  }
  Status VisitFunction(Instruction& in) {
    const auto set_known = [&](uint32_t s, const Slot& like) {
      SetKnown(s, like.dtype, like.shape());
    };
    const auto visit = [&](int block) { return VisitBlock(block); };
    return VisitCall(d_, in, set_known, visit).status();
  }
  // Whether an operator runs its block, if its condition is a constant of the plan (it follows from
  // parameters and shapes); nullopt: known only at run time.
  std::optional<bool> Decided(const Instruction& in) {
    const OpDef& def = *in.op.def;
    const int scalar = def.FindAttr("is_scalar_condition"), slot = def.FindInput("Cond");
    if (!infer_now_ || scalar < 0 || slot < 0 || def.infer_shape() == nullptr ||
        !std::get<bool>(in.op.attrs[scalar]) ||
        in.op.in_begin[slot + 1] - in.op.in_begin[slot] != 1)
      return std::nullopt;
    const uint32_t s = in.op.in[in.op.in_begin[slot]];
    if (s == kNoSlot || !plan_.constant[s]) return std::nullopt;
    const Tensor& condition = d_.frame[s]->tensor();
    const bool one = condition.dtype() == DType::kBool && condition.numel() == 1;
    if (!one || !MakeResident(condition).ok()) return std::nullopt;
    return *condition.data<bool>();
  }

  // Removes a block that no run reaches, so that its parameters need not be read either.
  void DropBlock(int b) {
    if (!d_.run_once[b]) return;
    for (const Instruction& in : plan_.blocks[b].instructions)
      if (in.op.def->has(kControlFlow))
        for (int sub : d_.program.blocks[b].ops[in.ir_op].SubBlocks()) DropBlock(sub);
    plan_.blocks[b].instructions.clear();
  }

  // What became known inside a block is not certain after it, since it may not have run.
  void ForgetKnown(size_t before) {
    for (; became_known_.size() > before; became_known_.pop_back()) {
      d_.known_meta[became_known_.back()] = false;
      open_shapes_.Forget(became_known_.back());
    }
  }

  // The answer of a shape function. `all` is false if it could not infer some written output.
  struct Told {
    std::vector<ShapeContext::OutMeta> outs;
    bool all = true;
    // Whether the operator itself writes nothing.
    bool nothing() const {
      return all && std::none_of(outs.begin(), outs.end(), [](const auto& out) { return out.set; });
    }
  };
  // Calls the shape function. Before the operator's blocks are visited (`behind` is false) an
  // unknown operand looks absent to it, afterwards like a tensor of unknown shape.
  Told Ask(const Instruction& in, bool behind) {
    Told told;
    if (in.op.def->infer_shape() == nullptr) return told;
    std::vector<std::pair<uint32_t, Value*>> hidden;
    for (uint32_t s : in.op.in) {
      if (s == kNoSlot || d_.known_meta[s] || IsArray(s)) continue;
      hidden.emplace_back(s, d_.frame[s]);
      d_.frame[s] = plan_.metas.Of(DType::kUnknown, behind ? Shape::Unknown() : Shape());
    }
    ShapeContext ctx(in.op, d_.frame.data());
    const Status status = GuardPlanning([&] { return in.op.def->infer_shape()(ctx); });
    // In reverse order, since an operand may be named twice.
    for (auto h = hidden.rbegin(); h != hidden.rend(); ++h) d_.frame[h->first] = h->second;
    told.all = status.ok() && !ctx.deferred();
    if (status.ok() && infer_now_) told.outs = std::move(ctx.outs());
    return told;
  }
  void TakeBehind(const Instruction& in, const Told& told) {
    for (uint32_t s : in.op.out)
      if (s != kNoSlot && plan_.slots[s].versioned) SetUnknown(s);
    TakeTold(in, told, true);
  }
  void TakeTold(const Instruction& in, const Told& told, bool behind) {
    const auto& defs = in.op.def->outputs();
    for (size_t d = 0; d < defs.size(); ++d) {
      if (!behind && !ir::IsSubBlockSlot(defs[d])) continue;
      for (uint32_t k = in.op.out_begin[d]; k < in.op.out_begin[d + 1]; ++k) {
        const uint32_t s = in.op.out[k];
        if (s == kNoSlot || IsArray(s)) continue;
        const bool set = k < told.outs.size() && told.outs[k].set &&
                         told.outs[k].shape.is_static() && !told.outs[k].has_lod &&
                         told.outs[k].dtype != DType::kUnknown;
        if (set && plan_.slots[s].storage != Storage::kScope && KeepsShape(s, told.outs[k])) {
          SetKnown(s, told.outs[k].dtype, told.outs[k].shape);
          d_.handed[s] = true;
        } else if (set || !told.all) {
          NoteVarying(s);
          SetUnknown(s);
        }
      }
    }
    for (uint32_t s : in.op.out)
      if (s != kNoSlot && IsArray(s) && !told.all) NoteVarying(s);
  }

  // Notes the slots with known shapes that the block's gradient will read. A loop's kernel keeps
  // them for each step; a conditional block runs once, and its own variables stay.
  void Record(const Instruction& in, int block, const std::vector<uint32_t>& carried,
              size_t outside) {
    if (!HasRecord(in.op.def->outputs())) return;
    recorded_[block] = carried;
    std::vector<uint32_t> kept = KnownIn(d_, in, "sub_block:kept");
    if (in.op.def->FindInput("sub_block:kept") < 0)
      kept.assign(became_known_.begin() + static_cast<std::ptrdiff_t>(outside),
                  became_known_.end());
    recorded_[block].insert(recorded_[block].end(), kept.begin(), kept.end());
  }
  // Makes known, inside the block, the operands that have a value in each of its runs.
  std::vector<uint32_t> CertainInside(const Instruction& in) {
    std::vector<uint32_t> certain;
    const int d = in.op.def->FindInput("sub_block:given(Out@GRAD)");
    for (uint32_t k = d < 0 ? 0 : in.op.in_begin[d]; d >= 0 && k < in.op.in_begin[d + 1]; ++k) {
      const uint32_t s = in.op.in[k];
      if (s == kNoSlot || d_.known_meta[s] || IsArray(s)) continue;
      const Slot& slot = plan_.slots[s];
      if (!slot.is_static || Varies(s)) continue;
      SetKnown(s, slot.dtype, slot.shape());
      certain.push_back(s);
    }
    return certain;
  }
  void Recall(const Instruction& in, int gradient) {
    if (!HasRecord(in.op.def->inputs())) return;
    const auto found = recorded_.find(d_.program.blocks[gradient].forward_block);
    if (found == recorded_.end()) return;
    for (uint32_t s : found->second)
      if (const Slot& slot = plan_.slots[s]; slot.is_static && !d_.known_meta[s])
        SetKnown(s, slot.dtype, slot.shape());
  }
  // Leaves the shapes of a block that several operators run, and of blocks inside it, to the run.
  void LeaveBlock(int b) {
    std::unordered_set<int> left;
    LeaveBlock(b, &left);
  }
  void LeaveBlock(int b, std::unordered_set<int>* left) {
    if (!left->insert(b).second) return;
    for (Instruction& in : plan_.blocks[b].instructions) {
      LookForInterrupt();
      for (uint32_t s : in.op.in)
        if (s != kNoSlot) NoteRead(s);
      LeaveForRun(in);
      if (!in.op.def->has(kControlFlow)) continue;
      for (int sub : d_.program.blocks[in.ir_block].ops[in.ir_op].SubBlocks())
        LeaveBlock(sub, left);
    }
  }

  // Whether a variable rewritten with this output keeps the shape and dtype that the plan relies
  // on.
  bool KeepsShape(uint32_t s, const ShapeContext::OutMeta& out) const {
    const Slot& slot = plan_.slots[s];
    if (slot.versioned) return true;
    if (slot.storage == Storage::kScope ? !d_.known_meta[s] : !MayHaveShape(s)) return false;
    return !slot.is_static || (slot.dtype == out.dtype && slot.shape() == out.shape);
  }

  // Notes that an operator changes the shape of a variable of the scope, as Paddle allows: the
  // analysis must not rely on its earlier shape.
  void NoteReshaped(uint32_t s) {
    if (plan_.slots[s].storage != Storage::kScope || !d_.known_meta[s]) return;
    d_.shared.varies[plan_.slots[s].var] = true;
    d_.shared.contradicted = true;
  }

  bool KeepsShapes(const Instruction& in, const std::vector<ShapeContext::OutMeta>& outs) {
    bool kept = true;
    for (size_t i = 0; i < in.op.out.size(); ++i) {
      const uint32_t s = in.op.out[i];
      if (s == kNoSlot || IsArray(s) || i >= outs.size() || !outs[i].set) continue;
      const Instruction::Rewrite* rewrite = RewriteOf(in, s);
      const uint32_t real = rewrite != nullptr ? rewrite->real : s;
      if (KeepsShape(real, outs[i])) continue;
      if (outs[i].shape.is_static()) NoteReshaped(real);
      kept = false;
    }
    return kept;
  }

  // Whether, with the shape function's answer, every output is static or stays unwritten.
  bool MaySettle(const Instruction& in, const std::vector<ShapeContext::OutMeta>& outs) {
    if (!KeepsShapes(in, outs)) return false;
    for (size_t i = 0; i < in.op.out.size(); ++i) {
      const uint32_t s = in.op.out[i];
      if (s == kNoSlot) continue;
      if (IsArray(s)) {  // the shape is that of its items; not set: none is known
        if (!OfAnyKind(in.op.def->outputs(), in.op.out_begin, i)) return false;
        if (i >= outs.size() || !outs[i].set) continue;
      }
      if (StaysUnwritten(d_, in, i, outs)) continue;
      // Sequence offsets are made at run time, so readers of such an output are inferred then.
      if (i >= outs.size() || !outs[i].set || outs[i].has_lod || !outs[i].shape.is_static() ||
          outs[i].dtype == DType::kUnknown)
        return false;
      if (IsArray(s)) continue;
      const Instruction::Rewrite* rewrite = RewriteOf(in, s);
      const uint32_t real = rewrite != nullptr ? rewrite->real : s;
      // A variable of the scope that is no input, or must not be overwritten yet.
      if ((rewrite == nullptr || !rewrite->inplace) && plan_.slots[real].storage == Storage::kScope)
        return false;
    }
    return true;
  }

  void Settle(Instruction& in, const std::vector<ShapeContext::OutMeta>& outs) {
    arrays_.NoteTaken(in);
    RareList<Instruction::Rewrite> later;
    for (size_t i = 0; i < in.op.out.size(); ++i) {
      uint32_t& s = in.op.out[i];
      if (s == kNoSlot) continue;
      if (IsArray(s)) {
        if (i < outs.size() && outs[i].set) arrays_.Note(s, outs[i].dtype, outs[i].shape);
        continue;
      }
      if (StaysUnwritten(d_, in, i, outs)) {
        SetUnknown(s);
        continue;
      }
      const Instruction::Rewrite* rewrite = RewriteOf(in, s);
      if (rewrite == nullptr || !rewrite->inplace) {
        SetKnown(s, outs[i].dtype, outs[i].shape);
        if (rewrite != nullptr) later.push_back(*rewrite);
      } else {  // the kernel writes to the variable itself
        plan_.slots[s].storage = Storage::kNone;
        s = rewrite->real;
      }
    }
    in.rewrites = std::move(later);
  }

  PlanDraft& d_;
  Plan& plan_;
  bool infer_now_ = true;
  std::vector<uint32_t> became_known_;  // slots of shared variables, in this order
  std::vector<bool> open_;              // per block: it, or a block inside it, is being visited
  std::vector<bool> required_;          // per slot, see Required()
  // Per forward block: slots that its operator records and whose shapes are known.
  std::unordered_map<int, std::vector<uint32_t>> recorded_;
  ArrayItems arrays_;
  OpenShapes open_shapes_;
};

}  // namespace

Status PropagateShapes(PlanDraft& draft) { return ShapePropagator(draft).Run(); }

}  // namespace heddle
