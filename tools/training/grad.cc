// heddle grad: a model with the gradients of its loss.
#include <iostream>

#include "gradient/gradient.h"
#include "heddle/model_files.h"
#include "heddle/params.h"
#include "heddle/program.h"
#include "tools/commands.h"
#include "tools/json_output.h"
#include "tools/values/names.h"

namespace heddle::tools {
namespace {

struct GradOptions {
  std::string model, params, output;
  ProgramPart part;
  std::vector<std::string> losses, wrt, no_grad;
  bool json = false;
};

Status WriteGradients(const GradOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const Model model,
                          LoadModel(options.model, options.params, options.part));
  gradient::GradientRequest request;
  request.losses = SplitNames(options.losses);
  if (!options.wrt.empty()) request.wrt = SplitNames(options.wrt);
  request.no_grad = SplitNames(options.no_grad);
  auto gradients = gradient::AppendBackward(model.program, request);
  if (!gradients.ok())
    return Status(gradients.status().code(), options.model + ": " + gradients.status().message());
  HEDDLE_ASSIGN_OR_RETURN(const SavedModel saved,
                          SaveModel({gradients->program, model.scope}, options.output, "paddle"));
  if (options.json) {
    Json json = NewJson("grad");
    json["program"] = saved.program;
    json["gradients"] = Json::object();
    for (const gradient::GradientName& name : gradients->gradients)
      json["gradients"][name.variable] = name.gradient;
    WriteJson(json);
    return Status::Ok();
  }
  std::cout << saved.program << ": " << gradients->program.num_ops() << " operators (were "
            << model.program.num_ops() << ")\n";
  for (const gradient::GradientName& name : gradients->gradients)
    std::cout << "  " << name.variable << " -> " << name.gradient << "\n";
  return Status::Ok();
}

}  // namespace

void AddGrad(Command root, Action& chosen) {
  auto options = std::make_shared<GradOptions>();
  Command app = root.add_command("grad", "write a model with the gradients of its loss");
  app.add_option("MODEL", options->model, "a program file, or a directory with one")
      .required()
      .type_name("");
  app.add_option("--loss", options->losses,
                 "the loss, or several with commas: the gradient is that of the sum of all their "
                 "elements")
      .required()
      .type_name("NAME,...")
      .one_value_each();
  app.add_option("--wrt", options->wrt,
                 "variables whose gradients are wanted [all trainable parameters]")
      .type_name("NAME,...")
      .one_value_each();
  app.add_option("--no-grad", options->no_grad, "variables through which no gradient flows")
      .type_name("NAME,...")
      .one_value_each();
  app.add_option("--params", options->params,
                 "parameters: a combined file, or a directory with one file each [the .pdiparams "
                 "beside the model]")
      .type_name("FILE");
  app.add_option("--signature", options->part.signature,
                 "inputs and outputs of a TensorFlow SavedModel [serving_default]")
      .type_name("KEY");
  app.add_option("-o,--out", options->output, "the directory for the model")
      .required()
      .type_name("DIR");
  app.add_flag("--json", options->json, "one JSON object instead of text");
  app.footer("Example:\n  heddle grad model.pdmodel --loss mean_0.tmp_0 -o with_gradients");
  app.on_chosen([options, &chosen] { chosen = [options] { return WriteGradients(*options); }; });
}

}  // namespace heddle::tools
