// The command line, declared option by option and then parsed in one go. Values are written to the
// variables named in the declaration, which outlive the parsing; what is not given keeps its value.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/support/command.h"
#include "cli/support/config.h"
#include "cli/support/description.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stag::cli {

// By the names that options have as settings: their values, the same text for the same value
// however it is written, and whether it is written or preset. They read the variables of the
// declaration.
using OptionValues = std::map<std::string, std::function<std::string()>>;

// The configuration file of a command, where one is given. Read before the command runs; the
// command may read it again while it runs.
class ConfigFile {
 public:
  bool given() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  // Fails with one sentence that names the file and the line, also for a setting that the command
  // does not have. The values are not looked at.
  Result<std::vector<Setting>, std::string> read() const;
  // What was in it when the command was begun.
  const std::vector<Setting>& at_begin() const { return at_begin_; }
  // Gives options that `declare` declares anew the values that a start of the command would give
  // them: those of its command line, and of these settings. The error is one sentence.
  Result<OptionValues, std::string> try_out(const std::vector<Setting>& settings,
                                            const std::function<void(Arguments&)>& declare) const;
  // Whether the command itself interprets the values of this setting.
  bool is_own(const Setting& setting) const;
  // Whether the command line says something else than the file may: it wins.
  bool is_overridden(const Setting& setting) const;

 private:
  friend class Arguments;
  friend void apply_file(CLI::App& app, ConfigFile& file);
  std::string path_;
  std::vector<Setting> at_begin_;
  std::vector<std::string> own_;
  std::vector<std::string> overridden_;  // options of the command line
  CLI::App* app_ = nullptr;
};

// The options of one command. `names` is "-r,--recursive"; `help` is one line.
class Arguments {
 public:
  // `program` describes all commands once they are declared.
  Arguments(CLI::App& app, std::function<ProgramText()> program)
      : app_(app), program_(std::move(program)) {}

  // The options declared from now on have this heading in the help; empty: the usual one.
  void heading(const std::string& text);
  // "--rpcbind,!--no-rpcbind" sets and clears.
  void flag(const std::string& names, bool& value, const std::string& help);
  // -h and --human-readable, as ls(1) and df(1) have them; -h no longer stands for --help.
  void human_readable(bool& value, const std::string& help);
  // A flag that may have a value, behind '=' only; "true" without. Several have ',' between them.
  void flag_or_texts(const std::string& names, std::string& value, const std::string& help);
  void text(const std::string& names, std::string& value, const std::string& placeholder,
            const std::string& help);
  // Distinguishes an empty text from none.
  void text(const std::string& names, std::optional<std::string>& value,
            const std::string& placeholder, const std::string& help);
  // Each occurrence adds one.
  void texts(const std::string& names, std::vector<std::string>& values,
             const std::string& placeholder, const std::string& help);
  void number(const std::string& names, std::uint32_t& value, std::uint32_t least,
              std::uint32_t most, const std::string& help);
  // The same; `given` becomes true where it is said, be it what the value is anyhow.
  void number(const std::string& names, std::uint32_t& value, bool& given, std::uint32_t least,
              std::uint32_t most, const std::string& help);
  void number(const std::string& names, std::uint64_t& value, std::uint64_t least,
              std::uint64_t most, const std::string& help);
  // Distinguishes a value that was given from none; `help` describes the case of none.
  void number(const std::string& names, std::optional<std::uint32_t>& value, std::uint32_t least,
              std::uint32_t most, const std::string& help);
  // Bytes, with or without a unit (base/size.h).
  void size(const std::string& names, std::uint32_t& value, std::uint32_t least, std::uint32_t most,
            const std::string& help);
  void size(const std::string& names, std::uint64_t& value, std::uint64_t least, std::uint64_t most,
            const std::string& help);
  void size(const std::string& names, std::optional<std::uint32_t>& value, std::uint32_t least,
            std::uint32_t most, const std::string& help);
  void choice(const std::string& names, std::string& value,
              std::initializer_list<std::string> words, const std::string& help);
  // Each occurrence adds one of the words.
  void choices(const std::string& names, std::vector<std::string>& values,
               const std::string& placeholder, const std::vector<std::string>& words,
               const std::string& help);
  // `take` is called for each occurrence while the words are parsed, so that several such options
  // are heard in the order in which they stand. `placeholder` may end with ":{a,b}", its choices.
  void in_order(const std::string& names, const std::string& placeholder, const std::string& help,
                std::function<void(const std::string&)> take);
  void flag_in_order(const std::string& names, const std::string& help, std::function<void()> take);
  // A positional argument.
  void positional(const std::string& name, std::string& value, const std::string& help,
                  bool required = true);
  // One of the words.
  void positional_choice(const std::string& name, std::string& value,
                         const std::vector<std::string>& words, const std::string& help,
                         bool required = true);
  void positionals(const std::string& name, std::vector<std::string>& values, std::size_t least,
                   const std::string& help);
  // A TOML file whose keys are the other options' names; the command line wins over it. The values
  // of the settings `own` are left to the command. Command::config_file() must return `file`.
  void config(const std::string& names, ConfigFile& file, std::vector<std::string> own,
              const std::string& help);

  // For a command that describes all commands. The function may be called while a command runs.
  std::function<ProgramText()> describe_program() const { return program_; }
  // Of what has been declared.
  const OptionValues& values() const { return values_; }

 private:
  void add_value(const CLI::Option* option, std::function<std::string()> value);

  CLI::App& app_;
  std::function<ProgramText()> program_;
  OptionValues values_;
};

// Parses, and runs the command that was named. Prints help and errors of the command line.
Exit run_command_line(int argc, char** argv, std::vector<std::unique_ptr<Command>> commands);

}  // namespace stag::cli
