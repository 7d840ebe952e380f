#include "cli/copy/folded_name.h"

#include <algorithm>
#include <optional>

namespace stag::cli {
namespace {

constexpr char32_t kNoCharacter = 0xffffffff;

constexpr bool within(char32_t character, char32_t first, char32_t last) {
  return character >= first && character <= last;
}

// The character that begins at `at`, and the byte behind it; kNoCharacter for what is no UTF-8.
char32_t next_character(std::string_view text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const std::size_t further = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : 0;
  if (further == 0 || at + further > text.size()) return kNoCharacter;
  char32_t character = first & (0x3fu >> further);
  for (std::size_t i = 0; i < further; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xc0) != 0x80) return kNoCharacter;
    character = character << 6 | (byte & 0x3fu);
  }
  at += further;
  return character;
}

// What belongs to the character before it, which may also be written as one with it.
bool is_mark(char32_t it) {
  return within(it, 0x300, 0x36f) || within(it, 0x653, 0x655) || it == 0x3099 || it == 0x309a;
}

// File systems pass over what is not seen.
bool is_unseen(char32_t it) {
  return it == 0xad || within(it, 0x200b, 0x200f) || it == 0x2060 || within(it, 0xfe00, 0xfe0f) ||
         it == 0xfeff;
}

// Kana with a sound mark.
bool is_voiced_kana(char32_t it) {
  if (within(it, 0x30a1, 0x30fa)) it -= 0x60;
  return (within(it, 0x304b, 0x3062) && it % 2 == 0) ||
         (within(it, 0x3064, 0x3069) && it % 2 == 1) ||
         (within(it, 0x306f, 0x307d) && it % 3 != 0) || it == 0x3094 || within(it, 0x3097, 0x309a);
}

// Blocks of letters that have two cases, or a mark in them, as a rule, and of their variants.
bool is_left_out(char32_t it) {
  constexpr struct {
    char32_t first, last;
  } kBlocks[] = {{0x80, 0x24f},      {0x250, 0x2ff},     {0x370, 0x390},     {0x3aa, 0x3b0},
                 {0x3ca, 0x40f},     {0x450, 0x52f},     {0x622, 0x626},     {0x6c0, 0x6c2},
                 {0x6d3, 0x6d3},     {0x10a0, 0x10cf},   {0x13a0, 0x13ff},   {0x1c80, 0x1c8f},
                 {0x1d00, 0x1fff},   {0x2100, 0x218f},   {0x24b0, 0x24ef},   {0x2c00, 0x2dff},
                 {0xa640, 0xa7ff},   {0xab30, 0xabbf},   {0xf900, 0xfb4f},   {0xff20, 0xff5f},
                 {0x10400, 0x105ff}, {0x10c80, 0x10cff}, {0x118a0, 0x118df}, {0x16e40, 0x16e7f},
                 {0x1e900, 0x1e95f}, {0x2f800, 0x2fa1f}};
  return it == 0x419 || it == 0x439 || is_voiced_kana(it) ||
         std::ranges::any_of(
             kBlocks, [it](const auto& block) { return within(it, block.first, block.last); });
}

// The small letter of a capital one in the alphabets whose letters have no marks as a rule.
char32_t small(char32_t it) {
  if (within(it, 'A', 'Z') || within(it, 0x391, 0x3a9) || within(it, 0x410, 0x42f))
    return it + 0x20;
  if (it == 0x3c2) return 0x3c3;                                // the sigma that ends a word
  if (within(it, 0x531, 0x556)) return it + 0x30;               // Armenian
  if (within(it, 0x1c90, 0x1cbf)) return it - 0x1c90 + 0x10d0;  // Georgian
  return it;
}

// Letters of other blocks that are ASCII without case.
std::string_view plain(char32_t it) {
  if (it == 0xdf || it == 0x1e9e) return "ss";
  if (it == 0x17f) return "s";
  return it == 0x212a ? "k" : "";
}

// The letters that a syllable of Korean consists of (Unicode 3.12).
std::u32string letters_of(char32_t it) {
  if (!within(it, 0xac00, 0xd7a3)) return {it};
  const char32_t number = it - 0xac00;
  std::u32string letters{0x1100 + number / 588, 0x1161 + number % 588 / 28};
  if (number % 28 != 0) letters += 0x11a7 + number % 28;
  return letters;
}

}  // namespace

std::string folded_name(std::string_view name) {
  std::u32string folded;
  // Where the last character begins, which a mark takes along.
  std::optional<std::size_t> last;
  for (std::size_t at = 0; at < name.size();) {
    const char32_t it = next_character(name, at);
    if (it == kNoCharacter || is_unseen(it)) continue;
    if (is_mark(it)) {
      if (last) folded.resize(*last);
      continue;
    }
    last = folded.size();
    if (const std::string_view letters = plain(it); !letters.empty())
      folded.append(letters.begin(), letters.end());
    else if (!is_left_out(it))
      folded += letters_of(small(it));
  }
  // Windows takes no account of these at the end.
  while (folded.ends_with(U'.') || folded.ends_with(U' ')) folded.pop_back();
  std::string bytes;
  for (const char32_t it : folded)
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(it >> shift & 0xff);
  return bytes;
}

std::vector<std::string> NameGroups::add(const std::string& name) {
  const std::size_t folded = std::hash<std::string>()(folded_name(name));
  std::vector<std::string> earlier;
  const auto [first, end] = names_.equal_range(folded);
  for (auto at = first; at != end && earlier.size() < kMostAlike; ++at)
    earlier.push_back(*at->second);
  if (earlier.size() < kMostAlike) names_.emplace(folded, &name);
  return earlier;
}

}  // namespace stag::cli
