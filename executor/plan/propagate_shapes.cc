// Shapes and dtypes of everything that can be known before running, values of what is already
// known, and the kernel of each instruction.
#include "core/error.h"
#include "core/ir.h"
#include "core/kernel_selector.h"
#include "core/lazy_buffer.h"
#include "executor/plan/plan_draft.h"
#include "executor/plan/var_attrs.h"

namespace heddle {
namespace {

// Results up to this size are worth keeping instead of computing.
constexpr size_t kMaxKnownBytes = 16 << 10;

class ShapePropagator {
 public:
  explicit ShapePropagator(PlanDraft& draft) : d_(draft), plan_(*draft.plan) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(Seed());
    auto& instructions = plan_.blocks[0].instructions;
    size_t kept = 0;
    for (Instruction& in : instructions) {
      bool evaluated = false;
      HEDDLE_RETURN_IF_ERROR(Visit(in, &evaluated));
      if (evaluated) continue;
      if (&instructions[kept] != &in) instructions[kept] = std::move(in);
      ++kept;
    }
    instructions.erase(instructions.begin() + static_cast<std::ptrdiff_t>(kept),
                       instructions.end());
    for (size_t b = 1; b < plan_.blocks.size(); ++b)
      for (Instruction& in : plan_.blocks[b].instructions)
        if (in.op.def->prepare() && in.var_attrs.empty())
          in.states = std::make_unique<StateCache>();
    return Status::Ok();
  }

 private:
  // What is known at the start: feeds, and scope variables nobody writes.
  Status Seed() {
    const size_t n = plan_.slots.size();
    d_.frame.assign(n, plan_.metas.Of(DType::kUnknown, Shape()));
    d_.known_meta.assign(n, false);
    plan_.constant.assign(n, false);
    bool any_lod = false;
    for (size_t i = 0; i < plan_.feeds.size(); ++i) {
      const FeedSignature& f = d_.request.feeds[i];
      const uint32_t s = plan_.feeds[i].slot;
      any_lod = any_lod || f.has_lod;
      if (f.kind != Value::Kind::kTensor || plan_.feeds[i].copied) continue;
      SetKnown(s, f.dtype, f.shape);
    }
    // Sequence offsets travel with tensors and are not part of a signature: such runs infer all.
    infer_now_ = !any_lod;
    return SeedScope();
  }

  Status SeedScope() {
    std::vector<int> writers(plan_.slots.size(), 0);  // that may change shape
    std::vector<int> updates(plan_.slots.size(), 0);  // in place
    std::vector<bool> first_is_write(plan_.slots.size(), false), seen(plan_.slots.size(), false);
    for (const BlockPlan& block : plan_.blocks) {
      for (const Instruction& in : block.instructions) {
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
      if (!v->is_tensor() || writers[s] > 0) continue;
      SetKnown(s, v->tensor().dtype(), v->tensor().shape());
      use.meta = true;
      if (updates[s] > 0) continue;
      d_.frame[s] = &d_.contents.emplace_back(*v);
      plan_.constant[s] = true;
      use.contents = true;
    }
    return Status::Ok();
  }

  // An operator cannot do without the slot as its input.
  bool Required(uint32_t slot) {
    if (required_.empty()) {  // found for all slots when the first is asked about
      required_.assign(plan_.slots.size(), false);
      for (const BlockPlan& block : plan_.blocks)
        for (const Instruction& in : block.instructions) MarkRequired(in);
    }
    return required_[slot];
  }
  void MarkRequired(const Instruction& in) {
    for (size_t i = 0; i < in.op.def->inputs().size(); ++i) {
      if (in.op.def->inputs()[i].flags & kOptional) continue;
      for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k)
        if (in.op.in[k] != kNoSlot) required_[in.op.in[k]] = true;
    }
  }

  void SetKnown(uint32_t s, DType dtype, const Shape& shape) {
    d_.frame[s] = plan_.metas.Of(dtype, shape);
    d_.known_meta[s] = true;
    Slot& slot = plan_.slots[s];
    slot.is_static = true;
    slot.dtype = dtype;
    slot.meta = d_.frame[s];
  }

  void SetUnknown(uint32_t s) {
    const ir::Var& var = d_.program.vars[plan_.slots[s].var];
    d_.frame[s] = plan_.metas.Of(var.dtype, Shape::Unknown());
    d_.known_meta[s] = false;
  }

  bool InputsKnown(const Instruction& in) const {
    for (uint32_t s : in.op.in)
      if (s != kNoSlot && !d_.known_meta[s]) return false;
    return true;
  }

  Status Visit(Instruction& in, bool* evaluated) {
    const OpDef& def = *in.op.def;
    HEDDLE_RETURN_IF_ERROR(FixVarAttrs(in));
    bool settled = false;
    if (infer_now_ && in.var_attrs.empty() && def.infer_shape() != nullptr &&
        !def.has(kControlFlow) && InputsKnown(in)) {
      if (Status s = CheckOperands(in.op, d_.frame.data()); !s.ok()) return s.At(plan_.Locate(in));
      ShapeContext ctx(in.op, d_.frame.data());
      Status status = Guard([&] { return def.infer_shape()(ctx); });
      if (!status.ok()) return status.At(plan_.Locate(in));
      if (!ctx.deferred()) {
        HEDDLE_RETURN_IF_ERROR(CheckSizes(in, ctx.outs()));
        settled = Settle(in, ctx.outs());
      }
    }
    if (!settled) {
      if (def.prepare() && in.var_attrs.empty()) in.states = std::make_unique<StateCache>();
      for (uint32_t s : in.op.out)
        if (s != kNoSlot) SetUnknown(s);
      return Status::Ok();
    }
    if (Status s = SelectKernel(in.op, d_.frame.data(), &in.fn); !s.ok())
      return s.At(plan_.Locate(in));
    in.mode = Instruction::Mode::kStatic;
    *evaluated = Evaluate(in);
    return Status::Ok();
  }

  // Attributes given by variables become plain ones when all their values are known.
  Status FixVarAttrs(Instruction& in) const {
    if (in.var_attrs.empty()) return Status::Ok();
    const size_t slots = in.op.def->inputs().size();
    for (size_t k = in.op.in_begin[slots]; k < in.op.in.size(); ++k)
      if (in.op.in[k] != kNoSlot && !d_.frame[in.op.in[k]]->initialized()) return Status::Ok();
    in.fixed_attrs = std::make_unique<std::vector<AttrValue>>();
    if (Status s =
            ReadVarAttrs(in.var_attrs.vector(), d_.frame.data(), &in.op, in.fixed_attrs.get());
        !s.ok())
      return s.At(plan_.Locate(in));
    in.var_attrs.clear();
    in.op.in_begin.resize(slots + 1);
    in.op.in.resize(in.op.in_begin.back());
    return Status::Ok();
  }

  Status CheckSizes(const Instruction& in, const std::vector<ShapeContext::OutMeta>& outs) const {
    for (const auto& out : outs)
      if (out.set && out.shape.is_static() && BytesFor(out.dtype, out.shape) >= kImpossibleBytes)
        return ResourceExhausted("out of memory: an output of ", Name(out.dtype), " ",
                                 out.shape.ToString(), " is larger than any memory")
            .At(plan_.Locate(in));
    return Status::Ok();
  }

  // The variable that an in-place rewrite's output stands for; any other output is itself.
  static uint32_t RealOf(const Instruction& in, uint32_t slot) {
    for (const auto& r : in.rewrites)
      if (r.hidden == slot && r.inplace) return r.real;
    return slot;
  }

  // Takes over what the shape function said; true when every output is now static.
  bool Settle(Instruction& in, const std::vector<ShapeContext::OutMeta>& outs) {
    for (size_t i = 0; i < in.op.out.size(); ++i) {
      const uint32_t s = in.op.out[i];
      if (s == kNoSlot) continue;
      // Sequence offsets are made at run time, and whoever reads them is inferred then.
      if (i >= outs.size() || !outs[i].set || outs[i].has_lod || !outs[i].shape.is_static() ||
          outs[i].dtype == DType::kUnknown || !plan_.slots[s].versioned)
        return false;
      const uint32_t real = RealOf(in, s);
      const Slot& held = plan_.slots[real];
      if (real != s && (held.storage != Storage::kScope || !d_.known_meta[real] ||
                        held.dtype != outs[i].dtype || !(held.shape() == outs[i].shape)))
        return false;
    }
    for (const auto& r : in.rewrites)
      if (!r.inplace) return false;
    for (size_t i = 0; i < in.op.out.size(); ++i) {
      uint32_t& s = in.op.out[i];
      if (s == kNoSlot) continue;
      const uint32_t real = RealOf(in, s);
      if (real == s) {
        SetKnown(s, outs[i].dtype, outs[i].shape);
      } else {  // the kernel is given the variable itself
        plan_.slots[s].storage = Storage::kNone;
        s = real;
      }
    }
    in.rewrites.clear();
    return true;
  }

  // Computes the outputs now when everything they depend on is known and they are small. True when
  // the instruction is not needed any more.
  bool Evaluate(const Instruction& in) {
    const OpDef& def = *in.op.def;
    if (def.traits() & (kRandom | kSideEffect | kCommunication | kReader | kControlFlow))
      return false;
    for (size_t i = 0; i < def.inputs().size(); ++i) {
      const bool shape_only = (def.inputs()[i].flags & kNoBuffer) != 0;
      for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k) {
        const uint32_t s = in.op.in[k];
        if (s != kNoSlot && !shape_only && !d_.frame[s]->tensor().initialized()) return false;
      }
    }
    size_t bytes = 0;
    for (uint32_t s : in.op.out)
      if (s != kNoSlot) {
        if (!plan_.slots[s].versioned) return false;  // a variable of the scope
        bytes += plan_.slots[s].bytes();
      }
    if (bytes > kMaxKnownBytes) return false;
    for (uint32_t s : in.op.in)
      if (s != kNoSlot && !MakeResident(d_.frame[s]->tensor()).ok()) return false;
    return Compute(in);
  }

  bool Compute(const Instruction& in) {
    const OpDef& def = *in.op.def;
    for (uint32_t s : in.op.out)
      if (s != kNoSlot)
        d_.frame[s] =
            &d_.contents.emplace_back(Tensor::Zeros(plan_.slots[s].dtype, plan_.slots[s].shape()));
    Status status = Guard([&] {
      std::unique_ptr<KernelState> state;
      if (def.prepare() != nullptr) {
        PrepareContext prepare(in.op, d_.frame.data(), *d_.request.services, nullptr);
        auto made = def.prepare()(prepare);
        if (!made.ok()) return made.status();
        state = *std::move(made);
      }
      KernelContext ctx(in.op, d_.frame.data(), *d_.request.services, state.get());
      return in.fn(ctx);
    });
    for (uint32_t s : in.op.out) {
      if (s == kNoSlot) continue;
      if (!status.ok()) {  // left for the run, which reports the error if it comes to it
        SetKnown(s, plan_.slots[s].dtype, plan_.slots[s].shape());
        continue;
      }
      plan_.slots[s].storage = Storage::kConst;
      plan_.constant[s] = true;
      plan_.constants.emplace_back(s, *d_.frame[s]);
    }
    return status.ok();
  }

  template <typename Fn>
  static Status Guard(Fn&& fn) {
    try {
      return fn();
    } catch (const std::bad_alloc& e) {
      return ResourceExhausted(e.what());
    } catch (const std::exception& e) {
      return InvalidArgument(e.what());
    }
  }

  PlanDraft& d_;
  Plan& plan_;
  bool infer_now_ = true;
  std::vector<bool> required_;  // per slot, see Required()
};

}  // namespace

Status PropagateShapes(PlanDraft& draft) { return ShapePropagator(draft).Run(); }

}  // namespace heddle
