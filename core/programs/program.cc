// Accessors of Program, and descriptions of operators. Functions that read and write programs are
// in formats/load.cc.
#include "heddle/program.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/contracts/contract.h"
#include "core/error.h"
#include "core/op_registry.h"
#include "core/op_traits.h"
#include "core/programs/ir.h"

namespace heddle {
namespace {

TensorInfo InfoOf(const ir::Program& p, ir::VarId id) {
  const ir::Var& v = p.vars[id];
  return {v.name, v.dtype, v.shape};
}

// The flags as " (list, optional)"; empty for a plain slot.
std::string FlagText(unsigned flags) {
  std::string text;
  const std::pair<unsigned, const char*> words[] = {{kList, "list"},
                                                    {kOptional, "optional"},
                                                    {kNoBuffer, "shape only"},
                                                    {kShapeValue, "decides shapes"}};
  for (const auto& [flag, word] : words)
    if (flags & flag) text += (text.empty() ? " (" : ", ") + std::string(word);
  return text.empty() ? text : text + ")";
}

std::string TraitText(unsigned traits) {
  std::string text;
  const std::pair<unsigned, const char*> words[] = {{kRandom, "draws random numbers"},
                                                    {kSideEffect, "has side effects"},
                                                    {kControlFlow, "runs blocks"},
                                                    {kSharesStorage, "shares storage"},
                                                    {kSharesParts, "shares storage"}};
  for (const auto& [trait, word] : words)
    if (traits & trait) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

struct AttrText {
  std::string operator()(bool v) const { return v ? "bool = true" : "bool = false"; }
  std::string operator()(int64_t v) const { return StrCat("int = ", v); }
  std::string operator()(double v) const { return StrCat("float = ", v); }
  std::string operator()(const std::string& v) const { return "string = \"" + v + "\""; }
  std::string operator()(BlockRef) const { return "block"; }
  std::string operator()(const std::vector<BlockRef>&) const { return "blocks"; }
  std::string operator()(const Ints& v) const { return List("ints", v); }
  std::string operator()(const Floats& v) const { return List("floats", v); }
  std::string operator()(const Strings& v) const { return List("strings", v); }
  template <typename T>
  static std::string List(const char* kind, const std::vector<T>& v) {
    std::string s = StrCat(kind, " = [");
    for (size_t i = 0; i < v.size(); ++i) s += StrCat(i ? ", " : "", v[i]);
    return s + "]";
  }
};

}  // namespace

std::vector<TensorInfo> Program::inputs() const {
  std::vector<TensorInfo> out;
  for (const ir::Port& f : impl_->feeds) out.push_back(InfoOf(*impl_, f.var));
  return out;
}

namespace {

// Calls fn(flags, variable) for each tensor of block 0 that is no parameter and that the operator
// itself names.
template <typename Fn>
void ForOwnTensors(const ir::Program& p, const ir::Op& op, bool outputs, Fn&& fn) {
  const auto& defs = outputs ? op.def->outputs() : op.def->inputs();
  const auto& slots = outputs ? op.outputs : op.inputs;
  for (size_t s = 0; s < slots.size(); ++s)
    for (ir::VarId v : slots[s])
      if (v != ir::kNoVar && p.vars[v].block == 0 && !p.vars[v].persistable &&
          p.vars[v].kind == ir::VarKind::kTensor)
        fn(s < defs.size() ? defs[s].flags : 0u, v);
}

// Calls fn(flags of the slot, variable) for the operands, of an operator and of the operators in
// its blocks, that are tensors of block 0 and no parameters. `entered`: blocks that have been
// visited.
template <typename Fn>
void ForTensors(const ir::Program& p, const ir::Op& op, bool outputs, std::set<int>* entered,
                Fn&& fn) {
  ForOwnTensors(p, op, outputs, fn);
  for (int b : op.SubBlocks())
    if (entered->insert(b).second)
      for (const ir::Op& inner : p.blocks[static_cast<size_t>(b)].ops)
        ForTensors(p, inner, outputs, entered, fn);
}
template <typename Fn>
void ForTensors(const ir::Program& p, const ir::Op& op, bool outputs, Fn&& fn) {
  std::set<int> entered;
  ForTensors(p, op, outputs, &entered, fn);
}

}  // namespace

std::vector<TensorInfo> Program::unwritten() const {
  std::vector<bool> known(impl_->vars.size(), false);
  std::vector<TensorInfo> out;
  std::set<int> entered;
  // Reads and writes of an operator's blocks come in their order, between its own.
  const auto visit = [&](const auto& self, const ir::Op& op) -> void {
    ForOwnTensors(*impl_, op, false, [&](unsigned flags, ir::VarId v) {
      if (known[v] || ((flags & kOptional) && !impl_->vars[v].input)) return;
      known[v] = true;
      out.push_back(InfoOf(*impl_, v));
    });
    for (const int b : op.SubBlocks())
      if (entered.insert(b).second)
        for (const ir::Op& inner : impl_->blocks[static_cast<size_t>(b)].ops) self(self, inner);
    ForOwnTensors(*impl_, op, true, [&](unsigned, ir::VarId v) { known[v] = true; });
  };
  for (const ir::Op& op : impl_->blocks[0].ops) visit(visit, op);
  return out;
}

std::vector<TensorInfo> Program::results() const {
  if (const std::string name = loss(); !name.empty()) return {InfoOf(*impl_, impl_->Find(0, name))};
  std::vector<bool> done(impl_->vars.size(), false);
  for (const ir::Op& op : impl_->blocks[0].ops)
    ForTensors(*impl_, op, false, [&](unsigned, ir::VarId v) { done[v] = true; });
  std::vector<TensorInfo> out;
  for (const ir::Op& op : impl_->blocks[0].ops)
    ForTensors(*impl_, op, true, [&](unsigned flags, ir::VarId v) {
      if (done[v] || (flags & (kOptional | kNoData | kRecord))) return;
      done[v] = true;
      out.push_back(InfoOf(*impl_, v));
    });
  return out;
}

std::vector<TensorInfo> Program::written() const {
  std::vector<bool> done(impl_->vars.size(), false);
  std::vector<TensorInfo> out;
  for (const ir::Op& op : impl_->blocks[0].ops)
    ForTensors(*impl_, op, true, [&](unsigned flags, ir::VarId v) {
      if (done[v] || impl_->vars[v].persistable || (flags & (kNoData | kRecord))) return;
      done[v] = true;
      out.push_back(InfoOf(*impl_, v));
    });
  return out;
}

std::vector<TensorInfo> Program::persistables() const {
  std::vector<TensorInfo> out;
  for (ir::VarId id = 0; id < impl_->vars.size(); ++id) {
    const ir::Var& v = impl_->vars[id];
    if (v.persistable && v.block == 0 &&
        (v.kind == ir::VarKind::kTensor || v.kind == ir::VarKind::kRows))
      out.push_back(InfoOf(*impl_, id));
  }
  std::sort(out.begin(), out.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  return out;
}

std::optional<TensorInfo> Program::variable(std::string_view name) const {
  const ir::VarId id = impl_->Find(0, name);
  if (id == ir::kNoVar || impl_->vars[id].block != 0) return std::nullopt;
  return InfoOf(*impl_, id);
}

std::vector<Program::OpCount> Program::op_counts() const {
  std::map<std::string, int> counts;
  for (const auto& block : impl_->blocks)
    for (const auto& op : block.ops) ++counts[op.type()];
  std::vector<OpCount> out;
  for (const auto& [type, n] : counts) out.push_back({type, n});
  std::stable_sort(out.begin(), out.end(),
                   [](const OpCount& a, const OpCount& b) { return a.count > b.count; });
  return out;
}

// append_backward begins with a fill_constant of 1 for the gradient of the loss.
std::string Program::loss() const {
  constexpr std::string_view kSuffix = "@GRAD";
  for (const ir::Op& op : impl_->blocks[0].ops) {
    if (op.type() != "fill_constant" || op.Attr<double>("value") != 1.0) continue;
    for (const ir::VarId id : op.Out("Out")) {
      const std::string gradient = id == ir::kNoVar ? "" : impl_->vars[id].name;
      if (!gradient.ends_with(kSuffix)) continue;
      const std::string name = gradient.substr(0, gradient.size() - kSuffix.size());
      if (impl_->Find(0, name) != ir::kNoVar) return name;
    }
  }
  return "";
}

int Program::num_blocks() const { return static_cast<int>(impl_->blocks.size()); }

int Program::num_ops() const {
  size_t n = 0;
  for (const auto& block : impl_->blocks) n += block.ops.size();
  return static_cast<int>(n);
}

int64_t Program::version() const { return impl_->version; }
uint64_t Program::hash() const { return impl_->hash; }

std::vector<std::string> SupportedOps() {
  std::vector<std::string> names;
  for (const OpDef* def : AllOps()) names.push_back(def->name());
  return names;
}

Result<std::string> DescribeOp(const std::string& type) {
  const OpDef* def = FindOp(type);
  if (def == nullptr) return NotFound("heddle has no operator '", type, "'");
  std::string text = type + ": " + (def->doc().empty() ? "(no description)" : def->doc()) + "\n";
  for (const SlotDef& s : def->inputs()) text += "  in   " + s.name + FlagText(s.flags) + "\n";
  for (const SlotDef& s : def->outputs()) text += "  out  " + s.name + FlagText(s.flags) + "\n";
  for (const AttrDef& a : def->attrs())
    text += "  attr " + a.name + ": " + std::visit(AttrText{}, a.default_value) + "\n";
  if (def->contract() != nullptr) text += "  contract " + def->contract()->text() + "\n";
  const auto pairs = [&](const char* word, const std::vector<OpDef::SlotPair>& all) {
    for (const OpDef::SlotPair& p : all)
      text += StrCat("  ", word, " ", def->inputs()[p.in].name, " -> ", def->outputs()[p.out].name,
                     "\n");
  };
  pairs("in-place", def->inplace());
  pairs("view", def->views());
  if (def->traits() != 0 && !TraitText(def->traits()).empty())
    text += "  traits " + TraitText(def->traits()) + "\n";
  if (FindOp(type + "_grad") != nullptr) text += "  gradient " + type + "_grad\n";
  text += "  dtypes " + def->KernelDTypes() + "\n";
  HEDDLE_ASSIGN_OR_RETURN(const std::string source, SourceOfOp(type));
  if (!source.empty()) text += "  source " + source + "\n";
  return text;
}

}  // namespace heddle
