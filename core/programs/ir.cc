#include "core/programs/ir.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "core/error.h"

namespace heddle::ir {
namespace {

constexpr std::string_view kFresh = "@heddle_";  // part of the names that FreshName makes

// Tables of names: the first one has the names of all blocks that FreshName could make, so that it
// looks into one table instead of one per block; then each block has a table.
constexpr size_t kFreshNames = 0;
size_t TableOf(int block) { return static_cast<size_t>(block) + 1; }

}  // namespace

std::vector<int> Op::SubBlocks() const {
  std::vector<int> ids;
  for (const AttrValue& a : attrs) {
    if (const auto* one = std::get_if<BlockRef>(&a)) {
      if (one->id >= 0) ids.push_back(one->id);
    } else if (const auto* many = std::get_if<std::vector<BlockRef>>(&a)) {
      for (BlockRef b : *many) ids.push_back(b.id);
    }
  }
  return ids;
}

// The entry with the name, or the free one where it belongs. Precondition: the table is not empty.
size_t NameTable::PlaceOf(const std::vector<Var>& vars, std::string_view name) const {
  size_t at = std::hash<std::string_view>()(name) & (table_.size() - 1);
  while (table_[at] != kNoVar && vars[table_[at]].name != name) at = (at + 1) & (table_.size() - 1);
  return at;
}

VarId NameTable::Find(const std::vector<Var>& vars, std::string_view name) const {
  return table_.empty() ? kNoVar : table_[PlaceOf(vars, name)];
}

void NameTable::Add(const std::vector<Var>& vars, VarId id) {
  if (4 * (used_ + 1) > 3 * table_.size()) {
    std::vector<VarId> old(std::max<size_t>(16, 2 * table_.size()), kNoVar);
    old.swap(table_);
    for (VarId v : old)
      if (v != kNoVar) table_[PlaceOf(vars, vars[v].name)] = v;
  }
  VarId& place = table_[PlaceOf(vars, vars[id].name)];
  if (place != kNoVar) return;
  place = id;
  ++used_;
}

VarId Program::Find(int block, std::string_view name) const {
  // Gradient blocks see the variables of their forward block, and then those of their parent. Both
  // ways may lead to the same blocks, which are visited once.
  std::vector<int> parents;           // parents still to be visited
  std::unordered_set<int> looked_at;  // used once there are two ways
  for (int b = block;;) {
    const bool ends = b < 0 || b >= static_cast<int>(blocks.size()) ||
                      (!looked_at.empty() && !looked_at.insert(b).second);
    // The last blocks may have no table, if they declare no variables.
    if (!ends && TableOf(b) < names_.size())
      if (const VarId v = names_[TableOf(b)].Find(vars, name); v != kNoVar) return v;
    if (ends || b == 0) {
      if (parents.empty()) return kNoVar;
      b = parents.back();
      parents.pop_back();
      continue;
    }
    const int forward = blocks[b].forward_block;
    if (forward >= 0 && forward < b) {
      looked_at.insert(b);
      parents.push_back(blocks[b].parent);
      b = forward;
    } else {
      b = blocks[b].parent;
    }
  }
}

VarId Program::AddVar(Var var) {
  const auto id = static_cast<VarId>(vars.size());
  const size_t table = TableOf(var.block);
  if (names_.size() <= table) names_.resize(table + 1);
  vars.push_back(std::move(var));
  names_[table].Add(vars, id);
  if (vars.back().name.find(kFresh) != std::string::npos) names_[kFreshNames].Add(vars, id);
  return id;
}

std::string Program::FreshName(const std::string& stem) const {
  // Counts from the number of variables on, so that a free name is found at once even if many are
  // made.
  for (size_t i = vars.size();; ++i) {
    std::string name = StrCat(stem, kFresh, i);
    if (names_.empty() || names_[kFreshNames].Find(vars, name) == kNoVar) return name;
  }
}

void Program::DropUnusedVars(const std::vector<VarId>& kept) {
  std::vector<VarId> renamed(vars.size(), kNoVar);
  const auto each = [this](auto&& fn) {
    for (Block& b : blocks)
      for (Op& op : b.ops)
        for (auto* slots : {&op.inputs, &op.outputs})
          for (auto& slot : *slots)
            for (VarId& v : slot)
              if (v != kNoVar) fn(v);
    for (auto* ports : {&feeds, &fetches})
      for (Port& f : *ports)
        if (f.var != kNoVar) fn(f.var);
  };
  each([&](VarId& v) { renamed[v] = 0; });
  for (VarId v : kept) renamed[v] = 0;
  for (VarId v = 0; v < vars.size(); ++v)
    if (vars[v].kind == VarKind::kFeedHolder || vars[v].kind == VarKind::kFetchHolder)
      renamed[v] = 0;
  as_parsed_.value = false;
  std::vector<Var> old = std::move(vars);
  vars.clear();
  vars.reserve(old.size() -
               static_cast<size_t>(std::count(renamed.begin(), renamed.end(), kNoVar)));
  names_.clear();
  for (VarId v = 0; v < old.size(); ++v)
    if (renamed[v] != kNoVar) renamed[v] = AddVar(std::move(old[v]));
  each([&](VarId& v) { v = renamed[v]; });
}

OpLocation Program::Locate(int block, const Op& op) const {
  OpLocation at;
  at.block = block;
  at.op = op.index;
  at.op_type = op.type();
  at.call_stack = op.call_stack.Text();
  for (const auto& slot : op.outputs) {
    for (VarId v : slot) {
      if (v == kNoVar || !at.output.empty()) continue;
      at.output = vars[v].name;
    }
  }
  return at;
}

Op MakeOp(const OpDef& def) {
  Op op;
  op.def = &def;
  op.inputs.resize(def.inputs().size());
  op.outputs.resize(def.outputs().size());
  for (const AttrDef& a : def.attrs()) op.attrs.push_back(a.default_value);
  return op;
}

std::string FindBrokenControl(const Program& program) {
  std::unordered_map<int64_t, int> block_of;  // by the marks so far
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (!op.has_control_edges()) continue;
      const auto where = [&] {
        return StrCat("block ", block.id, ", op ", op.index, " (", op.type(), ")");
      };
      for (const int64_t mark : op.hints->after) {
        const auto at = block_of.find(mark);
        if (at == block_of.end() || at->second != block.id)
          return StrCat(where(), " waits for mark ", mark,
                        ", which no earlier operator of its block bears");
      }
      for (const int64_t mark : op.hints->marks)
        if (!block_of.emplace(mark, block.id).second)
          return StrCat(where(), " bears mark ", mark, ", and so does an operator before it");
    }
  }
  return "";
}

}  // namespace heddle::ir
