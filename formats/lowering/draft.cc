#include "formats/lowering/draft.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/interrupts.h"
#include "core/programs/program_builder.h"

namespace heddle::formats {
namespace {

// Collects the variables outside of a sub-block that its operators read (or write), each once; for
// one sub-block after another.
class Outside {
 public:
  explicit Outside(const Draft& draft) : draft_(draft), seen_in_(draft.vars.size(), 0) {}
  void Begin(int sub_block) {
    sub_block_ = sub_block;
    ++turn_;
  }
  void Add(const std::vector<int>& vars) {
    for (int v : vars) {
      if (v == kNoDraft || draft_.vars[static_cast<size_t>(v)].block == sub_block_) continue;
      if (std::exchange(seen_in_[static_cast<size_t>(v)], turn_) != turn_) vars_.push_back(v);
    }
  }
  std::vector<int> Take() { return std::exchange(vars_, {}); }

 private:
  const Draft& draft_;
  int sub_block_ = -1;
  uint32_t turn_ = 0;
  std::vector<uint32_t> seen_in_;  // by variable: the last turn in which it was added
  std::vector<int> vars_;
};

void FillControlSlots(const Draft& draft, Outside& read, Outside& written, DraftOp* op) {
  read.Begin(op->sub_block);
  written.Begin(op->sub_block);
  for (const DraftOp& inner : draft.blocks[static_cast<size_t>(op->sub_block)].ops) {
    LookForInterrupt();
    for (const auto& [slot, vars] : inner.inputs) read.Add(vars);
    for (const auto& [attribute, vars] : inner.attributes_from) read.Add(vars);
    for (const auto& [slot, vars] : inner.outputs) written.Add(vars);
  }
  op->inputs.emplace_back(op->type == "while" ? "X" : "Input", read.Take());
  op->outputs.emplace_back("Out", written.Take());
}

// Drops optional operators whose output is not read. It goes backwards, since a dropped operator
// may be the only reader of an earlier one's output.
void DropUnread(Draft* draft) {
  std::vector<int> readers(draft->vars.size());
  const auto count = [&](const DraftOp& op, int by) {
    for (const auto& [slot, vars] : op.inputs)
      for (int v : vars)
        if (v != kNoDraft) readers[static_cast<size_t>(v)] += by;
    for (const auto& [attribute, vars] : op.attributes_from)
      for (int v : vars)
        if (v != kNoDraft) readers[static_cast<size_t>(v)] += by;
  };
  for (const DraftBlock& block : draft->blocks)
    for (const DraftOp& op : block.ops) count(op, 1);
  for (const auto& [var, column] : draft->fetches) ++readers[static_cast<size_t>(var)];
  for (size_t b = draft->blocks.size(); b-- > 0;) {
    std::vector<DraftOp>& ops = draft->blocks[b].ops;
    std::vector<bool> unread(ops.size());
    for (size_t i = ops.size(); i-- > 0;) {
      if (!ops[i].optional) continue;
      const auto made = static_cast<size_t>(ops[i].outputs[0].second[0]);
      if (readers[made] > 0 || draft->vars[made].named) continue;
      unread[i] = true;
      count(ops[i], -1);
    }
    size_t i = 0;
    std::erase_if(ops, [&](const DraftOp&) { return unread[i++]; });
  }
}

class Emitter {
 public:
  Emitter(const Draft& draft, DraftLabel label, ir::ProgramBuilder* builder)
      : draft_(draft), label_(label), builder_(*builder), ids_(draft.vars.size(), ir::kNoVar) {}

  void Run() {
    builder_.ReserveBlocks(static_cast<int>(draft_.blocks.size()));
    for (const DraftBlock& block : draft_.blocks) builder_.AddBlock(block.parent, -1);
    builder_.ReserveVars(draft_.vars.size());
    for (const auto& [var, column] : draft_.feeds) builder_.AddFeed(Id(var), column);
    for (size_t v = 0; v < draft_.vars.size(); ++v)
      if (draft_.vars[v].persistable) Id(static_cast<int>(v));
    for (size_t b = 0; b < draft_.blocks.size(); ++b) {
      builder_.ReserveOps(static_cast<int>(b), draft_.blocks[b].ops.size());
      for (const DraftOp& op : draft_.blocks[b].ops) AddOp(static_cast<int>(b), op);
    }
    for (const auto& [var, column] : draft_.fetches) builder_.AddFetch(Id(var), column);
    labels_->Close();
  }

 private:
  // The program's variable, added at its first use, so that unused variables are left out.
  ir::VarId Id(int v) {
    if (v == kNoDraft) return ir::kNoVar;
    ir::VarId& id = ids_[static_cast<size_t>(v)];
    if (id != ir::kNoVar) return id;
    const DraftVar& draft = draft_.vars[static_cast<size_t>(v)];
    ir::Var var;
    var.name = draft.name;
    var.block = draft.block;
    var.kind = draft.kind;
    var.dtype = draft.dtype;
    var.persistable = draft.persistable;
    id = draft.ranked ? builder_.AddVar(std::move(var), draft.dims)
                      : builder_.AddVar(std::move(var));
    return id;
  }
  void Fill(const std::vector<int>& vars, std::vector<ir::VarId>* operands) {
    if (operands == nullptr) return;
    for (int v : vars) operands->push_back(Id(v));
  }

  // The label of the file's operator `source`. All operators made from one share its text.
  CallStack LabelOf(const void* source) {
    const auto [found, is_new] = label_of_.emplace(source, labels_->size());
    if (is_new) {
      labels_->BeginStack();
      labels_->Add(label_(source));
    }
    return {labels_, found->second, found->second + 1};
  }

  void AddOp(int block, const DraftOp& draft) {
    ir::OpBuilder op(builder_, block, draft.index, draft.type);
    if (!op) return;
    op.SetCallStack(LabelOf(draft.source));
    if (draft.role != 0) op.SetRole({draft.role, {}});
    for (const auto& [slot, vars] : draft.inputs)
      Fill(vars, op.Input(slot, static_cast<int>(vars.size())));
    for (const auto& [slot, vars] : draft.outputs)
      Fill(vars, op.Output(slot, static_cast<int>(vars.size())));
    for (const auto& [name, value] : draft.attributes)
      if (const int a = op.def().FindAttr(name); a >= 0) op.SetAttr(a, value);
    for (const auto& [name, vars] : draft.attributes_from) {
      std::vector<ir::VarId> ids;
      Fill(vars, &ids);
      op.SetAttrFrom(op.def().FindAttr(name), std::move(ids));
    }
    if (draft.sub_block >= 0)
      op.SetAttr(op.def().FindAttr("sub_block"), AttrValue(BlockRef{draft.sub_block}));
    builder_.Add(std::move(op));
  }

  const Draft& draft_;
  const DraftLabel label_;
  ir::ProgramBuilder& builder_;
  std::vector<ir::VarId> ids_;
  std::unordered_map<const void*, uint32_t> label_of_;  // per source: index into labels_
  const std::shared_ptr<CallStackTable> labels_ = std::make_shared<CallStackTable>();
};

}  // namespace

void FinishDraft(Draft* draft) {
  DropUnread(draft);
  // Inner blocks first: a variable that an inner block uses is used by the blocks around it too.
  Outside read(*draft), written(*draft);
  for (size_t b = draft->blocks.size(); b-- > 0;)
    for (DraftOp& op : draft->blocks[b].ops)
      if (op.sub_block >= 0) FillControlSlots(*draft, read, written, &op);
}

void Emit(const Draft& draft, DraftLabel label, ir::ProgramBuilder* builder) {
  Emitter(draft, label, builder).Run();
}

}  // namespace heddle::formats
