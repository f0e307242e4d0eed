// The pass over a whole program: what is wanted, what stops, names of the results.
#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/op_registry.h"
#include "formats/program_source.h"
#include "gradient/block_gradient.h"
#include "gradient/gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::Var;
using ir::VarId;

Result<VarId> FindVariable(const ir::Program& program, const std::string& name,
                           std::string_view role) {
  const VarId v = program.Find(0, name);
  if (v == kNoVar) return NotFound(role, " '", name, "': the program has no such variable");
  if (program.vars[v].block != 0)
    return InvalidArgument(role, " '", name, "' is a variable of a sub-block");
  return v;
}

bool IsReal(const Var& var) {
  return var.dtype == DType::kUnknown || IsFloat(var.dtype) || IsComplex(var.dtype);
}

// The parameters that are trained if none are named.
std::vector<VarId> Trainable(const ir::Program& program, const formats::TrainingMarks& marks) {
  std::vector<VarId> found;
  for (VarId v = 0; v < program.vars.size(); ++v) {
    const Var& var = program.vars[v];
    if (var.block != 0 || !var.persistable || !IsFloat(var.dtype)) continue;
    if (marks.says_trainable && !marks.trainable.contains(var.name)) continue;
    if (marks.stopped.contains(var.name)) continue;
    found.push_back(v);
  }
  std::sort(found.begin(), found.end(),
            [&](VarId a, VarId b) { return program.vars[a].name < program.vars[b].name; });
  return found;
}

// A file may have another name for an output than its variable has. The result gives the output a
// variable of that name.
void NameOutputs(const Program& program, ir::Program* copy, Shared* shared,
                 std::vector<ir::Op>* ops) {
  const std::vector<TensorInfo> outputs = program.outputs();
  for (size_t k = 0; k < outputs.size() && k < copy->fetches.size(); ++k) {
    const VarId v = copy->fetches[k].var;
    if (v == kNoVar || copy->vars[v].name == outputs[k].name || shared->IsTaken(outputs[k].name) ||
        copy->vars[v].kind != ir::VarKind::kTensor)
      continue;
    const Var like = copy->vars[v];
    ir::Op name = ir::MakeOp(*FindOp("assign"));
    name.inputs[0] = {v};
    name.outputs[0] = {shared->AddVar(outputs[k].name, 0, like)};
    copy->fetches[k].var = name.outputs[0][0];
    ops->push_back(std::move(name));
  }
}

// Says of each operator what it is for: those that compute losses, and the new ones. `old_blocks`:
// the blocks that the program had.
void SetRoles(const std::vector<VarId>& losses, const std::unordered_set<VarId>& seeds,
              const std::vector<std::pair<VarId, VarId>>& parameters, size_t old_blocks,
              std::vector<ir::Op>* forward, std::vector<ir::Op>* backward, ir::Program* program) {
  using ir::OpRole;
  const auto writes = [](const ir::Op& op, VarId v) {
    for (const auto& slot : op.outputs)
      if (std::find(slot.begin(), slot.end(), v) != slot.end()) return true;
    return false;
  };
  for (const VarId loss : losses)
    for (auto op = forward->rbegin(); op != forward->rend(); ++op) {
      if (!writes(*op, loss)) continue;
      OpRole role = op->role ? *op->role : OpRole();
      role.bits |= OpRole::kLoss;
      op->role = std::make_shared<const OpRole>(std::move(role));
      break;
    }
  const auto plain = std::make_shared<const OpRole>(OpRole{OpRole::kBackward, {}});
  const auto seed = std::make_shared<const OpRole>(OpRole{OpRole::kBackward | OpRole::kLoss, {}});
  for (size_t b = old_blocks; b < program->blocks.size(); ++b)
    for (ir::Op& op : program->blocks[b].ops) op.role = plain;
  for (ir::Op& op : *backward) op.role = plain;
  for (ir::Op& op : *backward)
    if (!op.outputs.empty() && op.outputs[0].size() == 1 && seeds.contains(op.outputs[0][0]))
      op.role = seed;
  for (const auto& [parameter, gradient] : parameters)
    for (auto op = backward->rbegin(); op != backward->rend(); ++op) {
      if (!writes(*op, gradient)) continue;
      OpRole role = *op->role;
      role.pairs.push_back(program->vars[parameter].name);
      role.pairs.push_back(program->vars[gradient].name);
      op->role = std::make_shared<const OpRole>(std::move(role));
      break;
    }
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace

Result<Gradients> AppendBackward(const Program& program, const GradientRequest& request) {
  auto copy = std::make_shared<ir::Program>(program.ir());
  formats::TrainingMarks marks;
  if (copy->source != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(marks, copy->source->Marks(*copy));
  }
  Shared shared(copy.get());
  shared.dense = request.dense;
  shared.stopped = marks.stopped;
  shared.no_grad.insert(request.no_grad.begin(), request.no_grad.end());
  // A loss that is named is differentiated.
  for (const std::string& name : request.losses) shared.stopped.erase(name);
  for (const std::string& name : request.no_grad) {
    HEDDLE_RETURN_IF_ERROR(FindVariable(*copy, name, "the variable of --no-grad").status());
  }
  const size_t old_blocks = copy->blocks.size();
  std::vector<ir::Op> ops = std::move(copy->blocks[0].ops);
  NameOutputs(program, copy.get(), &shared, &ops);
  for (const ir::Op& op : ops) shared.InferOutputs(op);
  BlockGradient block(shared, &ops, 0, 0);

  std::vector<BlockGradient::ValueId> losses;
  for (const std::string& name : request.losses) {
    HEDDLE_ASSIGN_OR_RETURN(const VarId v, FindVariable(*copy, name, "the loss"));
    if (!IsReal(copy->vars[v]))
      return InvalidArgument("the loss '", name, "' is of dtype ", Name(copy->vars[v].dtype),
                             ", which has no gradient");
    losses.push_back(block.Last(v));
    block.Expect(losses.back());
  }
  if (losses.empty()) return InvalidArgument("no loss is named");
  std::vector<VarId> wanted;
  if (request.wrt) {
    for (const std::string& name : *request.wrt) {
      HEDDLE_ASSIGN_OR_RETURN(const VarId v, FindVariable(*copy, name, "the wanted variable"));
      if (!IsReal(copy->vars[v]))
        return InvalidArgument("the wanted variable '", name, "' is of dtype ",
                               Name(copy->vars[v].dtype), ", which has no gradient");
      if (std::find(wanted.begin(), wanted.end(), v) == wanted.end()) wanted.push_back(v);
    }
  } else {
    wanted = Trainable(*copy, marks);
    if (request.frozen)
      std::erase_if(wanted, [&](VarId v) { return request.frozen(copy->vars[v].name); });
  }
  // A parameter is what it is before the program changes it, any other variable what the program
  // makes of it.
  const auto value_of = [&](VarId v) {
    return copy->vars[v].persistable || copy->vars[v].input ? block.First(v) : block.Last(v);
  };
  for (const VarId v : wanted) block.Want(value_of(v));
  block.Trace();

  std::vector<std::string> refused;
  std::vector<VarId> kept;
  for (const VarId v : wanted) {
    const std::string& name = copy->vars[v].name;
    if (block.Reached(value_of(v))) {
      kept.push_back(v);
    } else if (request.wrt && !block.DependsOn(value_of(v))) {
      if (request.skip_independent) continue;
      return InvalidArgument("no loss depends on the wanted variable '", name, "'");
    } else if (request.wrt) {
      refused.push_back(StrCat("'", name,
                               "' leads to the loss only through operators without a "
                               "gradient:",
                               block.Obstacles(value_of(v))));
    }
  }
  if (!refused.empty()) return Unimplemented("cannot differentiate: ", Lines(refused));
  if (kept.empty() && request.wrt && request.skip_independent) return Gradients{program, {}};
  if (kept.empty()) return InvalidArgument("no loss depends on a trainable parameter");

  std::unordered_set<VarId> seeds;
  for (const BlockGradient::ValueId loss : losses) {
    if (!block.Reached(loss)) continue;
    const Var like = copy->vars[block.VarOf(loss)];
    ir::Op ones = ir::MakeOp(*FindOp("fill_any_like"));
    ones.inputs[0] = {block.VarOf(loss)};
    ones.attrs[static_cast<size_t>(ones.def->FindAttr("value"))] = 1.0;
    ones.outputs[0] = {shared.AddVar(like.name + "@ONES", 0, like)};
    const VarId seed = ones.outputs[0][0];
    block.Emit(std::move(ones));
    block.Seed(loss, seed);
    seeds.insert(seed);
  }
  HEDDLE_RETURN_IF_ERROR(block.Run());
  if (!shared.problems.empty())
    return Unimplemented("cannot differentiate:", Lines(shared.problems));

  Gradients result;
  std::vector<std::pair<VarId, VarId>> parameters;
  for (const VarId v : kept) {
    const VarId gradient = block.GradientOf(value_of(v));
    result.gradients.push_back({copy->vars[v].name, copy->vars[gradient].name});
    if (copy->vars[v].persistable) parameters.emplace_back(v, gradient);
  }
  block.InsertCopies();
  std::vector<VarId> loss_vars;
  for (const BlockGradient::ValueId loss : losses) loss_vars.push_back(block.VarOf(loss));
  SetRoles(loss_vars, seeds, parameters, old_blocks, &ops, &block.emitted(), copy.get());
  auto& all = copy->blocks[0].ops;
  all = std::move(ops);
  for (ir::Op& op : block.emitted()) all.push_back(std::move(op));
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, Program(std::move(copy)).Serialize("paddle"));
  HEDDLE_ASSIGN_OR_RETURN(result.program, Program::Parse(bytes, "the program with gradients"));
  return result;
}

}  // namespace heddle::gradient
