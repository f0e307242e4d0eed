#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "passes/pass_manager.h"
#include "passes/storage_aliases.h"

namespace heddle {
namespace {

// Replaces the program's fetches, which `outputs` names, by `names`.
Status SetFetches(const std::vector<std::string>& names, const std::vector<TensorInfo>& outputs,
                  ir::Program* program) {
  if (names.empty()) return Status::Ok();
  const std::vector<ir::Port> before = std::exchange(program->fetches, {});
  for (const std::string& name : names) {
    ir::VarId v = program->Find(0, name);
    for (size_t k = before.size(); k-- > 0;)
      if (outputs[k].name == name) v = before[k].var;
    if (v == ir::kNoVar)
      return NotFound("cannot fetch '", name, "': the program has no such variable");
    program->fetches.push_back({v, static_cast<int>(program->fetches.size())});
  }
  return Status::Ok();
}

}  // namespace

Result<OptimizedModel> OptimizeModel(const Model& model, const OptimizeOptions& options) {
  if (!model.program) return InvalidArgument("the program is empty");
  auto scope = model.scope ? model.scope : std::make_shared<Scope>();
  auto source = std::make_shared<ir::Program>(model.program.ir());
  HEDDLE_RETURN_IF_ERROR(SetFetches(options.fetches, model.program.outputs(), source.get()));
  HEDDLE_ASSIGN_OR_RETURN(passes::Optimized optimized, passes::Optimize(source, scope, options));
  auto program = std::make_shared<ir::Program>(*optimized.program);
  program->DropUnusedVars();
  // Dtypes and shapes that the operators leave open become those that the file declared.
  for (ir::Var& var : program->vars) {
    const ir::VarId v = source->Find(var.block, var.name);
    if (v == ir::kNoVar) continue;
    if (var.dtype == DType::kUnknown) var.dtype = source->vars[v].dtype;
    if (!var.shape.known_rank()) var.shape = source->vars[v].shape;
  }
  OptimizedModel result;
  result.report = std::move(optimized.report);
  std::set<std::string> own(passes::StorageOps().begin(), passes::StorageOps().end());
  for (const passes::PassDef& pass : passes::AllPasses()) {
    own.insert(pass.own_ops.begin(), pass.own_ops.end());
    for (const PassReport::Run& run : result.report.runs)
      if (run.changed && run.name == pass.name)
        own.insert(pass.own_forms.begin(), pass.own_forms.end());
  }
  for (const ir::Block& b : program->blocks)
    for (const ir::Op& op : b.ops)
      if (own.erase(op.type()) > 0) result.heddle_only.push_back(op.type());
  result.model = Model{Program(std::move(program)), std::move(optimized.scope)};
  return result;
}

}  // namespace heddle
