// A command with two paths of one export: `mv` and `ln`.
#pragma once

#include <string>

#include "cli/support/arguments.h"
#include "cli/support/remote.h"

namespace stag::cli {

// A name in a directory; the object need not exist.
struct Slot {
  nfs::client::Node directory;
  std::string name;
  bool inside = false;  // the URL is that of the directory
};

class PairCommand : public Command {
 protected:
  // Where `url` is in the export of `remote`; Kind::Url when it is elsewhere.
  static Outcome<std::string> path_within(Remote& remote, const std::string& url);
  static Task<Outcome<Slot>> slot_at(Remote& remote, std::string path);
  // The same, but a directory at `path` takes the name of `other` into it. Only what is a
  // `directory` gets a name with '/' behind it.
  static Task<Outcome<Slot>> slot_at_or_in(Remote& remote, std::string path, std::string other,
                                           bool directory);
};

}  // namespace stag::cli
