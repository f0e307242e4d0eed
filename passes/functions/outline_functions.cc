#include "passes/functions/outline_functions.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/functions/stretches.h"
#include "passes/partition.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

class Outliner {
 public:
  Outliner(ir::Program& program, const std::set<VarId>& kept, const OutlineLimits& limits)
      : p_(program), limits_(limits), stretches_(program, kept) {}

  bool Run() {
    for (const Stretches::Row& row :
         stretches_.Find({limits_.least_calls, limits_.least_period, limits_.least_saved}))
      if (IsWorth(row)) MakeFunction({row.begin, row.period, row.count, {}});
    if (made_.empty()) return false;
    PutCalls();
    return true;
  }

 private:
  // A function and the places of its calls.
  struct Function {
    size_t begin, period, count;
    std::vector<ir::Op> calls;
  };

  bool IsWorth(const Stretches::Row& row) const {
    double ns = 0;
    for (size_t j = 0; j < row.period && limits_.least_ns > 0; ++j) {
      const double each = CostNs(p_, p_.blocks[0].ops[row.begin + j]);
      if (each == 0) return true;  // unknown
      ns += each;
    }
    return ns >= limits_.least_ns;
  }

  void MakeFunction(Function f) {
    const auto& ops = p_.blocks[0].ops;
    const int block = static_cast<int>(p_.blocks.size());
    ir::Block body;
    body.id = block;
    body.parent = 0;
    // Operands of the function, by the variables that the calls give.
    std::map<std::vector<VarId>, VarId> parameters;
    std::vector<std::vector<VarId>> given(f.count), taken(f.count);  // per call
    Strings parameter_names, result_names;
    std::vector<VarId> parameter_vars, result_vars;
    std::unordered_map<VarId, VarId> inside;  // by the variable of the first stretch
    std::vector<VarId> row(f.count);
    const auto declare = [&](VarId like) {
      ir::Var var = p_.vars[like];
      var.block = block;
      var.persistable = var.input = false;
      var.name = p_.FreshName(var.name);
      return p_.AddVar(std::move(var));
    };
    const auto at = [&](size_t call, size_t j) -> const ir::Op& {
      return ops[f.begin + call * f.period + j];
    };
    for (size_t j = 0; j < f.period; ++j) {
      LookForInterrupt();
      ir::Op op = at(0, j);
      op.index = -1;  // of several operators of the file
      for (size_t s = 0; s < op.inputs.size(); ++s) {
        for (size_t k = 0; k < op.inputs[s].size(); ++k) {
          VarId& v = op.inputs[s][k];
          if (v == kNoVar) continue;
          if (const auto found = inside.find(v); found != inside.end()) {
            v = found->second;
            continue;
          }
          for (size_t c = 0; c < f.count; ++c) row[c] = at(c, j).inputs[s][k];
          if (IsSameParameter(row)) continue;
          const auto [known, is_new] = parameters.try_emplace(row, kNoVar);
          if (is_new) {
            known->second = declare(v);
            parameter_vars.push_back(known->second);
            parameter_names.push_back(p_.vars[known->second].name);
            for (size_t c = 0; c < f.count; ++c) given[c].push_back(row[c]);
          }
          v = known->second;
        }
      }
      for (size_t s = 0; s < op.outputs.size(); ++s) {
        for (size_t k = 0; k < op.outputs[s].size(); ++k) {
          VarId& v = op.outputs[s][k];
          if (v == kNoVar) continue;
          bool outside = false;
          for (size_t c = 0; c < f.count; ++c) {
            row[c] = at(c, j).outputs[s][k];
            outside = outside || stretches_.use(row[c]).last_reader > f.begin + (c + 1) * f.period;
          }
          v = inside[v] = declare(v);
          if (!outside) continue;
          result_vars.push_back(v);
          result_names.push_back(p_.vars[v].name);
          for (size_t c = 0; c < f.count; ++c) taken[c].push_back(row[c]);
        }
      }
      // Pairs of parameters and gradients are those of one stretch alone.
      if (op.role != nullptr && !op.role->pairs.empty())
        op.role = std::make_shared<const ir::OpRole>(ir::OpRole{op.role->bits, {}});
      body.ops.push_back(std::move(op));
    }
    for (size_t c = 0; c < f.count; ++c) {
      ir::Op call = ir::MakeOp(*FindOp("call"));
      call.device = at(0, 0).device;
      call.call_stack = at(c, 0).call_stack;
      const OpDef& def = *call.def;
      call.inputs[def.FindInput("X")] = std::move(given[c]);
      call.inputs[def.FindInput("sub_block:results")] = result_vars;
      call.outputs[def.FindOutput("Out")] = std::move(taken[c]);
      call.outputs[def.FindOutput("sub_block:parameters")] = parameter_vars;
      call.attrs[def.FindAttr("sub_block")] = BlockRef{block};
      call.attrs[def.FindAttr("parameters")] = parameter_names;
      call.attrs[def.FindAttr("results")] = result_names;
      f.calls.push_back(std::move(call));
    }
    p_.blocks.push_back(std::move(body));
    made_.push_back(std::move(f));
  }

  // Whether all calls give one parameter of the program, which the block then names itself.
  bool IsSameParameter(const std::vector<VarId>& row) const {
    return p_.vars[row[0]].persistable && stretches_.use(row[0]).writers == 0 &&
           std::all_of(row.begin(), row.end(), [&](VarId v) { return v == row[0]; });
  }

  void PutCalls() {
    std::vector<ir::Op> before = std::move(p_.blocks[0].ops), after;
    size_t at = 0;
    for (Function& f : made_) {  // in ascending order
      for (; at < f.begin; ++at) after.push_back(std::move(before[at]));
      for (ir::Op& call : f.calls) after.push_back(std::move(call));
      at = f.begin + f.count * f.period;
    }
    for (; at < before.size(); ++at) after.push_back(std::move(before[at]));
    p_.blocks[0].ops = std::move(after);
  }

  ir::Program& p_;
  const OutlineLimits limits_;
  const Stretches stretches_;
  std::vector<Function> made_;
};

// Copies the operators of a called block, with the caller's variables.
class Expander {
 public:
  explicit Expander(ir::Program& program) : p_(program), calls_(program) {}

  bool Run(int block) {
    bool changed = false;
    std::vector<ir::Op> before = std::move(p_.blocks[0].ops), after;
    p_.blocks[0].ops.clear();
    for (ir::Op& op : before) {
      if (!calls_.Is(op) || (block >= 0 && op.Attr<BlockRef>("sub_block").id != block)) {
        after.push_back(std::move(op));
        continue;
      }
      Put(op, &after);
      emptied_.insert(op.Attr<BlockRef>("sub_block").id);
      changed = true;
    }
    p_.blocks[0].ops = std::move(after);
    for (const int b : emptied_) p_.blocks[static_cast<size_t>(b)].ops.clear();
    return changed;
  }

 private:
  void Put(const ir::Op& call, std::vector<ir::Op>* out) {
    const int body = call.Attr<BlockRef>("sub_block").id;
    std::unordered_map<VarId, VarId> outside;
    const auto match = [&](const std::vector<VarId>& inner, const std::vector<VarId>& outer) {
      for (size_t k = 0; k < inner.size(); ++k) outside.emplace(inner[k], outer[k]);
    };
    match(call.Out("sub_block:parameters"), call.In("X"));
    match(call.In("sub_block:results"), call.Out("Out"));
    const size_t count = p_.blocks[static_cast<size_t>(body)].ops.size();
    for (size_t j = 0; j < count; ++j) {
      LookForInterrupt();
      ir::Op op = p_.blocks[static_cast<size_t>(body)].ops[j];
      for (auto* slots : {&op.inputs, &op.outputs})
        for (auto& slot : *slots)
          for (VarId& v : slot) {
            if (v == kNoVar || p_.vars[v].block != body) continue;
            const auto [known, is_new] = outside.try_emplace(v, kNoVar);
            if (is_new) {
              ir::Var var = p_.vars[v];
              var.block = 0;
              var.name = p_.FreshName(var.name);
              known->second = p_.AddVar(std::move(var));
            }
            v = known->second;
          }
      if (op.call_stack.empty()) op.call_stack = call.call_stack;
      out->push_back(std::move(op));
    }
  }

  ir::Program& p_;
  OutlinedCalls calls_;
  std::set<int> emptied_;
};

}  // namespace

bool OutlineFunctions(ir::Program& program, const std::set<ir::VarId>& kept,
                      const OutlineLimits& limits) {
  return Outliner(program, kept, limits).Run();
}

bool ExpandFunctions(ir::Program& program, int block) { return Expander(program).Run(block); }

bool OutlinedCalls::Is(const ir::Op& op) {
  const int in = op.def->FindInput("sub_block:results");
  const int out = op.def->FindOutput("sub_block:parameters");
  if (in < 0 || out < 0 || op.has_control_edges()) return false;
  const std::vector<VarId>&inner = op.outputs[out], &results = op.inputs[in];
  const std::vector<VarId>&given = op.In("X"), &taken = op.Out("Out");
  const int body = op.Attr<BlockRef>("sub_block").id;
  if (body <= 0 || inner.size() != given.size() || results.size() != taken.size()) return false;
  const auto there = [](VarId v) { return v != kNoVar; };
  if (!std::all_of(given.begin(), given.end(), there) ||
      !std::all_of(taken.begin(), taken.end(), there))
    return false;
  // All calls of a block have the same parameters and results.
  const auto [known, is_new] = bodies_.try_emplace(body);
  Body& b = known->second;
  if (is_new) b = {inner, results, IsClosed(body, inner, results)};
  return b.closed && b.parameters == inner && b.results == results;
}

// Whether each parameter is only read, and each result is one variable, written once.
bool OutlinedCalls::IsClosed(int body, const std::vector<VarId>& parameters,
                             const std::vector<VarId>& results) const {
  const ir::Block& block = program_.blocks[static_cast<size_t>(body)];
  if (block.parent != 0) return false;
  std::unordered_map<VarId, int> writes;
  for (const ir::Op& each : block.ops) {
    if ((each.def->traits() & (kControlFlow | kSideEffect | kCommunication | kReader)) != 0)
      return false;
    for (const auto& slot : each.outputs)
      for (VarId v : slot)
        if (v != kNoVar && (++writes[v] > 1 || program_.vars[v].block != body)) return false;
  }
  std::set<VarId> named;
  for (VarId v : parameters)
    if (v == kNoVar || writes.contains(v) || program_.vars[v].block != body ||
        !named.insert(v).second)
      return false;
  for (VarId v : results)
    if (v == kNoVar || !writes.contains(v) || !named.insert(v).second) return false;
  return true;
}

}  // namespace heddle::passes
