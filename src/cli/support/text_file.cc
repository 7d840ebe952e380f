#include "cli/support/text_file.h"

#include <array>
#include <cstdio>
#include <memory>

namespace stag::cli {

std::optional<std::string> text_of_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), file.get()))
    text.append(part.data(), got);
  if (std::ferror(file.get()) != 0) return std::nullopt;
  return text;
}

}  // namespace stag::cli
