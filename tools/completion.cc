// heddle completion: words for the shell to complete, taken from the commands themselves.
#include <iostream>
#include <sstream>

#include "tools/commands.h"

namespace heddle::tools {
namespace {

struct Word {
  std::string text, help;
};

std::vector<Word> OptionsOf(Command command) {
  std::vector<Word> words;
  for (const Option option : command.options())
    for (const std::string& name : option.long_names())
      words.push_back({name, option.description()});
  return words;
}

std::string Texts(const std::vector<Word>& words) {
  std::string all;
  for (const Word& w : words) all += (all.empty() ? "" : " ") + w.text;
  return all;
}

// Files are completed everywhere: models, feeds and outputs are files. NAME=FILE completes the
// file.
void PrintBash(Command root) {
  std::string names;
  for (const Command c : root.commands()) names += (names.empty() ? "" : " ") + c.name();
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
  for (const Command c : root.commands())
    std::cout << "    " << c.name() << ") words=\"" << Texts(OptionsOf(c)) << "\" ;;\n";
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

void PrintFish(Command root) {
  std::cout << "# fish completion for heddle\n";
  for (const Command c : root.commands()) {
    std::cout << "complete -c heddle -n __fish_use_subcommand -a " << c.name() << " -d "
              << Quoted(c.description()) << "\n";
    for (const Word& w : OptionsOf(c))
      std::cout << "complete -c heddle -n '__fish_seen_subcommand_from " << c.name() << "' -l "
                << w.text.substr(2) << " -d " << Quoted(w.help) << "\n";
  }
}

}  // namespace

void AddCompletion(Command root, Action& chosen) {
  Command app =
      root.add_command("completion", "print a script that completes heddle's words in a shell");
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash (and zsh), or fish")
      .required()
      .type_name("")
      .one_of({"bash", "fish"});
  app.footer(
      "Examples:\n"
      "  source <(heddle completion bash)\n"
      "  heddle completion fish > ~/.config/fish/completions/heddle.fish");
  app.on_chosen([=, &chosen] {
    chosen = [=] {
      *shell == "bash" ? PrintBash(root) : PrintFish(root);
      return Status::Ok();
    };
  });
}

}  // namespace heddle::tools
