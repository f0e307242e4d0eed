// Branches, loops and arrays.
//
// The gradient of a branch is a branch with the same condition, which reads what the forward branch
// computed. The gradient of a loop is a loop over its turns, last one first: the forward loop keeps
// what each turn begins with in arrays, and the gradient loop computes a turn again from that
// before it differentiates it. Both are operators as all others, so that they can be differentiated
// again.
#include "gradient/control.h"

#include <algorithm>

#include "core/op_registry.h"
#include "gradient/op_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::Var;
using ir::VarId;
using ir::VarKind;
using ValueId = BlockGradient::ValueId;

constexpr ValueId kNoValue = BlockGradient::kNoValue;

Status SelectInputGradient(OpGradient& g) {
  const VarId mask = g.In("Mask"), seed = g.OutGrad();
  for (size_t i = 0; i < g.Ins("X"); ++i) {
    if (!g.Wants("X", i)) continue;
    const VarId chosen = g.Compare("equal", mask, g.Scale(mask, 0, static_cast<double>(i)));
    const ir::Var& x = g.Info(g.InVar("X", i));
    const DType dtype = x.dtype;
    const Shape shape = x.shape, given = g.Info(seed).shape;
    // Zeros for the others. They may hold nothing, so that only what is declared says their shape.
    if (!shape.is_static() || shape == given) {
      g.SetInGrad("X", i, g.Emit("scale", {{"X", seed}, {"ScaleTensor", g.Cast(chosen, dtype)}}));
      continue;
    }
    const VarId zeros = g.Constant(dtype, Ints(shape.begin(), shape.end()), 0);
    const VarId dx = g.Emit("select_input", {{"X", std::vector<VarId>{zeros, seed}},
                                             {"Mask", g.Cast(chosen, DType::kI32)}});
    g.Made(dx).dtype = dtype;
    g.Made(dx).shape = shape;
    g.SetInGrad("X", i, dx);
  }
  return Status::Ok();
}

Status ReadArrayGradient(OpGradient& g) {
  const VarId gradient = ArrayGradient(g.pass(), g.InVar("X")), at = g.In("I");
  const VarId before = g.New(g.OutVar("Out"), "element");
  Op read = g.Make("read_from_array", {{"X", gradient}, {"I", at}});
  read.outputs[0] = {before};
  g.Add(std::move(read));
  const VarId sum = g.Emit("sum", {{"X", std::vector<VarId>{before, g.OutGrad()}}});
  Op write = g.Make("write_to_array", {{"X", sum}, {"I", at}});
  write.outputs[0] = {gradient};
  g.Add(std::move(write));
  return Status::Ok();
}

Status WriteArrayGradient(OpGradient& g) {
  if (!g.Wants("X")) return Status::Ok();
  const auto& known = g.pass().shared().array_gradients;
  const auto found = known.find(g.OutVar("Out"));
  if (found == known.end()) return Status::Ok();  // nothing reads it
  // The gradient of an array is added to, element by element.
  if (g.Info(g.OutVar("Out")).name.find("@GRAD@ARRAY") != std::string::npos)
    return Unimplemented("an element of '", g.Info(g.OutVar("Out")).name,
                         "' is written more than once");
  const VarId element = g.New(g.InVar("X"), "element");
  Op read = g.Make("read_from_array", {{"X", found->second}, {"I", g.In("I")}});
  read.outputs[0] = {element};
  g.Add(std::move(read));
  g.SetInGrad("X", element);
  return Status::Ok();
}

int BlockOf(const Op& op) {
  return std::get<BlockRef>(op.attrs[static_cast<size_t>(op.def->FindAttr("sub_block"))]).id;
}

bool IsRealVar(const Var& var) {
  return var.kind == VarKind::kTensor &&
         (var.dtype == DType::kUnknown || IsFloat(var.dtype) || IsComplex(var.dtype));
}

// Arrays of outer blocks need their gradients before the block that adds to them.
void PrepareArrays(OpGradient& g, const std::vector<OuterVar>& outer) {
  for (const OuterVar& each : outer) {
    const Var& var = g.Info(each.var);
    if (var.kind != VarKind::kArray) continue;
    const bool reached = (each.is_read() && g.pass().Reached(each.read)) ||
                         (each.is_written() && g.pass().Reached(each.after));
    if (reached) ArrayGradient(g.pass(), each.var);
  }
}

Status BranchGradient(OpGradient& g) {
  BlockGradient& pass = g.pass();
  Shared& shared = pass.shared();
  const Op op = g.op();
  const int block = BlockOf(op);
  const std::vector<OuterVar> outer = OuterVarsOf(pass, g.at());
  PrepareArrays(g, outer);
  // The gradient's block sees what the branch computes.
  for (VarId v = 0; v < shared.program.vars.size(); ++v)
    if (shared.program.vars[v].block == block) {
      shared.Rename(v, shared.program.vars[v].name + "@KEPT");
      shared.program.vars[v].block = pass.hold();
    }
  std::vector<Op> ops = std::move(shared.program.blocks[static_cast<size_t>(block)].ops);
  const int into = shared.AddBlock(pass.into());
  BlockGradient inner(shared, &ops, block, into, true, pass.hold());
  for (const OuterVar& each : outer) {
    if (each.is_written() &&
        (pass.FlowsOut(each.after) != kNoVar ||
         (g.Info(each.var).kind == VarKind::kArray && pass.Reached(each.after))))
      inner.Expect(inner.Last(each.var));
    if (each.is_read() && pass.Wants(each.read)) inner.Want(inner.First(each.var));
  }
  inner.Trace();
  for (const OuterVar& each : outer)
    if (each.is_written())
      if (const VarId seed = pass.FlowsOut(each.after); seed != kNoVar)
        inner.Seed(inner.Last(each.var), seed);
  const Status status = inner.Run();
  inner.InsertCopies();
  shared.program.blocks[static_cast<size_t>(block)].ops = std::move(ops);
  HEDDLE_RETURN_IF_ERROR(status);
  ListOperands(shared.program, &g.Forward(), "Input", "Out");
  // What a later operator overwrites is read from its copy.
  VarMap held;
  std::vector<VarId> reads, writes;
  for (const OuterVar& each : outer) {
    if (g.Info(each.var).kind != VarKind::kTensor) continue;
    const VarId now = pass.Held(each.is_written() ? each.after : each.read);
    if (now != each.var) held.emplace(each.var, now);
    reads.push_back(now);
  }
  std::vector<Op> body = std::move(inner.emitted());
  ReplaceVars(shared, &body, held);
  for (const OuterVar& each : outer) {
    if (!each.is_read() || !pass.Wants(each.read) || !IsRealVar(g.Info(each.var))) continue;
    const VarId inside = inner.GradientOf(inner.First(each.var));
    if (inside == kNoVar) continue;
    // Zeros, unless the branch runs.
    const VarId result = g.ZerosLike(pass.Held(each.read));
    Op give = g.Make("assign", {{"X", inside}});
    give.outputs[0] = {result};
    body.push_back(std::move(give));
    writes.push_back(result);
    pass.AddPart(each.read, result);
  }
  const size_t cond = static_cast<size_t>(op.def->FindInput("Cond"));
  std::vector<VarId> conditions;
  for (size_t i = 0; i < op.inputs[cond].size(); ++i)
    conditions.push_back(pass.Held(pass.InValue(g.at(), cond, i)));
  if (!body.empty()) {
    shared.program.blocks[static_cast<size_t>(into)].ops = std::move(body);
    Op branch = ir::MakeOp(*op.def);
    branch.inputs[cond] = conditions;
    branch.inputs[static_cast<size_t>(op.def->FindInput("Input"))] = reads;
    branch.outputs[static_cast<size_t>(op.def->FindOutput("Out"))] = writes;
    branch.attrs = op.attrs;
    branch.attrs[static_cast<size_t>(op.def->FindAttr("sub_block"))] = BlockRef{into};
    Var scopes;
    scopes.kind = VarKind::kScopes;
    branch.outputs[static_cast<size_t>(op.def->FindOutput("Scope"))] = {
        shared.AddVar("branch@SCOPES", pass.into(), scopes)};
    g.Add(std::move(branch));
  }
  // What the branch writes keeps its value where it does not run.
  for (const OuterVar& each : outer) {
    if (!each.is_written() || each.before == kNoValue || !pass.Wants(each.before)) continue;
    const VarId seed = pass.FlowsOut(each.after);
    if (seed == kNoVar) continue;
    const VarId skipped = g.Cast(g.Unary("logical_not", conditions[0]), g.Info(each.var).dtype);
    pass.AddPart(each.before, g.Emit("scale", {{"X", seed}, {"ScaleTensor", skipped}}));
  }
  return Status::Ok();
}

// Whether the operators compute `v` from something that differs from turn to turn.
bool Changes(const std::vector<Op>& ops, const std::vector<OuterVar>& outer, VarId v) {
  std::vector<VarId> todo{v}, seen;
  while (!todo.empty()) {
    const VarId at = todo.back();
    todo.pop_back();
    if (std::find(seen.begin(), seen.end(), at) != seen.end()) continue;
    seen.push_back(at);
    for (const OuterVar& each : outer)
      if (each.var == at && each.is_written()) return true;
    for (const Op& op : ops)
      for (const auto& slot : op.outputs)
        if (std::find(slot.begin(), slot.end(), at) != slot.end())
          for (const auto& inputs : op.inputs)
            for (const VarId in : inputs)
              if (in != kNoVar) todo.push_back(in);
  }
  return false;
}

class LoopGradient {
 public:
  explicit LoopGradient(OpGradient& g)
      : g_(g),
        pass_(g.pass()),
        shared_(g.pass().shared()),
        op_(g.op()),
        block_(BlockOf(op_)),
        outer_(OuterVarsOf(pass_, g.at())) {}

  Status Run() {
    if (DrawsNumbers(shared_.program, Body()))
      return Unimplemented(
          "its block draws random numbers, which a turn that is computed again "
          "would not draw again");
    HEDDLE_RETURN_IF_ERROR(CheckArrays());
    PrepareArrays(g_, outer_);
    const std::vector<Op> forward = Body();
    loop_ = shared_.AddBlock(pass_.into());
    CopyTurn(forward);
    BlockGradient inner(shared_, &turn_, loop_, loop_, true, loop_);
    Trace(&inner);
    if (expected_.empty()) return Status::Ok();
    KeepStarts(forward);
    MakeCounters();
    // The gradients that go from turn to turn.
    for (size_t k = 0; k < outer_.size(); ++k) {
      const OuterVar& each = outer_[k];
      if (!expected_.contains(each.var) || g_.Info(each.var).kind == VarKind::kArray) continue;
      const VarId carried = g_.New(each.var, g_.Info(each.var).name);
      VarId seed = pass_.FlowsOut(each.after);
      if (seed == kNoVar) seed = g_.ZerosLike(pass_.Held(each.after));
      Op give = g_.Make("assign", {{"X", seed}});
      give.outputs[0] = {carried};
      g_.Add(std::move(give));
      carried_.emplace(each.var, carried);
      inner.Seed(inner.Last(copies_.at(each.var)), carried);
    }
    for (const OuterVar& each : outer_) {
      if (each.is_written() || !IsRealVar(g_.Info(each.var)) || !pass_.Wants(each.read)) continue;
      if (!inner.Reached(inner.First(each.var))) continue;
      sums_.emplace(each.var, g_.ZerosLike(pass_.Held(each.read)));
    }
    HEDDLE_RETURN_IF_ERROR(inner.Run());
    inner.InsertCopies();
    Assemble(&inner);
    for (const OuterVar& each : outer_) {
      if (const auto found = carried_.find(each.var); found != carried_.end())
        if (each.start() != kNoValue && pass_.Wants(each.start()))
          pass_.AddPart(each.start(), found->second);
      if (const auto found = sums_.find(each.var); found != sums_.end())
        pass_.AddPart(each.read, found->second);
    }
    return Status::Ok();
  }

 private:
  std::vector<Op>& Body() { return shared_.program.blocks[static_cast<size_t>(block_)].ops; }

  // An element that several turns write has only its last value when the gradient reads it.
  Status CheckArrays() {
    for (const Op& op : Body()) {
      if (op.type() != "write_to_array") continue;
      const VarId array = op.Out("Out")[0];
      if (shared_.program.vars[array].block == block_) continue;
      if (!Changes(Body(), outer_, op.In("I")[0]))
        return Unimplemented("every turn writes the same element of array '",
                             shared_.program.vars[array].name, "'");
    }
    return Status::Ok();
  }

  // The turn again: variables that the loop rewrites are variables of the gradient's block.
  void CopyTurn(const std::vector<Op>& forward) {
    for (const OuterVar& each : outer_) {
      const Var like = g_.Info(each.var);
      if (!each.is_written() || like.kind != VarKind::kTensor) continue;
      copies_.emplace(each.var, shared_.AddVar(like.name + "@TURN", loop_, like));
    }
    VarMap vars = copies_;
    turn_ = CopyOps(shared_, forward, block_, loop_, &vars);
    turn_.erase(std::remove_if(turn_.begin(), turn_.end(),
                               [](const Op& op) { return op.type() == "print"; }),
                turn_.end());
  }

  // Which gradients go round: those of results, and what they reach at the beginning of a turn.
  void Trace(BlockGradient* inner) {
    for (const OuterVar& each : outer_) {
      const Var& var = g_.Info(each.var);
      if (var.kind == VarKind::kArray) {
        const bool reached = (each.is_read() && pass_.Reached(each.read)) ||
                             (each.is_written() && pass_.Reached(each.after));
        if (!reached) continue;
        inner->Want(inner->First(each.var));
        inner->Expect(inner->First(each.var));
        expected_.insert(each.var);
      } else if (each.is_written()) {
        if (IsRealVar(var)) inner->Want(inner->First(copies_.at(each.var)));
        if (pass_.FlowsOut(each.after) == kNoVar) continue;
        inner->Expect(inner->Last(copies_.at(each.var)));
        expected_.insert(each.var);
      } else if (IsRealVar(var) && pass_.Wants(each.read)) {
        inner->Want(inner->First(each.var));
      }
    }
    for (bool more = true; more;) {
      inner->Trace();
      more = false;
      for (const OuterVar& each : outer_) {
        const auto copy = copies_.find(each.var);
        if (copy == copies_.end() || !IsRealVar(g_.Info(each.var))) continue;
        if (inner->Reached(inner->First(copy->second)) && expected_.insert(each.var).second) {
          inner->Expect(inner->Last(copy->second));
          more = true;
        }
      }
    }
  }

  VarId Number(const std::string& stem, int block) {
    Var var;
    var.dtype = DType::kI64;
    var.shape = Shape({1});
    return shared_.AddVar(stem, block, var);
  }

  // The forward loop counts its turns, and keeps what each begins with.
  void KeepStarts(const std::vector<Op>& forward) {
    turns_ = Number("loop@TURNS", pass_.hold());
    Op zero = g_.Make("fill_constant", {}, {{"shape", Ints{1}}, {"dtype", 3}});
    zero.outputs[0] = {turns_};
    pass_.InsertBefore(g_.at(), std::move(zero));
    std::vector<Op> body;
    for (const OuterVar& each : outer_) {
      const auto copy = copies_.find(each.var);
      if (copy == copies_.end() || each.start() == kNoValue) continue;
      if (!IsStartRead(copy->second)) continue;
      Var like = g_.Info(each.var);
      like.kind = VarKind::kArray;
      const VarId array = shared_.AddVar(like.name + "@STARTS", pass_.hold(), like);
      Op write = g_.Make("write_to_array", {{"X", each.var}, {"I", turns_}});
      write.outputs[0] = {array};
      body.push_back(std::move(write));
      starts_.emplace_back(copy->second, array);
    }
    body.insert(body.end(), forward.begin(), forward.end());
    Op next = g_.Make("increment", {{"X", turns_}}, {{"step", 1.0}});
    next.outputs[0] = {turns_};
    body.push_back(std::move(next));
    Body() = std::move(body);
    ListOperands(shared_.program, &g_.Forward(), "X", "Out");
  }

  // Whether the turn reads the variable before it writes it, or may leave it as it was.
  bool IsStartRead(VarId v) const {
    std::vector<const std::vector<Op>*> blocks{&turn_};
    for (const Op& op : turn_) {
      if (!op.SubBlocks().empty()) return true;
      for (const auto& slot : op.inputs)
        if (std::find(slot.begin(), slot.end(), v) != slot.end()) return true;
      for (const auto& slot : op.outputs)
        if (std::find(slot.begin(), slot.end(), v) != slot.end()) return false;
    }
    return true;
  }

  void MakeCounters() {
    at_ = Number("loop@AT", pass_.into());
    Op last = g_.Make("scale", {{"X", turns_}}, {{"bias", -1.0}});
    last.outputs[0] = {at_};
    g_.Add(std::move(last));
    zero_ = g_.Constant(DType::kI64, {1}, 0);
    Var truth;
    truth.dtype = DType::kBool;
    truth.shape = Shape({1});
    more_ = shared_.AddVar("loop@MORE", pass_.into(), truth);
    Op compare = g_.Make("greater_equal", {{"X", at_}, {"Y", zero_}});
    compare.outputs[0] = {more_};
    g_.Add(std::move(compare));
  }

  void Assemble(BlockGradient* inner) {
    std::vector<Op> body;
    for (const auto& [copy, array] : starts_) {
      Op read = g_.Make("read_from_array", {{"X", array}, {"I", at_}});
      read.outputs[0] = {copy};
      body.push_back(std::move(read));
    }
    for (Op& op : turn_) {
      // Arrays of outer blocks have all their elements already.
      if (op.type() == "write_to_array" && shared_.program.vars[op.Out("Out")[0]].block != loop_)
        continue;
      body.push_back(std::move(op));
    }
    for (Op& op : inner->emitted()) body.push_back(std::move(op));
    const auto assign = [&](VarId from, VarId to) {
      Op give = g_.Make("assign", {{"X", from}});
      give.outputs[0] = {to};
      body.push_back(std::move(give));
    };
    // First all copies, since one may be another's source.
    std::vector<std::pair<VarId, VarId>> gives;
    for (const auto& [var, carried] : carried_) {
      const VarId copy = copies_.at(var);
      VarId gradient = inner->GradientOf(inner->First(copy));
      const Var like = g_.Info(var);
      const VarId kept = shared_.AddVar(like.name + "@GRAD@NEXT", loop_, like);
      if (gradient == kNoVar) {
        Op zeros = g_.Make("fill_zeros_like", {{"X", carried}});
        zeros.outputs[0] = {kept};
        body.push_back(std::move(zeros));
      } else {
        assign(gradient, kept);
      }
      gives.emplace_back(kept, carried);
    }
    for (const auto& [var, sum] : sums_) {
      const VarId gradient = inner->GradientOf(inner->First(var));
      if (gradient == kNoVar) continue;
      const Var like = g_.Info(var);
      const VarId next = shared_.AddVar(like.name + "@GRAD@NEXT", loop_, like);
      Op add = g_.Make("sum", {{"X", std::vector<VarId>{sum, gradient}}});
      add.outputs[0] = {next};
      body.push_back(std::move(add));
      gives.emplace_back(next, sum);
    }
    for (const auto& [from, to] : gives) assign(from, to);
    Op back = g_.Make("increment", {{"X", at_}}, {{"step", -1.0}});
    back.outputs[0] = {at_};
    body.push_back(std::move(back));
    Op compare = g_.Make("greater_equal", {{"X", at_}, {"Y", zero_}});
    compare.outputs[0] = {more_};
    body.push_back(std::move(compare));
    // What a later operator overwrites is read from its copy.
    VarMap held;
    std::vector<VarId> reads{at_, zero_}, writes{at_, more_};
    for (const OuterVar& each : outer_) {
      if (each.is_written() && g_.Info(each.var).kind != VarKind::kArray) continue;
      const VarId now = each.is_read() ? pass_.Held(each.read) : each.var;
      if (now != each.var) held.emplace(each.var, now);
      reads.push_back(now);
      if (g_.Info(each.var).kind != VarKind::kArray) continue;
      const auto found = shared_.array_gradients.find(each.var);
      if (found == shared_.array_gradients.end()) continue;
      reads.push_back(found->second);
      writes.push_back(found->second);
    }
    for (const auto& [copy, array] : starts_) reads.push_back(array);
    for (const auto* each : {&carried_, &sums_})
      for (const auto& [var, gradient] : *each) {
        reads.push_back(gradient);
        writes.push_back(gradient);
      }
    ReplaceVars(shared_, &body, held);
    shared_.program.blocks[static_cast<size_t>(loop_)].ops = std::move(body);
    Op loop = ir::MakeOp(*op_.def);
    loop.inputs[static_cast<size_t>(op_.def->FindInput("X"))] = reads;
    loop.inputs[static_cast<size_t>(op_.def->FindInput("Condition"))] = {more_};
    loop.outputs[static_cast<size_t>(op_.def->FindOutput("Out"))] = writes;
    loop.attrs = op_.attrs;
    loop.attrs[static_cast<size_t>(op_.def->FindAttr("sub_block"))] = BlockRef{loop_};
    Var scopes;
    scopes.kind = VarKind::kScopes;
    loop.outputs[static_cast<size_t>(op_.def->FindOutput("StepScopes"))] = {
        shared_.AddVar("loop@SCOPES", pass_.into(), scopes)};
    g_.Add(std::move(loop));
  }

  OpGradient& g_;
  BlockGradient& pass_;
  Shared& shared_;
  const Op op_;
  const int block_;
  const std::vector<OuterVar> outer_;
  int loop_ = -1;
  VarMap copies_;                          // of what the loop rewrites, in the gradient's block
  std::map<VarId, VarId> carried_, sums_;  // gradients, by outer variable
  std::vector<std::pair<VarId, VarId>> starts_;  // copies and the arrays that keep them
  std::unordered_set<VarId> expected_;
  std::vector<Op> turn_;
  VarId turns_ = kNoVar, at_ = kNoVar, zero_ = kNoVar, more_ = kNoVar;
};

Status WhileGradient(OpGradient& g) { return LoopGradient(g).Run(); }

// A recurrent operator means its block once for each step, with slices of its inputs.
Status RecurrentGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    const Op op = g.op();
    Shared& shared = g.pass().shared();
    const int block = BlockOf(op);
    const std::vector<Op> body = shared.program.blocks[static_cast<size_t>(block)].ops;
    int64_t steps = -1;
    for (size_t i = 0; i < g.Ins("inputs"); ++i) {
      const Shape& shape = g.Info(g.InVar("inputs", i)).shape;
      if (shape.known_rank() && shape.rank() > 0 && shape[0] >= 0) steps = shape[0];
    }
    if (steps < 0) return Unimplemented("its gradient needs the number of steps, which is open");
    const bool reverse = g.HasAttr("reverse") && g.Attr<bool>("reverse");
    const Strings before = g.Attr<Strings>("ex_states"), after = g.Attr<Strings>("states");
    std::vector<VarId> states = g.AllIn("initial_states");
    const auto inner = [&](const std::string& name) { return shared.program.Find(block, name); };
    std::vector<std::vector<VarId>> outs(g.Outs("outputs"));
    for (auto& list : outs) list.resize(static_cast<size_t>(steps));
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t t = reverse ? steps - 1 - k : k;
      VarMap vars;
      for (size_t i = 0; i < g.Ins("inputs"); ++i) {
        const VarId whole = g.In("inputs", i);
        vars[inner(g.Info(g.InVar("inputs", i)).name)] = g.Emit("slice", {{"Input", whole}},
                                                                {{"axes", Ints{0}},
                                                                 {"starts", Ints{t}},
                                                                 {"ends", Ints{t + 1}},
                                                                 {"decrease_axis", Ints{0}}});
      }
      for (size_t i = 0; i < before.size(); ++i) vars[inner(before[i])] = states[i];
      // Outer operands are read as they were when the operator ran.
      for (size_t i = 0; i < g.Ins("parameters"); ++i)
        if (g.In("parameters", i) != g.InVar("parameters", i))
          vars[g.InVar("parameters", i)] = g.In("parameters", i);
      for (Op& each : CopyOps(shared, body, block, g.pass().into(), &vars)) g.Add(std::move(each));
      const auto now = [&](VarId v) {
        const auto found = vars.find(v);
        return found == vars.end() ? v : found->second;
      };
      for (size_t i = 0; i < after.size(); ++i) states[i] = now(inner(after[i]));
      for (size_t i = 0; i < outs.size(); ++i)
        outs[i][static_cast<size_t>(t)] = now(inner(g.Info(g.OutVar("outputs", i)).name));
    }
    for (size_t i = 0; i < outs.size(); ++i)
      out->push_back(
          {{"outputs", i}, g.EmitMany("stack", {{"X", outs[i]}}, {{"axis", 0}}, "Y", 1)[0]});
    return Status::Ok();
  });
}

}  // namespace

RuleTable ControlRules() {
  return {
      Composed("select_input", SelectInputGradient, "X"),
      Composed("read_from_array", ReadArrayGradient, "X"),
      Composed("write_to_array", WriteArrayGradient, "X"),
      Composed("conditional_block", BranchGradient),
      Composed("while", WhileGradient),
      Composed("recurrent", RecurrentGradient, "inputs initial_states parameters", "outputs"),
  };
}

}  // namespace heddle::gradient
