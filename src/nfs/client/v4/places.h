// Places: where files were found last, by directory and name. Version 4.0 opens a file by its name
// only (RFC 7530 section 16.16), and this client's callers by its handle.
//
// A place is a hint: others may have moved the file, so that what is opened there is compared.
//
// Thread: the Channel's loop. Memory: kMost places, the latest used.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "nfs/client/protocol/types.h"

namespace stag::nfs::client::nfs4 {

class Places {
 public:
  static constexpr std::size_t kMost = 16384;
  struct Place {
    Handle directory;
    std::string name;
  };

  // nullopt: it is not known.
  std::optional<Place> find(const Handle& file);
  void put(const Handle& file, const Handle& directory, std::string_view name);
  // The name is another file's, or nobody's.
  void remove(const Handle& directory, std::string_view name);
  void rename(const Handle& from_directory, std::string_view from, const Handle& to_directory,
              std::string_view to);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Handle file;
    Place place;
  };
  using Iterator = std::list<Entry>::iterator;
  static std::string key(const Handle& file);
  static std::string key(const Handle& directory, std::string_view name);
  void erase(Iterator entry);

  std::list<Entry> entries_;  // the latest used first
  std::unordered_map<std::string, Iterator> by_file_;
  std::unordered_map<std::string, Iterator> by_name_;
};

}  // namespace stag::nfs::client::nfs4
