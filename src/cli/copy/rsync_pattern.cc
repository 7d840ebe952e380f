#include "cli/copy/rsync_pattern.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

namespace stag::cli {
namespace {

// The end of what stands for one character at `at`.
std::size_t end_of_one(std::string_view text, std::size_t at) {
  if (text[at] == '\\') return std::min(at + 2, text.size());
  if (text[at] != '[') return at + 1;
  std::size_t end = at + 1;
  if (text.substr(end).starts_with('!') || text.substr(end).starts_with('^')) ++end;
  // A ']' that is the first is one of them.
  for (const std::size_t first = end; end < text.size(); ++end) {
    if (text[end] == ']' && end > first) return end + 1;
    if (text[end] == '\\') ++end;
    if (text.substr(std::min(end, text.size())).starts_with("[:"))
      end = std::min(text.find(":]", end), text.size() - 1) + 1;
  }
  return at + 1;
}

}  // namespace

// As wildmatch() and rule_matches() of rsync have it.
RsyncPattern::RsyncPattern(std::string_view text, bool anchored) {
  prefixed_ = !anchored && text.starts_with("**");
  suffixed_ = text.ends_with("***");
  from_begin_ = anchored || prefixed_;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stars = std::min(text.find_first_not_of('*', at), text.size()) - at;
    const std::size_t end = stars > 0 ? at + stars : end_of_one(text, at);
    Token token;
    if (stars > 0) token.kind = stars > 1 ? Token::Kind::SomeOrSlash : Token::Kind::Some;
    if (stars == 0) token.one = text.substr(at, end - at);
    tokens_.push_back(std::move(token));
    at = end;
  }
}

// Follows all ways to match at once: backtracking might take for ever.
bool RsyncPattern::matches(std::string_view path, bool directory) const {
  std::string subject(path);
  // "**/a" is also about what is in no directory, and "a/***" about the directory itself.
  if (prefixed_) subject.insert(0, "/");
  if (suffixed_ && directory) subject += '/';
  // By how many tokens are matched.
  std::vector<bool> reached(tokens_.size() + 1), next;
  reached[0] = true;
  pass_empty(reached);
  for (const char c : subject) {
    next.assign(tokens_.size() + 1, false);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (!reached[i]) continue;
      if (token.kind == Token::Kind::One) {
        if (is_one(token.one, c)) next[i + 1] = true;
      } else if (token.kind == Token::Kind::SomeOrSlash || c != '/') {
        next[i] = true;
      }
    }
    if (c == '/' && !from_begin_) next[0] = true;
    pass_empty(next);
    std::swap(reached, next);
  }
  return reached.back();
}

bool RsyncPattern::is_one(const std::string& pattern, char c) {
  if (pattern.size() == 1 && pattern[0] != '?') return pattern[0] == c;
  const char text[] = {c, '\0'};
  return fnmatch(pattern.c_str(), text, FNM_PATHNAME) == 0;
}

void RsyncPattern::pass_empty(std::vector<bool>& reached) const {
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    if (reached[i] && tokens_[i].kind != Token::Kind::One) reached[i + 1] = true;
}

}  // namespace stag::cli
