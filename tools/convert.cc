// heddle convert: a model in the files of another format.
#include <iostream>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "tools/commands.h"
#include "tools/json_output.h"
#include "tools/options.h"
#include "tools/progress.h"

namespace heddle::tools {
namespace {

struct Options {
  std::string model, params, format, output;
  int level = 0;
  bool json = false;
};

Status Convert(const Options& options) {
  SavedModel saved;
  Model model;
  {
    Progress progress("converting " + options.model);
    HEDDLE_ASSIGN_OR_RETURN(model, LoadModel(options.model, options.params));
    if (options.level > 0) {
      HEDDLE_ASSIGN_OR_RETURN(OptimizedModel cleaned,
                              OptimizeModel(model, {.level = options.level}));
      model = std::move(cleaned.model);
    }
    HEDDLE_ASSIGN_OR_RETURN(saved, SaveModel(model, options.output, options.format));
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
  auto options = std::make_shared<Options>();
  Command app = root.add_command("convert", "write a model in another format");
  app.add_option("MODEL", options->model, "a program file, or a directory with one")
      .required()
      .type_name("");
  app.add_option("--params", options->params, "its parameters, if they are not beside it")
      .type_name("FILE");
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
      "  heddle convert resnet50/ --to pir -o for_paddle3");
  app.on_chosen([options, &chosen] { chosen = [options] { return Convert(*options); }; });
}

}  // namespace heddle::tools
