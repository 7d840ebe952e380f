#include "cli/serve/exports_lines.h"

#include <utility>

namespace stag::cli {
namespace {

using Failed = Failure<std::pair<unsigned, std::string>>;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

// Reads the text from the front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool ended() const { return text_.empty(); }
  unsigned line() const { return line_; }
  bool at_line_end() const { return text_.empty() || text_.front() == '\n'; }
  // Where the next word or a comment can begin.
  bool at_gap() const { return at_line_end() || is_blank(text_.front()) || at('#') || continues(); }
  bool at(char c) const { return !text_.empty() && text_.front() == c; }

  char take() {
    const char c = text_.front();
    line_ += c == '\n' ? 1 : 0;
    text_.remove_prefix(1);
    return c;
  }
  // Blanks, line ends behind a backslash, and a comment.
  void skip_blanks() {
    for (;;) {
      if (continues()) {
        take();
        take();
      } else if (!text_.empty() && is_blank(text_.front())) {
        take();
      } else {
        break;
      }
    }
    if (at('#'))
      while (!at_line_end()) take();
  }
  // Up to a blank, the end of the line, or one of `ends` outside of quotes; nullopt: a quote does
  // not end.
  std::optional<std::string> word(std::string_view ends) {
    std::string word;
    bool quoted = false;
    while (!at_line_end() && !(continues() && !quoted)) {
      const char c = text_.front();
      if (!quoted && (is_blank(c) || ends.find(c) != ends.npos)) break;
      if (c == '"')
        quoted = !quoted;
      else if (const std::optional<char> escaped = octal())
        word += *escaped;
      else
        word += c;
      take();
    }
    if (quoted) return std::nullopt;
    return word;
  }

 private:
  bool continues() const { return text_.starts_with("\\\n"); }
  // The character of "\ooo"; leaves its last digit to be taken.
  std::optional<char> octal() {
    const bool there = text_.size() > 3 && text_[0] == '\\' && is_octal(text_[1]) &&
                       is_octal(text_[2]) && is_octal(text_[3]);
    if (!there) return std::nullopt;
    const int value = (text_[1] - '0') * 64 + (text_[2] - '0') * 8 + (text_[3] - '0');
    text_.remove_prefix(3);
    return static_cast<char>(value);
  }

  std::string_view text_;
  unsigned line_ = 1;
};

// What is behind the folder, word by word.
Result<Ok, std::pair<unsigned, std::string>> take_clients(Scanner& scanner, ExportsLine& line) {
  const auto wrong = [&](std::string sentence) {
    return Failed{{scanner.line(), std::move(sentence)}};
  };
  for (scanner.skip_blanks(); !scanner.at_line_end(); scanner.skip_blanks()) {
    ExportsClient client;
    std::optional<std::string> match = scanner.word("(");
    if (!match) return wrong("a quote does not end on its line");
    if (match->starts_with('-') && !scanner.at('(')) {
      line.defaults = match->substr(1);
      continue;
    }
    client.match = *std::move(match);
    if (scanner.at('(')) {
      scanner.take();
      client.parentheses = true;
      std::optional<std::string> options = scanner.word(")");
      if (!options || !scanner.at(')'))
        return wrong("a parenthesis does not end; blanks have no place in it");
      scanner.take();
      // It would be another client, or options for everybody.
      if (!scanner.at_gap()) return wrong("a blank is missing after ')'");
      client.options = *std::move(options);
    }
    if (client.match.empty() && !client.parentheses) return wrong("an empty client");
    // Options before a client are the defaults of those behind.
    if (!line.defaults.empty()) client.options = line.defaults + "," + client.options;
    line.clients.push_back(std::move(client));
  }
  return Ok{};
}

}  // namespace

Result<std::vector<ExportsLine>, std::pair<unsigned, std::string>> split_exports(
    std::string_view text) {
  std::vector<ExportsLine> lines;
  Scanner scanner(text);
  while (!scanner.ended()) {
    scanner.skip_blanks();
    if (scanner.at_line_end()) {
      if (!scanner.ended()) scanner.take();
      continue;
    }
    ExportsLine line;
    line.number = scanner.line();
    std::optional<std::string> folder = scanner.word("");
    if (!folder) return Failed{{line.number, "a quote does not end on its line"}};
    line.folder = *std::move(folder);
    const auto taken = take_clients(scanner, line);
    if (!taken) return Failure{taken.error()};
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace stag::cli
