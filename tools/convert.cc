// heddle convert: a model in the files of another format.
#include <filesystem>
#include <iostream>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "tools/commands.h"
#include "tools/json_output.h"
#include "tools/options.h"
#include "tools/progress.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  std::string model, params, format, output;
  ProgramPart part;
  int level = 0;
  bool program_only = false;
  bool json = false;
};

// The program to write. Of formats whose files hold one program, `fetches` replace its outputs.
Result<Model> Read(const ConvertOptions& options) {
  Model model;
  if (options.program_only) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string file, FindProgramFile(options.model));
    HEDDLE_ASSIGN_OR_RETURN(model.program, LoadProgram(file, options.part));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(model, LoadModel(options.model, options.params, options.part));
  }
  OptimizeOptions optimize{.level = options.level};
  std::vector<std::string> outputs;
  for (const TensorInfo& output : model.program.outputs()) outputs.push_back(output.name);
  if (outputs != options.part.fetches) optimize.fetches = options.part.fetches;
  if (options.level == 0 && optimize.fetches.empty()) return model;
  HEDDLE_ASSIGN_OR_RETURN(OptimizedModel cleaned, OptimizeModel(model, optimize));
  return std::move(cleaned.model);
}

Status Convert(const ConvertOptions& options) {
  SavedModel saved;
  Model model;
  {
    Progress progress("converting " + options.model);
    HEDDLE_ASSIGN_OR_RETURN(model, Read(options));
    if (options.program_only) {
      HEDDLE_ASSIGN_OR_RETURN(
          saved, SaveProgram(model.program, options.output, fs::path(options.model).stem().string(),
                             options.format));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(saved, SaveModel(model, options.output, options.format));
    }
  }
  const size_t parameters = model.program.persistables().size();
  if (!saved.foreign.empty()) {
    std::cerr << "heddle: of its operators, heddle reads and Paddle does not know:";
    for (const std::string& op : saved.foreign) std::cerr << " " << op;
    std::cerr << "\n";
  }
  if (!options.json) {
    std::cout << saved.program << ": " << model.program.num_ops() << " operators, " << parameters
              << " parameters\n";
    return Status::Ok();
  }
  Json json = NewJson("convert", 1);
  json["program"] = options.model;
  json["format"] = options.format;
  json["output"] = saved.program;
  json["parameter_file"] = saved.parameters.empty() ? Json() : Json(saved.parameters);
  json["operators"] = model.program.num_ops();
  json["parameters"] = parameters;
  json["foreign"] = saved.foreign;
  WriteJson(json);
  return Status::Ok();
}

}  // namespace

void AddConvert(Command root, Action& chosen) {
  auto options = std::make_shared<ConvertOptions>();
  Command app = root.add_command("convert", "write a model in another format");
  app.add_option("MODEL", options->model, "a program file, or a directory with one")
      .required()
      .type_name("");
  const Option params =
      app.add_option("--params", options->params, "its parameters, if they are not beside it")
          .type_name("FILE");
  app.add_option("--signature", options->part.signature,
                 "inputs and outputs of a TensorFlow SavedModel [serving_default]")
      .type_name("KEY");
  app.add_option("--fetch", options->part.fetches,
                 "an output of what is written; may be repeated [the model's outputs, or its loss, "
                 "or what nobody reads]")
      .type_name("NAME")
      .one_value_each();
  app.add_flag("--program-only", options->program_only,
               "without parameters, as the programs of a training job are")
      .excludes(params);
  app.add_option("--to", options->format,
                 "paddle: .pdmodel, for Paddle 2; pir: inference.json, for Paddle 3")
      .required()
      .type_name("FORMAT");
  app.add_option("-o,--output", options->output, "the directory to write to")
      .required()
      .type_name("DIR");
  app.add_option("--opt", options->level,
                 "1 = what is written is cleaned up first, as by heddle opt")
      .type_name("LEVEL")
      .in_range(0, 1)
      .show_default();
  app.add_flag("--json", options->json, "one JSON object instead of text");
  app.footer(
      "Examples:\n"
      "  heddle convert ppocrv4_det/ --to paddle -o for_paddle2\n"
      "  heddle convert resnet50/ --to pir -o for_paddle3\n"
      "  heddle convert main.pdmodel --program-only --to pir -o job");
  app.on_chosen([options, &chosen] { chosen = [options] { return Convert(*options); }; });
}

}  // namespace heddle::tools
