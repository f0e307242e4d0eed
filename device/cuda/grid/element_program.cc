#include "device/cuda/grid/element_program.h"

#include <algorithm>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/shapes.h"
#include "core/tile_ops.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {
namespace {

struct Kind {
  Element op = Element::kRelu;
  ElementArgs args;
  uint32_t operands = 1;
  bool broadcasts = false;
  int64_t axis = -1;
};

// nullptr when the operator is no step of fused loops.
const ElementStep* StepOf(const std::string& name) {
  const GridKernel* const kernel = FindGridKernel(name);
  return kernel != nullptr && kernel->step ? &*kernel->step : nullptr;
}

// The operator with the attributes that stand in `values` from *at on.
Result<Kind> ReadKind(const std::string& name, const Floats& values, size_t* at) {
  const OpDef* const def = FindOp(name);
  if (def == nullptr) return InvalidArgument("'", name, "' is no operator");
  const std::vector<AttrValue> attrs = UnpackNumbers(*def, values, at);
  BoundOp op;  // without operands
  op.def = def;
  op.attrs = attrs.data();
  const OpContext ctx(op, nullptr);
  const ElementStep* const step = StepOf(name);
  if (step == nullptr || (step->knows != nullptr && !step->knows(ctx)))
    return Unimplemented("'", name, "' is no step of CUDA's fused loops");
  Kind kind;
  kind.op = step->choose != nullptr ? step->choose(ctx) : step->op;
  kind.operands = static_cast<uint32_t>(Operands(kind.op));
  kind.broadcasts = step->broadcasts;
  if (kind.broadcasts) kind.axis = ctx.Int("axis");
  if (step->args != nullptr) kind.args = step->args(ctx);
  return kind;
}

class Planner {
 public:
  using Code = ElementLoopCode;

  Result<ElementProgramPlan> Run(const OpContext& ctx, const std::vector<Shape>& inputs) {
    plan_.inputs = static_cast<uint32_t>(inputs.size());
    shapes_ = inputs;
    HEDDLE_RETURN_IF_ERROR(Read(ctx));
    FindUses();
    for (uint32_t s = 0; s < steps_.size(); ++s) AddStep(s);
    Cut(static_cast<uint32_t>(steps_.size()));
    for (const Shape& s : shapes_) plan_.numel.push_back(s.numel());
    return std::move(plan_);
  }

 private:
  struct Step {
    Kind kind;
    uint32_t in[2] = {};
  };
  static constexpr uint32_t kNone = ~0u;

  Status Read(const OpContext& ctx) {
    size_t at = 0;
    std::vector<Kind> kinds;
    for (const std::string& name : ctx.Attr<Strings>("ops")) {
      HEDDLE_ASSIGN_OR_RETURN(const Kind kind, ReadKind(name, ctx.Attr<Floats>("values"), &at));
      kinds.push_back(kind);
    }
    const Ints& code = ctx.IntList("code");
    for (size_t i = 0; i < code.size();) {
      if (code[i] < 0 || code[i] >= std::ssize(kinds)) return InvalidArgument("a bad 'code'");
      Step step{kinds[static_cast<size_t>(code[i++])]};
      if (i + step.kind.operands > code.size()) return InvalidArgument("'code' ends too early");
      for (uint32_t k = 0; k < step.kind.operands; ++k, ++i) {
        if (code[i] < 0 || code[i] >= std::ssize(shapes_)) return InvalidArgument("a bad 'code'");
        step.in[k] = static_cast<uint32_t>(code[i]);
      }
      HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(step));
      shapes_.push_back(shape);
      steps_.push_back(step);
    }
    for (const int64_t v : ctx.IntList("outs")) {
      if (v < plan_.inputs || v >= std::ssize(shapes_)) return InvalidArgument("bad 'outs'");
      plan_.outs.push_back(static_cast<uint32_t>(v));
    }
    return Status::Ok();
  }

  Result<Shape> ShapeOf(const Step& step) const {
    const Shape& x = shapes_[step.in[0]];
    if (!step.kind.broadcasts) return x;
    return BroadcastShape(x, shapes_[step.in[1]], step.kind.axis);
  }

  void FindUses() {
    last_use_.assign(shapes_.size(), 0);
    for (uint32_t s = 0; s < steps_.size(); ++s)
      for (uint32_t k = 0; k < steps_[s].kind.operands; ++k) last_use_[steps_[s].in[k]] = s;
    plan_.in_memory.assign(shapes_.size(), false);
    std::fill_n(plan_.in_memory.begin(), plan_.inputs, true);
    for (const uint32_t v : plan_.outs) plan_.in_memory[v] = true;
    register_.assign(shapes_.size(), kNone);
  }

  // Ends the loop before step `next`; values that later steps read are stored in memory.
  void Cut(uint32_t next) {
    for (uint32_t v = 0; v < shapes_.size(); ++v) {
      if (register_[v] == kNone) continue;
      if (last_use_[v] >= next && next < steps_.size()) plan_.in_memory[v] = true;
      register_[v] = kNone;
    }
    free_.clear();
    for (int r = Code::kRegisters; r-- > 0;) free_.push_back(static_cast<uint32_t>(r));
    open_ = false;
  }

  void AddStep(uint32_t s) {
    const Step& step = steps_[s];
    const uint32_t result = plan_.inputs + s;
    if (open_ && !(shapes_[result] == *domain_)) Cut(s);
    if (open_ && !Fits(s)) Cut(s);
    if (!open_) {
      Cut(s);
      plan_.loops.emplace_back();
      domain_ = &shapes_[result];
      columns_.clear();
      open_ = true;
    }
    ElementLoopPlan& loop = plan_.loops.back();
    Code::Step& to = loop.code.step[loop.code.steps++];
    to.op = step.kind.op;
    to.args = step.kind.args;
    for (uint32_t k = 0; k < step.kind.operands; ++k) to.in[k] = Operand(step, k, &loop);
    for (uint32_t k = 0; k < step.kind.operands; ++k) Leave(step.in[k], s);
    register_[result] = free_.back();
    free_.pop_back();
    to.out = static_cast<uint8_t>(register_[result]);
    loop.stores.push_back(result);
    FinishStrides(&loop);
    if (last_use_[result] <= s) Leave(result, s);  // nobody reads it here
  }

  // A register that is read for the last time serves again.
  void Leave(uint32_t v, uint32_t s) {
    if (register_[v] == kNone || last_use_[v] > s) return;
    free_.push_back(register_[v]);
    register_[v] = kNone;
  }

  bool Fits(uint32_t s) const {
    const ElementLoopPlan& loop = plan_.loops.back();
    if (loop.code.steps == Code::kMostSteps || free_.empty()) return false;
    int more = 0;
    for (uint32_t k = 0; k < steps_[s].kind.operands; ++k)
      more += register_[steps_[s].in[k]] == kNone;
    return static_cast<int>(loop.reads.size()) + more <= Code::kMostInputs;
  }

  Steps StepsOf(const Step& step, uint32_t k) const {
    const Shape& own = shapes_[step.in[k]];
    int first = 0;
    if (step.kind.broadcasts) {
      const Alignment a = Align(shapes_[step.in[0]], shapes_[step.in[1]], step.kind.axis);
      first = k == 0 ? a.x : a.y;
    }
    return Spread(own, *domain_, first);
  }

  uint8_t Operand(const Step& step, uint32_t k, ElementLoopPlan* loop) {
    const uint32_t v = step.in[k];
    if (register_[v] != kNone) return static_cast<uint8_t>(register_[v]);
    const Steps steps = StepsOf(step, k);
    for (size_t i = 0; i < loop->reads.size(); ++i)
      if (loop->reads[i] == v && std::equal(steps.at, steps.at + kMaxRank, columns_[i].at))
        return static_cast<uint8_t>(Code::kRegisters + i);
    loop->reads.push_back(v);
    columns_.push_back(steps);
    loop->code.inputs = static_cast<int>(loop->reads.size());
    return static_cast<uint8_t>(Code::kRegisters + loop->reads.size() - 1);
  }

  void FinishStrides(ElementLoopPlan* loop) {
    loop->code.strides = Strides<Code::kMostInputs>();
    for (int d = 0; d < domain_->rank(); ++d) {
      int64_t at[Code::kMostInputs] = {};
      // Unused entries repeat the first one, so that they do not prevent joining.
      for (size_t i = 0; i < Code::kMostInputs; ++i)
        at[i] = columns_.empty() ? 0 : columns_[i < columns_.size() ? i : 0].at[d];
      loop->code.strides.Add((*domain_)[d], at);
    }
  }

  ElementProgramPlan plan_;
  std::vector<Shape> shapes_;  // of each value
  std::vector<Step> steps_;
  std::vector<uint32_t> last_use_, register_;  // of each value
  // State of the current loop:
  bool open_ = false;
  const Shape* domain_ = nullptr;
  std::vector<Steps> columns_;
  std::vector<uint32_t> free_;
};

}  // namespace

bool KnowsAllSteps(const OpContext& ctx) {
  size_t at = 0;
  for (const std::string& name : ctx.Attr<Strings>("ops"))
    if (!ReadKind(name, ctx.Attr<Floats>("values"), &at).ok()) return false;
  return true;
}

Result<ElementProgramPlan> PlanElementProgram(const OpContext& ctx,
                                              const std::vector<Shape>& inputs) {
  return Planner().Run(ctx, inputs);
}

}  // namespace heddle::HEDDLE_GRID
