#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>

#include "tools/values/names.h"

namespace heddle::tools {

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option Option::show_default(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option Option::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::check(std::function<std::string(const std::string&)> why) {
  option_->check(CLI::Validator(std::move(why), ""));
  return *this;
}

// Descriptions of the validators are left out of help texts: type names say what is expected.

Option Option::in_range(int min, int max) {
  option_->check(CLI::Range(min, max).description(""));
  return *this;
}

Option Option::in_range(double min, double max) {
  option_->check(CLI::Range(min, max).description(""));
  return *this;
}

namespace {
// NaN: the text is no finite number.
double NumberOf(const std::string& text) {
  double number = 0;
  const bool is_one = CLI::detail::lexical_cast(text, number) && std::isfinite(number);
  return is_one ? number : std::nan("");
}
}  // namespace

Option Option::positive() {
  // That of CLI11 tells its range, with all digits of the largest number.
  option_->check(
      [](const std::string& text) {
        return NumberOf(text) > 0 ? std::string() : text + " is no positive number";
      },
      "");
  return *this;
}

Option Option::not_negative() {
  option_->check(
      [](const std::string& text) {
        return NumberOf(text) >= 0 ? std::string() : text + " is no number from 0 on";
      },
      "");
  return *this;
}

Option Option::existing_directory() {
  option_->check(CLI::ExistingDirectory.description(""));
  return *this;
}

Option Option::one_of(const std::vector<std::string>& texts) {
  option_->check(CLI::IsMember(texts));
  return *this;
}

Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(Option other) {
  option_->needs(other.option_);
  return *this;
}

std::vector<std::string> Option::long_names() const {
  std::vector<std::string> names;
  for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string Option::description() const { return option_->get_description(); }

Command Command::add_command(const std::string& name, const std::string& description) {
  return Command(app_->add_subcommand(name, description));
}

Command Command::add_choice_of_options(const std::string& name) {
  CLI::Option_group* group = app_->add_option_group(name);
  group->require_option(1);
  return Command(group);
}

namespace {

// Why `text` is no T; empty where it is one.
template <typename T>
std::string CheckNumber(const std::string& text) {
  T number{};
  errno = 0;
  bool read = CLI::detail::lexical_cast(text, number);
  if constexpr (std::is_floating_point_v<T>) {
    return read && !std::isnan(number) ? "" : "'" + text + "' is not a number";
  } else {
    using Limits = std::numeric_limits<T>;
    read = read && errno != ERANGE;  // where it took the largest number there is
    return read ? ""
                : "'" + text + "' is not a whole number from " + std::to_string(Limits::min()) +
                      " to " + std::to_string(Limits::max());
  }
}

}  // namespace

template <typename T>
Option Command::add_option(const std::string& names, T& variable, const std::string& help) {
  CLI::Option* option = app_->add_option(names, variable, help);
  if constexpr (std::is_arithmetic_v<T>) option->check(CLI::Validator(CheckNumber<T>, ""));
  return Option(option);
}

template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, int64_t&, const std::string&);
template Option Command::add_option(const std::string&, uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);

Option Command::add_choice(const std::string& names,
                           const std::vector<std::pair<std::string, int>>& choices,
                           std::function<void(int)> set, const std::string& help) {
  const std::map<std::string, int> numbers(choices.begin(), choices.end());
  auto* option = app_->add_option_function<int>(
      names, [set = std::move(set)](const int& number) { set(number); }, help);
  option->transform(CLI::CheckedTransformer(numbers).description(""));
  return Option(option);
}

Option Command::add_flag(const std::string& names, bool& variable, const std::string& help) {
  return Option(app_->add_flag(names, variable, help));
}

Option Command::add_flag(const std::string& names, std::function<void()> given,
                         const std::string& help) {
  return Option(app_->add_flag_callback(names, std::move(given), help));
}

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::on_chosen(std::function<void()> call, std::function<std::string()> why) {
  app_->callback([call = std::move(call), why = std::move(why)] {
    if (why)
      if (const std::string text = why(); !text.empty()) throw CLI::ValidationError(text);
    call();
  });
}

std::string Command::name() const { return app_->get_name(); }

std::string Command::description() const { return app_->get_description(); }

std::vector<Option> Command::options() const {
  std::vector<Option> options;
  for (CLI::Option* option : app_->get_options()) options.emplace_back(option);
  return options;
}

std::vector<Command> Command::commands() const {
  // Hidden commands have no group.
  const auto apps = app_->get_subcommands([](CLI::App* app) { return !app->get_group().empty(); });
  std::vector<Command> commands;
  for (CLI::App* app : apps) commands.emplace_back(app);
  return commands;
}

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->require_subcommand(0, 1);
  app_->fallthrough();
}

CommandLine::~CommandLine() = default;

Command CommandLine::root() { return Command(app_.get()); }

void CommandLine::set_version(const std::string& text) {
  app_->set_version_flag("--version", text);
}

namespace {

// What is wrong with words that no command and no option took.
std::string AboutExtras(CLI::App* app, const std::vector<std::string>& extras) {
  const auto chosen = app->get_subcommands();
  std::vector<std::string> known;
  if (chosen.empty()) {
    for (const CLI::App* command : app->get_subcommands(nullptr))
      if (!command->get_group().empty()) known.push_back(command->get_name());
    const auto word = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& e) { return !e.starts_with('-'); });
    if (word != extras.end())
      return "there is no command '" + *word + "'" + DidYouMean(*word, known);
  }
  const auto take = [&](const CLI::App* from) {
    for (const CLI::Option* option : from->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  };
  known.clear();
  take(app);
  for (const CLI::App* command : chosen) {
    take(command);
    for (const CLI::App* group : command->get_subcommands(nullptr)) take(group);
  }
  for (const std::string& extra : extras) {
    if (!extra.starts_with('-')) continue;
    const std::string option = extra.substr(0, extra.find('='));
    const std::string where = chosen.empty() ? "" : " of " + chosen[0]->get_name();
    return "there is no option '" + option + "'" + where + DidYouMean(option, known);
  }
  return "'" + extras.front() + "' is not expected here";
}

}  // namespace

CommandLine::Outcome CommandLine::Parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {
      app_->exit(e);  // prints
      return Outcome::kAnswered;
    }
    // A word that nothing took is likely why something else is missing.
    const std::vector<std::string> extras = app_->remaining(true);
    error_ = extras.empty() ? e.what() : AboutExtras(app_.get(), extras);
    return Outcome::kWrongUsage;
  }
  return Outcome::kParsed;
}

std::string CommandLine::help() const { return app_->help(); }

bool CommandLine::given(const std::string& option) const {
  const auto chosen = app_->get_subcommands();
  const auto* found = chosen.empty() ? nullptr : chosen[0]->get_option_no_throw(option);
  return found != nullptr && found->count() > 0;
}

}  // namespace heddle::tools
