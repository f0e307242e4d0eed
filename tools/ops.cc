// heddle ops: the operators heddle knows.
#include <algorithm>
#include <iostream>

#include "gradient/gradient.h"
#include "heddle/operators.h"
#include "heddle/program.h"
#include "tools/commands.h"
#include "tools/json_output.h"
#include "tools/values/names.h"

namespace heddle::tools {
namespace {

struct OpsOptions {
  std::string name;
  bool all = false, json = false;
};

// The description, with what the gradient pass knows in place of the gradient operator's name.
Result<std::string> Described(const std::string& name) {
  HEDDLE_ASSIGN_OR_RETURN(std::string text, DescribeOp(name));
  constexpr std::string_view kLine = "\n  gradient ";
  if (const size_t at = text.find(kLine); at != std::string::npos)
    text.erase(at + 1, text.find('\n', at + 1) - at);
  const size_t dtypes = text.find("\n  dtypes ");
  const std::string rule = gradient::GradientRuleText(name);
  if (dtypes != std::string::npos && !rule.empty())
    text.insert(dtypes + 1, "  gradient " + rule + "\n");
  return text;
}

// Each with its description where descriptions are asked for.
Status ListAsJson(const std::vector<std::string>& names, bool describe) {
  Json json = NewJson("ops", 2);
  json["operators"] = Json::array();
  for (const std::string& name : names) {
    HEDDLE_ASSIGN_OR_RETURN(const OperatorFacts facts, FactsOfOp(name));
    Json op = {{"op", name}, {"file", facts.file}};
    op["dtypes"] = Json::array();
    for (const DType dtype : facts.dtypes) op["dtypes"].push_back(Name(dtype));
    op["gradient"] = facts.gradient.empty() ? Json() : Json(facts.gradient);
    const std::string rule = gradient::GradientRuleText(name);
    op["gradient_rule"] = rule.empty() ? Json() : Json(rule);
    if (describe) {
      HEDDLE_ASSIGN_OR_RETURN(op["description"], Described(name));
      if (!facts.file.empty()) op["source"] = facts.file;
    }
    json["operators"].push_back(std::move(op));
  }
  WriteJson(json);
  return Status::Ok();
}

Status List(const OpsOptions& options) {
  const bool one = !options.name.empty() && !options.all;
  const std::vector<std::string> all = SupportedOps();
  if (one && !std::binary_search(all.begin(), all.end(), options.name))
    return Status(StatusCode::kNotFound,
                  "heddle has no operator '" + options.name + "'" + DidYouMean(options.name, all));
  const auto names = one ? std::vector<std::string>{options.name} : all;
  const bool describe = one || options.all;
  if (options.json) return ListAsJson(names, describe);
  for (const std::string& name : names) {
    if (!describe) {
      std::cout << name << "\n";
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, Described(name));
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
