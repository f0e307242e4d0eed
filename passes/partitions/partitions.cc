#include "passes/partitions/partitions.h"

#include "core/error.h"

namespace heddle {
namespace internal {

void PartitionState::Add(const std::string& target, const std::string& symbol, ir::Program& program,
                         passes::PassContext& context, passes::TargetCosts costs) {
  PartitionEntry& entry = entries.emplace_back(target, symbol, program, context, std::move(costs));
  programs[target].push_back(&entry.handle);
}

}  // namespace internal

namespace {

std::vector<std::string> NamesOf(const ir::Program& program, const std::vector<ir::Port>& ports) {
  std::vector<std::string> names;
  for (const ir::Port& port : ports)
    names.push_back(port.var == ir::kNoVar ? "" : program.vars[port.var].name);
  return names;
}

}  // namespace

const std::string& PartitionProgram::target() const { return entry_.target; }
const std::string& PartitionProgram::symbol() const { return entry_.symbol; }

std::vector<std::string> PartitionProgram::feeds() const {
  return NamesOf(entry_.program, entry_.program.feeds);
}
std::vector<std::string> PartitionProgram::fetches() const {
  return NamesOf(entry_.program, entry_.program.fetches);
}

ProgramEditor& PartitionProgram::editor() {
  if (entry_.editor == nullptr)
    entry_.editor = std::make_unique<passes::OwnedEditor>(entry_.program, entry_.context);
  return entry_.editor->editor();
}

Result<double> PartitionProgram::TargetCost() const {
  if (!entry_.costs) return Unimplemented("the program is that of ", target(), ", not of a target");
  return entry_.costs(entry_.program);
}

const std::map<std::string, std::vector<PartitionProgram*>>& Partitions::programs() const {
  return state_.programs;
}

PartitionProgram& Partitions::host() const {
  return *state_.programs.at(PartitionProgram::kHost)[0];
}

std::vector<PartitionPlace> Partitions::places() const {
  std::vector<PartitionPlace> places = {{"cpu"}};
  if (!state_.entries.empty())
    for (const passes::DeviceView& device : state_.entries[0].context.devices)
      places.push_back({device.place, false, device.memory_bytes});
  places.insert(places.end(), state_.targets.begin(), state_.targets.end());
  return places;
}

Result<FunctionLibrary*> Partitions::functions() {
  if (!state_.functions) {
    HEDDLE_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionsOf(Program(state_.source)));
    state_.functions.emplace(std::move(library));
  }
  return &*state_.functions;
}

const CompileOptions* Partitions::compile_options() const { return state_.compile_options; }
const ExecutorOptions* Partitions::executor_options() const { return state_.executor_options; }
int Partitions::opt_level() const { return state_.level; }

}  // namespace heddle
