// heddle partition: which operators a piece of hardware takes, in which groups. Parameters are not
// read.
#include "partition/partition.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "heddle/model_files.h"
#include "heddle/params.h"
#include "heddle/program.h"
#include "partition/parts.h"
#include "tools/commands.h"
#include "tools/engines/engine_choice.h"
#include "tools/json_output.h"
#include "tools/values/durable.h"

namespace heddle::tools {
namespace {

struct PartitionOptions {
  std::string model;
  ProgramPart part;
  std::vector<std::string> targets;
  std::string output;
  bool json = false, dot = false;
};

// Writes the answer as it goes: a large program's would be slow to make as one object.
class AnswerWriter {
 public:
  explicit AnswerWriter(const partition::Partition& partition) : partition_(partition) {}

  std::string Text(const std::string& program) {
    Raw("{\n \"schema\": \"heddle.partition/1\",\n \"program\": ");
    Quoted(program);
    Raw(",\n \"target\": ");
    Texts(partition_.targets);
    Raw(",\n ");
    Block(partition_.blocks[0], " ");
    Raw(",\n \"ms\": ");
    Number(partition_.ms);
    Raw(",\n \"blocks\": [");
    for (size_t b = 1; b < partition_.blocks.size(); ++b) {
      Raw(b == 1 ? "\n  {\"block\": " : ",\n  {\"block\": ");
      Number(partition_.blocks[b].block);
      Raw(",\n   ");
      Block(partition_.blocks[b], "   ");
      Raw("}");
    }
    Raw("]\n}\n");
    return std::move(text_);
  }

 private:
  void Raw(std::string_view text) { text_ += text; }
  template <typename T>
  void Number(T value) {
    if constexpr (std::is_floating_point_v<T>)
      text_ += Json(value).dump();
    else
      text_ += std::to_string(value);
  }
  void Quoted(const std::string& text) {
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
      return c >= ' ' && c < 127 && c != '"' && c != '\\';
    });
    if (plain)
      text_.append("\"").append(text).append("\"");
    else
      text_ += JsonText(Json(text));
  }
  void Texts(const std::vector<std::string>& texts) {
    text_ += '[';
    for (const std::string& text : texts) {
      if (&text != &texts[0]) text_ += ", ";
      Quoted(text);
    }
    text_ += ']';
  }
  void Numbers(const std::vector<int>& numbers) {
    text_ += '[';
    for (const int& number : numbers) {
      if (&number != &numbers[0]) text_ += ", ";
      Number(number);
    }
    text_ += ']';
  }

  void Block(const partition::BlockPartition& block, const std::string& indent) {
    Raw("\"operators\": ");
    Number(block.operators);
    Raw(",\n" + indent + "\"groups\": [");
    for (size_t k = 0; k < block.groups.size(); ++k) {
      Raw((k == 0 ? "\n" : ",\n") + indent + " ");
      Group(block.groups[k], k);
    }
    Raw("],\n" + indent + "\"rest\": [");
    for (size_t k = 0; k < block.rest.size(); ++k) {
      Raw((k == 0 ? "\n" : ",\n") + indent + " {\"operator\": ");
      Number(block.rest[k].op);
      Raw(", \"type\": ");
      Quoted(block.rest[k].type);
      Raw(", \"reason\": ");
      Quoted(block.rest[k].reason);
      Raw("}");
    }
    Raw("],\n" + indent + "\"cost\": {\"groups\": ");
    Number(block.groups_cost);
    Raw(", \"host\": ");
    Number(block.host_cost);
    Raw(", \"total\": ");
    Number(block.groups_cost + block.host_cost);
    Raw("}");
  }

  void Group(const partition::PlacedGroup& group, size_t index) {
    Raw("{\"index\": ");
    Number(index);
    Raw(", \"target\": ");
    Quoted(partition_.targets[static_cast<size_t>(group.target)]);
    Raw(", \"operators\": ");
    Numbers(group.operators);
    Raw(", \"units\": ");
    Texts(group.units);
    Raw(", \"helpers\": ");
    Numbers(group.helpers);
    Raw(", \"inputs\": ");
    Texts(group.inputs);
    Raw(", \"outputs\": ");
    Texts(group.outputs);
    Raw(", \"cost\": ");
    Number(group.cost);
    Raw("}");
  }

  const partition::Partition& partition_;
  std::string text_;
};

void PrintPartitionText(const partition::Partition& partition) {
  for (const partition::BlockPartition& block : partition.blocks) {
    size_t covered = 0;
    for (const partition::PlacedGroup& group : block.groups)
      covered += group.operators.size() + group.helpers.size();
    if (partition.blocks.size() > 1) std::cout << "block " << block.block << ": ";
    std::cout << block.groups.size() << " groups take " << covered << " of " << block.operators
              << " operators; cost " << block.groups_cost + block.host_cost << ", of it "
              << block.host_cost << " on the host\n";
    for (size_t k = 0; k < block.groups.size(); ++k) {
      const partition::PlacedGroup& group = block.groups[k];
      std::cout << "group " << k << " on " << partition.targets[static_cast<size_t>(group.target)]
                << ", cost " << group.cost << "\n ";
      for (size_t i = 0; i < group.operators.size(); ++i)
        std::cout << " " << group.operators[i] << ":" << group.units[i];
      for (const int helper : group.helpers) std::cout << " " << helper << ":helper";
      std::cout << "\n";
    }
    if (!block.rest.empty()) std::cout << "rest\n";
    for (const partition::RestOperator& rest : block.rest)
      std::cout << "  " << rest.op << " " << rest.type << ": " << rest.reason << "\n";
  }
}

// The answer, a program for each part, and those parameters of it that are at hand.
Status WriteParts(const PartitionOptions& options, const std::string& file,
                  const std::string& bytes, const partition::Partition& partition) {
  namespace fs = std::filesystem;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<partition::Part> parts,
                          partition::PartsOf(bytes, partition));
  const Result<Model> model = LoadModel(file, "", options.part);
  if (!model.ok() && model.status().code() != StatusCode::kNotFound) return model.status();
  std::error_code ec;
  fs::create_directories(options.output, ec);
  if (ec)
    return Status(StatusCode::kNotFound,
                  "cannot make the directory " + options.output + ": " + ec.message());
  Json order = Json::array();
  for (const partition::Part& part : parts) {
    const std::string stem = (fs::path(options.output) / part.name).string();
    HEDDLE_ASSIGN_OR_RETURN(const Program program, Program::Parse(part.program, stem + ".pdmodel"));
    if (model.ok() && !program.persistables().empty())
      HEDDLE_RETURN_IF_ERROR(SaveParameters(program, *model->scope, stem + ".pdiparams"));
    HEDDLE_RETURN_IF_ERROR(WriteDurable(stem + ".pdmodel", part.program));
    order.push_back({{"part", part.name},
                     {"group", part.group < 0 ? Json() : Json(part.group)},
                     {"inputs", part.inputs},
                     {"outputs", part.outputs},
                     {"carried", part.carried}});
  }
  const auto in = [&](const char* name) { return (fs::path(options.output) / name).string(); };
  Json json = NewJson("parts");
  json["program"] = file;
  json["parts"] = std::move(order);
  HEDDLE_RETURN_IF_ERROR(WriteDurable(in("parts.json"), JsonText(json) + "\n"));
  return WriteDurable(in("partition.json"), AnswerWriter(partition).Text(file));
}

Status RunPartition(const PartitionOptions& options) {
  std::vector<partition::Target> targets;
  for (const std::string& file : options.targets) {
    HEDDLE_ASSIGN_OR_RETURN(partition::Target target, partition::LoadTarget(file));
    WarnOfNames(target, file);
    targets.push_back(std::move(target));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string file, FindProgramFile(options.model));
  HEDDLE_ASSIGN_OR_RETURN(const Program program, LoadProgram(file, options.part));
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, partition::ProgramBytesOf(program));
  HEDDLE_ASSIGN_OR_RETURN(const partition::Partition partition,
                          partition::PartitionBytes(bytes, targets));
  if (!options.output.empty()) HEDDLE_RETURN_IF_ERROR(WriteParts(options, file, bytes, partition));
  if (options.json) {
    std::cout << AnswerWriter(partition).Text(file);
  } else if (options.dot) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string dot, partition::PartitionDot(bytes, partition));
    std::cout << dot;
  } else {
    PrintPartitionText(partition);
  }
  return Status::Ok();
}

}  // namespace

void AddPartition(Command root, Action& chosen) {
  auto options = std::make_shared<PartitionOptions>();
  Command app = root.add_command("partition",
                                 "say which operators a piece of hardware takes, in which groups");
  app.add_option("MODEL", options->model, "a program file, or a directory with one")
      .required()
      .type_name("");
  app.add_option("--target", options->targets,
                 "what the hardware takes (docs/partition.md); may be repeated: the first claims "
                 "first")
      .required()
      .type_name("FILE")
      .one_value_each();
  app.add_option("--signature", options->part.signature,
                 "inputs and outputs of a TensorFlow SavedModel [serving_default]")
      .type_name("KEY");
  app.add_option("--fetch", options->part.fetches,
                 "output of a TensorFlow graph; may be repeated [what nothing uses]")
      .type_name("NAME")
      .one_value_each();
  app.add_option("-o,--out", options->output,
                 "also write a program for each group, and for what stays between them, with "
                 "partition.json and, in the order in which they run, parts.json")
      .type_name("DIR");
  Option json = app.add_flag("--json", options->json, "one JSON object instead of text");
  app.add_flag("--dot", options->dot, "a graph for Graphviz instead of text").excludes(json);
  app.footer("Example:\n  heddle partition resnet50/ --target examples/targets/npu.json");
  app.on_chosen([options, &chosen] { chosen = [options] { return RunPartition(*options); }; });
}

}  // namespace heddle::tools
