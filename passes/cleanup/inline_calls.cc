// Replaces a call of a block by the block's operators.
#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

bool IsCall(const ir::Op& op) { return op.type() == "call"; }

// A limit, since blocks that call each other several times make the program grow exponentially.
constexpr size_t kMostOps = 1 << 17;

class Inliner {
 public:
  explicit Inliner(ir::Program& program) : p_(program) {}

  Result<bool> Run() {
    bool changed = false;
    for (const ir::Block& b : p_.blocks) count_ += b.ops.size();
    tree_.List(p_);
    const size_t blocks = p_.blocks.size();  // blocks made on the way are handled in the next round
    for (size_t b = 0; b < blocks; ++b) {
      HEDDLE_ASSIGN_OR_RETURN(const bool some, Sweep(static_cast<int>(b)));
      changed = changed || some;
    }
    if (changed) EmptyUnused();
    return changed;
  }

 private:
  // Inlines one level of calls.
  Result<bool> Sweep(int block) {
    const auto calls_here = [](const ir::Block& b) {
      return std::any_of(b.ops.begin(), b.ops.end(), IsCall);
    };
    if (!calls_here(p_.blocks[static_cast<size_t>(block)])) return false;
    bool changed = false;
    std::vector<ir::Op> before = std::move(p_.blocks[static_cast<size_t>(block)].ops), after;
    p_.blocks[static_cast<size_t>(block)].ops.clear();
    for (ir::Op& op : before) {
      if (!IsCall(op)) {
        after.push_back(std::move(op));
        continue;
      }
      const int sub = op.Attr<BlockRef>("sub_block").id;
      if (Status s = Check(op, sub); !s.ok()) return s;
      const size_t size = p_.blocks[static_cast<size_t>(sub)].ops.size();
      if (op.Attr<bool>("noinline") || op.has_control_edges() || count_ + size > kMostOps ||
          !MayInline(block, sub)) {
        after.push_back(std::move(op));
        continue;
      }
      Expand(op, block, sub, &after);
      count_ += size;
      changed = true;
    }
    p_.blocks[static_cast<size_t>(block)].ops = std::move(after);
    return changed;
  }

  Status Check(const ir::Op& op, int sub) const {
    const auto fail = [&](const auto&... what) {
      return InvalidArgument("call of block ", sub, ": ", what...);
    };
    const auto match = [&](const char* what, const std::vector<VarId>& outer,
                           const std::vector<VarId>& inner, const Strings& names) {
      if (outer.size() != names.size() || inner.size() != names.size())
        return fail("it has ", names.size(), " ", what, "s, the call names ", outer.size());
      for (size_t i = 0; i < names.size(); ++i)
        if (inner[i] == kNoVar || p_.vars[inner[i]].block != sub)
          return fail("it declares no variable '", names[i], "'");
      return Status::Ok();
    };
    HEDDLE_RETURN_IF_ERROR(match("parameter", op.In("X"), op.Out("sub_block:parameters"),
                                 op.Attr<Strings>("parameters")));
    return match("result", op.Out("Out"), op.In("sub_block:results"), op.Attr<Strings>("results"));
  }

  bool Within(int block, int outer) const {
    while (block > 0 && block != outer) block = p_.blocks[static_cast<size_t>(block)].parent;
    return block == outer;
  }

  // Whether all outer variables of the block are visible at the call, and no operator in it names
  // variables in attributes.
  bool MayInline(int block, int sub) {
    if (!Within(block, p_.blocks[static_cast<size_t>(sub)].parent)) return false;
    // Blocks that were inlined into this one since then have been checked as well.
    const auto [known, is_new] = may_copy_.try_emplace(sub, false);
    if (is_new) known->second = MayCopy(sub);
    return known->second;
  }
  bool MayCopy(int sub) const {
    for (const int b : tree_.Under(sub)) {
      if (tree_.has_gradient[static_cast<size_t>(b)]) return false;
      for (const ir::Op& op : p_.blocks[static_cast<size_t>(b)].ops) {
        LookForInterrupt();
        if (op.has_control_edges()) return false;  // copies would have the same marks
        const auto by_name = [](const SlotDef& s) { return s.name.starts_with("sub_block:"); };
        if (!IsCall(op) &&
            (std::any_of(op.def->inputs().begin(), op.def->inputs().end(), by_name) ||
             std::any_of(op.def->outputs().begin(), op.def->outputs().end(), by_name)))
          return false;
      }
    }
    return true;
  }

  void Expand(const ir::Op& call, int block, int sub, std::vector<ir::Op>* out) {
    Copier copier{p_, tree_, block, sub, {}, {}};
    copier.Prepare();
    const auto assign = [&](VarId from, VarId to) {
      ir::Op op = ir::MakeOp(*FindOp("assign"));
      op.index = call.index;
      op.call_stack = call.call_stack;
      op.device = call.device;
      op.inputs[op.def->FindInput("X")] = {from};
      op.outputs[op.def->FindOutput("Out")] = {to};
      out->push_back(std::move(op));
    };
    for (size_t i = 0; i < call.In("X").size(); ++i)
      if (call.In("X")[i] != kNoVar)
        assign(call.In("X")[i], copier.Map(call.Out("sub_block:parameters")[i]));
    const auto body = p_.blocks[static_cast<size_t>(sub)].ops;
    for (const ir::Op& op : body) {
      out->push_back(copier.Map(op));
      if (out->back().device.empty()) out->back().device = call.device;
    }
    for (size_t i = 0; i < call.Out("Out").size(); ++i)
      if (call.Out("Out")[i] != kNoVar)
        assign(copier.Map(call.In("sub_block:results")[i]), call.Out("Out")[i]);
  }

  // Lists, for each block, the blocks inside it and its own variables, so that inlining a call
  // takes time proportional to the block and not to the program.
  struct Tree {
    void List(const ir::Program& p) {
      has_gradient.resize(p.blocks.size());
      for (const ir::Block& b : p.blocks) {
        AddBlock(b);
        if (b.forward_block >= 0 && b.forward_block < std::ssize(has_gradient))
          has_gradient[static_cast<size_t>(b.forward_block)] = true;
      }
      for (VarId v = 0; v < p.vars.size(); ++v) AddVar(v, p.vars[v].block);
    }
    void AddBlock(const ir::Block& b) {
      const size_t count = static_cast<size_t>(std::max(b.id, b.parent)) + 1;
      if (children.size() < count) children.resize(count), vars.resize(count);
      has_gradient.resize(std::max(has_gradient.size(), count));
      if (b.parent >= 0) children[static_cast<size_t>(b.parent)].push_back(b.id);
    }
    void AddVar(VarId v, int block) { vars[static_cast<size_t>(block)].push_back(v); }
    // The block and all blocks inside it, ascending.
    std::vector<int> Under(int block) const {
      std::vector<int> all = {block};
      for (size_t i = 0; i < all.size(); ++i)
        for (const int child : children[static_cast<size_t>(all[i])]) all.push_back(child);
      std::sort(all.begin(), all.end());
      return all;
    }

    std::vector<std::vector<int>> children;
    std::vector<std::vector<VarId>> vars;
    std::vector<bool> has_gradient;  // per block: whether another block is its gradient
  };

  // Copies the variables of a block into another block, and the blocks inside it to new blocks.
  struct Copier {
    ir::Program& p;
    Tree& tree;
    const int block, sub;
    std::unordered_map<VarId, VarId> vars;
    std::unordered_map<int, int> blocks;

    void Prepare() {
      blocks[sub] = block;
      std::vector<VarId> declared;
      for (const int b : tree.Under(sub)) {
        const auto& own = tree.vars[static_cast<size_t>(b)];
        declared.insert(declared.end(), own.begin(), own.end());
        if (b == sub) continue;
        ir::Block copy;
        copy.id = static_cast<int>(p.blocks.size());
        copy.parent = blocks.at(p.blocks[static_cast<size_t>(b)].parent);
        blocks[b] = copy.id;
        tree.AddBlock(copy);
        p.blocks.push_back(std::move(copy));
      }
      std::sort(declared.begin(), declared.end());
      for (const VarId v : declared) {
        ir::Var copy = p.vars[v];
        copy.block = blocks.at(copy.block);
        if (copy.block == block) copy.name = p.FreshName(copy.name);
        tree.AddVar(static_cast<VarId>(p.vars.size()), copy.block);
        vars[v] = p.AddVar(std::move(copy));
      }
      for (const auto& [from, to] : blocks) {
        if (from == sub) continue;
        const auto ops = p.blocks[static_cast<size_t>(from)].ops;
        for (const ir::Op& op : ops) p.blocks[static_cast<size_t>(to)].ops.push_back(Map(op));
      }
    }
    VarId Map(VarId v) const {
      const auto found = vars.find(v);
      return found == vars.end() ? v : found->second;
    }
    ir::Op Map(ir::Op op) const {
      for (auto* slots : {&op.inputs, &op.outputs})
        for (auto& slot : *slots)
          for (VarId& v : slot) v = Map(v);
      const auto map = [&](BlockRef* b) {
        if (const auto found = blocks.find(b->id); found != blocks.end()) b->id = found->second;
      };
      for (AttrValue& a : op.attrs) {
        if (auto* one = std::get_if<BlockRef>(&a)) map(one);
        if (auto* many = std::get_if<std::vector<BlockRef>>(&a))
          for (BlockRef& b : *many) map(&b);
      }
      return op;
    }
  };

  // Empties blocks that no operator runs.
  void EmptyUnused() {
    std::vector<bool> used(p_.blocks.size(), false);
    const auto visit = [&](auto& self, int b) -> void {
      used[static_cast<size_t>(b)] = true;
      for (const ir::Op& op : p_.blocks[static_cast<size_t>(b)].ops)
        for (int sub : op.SubBlocks())
          if (sub > 0 && sub < static_cast<int>(used.size()) && !used[static_cast<size_t>(sub)])
            self(self, sub);
    };
    visit(visit, 0);
    for (size_t b = 0; b < used.size(); ++b)
      if (!used[b]) p_.blocks[b].ops.clear();
  }

  ir::Program& p_;
  Tree tree_;
  std::unordered_map<int, bool> may_copy_;  // by block
  size_t count_ = 0;                        // operators, including those of inlined calls
};

Result<bool> RunInlineCalls(ir::Program& program, PassContext&) {
  for (const ir::Block& b : program.blocks)
    if (std::any_of(b.ops.begin(), b.ops.end(), IsCall)) return Inliner(program).Run();
  return false;
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(inline_calls) {
  pass.doc = "replaces a call of a block by the block's operators, one level per round";
  pass.before = "y = call(x), block 1: { r = relu(p) }, parameters p, results r";
  pass.after = "p1 = assign(x); r1 = relu(p1); y = assign(r1)";
  pass.refuses =
      "calls with noinline; blocks declared where the call cannot see them; blocks with "
      "gradients, or with operators that know their block's variables by name (recurrent); calls "
      "that would make the program larger than 131,072 operators. An error: a wrong number of "
      "values. (Recursion, direct or not, is refused when the program is read.)";
  pass.level = 1;
  pass.repeat = true;
  pass.seeks = OfTypes({"call"});
  pass.run = RunInlineCalls;
}
