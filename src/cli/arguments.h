// The command line, declared option by option and then parsed in one go. Values are written to the
// variables named in the declaration, which outlive the parsing; what is not given keeps its value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace CLI {
class App;
}

namespace stag::cli {

// The options of one command. `names` is "-r,--recursive"; `help` is one line.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(app) {}

  void flag(const std::string& names, bool& value, const std::string& help);
  // "--rpcbind,!--no-rpcbind" sets and clears.
  void text(const std::string& names, std::string& value, const std::string& placeholder,
            const std::string& help);
  // Each occurrence adds one.
  void texts(const std::string& names, std::vector<std::string>& values,
             const std::string& placeholder, const std::string& help);
  void number(const std::string& names, std::uint32_t& value, std::uint32_t least,
              std::uint32_t most, const std::string& help);
  void choice(const std::string& names, std::string& value,
              std::initializer_list<std::string> words, const std::string& help);
  // Without dashes, by its place.
  void positional(const std::string& name, std::string& value, const std::string& help,
                  bool required = true);
  void positionals(const std::string& name, std::vector<std::string>& values, std::size_t least,
                   const std::string& help);
  // A TOML file whose keys are the other options' names; the command line wins over it.
  void config(const std::string& names, const std::string& help);

 private:
  CLI::App& app_;
};

// Parses, and runs the command that was named. Prints help, and what is wrong with the command
// line.
Exit run_command_line(int argc, char** argv, std::vector<std::unique_ptr<Command>> commands);

}  // namespace stag::cli
