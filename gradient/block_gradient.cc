#include "gradient/block_gradient.h"

#include <algorithm>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/programs/sub_block_slots.h"
#include "gradient/op_gradient.h"

namespace heddle::gradient {

using ir::kNoVar;
using ir::Op;
using ir::Var;
using ir::VarId;
using ir::VarKind;

std::string PlaceOf(int block, const Op& op, size_t at) {
  const int index = op.index >= 0 ? op.index : static_cast<int>(at);
  return StrCat("operator ", op.type(), " (block ", block, ", operator ", index, ")");
}

Shared::Shared(ir::Program* p) : program(*p) {
  for (const Var& var : program.vars) names_.emplace(var.name, 1);
}

std::string Shared::NewName(const std::string& stem) {
  const auto [at, fresh] = names_.emplace(stem, 1);
  if (fresh) return stem;
  for (int& k = at->second;;) {
    std::string name = StrCat(stem, "@", ++k);
    if (names_.emplace(name, 1).second) return name;
  }
}

VarId Shared::AddVar(const std::string& stem, int block, const Var& like) {
  Var var;
  var.name = NewName(stem);
  var.block = block;
  var.kind = like.kind;
  var.dtype = like.dtype;
  var.shape = like.shape;
  var.lod_level = like.lod_level;
  return program.AddVar(std::move(var));
}

int Shared::AddBlock(int parent) {
  ir::Block block;
  block.id = static_cast<int>(program.blocks.size());
  block.parent = parent;
  program.blocks.push_back(std::move(block));
  return program.blocks.back().id;
}

void Shared::Rename(VarId v, const std::string& stem) { program.vars[v].name = NewName(stem); }

void Shared::InferOutputs(const Op& op) {
  const auto known = [&](VarId v) {
    const Var& var = program.vars[v];
    return var.kind != VarKind::kTensor || (var.dtype != DType::kUnknown && var.shape.known_rank());
  };
  bool all = true;
  for (const auto& slot : op.outputs)
    for (const VarId v : slot) all = all && (v == kNoVar || known(v));
  if (all || op.def->infer_shape() == nullptr) return;
  std::deque<passes::Fact> facts;
  std::vector<passes::FactInference::Operand> operands;
  for (const auto& slot : op.inputs)
    for (const VarId v : slot) {
      if (v == kNoVar) {
        operands.push_back({});
        continue;
      }
      const Var& var = program.vars[v];
      facts.push_back({var.dtype, var.shape});
      operands.push_back({.fact = &facts.back(), .is_array = var.kind == VarKind::kArray});
    }
  std::vector<std::optional<passes::Fact>> outputs;
  if (!inference_.Infer(op, operands, &outputs)) return;
  size_t k = 0;
  for (const auto& slot : op.outputs)
    for (const VarId v : slot) {
      const size_t at = k++;
      if (v == kNoVar || known(v) || at >= outputs.size() || !outputs[at]) continue;
      Var& var = program.vars[v];
      if (var.dtype == DType::kUnknown) var.dtype = outputs[at]->dtype;
      if (!var.shape.known_rank()) var.shape = outputs[at]->shape;
    }
}

BlockGradient::BlockGradient(Shared& shared, std::vector<Op>* ops, int block, int into, bool stops,
                             int hold)
    : shared_(shared),
      ops_(ops),
      block_(block),
      into_(into),
      stops_(stops),
      hold_(hold < 0 ? block : hold) {
  Number();
}

BlockGradient::ValueId BlockGradient::Current(VarId v) {
  const auto [at, fresh] = current_.emplace(v, static_cast<ValueId>(values_.size()));
  if (fresh) {
    values_.emplace_back();
    values_.back().var = v;
    values_.back().stopped = stops_ && shared_.IsMarked(program().vars[v].name);
    first_.emplace(v, at->second);
  }
  return at->second;
}

BlockGradient::ValueId BlockGradient::Write(VarId v, int at) {
  const Var& var = program().vars[v];
  // An array's elements are written one by one: it stays one value.
  if (var.kind == VarKind::kArray) return Current(v);
  const auto id = static_cast<ValueId>(values_.size());
  if (const auto found = current_.find(v); found != current_.end()) {
    values_[found->second].overwritten = at;
    values_[found->second].last = false;
    found->second = id;
  } else {
    current_.emplace(v, id);
  }
  values_.emplace_back();
  values_.back().var = v;
  values_.back().producer = at;
  values_.back().stopped = stops_ && Stops(var.name, at);
  return id;
}

// Paddle marks every result of marked operands, too. Such a mark says nothing of its own, so that
// what is wanted in front of it is differentiated.
bool BlockGradient::Stops(const std::string& name, int at) const {
  if (shared_.no_grad.contains(name)) return true;
  if (!shared_.stopped.contains(name)) return false;
  const Op& op = (*ops_)[static_cast<size_t>(at)];
  for (const auto& slot : op.inputs)
    for (const VarId v : slot)
      if (v != kNoVar && !shared_.IsMarked(shared_.program.vars[v].name)) {
        const DType dtype = shared_.program.vars[v].dtype;
        if (IsFloat(dtype) || IsComplex(dtype)) return true;
      }
  return false;
}

// Variables of outer blocks that the operators of an operator's sub-blocks read and write.
void BlockGradient::FindHidden(const Op& op, At* at) {
  std::vector<int> todo = op.SubBlocks();
  std::unordered_set<int> inner(todo.begin(), todo.end());
  std::vector<VarId> reads, writes;
  while (!todo.empty()) {
    const int b = todo.back();
    todo.pop_back();
    for (const Op& each : program().blocks[static_cast<size_t>(b)].ops) {
      for (const int sub : each.SubBlocks())
        if (inner.insert(sub).second) todo.push_back(sub);
      for (size_t s = 0; s < each.inputs.size(); ++s)
        reads.insert(reads.end(), each.inputs[s].begin(), each.inputs[s].end());
      for (const auto& slot : each.outputs) writes.insert(writes.end(), slot.begin(), slot.end());
    }
  }
  const auto outer = [&](VarId v) {
    return v != kNoVar && !inner.contains(program().vars[v].block);
  };
  std::unordered_set<VarId> seen;
  for (const VarId v : reads)
    if (outer(v) && seen.insert(v).second) at->reads.push_back(Current(v));
  seen.clear();
  for (const auto& slot : op.outputs)
    for (const VarId v : slot) seen.insert(v);
  const int k = static_cast<int>(at - at_.data());
  for (const VarId v : writes)
    if (outer(v) && seen.insert(v).second) at->writes.push_back(Write(v, k));
}

void BlockGradient::Number() {
  at_.resize(ops_->size());
  for (size_t k = 0; k < ops_->size(); ++k) {
    const Op& op = (*ops_)[k];
    At& at = at_[k];
    const bool blocks = op.def->has(kControlFlow);
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      at.in.emplace_back();
      const bool skip = s < op.def->inputs().size() && ir::IsSubBlockSlot(op.def->inputs()[s]);
      for (const VarId v : op.inputs[s])
        at.in.back().push_back(v == kNoVar || skip ? kNoValue : Current(v));
    }
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      at.out.emplace_back();
      const bool skip = ir::IsSubBlockSlot(op.def->outputs()[s]);
      for (const VarId v : op.outputs[s]) {
        if (v != kNoVar && !skip && blocks) Current(v);  // it may stay as it was
        at.out.back().push_back(kNoValue);               // written below, behind all reads
      }
    }
    if (blocks) FindHidden(op, &at);
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      if (ir::IsSubBlockSlot(op.def->outputs()[s])) continue;
      for (size_t i = 0; i < op.outputs[s].size(); ++i)
        if (const VarId v = op.outputs[s][i]; v != kNoVar)
          at.out[s][i] = Write(v, static_cast<int>(k));
    }
  }
}

BlockGradient::ValueId BlockGradient::First(VarId v) {
  Current(v);
  const auto found = first_.find(v);
  return found == first_.end() ? current_.at(v) : found->second;
}
BlockGradient::ValueId BlockGradient::Last(VarId v) { return Current(v); }

bool BlockGradient::Flows(ValueId v) const {
  if (v == kNoValue) return false;
  const Var& var = shared_.program.vars[values_[v].var];
  if (var.kind != VarKind::kTensor && var.kind != VarKind::kArray && var.kind != VarKind::kRows)
    return false;
  return var.dtype == DType::kUnknown || IsFloat(var.dtype) || IsComplex(var.dtype);
}

void BlockGradient::Trace() {
  for (Value& v : values_)
    if (v.wanted) v.from_wanted = true;
  // Twice, since an element of an array may be read before the operator that writes it.
  for (int round = 0; round < 2; ++round)
    for (size_t k = 0; k < ops_->size(); ++k) {
      const Op& op = (*ops_)[k];
      const Rule& rule = RuleOf(*op.def);
      bool any = false;
      for (size_t s = 0; s < at_[k].in.size(); ++s) {
        if (s < op.def->inputs().size() && rule.kind != Rule::Kind::kMissing &&
            !Gives(*op.def, rule, static_cast<int>(s)))
          continue;
        for (const ValueId v : at_[k].in[s]) any = any || (Flows(v) && values_[v].from_wanted);
      }
      for (const ValueId v : at_[k].reads) any = any || (Flows(v) && values_[v].from_wanted);
      if (op.def->has(kControlFlow)) {
        const auto keep = [&](ValueId v) {
          if (v == kNoValue) return;
          const ValueId before = Before(k, values_[v].var);
          if (before != kNoValue && values_[before].from_wanted && !values_[v].stopped)
            values_[v].from_wanted = true;
        };
        for (const auto& slot : at_[k].out)
          for (const ValueId v : slot) keep(v);
        for (const ValueId v : at_[k].writes) keep(v);
      }
      if (!any || rule.kind == Rule::Kind::kNone) continue;
      const auto mark = [&](ValueId v) {
        if (!Flows(v)) return;
        values_[v].from_wanted = values_[v].from_wanted || !values_[v].stopped;
      };
      for (size_t s = 0; s < at_[k].out.size(); ++s)
        if (rule.kind == Rule::Kind::kMissing || Takes(*op.def, rule, static_cast<int>(s)))
          for (const ValueId v : at_[k].out[s]) mark(v);
      for (const ValueId v : at_[k].writes) mark(v);
    }
  for (Value& v : values_) {
    v.needed = v.expected;
    v.reached = v.expected && v.from_wanted;
  }
  for (int round = 0; round < 2; ++round)
    for (size_t k = ops_->size(); k-- > 0;) {
      const Op& op = (*ops_)[k];
      const Rule& rule = RuleOf(*op.def);
      bool needed = false, reached = false;
      const auto look = [&](ValueId v, bool takes) {
        if (v == kNoValue) return;
        needed = needed || values_[v].needed;
        reached = reached || (takes && values_[v].reached && !values_[v].stopped);
      };
      for (size_t s = 0; s < at_[k].out.size(); ++s)
        for (const ValueId v : at_[k].out[s])
          look(v, rule.kind == Rule::Kind::kMissing || Takes(*op.def, rule, static_cast<int>(s)));
      for (const ValueId v : at_[k].writes) look(v, true);
      at_[k].active = reached && rule.kind != Rule::Kind::kNone;
      const auto mark = [&](ValueId v, bool gives) {
        if (v == kNoValue) return;
        values_[v].needed = values_[v].needed || needed;
        if (reached && gives && Flows(v) && values_[v].from_wanted) values_[v].reached = true;
      };
      for (size_t s = 0; s < at_[k].in.size(); ++s)
        for (const ValueId v : at_[k].in[s])
          mark(v,
               s >= op.def->inputs().size() || rule.kind == Rule::Kind::kMissing ||
                   (rule.kind != Rule::Kind::kNone && Gives(*op.def, rule, static_cast<int>(s))));
      for (const ValueId v : at_[k].reads) mark(v, rule.kind != Rule::Kind::kNone);
      // What an operator with blocks may leave as it was.
      if (op.def->has(kControlFlow)) {
        const auto before = [&](ValueId v) {
          if (v == kNoValue || !values_[v].needed) return;
          const ValueId b = Before(k, values_[v].var);
          if (b == kNoValue) return;
          values_[b].needed = true;
          if (values_[v].reached && values_[b].from_wanted) values_[b].reached = true;
        };
        for (const auto& slot : at_[k].out)
          for (const ValueId v : slot) before(v);
        for (const ValueId v : at_[k].writes) before(v);
      }
    }
}

BlockGradient::ValueId BlockGradient::Before(size_t at, VarId v) const {
  for (size_t k = 0; k < values_.size(); ++k)
    if (values_[k].var == v && values_[k].overwritten == static_cast<int>(at))
      return static_cast<ValueId>(k);
  return kNoValue;
}

std::string BlockGradient::PathTo(size_t from) const {
  // From the operator on towards a loss, by readers whose results a loss depends on.
  std::string path = (*ops_)[from].type();
  for (size_t k = from;;) {
    ValueId v = kNoValue;
    EachValue(k, true, [&](ValueId each) {
      if (values_[each].needed && (v == kNoValue || values_[each].expected)) v = each;
    });
    if (v == kNoValue) return "";
    path = StrCat("'", shared_.program.vars[values_[v].var].name, "' <- ", path);
    if (values_[v].expected) return "; path from the loss: " + path;
    size_t next = k + 1;
    for (; next < ops_->size(); ++next) {
      bool reads = false, needed = false;
      EachValue(next, false, [&](ValueId each) { reads = reads || each == v; });
      EachValue(next, true, [&](ValueId each) { needed = needed || values_[each].needed; });
      if (reads && needed) break;
    }
    if (next == ops_->size()) return "";
    k = next;
    path = StrCat((*ops_)[k].type(), " <- ", path);
  }
}

std::string BlockGradient::Obstacles(ValueId target) const {
  // What depends on the value, forward; what leads to a seed is `needed`. An obstacle is an
  // operator that a gradient enters from the loss, or would, and that does not pass it on.
  std::vector<bool> depends(values_.size());
  depends[target] = true;
  std::vector<bool> on_path(ops_->size());
  for (size_t k = 0; k < ops_->size(); ++k) {
    bool any = false, needed = false;
    EachValue(k, false, [&](ValueId v) { any = any || depends[v]; });
    if (!any) continue;
    EachValue(k, true, [&](ValueId v) {
      depends[v] = true;
      needed = needed || values_[v].needed;
    });
    on_path[k] = needed;
  }
  std::string text;
  for (size_t k = 0; k < ops_->size(); ++k) {
    if (!on_path[k]) continue;
    const Op& op = (*ops_)[k];
    const Rule& rule = RuleOf(*op.def);
    // It passes nothing on where no slot that depends on the value is given a gradient.
    bool gives = false, takes = false;
    for (size_t s = 0; s < op.def->inputs().size(); ++s)
      for (const ValueId v : at_[k].in[s])
        if (v != kNoValue && depends[v] && Flows(v) && Gives(*op.def, rule, static_cast<int>(s)))
          gives = true;
    for (size_t s = 0; s < at_[k].out.size(); ++s)
      for (const ValueId v : at_[k].out[s])
        if (v != kNoValue && values_[v].needed && Flows(v) && !values_[v].stopped &&
            Takes(*op.def, rule, static_cast<int>(s)))
          takes = true;
    const bool blocks = op.def->has(kControlFlow);
    if (rule.kind != Rule::Kind::kNone && rule.kind != Rule::Kind::kMissing && !blocks && gives &&
        takes)
      continue;
    if (blocks && rule.kind == Rule::Kind::kComposed) continue;
    std::string why = std::string(rule.reason);
    if (rule.kind == Rule::Kind::kMissing) why = "heddle has no gradient for it";
    if (why.empty())
      why = gives ? "its gradient does not start at this output"
                  : "it has no gradient for this input";
    text += StrCat("\n  ", PlaceOf(block_, op, k), ": ", why);
    text += PathTo(k);
  }
  return text;
}

VarId BlockGradient::Held(ValueId v) {
  if (v == kNoValue) return kNoVar;
  Value& value = values_[v];
  const Var& var = program().vars[value.var];
  if (value.overwritten < 0 || var.kind != VarKind::kTensor) return value.var;
  if (value.saved == kNoVar) {
    const Var like = var;
    value.saved = shared_.AddVar(StrCat(like.name, "@SAVED"), hold_, like);
    Op copy = ir::MakeOp(*FindOp("assign"));
    copy.inputs[0] = {value.var};
    copy.outputs[0] = {value.saved};
    inserted_.emplace_back(value.overwritten, std::move(copy));
  }
  return values_[v].saved;
}

VarId BlockGradient::AddOutput(size_t at, size_t slot, size_t i) {
  Op& op = (*ops_)[at];
  auto& vars = op.outputs[slot];
  if (vars.size() <= i) vars.resize(i + 1, kNoVar);
  if (vars[i] != kNoVar) return vars[i];
  VarId first = kNoVar;
  for (const auto& s : op.outputs)
    if (first == kNoVar && !s.empty()) first = s[0];
  const std::string stem = first == kNoVar ? op.type() : program().vars[first].name;
  Var like;
  like.shape = Shape::Unknown();
  vars[i] = shared_.AddVar(StrCat(stem, "@", op.def->outputs()[slot].name), hold_, like);
  auto& values = at_[at].out[slot];
  values.resize(vars.size(), kNoValue);
  values[i] = Write(vars[i], static_cast<int>(at));
  shared_.InferOutputs(op);
  return vars[i];
}

void BlockGradient::AddPart(ValueId v, VarId gradient) {
  if (v == kNoValue || gradient == kNoVar) return;
  values_[v].parts.push_back(gradient);
}

void BlockGradient::Emit(Op op) {
  shared_.InferOutputs(op);
  emitted_.push_back(std::move(op));
}

// Sums the parts of the gradient, and gives it its name.
void BlockGradient::Total(ValueId id) {
  Value& value = values_[id];
  if (value.total != kNoVar || value.parts.empty()) return;
  const Var var = program().vars[value.var];
  VarId total = value.parts[0];
  if (value.parts.size() > 1) {
    Op sum = ir::MakeOp(*FindOp("sum"));
    sum.inputs[0] = value.parts;
    Var like = var;
    bool rows = true;
    for (size_t k = 0; k < value.parts.size(); ++k) {
      Var& part = program().vars[value.parts[k]];
      rows = rows && part.kind == VarKind::kRows;
      if (named_.insert(value.parts[k]).second)
        shared_.Rename(value.parts[k], StrCat(var.name, "@GRAD@RENAME@block", into_, "@", k));
    }
    like.kind = rows ? VarKind::kRows : VarKind::kTensor;
    total = shared_.AddVar(StrCat(var.name, "@GRAD@SUM"), into_, like);
    sum.outputs[0] = {total};
    Emit(std::move(sum));
  }
  Value& again = values_[id];
  if (named_.insert(total).second) {
    // Of several versions of a variable, the wanted one has the name, or else the last one.
    // Blocks, and what operators mean in terms of others, are differentiated beside the program:
    // their values have no such names.
    const bool own = stops_ && block_ == 0;
    const bool plain = again.wanted || (again.last && !wanted_.contains(again.var));
    shared_.Rename(total, StrCat(var.name, !own    ? "@GRAD@PART"
                                           : plain ? "@GRAD"
                                                   : "@GRAD@VERSION"));
  } else if (again.wanted) {
    Op copy = ir::MakeOp(*FindOp("assign"));
    copy.inputs[0] = {total};
    total = shared_.AddVar(StrCat(var.name, stops_ && block_ == 0 ? "@GRAD" : "@GRAD@PART"), into_,
                           var);
    named_.insert(total);
    copy.outputs[0] = {total};
    Emit(std::move(copy));
  }
  again.total = total;
  again.flows = again.stopped ? kNoVar : total;
}

Status BlockGradient::Run() {
  for (size_t k = ops_->size(); k-- > 0;) {
    At& at = at_[k];
    if (!at.active) continue;
    bool any = false;
    const auto total = [&](ValueId v) {
      if (v == kNoValue || program().vars[values_[v].var].kind == VarKind::kArray) {
        any = any || (v != kNoValue && values_[v].reached);
        return;
      }
      Total(v);
      any = any || values_[v].flows != kNoVar;
    };
    for (const auto& slot : at.out)
      for (const ValueId v : slot) total(v);
    for (const ValueId v : at.writes) total(v);
    if (!any) continue;
    const Op op = (*ops_)[k];
    const Rule& rule = RuleOf(*op.def);
    if (rule.kind == Rule::Kind::kMissing) {
      shared_.problems.push_back(StrCat(PlaceOf(block_, op, k), ": heddle has no gradient for it"));
      continue;
    }
    OpGradient g(*this, k);
    const size_t before = shared_.problems.size();
    const Status status = rule.kind == Rule::Kind::kNamed ? EmitNamed(g, rule) : rule.compose(g);
    if (!status.ok() && shared_.problems.size() == before)
      shared_.problems.push_back(StrCat(PlaceOf(block_, op, k), ": ", status.message(), PathTo(k)));
  }
  for (ValueId v = 0; v < values_.size(); ++v) {
    if (!values_[v].wanted || !values_[v].reached) continue;
    if (program().vars[values_[v].var].kind == VarKind::kArray) continue;
    Total(v);
    if (values_[v].total != kNoVar) continue;
    // All that leads to it gives nothing, which means zero.
    Op zeros = ir::MakeOp(*FindOp("fill_zeros_like"));
    zeros.inputs[0] = {Held(v)};
    const Var like = program().vars[values_[v].var];
    values_[v].total = shared_.AddVar(StrCat(like.name, "@GRAD"), into_, like);
    zeros.outputs[0] = {values_[v].total};
    Emit(std::move(zeros));
  }
  return Status::Ok();
}

void BlockGradient::InsertCopies() {
  std::stable_sort(inserted_.begin(), inserted_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Op> all;
  size_t next = 0;
  for (size_t k = 0; k < ops_->size(); ++k) {
    for (; next < inserted_.size() && inserted_[next].first == static_cast<int>(k); ++next)
      all.push_back(std::move(inserted_[next].second));
    all.push_back(std::move((*ops_)[k]));
  }
  *ops_ = std::move(all);
  inserted_.clear();
}

}  // namespace heddle::gradient
