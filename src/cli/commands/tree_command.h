// A command that walks over the trees of its URLs: `find`, `du`, `tree`, and `chmod` and `chown`
// with -R.
#pragma once

#include "cli/commands/remote_command.h"
#include "cli/commands/tree_walk.h"

namespace stag::cli {

class TreeCommand : public RemoteCommand, protected TreeVisitor {
 protected:
  // Walks from what the URL of `remote` names. A failure below is printed, and makes this fail
  // without a further sentence.
  Task<Outcome<Ok>> walk_all(Run& run, Remote& remote, nfs::client::Links links);
  // How the walk ended, with what went wrong behind it.
  Outcome<Ok> ended(const Run& run) const;
  void trouble(const TreeEntry& entry, const nfs::client::Error& error) override;
  // The path of an entry on the server: that of the URL, and behind it the one below.
  std::string server_path(const TreeEntry& entry) const;
  // The URL that the walk began with, as nfs::client::to_string() writes it.
  const std::string& top_url() const { return top_url_; }

 private:
  std::string top_path_, top_url_;
  bool failed_ = false;
};

}  // namespace stag::cli
