// A command that changes attributes of what its URLs name and, with -R, of all that is below:
// `chmod` and `chown`.
#pragma once

#include "base/task_group.h"
#include "cli/commands/tree_command.h"

namespace stag::cli {

class TreeChange : public TreeCommand {
 protected:
  void declare_recursive(Arguments& arguments);
  bool recursive() const { return recursive_; }
  // nullopt: the entry stays as it is. Below the top, symbolic links are not followed.
  virtual std::optional<nfs::client::SetAttributes> change_of(const TreeEntry& entry) const = 0;

  // What the URL says of symbolic links.
  nfs::client::Links follow_ = nfs::client::Links::Follow;

 private:
  Task<Outcome<Ok>> act(Run& run, Remote& remote) override;
  static bool may_open(const TreeEntry& entry, const nfs::client::SetAttributes& attributes);
  static bool may_close(const TreeEntry& entry, const nfs::client::SetAttributes& attributes);
  bool is_sure_to_enter(const TreeEntry& directory) const override;
  Task<bool> enter(const TreeEntry& entry) override;
  Task<void> leave(const TreeEntry& directory) override;
  // Fails where something else has the name of `entry` by now, or nothing.
  Task<Outcome<Ok>> check_place(const TreeEntry& entry);
  Task<void> change(TreeEntry entry, nfs::client::SetAttributes attributes);

  Remote* remote_ = nullptr;
  TaskGroup changes_;
  bool recursive_ = false;
};

}  // namespace stag::cli
