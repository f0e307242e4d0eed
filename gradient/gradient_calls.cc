#include "gradient/gradient_calls.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/op_registry.h"
#include "formats/program_source.h"
#include "gradient/gradient.h"

namespace heddle::gradient {
namespace {

using formats::GradientCall;
using ir::VarId;

std::unordered_set<std::string> NamesOf(const ir::Program& program) {
  std::unordered_set<std::string> names;
  for (const ir::Var& var : program.vars)
    if (var.block == 0) names.insert(var.name);
  return names;
}

// The place of the operator that writes zeros to the variable.
Result<size_t> PlaceOfZeros(const ir::Program& program, const std::string& gradient) {
  const VarId v = program.Find(0, gradient);
  const auto& ops = program.blocks[0].ops;
  for (size_t k = 0; k < ops.size(); ++k)
    if (ops[k].type() == "fill_zeros_like" && ops[k].Out("Out")[0] == v) return k;
  return Status(StatusCode::kInternal, "nothing holds the place of '" + gradient + "'");
}

// AppendBackward leaves its operators at the end. Here they move to where the first gradient is
// used, together with copies of what is overwritten later: all that makes variables that `before`
// lacks. What they read has been written there, as nothing of the forward part is computed again.
void MoveTo(size_t place, const std::unordered_set<std::string>& before, ir::Program* program) {
  auto& ops = program->blocks[0].ops;
  std::unordered_set<VarId> fetched;  // copies under the names of outputs
  for (const ir::Port& fetch : program->fetches) fetched.insert(fetch.var);
  const auto moves = [&](const ir::Op& op) {
    bool found = false;
    for (const auto& slot : op.outputs)
      for (const VarId v : slot)
        if (v != ir::kNoVar) {
          if (fetched.contains(v) || before.contains(program->vars[v].name)) return false;
          found = true;
        }
    return found;
  };
  std::stable_partition(ops.begin() + static_cast<std::ptrdiff_t>(place), ops.end(), moves);
}

// Copies the gradient where zeros were.
Status Replace(const std::string& zeros, const std::string& gradient, ir::Program* program) {
  HEDDLE_ASSIGN_OR_RETURN(const size_t place, PlaceOfZeros(*program, zeros));
  ir::Op copy = ir::MakeOp(*FindOp("assign"));
  copy.inputs[0] = {program->Find(0, gradient)};
  copy.outputs[0] = program->blocks[0].ops[place].Out("Out");
  program->blocks[0].ops[place] = std::move(copy);
  return Status::Ok();
}

Status Expand(const GradientCall& call, std::shared_ptr<ir::Program>* program) {
  GradientRequest request;
  request.losses = call.losses;
  request.wrt = call.arguments;
  request.skip_independent = true;
  request.dense = true;
  const std::unordered_set<std::string> before = NamesOf(**program);
  auto made = AppendBackward(Program(*program), request);
  if (!made.ok())
    return Status(made.status().code(),
                  StrCat("the gradient '", call.where, "': ", made.status().message()));
  if (made->gradients.empty()) return Status::Ok();
  auto expanded = std::make_shared<ir::Program>(made->program.ir());
  expanded->source = (*program)->source;
  expanded->hash = (*program)->hash;
  expanded->name = (*program)->name;
  size_t place = expanded->blocks[0].ops.size();
  for (const std::string& zeros : call.gradients) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t at, PlaceOfZeros(*expanded, zeros));
    place = std::min(place, at);
  }
  MoveTo(place, before, expanded.get());
  for (const GradientName& gradient : made->gradients) {
    const auto k = std::find(call.arguments.begin(), call.arguments.end(), gradient.variable) -
                   call.arguments.begin();
    HEDDLE_RETURN_IF_ERROR(
        Replace(call.gradients[static_cast<size_t>(k)], gradient.gradient, expanded.get()));
  }
  // To whom runs the program, these are operators as all others.
  for (ir::Block& block : expanded->blocks)
    for (ir::Op& op : block.ops) op.role = nullptr;
  *program = std::move(expanded);
  return Status::Ok();
}

}  // namespace

Result<std::shared_ptr<ir::Program>> WithGradientCalls(const ir::Program& program) {
  auto expanded = std::make_shared<ir::Program>(program);
  for (const GradientCall& call : program.source->GradientCalls()) {
    const Status status = Expand(call, &expanded);
    if (!status.ok()) return Status(status.code(), StrCat(program.name, ": ", status.message()));
  }
  return expanded;
}

}  // namespace heddle::gradient
