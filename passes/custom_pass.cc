#include "passes/custom_pass.h"

#include <algorithm>
#include <deque>
#include <functional>

#include "core/error.h"
#include "core/op_registry.h"
#include "passes/order_graph.h"
#include "passes/places.h"
#include "passes/public_attributes.h"

namespace heddle {
namespace internal {

// The program that a ProgramEditor edits.
class EditorState {
 public:
  EditorState(ir::Program& p, passes::PassContext& c) : program(p), context(c) {}
  ir::Program& program;
  passes::PassContext& context;

  // Slots by name; an error for one that the definition or the program does not have.
  Status FillSlots(int block, const std::vector<SlotDef>& defs, bool out,
                   const std::vector<std::pair<std::string, std::vector<std::string>>>& named,
                   std::vector<std::vector<ir::VarId>>* slots) const {
    for (const auto& [slot, names] : named) {
      const auto def = std::find_if(defs.begin(), defs.end(), [&wanted = slot](const SlotDef& d) {
        return d.name == wanted;
      });
      if (def == defs.end())
        return InvalidArgument("no ", out ? "output" : "input", " '", slot, "'");
      auto& vars = (*slots)[static_cast<size_t>(def - defs.begin())];
      for (const std::string& name : names) {
        vars.push_back(name.empty() ? ir::kNoVar : program.Find(block, name));
        if (!name.empty() && vars.back() == ir::kNoVar)
          return NotFound("there is no variable '", name, "'");
      }
    }
    return Status::Ok();
  }

  // `own`: the definition of the operator that this one replaces, which may lie in no registry.
  Result<ir::Op> Make(int block, const OpSpec& spec, const OpDef* own = nullptr) const {
    const OpDef* def = own != nullptr && own->name() == spec.type ? own : FindOp(spec.type);
    if (def == nullptr) return NotFound("heddle has no operator '", spec.type, "'");
    ir::Op op = ir::MakeOp(*def);
    HEDDLE_RETURN_IF_ERROR(FillSlots(block, def->inputs(), false, spec.inputs, &op.inputs));
    HEDDLE_RETURN_IF_ERROR(FillSlots(block, def->outputs(), true, spec.outputs, &op.outputs));
    for (const auto& [name, value] : spec.attributes) {
      const int a = def->FindAttr(name);
      if (a < 0) return InvalidArgument(spec.type, " has no attribute '", name, "'");
      if (value.index() != op.attrs[a].index())
        return InvalidArgument(spec.type, ": attribute '", name, "' is of another type");
      op.attrs[a] = ToInternal(value);
    }
    return op;
  }

  int Count(const std::string& name, bool written) const {
    const ir::VarId v = program.Find(0, name);
    int n = 0;
    if (v == ir::kNoVar) return 0;
    for (const ir::Block& b : program.blocks) {
      for (const ir::Op& op : b.ops) {
        const auto& slots = written ? op.outputs : op.inputs;
        n += std::any_of(slots.begin(), slots.end(), [&](const auto& slot) {
          return std::find(slot.begin(), slot.end(), v) != slot.end();
        });
      }
    }
    return n;
  }
};

}  // namespace internal

namespace {

using NamedSlots = std::vector<std::pair<std::string, std::vector<std::string>>>;

std::string Only(const NamedSlots& slots, const std::string& slot) {
  for (const auto& [name, vars] : slots)
    if (name == slot && vars.size() == 1) return vars[0];
  return "";
}

NamedSlots Named(const ir::Program& p, const std::vector<SlotDef>& defs,
                 const std::vector<std::vector<ir::VarId>>& slots) {
  NamedSlots named;
  for (size_t s = 0; s < defs.size(); ++s) {
    if (slots[s].empty()) continue;
    named.emplace_back(defs[s].name, std::vector<std::string>());
    for (ir::VarId v : slots[s])
      named.back().second.push_back(v == ir::kNoVar ? "" : p.vars[v].name);
  }
  return named;
}

// For each operator of the block, its neighbours in the block's order.
std::vector<std::vector<int>> NeighboursOf(const ir::Program& program, int block,
                                           ProgramEditor::Toward toward) {
  const passes::OrderGraph graph(program, block);
  std::vector<std::vector<int>> found(static_cast<size_t>(graph.size()));
  for (int at = 0; at < graph.size(); ++at) {
    std::vector<int> before(graph.before(at).begin(), graph.before(at).end());
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    if (toward == ProgramEditor::Toward::kAfter)
      for (const int from : before) found[static_cast<size_t>(from)].push_back(at);
    else
      found[static_cast<size_t>(at)] = std::move(before);
  }
  return found;
}

}  // namespace

std::string OpSpec::input(const std::string& slot) const { return Only(inputs, slot); }
std::string OpSpec::output(const std::string& slot) const { return Only(outputs, slot); }

int ProgramEditor::num_blocks() const { return static_cast<int>(state_.program.blocks.size()); }
int ProgramEditor::num_ops(int block) const {
  return static_cast<int>(state_.program.blocks[block].ops.size());
}
const std::string& ProgramEditor::op_type(int block, int index) const {
  return state_.program.blocks[block].ops[index].type();
}

OpSpec ProgramEditor::op(int block, int index) const {
  const ir::Op& op = state_.program.blocks[block].ops[index];
  OpSpec spec;
  spec.type = op.type();
  spec.inputs = Named(state_.program, op.def->inputs(), op.inputs);
  spec.outputs = Named(state_.program, op.def->outputs(), op.outputs);
  for (size_t a = 0; a < op.attrs.size(); ++a)
    spec.attributes.emplace_back(op.def->attrs()[a].name, ToPublic(op.attrs[a]));
  return spec;
}

Status ProgramEditor::Replace(int block, int index, const OpSpec& spec) {
  ir::Op& op = state_.program.blocks[block].ops[index];
  HEDDLE_ASSIGN_OR_RETURN(ir::Op made, state_.Make(block, spec, op.def));
  made.index = op.index;
  made.call_stack = op.call_stack;
  passes::TakePlace(op, &made);
  if (made.def == op.def) {  // attributes that variables hold stay
    made.var_attrs = op.var_attrs;
    made.inputs.insert(made.inputs.end(), op.inputs.begin() + op.def->inputs().size(),
                       op.inputs.end());
  }
  op = std::move(made);
  return Status::Ok();
}

Status ProgramEditor::Insert(int block, int index, const OpSpec& spec) {
  HEDDLE_ASSIGN_OR_RETURN(ir::Op made, state_.Make(block, spec));
  auto& ops = state_.program.blocks[block].ops;
  const auto at = static_cast<size_t>(index);
  if (state_.context.partitioned && !ops.empty())
    made.device = ops[std::min(at, ops.size() - 1)].device;
  ops.insert(ops.begin() + index, std::move(made));
  return Status::Ok();
}

void ProgramEditor::Erase(int block, int index) {
  auto& ops = state_.program.blocks[block].ops;
  ops.erase(ops.begin() + index);
}

std::vector<int> ProgramEditor::neighbours(int block, int index, Toward toward) const {
  return NeighboursOf(state_.program, block, toward)[static_cast<size_t>(index)];
}
void ProgramEditor::Visit(int block, int from, Toward toward, Walk walk,
                          const std::function<bool(int)>& visit) const {
  const std::vector<std::vector<int>> neighbours = NeighboursOf(state_.program, block, toward);
  std::vector<bool> met(neighbours.size(), false);
  const bool newest_first = walk == Walk::kDepthFirst;
  std::deque<int> next{from};
  while (!next.empty()) {
    const int at = newest_first ? next.back() : next.front();
    newest_first ? next.pop_back() : next.pop_front();
    if (met[static_cast<size_t>(at)]) continue;
    met[static_cast<size_t>(at)] = true;
    if (!visit(at)) continue;
    // The nearest one is the last before an operator, or the first after it. The walk that visits
    // the newest first visits the last one of its list.
    const std::vector<int>& found = neighbours[static_cast<size_t>(at)];
    if ((toward == Toward::kBefore) != newest_first)
      next.insert(next.end(), found.rbegin(), found.rend());
    else
      next.insert(next.end(), found.begin(), found.end());
  }
}

bool ProgramEditor::fetched(const std::string& var) const {
  return state_.context.fetched.count(state_.program.Find(0, var)) > 0;
}
int ProgramEditor::readers(const std::string& var) const { return state_.Count(var, false); }
int ProgramEditor::writers(const std::string& var) const { return state_.Count(var, true); }

Result<TensorInfo> ProgramEditor::var(const std::string& name) const {
  const ir::VarId v = state_.program.Find(0, name);
  if (v == ir::kNoVar) return NotFound("there is no variable '", name, "'");
  const ir::Var& var = state_.program.vars[v];
  return TensorInfo{var.name, var.dtype, var.shape};
}

std::string ProgramEditor::AddVar(const std::string& stem, DType dtype, const Shape& shape) {
  ir::Var var;
  var.name = state_.program.FreshName(stem);
  var.dtype = dtype;
  var.shape = shape;
  return state_.program.vars[state_.program.AddVar(std::move(var))].name;
}

const Tensor* ProgramEditor::constant(const std::string& var) const {
  const ir::VarId v = state_.program.Find(0, var);
  if (v == ir::kNoVar || writers(var) > 0) return nullptr;
  const Tensor* t = state_.context.Parameter(state_.program, v, false);
  if (t == nullptr || t->dtype() != DType::kF32) return nullptr;
  return state_.context.Parameter(state_.program, v);
}

std::string ProgramEditor::AddConstant(const std::string& stem, Tensor value) {
  const ir::VarId v = state_.context.AddConstant(state_.program, stem, std::move(value));
  return state_.program.vars[v].name;
}

std::vector<std::string> ProgramEditor::places() const {
  std::vector<std::string> places = {"cpu"};
  for (const auto& device : state_.context.devices) places.push_back(device.place);
  return places;
}

size_t ProgramEditor::memory_bytes(const std::string& place) const {
  for (const auto& device : state_.context.devices)
    if (device.place == place) return device.memory_bytes;
  return 0;
}

std::string ProgramEditor::place(int block, int index) const {
  if (block != 0 || state_.context.devices.empty()) return "cpu";
  return passes::PlaceOf(state_.program.blocks[0].ops[static_cast<size_t>(index)],
                         state_.context.devices);
}

Status ProgramEditor::SetPlace(int block, int index, const std::string& place) {
  ir::Op& op = state_.program.blocks[block].ops[static_cast<size_t>(index)];
  if (state_.context.partitioned)
    return InvalidArgument("operator ", index, " (", op.type(), ") cannot go to '", place,
                           "': it has been given to a place");
  const std::string device = passes::DeviceText(state_.program, place, state_.context.devices);
  if (device.empty() || (block != 0 && place != "cpu"))
    return InvalidArgument("operator ", index, " (", op.type(), ") cannot run at '", place, "'");
  op.device = device;
  return Status::Ok();
}

double ProgramEditor::cost_ns(int block, int index) const {
  return passes::CostNs(state_.program, state_.program.blocks[block].ops[index]);
}

const PassOptions& ProgramEditor::options() const { return state_.context.options(); }

namespace passes {

OwnedEditor::OwnedEditor(ir::Program& program, PassContext& context)
    : state_(std::make_unique<internal::EditorState>(program, context)), editor_(*state_) {}
OwnedEditor::~OwnedEditor() = default;

PassDef FromCustom(const CustomPass& custom) {
  PassDef pass;
  pass.name = custom.name;
  pass.doc = custom.doc;
  pass.level = custom.level;
  pass.repeat = custom.repeat;
  pass.once = !custom.repeat;
  if (custom.run)
    pass.run = [run = custom.run](ir::Program& program, PassContext& context) {
      internal::EditorState state(program, context);
      ProgramEditor editor(state);
      return run(editor);
    };
  pass.run_partitions = custom.run_partitions;
  return pass;
}

}  // namespace passes
}  // namespace heddle
