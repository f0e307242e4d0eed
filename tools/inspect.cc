// heddle inspect: what a program asks for, gives and consists of. Parameters are not read.
#include <algorithm>
#include <iostream>

#include "heddle/functions.h"
#include "heddle/model_files.h"
#include "heddle/operators.h"
#include "heddle/program.h"
#include "tools/commands.h"
#include "tools/json_output.h"
#include "tools/model_path.h"
#include "tools/values/values.h"

namespace heddle::tools {
namespace {

struct InspectOptions {
  std::string model;
  ProgramPart part;
  bool json = false;
};

struct Facts {
  std::string program_file, parameter_file;
  Program program;
  std::vector<TensorInfo> parameters;
  int64_t parameter_bytes = 0;
  std::vector<std::string> unsupported, signatures;
  struct Function {
    std::string name, signature;
    size_t calls = 0;
  };
  std::vector<Function> functions;
};

Result<Facts> Collect(const std::string& model, const ProgramPart& part) {
  Facts facts;
  HEDDLE_ASSIGN_OR_RETURN(facts.program_file, FindProgramFile(model));
  facts.parameter_file = FindParameterFile(facts.program_file);
  HEDDLE_ASSIGN_OR_RETURN(facts.program, LoadProgram(facts.program_file, part));
  HEDDLE_ASSIGN_OR_RETURN(facts.signatures, SignaturesOf(facts.program_file));
  facts.parameters = facts.program.persistables();
  for (const TensorInfo& p : facts.parameters)
    if (p.shape.is_static())
      facts.parameter_bytes += p.shape.numel() * static_cast<int64_t>(SizeOf(p.dtype));
  const std::vector<std::string> known = SupportedOps();
  for (const auto& op : facts.program.op_counts())
    if (!std::binary_search(known.begin(), known.end(), op.type) && op.type != "feed" &&
        op.type != "fetch")
      facts.unsupported.push_back(op.type);
  std::sort(facts.unsupported.begin(), facts.unsupported.end());
  HEDDLE_ASSIGN_OR_RETURN(FunctionLibrary functions, FunctionsOf(facts.program));
  for (const std::string& name : functions.names())
    facts.functions.push_back({name, functions.Signature(name), functions.CallsOf(name)});
  return facts;
}

// `types`: one each, as heddle::InputTypes says.
Json DescribeVariables(const std::vector<TensorInfo>& infos,
                       const std::vector<std::string>& types) {
  Json list = Json::array();
  for (const TensorInfo& i : infos) {
    const std::string& type = types[list.size()];
    Json shape;  // null: not even the rank is known
    if (i.shape.known_rank()) shape = std::vector<int64_t>(i.shape.begin(), i.shape.end());
    list.push_back(
        {{"name", i.name}, {"dtype", TypeText(i.dtype, type)}, {"shape", std::move(shape)}});
  }
  return list;
}

void PrintFactsJson(const Facts& facts) {
  const Program& p = facts.program;
  Json json = NewJson("inspect");
  json["program"] = facts.program_file;
  json["version"] = p.version();
  json["blocks"] = p.num_blocks();
  json["operators"] = p.num_ops();
  json["inputs"] = DescribeVariables(p.inputs(), InputTypes(p));
  json["outputs"] = DescribeVariables(p.outputs(), OutputTypes(p));
  json["parameters"] = facts.parameters.size();
  json["parameter_bytes"] = facts.parameter_bytes;
  json["parameter_file"] = facts.parameter_file;
  Json counts = Json::object();
  for (const auto& op : p.op_counts()) counts[op.type] = op.count;
  json["operator_counts"] = std::move(counts);
  for (const OpRoleCount& r : OpRolesOf(p)) {
    Json pairs = Json::array();
    for (size_t k = 0; k + 1 < r.pairs.size(); k += 2)
      pairs.push_back({{"parameter", r.pairs[k]}, {"gradient", r.pairs[k + 1]}});
    json["roles"].push_back({{"role", r.role},
                             {"meaning", OpRoleText(r.role)},
                             {"operators", r.operators},
                             {"pairs", std::move(pairs)}});
  }
  json["unsupported"] = facts.unsupported;
  if (!facts.signatures.empty()) json["signatures"] = facts.signatures;
  for (const Facts::Function& f : facts.functions)
    json["functions"].push_back({{"name", f.name}, {"signature", f.signature}, {"calls", f.calls}});
  WriteJson(json);
}

void PrintVariables(const std::string& title, const std::vector<TensorInfo>& infos,
                    const std::vector<std::string>& types) {
  std::cout << title << "\n";
  for (size_t k = 0; k < infos.size(); ++k)
    std::cout << "  " << infos[k].name << "  " << TypeText(infos[k].dtype, types[k]) << " "
              << infos[k].shape.ToString() << "\n";
  if (infos.empty()) std::cout << "  none\n";
}

void PrintFunctions(const std::vector<Facts::Function>& functions) {
  if (functions.empty()) return;
  std::cout << "functions\n";
  constexpr size_t kMostShown = 50;
  for (size_t k = 0; k < std::min(functions.size(), kMostShown); ++k)
    std::cout << "  " << functions[k].calls << (functions[k].calls == 1 ? " call   " : " calls  ")
              << functions[k].signature << "\n";
  if (functions.size() > kMostShown)
    std::cout << "  and " << functions.size() - kMostShown << " more, which --json lists\n";
}

void PrintFactsText(const Facts& facts) {
  const Program& p = facts.program;
  std::cout << facts.program_file << ": " << p.num_ops() << " operators in " << p.num_blocks()
            << (p.num_blocks() == 1 ? " block" : " blocks");
  if (p.version() != 0) std::cout << ", written by Paddle " << VersionText(p.version());
  std::cout << "\n";
  if (!facts.signatures.empty()) std::cout << "signatures\n";
  for (const std::string& key : facts.signatures) std::cout << "  " << key << "\n";
  PrintVariables("inputs", p.inputs(), InputTypes(p));
  PrintVariables("outputs", p.outputs(), OutputTypes(p));
  std::cout << "parameters\n  " << facts.parameters.size() << ", "
            << BytesText(static_cast<double>(facts.parameter_bytes));
  if (!facts.parameters.empty())
    std::cout << (facts.parameter_file.empty() ? " (no .pdiparams file beside the program)"
                                               : ", in " + facts.parameter_file);
  std::cout << "\n";
  PrintFunctions(facts.functions);
  std::cout << "operators\n";
  for (const auto& op : p.op_counts()) {
    const bool missing =
        std::binary_search(facts.unsupported.begin(), facts.unsupported.end(), op.type);
    std::cout << "  " << op.count << "  " << op.type << (missing ? "  (not supported)" : "")
              << "\n";
  }
  if (!facts.unsupported.empty())
    std::cout << facts.unsupported.size() << " operators are not supported\n";
}

Status Inspect(const InspectOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const Facts facts, Collect(options.model, options.part));
  if (options.json)
    PrintFactsJson(facts);
  else
    PrintFactsText(facts);
  return Status::Ok();
}

}  // namespace

void AddInspect(Command root, Action& chosen) {
  auto options = std::make_shared<InspectOptions>();
  Command app =
      root.add_command("inspect", "list a model's inputs, outputs, parameters and operators");
  app.add_option(
         "MODEL", options->model,
         "a program file (.pdmodel, .json of Paddle 3, .onnx, or a TensorFlow .pb, .pbtxt or "
         ".meta), or a directory with one")
      .required()
      .type_name("");
  app.add_option("--signature", options->part.signature,
                 "inputs and outputs of a TensorFlow SavedModel [serving_default]")
      .type_name("KEY");
  app.add_option("--fetch", options->part.fetches,
                 "output of a TensorFlow graph; may be repeated [what nothing uses]")
      .type_name("NAME")
      .one_value_each();
  app.add_flag("--json", options->json, "one JSON object instead of text");
  app.footer("Example:\n  heddle inspect examples/digits");
  app.on_chosen([options, &chosen] { chosen = [options] { return Inspect(*options); }; });
}

}  // namespace heddle::tools
