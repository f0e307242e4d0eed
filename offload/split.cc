#include "offload/split.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/op_traits.h"
#include "core/programs/kept_outputs.h"
#include "formats/program_source.h"

namespace heddle::offload {
namespace {

using ir::kNoVar;
using ir::VarId;
using partition::OpIndex;

template <typename Fn>
void ForVars(const std::vector<std::vector<VarId>>& slots, Fn&& fn) {
  for (size_t s = 0; s < slots.size(); ++s)
    for (const VarId v : slots[s])
      if (v != kNoVar) fn(s, v);
}

// What a program with groups remembers of the one it was made of: that, and the definitions.
class SourceWithGroups : public formats::ProgramSource {
 public:
  SourceWithGroups(std::shared_ptr<const formats::ProgramSource> base,
                   std::vector<std::shared_ptr<const GroupOp>> ops)
      : base_(std::move(base)), ops_(std::move(ops)) {}
  const formats::Format& format() const override { return base_->format(); }
  size_t bytes() const override { return base_->bytes(); }
  std::string_view InputType(size_t k) const override { return base_->InputType(k); }
  std::string_view OutputType(size_t k) const override { return base_->OutputType(k); }
  std::string_view OutputName(std::string_view name) const override {
    return base_->OutputName(name);
  }
  Result<FunctionLibrary> Functions() const override { return base_->Functions(); }
  std::unique_ptr<const formats::PackedProgram> Pack(const ir::Program&) const override {
    return nullptr;  // no such program is as its file says
  }

 private:
  const std::shared_ptr<const formats::ProgramSource> base_;
  const std::vector<std::shared_ptr<const GroupOp>> ops_;
};

uint64_t Mix(uint64_t hash, uint64_t with) {
  return (hash ^ with) * 0x9E3779B97F4A7C15u + (hash >> 29);
}

bool AllPersistable(const ir::Program& program, const std::vector<VarId>& vars) {
  return std::all_of(vars.begin(), vars.end(),
                     [&](VarId v) { return v == kNoVar || program.vars[v].persistable; });
}

// Operators that give variables one memory: edges between operators do not show that.
bool SharesStorage(const ir::Program& program) {
  for (const ir::Block& block : program.blocks)
    for (const ir::Op& op : block.ops)
      if ((op.def->traits() & (kSharesStorage | kSharesParts)) != 0) return true;
  return false;
}

}  // namespace

Result<std::unique_ptr<Split>> Split::Make(const Model& model,
                                           const std::vector<std::string>& fetches,
                                           const std::vector<partition::Target>& targets) {
  std::unique_ptr<Split> split(new Split);
  HEDDLE_RETURN_IF_ERROR(split->Read(model, fetches));
  HEDDLE_ASSIGN_OR_RETURN(const partition::Partition partition,
                          partition::PartitionBytes(split->bytes_, targets));
  HEDDLE_ASSIGN_OR_RETURN(split->description_, partition::Description::Parse(split->bytes_));
  split->AddGroups(partition, *model.scope);
  return split;
}

Status Split::Read(const Model& model, const std::vector<std::string>& fetches) {
  Program program = model.program;
  if (!fetches.empty()) {
    auto copy = std::make_shared<ir::Program>(program.ir());
    copy->fetches.clear();
    for (const std::string& name : fetches) {
      const VarId var = copy->Find(0, name);
      if (var == kNoVar)
        return NotFound("cannot fetch '", name, "': the program has no such variable");
      copy->fetches.push_back({var, static_cast<int>(copy->fetches.size())});
    }
    program = Program(std::move(copy));
  }
  HEDDLE_ASSIGN_OR_RETURN(bytes_, partition::ProgramBytesOf(program));
  HEDDLE_ASSIGN_OR_RETURN(const Program read, Program::Parse(bytes_, model.program.ir().name));
  program_ = read.impl();
  written_.assign(program_->vars.size(), false);
  positions_.resize(program_->blocks.size());
  for (const ir::Block& block : program_->blocks) {
    operators_ += static_cast<int>(block.ops.size());
    for (const ir::Op& op : block.ops)
      ForVars(op.outputs, [&](size_t s, VarId v) {
        if (!ir::KeepsOutput(op, s)) written_[v] = true;
      });
  }
  return Status::Ok();
}

// Why no operator of the block may be moved; empty: they may.
std::string Split::WhyWhole(int block) const {
  const auto b = static_cast<size_t>(block);
  const partition::Graph& graph = *graphs_[b];
  for (OpIndex i = 0; i < graph.size(); ++i) {
    const bool port =
        graph.never(i) == partition::Never::kFeed || graph.never(i) == partition::Never::kFetch;
    if (!port && positions_[b][static_cast<size_t>(i)] < 0)
      return "the operators of its block are read as other ones than the file has";
  }
  const auto read = positions_[b].size() -
                    static_cast<size_t>(std::count(positions_[b].begin(), positions_[b].end(), -1));
  if (read != program_->blocks[b].ops.size())
    return "the operators of its block are read as other ones than the file has";
  for (const ir::Op& op : program_->blocks[b].ops) {
    if (op.has_control_edges()) return "operators of its block wait for each other without data";
  }
  return "";
}

void Split::AddGroups(const partition::Partition& partition, const Scope& scope) {
  graphs_.resize(partition.blocks.size());
  const bool shares = SharesStorage(*program_);
  for (const partition::BlockPartition& block : partition.blocks) {
    const auto b = static_cast<size_t>(block.block);
    if (block.groups.empty() || b >= program_->blocks.size()) continue;
    graphs_[b] = std::make_unique<partition::Graph>(description_, block.block);
    positions_[b].assign(static_cast<size_t>(graphs_[b]->size()), -1);
    const auto& ops = program_->blocks[b].ops;
    for (size_t at = 0; at < ops.size(); ++at)
      if (ops[at].index >= 0 && ops[at].index < graphs_[b]->size())
        positions_[b][static_cast<size_t>(ops[at].index)] = static_cast<int>(at);
    std::string whole = WhyWhole(block.block);
    if (shares) whole = "the program has variables that share a storage";
    for (const partition::PlacedGroup& placed : block.groups) {
      AddGroup(placed, block.block, scope);
      if (!whole.empty()) groups_.back()->refused = whole;
    }
  }
}

void Split::AddGroup(const partition::PlacedGroup& placed, int block, const Scope& scope) {
  auto group = std::make_shared<Group>();
  group->symbol = StrCat("group_", groups_.size());
  group->offloader = static_cast<size_t>(placed.target);
  group->block = block;
  for (const auto* list : {&placed.operators, &placed.helpers})
    for (const int i : *list)
      if (const int at = positions_[static_cast<size_t>(block)][static_cast<size_t>(i)]; at >= 0)
        group->positions.push_back(static_cast<size_t>(at));
  std::sort(group->positions.begin(), group->positions.end());
  Cut(placed, scope, group.get());
  groups_.push_back(std::move(group));
}

// Makes the group's program.
void Split::Cut(const partition::PlacedGroup& placed, const Scope& scope, Group* group) const {
  const ir::Program& whole = *program_;
  auto cut = std::make_shared<ir::Program>();
  cut->name = StrCat(whole.name, " ", group->symbol);
  cut->version = whole.version;
  cut->op_versions = whole.op_versions;
  cut->hash = Mix(Mix(whole.hash, static_cast<uint64_t>(group->block) + 1), group->positions[0]);
  cut->blocks.push_back({0, -1, -1, {}});
  std::unordered_map<VarId, VarId> inside;
  const auto refuse = [&](std::string why) {
    if (group->refused.empty()) group->refused = std::move(why);
  };
  const auto add = [&](VarId v, bool parameter) {
    ir::Var var = whole.vars[v];
    if (cut->Find(0, var.name) != kNoVar) var.name = cut->FreshName(var.name);
    var.block = 0;
    var.persistable = parameter;
    var.input = false;
    if (var.lod_level > 0) refuse(StrCat("'", var.name, "' carries sequence offsets"));
    return inside[v] = cut->AddVar(std::move(var));
  };
  std::unordered_set<VarId> made, spoken;
  for (const size_t at : group->positions) {
    ir::Op op = whole.blocks[static_cast<size_t>(group->block)].ops[at];
    op.hints = nullptr;
    for (size_t s = 0; s < op.outputs.size(); ++s)  // no engine is to write to parameters
      if (ir::KeepsOutput(op, s) && AllPersistable(whole, op.outputs[s])) op.outputs[s].clear();
    ForVars(op.inputs, [&](size_t, VarId v) {
      if (inside.contains(v)) return;
      const bool parameter = whole.vars[v].persistable && !written_[v];
      const VarId mine = add(v, parameter);
      if (!parameter) {
        group->inputs.push_back(v);
        cut->feeds.push_back({mine, static_cast<int>(cut->feeds.size())});
        return;
      }
      const Value* value = scope.Find(whole.vars[v].name);
      if (value == nullptr || !value->is_tensor() || !value->tensor().initialized())
        return refuse(StrCat("parameter '", whole.vars[v].name, "' is not there"));
      group->parameters.emplace_back(mine, value->tensor().Contiguous());
    });
    ForVars(op.outputs, [&](size_t s, VarId v) {
      made.insert(v);
      if (s < op.def->outputs().size() && (op.def->outputs()[s].flags & (kNoData | kRecord)) != 0)
        spoken.insert(v);
      if (!inside.contains(v)) add(v, false);
    });
    for (auto* slots : {&op.inputs, &op.outputs})
      for (auto& slot : *slots)
        for (VarId& v : slot)
          if (v != kNoVar) v = inside.at(v);
    cut->blocks[0].ops.push_back(std::move(op));
  }
  for (const std::string& name : placed.outputs) {
    const VarId v = whole.Find(group->block, name);
    if (v == kNoVar || !made.contains(v)) {
      refuse(StrCat("output '", name, "' is not what its operators write"));
      continue;
    }
    if (spoken.contains(v)) refuse(StrCat("'", name, "' has a shape and no contents"));
    group->outputs.push_back(v);
    cut->fetches.push_back({inside.at(v), static_cast<int>(cut->fetches.size())});
  }
  if (group->outputs.empty()) refuse("nothing reads its results");
  for (const VarId v : group->inputs)
    if (whole.vars[v].kind != ir::VarKind::kTensor)
      refuse(StrCat("'", whole.vars[v].name, "' is no tensor"));
  group->program = std::move(cut);
}

// The block's operators with groups in the place of theirs, each behind what it needs, otherwise as
// they stand in the file.
std::vector<ir::Op> Split::Ordered(
    int block, std::vector<ir::Op> ops,
    const std::vector<std::shared_ptr<const GroupOp>>& groups) const {
  const auto b = static_cast<size_t>(block);
  const partition::Graph& graph = *graphs_[b];
  const size_t n = positions_[b].size();
  // Nodes: operators of the file, and groups behind them.
  std::vector<size_t> node(n);
  for (size_t i = 0; i < n; ++i) node[i] = i;
  std::vector<size_t> key(n + groups.size()), waits(n + groups.size());
  for (size_t i = 0; i < n; ++i) key[i] = i;
  std::vector<std::vector<size_t>> members(groups.size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (const size_t at : groups[g]->group().positions) {
      const auto i = static_cast<size_t>(ops[at].index);
      node[i] = n + g;
      members[g].push_back(i);
      key[n + g] = std::max(key[n + g], i);
    }
  const auto index = [](size_t i) { return static_cast<OpIndex>(i); };
  for (size_t i = 0; i < n; ++i)
    for (const OpIndex next : graph.after(index(i)))
      if (node[static_cast<size_t>(next)] != node[i]) ++waits[node[static_cast<size_t>(next)]];
  std::priority_queue<std::pair<size_t, size_t>, std::vector<std::pair<size_t, size_t>>,
                      std::greater<>>
      ready;
  const auto try_ready = [&](size_t k) {
    if (waits[k] == 0) ready.emplace(key[k], k);
  };
  for (size_t i = 0; i < n; ++i)
    if (node[i] == i) try_ready(i);
  for (size_t g = 0; g < groups.size(); ++g) try_ready(n + g);
  std::vector<ir::Op> ordered;
  const auto leave = [&](size_t i) {
    for (const OpIndex next : graph.after(index(i))) {
      const size_t to = node[static_cast<size_t>(next)];
      if (to != node[i] && --waits[to] == 0) ready.emplace(key[to], to);
    }
  };
  while (!ready.empty()) {
    const size_t k = ready.top().second;
    ready.pop();
    if (k < n) {
      if (const int at = positions_[b][k]; at >= 0)
        ordered.push_back(std::move(ops[static_cast<size_t>(at)]));
      leave(k);
      continue;
    }
    const GroupOp& def = *groups[k - n];
    ir::Op op = ir::MakeOp(def);
    op.inputs[0] = def.group().inputs;
    op.outputs[0] = def.group().outputs;
    op.index = static_cast<int>(key[k]);
    ordered.push_back(std::move(op));
    for (const size_t i : members[k - n]) leave(i);
  }
  return ordered;
}

void Split::SetHost(std::shared_ptr<const ir::Program> program, uint64_t form,
                    std::vector<std::shared_ptr<const GroupOp>> calls) {
  host_ = std::move(program);
  host_form_ = form;
  calls_ = std::move(calls);
}

namespace {

// Puts the operators of a group in the place of its call. What they write and the call does not
// give gets variables of its own: passes may have moved readers of an earlier value behind it.
void Expand(const ir::Op& call, const Group& group, const std::vector<ir::Op>& ops,
            ir::Program* program, std::vector<ir::Op>* to) {
  std::unordered_map<VarId, VarId> now, outputs;
  for (size_t k = 0; k < group.inputs.size(); ++k) now[group.inputs[k]] = call.inputs[0][k];
  for (size_t k = 0; k < group.outputs.size(); ++k)
    if (call.outputs[0][k] != kNoVar) outputs[group.outputs[k]] = call.outputs[0][k];
  std::unordered_set<VarId> own;  // have a variable of their own
  for (const size_t at : group.positions) {
    ir::Op op = ops[at];
    for (auto& slot : op.inputs)
      for (VarId& v : slot)
        if (const auto is = now.find(v); is != now.end()) v = is->second;
    for (auto& slot : op.outputs)
      for (VarId& v : slot) {
        if (v == kNoVar) continue;
        const VarId was = v;
        if (const auto out = outputs.find(was); out != outputs.end()) {
          v = out->second;
        } else if (own.contains(was)) {
          v = now.at(was);
        } else if (!program->vars[was].persistable) {
          ir::Var var = program->vars[was];
          var.name = program->FreshName(var.name);
          v = program->AddVar(std::move(var));
          own.insert(was);
        }
        now[was] = v;
      }
    to->push_back(std::move(op));
  }
}

}  // namespace

// As Join, of what passes made. A group that stays is there as its operators were.
Program Split::JoinHost(const std::vector<std::shared_ptr<const GroupOp>>& ops) const {
  auto program = std::make_shared<ir::Program>(*host_);
  program->hash = Mix(program->hash, host_form_);
  for (const auto& op : ops)
    program->hash =
        Mix(Mix(program->hash, reinterpret_cast<uintptr_t>(op.get())), op->group().positions[0]);
  for (ir::Block& block : program->blocks) {
    std::vector<ir::Op> before = std::exchange(block.ops, {});
    std::vector<ir::Op> after;
    for (ir::Op& op : before) {
      const auto call = std::find_if(calls_.begin(), calls_.end(),
                                     [&](const auto& c) { return c.get() == op.def; });
      if (call == calls_.end()) {
        after.push_back(std::move(op));
        continue;
      }
      const Group& group = (*call)->group();
      const auto taken = std::find_if(
          ops.begin(), ops.end(), [&](const auto& o) { return o->group().symbol == group.symbol; });
      if (taken == ops.end()) {
        const auto& own = program_->blocks[static_cast<size_t>(group.block)].ops;
        Expand(op, group, own, program.get(), &after);
        continue;
      }
      op.def = taken->get();
      after.push_back(std::move(op));
    }
    block.ops = std::move(after);
  }
  program->source = std::make_shared<SourceWithGroups>(program_->source, ops);
  return Program(std::move(program));
}

Result<Program> Split::Join(const std::vector<std::shared_ptr<const GroupOp>>& ops) const {
  if (host_ != nullptr) return JoinHost(ops);
  auto program = std::make_shared<ir::Program>(*program_);
  for (const auto& op : ops)
    program->hash =
        Mix(Mix(program->hash, reinterpret_cast<uintptr_t>(op.get())), op->group().positions[0]);
  for (size_t b = 0; b < program->blocks.size(); ++b) {
    std::vector<std::shared_ptr<const GroupOp>> mine;
    for (const auto& op : ops)
      if (static_cast<size_t>(op->group().block) == b) mine.push_back(op);
    if (mine.empty()) continue;
    const size_t ports = std::count(positions_[b].begin(), positions_[b].end(), -1);
    size_t taken = 0;
    for (const auto& op : mine) taken += op->group().positions.size();
    auto& block = program->blocks[b].ops;
    block = Ordered(static_cast<int>(b), std::move(block), mine);
    if (block.size() + taken != positions_[b].size() - ports + mine.size())
      return Internal("groups of block ", b, " wait for each other");
  }
  program->source = std::make_shared<SourceWithGroups>(program_->source, ops);
  return Program(std::move(program));
}

}  // namespace heddle::offload
