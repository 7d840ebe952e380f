#include "cli/support/arguments.h"

#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "base/size.h"
#include "cli/support/commit.h"
#include "cli/support/journal.h"
#include "cli/support/nearest.h"
#include "cli/support/output.h"
#include "cli/support/program_footer.h"

namespace stag::cli {
namespace {

// The last occurrence of an option wins, as with most commands.
CLI::Option* last_wins(CLI::Option* option) {
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// " of seconds", where the help of a number begins with what it counts.
std::string unit_in(const std::string& help) {
  for (const std::string_view unit : {"seconds", "milliseconds", "microseconds", "minutes"})
    if (help.starts_with(unit)) return fmt::format(" of {}", unit);
  return {};
}

template <class Number>
CLI::Option* bounded(CLI::Option* option, Number least, Number most, const std::string& help) {
  const auto check = [least, most, unit = unit_in(help)](const std::string& text) -> std::string {
    Number value{};
    const bool whole = CLI::detail::lexical_cast(text, value);
    if (whole && value >= least && value <= most) return {};
    return fmt::format("'{}' is no whole number{} from {} to {}", text, unit, least, most);
  };
  return last_wins(option)->check(CLI::Validator(check, ""))->type_name("N");
}

// The help tells a default as people write sizes.
std::string size_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGT";
  std::string unit;
  for (const char each : kUnits) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = each;
  }
  return fmt::format("{}{}", bytes, unit);
}

CLI::Option* add_size(CLI::App& app, const std::string& names, std::uint64_t least,
                      std::uint64_t most, const std::string& help,
                      std::function<void(std::uint64_t)> set) {
  const auto take = [set = std::move(set)](const std::string& text) {
    set(parse_size(text).value_or(0));
  };
  const auto check = [least, most](const std::string& text) -> std::string {
    const std::optional<std::uint64_t> bytes = parse_size(text);
    if (!bytes) return fmt::format("'{}' is no size; write 65536, 64K or 1MiB", text);
    if (*bytes >= least && *bytes <= most) return {};
    return fmt::format("{} is not in range [{} - {}]", text, size_text(least), size_text(most));
  };
  return last_wins(app.add_option_function<std::string>(names, take, help))
      ->check(CLI::Validator(check, ""))
      ->type_name("BYTES");
}

template <class Value>
std::string text_of_value(const Value& value) {
  return fmt::format("{}", value);
}
template <class Value>
std::string text_of_value(const std::optional<Value>& value) {
  return value ? "given: " + text_of_value(*value) : std::string();
}
std::string text_of_value(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, "\n"));
}

// For OptionValues.
template <class Value>
auto reader_of(const Value& value) {
  return [&value] { return text_of_value(value); };
}

// CLI11 writes "--no-x{false}" for what switches x off, an ellipsis behind names that have one, and
// a colon between a type and its words, also where there is no type.
class HelpFormatter final : public CLI::Formatter {
  static bool has_ellipsis(const CLI::Option* option) {
    return option->get_name(true).find("... ") != std::string::npos;
  }

 public:
  HelpFormatter() { label("SUBCOMMAND", "COMMAND"); }

 private:
  std::string make_option_usage(const CLI::Option* option) const override {
    return has_ellipsis(option) ? option->get_name(true)
                                : CLI::Formatter::make_option_usage(option);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (has_ellipsis(option)) return " REQUIRED";
    const std::string opts = CLI::Formatter::make_option_opts(option);
    return opts.starts_with(" :{") ? " " + opts.substr(2) : opts;
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    constexpr std::string_view kOff = "{false}";
    std::string name = CLI::Formatter::make_option_name(option, positional);
    if (name.ends_with(kOff)) name.resize(name.size() - kOff.size());
    return name;
  }
};

// "{a,b}" at the end of the text, which CLI11 makes of a check: a, b.
std::vector<std::string> choices_in(const std::string& type) {
  std::vector<std::string> choices;
  const std::size_t begin = type.find(":{");
  if (begin == std::string::npos || type.back() != '}') return choices;
  std::istringstream words(type.substr(begin + 2, type.size() - begin - 3));
  for (std::string word; std::getline(words, word, ',');) choices.push_back(word);
  return choices;
}

OptionText text_of(const CLI::Option& option) {
  OptionText text;
  if (option.get_positional()) text.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  const std::string type = option.get_type_name();
  text.choices = choices_in(type);
  if (option.get_expected_max() != 0 && !option.get_positional())
    text.value = text.choices.empty() ? type : type.substr(0, type.find(":{"));
  text.preset = option.get_default_str();
  text.help = option.get_description();
  if (option.get_group() != "Options") text.heading = option.get_group();
  return text;
}

// What stands behind "Usage:" in the help of `name`.
std::string usage_of(const CLI::App& app, const std::string& name) {
  const std::string line = HelpFormatter().make_usage(&app, name);
  const std::size_t begin = line.find(name);
  return line.substr(begin, line.find('\n', begin) - begin);
}

CommandText text_of(const CLI::App& app, const About& about) {
  CommandText text;
  text.name = app.get_name();
  text.usage = usage_of(app, (app.get_parent() != nullptr ? "stag " : "") + text.name);
  text.summary = app.get_description();
  text.notes = about.notes;
  text.example = about.example;
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? text.positionals : text.options).push_back(text_of(*option));
  return text;
}

ProgramText text_of_program(const CLI::App& root,
                            const std::vector<std::unique_ptr<Command>>& commands) {
  ProgramText text;
  text.version = STAG_VERSION;
  const std::string notes = root.get_footer();
  text.program = text_of(root, {"stag", "", "", notes});
  for (const std::unique_ptr<Command>& command : commands) {
    const About about = command->about();
    text.commands.push_back(text_of(*root.get_subcommand(std::string(about.name)), about));
  }
  return text;
}

void describe(CLI::App& app, const About& about) {
  app.footer(fmt::format("\n{}{}Example:\n{}", about.notes, about.notes.empty() ? "" : "\n",
                         about.example));
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(36);
}

// Whether the word after this one is the option's value, whatever it looks like.
bool wants_value(const CLI::App& app, const std::string& word) {
  const CLI::Option* const option = app.get_option_no_throw(word);
  return option != nullptr && !option->get_positional() && option->get_expected_min() > 0;
}

// Gives long options with one dash a second one, where the command has them, and '!' the name that
// it has as an option.
void add_dashes(const CLI::App& root, const std::vector<std::unique_ptr<Command>>& commands,
                std::vector<std::string>& words) {
  const auto named = [&words](const std::unique_ptr<Command>& command) {
    return !words.empty() && words.front() == command->about().name;
  };
  const auto command = std::find_if(commands.begin(), commands.end(), named);
  if (command == commands.end() || !(*command)->about().one_dash) return;
  const CLI::App* app = root.get_subcommand(words.front());
  bool is_value = false;
  for (std::string& word : words) {
    if (!is_value && word == "!") word = "--not";
    if (word.size() > 2 && word[0] == '-' && word[1] != '-' &&
        app->get_option_no_throw("-" + word) != nullptr)
      word.insert(0, "-");
    is_value = !is_value && wants_value(*app, word);
  }
}

bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word.starts_with('-') && word != "--";
}

// "--timeout=", for which CLI11 would take the next word.
std::string without_value(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) return word;
  }
  return {};
}

// 'help COMMAND' is 'COMMAND --help'.
void take_help(const CLI::App& root, std::vector<std::string>& words) {
  if (words.empty() || words.front() != "help") return;
  words.erase(words.begin());
  words.resize(std::min<std::size_t>(words.size(), 1));
  const auto named = [&words](const CLI::App* command) {
    return command->get_name() == words.front();
  };
  if (words.empty() || !root.get_subcommands(named).empty()) words.push_back("--help");
}

std::string strange_option(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  const std::size_t begin = std::min(word.find_first_not_of('-'), word.size());
  const std::string meant = nearest(word.substr(begin, word.find('=') - begin), names);
  return fmt::format("'{}' is no option, {}; if it is an argument, write '--' before it", word,
                     meant.empty() ? "and none is like it" : fmt::format("but '--{}' is", meant));
}

std::string strange_command(const CLI::App& root, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : root.get_subcommands({})) names.push_back(command->get_name());
  const std::string meant = nearest(word, names);
  return fmt::format("'{}' is no command{}", word,
                     meant.empty() ? "" : fmt::format(", but '{}' is", meant));
}

std::string sentence_of(const CLI::App& root, const CLI::Error& error) {
  const std::vector<std::string> strange = root.remaining(true);
  const bool commanded = !root.get_subcommands().empty();
  const auto option = std::ranges::find_if(strange, looks_like_option);
  if (commanded && option != strange.end())
    return strange_option(*root.get_subcommands().front(), *option);
  if (commanded || strange.empty()) return error.what();
  if (looks_like_option(strange.front())) return fmt::format("'{}' is no option", strange.front());
  return strange_command(root, strange.front());
}

// The output of --help and --version.
Exit answer(const CLI::App& root, const CLI::Error& request, const std::string& name) {
  std::ostringstream text;
  root.exit(request, text, text);
  write_out(text.str());
  const std::optional<std::string> trouble = output_trouble();
  if (trouble && !trouble->empty()) write_error(fmt::format("{}: {}\n", name, *trouble));
  return trouble ? Exit::Failed : Exit::Done;
}

Exit report(const CLI::App& root, const CLI::Error& error) {
  std::string name = "stag";
  for (const CLI::App* used : root.get_subcommands()) name += " " + used->get_name();
  if (error.get_exit_code() == 0) return answer(root, error, name);
  write_error(fmt::format("{}{}: {}\n'{} --help' shows how it is used\n",
                          journal_prefix(STDERR_FILENO, LOG_ERR), name, sentence_of(root, error),
                          name));
  return Exit::Usage;
}

}  // namespace

void Arguments::add_value(const CLI::Option* option, std::function<std::string()> value) {
  if (!option->get_lnames().empty()) values_[option->get_lnames().front()] = std::move(value);
}

void Arguments::heading(const std::string& text) {
  app_.option_defaults()->group(text.empty() ? "Options" : text);
}

void Arguments::flag(const std::string& names, bool& value, const std::string& help) {
  add_value(app_.add_flag(names, value, help), reader_of(value));
}

void Arguments::human_readable(bool& value, const std::string& help) {
  app_.set_help_flag("--help", "Print this help message and exit");
  flag("-h,--human-readable", value, help);
}

void Arguments::flag_or_texts(const std::string& names, std::string& value,
                              const std::string& help) {
  add_value(app_.add_flag(names, value, help)->join(','), reader_of(value));
}

void Arguments::text(const std::string& names, std::string& value, const std::string& placeholder,
                     const std::string& help) {
  add_value(last_wins(app_.add_option(names, value, help)->type_name(placeholder)),
            reader_of(value));
}

void Arguments::text(const std::string& names, std::optional<std::string>& value,
                     const std::string& placeholder, const std::string& help) {
  const auto set = [&value](const std::string& given) { value = given; };
  CLI::Option* const option = app_.add_option_function<std::string>(names, set, help);
  add_value(last_wins(option->type_name(placeholder)), reader_of(value));
}

void Arguments::texts(const std::string& names, std::vector<std::string>& values,
                      const std::string& placeholder, const std::string& help) {
  CLI::Option* const option = app_.add_option(names, values, help);
  add_value(option->type_name(placeholder)->allow_extra_args(false), reader_of(values));
}

void Arguments::number(const std::string& names, std::uint32_t& value, std::uint32_t least,
                       std::uint32_t most, const std::string& help) {
  CLI::Option* const option = bounded(app_.add_option(names, value, help), least, most, help);
  add_value(option->capture_default_str(), reader_of(value));
}

void Arguments::number(const std::string& names, std::uint32_t& value, bool& given,
                       std::uint32_t least, std::uint32_t most, const std::string& help) {
  CLI::Option* const option = bounded(app_.add_option(names, value, help), least, most, help);
  option->capture_default_str()->each([&given](const std::string&) { given = true; });
  add_value(option, [&value, &given] { return fmt::format("{}, {}", value, given); });
}

void Arguments::number(const std::string& names, std::uint64_t& value, std::uint64_t least,
                       std::uint64_t most, const std::string& help) {
  CLI::Option* const option = bounded(app_.add_option(names, value, help), least, most, help);
  add_value(option->capture_default_str(), reader_of(value));
}

void Arguments::number(const std::string& names, std::optional<std::uint32_t>& value,
                       std::uint32_t least, std::uint32_t most, const std::string& help) {
  const auto set = [&value](const std::uint32_t& given) { value = given; };
  CLI::Option* const option = app_.add_option_function<std::uint32_t>(names, set, help);
  add_value(bounded(option, least, most, help), reader_of(value));
}

void Arguments::size(const std::string& names, std::uint32_t& value, std::uint32_t least,
                     std::uint32_t most, const std::string& help) {
  const auto set = [&value](std::uint64_t given) { value = static_cast<std::uint32_t>(given); };
  CLI::Option* const option = add_size(app_, names, least, most, help, set);
  add_value(option->default_str(size_text(value)), reader_of(value));
}

void Arguments::size(const std::string& names, std::uint64_t& value, std::uint64_t least,
                     std::uint64_t most, const std::string& help) {
  const auto set = [&value](std::uint64_t given) { value = given; };
  CLI::Option* const option = add_size(app_, names, least, most, help, set);
  add_value(option->default_str(size_text(value)), reader_of(value));
}

void Arguments::size(const std::string& names, std::optional<std::uint32_t>& value,
                     std::uint32_t least, std::uint32_t most, const std::string& help) {
  const auto set = [&value](std::uint64_t given) { value = static_cast<std::uint32_t>(given); };
  add_value(add_size(app_, names, least, most, help, set), reader_of(value));
}

void Arguments::choice(const std::string& names, std::string& value,
                       std::initializer_list<std::string> words, const std::string& help) {
  CLI::Option* const option = last_wins(app_.add_option(names, value, help));
  option->check(CLI::IsMember(std::vector<std::string>(words)))->capture_default_str();
  add_value(option, reader_of(value));
}

void Arguments::choices(const std::string& names, std::vector<std::string>& values,
                        const std::string& placeholder, const std::vector<std::string>& words,
                        const std::string& help) {
  CLI::Option* const option = app_.add_option(names, values, help)->check(CLI::IsMember(words));
  add_value(option->type_name(placeholder)->allow_extra_args(false), reader_of(values));
}

void Arguments::in_order(const std::string& names, const std::string& placeholder,
                         const std::string& help, std::function<void(const std::string&)> take) {
  app_.add_option_function<std::string>(names, take, help)
      ->type_name(placeholder)
      ->trigger_on_parse();
}

void Arguments::flag_in_order(const std::string& names, const std::string& help,
                              std::function<void()> take) {
  const auto once = [take = std::move(take)](std::int64_t) { take(); };
  app_.add_flag_function(names, once, help)->trigger_on_parse();
}

void Arguments::positional(const std::string& name, std::string& value, const std::string& help,
                           bool required) {
  app_.add_option(name, value, help)->required(required)->type_name("");
}

void Arguments::positional_choice(const std::string& name, std::string& value,
                                  const std::vector<std::string>& words, const std::string& help,
                                  bool required) {
  app_.add_option(name, value, help)
      ->check(CLI::IsMember(words))
      ->required(required)
      ->type_name("");
}

void Arguments::positionals(const std::string& name, std::vector<std::string>& values,
                            std::size_t least, const std::string& help) {
  // Where any number of words may come CLI11 takes "[a,b]" for two of them. So it is told that all
  // that there can be must come, and they are counted here.
  constexpr int kAny = CLI::detail::expected_max_vector_size;
  const auto take = [name, least, &values](const CLI::results_t& words) {
    if (words.size() < least)
      throw CLI::ArgumentMismatch::AtLeast(name, static_cast<int>(least), words.size());
    values = words;
    return true;
  };
  app_.add_option(name, CLI::callback_t(take), help)
      ->required(least > 0)
      ->expected(kAny, kAny)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("");
}

void Arguments::config(const std::string& names, ConfigFile& file, std::vector<std::string> own,
                       const std::string& help) {
  file.own_ = std::move(own);
  file.app_ = &app_;
  last_wins(app_.add_option(names, file.path_, help)->type_name("FILE.toml"));
}

namespace {

// `choose` is called when the words of a command line name this command and make sense.
void add_command(CLI::App& root, Command& command, const std::function<ProgramText()>& text_of_all,
                 const std::function<void(Command&)>& choose) {
  const About about = command.about();
  CLI::App* app = root.add_subcommand(std::string(about.name), std::string(about.summary));
  describe(*app, about);
  Arguments arguments(*app, text_of_all);
  command.declare(arguments);
  app->final_callback([app, &command, choose] {
    ConfigFile* config = command.config_file();
    if (config != nullptr && config->given()) apply_file(*app, *config);
    choose(command);
  });
}

}  // namespace

Exit run_command_line(int argc, char** argv, std::vector<std::unique_ptr<Command>> commands) {
  CLI::App root("NFS over RDMA in user space: RPC-over-RDMA version 1 on any machine with TCP.",
                "stag");
  root.formatter(std::make_shared<HelpFormatter>());
  root.require_subcommand(1);
  root.set_version_flag("--version", "stag " + build_name(STAG_VERSION, commit()));
  root.footer(kProgramFooter);
  Command* chosen = nullptr;
  const auto text_of_all = [&root, &commands] { return text_of_program(root, commands); };
  for (const std::unique_ptr<Command>& command : commands)
    add_command(root, *command, text_of_all, [&](Command& named) { chosen = &named; });
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  take_help(root, words);
  add_dashes(root, commands, words);
  const std::string empty = without_value(words);
  // CLI11 takes them from the end.
  std::reverse(words.begin(), words.end());
  try {
    if (!empty.empty())
      throw CLI::ArgumentMismatch(fmt::format("'{}' has nothing after '='", empty),
                                  CLI::ExitCodes::ArgumentMismatch);
    root.parse(std::move(words));
  } catch (const CLI::Error& error) {
    return report(root, error);
  }
  return chosen->run_and_flush();
}

}  // namespace stag::cli
