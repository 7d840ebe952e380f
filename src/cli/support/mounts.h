// What is mounted on this machine, as the kernel tells of it in /proc/*/mountinfo (proc(5)). No
// file system is asked: one whose server does not answer would not answer either.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace stag::cli {

// A mount of 'stag mount'.
struct StagMount {
  std::string device;         // "0:53": what several directories have in common that show it
  std::string source;         // the URL, as far as the kernel keeps it
  std::optional<uid_t> by{};  // where FUSE tells it
};

// What is seen at a directory, a path without symbolic links; nullopt: no mount of ours.
std::optional<StagMount> stag_mount_at(const std::string& directory);

// Where a mount of ours is that is called `directory`, or a symbolic link to it; empty: there is
// none.
std::filesystem::path place_of_mount(const std::string& directory, std::error_code& trouble);

// Where a mount can be seen.
struct Sight {
  pid_t process = 0;  // by this one; 0: by the caller
  std::string directory;
};

// Where a mount is seen still that was unmounted. A process that enters a mount namespace of its
// own (a container, a service with PrivateMounts=) takes a copy of each mount with it, which the
// others cannot unmount. nullopt: nowhere, as far as processes may be looked at.
std::optional<Sight> place_of_copy(const StagMount& unmounted);

}  // namespace stag::cli
