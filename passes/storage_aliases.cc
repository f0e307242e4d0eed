#include "passes/storage_aliases.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/op_traits.h"
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

// One block's operators, in order.
class BlockRewriter {
 public:
  BlockRewriter(ir::Program* program, int block, const std::set<VarId>& kept)
      : p_(*program), block_(block), kept_(kept) {}

  // True when the block has changed.
  Result<bool> Run() {
    std::vector<ir::Op> ops = p_.blocks[block_].ops;
    for (ir::Op& op : ops) HEDDLE_RETURN_IF_ERROR(Visit(std::move(op)));
    for (size_t m = 0; m < members_.size(); ++m)
      if (Outlives(members_[m].var)) HEDDLE_RETURN_IF_ERROR(Refresh(members_[m].var, nullptr));
    if (!DropUnread()) return false;
    p_.blocks[block_].ops.clear();
    for (Item& item : out_) p_.blocks[block_].ops.push_back(std::move(item.op));
    return true;
  }

 private:
  // A variable that shares a storage: part `part` of it, or all of it (-1).
  struct Member {
    VarId var;
    size_t storage;
    int part;
    bool valid;  // its variable holds what the storage holds there
  };
  struct Storage {
    VarId var, layout;
  };
  struct Item {
    ir::Op op;
    bool added = false;   // not of the program
    bool copies = false;  // added for a write behind the sharing
  };
  struct Touched {
    std::vector<VarId> reads, writes;
    bool nested = false;
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
    for (int b : NestedBlocks(p_, op)) {
      touched.nested = true;
      for (const ir::Op& inner : p_.blocks[b].ops) add(inner);
    }
    return touched;
  }
  static void Append(const std::vector<VarId>& slot, std::vector<VarId>* to) {
    for (VarId v : slot)
      if (v != kNoVar) to->push_back(v);
  }

  Status Visit(ir::Op op) {
    if (members_.empty() && !GivesStorage(op)) {
      out_.push_back({std::move(op)});
      return Status::Ok();
    }
    const Touched touched = TouchedBy(op);
    for (VarId v : touched.reads) HEDDLE_RETURN_IF_ERROR(Refresh(v, &op));
    if (touched.nested) {
      // A variable that its blocks do not write keeps its value.
      for (VarId v : touched.writes) HEDDLE_RETURN_IF_ERROR(Refresh(v, &op));
      HEDDLE_RETURN_IF_ERROR(CheckNested(touched, op));
    }
    if (op.def->traits() & kSharesStorage) return Share(std::move(op));
    if (op.def->traits() & kSharesParts) return ShareParts(std::move(op));
    const ir::Op cause = BareCopy(op);
    out_.push_back({std::move(op)});
    for (VarId v : touched.writes) NoteWrite(v, cause);
    return Status::Ok();
  }

  Status CheckNested(const Touched& touched, const ir::Op& op) {
    for (VarId v : touched.writes) {
      const Member* written = Find(v);
      if (written == nullptr) continue;
      for (const auto* list : {&touched.reads, &touched.writes})
        for (VarId u : *list)
          if (const Member* other = Find(u); other != nullptr && Overlap(*written, *other))
            return Unimplemented("variables '", p_.vars[v].name, "' and '", p_.vars[u].name,
                                 "' share one storage, and the blocks that the operator runs write "
                                 "to the former and use both")
                .At(p_.Locate(block_, op));
    }
    return Status::Ok();
  }

  // For messages about, and the place of, operators that another one is the cause of.
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
    if (block_ > 0 && p_.vars[v].block != block_) {
      const Status refused = Unimplemented(
          "variable '", p_.vars[v].name,
          "' of an outer block shares its storage with one that block ", block_, " writes to");
      return cause == nullptr ? refused : refused.At(p_.Locate(block_, *cause));
    }
    m->valid = true;
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
    SetSlot(&op.outputs, 0, storages_[m->storage].var);
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

  // A storage with the value of `v`.
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

  // Drops what was added and nobody needs. True when some copy is left.
  bool DropUnread() {
    std::set<VarId> read;
    bool copies = false;
    std::vector<Item> kept;
    for (size_t i = out_.size(); i-- > 0;) {
      Item& item = out_[i];
      if (item.added) {
        const VarId v = OutputOf(item.op);
        const bool needed = read.count(v) > 0 || (IsStorage(v) ? false : Outlives(v));
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
  std::vector<Item> out_;
  std::vector<Storage> storages_;
  std::vector<Member> members_;
};

}  // namespace

std::span<const std::string_view> StorageOps() { return kStorageOps; }

Result<std::shared_ptr<const ir::Program>> MakeAliasesExplicit(
    const std::shared_ptr<const ir::Program>& program, const std::set<VarId>& kept) {
  if (!AnyGivesStorage(*program)) return program;
  auto copy = std::make_shared<ir::Program>(*program);
  bool changed = false;
  for (int b = 0; b < static_cast<int>(copy->blocks.size()); ++b) {
    HEDDLE_ASSIGN_OR_RETURN(const bool block_changed, BlockRewriter(copy.get(), b, kept).Run());
    changed = changed || block_changed;
  }
  if (!changed) return program;
  return std::shared_ptr<const ir::Program>(std::move(copy));
}

}  // namespace heddle::passes
