// Removals: files that lose a name by a program of this machine, which removes it or gives it to
// another file. Until the server has answered, nobody knows whether the file is still there: an
// open(2) of it waits. An open(2) that comes too late fails with ESTALE, for which the kernel looks
// the name up again, once: what it finds then must not vanish in turn, so the name is contended
// from then on, and whatever loses it is kept while the kernel knows it. A removal and a look-up of
// such a name wait for each other: what is found is either known before it is removed, or gone.
//
// Pure. Thread: the loop of the Mount. Memory: a name for each file that lost one, until the kernel
// forgets the file, and kMostContended others.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "base/task.h"
#include "fuse/waiters.h"
#include "nfs/client/protocol/types.h"

namespace stag::fuse {

struct DirectoryName {
  nfs::client::Handle directory;
  std::string name;
  friend bool operator==(const DirectoryName&, const DirectoryName&) = default;
};

class Removals {
 public:
  static constexpr std::size_t kMostContended = 64;
  class Removal;
  class Look;

  bool in_progress(std::uint64_t number) const;
  // Ends when no name of the file that the kernel knows as `number` is being taken from it.
  Task<void> ended(std::uint64_t number);
  // Ends when the name is being taken from no file.
  Task<void> ended(DirectoryName name);
  // Ends when nobody is looking the name up.
  Task<void> looked(DirectoryName name);

  // The name that the file lost last; null: it has lost none since forget().
  const DirectoryName* lost(std::uint64_t number) const;
  void forget(std::uint64_t number) { lost_.erase(number); }

  // A program could not open a file that has lost this name.
  void contend(const DirectoryName& name);
  bool is_contended(const DirectoryName& name) const;

 private:
  struct Taken {
    std::uint64_t number = 0;  // 0: not known (yet)
    DirectoryName name;
  };
  using All = std::list<Taken>;
  // Few are in progress at a time: a search meets a handful.
  All running_;
  std::list<DirectoryName> looks_;
  Waiters waiters_;  // for one of them to end
  std::unordered_map<std::uint64_t, DirectoryName> lost_;
  std::list<DirectoryName> contended_;  // the latest first
};

// A name that is being taken from a file, until this is destroyed. The Removals outlive it.
class Removals::Removal {
 public:
  Removal(Removals& owner, DirectoryName name);
  ~Removal();
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

  // The file that has the name.
  void is_of(std::uint64_t number) { taken_->number = number; }
  // The server says so.
  void done();

 private:
  Removals& owner_;
  All::iterator taken_;
};

// A lookup of a contended name, which tells the kernel of it, until this is destroyed. The Removals
// outlive it.
class Removals::Look {
 public:
  Look(Removals& owner, DirectoryName name);
  ~Look();
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

 private:
  Removals& owner_;
  std::list<DirectoryName>::iterator place_;
};

}  // namespace stag::fuse
