// Attributes, errors and flags of FUSE and of the NFS client, one as the other; words of its
// options.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"

namespace stag::fuse {

// The bits of a mode that writing to a file, or giving it away, takes away from it.
inline constexpr std::uint32_t kSetIds = S_ISUID | S_ISGID;

// The errno of a failed operation.
int errno_of(const nfs::client::Error& error);

// `block`: the size of transfers that the file system likes best. `home`: the file system of the
// mount's root (Attributes::file_system_id), whose files have the inode numbers that the server
// gives them. Those of other file systems are moved, each by an amount of its own: to programs a
// mount is one file system, in which two files of one number are one file.
struct stat stat_of(const nfs::client::Attributes& attributes, std::uint32_t block,
                    std::uint64_t home);

// The same of an entry of a directory whose attributes the server could not tell. `file_id` is 0
// where it told no number either.
struct stat stat_of_untold(std::uint64_t file_id);

// What `to_set` (FUSE_SET_ATTR_...) asks for.
nfs::client::SetAttributes changes_of(const struct stat& wanted, int to_set);

// The access (client::access) that open(2) with `flags` asks the server for.
std::uint32_t access_of_open(int flags);
// The same of access(2).
std::uint32_t access_of_mask(int mask, bool directory);
// Whether `granted` is enough for access(2) with `mask`.
bool grants(std::uint32_t granted, int mask, bool directory);

// What lseek(2) finds in a file that is data without holes (SEEK_DATA, SEEK_HOLE); nullopt:
// nothing, `offset` is behind its end.
std::optional<std::uint64_t> sought_in_data(std::uint64_t size, std::uint64_t offset, int whence);

// An access control list as the kernel has it in an extended attribute.
std::string xattr_of(const std::vector<nfs::client::AclEntry>& list);
// The inverse; nullopt: these are no list's bytes. Whether it is complete is not looked at.
std::optional<std::vector<nfs::client::AclEntry>> list_of_xattr(std::string_view bytes);

// As libfuse has times for which the kernel may use something.
inline double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// `text` as a word of libfuse's lists of options, whatever is in it.
std::string one_word(std::string_view text);

}  // namespace stag::fuse
