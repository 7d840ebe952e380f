#include "xdrgen/compile.h"

#include <fmt/format.h>

#include "xdrgen/emitter.h"
#include "xdrgen/parser.h"

namespace xdrgen {
namespace {

constexpr std::size_t kMaxInput = 4 << 20;
constexpr std::string_view kNamespaceMark = "%// namespace:";

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

std::string namespace_in(std::string_view text) {
  const std::size_t mark = text.find(kNamespaceMark);
  if (mark == std::string_view::npos || (mark > 0 && text[mark - 1] != '\n')) return {};
  std::string_view line = text.substr(mark + kNamespaceMark.size());
  line = line.substr(0, line.find_first_of("\r\n"));
  const std::size_t start = line.find_first_not_of(' ');
  if (start == std::string_view::npos) return {};
  return std::string(line.substr(start, line.find_last_not_of(' ') - start + 1));
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
    const ast::Specification specification = Parser(input).specification();
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
