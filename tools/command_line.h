// The command line: commands, their options, what is wrong with what was given. A thin layer over
// CLI11, which only command_line.cc includes: its inline code costs each file that includes it ten
// seconds and more of compilation.
//
// Command and Option are handles: cheap to copy, valid as long as their CommandLine. The variables
// that options write to must outlive parsing. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heddle::tools {

// An option, a flag or an operand. Every function returns the handle itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  // The word that stands for the value in help texts; empty for operands.
  Option type_name(const std::string& name);
  // Help texts show the present value of the variable, or `text`, as the default.
  Option show_default();
  Option show_default(const std::string& text);
  // For an option that may be repeated: it takes one value each time.
  Option one_value_each();

  // Wrong usage unless `why` returns an empty string for the text that was given.
  Option check(std::function<std::string(const std::string&)> why);
  Option in_range(int min, int max);
  Option in_range(double min, double max);
  Option positive();
  Option not_negative();
  Option existing_directory();
  Option one_of(const std::vector<std::string>& texts);

  // Wrong usage where both are given; where this one is given without the other.
  Option excludes(Option other);
  Option needs(Option other);

  // "--" and each long name.
  std::vector<std::string> long_names() const;
  std::string description() const;

 private:
  CLI::Option* option_;
};

// A command, the root of commands or a group of options.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_command(const std::string& name, const std::string& description);
  // Exactly one option of the group must be given.
  Command add_choice_of_options(const std::string& name);

  // `names`: "-o,--output", or a word in capitals for an operand. The variable keeps its value
  // where the option is not given.
  template <typename T>  // std::string, int, int64_t, uint64_t, double, std::vector<std::string>
  Option add_option(const std::string& names, T& variable, const std::string& help);
  // The value is one of the `choices`; `set` is called with the number that belongs to it.
  Option add_choice(const std::string& names,
                    const std::vector<std::pair<std::string, int>>& choices,
                    std::function<void(int)> set, const std::string& help);
  Option add_flag(const std::string& names, bool& variable, const std::string& help);
  Option add_flag(const std::string& names, std::function<void()> given, const std::string& help);

  // Text at the end of the help.
  void footer(const std::string& text);
  // Called when parsing ends, if the command was named. Wrong usage unless `why`, which is called
  // before, returns an empty string.
  void on_chosen(std::function<void()> call, std::function<std::string()> why = nullptr);

  std::string name() const;
  std::string description() const;
  std::vector<Option> options() const;
  std::vector<Command> commands() const;

 private:
  CLI::App* app_;
};

extern template Option Command::add_option(const std::string&, std::string&, const std::string&);
extern template Option Command::add_option(const std::string&, int&, const std::string&);
extern template Option Command::add_option(const std::string&, int64_t&, const std::string&);
extern template Option Command::add_option(const std::string&, uint64_t&, const std::string&);
extern template Option Command::add_option(const std::string&, double&, const std::string&);
extern template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                           const std::string&);

class CommandLine {
 public:
  // At most one command of the root may be named; the root's options may follow it.
  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();

  Command root();
  // --version prints `text`.
  void set_version(const std::string& text);

  enum class Outcome { kParsed, kAnswered, kWrongUsage };
  // kAnswered: help or the version was asked for and has been printed. kWrongUsage: see error().
  Outcome Parse(int argc, char** argv);
  const std::string& error() const { return error_; }
  std::string help() const;
  // Whether the command that was named has this option and it was given.
  bool given(const std::string& option) const;

 private:
  std::unique_ptr<CLI::App> app_;
  std::string error_;
};

}  // namespace heddle::tools
