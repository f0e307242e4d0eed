// Values of the forward part that the backward part reads are kept, or dropped and computed again
// when it needs them. Two rules draw up candidates: the forward part is cut into segments of which
// only what crosses a cut is kept; or what costs little time for its size is dropped.
#include "gradient/recompute.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "core/op_registry.h"
#include "gradient/block_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

constexpr unsigned kOnce = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;

bool IsBackward(const Op& op) {
  return op.role != nullptr &&
         (op.role->bits & (ir::OpRole::kBackward | ir::OpRole::kOptimize)) != 0;
}

// A batch norm normalises with its batch's statistics, and updates those that are kept beside.
bool UpdatesBeside(const Op& op) {
  return op.type() == "batch_norm" || op.type() == "sync_batch_norm";
}

// Calls fn(variable) for each operand whose contents are read; for an operator that is no constant,
// fn may replace it.
template <typename AnyOp, typename Fn>
void EachRead(AnyOp& op, const Fn& fn) {
  for (size_t s = 0; s < op.inputs.size(); ++s) {
    if (s < op.def->inputs().size() && (op.def->inputs()[s].flags & kNoBuffer) != 0) continue;
    for (auto& v : op.inputs[s])
      if (v != kNoVar) fn(v);
  }
}
template <typename Fn>
void EachWritten(const Op& op, const Fn& fn) {
  for (const auto& slot : op.outputs)
    for (const VarId v : slot)
      if (v != kNoVar) fn(v);
}

// What holds for all ways to run a step.
class Step {
 public:
  Step(const ir::Program& program, const ValueCosts& costs) : program_(program) {
    const auto& ops = program.blocks[0].ops;
    while (backward < ops.size() && !IsBackward(ops[backward])) ++backward;
    writer.assign(program.vars.size(), kNone);
    last_forward.assign(program.vars.size(), -1);
    read_later.assign(program.vars.size(), false);
    bytes.assign(program.vars.size(), 0);
    std::vector<int> writes(program.vars.size());
    std::vector<bool> fixed(program.vars.size());
    for (VarId v = 0; v < program.vars.size(); ++v) {
      const ir::Var& var = program.vars[v];
      const auto known = costs.find(var.name);
      if (known != costs.end() && var.block == 0) bytes[v] = known->second.bytes;
      fixed[v] = var.persistable || var.input || var.block != 0 ||
                 var.kind != ir::VarKind::kTensor || var.lod_level > 0;
    }
    for (const ir::Port& port : program.feeds) fixed[port.var] = true;
    for (const ir::Port& port : program.fetches) fixed[port.var] = true;
    for (size_t b = 1; b < program.blocks.size(); ++b)
      for (const Op& op : program.blocks[b].ops) {
        for (const auto& slot : op.inputs)
          for (const VarId v : slot)
            if (v != kNoVar) fixed[v] = true;
        EachWritten(op, [&](VarId v) { fixed[v] = true; });
      }
    for (size_t k = 0; k < ops.size(); ++k) {
      EachWritten(ops[k], [&](VarId v) {
        ++writes[v];
        writer[v] = static_cast<int>(k);
      });
      EachRead(ops[k], [&](VarId v) {
        if (k < backward)
          last_forward[v] = static_cast<int>(k);
        else
          read_later[v] = true;
      });
    }
    // A parameter that the forward part writes has another value when it is read again.
    std::vector<bool> written_before(program.vars.size());
    for (size_t k = 0; k < backward; ++k)
      EachWritten(ops[k], [&](VarId v) { written_before[v] = program.vars[v].persistable; });
    repeatable.assign(ops.size(), false);
    cost.assign(ops.size(), 0);
    for (size_t k = 0; k < backward; ++k) {
      const Op& op = ops[k];
      bool may = (op.def->traits() & kOnce) == 0 && op.hints == nullptr && op.SubBlocks().empty();
      for (const auto& slot : op.inputs)
        for (const VarId v : slot)
          if (v != kNoVar)
            may = may && (program.vars[v].persistable ? !written_before[v] || UpdatesBeside(op)
                                                      : writes[v] <= 1);
      EachWritten(op, [&](VarId v) {
        may =
            may && (program.vars[v].persistable ? UpdatesBeside(op) : !fixed[v] && writes[v] == 1);
        const auto known = costs.find(program.vars[v].name);
        if (known != costs.end()) cost[k] = std::max(cost[k], known->second.cost_ns);
      });
      repeatable[k] = may;
    }
  }

  const ir::Program& program() const { return program_; }
  const std::vector<Op>& ops() const { return program_.blocks[0].ops; }
  // A value that some operator of the forward part makes, and that can be made again.
  bool CanDrop(VarId v) const {
    const int at = writer[v];
    return at >= 0 && static_cast<size_t>(at) < backward && repeatable[static_cast<size_t>(at)] &&
           !program_.vars[v].persistable;
  }

  static constexpr int kNone = -1;
  size_t backward = 0;  // the first operator of the backward part
  // By variable.
  std::vector<int> writer, last_forward;
  std::vector<bool> read_later;  // the backward part reads its contents
  std::vector<size_t> bytes;
  // By operator.
  std::vector<bool> repeatable;
  std::vector<double> cost;

 private:
  const ir::Program& program_;
};

// Makes one way: a program in which dropped values are computed again.
class Rewriter {
 public:
  // `dropped`: by variable; all of them can be dropped.
  Rewriter(const Step& step, const std::vector<bool>& dropped)
      : step_(step),
        dropped_(dropped),
        program_(std::make_shared<ir::Program>(step.program())),
        shared_(program_.get()),
        again_(program_->vars.size(), kNoVar),
        bytes_(step.bytes) {
    for (const ir::Block& block : program_->blocks)
      for (const Op& op : block.ops)
        if (op.hints != nullptr)
          for (const int64_t mark : op.hints->marks) next_mark_ = std::max(next_mark_, mark + 1);
  }

  StepWay Run() {
    const std::vector<Op> old = std::move(program_->blocks[0].ops);
    for (size_t k = 0; k < old.size(); ++k) {
      Op op = old[k];
      if (k >= step_.backward) {
        MakeAgain(op);
        EachRead(op, [&](VarId& v) {
          if (again_[v] != kNoVar) v = again_[v];
        });
      }
      made_.push_back(std::move(op));
    }
    way_.peak_bytes = Peak();
    program_->blocks[0].ops = std::move(made_);
    way_.program = Program(std::shared_ptr<const ir::Program>(std::move(program_)));
    return std::move(way_);
  }

 private:
  // Emits what the operator's operands need.
  void MakeAgain(const Op& reader) {
    std::set<int> needed;  // operators of the forward part, in their order
    std::vector<VarId> open;
    const auto want = [&](VarId v) {
      if (dropped_[v] && again_[v] == kNoVar) open.push_back(v);
    };
    EachRead(reader, want);
    while (!open.empty()) {
      const VarId v = open.back();
      open.pop_back();
      if (needed.insert(step_.writer[v]).second)
        EachRead(step_.ops()[static_cast<size_t>(step_.writer[v])], want);
    }
    if (needed.empty()) return;
    // What is read of kept values goes through copies that wait until the backward part is here, so
    // that nothing is computed earlier, and is not taken for what has been computed already.
    std::unordered_map<VarId, VarId> copies;
    const int64_t after = MarkLast();
    for (const int at : needed) {
      Op op = step_.ops()[static_cast<size_t>(at)];
      EachRead(op, [&](VarId& v) {
        if (again_[v] != kNoVar) {
          v = again_[v];
        } else if (!program_->vars[v].persistable) {
          VarId& copy = copies.try_emplace(v, kNoVar).first->second;
          if (copy == kNoVar) copy = Copy(v, after);
          v = copy;
        }
      });
      for (auto& slot : op.outputs)
        for (VarId& v : slot)
          if (v != kNoVar) v = Again(v);
      op.role = Backward();
      op.index = -1;
      made_.push_back(std::move(op));
      ++way_.again;
      way_.cost_ns += step_.cost[static_cast<size_t>(at)];
    }
  }

  VarId Again(VarId v) {
    const ir::Var like = program_->vars[v];
    const VarId made = Add(like.name + "@AGAIN", v);
    if (!like.persistable) again_[v] = made;
    return made;
  }

  VarId Copy(VarId v, int64_t after) {
    Op copy = ir::MakeOp(*FindOp("assign"));
    copy.inputs[0] = {v};
    copy.outputs[0] = {Add(program_->vars[v].name + "@KEPT", v)};
    copy.role = Backward();
    ir::StreamHints hints;
    hints.marks.push_back(next_mark_++);
    if (after >= 0) hints.after.push_back(after);
    copy.hints = std::make_shared<const ir::StreamHints>(std::move(hints));
    made_.push_back(std::move(copy));
    return made_.back().outputs[0][0];
  }

  VarId Add(const std::string& name, VarId like) {
    const ir::Var var = program_->vars[like];
    const VarId made = shared_.AddVar(name, 0, var);
    again_.resize(program_->vars.size(), kNoVar);
    bytes_.resize(program_->vars.size());
    bytes_[made] = like < step_.bytes.size() ? step_.bytes[like] : 0;
    return made;
  }

  // A mark of the operator that was emitted last; -1: none of the backward part was.
  int64_t MarkLast() {
    if (made_.size() <= step_.backward) return -1;
    Op& op = made_.back();
    ir::StreamHints hints = op.hints != nullptr ? *op.hints : ir::StreamHints();
    if (hints.marks.empty()) hints.marks.push_back(next_mark_++);
    const int64_t mark = hints.marks[0];
    op.hints = std::make_shared<const ir::StreamHints>(std::move(hints));
    return mark;
  }

  static std::shared_ptr<const ir::OpRole> Backward() {
    return std::make_shared<const ir::OpRole>(ir::OpRole{ir::OpRole::kBackward, {}});
  }

  // The most bytes of temporaries alive at an operator.
  size_t Peak() const {
    std::vector<int> last(program_->vars.size(), -1);
    for (size_t k = 0; k < made_.size(); ++k) {
      EachRead(made_[k], [&](VarId v) { last[v] = static_cast<int>(k); });
      EachWritten(made_[k], [&](VarId v) { last[v] = std::max(last[v], static_cast<int>(k)); });
    }
    std::vector<size_t> ends(made_.size());
    std::vector<bool> alive(program_->vars.size());
    size_t now = 0, most = 0;
    for (size_t k = 0; k < made_.size(); ++k) {
      EachWritten(made_[k], [&](VarId v) {
        if (alive[v] || program_->vars[v].persistable) return;
        alive[v] = true;
        now += bytes_[v];
        ends[static_cast<size_t>(last[v])] += bytes_[v];
      });
      most = std::max(most, now);
      now -= ends[k];
    }
    return most;
  }

  const Step& step_;
  const std::vector<bool>& dropped_;
  std::shared_ptr<ir::Program> program_;
  Shared shared_;
  std::vector<VarId> again_;  // by variable: where it is made again
  std::vector<size_t> bytes_;
  std::vector<Op> made_;
  int64_t next_mark_ = 0;
  StepWay way_;
};

// Values to drop if the forward part is cut into segments of about the same bytes of values that
// the backward part reads: those that cross no cut. The last segment is not computed again, since
// the backward part begins with it.
std::vector<bool> BySegments(const Step& step, int segments) {
  std::vector<size_t> kept(step.backward);
  size_t all = 0;
  for (VarId v = 0; v < step.writer.size(); ++v)
    if (step.read_later[v] && step.CanDrop(v)) {
      kept[static_cast<size_t>(step.writer[v])] += step.bytes[v];
      all += step.bytes[v];
    }
  std::vector<int> segment(step.backward);
  size_t before = 0;
  for (size_t k = 0; k < step.backward; ++k) {
    before += kept[k];
    segment[k] =
        all == 0 ? 0
                 : static_cast<int>(std::min<size_t>(static_cast<size_t>(segments) - 1,
                                                     (before - std::min(before, kept[k] / 2 + 1)) *
                                                         static_cast<size_t>(segments) / all));
  }
  std::vector<bool> dropped(step.writer.size());
  for (VarId v = 0; v < dropped.size(); ++v) {
    if (!step.CanDrop(v)) continue;
    const int from = segment[static_cast<size_t>(step.writer[v])];
    const int to =
        step.last_forward[v] < 0 ? from : segment[static_cast<size_t>(step.last_forward[v])];
    dropped[v] = from == to && from < segments - 1;
  }
  return dropped;
}

// Values to drop: of those that the backward part reads, the share of the bytes that costs least
// time for its size.
std::vector<bool> ByCost(const Step& step, double share) {
  std::vector<std::pair<double, VarId>> order;
  size_t all = 0;
  for (VarId v = 0; v < step.writer.size(); ++v) {
    if (!step.read_later[v] || !step.CanDrop(v) || step.bytes[v] == 0) continue;
    order.emplace_back(
        step.cost[static_cast<size_t>(step.writer[v])] / static_cast<double>(step.bytes[v]), v);
    all += step.bytes[v];
  }
  std::sort(order.begin(), order.end());
  std::vector<bool> dropped(step.writer.size());
  double sum = 0;
  for (const auto& [price, v] : order) {
    sum += static_cast<double>(step.bytes[v]);
    if (sum > share * static_cast<double>(all) && sum > static_cast<double>(step.bytes[v])) break;
    dropped[v] = true;
  }
  // What only such values are made of is made again with them.
  for (VarId v = 0; v < dropped.size(); ++v)
    if (step.CanDrop(v) && !step.read_later[v]) dropped[v] = true;
  return dropped;
}

}  // namespace

std::vector<StepWay> WaysToRun(const Program& program, const ValueCosts& costs) {
  const Step step(program.ir(), costs);
  std::vector<StepWay> ways;
  const auto add = [&](const std::vector<bool>& dropped) {
    StepWay way = Rewriter(step, dropped).Run();
    if (way.again > 0 || ways.empty()) ways.push_back(std::move(way));
  };
  add(std::vector<bool>(step.writer.size()));
  ways[0].program = program;
  for (const double share : {0.2, 0.35, 0.5, 0.65, 0.8, 1.0}) add(ByCost(step, share));
  for (const int segments : {2, 3, 4, 5, 6, 8, 10, 13, 16, 24, 32, 64})
    add(BySegments(step, segments));
  std::stable_sort(ways.begin() + 1, ways.end(),
                   [](const StepWay& a, const StepWay& b) { return a.cost_ns < b.cost_ns; });
  std::vector<StepWay> better;
  for (StepWay& way : ways)
    if (better.empty() || way.peak_bytes < better.back().peak_bytes)
      better.push_back(std::move(way));
  return better;
}

Trial WithoutUpdates(const Program& step) {
  auto program = std::make_shared<ir::Program>(step.ir());
  Shared shared(program.get());
  Trial trial;
  std::set<std::string> written;
  std::vector<Op> ops;
  for (Op& op : program->blocks[0].ops) {
    bool updates = false;
    EachWritten(op, [&](VarId v) { updates = updates || program->vars[v].persistable; });
    if (!updates || !IsBackward(op)) {
      EachWritten(op, [&](VarId v) {
        if (program->vars[v].persistable) written.insert(program->vars[v].name);
      });
      ops.push_back(std::move(op));
      continue;
    }
    std::vector<VarId> gradients;
    EachRead(op, [&](VarId v) {
      const ir::Var& var = program->vars[v];
      if (!var.persistable && var.kind == ir::VarKind::kTensor) gradients.push_back(v);
    });
    for (const VarId gradient : gradients) {
      Op sum = ir::MakeOp(*FindOp("reduce_sum"));
      sum.inputs[0] = {gradient};
      sum.attrs[static_cast<size_t>(sum.def->FindAttr("reduce_all"))] = true;
      ir::Var like = program->vars[gradient];
      like.shape = Shape::Unknown();
      sum.outputs[0] = {shared.AddVar(program->vars[gradient].name + "@SUM", 0, like)};
      sum.role = op.role;
      trial.fetches.push_back(program->vars[sum.outputs[0][0]].name);
      ops.push_back(std::move(sum));
    }
  }
  program->blocks[0].ops = std::move(ops);
  trial.written.assign(written.begin(), written.end());
  trial.program = Program(std::shared_ptr<const ir::Program>(std::move(program)));
  return trial;
}

}  // namespace heddle::gradient
