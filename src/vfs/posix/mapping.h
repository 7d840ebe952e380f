// A file of a file system in memory, mapped for reading (decision 0011): what is read again and
// again comes from there three times as fast as by pread(2), which answers such files page by page.
//
// Who reads a mapped file that was truncated meanwhile gets a SIGBUS. copy() expects that and
// fails. The handler for it is the process's from the first mapping on; it leaves every other fault
// to whoever had it before. A file with holes is better not mapped: to look at one fills it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "vfs/posix/descriptor.h"

namespace stag::vfs::posix {

class Mapping {
 public:
  // Of a file of `size` bytes, with room for it to grow. Null when that is too much: what is mapped
  // counts as memory of the process, which has a limit for all its mappings.
  static std::shared_ptr<const Mapping> of(const Descriptor& file, std::uint64_t size);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Bytes, no less than `size` was.
  std::uint64_t length() const { return length_; }
  // The range lies within length(). False when the file ends before it; `to` may hold anything
  // then.
  bool copy(std::uint64_t offset, MutableBytes to) const;

 private:
  Mapping(const std::byte* begin, std::uint64_t length) : begin_(begin), length_(length) {}
  const std::byte* const begin_;
  const std::uint64_t length_;
};
using SharedMapping = std::shared_ptr<const Mapping>;

}  // namespace stag::vfs::posix
