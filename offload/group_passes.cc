#include "offload/group_passes.h"

#include "core/error.h"
#include "offload/engine_library.h"
#include "offload/module_cache.h"
#include "passes/partitions/partitions.h"

namespace heddle::offload {
namespace {

std::shared_ptr<Scope> ParametersOf(const Group& group) {
  auto scope = std::make_shared<Scope>();
  for (const auto& [var, tensor] : group.parameters)
    scope->Set(group.program->vars[var].name, tensor);
  return scope;
}

// `program` with the parameters that it still has.
void SetProgram(std::shared_ptr<const ir::Program> program, const Scope& scope, Group* group) {
  group->parameters.clear();
  for (ir::VarId v = 0; v < program->vars.size(); ++v) {
    if (!program->vars[v].persistable) continue;
    const Value* value = scope.Find(program->vars[v].name);
    if (value != nullptr && value->is_tensor() && value->tensor().initialized())
      group->parameters.emplace_back(v, value->tensor().Contiguous());
  }
  group->program = std::move(program);
}

// What the target counts for the program in the place of the group's, or why it, or its engine,
// does not take it.
Result<double> CostOf(const ir::Program& program, const Group& group, const Offloader& offloader,
                      EngineCache* cache) {
  auto copy = std::make_shared<const ir::Program>(program);
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, partition::ProgramBytesOf(Program(copy)));
  HEDDLE_ASSIGN_OR_RETURN(const partition::Partition partition,
                          partition::PartitionBytes(bytes, {offloader.target.impl()}));
  const partition::BlockPartition& block = partition.blocks[0];
  for (const partition::RestOperator& rest : block.rest)
    if (rest.type != "feed" && rest.type != "fetch")
      return Unimplemented("target ", offloader.target.name(), " leaves ", rest.type, ": ",
                           rest.reason);
  if (block.groups.size() != 1)
    return Unimplemented("target ", offloader.target.name(), " makes ", block.groups.size(),
                         " groups of it");
  if (offloader.engine && offloader.engine->impl()->asks()) {
    Group asked = group;
    SetProgram(copy, *ParametersOf(group), &asked);
    const Refusals refused = RefusedBy(offloader, asked, cache);
    if (!refused.empty()) return Unimplemented(refused[0].second);
  }
  return block.groups[0].cost;
}

std::shared_ptr<Group> Rewritten(const std::shared_ptr<const Group>& group,
                                 const passes::PartProgram& part) {
  auto made = std::make_shared<Group>(*group);
  auto program = std::make_shared<ir::Program>(*part.program);
  program->DropUnusedVars();
  program->hash = group->program->hash ^ part.form;
  SetProgram(std::move(program), *part.scope, made.get());
  made->plain = group;
  return made;
}

}  // namespace

Result<PassReport> RunPasses(const Model& model, const std::vector<Offloader>& offloaders,
                             const OffloadOptions& options, Split* split,
                             std::shared_ptr<Scope>* scope) {
  const CompileOptions& compile = options.compile;
  if (compile.opt_level < 1 && compile.passes.custom.empty()) return PassReport();
  std::vector<std::shared_ptr<const GroupOp>> calls;
  std::vector<size_t> indices;  // of their groups
  for (size_t k = 0; k < split->groups().size(); ++k) {
    const std::shared_ptr<Group>& group = split->groups()[k];
    if (!group->refused.empty()) continue;
    calls.push_back(std::make_shared<GroupOp>(group, nullptr, GroupOp::Options{}));
    indices.push_back(k);
  }
  if (calls.empty()) return PassReport();  // Compile's are on the whole
  HEDDLE_ASSIGN_OR_RETURN(const Program host, split->Join(calls));
  passes::PartitionSet set;
  set.source = model.program.impl();
  set.compile_options = &compile;
  set.executor_options = &options.executor;
  for (const Offloader& offloader : offloaders) set.targets.push_back(offloader.target.name());
  set.programs.push_back({.program = host.impl(), .scope = model.scope, .keep = compile.keep});
  for (const auto& call : calls) {
    const Group& group = call->group();
    const Offloader& offloader = offloaders[group.offloader];
    set.programs.push_back(
        {.target = offloader.target.name(),
         .symbol = group.symbol,
         .program = group.program,
         .scope = ParametersOf(group),
         .costs = [&group, &offloader, cache = options.cache.get()](const ir::Program& program) {
           return CostOf(program, group, offloader, cache);
         }});
  }
  HEDDLE_ASSIGN_OR_RETURN(PassReport report,
                          passes::RunOnPartitions(compile.passes, compile.opt_level, &set));
  for (size_t k = 0; k < calls.size(); ++k)
    if (const passes::PartProgram& part = set.programs[k + 1]; part.changed)
      split->Replace(indices[k], Rewritten(split->groups()[indices[k]], part));
  if (const passes::PartProgram& part = set.programs[0]; part.changed) {
    split->SetHost(part.program, part.form, std::move(calls));
    *scope = part.scope;
  }
  return report;
}

}  // namespace heddle::offload
