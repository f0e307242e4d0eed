// heddle completion: words for the shell to complete, taken from the commands themselves.
#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "tools/commands.h"

namespace heddle::tools {
namespace {

struct Word {
  std::string text, help;
};

std::vector<Word> OptionsOf(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      words.push_back({"--" + name, option->get_description()});
  return words;
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); });
}

std::string Texts(const std::vector<Word>& words) {
  std::string all;
  for (const Word& w : words) all += (all.empty() ? "" : " ") + w.text;
  return all;
}

// Files are completed everywhere: models, feeds and outputs are files. NAME=FILE completes the
// file.
void PrintBash(const CLI::App& root) {
  std::string names;
  for (const CLI::App* c : CommandsOf(root)) names += (names.empty() ? "" : " ") + c->get_name();
  std::cout << "# bash completion for heddle; zsh: autoload bashcompinit && bashcompinit first\n"
               "_heddle() {\n"
               "  local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
               "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
               "    COMPREPLY=($(compgen -W \""
            << names << " " << Texts(OptionsOf(root))
            << "\" -- \"$cur\"))\n"
               "    return\n"
               "  fi\n"
               "  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* c : CommandsOf(root))
    std::cout << "    " << c->get_name() << ") words=\"" << Texts(OptionsOf(*c)) << "\" ;;\n";
  std::cout
      << "  esac\n"
         "  case $cur in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
         "    *) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"${cur#*=}\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _heddle heddle\n";
}

// As one argument of fish, in single quotes.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

void PrintFish(const CLI::App& root) {
  std::cout << "# fish completion for heddle\n";
  for (const CLI::App* c : CommandsOf(root)) {
    std::cout << "complete -c heddle -n __fish_use_subcommand -a " << c->get_name() << " -d "
              << Quoted(c->get_description()) << "\n";
    for (const Word& w : OptionsOf(*c))
      std::cout << "complete -c heddle -n '__fish_seen_subcommand_from " << c->get_name() << "' -l "
                << w.text.substr(2) << " -d " << Quoted(w.help) << "\n";
  }
}

}  // namespace

void AddCompletion(CLI::App& root, Action& chosen) {
  CLI::App* app =
      root.add_subcommand("completion", "print a script that completes heddle's words in a shell");
  auto shell = std::make_shared<std::string>();
  app->add_option("SHELL", *shell, "bash (and zsh), or fish")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "fish"}));
  app->footer(
      "Examples:\n"
      "  source <(heddle completion bash)\n"
      "  heddle completion fish > ~/.config/fish/completions/heddle.fish");
  app->callback([=, &root, &chosen] {
    chosen = [=, &root] {
      *shell == "bash" ? PrintBash(root) : PrintFish(root);
      return Status::Ok();
    };
  });
}

}  // namespace heddle::tools
