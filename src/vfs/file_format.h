// Types of objects as the file format of a mode (inode(7)), for stores that have modes of Linux.
#pragma once

#include <sys/stat.h>

#include "vfs/types.h"

namespace stag::vfs {

inline FileType type_of_mode(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return FileType::Directory;
    case S_IFLNK:
      return FileType::Symlink;
    case S_IFIFO:
      return FileType::Fifo;
    case S_IFSOCK:
      return FileType::Socket;
    case S_IFBLK:
      return FileType::BlockDevice;
    case S_IFCHR:
      return FileType::CharacterDevice;
    default:
      return FileType::Regular;
  }
}

// Of objects that mknod(2) makes; 0 for others.
inline mode_t format_of_special(FileType type) {
  switch (type) {
    case FileType::Fifo:
      return S_IFIFO;
    case FileType::Socket:
      return S_IFSOCK;
    case FileType::BlockDevice:
      return S_IFBLK;
    case FileType::CharacterDevice:
      return S_IFCHR;
    default:
      return 0;
  }
}

}  // namespace stag::vfs
