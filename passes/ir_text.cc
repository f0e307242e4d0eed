#include "passes/ir_text.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "core/error.h"

namespace heddle::ir {
namespace {

struct AttrWriter {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const {
    char text[32];
    return {text, std::to_chars(text, text + sizeof(text), v).ptr};
  }
  std::string operator()(const std::string& v) const { return '"' + v + '"'; }
  std::string operator()(BlockRef v) const { return "block " + std::to_string(v.id); }
  template <typename T>
  std::string operator()(const std::vector<T>& list) const {
    std::string text = "[";
    for (const T& v : list) text += (text.size() > 1 ? ", " : "") + (*this)(v);
    return text + "]";
  }
};

std::string VarText(const Var& v) {
  constexpr const char* kKinds[] = {"", "rows ", "array ", "scopes ", "feeds ", "fetches ", "raw "};
  return StrCat(v.name, ": ", kKinds[static_cast<int>(v.kind)], Name(v.dtype), " ",
                v.shape.ToString(), v.persistable ? " persistable" : "");
}

// Slots with their variables, such as "X=[a, b] Y=[c]"; empty slots are left out.
std::string SlotsText(const Program& p, const std::vector<SlotDef>& defs,
                      const std::vector<std::vector<VarId>>& slots) {
  std::string text;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].empty()) continue;
    text += (text.empty() ? "" : " ") + (s < defs.size() ? defs[s].name : "attribute") + "=[";
    for (size_t i = 0; i < slots[s].size(); ++i) {
      const VarId v = slots[s][i];
      text += (i ? ", " : "") + (v == kNoVar ? "-" : p.vars[v].name);
      // The block is added, since a name may mean another variable in another block.
      if (v != kNoVar && p.vars[v].block != 0) text += "/" + std::to_string(p.vars[v].block);
    }
    text += "]";
  }
  return text;
}

std::string OpText(const Program& p, const Op& op) {
  std::string text = SlotsText(p, op.def->outputs(), op.outputs);
  text += (text.empty() ? "" : " = ") + op.type() + "(" +
          SlotsText(p, op.def->inputs(), op.inputs) + ")";
  for (size_t a = 0; a < op.attrs.size(); ++a)
    if (op.attrs[a] != op.def->attrs()[a].default_value)
      text += " " + op.def->attrs()[a].name + "=" + AttrText(op.attrs[a]);
  for (int a : op.var_attrs) text += " " + op.def->attrs()[a].name + "=variable";
  if (!op.has_control_edges()) return text;
  for (const int64_t mark : op.hints->marks) text += " mark " + std::to_string(mark);
  for (const int64_t mark : op.hints->after) text += " after " + std::to_string(mark);
  return text;
}

std::string PortsText(const Program& p, const char* word, const std::vector<Port>& ports) {
  std::string text;
  for (const Port& f : ports)
    text += StrCat("  ", word, " ", f.col, ": ", f.var == kNoVar ? "-" : p.vars[f.var].name, "\n");
  return text;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

class DotWriter {
 public:
  explicit DotWriter(const Program& p) : p_(p), last_(p.vars.size()) {}

  std::string Run() {
    out_ = "digraph program {\n  node [shape=box];\n";
    for (const Port& f : p_.feeds)
      if (f.var != kNoVar) AddPort("feed" + std::to_string(f.col), f.var, true);
    AddBlock(0);
    for (const Block& b : p_.blocks)
      if (b.id != 0) AddBlock(b.id);
    for (const Port& f : p_.fetches)
      if (f.var != kNoVar) AddPort("fetch" + std::to_string(f.col), f.var, false);
    return out_ + edges_ + "}\n";
  }

 private:
  void AddPort(const std::string& node, VarId v, bool feed) {
    out_ += "  " + node + " [shape=ellipse, label=" + Quoted(p_.vars[v].name) + "];\n";
    if (feed)
      last_[v] = node;
    else
      Edge(v, node);
  }
  void Edge(VarId v, const std::string& to) {
    if (v == kNoVar || last_[v].empty()) return;
    edges_ += "  " + last_[v] + " -> " + to + " [label=" + Quoted(p_.vars[v].name) + "];\n";
  }
  void AddBlock(int b) {
    const std::string id = std::to_string(b);
    out_ += "  subgraph cluster_" + id + " {\n    label=\"block " + id + "\";\n";
    for (size_t i = 0; i < p_.blocks[b].ops.size(); ++i) {
      const Op& op = p_.blocks[b].ops[i];
      const std::string node = "op" + id + "_" + std::to_string(i);
      out_ += "    " + node + " [label=" + Quoted(op.type()) + "];\n";
      for (const auto& slot : op.inputs)
        for (VarId v : slot) Edge(v, node);
      for (const auto& slot : op.outputs)
        for (VarId v : slot)
          if (v != kNoVar) last_[v] = node;
    }
    out_ += "  }\n";
  }

  const Program& p_;
  std::vector<std::string> last_;  // per variable: the node of its latest writer
  std::string out_, edges_;
};

// Hashes values.
class Hasher {
 public:
  Hasher() { XXH64_reset(&state_, 0); }
  template <typename T>
  void Add(const T& v) {
    if constexpr (std::is_same_v<T, std::string>) {
      Add(v.size());
      XXH64_update(&state_, v.data(), v.size());
    } else if constexpr (std::is_same_v<T, BlockRef>) {
      Add(v.id);
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
      XXH64_update(&state_, &v, sizeof(v));
    }
  }
  template <typename T>
  void Add(const std::vector<T>& list) {
    Add(list.size());
    for (const T& v : list) Add(v);
  }
  void Add(const Op& op) {
    Add(op.inputs);
    Add(op.outputs);
    AddAttrs(op);
    if (!op.has_control_edges()) return;
    Add(op.hints->marks);
    Add(op.hints->after);
  }
  void AddAttrs(const Op& op) {
    XXH64_update(&state_, &op.def, sizeof(op.def));
    for (const AttrValue& a : op.attrs) {
      Add(a.index());
      std::visit([&](const auto& v) { Add(v); }, a);
    }
    Add(op.var_attrs);
  }
  uint64_t value() const { return XXH64_digest(&state_); }

 private:
  XXH64_state_t state_;
};

}  // namespace

std::string AttrText(const AttrValue& value) { return std::visit(AttrWriter{}, value); }

std::string ToText(const Program& p) {
  std::string text;
  std::vector<std::vector<std::string>> vars(p.blocks.size());
  std::vector<bool> used(p.vars.size(), false);
  const auto use = [&](const std::vector<std::vector<VarId>>& slots) {
    for (const auto& slot : slots)
      for (VarId v : slot)
        if (v != kNoVar) used[v] = true;
  };
  for (const Block& b : p.blocks) {
    for (const Op& op : b.ops) {
      use(op.inputs);
      use(op.outputs);
    }
  }
  for (VarId v = 0; v < p.vars.size(); ++v)
    if (used[v]) vars[p.vars[v].block].push_back(VarText(p.vars[v]));
  for (const Block& b : p.blocks) {
    text += StrCat("block ", b.id, ", parent ", b.parent, "\n");
    std::sort(vars[b.id].begin(), vars[b.id].end());
    for (const std::string& v : vars[b.id]) text += "  var " + v + "\n";
    if (b.id == 0) text += PortsText(p, "feed", p.feeds);
    for (const Op& op : b.ops) text += "  " + OpText(p, op) + "\n";
    if (b.id == 0) text += PortsText(p, "fetch", p.fetches);
  }
  return text;
}

std::string ToDot(const Program& program) { return DotWriter(program).Run(); }

uint64_t Fingerprint(const Program& p) {
  Hasher h;
  h.Add(p.vars.size());
  for (const Var& v : p.vars) {
    h.Add(v.name);
    h.Add(v.block);
    h.Add(v.kind);
    h.Add(v.dtype);
    h.Add(v.persistable);
    h.Add(v.shape.rank());
    for (int64_t d : v.shape) h.Add(d);
  }
  for (const Block& b : p.blocks) {
    h.Add(b.parent);
    h.Add(b.forward_block);
    h.Add(b.ops.size());
    for (const Op& op : b.ops) h.Add(op);
  }
  for (const auto* ports : {&p.feeds, &p.fetches}) {
    h.Add(ports->size());
    for (const Port& f : *ports) {
      h.Add(f.var);
      h.Add(f.col);
    }
  }
  return h.value();
}

uint64_t AttrFingerprint(const Op& op) {
  Hasher h;
  h.AddAttrs(op);
  return h.value();
}

}  // namespace heddle::ir
