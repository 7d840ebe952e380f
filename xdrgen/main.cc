// xdrgen: compiles XDR specifications (RFC 4506, RFC 5531) to C++.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "xdrgen/compile.h"

namespace {

constexpr const char* kUsage =
    R"(usage: xdrgen [--namespace NS] --header OUT.h --source OUT.cc [--include NAME] [--runtime DIR] [--depfile FILE] IN.x

Compiles an XDR specification (RFC 4506, with the program definitions of RFC 5531)
to a C++20 header and source file.

  --namespace NS   the C++ namespace, e.g. my::protocol; may also stand in the
                   specification as a line  %// namespace: my::protocol
  --header FILE    where to write the types and declarations
  --source FILE    where to write the codecs
  --include NAME   how the source file includes the header (default: FILE of --header)
  --runtime DIR    where the runtime's headers are installed: <DIR/xdr/types.h>
  --depfile FILE   where to write, as a rule for make and ninja, which files the
                   output was made of: IN.x and what it includes
  --help           this text

Opaques and strings that are not short have names in the namespace item, by which a
binding lets them move apart from their message. A line  %// eligible: type_field  in
the specification names an array or an optional as well.

Example: xdrgen --namespace demo --header hello.h --source hello.cc hello.x
)";

struct Arguments {
  std::string name_space, header, source, include, runtime, depfile, input;
};

int refuse(const std::string& message) {
  fmt::print(stderr, "xdrgen: {}\nTry 'xdrgen --help'.\n", message);
  return 2;
}

std::optional<std::string> read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool write_file(const std::string& name, const std::string& text) {
  std::ofstream file(name, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.good()) return true;
  fmt::print(stderr, "xdrgen: cannot write {}\n", name);
  return false;
}

// The name as make reads it in a rule.
std::string in_rule(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (c == ' ' || c == '#') result += '\\';
    if (c == '$') result += '$';
    result += c;
  }
  return result;
}

std::string dependency_rule(const Arguments& arguments, const std::vector<std::string>& files) {
  std::string rule = fmt::format("{} {}:", in_rule(arguments.header), in_rule(arguments.source));
  for (const std::string& file : files) rule += " " + in_rule(file);
  return rule + "\n";
}

// Empty when the arguments make sense.
std::string parse(int argc, char** argv, Arguments& to) {
  const std::pair<std::string_view, std::string*> options[] = {
      {"--namespace", &to.name_space}, {"--header", &to.header},   {"--source", &to.source},
      {"--include", &to.include},      {"--runtime", &to.runtime}, {"--depfile", &to.depfile}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string* target = nullptr;
    for (const auto& [name, value] : options)
      if (word == name) target = value;
    if (target != nullptr) {
      if (++i == argc) return fmt::format("{} needs a value", word);
      *target = argv[i];
    } else if (word.starts_with('-')) {
      return fmt::format("unknown option {}", word);
    } else if (!to.input.empty()) {
      return "one specification at a time";
    } else {
      to.input = word;
    }
  }
  if (to.input.empty()) return "which specification?";
  if (to.header.empty() || to.source.empty()) return "--header and --source are needed";
  if (to.include.empty()) to.include = to.header;
  return {};
}

int run(const Arguments& arguments) {
  std::vector<std::string> files;
  const auto reader = [&](const std::string& name) {
    files.push_back(name);
    return read_file(name);
  };
  const std::optional<std::string> text = reader(arguments.input);
  if (!text) {
    fmt::print(stderr, "xdrgen: cannot read {}\n", arguments.input);
    return 1;
  }
  xdrgen::Options options;
  options.name_space = arguments.name_space;
  options.file = arguments.input;
  options.header = arguments.include;
  options.runtime = arguments.runtime;
  options.reader = reader;
  const auto result = xdrgen::compile(*text, options);
  if (const auto* complaint = std::get_if<xdrgen::Complaint>(&result)) {
    fmt::print(stderr, "{}\n", *complaint);
    return 1;
  }
  const auto& output = std::get<xdrgen::Output>(result);
  const bool written = write_file(arguments.header, output.header) &&
                       write_file(arguments.source, output.source) &&
                       (arguments.depfile.empty() ||
                        write_file(arguments.depfile, dependency_rule(arguments, files)));
  return written ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") {
      fmt::print("{}", kUsage);
      return 0;
    }
  }
  Arguments arguments;
  const std::string complaint = parse(argc, argv, arguments);
  return complaint.empty() ? run(arguments) : refuse(complaint);
}
