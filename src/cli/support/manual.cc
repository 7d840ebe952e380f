// Manual pages.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/support/description.h"

namespace stag::cli {
namespace {

// Characters that roff would replace or take as a request.
std::string_view roff_escape(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '`':
      return "\\(ga";
    case '~':
      return "\\(ti";
    case '^':
      return "\\(ha";
    default:
      return {};
  }
}

// Escapes `text` for roff.
std::string roff_text(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && c == '.') out += "\\&";
    const std::string_view escape = roff_escape(c);
    escape.empty() ? out.push_back(c) : void(out += escape);
    line_begins = c == '\n';
  }
  return out;
}

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string with_line_end(std::string text) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

std::string page_header(const std::string& name, const std::string& summary,
                        const ProgramText& text) {
  return fmt::format(".TH {} 1 {} \"stag {}\" \"NFS over RDMA\"\n.SH NAME\n{} \\- {}\n",
                     roff_text(in_capitals(name)), STAG_DATE, roff_text(text.version),
                     roff_text(name), roff_text(summary));
}

// The command in bold, and each word that stands for another one in italics.
std::string synopsis(const CommandText& command) {
  const std::size_t behind = std::min(command.usage.find(" ["), command.usage.size());
  std::string text = "\\fB" + roff_text(command.usage.substr(0, behind)) + "\\fR";
  bool in_word = false;
  for (const char c : command.usage.substr(behind)) {
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (letter != in_word) text += letter ? "\\fI" : "\\fR";
    in_word = letter;
    text += roff_text(std::string(1, c));
  }
  return fmt::format(".SH SYNOPSIS\n{}{}\n", text, in_word ? "\\fR" : "");
}

std::string verbatim_section(const std::string& title, const std::string& lines) {
  if (lines.empty()) return "";
  return fmt::format(".SH {}\n.nf\n{}.fi\n", title, roff_text(with_line_end(lines)));
}

std::string with_commas(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& each : words) all += (all.empty() ? "" : ", ") + each;
  return all;
}

std::string option_entry(const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + ("\\fB" + roff_text(name) + "\\fR");
  if (!option.value.empty()) names += " \\fI" + roff_text(option.value) + "\\fR";
  std::string help = option.help;
  if (!option.choices.empty()) help += fmt::format(" ({})", with_commas(option.choices));
  if (!option.preset.empty()) help += fmt::format(" [{}]", option.preset);
  return fmt::format(".TP\n{}\n{}\n", names, roff_text(help));
}

std::string option_sections(const std::vector<OptionText>& all) {
  std::string text;
  for (const OptionText& option : all) {
    const std::string heading = option.heading.empty() ? "OPTIONS" : in_capitals(option.heading);
    const std::string section = ".SH " + roff_text(heading) + "\n";
    if (text.find(section) == std::string::npos) text += section;
    text += option_entry(option);
  }
  return text;
}

}  // namespace

std::string manual_of_program(const ProgramText& text) {
  std::string page = page_header("stag", text.program.summary, text);
  page += synopsis(text.program) + option_sections(text.program.options);
  page += ".SH COMMANDS\n";
  std::string related;
  for (const CommandText& command : text.commands) {
    page +=
        fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff_text(command.name), roff_text(command.summary));
    related += fmt::format("{}\\%\\fBstag\\-{}\\fR(1)", related.empty() ? "" : ", ",
                           roff_text(command.name));
  }
  return page + verbatim_section("NOTES", text.program.notes) + ".SH SEE ALSO\n" + related + "\n";
}

std::string manual_of(const CommandText& command, const ProgramText& text) {
  std::string page = page_header("stag-" + command.name, command.summary, text);
  page += synopsis(command);
  if (!command.positionals.empty()) page += ".SH ARGUMENTS\n";
  for (const OptionText& positional : command.positionals) page += option_entry(positional);
  page += option_sections(command.options);
  page += verbatim_section("NOTES", command.notes) + verbatim_section("EXAMPLES", command.example);
  return page + ".SH SEE ALSO\n\\fBstag\\fR(1), which describes URLs and exit codes\n";
}

}  // namespace stag::cli
