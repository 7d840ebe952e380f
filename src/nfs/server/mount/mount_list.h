// The clients and the paths they mounted, for DUMP (RFC 1813 5.2.2 to 5.2.4). Informational: it
// grants no access, is not kept over a restart, and drops its oldest entry when it is full.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stag::nfs {

class MountList {
 public:
  static constexpr std::size_t kMost = 1024;

  struct Entry {
    std::string host;
    std::string path;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  void add(std::string_view host, std::string_view path);
  void remove(std::string_view host, std::string_view path);
  void remove_all(std::string_view host);
  std::vector<Entry> all() const;

 private:
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
};

}  // namespace stag::nfs
