#include "passes/storage_aliases.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/op_traits.h"
#include "core/programs/sub_block_slots.h"
#include "passes/nested_blocks.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

constexpr std::array<std::string_view, 3> kStorageOps = {"read_storage", "storage_layout",
                                                         "write_storage"};

bool GivesStorage(const ir::Op& op) {
  return (op.def->traits() & (kSharesStorage | kSharesParts)) != 0;
}

bool AnyGivesStorage(const ir::Program& program) {
  for (const ir::Block& block : program.blocks)
    if (std::any_of(block.ops.begin(), block.ops.end(), GivesStorage)) return true;
  return false;
}

void SetSlot(std::vector<std::vector<VarId>>* slots, int slot, VarId v) {
  (*slots)[static_cast<size_t>(slot)] = {v};
}

using Group = std::set<VarId>;

bool IsStorageOp(const ir::Op& op) {
  return std::find(kStorageOps.begin(), kStorageOps.end(), op.type()) != kStorageOps.end();
}

// The effects of a block on variables of outer blocks.
struct BlockEffects {
  bool changed = false;
  bool inherited = false;        // it continues storages of the outer block
  std::set<VarId> written;       // by added operators
  std::vector<Group> may_share;  // they share one storage if the block has run
};

// Rewrites one block's operators, in order, and those of the blocks that they run.
class BlockRewriter {
 public:
  BlockRewriter(ir::Program* program, int block, const std::set<VarId>& kept,
                std::map<int, BlockEffects>* done)
      : p_(*program), block_(block), kept_(kept), done_(*done) {}

  Result<BlockEffects> Run() {
    const std::vector<ir::Op> ops = p_.blocks[block_].ops;
    for (const ir::Op& op : ops) HEDDLE_RETURN_IF_ERROR(Visit(op));
    HEDDLE_RETURN_IF_ERROR(CheckAtEnd(may_share_));
    NoteNewSharing();
    if (runs_again_) HEDDLE_RETURN_IF_ERROR(CheckNextRun(ops));
    for (size_t m = 0; m < members_.size(); ++m)
      if (Outlives(members_[m].var)) HEDDLE_RETURN_IF_ERROR(Refresh(members_[m].var, nullptr));
    if (!DropUnread() && !adjusted_) return std::move(effects_);
    effects_.changed = true;
    p_.blocks[block_].ops.clear();
    for (Item& item : out_) p_.blocks[block_].ops.push_back(std::move(item.op));
    return std::move(effects_);
  }

 private:
  // A variable that shares a storage: part `part` of it, or all of it (-1).
  struct Member {
    VarId var;
    size_t storage;
    int part;
    bool valid;  // whether the variable has the storage's present value
  };
  struct Storage {
    VarId var, layout;
  };
  struct MayShare {
    Group all;
    // By variable: the error to report if its value, which is uncertain, is used.
    std::map<VarId, Status> doubts;
  };
  struct Item {
    ir::Op op;
    bool added = false;   // by this rewriting
    bool copies = false;  // added for a write to a variable that shares
  };
  struct Touched {
    std::vector<VarId> reads, writes;
  };

  Member* Find(VarId v) {
    const auto at =
        std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.var == v; });
    return at == members_.end() ? nullptr : &*at;
  }
  static bool Overlap(const Member& a, const Member& b) {
    return a.storage == b.storage && a.var != b.var &&
           (a.part == b.part || a.part < 0 || b.part < 0);
  }
  bool Outlives(VarId v) const {
    return p_.vars[v].persistable || p_.vars[v].block != block_ ||
           (block_ == 0 && kept_.count(v) > 0);
  }

  Touched TouchedBy(const ir::Op& op) const {
    Touched touched;
    const auto add = [&](const ir::Op& o) {
      for (const auto& slot : o.inputs) Append(slot, &touched.reads);
      for (const auto& slot : o.outputs) Append(slot, &touched.writes);
    };
    add(op);
    for (int b : NestedBlocks(p_, op))
      for (const ir::Op& inner : p_.blocks[b].ops) add(inner);
    return touched;
  }
  static void Append(const std::vector<VarId>& slot, std::vector<VarId>* to) {
    for (VarId v : slot)
      if (v != kNoVar) to->push_back(v);
  }

  Status Visit(ir::Op op) {
    HEDDLE_RETURN_IF_ERROR(CheckMayShare(op, members_, &may_share_));
    if (const std::vector<int> blocks = op.SubBlocks(); !blocks.empty())
      return VisitBlocks(std::move(op), blocks);
    if (members_.empty() && !GivesStorage(op)) {
      out_.push_back({std::move(op)});
      return Status::Ok();
    }
    const Touched touched = TouchedBy(op);
    for (VarId v : touched.reads) HEDDLE_RETURN_IF_ERROR(Refresh(v, &op));
    if (op.def->traits() & kSharesStorage) return Share(std::move(op));
    if (op.def->traits() & kSharesParts) return ShareParts(std::move(op));
    const ir::Op cause = BareCopy(op);
    out_.push_back({std::move(op)});
    for (VarId v : touched.writes) NoteWrite(v, cause);
    return Status::Ok();
  }

  // For an operator that runs blocks. A block that uses several variables of a storage, and writes
  // one of them, continues the storage: at its beginning and at its end the storage and its
  // variables have the same values. The operator lists the outer variables that the block writes.
  Status VisitBlocks(ir::Op op, const std::vector<int>& blocks) {
    HEDDLE_RETURN_IF_ERROR(CheckNoneLeaves(op));
    const Touched touched = TouchedBy(op);
    // Valid for all blocks, as far as these do not write the variables.
    for (const auto* list : {&touched.reads, &touched.writes})
      for (VarId v : *list) HEDDLE_RETURN_IF_ERROR(Refresh(v, &op));
    const bool runs = OnlyRunsBlock(op);
    std::set<size_t> inherited;
    HEDDLE_RETURN_IF_ERROR(FindInherited(touched, op, runs, &inherited));
    for (const int b : blocks) {
      HEDDLE_RETURN_IF_ERROR(RewriteBlock(b, op, runs, inherited));
      const BlockEffects& effects = done_.at(b);
      effects_.changed = effects_.changed || effects.changed;
      for (VarId v : effects.written) {
        adjusted_ = true;
        AddTo(&op.inputs[static_cast<size_t>(ListOf(op.def->inputs()))], v);
        AddTo(&op.outputs[static_cast<size_t>(ListOf(op.def->outputs()))], v);
        if (p_.vars[v].block != block_) effects_.written.insert(v);
      }
      for (const Group& group : effects.may_share) {
        may_share_.push_back({group, {}});
        AddMayShare(group);
      }
    }
    const std::vector<VarId> writes = TouchedBy(op).writes;
    const ir::Op cause = BareCopy(op);
    out_.push_back({std::move(op)});
    for (VarId v : writes)
      if (const Member* m = Find(v); m != nullptr && inherited.count(m->storage) == 0)
        NoteWrite(v, cause);
    return Status::Ok();
  }

  // An error if a block gives a variable another storage: which one it shares depended on what ran.
  Status CheckNoneLeaves(const ir::Op& op) {
    for (const int b : NestedBlocks(p_, op))
      for (const ir::Op& inner : p_.blocks[b].ops) {
        if (!GivesStorage(inner)) continue;
        const Member* from = inner.inputs[0].empty() ? nullptr : Find(inner.inputs[0][0]);
        for (const auto& slot : inner.outputs)
          for (VarId v : slot) {
            const Member* m = Find(v);
            const bool same = m != nullptr && from != nullptr && from->storage == m->storage &&
                              (inner.def->traits() & kSharesStorage) != 0;
            if (m != nullptr && !same)
              return Unimplemented("variable '", p_.vars[v].name,
                                   "' shares its storage with others, and block ", b,
                                   " gives it another one")
                  .At(p_.Locate(b, inner));
          }
      }
    return Status::Ok();
  }

  Status RewriteBlock(int block, const ir::Op& op, bool runs, const std::set<size_t>& inherited) {
    if (const auto it = done_.find(block); it != done_.end()) {
      const BlockEffects& effects = it->second;
      if (inherited.empty() && !effects.inherited && (runs || effects.written.empty()))
        return Status::Ok();
      return Unimplemented("block ", block,
                           ", which several operators run, writes to variables of one storage")
          .At(p_.Locate(block_, op));
    }
    BlockRewriter inner(&p_, block, kept_, &done_);
    inner.outer_ = this;
    inner.only_runs_ = runs;
    inner.runs_again_ = ir::RunsAgain(*op.def);
    inner.storages_ = storages_;
    for (const Member& m : members_)
      if (inherited.count(m.storage) > 0) inner.members_.push_back(m);
    inner.inherited_ = inner.members_;
    HEDDLE_ASSIGN_OR_RETURN(BlockEffects effects, inner.Run());
    effects.inherited = !inherited.empty();
    done_.emplace(block, std::move(effects));
    return Status::Ok();
  }

  // Finds the storages of which blocks of the operator write one variable and use another one.
  Status FindInherited(const Touched& touched, const ir::Op& op, bool runs,
                       std::set<size_t>* inherited) {
    for (VarId v : touched.writes) {
      const Member* written = Find(v);
      if (written == nullptr) continue;
      for (const auto* list : {&touched.reads, &touched.writes})
        for (VarId u : *list) {
          const Member* other = Find(u);
          if (other == nullptr || !Overlap(*written, *other)) continue;
          if (!runs)
            return Unimplemented("variables '", p_.vars[v].name, "' and '", p_.vars[u].name,
                                 "' share one storage, and the blocks that the operator runs write "
                                 "to the former and use both")
                .At(p_.Locate(block_, op));
          inherited->insert(written->storage);
        }
    }
    for (Member& m : members_)
      if (inherited->count(m.storage) > 0) HEDDLE_RETURN_IF_ERROR(Refresh(m.var, &op));
    return Status::Ok();
  }

  // Whether the operator only runs its block, once or repeatedly, without records for a gradient.
  bool OnlyRunsBlock(const ir::Op& op) const {
    if (ir::ConditionSlot(*op.def) < 0 || op.SubBlocks().size() != 1) return false;
    const int scalar = op.def->FindAttr("is_scalar_condition");
    if (scalar >= 0 && !std::get<bool>(op.attrs[static_cast<size_t>(scalar)])) return false;
    for (const VarId record : op.outputs[1])
      if (record != kNoVar && IsRead(record)) return false;
    return true;
  }
  bool IsRead(VarId v) const {
    for (const ir::Block& block : p_.blocks)
      for (const ir::Op& op : block.ops)
        if (IsInput(op, v)) return true;
    return false;
  }

  static int ListOf(std::span<const SlotDef> slots) {
    const auto list = std::find_if(slots.begin(), slots.end(), [](const SlotDef& slot) {
      return (slot.flags & kList) != 0 && !ir::IsSubBlockSlot(slot) && slot.name != "Cond";
    });
    return static_cast<int>(list - slots.begin());
  }
  static void AddTo(std::vector<VarId>* slot, VarId v) {
    if (std::find(slot->begin(), slot->end(), v) == slot->end()) slot->push_back(v);
  }

  // Whether all blocks between this one and the variable's are run by operators that do only that.
  bool MayWrite(VarId v) const {
    for (const BlockRewriter* r = this; p_.vars[v].block != r->block_; r = r->outer_)
      if (r->outer_ == nullptr || !r->only_runs_) return false;
    return true;
  }

  // Notes outer variables that get another storage here: whether they have it after the block
  // depends on whether it ran.
  void NoteNewSharing() {
    for (const auto& [before, after] :
         {std::pair(&inherited_, &members_), {&members_, &inherited_}})
      for (const Member& m : *after)
        if (p_.vars[m.var].block != block_ && StorageIn(*before, m.var) != m.storage) {
          Group group;
          for (const Member& other : *after)
            if (other.storage == m.storage) group.insert(other.var);
          AddMayShare(group);
        }
  }
  void AddMayShare(const Group& group) {
    Group outer;
    for (VarId v : group)
      if (p_.vars[v].block != block_) outer.insert(v);
    if (outer.size() > 1) effects_.may_share.push_back(std::move(outer));
  }

  // An error if a variable of uncertain value is used. Those of a group share a storage depending
  // on what ran: writing one makes the others' values uncertain. `known`: those that always share.
  Status CheckMayShare(const ir::Op& op, const std::vector<Member>& known,
                       std::vector<MayShare>* groups) const {
    if (groups->empty()) return Status::Ok();
    const bool runs_blocks = !op.SubBlocks().empty();
    Group reads, writes;
    // Lists of operators that run blocks have more than these use.
    const auto add = [&](const ir::Op& o) {
      if (!o.SubBlocks().empty() || IsStorageOp(o)) return;
      for (const auto& slot : o.inputs) reads.insert(slot.begin(), slot.end());
      for (const auto& slot : o.outputs)
        if (!GivesStorage(o)) writes.insert(slot.begin(), slot.end());
    };
    add(op);
    for (int b : NestedBlocks(p_, op))
      for (const ir::Op& inner : p_.blocks[b].ops) add(inner);
    const Group changed = WithSharers(writes, known);
    for (MayShare& group : *groups) {
      for (VarId v : reads)
        if (const auto doubt = group.doubts.find(v); doubt != group.doubts.end())
          return doubt->second;
      if (!runs_blocks && GivesStorage(op))
        for (const auto& slot : op.outputs)
          for (VarId v : slot) group.all.erase(v), group.doubts.erase(v);
      for (VarId w : changed) {
        if (group.all.count(w) == 0) continue;
        group.doubts.erase(w);
        for (VarId u : group.all) {
          if (changed.count(u) > 0 && !runs_blocks) continue;
          if (u == w || OneStorage(known, u, w)) continue;
          const Status doubt = Unimplemented("variable '", p_.vars[w].name,
                                             "' is written to, and '", p_.vars[u].name,
                                             "', which shares its storage if a block ran that "
                                             "makes it so, is used behind that")
                                   .At(p_.Locate(block_, op));
          if (runs_blocks && (reads.count(u) > 0 || changed.count(u) > 0)) return doubt;
          group.doubts.emplace(u, doubt);
        }
      }
    }
    return Status::Ok();
  }
  Status CheckAtEnd(const std::vector<MayShare>& groups) const {
    for (const MayShare& group : groups)
      for (const auto& [v, doubt] : group.doubts)
        if (Outlives(v)) return doubt;
    return Status::Ok();
  }
  // Checks a repeated run of the block, at whose beginning the variables that it joins share.
  Status CheckNextRun(const std::vector<ir::Op>& ops) const {
    std::vector<MayShare> groups;
    for (const Group& group : effects_.may_share) groups.push_back({group, {}});
    for (const ir::Op& op : ops) HEDDLE_RETURN_IF_ERROR(CheckMayShare(op, inherited_, &groups));
    return CheckAtEnd(groups);
  }
  static Group WithSharers(const Group& variables, const std::vector<Member>& known) {
    Group all = variables;
    for (const Member& a : known)
      for (const Member& b : known)
        if (variables.count(a.var) > 0 && Overlap(a, b)) all.insert(b.var);
    return all;
  }
  static std::optional<size_t> StorageIn(const std::vector<Member>& members, VarId v) {
    const auto at =
        std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.var == v; });
    return at == members.end() ? std::optional<size_t>() : at->storage;
  }
  static bool OneStorage(const std::vector<Member>& known, VarId a, VarId b) {
    return StorageIn(known, a).has_value() && StorageIn(known, a) == StorageIn(known, b);
  }

  // An operator without operands: names the cause and the place of added operators.
  static ir::Op BareCopy(const ir::Op& op) {
    ir::Op cause;
    cause.call_stack = op.call_stack;
    cause.device = op.device;
    return cause;
  }
  ir::Op Make(std::string_view type, const ir::Op* cause) const {
    ir::Op op = ir::MakeOp(*FindOp(type));
    if (cause != nullptr) {
      op.call_stack = cause->call_stack;
      op.device = cause->device;
    }
    return op;
  }

  ir::Op MakeCopy(std::string_view type, const Member& m, const ir::Op* cause) const {
    const Storage& storage = storages_[m.storage];
    ir::Op op = Make(type, cause);
    SetSlot(&op.inputs, op.def->FindInput("Storage"), storage.var);
    if (m.part >= 0) SetSlot(&op.inputs, op.def->FindInput("Layout"), storage.layout);
    op.attrs[static_cast<size_t>(op.def->FindAttr("part"))] = int64_t{m.part};
    return op;
  }

  Status Refresh(VarId v, const ir::Op* cause) {
    Member* m = Find(v);
    if (m == nullptr || m->valid) return Status::Ok();
    if (!MayWrite(v)) {
      const Status refused = Unimplemented(
          "variable '", p_.vars[v].name,
          "' of an outer block shares its storage with one that block ", block_, " writes to");
      return cause == nullptr ? refused : refused.At(p_.Locate(block_, *cause));
    }
    m->valid = true;
    if (p_.vars[v].block != block_) effects_.written.insert(v);
    ir::Op op = MakeCopy("read_storage", *m, cause);
    SetSlot(&op.inputs, op.def->FindInput("Old"), v);
    SetSlot(&op.outputs, 0, v);
    out_.push_back({std::move(op), true, true});
    return Status::Ok();
  }

  void NoteWrite(VarId v, const ir::Op& cause) {
    const Member* m = Find(v);
    if (m == nullptr) return;
    ir::Op op = MakeCopy("write_storage", *m, &cause);
    SetSlot(&op.inputs, op.def->FindInput("Value"), v);
    const VarId storage = storages_[m->storage].var;
    SetSlot(&op.outputs, 0, storage);
    if (p_.vars[storage].block != block_) effects_.written.insert(storage);
    out_.push_back({std::move(op), true, true});
    for (Member& other : members_)
      if (Overlap(*m, other)) other.valid = false;
  }

  void Leave(VarId v) {
    std::erase_if(members_, [&](const Member& m) { return m.var == v; });
  }

  VarId AddVar(VarId like, const char* suffix, bool same_type) {
    ir::Var var;
    var.name = p_.FreshName(p_.vars[like].name + suffix);
    var.block = block_;
    if (same_type) {
      var.dtype = p_.vars[like].dtype;
      var.shape = p_.vars[like].shape;
    } else {
      var.dtype = DType::kI64;
      var.shape = Shape::Unknown();
    }
    return p_.AddVar(std::move(var));
  }

  // Adds a storage with the value of `v`.
  size_t AddStorage(VarId v, VarId layout, const ir::Op& cause) {
    storages_.push_back({AddVar(v, "@STORAGE", true), layout});
    ir::Op copy = Make("assign", &cause);
    SetSlot(&copy.inputs, copy.def->FindInput("X"), v);
    SetSlot(&copy.outputs, copy.def->FindOutput("Out"), storages_.back().var);
    out_.push_back({std::move(copy), true});
    return storages_.size() - 1;
  }

  bool IsTensor(VarId v) const { return p_.vars[v].kind == ir::VarKind::kTensor; }

  Status Share(ir::Op op) {
    struct Pair {
      VarId from, to;
    };
    std::vector<Pair> pairs;
    std::vector<VarId> others;
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      const auto view = std::find_if(op.def->views().begin(), op.def->views().end(),
                                     [&](const auto& v) { return v.out == static_cast<int>(s); });
      for (size_t i = 0; i < op.outputs[s].size(); ++i) {
        const VarId to = op.outputs[s][i];
        if (to == kNoVar) continue;
        const bool shares =
            view != op.def->views().end() && i < op.inputs[static_cast<size_t>(view->in)].size();
        const VarId from = shares ? op.inputs[static_cast<size_t>(view->in)][i] : kNoVar;
        if (from != kNoVar && from != to && IsTensor(from) && IsTensor(to))
          pairs.push_back({from, to});
        else if (!IsInput(op, to))
          others.push_back(to);
      }
    }
    const ir::Op cause = BareCopy(op);
    out_.push_back({std::move(op)});
    for (VarId v : others) NoteWrite(v, cause);
    for (const Pair& pair : pairs) {
      Leave(pair.to);
      const Member* m = Find(pair.from);
      if (m == nullptr) {
        const size_t storage = AddStorage(pair.from, kNoVar, cause);
        members_.push_back({pair.from, storage, -1, true});
        m = &members_.back();
      }
      const Member joined{pair.to, m->storage, m->part, true};
      members_.push_back(joined);
    }
    return Status::Ok();
  }

  static bool IsInput(const ir::Op& op, VarId v) {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const auto& slot) {
      return std::find(slot.begin(), slot.end(), v) != slot.end();
    });
  }

  Status ShareParts(ir::Op op) {
    size_t list = 0, whole = 1;
    if ((op.def->outputs()[list].flags & kList) == 0) std::swap(list, whole);
    const VarId fused = op.outputs[whole].empty() ? kNoVar : op.outputs[whole][0];
    const std::vector<VarId> parts = op.outputs[list];
    const ir::Op cause = BareCopy(op);
    if (fused == kNoVar) {
      out_.push_back({std::move(op)});
      return Status::Ok();
    }
    ir::Op layout = Make("storage_layout", &cause);
    layout.inputs[0] = op.inputs[0];
    for (size_t a = 0; a < layout.attrs.size(); ++a)
      layout.attrs[a] =
          op.attrs[static_cast<size_t>(op.def->FindAttr(layout.def->attrs()[a].name))];
    const VarId places = AddVar(fused, "@LAYOUT", false);
    SetSlot(&layout.outputs, 0, places);
    out_.push_back({std::move(layout), true});
    out_.push_back({std::move(op)});
    Leave(fused);
    for (VarId v : parts) Leave(v);
    const size_t storage = AddStorage(fused, places, cause);
    members_.push_back({fused, storage, -1, true});
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i] != kNoVar) members_.push_back({parts[i], storage, static_cast<int>(i), true});
    return Status::Ok();
  }

  // Drops added operators whose results have no reader. Returns whether a copy is left.
  bool DropUnread() {
    std::set<VarId> read;
    bool copies = false;
    std::vector<Item> kept;
    for (size_t i = out_.size(); i-- > 0;) {
      Item& item = out_[i];
      if (item.added) {
        const VarId v = OutputOf(item.op);
        const bool own = IsStorage(v) && p_.vars[v].block == block_;
        const bool needed = read.count(v) > 0 || (!own && Outlives(v));
        if (!needed) continue;
        copies = copies || item.copies;
      }
      for (VarId v : TouchedBy(item.op).reads) read.insert(v);
      if (!item.added)
        for (VarId v : TouchedBy(item.op).writes)
          if (item.op.def->has(kControlFlow)) read.insert(v);
      kept.push_back(std::move(item));
    }
    std::reverse(kept.begin(), kept.end());
    out_ = std::move(kept);
    return copies;
  }
  static VarId OutputOf(const ir::Op& op) {
    for (const auto& slot : op.outputs)
      for (VarId v : slot)
        if (v != kNoVar) return v;
    return kNoVar;
  }
  bool IsStorage(VarId v) const {
    return std::any_of(storages_.begin(), storages_.end(),
                       [&](const Storage& s) { return s.var == v || s.layout == v; });
  }

  ir::Program& p_;
  const int block_;
  const std::set<VarId>& kept_;
  std::map<int, BlockEffects>& done_;  // by block
  const BlockRewriter* outer_ = nullptr;
  bool only_runs_ = false;   // the operator that runs the block only runs blocks
  bool runs_again_ = false;  // … and may run it repeatedly
  bool adjusted_ = false;    // operators that run blocks have got further operands
  std::vector<Item> out_;
  std::vector<Storage> storages_;
  std::vector<Member> members_, inherited_;
  std::vector<MayShare> may_share_;
  BlockEffects effects_;
};

}  // namespace

std::span<const std::string_view> StorageOps() { return kStorageOps; }

Result<std::shared_ptr<const ir::Program>> MakeAliasesExplicit(
    const std::shared_ptr<const ir::Program>& program, const std::set<VarId>& kept) {
  if (!AnyGivesStorage(*program)) return program;
  auto copy = std::make_shared<ir::Program>(*program);
  std::map<int, BlockEffects> done;
  HEDDLE_ASSIGN_OR_RETURN(const BlockEffects effects,
                          BlockRewriter(copy.get(), 0, kept, &done).Run());
  if (!effects.changed) return program;
  ir::FillSubBlockSlots(copy.get());
  return std::shared_ptr<const ir::Program>(std::move(copy));
}

}  // namespace heddle::passes
