#include "xdrgen/compile.h"

#include <fmt/format.h>

#include "xdrgen/emitter.h"
#include "xdrgen/parser.h"

namespace xdrgen {
namespace {

constexpr std::size_t kMaxInput = 4 << 20;
constexpr std::string_view kNamespaceMark = "%// namespace:";
constexpr std::string_view kEligibleMark = "%// eligible:";

// "a::b::c"
bool is_namespace(std::string_view text) {
  bool start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!start && text.substr(i).starts_with("::")) {
      start = true;
      ++i;
      continue;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (start || c < '0' || c > '9')) return false;
    start = false;
  }
  return !start;
}

// The words of every line that starts with `mark`. rpcgen passes such a line to C, where it is a
// comment.
std::vector<ast::Mark> marked(std::string_view text, std::string_view mark, Location where) {
  std::vector<ast::Mark> result;
  for (where.line = 1; !text.empty(); ++where.line) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (!line.starts_with(mark)) continue;
    std::size_t at = mark.size();
    while ((at = line.find_first_not_of(" ,\t\r", at)) != std::string_view::npos) {
      const std::string_view word = line.substr(at, line.find_first_of(" ,\t\r", at) - at);
      where.column = static_cast<std::uint32_t>(at) + 1;
      result.push_back({std::string(word), where});
      at += word.size();
    }
  }
  return result;
}

std::string namespace_in(std::string_view text) {
  const std::vector<ast::Mark> names = marked(text, kNamespaceMark, {});
  return names.empty() ? std::string() : names.front().name;
}

}  // namespace

std::variant<Output, Complaint> compile(std::string_view text, const Options& options) {
  try {
    Location top;
    top.file = options.file;
    if (text.size() > kMaxInput) complain(top, "the input is too large");
    std::string name_space = options.name_space.empty() ? namespace_in(text) : options.name_space;
    if (!is_namespace(name_space))
      complain(top, "a C++ namespace is needed: --namespace a::b or a line '%// namespace: a::b'");
    Preprocessor input(options.file, text, options.reader);
    ast::Specification specification = Parser(input).specification();
    specification.eligible = marked(text, kEligibleMark, top);
    const std::unique_ptr<Model> model = resolve(specification);
    analyse(*model);
    const std::string name = options.file.substr(options.file.find_last_of('/') + 1);
    Emitter emitter(*model, std::move(name_space), Origin{name, options.header, options.runtime});
    Output output;
    output.header = emitter.header();
    output.source = emitter.source();
    return output;
  } catch (const Mistake& mistake) {
    return mistake.message;
  }
}

}  // namespace xdrgen
