// heddle ops: the operators heddle knows.
#include <iostream>

#include "heddle/program.h"
#include "tools/commands.h"
#include "tools/json_output.h"

namespace heddle::tools {
namespace {

struct OpsOptions {
  std::string name;
  bool all = false, json = false;
};

// Each with its description where descriptions are asked for.
Status ListAsJson(const std::vector<std::string>& names, bool describe) {
  Json json = NewJson("ops");
  json["operators"] = Json::array();
  for (const std::string& name : names) {
    Json op = {{"op", name}};
    if (describe) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string text, DescribeOp(name));
      op["description"] = text;
      HEDDLE_ASSIGN_OR_RETURN(const std::string source, SourceOfOp(name));
      if (!source.empty()) op["source"] = source;
    }
    json["operators"].push_back(std::move(op));
  }
  WriteJson(json);
  return Status::Ok();
}

Status List(const OpsOptions& options) {
  const bool one = !options.name.empty() && !options.all;
  const auto names = one ? std::vector<std::string>{options.name} : SupportedOps();
  const bool describe = one || options.all;
  if (options.json) return ListAsJson(names, describe);
  for (const std::string& name : names) {
    if (!describe) {
      std::cout << name << "\n";
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, DescribeOp(name));
    std::cout << text << (text.ends_with('\n') ? "" : "\n");
  }
  return Status::Ok();
}

}  // namespace

void AddOps(Command root, Action& chosen) {
  auto options = std::make_shared<OpsOptions>();
  Command app = root.add_command("ops", "list the supported operators, or describe one");
  app.add_option("NAME", options->name, "the operator to describe").type_name("");
  app.add_flag("--all", options->all, "describe every operator");
  app.add_flag("--json", options->json, "one JSON object instead of text");
  app.footer("Examples:\n  heddle ops\n  heddle ops conv2d\n  heddle ops --all");
  app.on_chosen([options, &chosen] { chosen = [options] { return List(*options); }; });
}

}  // namespace heddle::tools
