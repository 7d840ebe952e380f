// LocalTree: how a LocalEndpoint reaches files of this machine while others who may write to their
// directories rename them, or put symbolic links in their place. Links in a path that the user
// named are followed; below it none is, and what is opened must be the object that was found there:
// same device, inode and type. The directories in use stay open. Paths may be longer than PATH_MAX.
//
// Thread: any. Everything blocks.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/copy/copy_endpoint.h"

namespace stag::cli {

// A value or the number of a system error: ESTALE where another object has come to the place of the
// one that was found.
template <class T>
using SystemResult = Result<T, int>;
// With a status where the destination is full or read-only.
Failure<nfs::client::Error> local_failure(std::string_view verb, const std::string& path,
                                          int error);

// Flags of open(2). O_NONBLOCK: if it has become a FIFO meanwhile, open(2) must not block.
inline constexpr int kToRead = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
// To open a device may do something to it, and a socket cannot be opened.
inline constexpr int kToName = O_PATH | O_CLOEXEC;

using OpenDirectory = std::shared_ptr<const UniqueFd>;
// Where an object is, or will be.
struct LocalPlace {
  OpenDirectory directory;
  std::string name;
};

class LocalTree {
 public:
  // What the user named; nullopt when there is none.
  SystemResult<std::optional<CopyObject>> find(const std::string& path, Follow follow);
  // For what is done by name in `directory`.
  SystemResult<OpenDirectory> directory(const CopyObject& directory);
  // Of an object that find() has not named. Nothing says that it is still there.
  SystemResult<LocalPlace> place(const CopyObject& object);
  SystemResult<UniqueFd> open(const CopyObject& object, int flags);
  // The same, and keeps the directory open for directory() and place().
  SystemResult<UniqueFd> open_to_list(const CopyObject& directory);

 private:
  // Enough for the files in flight, whose directories are few.
  static constexpr std::size_t kKept = 16;
  struct Kept {
    std::string path;
    std::uint64_t fsid = 0, file_id = 0;
    OpenDirectory directory;
    std::uint64_t used = 0;  // in the order of use
  };

  SystemResult<UniqueFd> open_unchecked(const CopyObject& object, int flags);
  // Opens the directory at `path`, of which the user named the first `named` bytes.
  SystemResult<UniqueFd> open_at(std::string_view path, std::size_t named, int flags);
  // The same, for looking up an object that is compared itself.
  SystemResult<OpenDirectory> directory_at(std::string_view path, std::size_t named);
  SystemResult<UniqueFd> open_beneath(int directory, std::string_view path, int flags);
  // Null when it is not open. `object`: which one it must be.
  OpenDirectory kept(std::string_view path, const CopyObject* object);
  OpenDirectory keep(std::string_view path, const struct stat& info, UniqueFd fd);

  std::atomic<bool> stepwise_ = false;  // openat2(2) is refused here
  std::mutex mutex_;                    // of what follows
  std::array<Kept, kKept> kept_{};
  std::uint64_t uses_ = 0;
};

// The entry `name` of the open directory, whose object is `parent`; not followed.
SystemResult<std::optional<CopyObject>> look_at(int directory, const CopyObject& parent,
                                                const std::string& name);
std::string path_in(const CopyObject& directory, const std::string& name);
// For calls that take no descriptor of O_PATH, and would not follow a symbolic link that it is of.
std::string name_of_open(int fd);

}  // namespace stag::cli
