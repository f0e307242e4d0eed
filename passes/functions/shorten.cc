#include "passes/functions/shorten.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "passes/functions/outline_functions.h"
#include "passes/functions/stretches.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;
using Row = Stretches::Row;

class Shortener {
 public:
  Shortener(const ir::Program& program, const std::set<VarId>& kept)
      : p_(program), stretches_(program, kept), layer_of_(program.vars.size(), kNowhere) {}

  std::optional<Shortened> Run() {
    const std::vector<Row> rows = stretches_.Find({kLeastLayers, 4, 24});
    if (rows.empty()) return std::nullopt;
    row_ = *std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.period * a.count < b.period * b.count;
    });
    made_.layers = row_.count;
    made_.parameters.resize(row_.count);
    if (!ListParameters() || !LeavesOnlyItsLast()) return std::nullopt;
    made_.program = Build();
    return std::move(made_);
  }

 private:
  static constexpr size_t kNowhere = ~size_t{0};

  size_t BeginOf(size_t layer) const { return row_.begin + layer * row_.period; }
  const ir::Op& At(size_t layer, size_t j) const { return p_.blocks[0].ops[BeginOf(layer) + j]; }

  // Lists the layers' own parameters. False: some layer reads something else that its neighbours do
  // not read in the same way.
  bool ListParameters() {
    std::map<std::vector<VarId>, bool> known;  // operands, by layer
    std::vector<VarId> row(row_.count);
    for (size_t j = 0; j < row_.period; ++j) {
      LookForInterrupt();
      const ir::Op& first = At(0, j);
      for (size_t s = 0; s < first.inputs.size(); ++s) {
        for (size_t k = 0; k < first.inputs[s].size(); ++k) {
          if (first.inputs[s][k] == kNoVar) continue;
          for (size_t l = 0; l < row_.count; ++l) row[l] = At(l, j).inputs[s][k];
          const auto [at, is_new] = known.try_emplace(row, true);
          if (is_new && !IsRegular(row)) return false;
        }
      }
    }
    return true;
  }

  bool IsRegular(const std::vector<VarId>& row) {
    const Stretches::Use& last = stretches_.use(row.back());
    if (std::all_of(row.begin(), row.end(), [&](VarId v) { return v == row[0]; }))
      return last.writer == Stretches::kNone || last.writer < row_.begin;
    if (std::all_of(row.begin(), row.end(), [&](VarId v) { return p_.vars[v].persistable; }))
      return AddParameters(row);
    // The layer's own, or the previous layer's.
    const Stretches::Source from = stretches_.SourceOf(row.back(), row_.begin, row_.end());
    for (size_t l = 0; l < row.size(); ++l) {
      const Stretches::Use& use = stretches_.use(row[l]);
      const bool inside = use.writers == 1 && use.writer != Stretches::kNone &&
                          use.writer >= row_.begin && use.writer < BeginOf(l + 1);
      if (l == 0 && !inside) continue;
      if (!inside || last.writer - use.writer != BeginOf(row.size() - 1) - BeginOf(l)) return false;
      const Stretches::Source source = stretches_.SourceOf(row[l], row_.begin, row_.end());
      if (source.slot != from.slot || source.at != from.at) return false;
      if (use.writer + row_.period < BeginOf(l)) return false;
    }
    return true;
  }

  bool AddParameters(const std::vector<VarId>& row) {
    for (size_t l = 0; l < row.size(); ++l) {
      if (stretches_.use(row[l]).writers != 0 || layer_of_[row[l]] != kNowhere) return false;
      layer_of_[row[l]] = l;
      made_.parameters[l].push_back(p_.vars[row[l]].name);
    }
    return true;
  }

  // Whether what follows the layers reads values of the last one alone, and nothing else reads the
  // layers' own parameters.
  bool LeavesOnlyItsLast() const {
    bool only = true;
    const auto& ops = p_.blocks[0].ops;
    for (size_t i = 0; i < ops.size() && only; ++i) {
      LookForInterrupt();
      const bool inside = i >= row_.begin && i < row_.end();
      ForOperands(ops[i].inputs, [&](VarId v) {
        if (v == kNoVar) return;
        if (layer_of_[v] != kNowhere)
          only = only && inside && layer_of_[v] == (i - row_.begin) / row_.period;
        const size_t writer = stretches_.use(v).writer;
        if (i >= row_.end() && writer != Stretches::kNone && writer >= row_.begin &&
            writer < row_.end())
          only = only && writer >= BeginOf(row_.count - 1);
      });
    }
    for (size_t b = 1; b < p_.blocks.size() && only; ++b)
      for (const ir::Op& op : p_.blocks[b].ops)
        ForOperands(op.inputs,
                    [&](VarId v) { only = only && (v == kNoVar || layer_of_[v] == kNowhere); });
    for (VarId v = 0; v < layer_of_.size() && only; ++v)
      only = layer_of_[v] == kNowhere || !stretches_.use(v).held;
    return only;
  }

  std::shared_ptr<const ir::Program> Build() const {
    auto made = std::make_shared<ir::Program>();
    // Operators first, since most need not be copied.
    made->blocks.resize(p_.blocks.size());
    for (size_t b = 0; b < p_.blocks.size(); ++b) {
      if (b > 0) {
        made->blocks[b] = p_.blocks[b];
        continue;
      }
      made->blocks[0].id = p_.blocks[0].id;
      made->blocks[0].parent = p_.blocks[0].parent;
      made->blocks[0].forward_block = p_.blocks[0].forward_block;
      const auto& ops = p_.blocks[0].ops;
      const auto at = [&](size_t i) { return ops.begin() + static_cast<std::ptrdiff_t>(i); };
      auto& list = made->blocks[0].ops;
      list.assign(ops.begin(), at(BeginOf(kKeptLayers)));
      list.insert(list.end(), at(row_.end()), ops.end());
    }
    std::unordered_map<VarId, VarId> replaced;  // of the last layer, by its values
    for (size_t j = 0; j < row_.period; ++j) {
      const ir::Op &kept = At(kKeptLayers - 1, j), &last = At(row_.count - 1, j);
      for (size_t s = 0; s < last.outputs.size(); ++s)
        for (size_t k = 0; k < last.outputs[s].size(); ++k)
          if (last.outputs[s][k] != kNoVar) replaced[last.outputs[s][k]] = kept.outputs[s][k];
    }
    auto& list = made->blocks[0].ops;
    for (size_t i = BeginOf(kKeptLayers); i < list.size(); ++i)
      for (auto& slot : list[i].inputs)
        for (VarId& v : slot)
          if (const auto found = replaced.find(v); found != replaced.end()) v = found->second;
    // Variables of the layers that are left out go, the others keep their order.
    std::vector<bool> gone(p_.vars.size(), false);
    for (size_t i = BeginOf(kKeptLayers); i < row_.end(); ++i)
      ForOperands(p_.blocks[0].ops[i].outputs, [&](VarId v) {
        if (v != kNoVar) gone[v] = true;
      });
    for (VarId v = 0; v < gone.size(); ++v)
      gone[v] = gone[v] || (layer_of_[v] != kNowhere && layer_of_[v] >= kKeptLayers);
    std::vector<VarId> now(p_.vars.size(), kNoVar);
    for (VarId v = 0; v < p_.vars.size(); ++v)
      if (!gone[v]) now[v] = made->AddVar(p_.vars[v]);
    for (ir::Block& block : made->blocks)
      for (ir::Op& op : block.ops)
        for (auto* slots : {&op.inputs, &op.outputs})
          for (auto& slot : *slots)
            for (VarId& v : slot)
              if (v != kNoVar) v = now[v];
    made->feeds = p_.feeds;
    made->fetches = p_.fetches;
    for (auto* ports : {&made->feeds, &made->fetches})
      for (ir::Port& f : *ports)
        if (f.var != kNoVar) f.var = now[f.var];
    made->op_versions = p_.op_versions;
    made->version = p_.version;
    made->hash = p_.hash;
    made->name = p_.name;
    made->source = p_.source;
    return made;
  }

  const ir::Program& p_;
  const Stretches stretches_;
  std::vector<size_t> layer_of_;  // per variable: the layer whose own parameter it is
  Row row_;
  Shortened made_;
};

// Puts calls for the layers that were left out behind those that are there.
class Lengthener {
 public:
  Lengthener(const Shortened& shortened, const ir::Program& before, const Scope& folded,
             ir::Program& program)
      : shortened_(shortened), before_(before), folded_(folded), p_(program) {}

  bool Run() {
    FindParameters();
    if (!FindCalls() || !FindRules()) return false;
    Add();
    return RenameBehind() && EachOrNone();
  }

 private:
  // A layer's own parameter.
  struct Own {
    size_t layer = kNone, number = 0;
  };
  static constexpr size_t kNone = ~size_t{0};
  // What an operand of a call is to that of the call before.
  struct Rule {
    enum Kind { kSame, kNextLayer, kResult } kind = kSame;
    size_t result = 0;  // kResult: of the call before
  };

  Own OwnOf(VarId v) const { return v < own_.size() ? own_[v] : Own(); }

  void FindParameters() {
    for (size_t l = 0; l < kKeptLayers; ++l)
      for (size_t n = 0; n < shortened_.parameters[l].size(); ++n)
        if (const VarId v = p_.Find(0, shortened_.parameters[l][n]); v != kNoVar) {
          own_.resize(std::max<size_t>(own_.size(), v + 1));
          own_[v] = {l, n};
        }
  }

  bool Names(const ir::Op& op) const {
    bool names = false;
    ForOperands(op.inputs, [&](VarId v) { names = names || OwnOf(v).layer != kNone; });
    return names;
  }

  // The calls of the one function that is given layers' own parameters.
  bool FindCalls() {
    auto& ops = p_.blocks[0].ops;
    int body = -1;
    OutlinedCalls calls(p_);
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!Names(ops[i]) || !calls.Is(ops[i])) continue;
      const int block = ops[i].Attr<BlockRef>("sub_block").id;
      if (body >= 0 && (block != body || i != end_)) return false;
      if (body < 0) begin_ = i;
      body = block;
      end_ = i + 1;
    }
    return body >= 0 && end_ - begin_ >= 2;
  }

  bool SameContents(VarId a, VarId b) const {
    const auto tensor_of = [&](VarId v) -> const Tensor* {
      const Value* value = folded_.Find(p_.vars[v].name);
      return p_.vars[v].persistable && value != nullptr && value->is_tensor() &&
                     OwnOf(v).layer == kNone
                 ? &value->tensor()
                 : nullptr;
    };
    const Tensor *x = tensor_of(a), *y = tensor_of(b);
    return x != nullptr && y != nullptr && SameTensors(*x, *y);
  }

  bool FindRules() {
    const auto& ops = p_.blocks[0].ops;
    for (size_t c = begin_ + 1; c < end_; ++c) {
      const std::vector<VarId>&a = ops[c - 1].In("X"), &b = ops[c].In("X");
      const std::vector<VarId>& results = ops[c - 1].Out("Out");
      for (size_t k = 0; k < b.size(); ++k) {
        Rule rule;
        const Own x = OwnOf(a[k]), y = OwnOf(b[k]);
        const auto made = std::find(results.begin(), results.end(), b[k]);
        if (made != results.end())
          rule = {Rule::kResult, static_cast<size_t>(made - results.begin())};
        else if (x.layer != kNone && y.layer == x.layer + 1 && x.number == y.number)
          rule.kind = Rule::kNextLayer;
        else if (a[k] != b[k] && !SameContents(a[k], b[k]))
          return false;
        if (rules_.size() == k)
          rules_.push_back(rule);
        else if (rules_[k].kind != rule.kind || rules_[k].result != rule.result)
          return false;
      }
    }
    return true;
  }

  VarId ParameterOf(size_t layer, size_t number) {
    const std::string& name = shortened_.parameters[layer][number];
    VarId v = p_.Find(0, name);
    if (v == kNoVar) v = p_.AddVar(before_.vars[before_.Find(0, name)]);
    own_.resize(std::max<size_t>(own_.size(), v + 1));
    own_[v] = {layer, number};
    return v;
  }

  size_t more() const { return shortened_.layers - kKeptLayers; }

  void Add() {
    auto& ops = p_.blocks[0].ops;
    const ir::Op last = ops[end_ - 1];
    std::vector<ir::Op> added;
    for (size_t i = 1; i <= more(); ++i) {
      LookForInterrupt();
      ir::Op call = last;
      const ir::Op& before = added.empty() ? last : added.back();
      std::vector<VarId>& given = call.inputs[call.def->FindInput("X")];
      for (size_t k = 0; k < given.size(); ++k) {
        const Own own = OwnOf(given[k]);
        if (rules_[k].kind == Rule::kNextLayer)
          given[k] = ParameterOf(own.layer + i, own.number);
        else if (rules_[k].kind == Rule::kResult)
          given[k] = before.Out("Out")[rules_[k].result];
      }
      for (VarId& v : call.outputs[call.def->FindOutput("Out")]) {
        ir::Var var = p_.vars[v];
        var.name = p_.FreshName(var.name);
        v = p_.AddVar(std::move(var));
      }
      added.push_back(std::move(call));
    }
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(end_), added.begin(), added.end());
  }

  // What stands behind the calls is the end of the last layer. False: it reads other results than
  // those of the last call.
  bool RenameBehind() {
    auto& ops = p_.blocks[0].ops;
    std::unordered_map<VarId, VarId> replaced;  // kNoVar: must not be read
    for (size_t c = begin_; c < end_; ++c)
      for (VarId v : ops[c].Out("Out")) replaced[v] = kNoVar;
    const auto &old = ops[end_ - 1].Out("Out"), &now = ops[end_ + more() - 1].Out("Out");
    for (size_t k = 0; k < old.size(); ++k) replaced[old[k]] = now[k];
    for (size_t i = end_ + more(); i < ops.size(); ++i)
      for (auto& slot : ops[i].inputs)
        for (VarId& v : slot) {
          if (v == kNoVar) continue;
          if (const auto found = replaced.find(v); found != replaced.end()) {
            if (found->second == kNoVar) return false;
            v = found->second;
          } else if (const Own own = OwnOf(v); own.layer != kNone) {
            v = ParameterOf(own.layer + more(), own.number);
          }
        }
    return true;
  }

  // Whether each parameter is read in every layer or in none, and no block names one.
  bool EachOrNone() const {
    const size_t count = shortened_.parameters[0].size();
    std::vector<size_t> readers(count, 0);  // layers that read it
    std::set<VarId> counted;
    for (const ir::Block& block : p_.blocks)
      for (const ir::Op& op : block.ops)
        for (const auto& slot : op.inputs)
          for (VarId v : slot) {
            const Own own = v == kNoVar ? Own() : OwnOf(v);
            if (own.layer == kNone) continue;
            if (block.id != 0) return false;
            if (counted.insert(v).second) ++readers[own.number];
          }
    return std::all_of(readers.begin(), readers.end(),
                       [&](size_t n) { return n == 0 || n == shortened_.layers; });
  }

 public:
  static bool SameTensors(const Tensor& a, const Tensor& b) {
    constexpr size_t kMostBytes = 4096;
    return a.dtype() == b.dtype() && a.shape() == b.shape() && a.bytes() <= kMostBytes &&
           a.is_contiguous() && b.is_contiguous() && MakeResident(a).ok() && MakeResident(b).ok() &&
           a.raw() != nullptr && b.raw() != nullptr &&
           std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }

 private:
  const Shortened& shortened_;
  const ir::Program& before_;
  const Scope& folded_;
  ir::Program& p_;
  std::vector<Own> own_;  // per variable
  size_t begin_ = 0, end_ = 0;
  std::vector<Rule> rules_;  // per operand of the calls
};

// Whether the parameters that became part of the program have the same values in every layer; adds
// those of the layers that were left out.
bool UsedAlike(const Shortened& shortened, const Scope& scope, Optimized* optimized) {
  std::unordered_map<std::string, size_t> numbers;
  for (size_t l = 0; l < kKeptLayers; ++l)
    for (size_t n = 0; n < shortened.parameters[l].size(); ++n)
      numbers.emplace(shortened.parameters[l][n], n);
  std::set<size_t> used;
  for (const auto& [name, stamp] : optimized->used)
    if (const auto found = numbers.find(name); found != numbers.end()) used.insert(found->second);
  for (const size_t n : used) {
    const Value* first = scope.Find(shortened.parameters[0][n]);
    for (size_t l = 1; l < shortened.layers; ++l) {
      const std::string& name = shortened.parameters[l][n];
      const Value* value = scope.Find(name);
      if (first == nullptr || value == nullptr || !first->is_tensor() || !value->is_tensor() ||
          !Lengthener::SameTensors(first->tensor(), value->tensor()))
        return false;
      if (l >= kKeptLayers) optimized->used.emplace_back(name, scope.StampOf(name));
    }
  }
  return true;
}

}  // namespace

std::optional<Shortened> Shorten(const ir::Program& program, const std::set<VarId>& kept) {
  return Shortener(program, kept).Run();
}

bool Lengthen(const Shortened& shortened, const ir::Program& before, const Scope& scope,
              const std::set<std::string>& kept, Optimized* optimized) {
  auto program = std::make_shared<ir::Program>(*optimized->program);
  std::set<VarId> ids;
  for (const std::string& name : kept)
    if (const VarId v = program->Find(0, name); v != kNoVar) ids.insert(v);
  if (!UsedAlike(shortened, scope, optimized) || !OutlineFunctions(*program, ids, {2, 2, 2}) ||
      !Lengthener(shortened, before, *optimized->scope, *program).Run())
    return false;
  if (!program->feeds.empty()) {
    ids.clear();
    for (const std::string& name : kept)
      if (const VarId v = program->Find(0, name); v != kNoVar) ids.insert(v);
    program->DropUnusedVars({ids.begin(), ids.end()});
  }
  optimized->program = std::move(program);
  return true;
}

}  // namespace heddle::passes
