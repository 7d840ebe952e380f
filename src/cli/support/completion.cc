// Completion scripts for shells.
#include <fmt/format.h>

#include "cli/support/description.h"

namespace stag::cli {
namespace {

// Quotes a text as one word of a shell.
std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string spaced(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& each : all) text += (text.empty() ? "" : " ") + each;
  return text;
}

std::string option_names(const CommandText& command) {
  std::string text;
  for (const OptionText& option : command.options)
    text += (text.empty() ? "" : " ") + spaced(option.names);
  return text;
}

std::string command_names(const ProgramText& text) {
  std::string all;
  for (const CommandText& command : text.commands) all += (all.empty() ? "" : " ") + command.name;
  return all;
}

// What the first positional of a command may be, where that is one of a few words.
std::string positional_words(const CommandText& command, const ProgramText& text) {
  if (command.positionals.empty()) return "";
  const OptionText& first = command.positionals.front();
  if (first.names.front() == "COMMAND") return command_names(text) + " exports";
  if (first.names.front() == "SHELL") return "bash zsh fish";
  return spaced(first.choices);
}

// "a|b": the names of an option, as a pattern of a shell's `case`.
std::string case_pattern(const OptionText& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : "|") + name;
  return text;
}

std::string bash_command(const CommandText& command, const ProgramText& program) {
  std::string text = fmt::format("    {})\n      case $before in\n", command.name);
  for (const OptionText& option : command.options)
    if (!option.choices.empty())
      text += fmt::format("        {}) COMPREPLY=($(compgen -W {} -- \"$word\")); return ;;\n",
                          case_pattern(option), shell_word(spaced(option.choices)));
  return text + fmt::format("      esac\n      options={} words={} ;;\n",
                            shell_word(option_names(command)),
                            shell_word(positional_words(command, program)));
}

std::string bash_script(const ProgramText& text) {
  std::string script = fmt::format(
      "# bash completion for stag {}\n"
      "_stag() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} options= "
      "words=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W {} -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      text.version, shell_word(command_names(text) + " " + option_names(text.program)));
  for (const CommandText& command : text.commands) script += bash_command(command, text);
  return script +
         "  esac\n"
         "  if [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
         "  elif [[ -n $words ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _stag stag\n";
}

// Escapes the characters that are special in specifications of _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_option(const OptionText& option) {
  std::string specs;
  for (const std::string& name : option.names) {
    std::string spec = fmt::format("{}[{}]", name, zsh_text(option.help));
    if (!option.choices.empty())
      spec += fmt::format(":{}:({})", zsh_text(option.value), spaced(option.choices));
    else if (!option.value.empty())
      spec += fmt::format(":{}:_files", zsh_text(option.value));
    specs += " \\\n        " + shell_word(spec);
  }
  return specs;
}

std::string zsh_script(const ProgramText& text) {
  std::string script = fmt::format(
      "#compdef stag\n# zsh completion for stag {}\n_stag() {{\n  local -a commands=(\n",
      text.version);
  for (const CommandText& command : text.commands)
    script += fmt::format("    {}\n",
                          shell_word(zsh_text(command.name) + ":" + zsh_text(command.summary)));
  script +=
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $words[1] in\n";
  for (const CommandText& command : text.commands) {
    script += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionText& option : command.options) script += zsh_option(option);
    const std::string words = positional_words(command, text);
    script += words.empty() ? " \\\n        '*:file:_files' ;;\n"
                            : fmt::format(" \\\n        '*:word:({})' ;;\n", words);
  }
  return script + "  esac\n}\n_stag \"$@\"\n";
}

std::string fish_option(const CommandText& command, const OptionText& option) {
  std::string line =
      fmt::format("complete -c stag -n '__fish_seen_subcommand_from {}'", command.name);
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.choices.empty())
    line += " -x -a " + shell_word(spaced(option.choices));
  else if (!option.value.empty())
    line += " -r";
  return line + " -d " + shell_word(option.help) + "\n";
}

std::string fish_script(const ProgramText& text) {
  std::string script = fmt::format("# fish completion for stag {}\n", text.version);
  for (const CommandText& command : text.commands)
    script += fmt::format("complete -c stag -n __fish_use_subcommand -f -a {} -d {}\n",
                          command.name, shell_word(command.summary));
  for (const CommandText& command : text.commands) {
    for (const OptionText& option : command.options) script += fish_option(command, option);
    const std::string words = positional_words(command, text);
    if (!words.empty())
      script += fmt::format("complete -c stag -n '__fish_seen_subcommand_from {}' -f -a {}\n",
                            command.name, shell_word(words));
  }
  return script;
}

}  // namespace

std::string completion_for(const std::string& shell, const ProgramText& text) {
  if (shell == "zsh") return zsh_script(text);
  return shell == "fish" ? fish_script(text) : bash_script(text);
}

}  // namespace stag::cli
