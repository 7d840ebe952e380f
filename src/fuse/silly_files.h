// SillyFiles: files that programs of this machine removed while they have them open. NFS has no way
// to keep the content of a file without a name (RFC 1813 section 4.8), so each has another name
// until its last close(2), for which the kernel does not wait: the name may still be there when the
// next system call comes. A call that would meet it then waits for the removal.
//
// Pure. Thread: the loop of the Mount.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/task.h"
#include "fuse/waiters.h"
#include "nfs/client/protocol/types.h"

namespace stag::fuse {

struct SillyName {
  nfs::client::Handle directory;
  std::string name;
};

class SillyFiles {
 public:
  using Handle = nfs::client::Handle;
  class Removal;

  // The open file that the kernel knows as `number` has this name from now on. It has none yet.
  void add(std::uint64_t number, const Handle& file, SillyName name);
  // Null: it has no such name, or is being removed.
  const SillyName* find(std::uint64_t number) const;
  // It has a name that programs know, again.
  void forget(std::uint64_t number);
  // The file was closed for the last time. nullopt: find() knows no name.
  std::optional<Removal> closed(std::uint64_t number);

  // Whether the name is one that keeps an open file.
  bool keeps_open(const Handle& directory, const std::string& name) const;
  // The names that keep open files.
  std::vector<SillyName> names() const;
  // Those in a directory, by the numbers of their files.
  std::vector<std::uint64_t> open_in(const Handle& directory) const;
  // The directories of all, also of those that are being removed: one for each.
  std::vector<Handle> directories() const;
  // Ends when no removal of a file in `directory` is in progress.
  Task<void> removed(Handle directory);
  // Whether a name of the file is being removed, by whatever number the kernel knew it then.
  // Another name may keep it.
  bool being_removed(const Handle& file) const;
  // Ends when none of it is.
  Task<void> name_removed(Handle file);

 private:
  struct File {
    std::uint64_t number = 0;
    Handle handle;
    SillyName name;
    bool being_removed = false;
  };
  using Files = std::list<File>;

  // Few programs remove what they have open: a search meets a handful.
  Files::const_iterator find_open(std::uint64_t number) const;

  Files files_;
  Waiters waiters_;  // for a removal to end
};

// A file that is being removed, until this is destroyed. The SillyFiles outlive it.
class SillyFiles::Removal {
 public:
  Removal(SillyFiles& owner, Files::iterator file) : owner_(&owner), file_(file) {}
  Removal(Removal&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), file_(other.file_) {}
  Removal& operator=(Removal&&) = delete;
  ~Removal();

  const SillyName& name() const { return file_->name; }

 private:
  SillyFiles* owner_;
  Files::iterator file_;
};

}  // namespace stag::fuse
