#include "gradient/function_gradient.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "gradient/tuning/edit.h"
#include "heddle/model_files.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::VarId;

// The names that ToGraphDef gives the ports of a function.
class PortNames {
 public:
  explicit PortNames(const FunctionBody& body) {
    for (const FunctionNode& node : body.definition->nodes) taken_.insert(node.name);
    for (const FunctionPort& port : body.arguments) arguments.push_back(Free(port.name));
    for (const FunctionPort& port : body.results) results.push_back(Free(port.name));
  }
  std::vector<std::string> arguments, results;

 private:
  std::string Free(std::string name) {
    std::replace(name.begin(), name.end(), ':', '_');
    std::string free = name;
    for (int k = 1; !taken_.insert(free).second; ++k) free = StrCat(name, "_", k);
    return free;
  }
  std::set<std::string> taken_;
};

bool MayHaveGradient(const ir::Var& var) {
  return var.dtype == DType::kUnknown || IsFloat(var.dtype) || IsComplex(var.dtype);
}

}  // namespace

Result<FunctionGradient> GradientOf(FunctionLibrary& library, const std::string& function,
                                    const std::vector<NamedFunctionValue>& attributes) {
  HEDDLE_ASSIGN_OR_RETURN(const auto handle, library.Instantiate(function, attributes));
  HEDDLE_ASSIGN_OR_RETURN(const std::string graph, ToGraphDef(library, handle));
  const PortNames names(library.Body(handle));
  if (names.results.empty()) return InvalidArgument("function '", function, "' has no results");
  ProgramPart part;
  part.fetches = names.results;
  FunctionGradient made;
  HEDDLE_ASSIGN_OR_RETURN(made.model,
                          ParseModel(graph, "", StrCat("function '", function, "'"), part));
  made.arguments = names.arguments;
  Edit edit(made.model.program);
  std::vector<std::string> losses;
  const std::vector<ir::Port> fetches = edit.ir().fetches;
  for (size_t k = 0; k < fetches.size(); ++k) {
    const VarId v = fetches[k].var;
    const ir::Var like = edit.var(v);
    made.results.push_back(like.name);
    made.result_gradients.emplace_back();
    if (!MayHaveGradient(like)) continue;
    // A loss whose gradient with respect to the result is what is given.
    const VarId given = edit.shared().AddVar(names.results[k] + "@GIVEN", 0, like);
    edit.var(given).input = true;
    ir::Port port{given, 0};
    for (const ir::Port& feed : edit.ir().feeds) port.col = std::max(port.col, feed.col + 1);
    if (!edit.ir().feeds.empty()) edit.ir().feeds.push_back(port);
    made.result_gradients.back() = edit.var(given).name;
    losses.push_back(edit.var(edit.Emit("elementwise_mul", {{"X", {v}}, {"Y", {given}}}, {},
                                        names.results[k] + "@WEIGHED"))
                         .name);
  }
  if (losses.empty())
    return InvalidArgument("function '", function, "' has no results of a floating type");
  const Program weighed = std::move(edit).Finish();
  for (const std::string& argument : made.arguments) {
    made.gradients.emplace_back();
    const VarId v = weighed.ir().Find(0, argument);
    if (v == kNoVar || !MayHaveGradient(weighed.ir().vars[v])) continue;
    made.gradients.back() = argument;
  }
  GradientRequest request;
  request.losses = losses;
  request.wrt = std::vector<std::string>();
  request.skip_independent = true;
  for (const std::string& argument : made.gradients)
    if (!argument.empty()) request.wrt->push_back(argument);
  HEDDLE_ASSIGN_OR_RETURN(const Gradients gradients, AppendBackward(weighed, request));
  made.model.program = gradients.program;
  for (std::string& argument : made.gradients) {
    const auto found =
        std::find_if(gradients.gradients.begin(), gradients.gradients.end(),
                     [&](const GradientName& name) { return name.variable == argument; });
    argument = found == gradients.gradients.end() ? "" : found->gradient;
  }
  return made;
}

}  // namespace heddle::gradient
