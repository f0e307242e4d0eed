#include "passes/pass_manager.h"

#include <algorithm>

#include "passes/graph_view.h"
#include "passes/pass.h"

namespace heddle::passes {

#define HEDDLE_DECLARE_PASS(name) void DefinePass_##name(PassDef& pass);
#include "passes/all_passes.inc"
#undef HEDDLE_DECLARE_PASS

const Tensor* PassContext::Constant(const ir::Program& program, const GraphView& view,
                                    ir::VarId var) {
  const ir::Var& v = program.vars[var];
  if (!v.persistable || v.kind != ir::VarKind::kTensor) return nullptr;
  const Value* value = folded_.Find(v.name);
  if (value == nullptr || !value->is_tensor() || !value->tensor().initialized()) return nullptr;
  const Tensor& t = value->tensor();
  if (t.dtype() != DType::kF32 || !t.is_contiguous()) return nullptr;
  if (!view.writers(var).empty()) return nullptr;
  if (const Scope::Stamp stamp = source_.StampOf(v.name); stamp.value == value)
    used_.emplace_back(v.name, stamp);
  return &t;
}

ir::VarId PassContext::AddConstant(ir::Program& program, const std::string& stem, Tensor value) {
  ir::Var var;
  var.name = program.FreshName(stem);
  var.dtype = value.dtype();
  var.shape = value.shape();
  var.persistable = true;
  folded_.Set(var.name, std::move(value));
  return program.AddVar(std::move(var));
}

std::vector<PassDef> AllPasses() {
  std::vector<PassDef> passes;
  [[maybe_unused]] auto add = [&](const char* name, void (*define)(PassDef&)) {
    passes.emplace_back();
    passes.back().name = name;
    define(passes.back());
  };
#define HEDDLE_DECLARE_PASS(name) add(#name, &DefinePass_##name);
#include "passes/all_passes.inc"
#undef HEDDLE_DECLARE_PASS
  std::stable_sort(passes.begin(), passes.end(), [](const PassDef& a, const PassDef& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.name < b.name;
  });
  return passes;
}

Result<Optimized> Optimize(const std::shared_ptr<const ir::Program>& program,
                           const std::shared_ptr<Scope>& scope, const OptimizeOptions& options) {
  auto folded = std::make_shared<Scope>(scope);
  PassContext context(*scope, *folded);
  for (const std::string& name : options.fetches)
    if (ir::VarId v = program->Find(0, name); v != ir::kNoVar) context.fetched.insert(v);
  for (const ir::Port& f : program->fetches) context.fetched.insert(f.var);
  std::shared_ptr<ir::Program> copy;  // made for the first pass that runs
  bool any = false;
  for (const PassDef& pass : AllPasses()) {
    if (pass.level > options.level) continue;
    if (!copy) copy = std::make_shared<ir::Program>(*program);
    auto changed = pass.run(*copy, context);
    if (!changed.ok())
      return Status(changed.status().code(), "pass " + pass.name + ": " + changed.status().message());
    any = any || *changed;
  }
  std::shared_ptr<const ir::Program> result = program;
  if (any) result = std::move(copy);
  return Optimized{std::move(result), std::move(folded), context.used()};
}

}  // namespace heddle::passes
