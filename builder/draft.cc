#include "builder/draft.h"

#include <algorithm>
#include <utility>

#include "builder/digest.h"
#include "core/error.h"
#include "core/op_registry.h"

namespace heddle::builder {
namespace {

template <typename Fn>
void EachOutput(const ir::Op& op, Fn&& fn) {
  size_t at = 0;
  for (const auto& slot : op.outputs)
    for (ir::VarId v : slot) fn(v, at++);
}

bool Same(const Known& a, const Known& b) {
  return a.dtype == b.dtype && a.ranked == b.ranked && (!a.ranked || a.at == b.at) &&
         a.value == b.value && a.sequences == b.sequences;
}

}  // namespace

Draft::Draft(std::string name) : builder(std::move(name)) {
  builder.ReserveBlocks(++blocks_);
  builder.AddBlock(-1, -1);
  names_ = {"feed", "fetch", "@EMPTY@", ""};  // files give them a special meaning
}

std::string Draft::FreshName(std::string_view stem) {
  std::string name;
  do {
    name = StrCat(std::string(stem), "_", next_name_++);
  } while (IsTaken(name));
  return name;
}

ir::VarId Draft::NewVar(ir::Var var, Known known) {
  names_.insert(var.name);
  known.kind = var.kind;
  var.dtype = known.dtype;
  const ir::VarId id = builder.AddVar(std::move(var));
  builder.SetType(id, known.dtype, known.shape());
  known_.push_back(std::move(known));
  declared_.push_back(false);
  return id;
}

bool Draft::IsVisible(ir::VarId v) const {
  const int home = var(v).block;
  return home == 0 || std::any_of(open_.begin(), open_.end(),
                                  [&](const Open& open) { return open.block == home; });
}

void Draft::Declare(ir::VarId v, Known known) {
  known.kind = known_[v].kind;
  declared_[v] = false;
  SetKnown(v, known);
  builder.SetType(v, known.dtype, known.shape());
  declared_[v] = true;
}

// The variable's declaration in the program must hold for all values that are written to it.
void Draft::SetKnown(ir::VarId v, const Known& known) {
  if (declared_[v]) return;
  if (!before_.empty() && v < before_.back().vars) before_.back().known.try_emplace(v, known_[v]);
  const bool first = !known_[v].ranked && known_[v].dtype == DType::kUnknown;
  const Known all = first ? known : Join(known_[v], known);
  const ir::VarKind kind = known_[v].kind;
  known_[v] = known;
  known_[v].kind = kind;
  known_[v].dtype = all.dtype;
  known_[v].value = nullptr;
  builder.SetType(v, all.dtype, all.shape());
}

Result<std::vector<Known>> Draft::Ask(const ir::Op& op) const {
  std::vector<const Known*> inputs;
  for (size_t s = 0; s < op.def->inputs().size(); ++s)
    for (ir::VarId v : op.inputs[s]) inputs.push_back(v == ir::kNoVar ? nullptr : &known_[v]);
  return Infer(op, inputs);
}

Status Draft::Here(const Status& status, std::string_view type) const {
  OpLocation at;
  at.block = block();
  at.op = static_cast<int>(builder.program().blocks[static_cast<size_t>(at.block)].ops.size());
  at.op_type = type;
  if (!place_.empty()) at.call_stack = "    " + place_ + "\n";
  return status.At(std::move(at));
}

int64_t Draft::MarkNext() {
  next_.marks.push_back(++last_mark_);
  return last_mark_;
}

void Draft::NextAfter(const std::vector<int64_t>& marks) {
  next_.after.insert(next_.after.end(), marks.begin(), marks.end());
}

ir::OpBuilder Draft::Copy(const ir::Op& op) {
  const auto& ops = builder.program().blocks[static_cast<size_t>(block())].ops;
  ir::OpBuilder made(builder, block(), static_cast<int>(ops.size()), op.type());
  const auto fill = [](const std::vector<ir::VarId>& vars, std::vector<ir::VarId>* slot) {
    if (slot != nullptr) *slot = vars;
  };
  const auto& in = op.def->inputs();
  const auto& out = op.def->outputs();
  for (size_t s = 0; s < in.size(); ++s)
    if (!op.inputs[s].empty())
      fill(op.inputs[s], made.Input(in[s].name, static_cast<int>(op.inputs[s].size())));
  for (size_t s = 0; s < out.size(); ++s)
    if (!op.outputs[s].empty())
      fill(op.outputs[s], made.Output(out[s].name, static_cast<int>(op.outputs[s].size())));
  for (size_t a = 0; a < op.attrs.size(); ++a) made.SetAttr(static_cast<int>(a), op.attrs[a]);
  for (size_t k = 0; k < op.var_attrs.size(); ++k)
    made.SetAttrFrom(op.var_attrs[k], op.inputs[in.size() + k]);
  if (!next_.marks.empty() || !next_.after.empty()) made.SetHints(next_);
  if (!place_.empty()) {
    const uint32_t begin = places_->size();
    places_->BeginStack();
    places_->Add(place_);
    made.SetCallStack({places_, begin, places_->size()});
  }
  return made;
}

Status Draft::Add(const ir::Op& op, const std::vector<Known>& written) {
  HEDDLE_RETURN_IF_ERROR(builder.AddOrRefuse(Copy(op)));
  next_ = {};
  EachOutput(op, [&](ir::VarId v, size_t at) {
    if (v != ir::kNoVar) SetKnown(v, written[at]);
  });
  return Status::Ok();
}

void Draft::BeginBlock(bool loop, ir::VarId condition) {
  const int parent = block();
  builder.ReserveBlocks(++blocks_);
  builder.AddBlock(parent, -1);
  open_.push_back({blocks_ - 1, loop, condition});
  Begin();
}

// Removes the newest Before. What changed since then has also changed since the outer block began,
// so the next Before gets its entries.
Draft::Before Draft::End() {
  Before ended = std::move(before_.back());
  before_.pop_back();
  if (before_.empty()) return ended;
  Before& outer = before_.back();
  for (const auto& [v, known] : ended.known)
    if (v < outer.vars) outer.known.try_emplace(v, known);
  return ended;
}

// The variables of outer blocks that the operators of `block` name, each once.
Draft::Uses Draft::UsesOf(int block) const {
  Uses uses;
  std::unordered_set<ir::VarId> read, written;
  const auto add = [&](const std::vector<ir::VarId>& vars, std::unordered_set<ir::VarId>* met,
                       std::vector<ir::VarId>* list) {
    for (ir::VarId v : vars)
      if (v != ir::kNoVar && var(v).block != block && met->insert(v).second) list->push_back(v);
  };
  for (const ir::Op& op : builder.program().blocks[static_cast<size_t>(block)].ops) {
    for (const auto& slot : op.inputs) add(slot, &read, &uses.read);
    for (const auto& slot : op.outputs) add(slot, &written, &uses.written);
  }
  return uses;
}

Status Draft::EndBlock() {
  Open ended = std::move(open_.back());
  open_.pop_back();
  const char* type = ended.loop ? "while" : "conditional_block";
  Uses uses = UsesOf(ended.block);
  ended_[ended.block] = {ended.loop, uses.written, {}};
  if (Status status = Settle(ended.block, End()); !status.ok()) {
    broken_ = status;
    return broken_;
  }
  // Paddle's operators require a variable that records the steps.
  ir::Var scopes;
  scopes.name = FreshName("scopes");
  scopes.block = block();
  scopes.kind = ir::VarKind::kScopes;
  const ir::VarId record = NewVar(std::move(scopes), {});
  ir::Op op = ir::MakeOp(*FindOp(type));
  const auto in = [&](const char* slot) -> auto& {
    return op.inputs[static_cast<size_t>(op.def->FindInput(slot))];
  };
  const auto out = [&](const char* slot) -> auto& {
    return op.outputs[static_cast<size_t>(op.def->FindOutput(slot))];
  };
  in(ended.loop ? "Condition" : "Cond") = {ended.condition};
  in(ended.loop ? "X" : "Input") = std::move(uses.read);
  out("Out") = std::move(uses.written);
  out(ended.loop ? "StepScopes" : "Scope") = {record};
  op.attrs[static_cast<size_t>(op.def->FindAttr("sub_block"))] = BlockRef{ended.block};
  op.attrs[static_cast<size_t>(op.def->FindAttr(ended.loop ? "is_test" : "is_scalar_condition"))] =
      true;
  broken_ = Here(builder.AddOrRefuse(Copy(op)), type);
  return broken_;
}

// Joins the shapes before and after a block for the variables that it writes, since it may not run.
// A loop's operators are then inferred again from the joined shapes, until nothing changes.
Status Draft::Settle(int block, Before before) {
  // Enough, since shapes only become less definite, one dimension at a time.
  constexpr int kMostRounds = 64;
  Ended& ended = ended_[block];
  for (int round = 0; round < kMostRounds; ++round) {
    bool same = true;
    for (ir::VarId v : ended.written) {
      if (v >= before.vars) continue;
      Known& had = before.known.try_emplace(v, known_[v]).first->second;
      const Known both = Join(had, known_[v]);
      same = same && Same(both, had);
      had = both;
      SetKnown(v, both);
    }
    if (!ended.loop) return Status::Ok();
    if (same) break;
    HEDDLE_RETURN_IF_ERROR(Revisit(block));
  }
  for (ir::VarId v : ended.written)
    if (v < before.vars) ended.settled.insert_or_assign(v, before.known.at(v));
  return Status::Ok();
}

// Infers the shapes in a block again, from the present shapes before it.
Status Draft::Revisit(int block) {
  for (const ir::Op& op : builder.program().blocks[static_cast<size_t>(block)].ops) {
    if (op.def->has(kControlFlow)) {
      // Each turn of the inner loop begins with what was found for it earlier, joined with what is
      // known now. To compute that again at every level would double the visits per level.
      const int sub = op.SubBlocks().at(0);
      for (const auto& [v, settled] : ended_[sub].settled) SetKnown(v, Join(known_[v], settled));
      Begin();
      const Status seen = Revisit(sub);
      Before before = End();
      HEDDLE_RETURN_IF_ERROR(seen);
      HEDDLE_RETURN_IF_ERROR(Settle(sub, std::move(before)));
      continue;
    }
    auto written = Ask(op);
    if (!written.ok()) return written.status().At(builder.program().Locate(block, op));
    EachOutput(op, [&](ir::VarId v, size_t at) {
      if (v != ir::kNoVar) SetKnown(v, (*written)[at]);
    });
  }
  return Status::Ok();
}

Result<Model> Draft::Finish() {
  HEDDLE_RETURN_IF_ERROR(broken_);
  if (!open_.empty())
    return InvalidArgument(builder.name(), ": ", open_.size(), " blocks have begun and not ended");
  places_->Close();
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<ir::Program> program, std::move(builder).Finish(nullptr));
  program->hash = DigestOf(*program);
  return Model{Program(std::move(program)), scope};
}

}  // namespace heddle::builder
