// heddle ops: the operators heddle knows.
#include <CLI/CLI.hpp>
#include <iostream>

#include "heddle/program.h"
#include "tools/commands.h"

namespace heddle::tools {
namespace {

Status List(const std::string& name, bool all) {
  if (all) {
    for (const std::string& op : SupportedOps()) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string text, DescribeOp(op));
      std::cout << text;
    }
    return Status::Ok();
  }
  if (name.empty()) {
    for (const std::string& op : SupportedOps()) std::cout << op << "\n";
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, DescribeOp(name));
  std::cout << text << (text.ends_with('\n') ? "" : "\n");
  return Status::Ok();
}

}  // namespace

void AddOps(CLI::App& root, Action& chosen) {
  auto name = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("ops", "list the supported operators, or describe one");
  app->add_option("NAME", *name, "the operator to describe")->type_name("");
  auto all = std::make_shared<bool>(false);
  app->add_flag("--all", *all, "describe every operator");
  app->footer("Examples:\n  heddle ops\n  heddle ops conv2d\n  heddle ops --all");
  app->callback([=, &chosen] { chosen = [=] { return List(*name, *all); }; });
}

}  // namespace heddle::tools
