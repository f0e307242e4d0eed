#include "executor/find_culprit.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/lock_or_leave.h"
#include "core/op_traits.h"
#include "heddle/generator.h"

namespace heddle::internal {
namespace {

using ir::kNoVar;
using ir::VarId;

template <typename Fn>
void ForVars(const std::vector<std::vector<VarId>>& slots, Fn&& fn) {
  for (const auto& slot : slots)
    for (VarId v : slot)
      if (v != kNoVar) fn(v);
}

// Collects the operator's blocks and all blocks inside them.
void AddBlocks(const ir::Program& p, const ir::Op& op, std::vector<int>* blocks) {
  for (int sub : op.SubBlocks()) {
    if (std::find(blocks->begin(), blocks->end(), sub) != blocks->end()) continue;
    blocks->push_back(sub);
    for (const ir::Op& inner : p.blocks[sub].ops) AddBlocks(p, inner, blocks);
  }
}

std::vector<int> BlocksOf(const ir::Program& p, const ir::Op& op) {
  std::vector<int> blocks;
  AddBlocks(p, op, &blocks);
  return blocks;
}

struct Place {
  int block = -1;
  size_t op = 0;
};

class CulpritSearch {
 public:
  CulpritSearch(const ir::Program& file, const ir::Program& ran, const OpLocation& at)
      : file_(file), ran_(ran), at_(at) {
    for (const ir::Var& var : file_.vars) names_.insert(var.name);
    output_ = FileName(at_.output);
  }

  // Finds the file's operator that writes the failed one's output. False: the failed operator is
  // itself the file's, or its output is no variable of the file.
  bool FindTarget() {
    const ir::Op* failed = Failed();
    if (failed == nullptr) return false;
    if (static_cast<size_t>(at_.block) < file_.blocks.size()) FindWriter(at_.block);
    for (size_t b = 0; b < file_.blocks.size() && target_.block < 0; ++b)
      FindWriter(static_cast<int>(b));
    return target_.block >= 0 && !IsSame(*failed, file_.blocks[target_.block].ops[target_.op]);
  }

  // Finds the file's operators from which the failed one was made: those that its output depends
  // on, back to variables that other operators of the optimised program write.
  void FindParts() {
    std::unordered_set<std::string> visible;
    const ir::Op* failed = Failed();
    for (const ir::Op& op : ran_.blocks[at_.block].ops)
      if (&op != failed)
        ForVars(op.outputs, [&](VarId v) { visible.insert(FileName(ran_.vars[v].name)); });
    const auto& ops = file_.blocks[target_.block].ops;
    std::vector<bool> needed(file_.vars.size(), false);
    const auto add = [&](size_t i) {
      parts_.push_back(i);
      ForVars(ops[i].inputs, [&](VarId v) {
        if (visible.count(file_.vars[v].name) == 0) needed[v] = true;
      });
    };
    add(target_.op);
    for (size_t i = target_.op; i-- > 0;) {
      bool leads = false;
      ForVars(ops[i].outputs, [&](VarId v) { leads = leads || needed[v]; });
      if (leads) add(i);
    }
    std::reverse(parts_.begin(), parts_.end());
  }

  // The file's program up to the target, without operators that the target does not depend on.
  std::shared_ptr<ir::Program> MakeProgram() {
    auto program = std::make_shared<ir::Program>(file_);
    auto& ops = program->blocks[0].ops;
    const size_t last = OutermostOf(target_);
    const bool shares = SharesStorages();
    std::vector<bool> kept(ops.size(), false), needed(file_.vars.size(), false);
    for (size_t i = last + 1; i-- > 0;) {
      // An operator that draws random numbers is kept, since later ones would draw other numbers
      // without it. If variables share storage, a write to one changes the others, which operands
      // do not show: then every operator without side effects is kept.
      kept[i] = i == last || DrawsRandom(ops[i]) || (shares && !ops[i].def->has(kSideEffect));
      ForVars(ops[i].outputs, [&](VarId v) { kept[i] = kept[i] || needed[v]; });
      if (!kept[i]) continue;
      ForVars(ops[i].inputs, [&](VarId v) { needed[v] = true; });
      for (int b : BlocksOf(file_, ops[i]))
        for (const ir::Op& inner : file_.blocks[b].ops)
          ForVars(inner.inputs, [&](VarId v) { needed[v] = true; });
    }
    MarkParts();
    size_t to = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!kept[i]) continue;
      if (to != i) ops[to] = std::move(ops[i]);
      ++to;
    }
    ops.resize(to);
    program->fetches.clear();
    program->hash += 1 + last;  // distinguishes it from the file's program
    return program;
  }

  // The operators found by FindParts, in MakeProgram's program; valid after MakeProgram.
  const CheckedOps& checked() const { return checked_; }

  std::string PartsText() const {
    std::string text;
    for (size_t i : parts_) {
      const OpLocation at = file_.Locate(target_.block, file_.blocks[target_.block].ops[i]);
      text += StrCat(text.empty() ? "" : ", ", at.op, " (", at.op_type, " -> ", at.output, ")");
    }
    return text;
  }

 private:
  // The file's variable behind a variable of a pass. A pass names a variable that holds the same
  // value in another layout or type after it, with a suffix that begins with '.' or '@'.
  std::string FileName(const std::string& name) const {
    std::string known = name;
    while (!known.empty() && names_.count(known) == 0) {
      const size_t end = known.find_last_of(".@");
      known.resize(end == std::string::npos ? 0 : end);
    }
    return known.empty() ? name : known;
  }

  const ir::Op* Failed() const {
    if (at_.block < 0 || static_cast<size_t>(at_.block) >= ran_.blocks.size()) return nullptr;
    for (const ir::Op& op : ran_.blocks[at_.block].ops) {
      if (op.index != at_.op || op.type() != at_.op_type) continue;
      if (ran_.Locate(at_.block, op).output == at_.output) return &op;
    }
    return nullptr;
  }

  // Finds the operator of the block that writes the failed one's output. If the failed operator has
  // a place in the file, it is the first writer from there on, since the place may be that of any
  // operator it was made from; else the last writer.
  void FindWriter(int block) {
    const auto& ops = file_.blocks[block].ops;
    const bool placed = block == at_.block && at_.op >= 0;
    for (size_t i = ops.size(); i-- > 0;) {
      if (placed && target_.block >= 0 && ops[i].index < at_.op) return;
      bool writes = false;
      ForVars(ops[i].outputs, [&](VarId v) { writes = writes || file_.vars[v].name == output_; });
      if (!writes) continue;
      target_ = {block, i};
      if (!placed) return;
    }
  }

  bool SharesStorages() const {
    for (const ir::Block& block : file_.blocks)
      for (const ir::Op& op : block.ops)
        if (op.def->traits() & (kSharesStorage | kSharesParts)) return true;
    return false;
  }

  bool DrawsRandom(const ir::Op& op) const {
    const auto draws = [](const ir::Op& o) { return o.def->has(kRandom); };
    const std::vector<int> blocks = BlocksOf(file_, op);
    return draws(op) || std::any_of(blocks.begin(), blocks.end(), [&](int b) {
             const auto& ops = file_.blocks[b].ops;
             return std::any_of(ops.begin(), ops.end(), draws);
           });
  }

  std::vector<std::string> InputNames(const ir::Program& p, const ir::Op& op) const {
    std::vector<std::string> names;
    ForVars(op.inputs, [&](VarId v) { names.push_back(p.vars[v].name); });
    return names;
  }

  bool IsSame(const ir::Op& ran, const ir::Op& file) const {
    return ran.def == file.def && InputNames(ran_, ran) == InputNames(file_, file);
  }

  // The operator of block 0 that is the place, or whose blocks contain it.
  size_t OutermostOf(const Place& place) const {
    if (place.block == 0) return place.op;
    const auto& ops = file_.blocks[0].ops;
    for (size_t i = ops.size(); i-- > 0;) {
      const std::vector<int> blocks = BlocksOf(file_, ops[i]);
      if (std::find(blocks.begin(), blocks.end(), place.block) != blocks.end()) return i;
    }
    return ops.empty() ? 0 : ops.size() - 1;
  }

  void Mark(int block, const ir::Op& op) {
    std::vector<bool>& marks = checked_[block];
    const auto at = static_cast<size_t>(std::max(op.index, 0));
    if (at >= marks.size()) marks.resize(at + 1, false);
    marks[at] = true;
  }

  void MarkParts() {
    checked_.resize(file_.blocks.size());
    for (size_t i : parts_) {
      const ir::Op& op = file_.blocks[target_.block].ops[i];
      Mark(target_.block, op);
      for (int b : BlocksOf(file_, op))
        for (const ir::Op& inner : file_.blocks[b].ops) Mark(b, inner);
    }
  }

  const ir::Program& file_;
  const ir::Program& ran_;
  const OpLocation& at_;
  std::unordered_set<std::string_view> names_;  // of the file's variables
  std::string output_;  // the output of the failed operator, by the file's name
  Place target_;
  std::vector<size_t> parts_;  // operators of the target's block, in its order
  CheckedOps checked_;
};

Value CopyOf(const Value& value) {
  Value copy = value;
  if (value.is_tensor()) copy.tensor() = value.tensor().Clone();
  if (value.is_rows()) copy.mutable_rows().value = value.rows().value.Clone();
  if (value.is_array())
    for (Tensor& t : copy.mutable_array()) t = t.Clone();
  return copy;
}

// A scope with the variables that the program names; the failed run may hold the write_mutex of the
// real one. Variables that the program writes are copied, the others shared; empty ones that it
// writes become variables of the run.
std::shared_ptr<Scope> PrivateScope(Scope& scope, ir::Program* program) {
  HeldMutex writes;
  if (!HeldMutexes::Has(scope.write_mutex())) writes = HoldOrLeave(scope.write_mutex());
  std::vector<bool> written(program->vars.size(), false);
  for (const ir::Block& block : program->blocks)
    for (const ir::Op& op : block.ops) ForVars(op.outputs, [&](VarId v) { written[v] = true; });
  auto own = std::make_shared<Scope>();
  for (size_t v = 0; v < program->vars.size(); ++v) {
    ir::Var& var = program->vars[v];
    const Value* value = scope.Find(var.name);
    if (value != nullptr && value->initialized())
      own->Set(var.name, written[v] && var.persistable ? CopyOf(*value) : *value);
    else if (written[v])
      var.persistable = false;
  }
  return own;
}

bool IsOfOperators(const Status& status) {
  return status.location() && status.code() != StatusCode::kCancelled &&
         status.code() != StatusCode::kDeadlineExceeded &&
         status.code() != StatusCode::kResourceExhausted;
}

// Runs the program and returns the status of the operator that failed, or kOk if none did.
Status RunAgain(RunResources& resources, const RunCall& call, std::shared_ptr<ir::Program> program,
                const CheckedOps& checked) {
  const CompiledImpl& c = call.compiled;
  std::shared_ptr<Scope> scope = PrivateScope(*c.scope, program.get());
  CompileOptions options;
  options.opt_level = 0;
  options.schedule = Schedule::kSerial;
  options.lean = c.options.lean;
  options.seed = c.options.seed + c.runs.load(std::memory_order_relaxed) - 1;
  HEDDLE_ASSIGN_OR_RETURN(
      const auto compiled,
      CompiledImpl::Make(c.executor, Program(std::move(program)), std::move(scope), options));
  RunOptions run;
  run.deadline = call.options.deadline;
  run.stop = call.options.stop;
  run.check_nan_inf = call.options.check_nan_inf;
  Generator generator;
  if (call.options.generator != nullptr) {
    generator = *call.options.generator;
    run.generator = &generator;
  }
  PlanService plans(resources, 1);  // no other run uses these
  RunMemory memory;
  std::vector<Value> out;
  return RunSession::Run(resources, plans, {*compiled, call.feeds, run, memory, &out, &checked});
}

}  // namespace

Status FindCulprit(RunResources& resources, const RunCall& call, const ir::Program& ran,
                   const Status& failure) try {
  if (call.compiled.options.opt_level == 0 || !IsOfOperators(failure)) return failure;
  auto file = call.compiled.Source();
  if (!file.ok()) return failure;
  CulpritSearch search(**file, ran, *failure.location());
  if (!search.FindTarget()) return failure;
  search.FindParts();
  std::shared_ptr<ir::Program> program = search.MakeProgram();
  const Status culprit = RunAgain(resources, call, std::move(program), search.checked());
  if (IsOfOperators(culprit)) return culprit;
  // If the deadline, a stop or a lack of memory ended the search, nothing was learned about the
  // operators.
  return Status(failure.code(),
                StrCat(failure.message(), "; made of the file's operators ", search.PartsText(),
                       culprit.ok() ? ", none of which fails by itself" : ""))
      .At(*failure.location());
} catch (...) {
  return failure;  // such as no memory for the search
}

}  // namespace heddle::internal
