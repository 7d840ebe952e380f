// The program's commands and options as data, from which manual pages, completions and --help are
// generated, so that the three agree.
#pragma once

#include <string>
#include <vector>

namespace stag::cli {

struct OptionText {
  std::vector<std::string> names;    // as typed: "-l", "--long"; of a positional its name alone
  std::string value;                 // placeholder of its argument; empty: it takes none
  std::vector<std::string> choices;  // the only arguments it takes; empty: any
  std::string preset;                // its value where it is not given; may be empty
  std::string help;
  std::string heading;
};

struct CommandText {
  std::string name;
  std::string summary;
  std::string usage;  // the command with what follows it, as in "stag ls [OPTIONS] URL..."
  std::vector<OptionText> options;
  std::vector<OptionText> positionals;
  std::string notes;    // lines, may be empty
  std::string example;  // lines, may be empty
};

struct ProgramText {
  std::string version;
  CommandText program;  // of `stag` itself
  std::vector<CommandText> commands;
};

// As roff (man(7)): stag.1, and that of one command, stag-NAME.1.
std::string manual_of_program(const ProgramText& text);
std::string manual_of(const CommandText& command, const ProgramText& text);

// A script for the shell of this name, one of kShells.
inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};
std::string completion_for(const std::string& shell, const ProgramText& text);

}  // namespace stag::cli
