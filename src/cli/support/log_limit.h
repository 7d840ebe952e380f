// LogLimit: bounds the lines of one kind in the log, so that a peer cannot fill the disk with one
// message, nor keep the lines about others out. Not synchronised.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/loop.h"
#include "base/reason.h"
#include "base/siphash.h"

namespace stag::cli {

// The network of 64 bits that an address of IPv6 is in, as far as its text shows: a client may have
// all addresses of one.
inline std::string_view log_network(std::string_view where) {
  const std::size_t begin = where.rfind('[');
  if (begin == where.npos || where.find('.', begin) != where.npos) return where;  // IPv4 in it
  std::size_t end = begin;
  for (int group = 0; group < 4; ++group) {
    end = where.find(':', end + 1);
    if (end == where.npos) return where;
    if (where.substr(end).starts_with("::")) break;  // zeros
  }
  return where.substr(0, end);
}

// The client that a line is about, of what the line has in front: "rdma 192.0.2.7" of "rdma
// 192.0.2.7:1023", since a client has many ports.
inline std::string_view log_source(std::string_view where) {
  const std::size_t colon = where.rfind(':');
  if (colon == where.npos || where.find_first_not_of("0123456789", colon + 1) != where.npos)
    return where;
  const std::string_view host = where.substr(0, colon);
  const bool is_bare = host.find(':') != host.npos && !host.ends_with(']');  // IPv6, and no port
  return is_bare ? where : log_network(host);
}

// `Kind` is an enumeration of `kinds` values.
template <class Kind, std::size_t kinds>
class LogLimits {
 public:
  static constexpr std::uint32_t kLines = 10;  // of one kind
  static constexpr Duration kWindow = std::chrono::seconds(1);
  static constexpr std::uint32_t kSources = 64;  // of one kind

  // Whether a line of `kind` about `source` may be written at `now`. In a window `most` may, and of
  // the first kSources sources beyond these one about each that has none.
  bool admit(Kind kind, std::string_view source, TimePoint now, std::uint32_t most = kLines) {
    Seen& seen = seen_[static_cast<std::size_t>(kind)];
    if (seen.lines == 0 || now - seen.since >= kWindow) {
      seen.since = now;
      seen.lines = 0;
      seen.known = 0;
    }
    if (is_new(seen, source) || seen.lines < most) {
      ++seen.lines;
      return true;
    }
    if (seen.left_out++ == 0) ++owing_;
    return false;
  }

  // Calls report(kind, count) for every kind of which `count` lines were left out in a window that
  // is over by `now`.
  template <class Report>
  void settle(TimePoint now, Report report) {
    for (std::size_t i = 0; owing_ > 0 && i < seen_.size(); ++i) {
      Seen& seen = seen_[i];
      if (seen.left_out == 0 || now - seen.since < kWindow) continue;
      --owing_;
      report(static_cast<Kind>(i), std::exchange(seen.left_out, 0));
    }
  }

 private:
  struct Seen {
    TimePoint since{};
    std::uint32_t lines = 0;
    std::uint64_t left_out = 0;
    std::uint32_t known = 0;
    std::array<std::uint64_t, kSources> sources{};  // that have a line in this window: `known`
  };
  // Notes it. False when there is no room to note any more.
  static bool is_new(Seen& seen, std::string_view source) {
    // With a key, so that nobody can choose to be taken for another one.
    SipHash hash(process_sip_key());
    hash.add(bytes_of(source));
    const std::uint64_t id = hash.finish();
    const auto end = seen.sources.begin() + seen.known;
    if (seen.known == kSources || std::find(seen.sources.begin(), end, id) != end) return false;
    seen.sources[seen.known++] = id;
    return true;
  }
  std::array<Seen, kinds> seen_{};
  std::size_t owing_ = 0;  // kinds with lines left out
};

using LogLimit = LogLimits<Reason, kReasonCount>;

}  // namespace stag::cli
