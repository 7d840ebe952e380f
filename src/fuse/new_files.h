// NewFiles: files that programs of this machine are making, from open(O_CREAT) to the first
// close(2). What a program sets of one in between (tar(1), cp -p: owner, mode, times) need not go
// to the server piece by piece: times wait for the next change, or for close(2), which tells what
// came of them; and what is so already is not set again.
//
// Pure. Thread: the loop of the Mount.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/loop.h"
#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"

namespace stag::fuse {

class NewFiles {
 public:
  using Attributes = nfs::client::Attributes;
  using SetAttributes = nfs::client::SetAttributes;

  // Attributes are used unasked for `valid` after the server gave them; without that nothing waits.
  explicit NewFiles(Duration valid) : valid_(valid) {}

  // A file was made that the kernel knows as `number`. `without_times`: the server may have
  // something else there (CreateMode::ExclusiveButTimes).
  void begin(std::uint64_t number, const nfs::client::Handle& handle, const Attributes& attributes,
             bool without_times, TimePoint now);
  void end(std::uint64_t number) { files_.erase(number); }
  bool knows(std::uint64_t number) const { return files_.contains(number); }
  bool empty() const { return files_.empty(); }

  // Leaves in `changes` what is to be set now, with the times that wait. Yields the attributes
  // where nothing is left.
  std::optional<Attributes> absorb(std::uint64_t number, SetAttributes& changes, TimePoint now);
  // Stands for what is known of the file; another one after whatever happens to it.
  std::uint64_t version(std::uint64_t number) const;
  // They were set, in place of whatever waited, and that is how the file is then. `version`: from
  // before the server was asked. What happened since is not in the attributes.
  void on_set(std::uint64_t number, std::uint64_t version, const SetAttributes& changes,
              const Attributes& attributes, TimePoint now);
  // That is how the server says that it is.
  void on_told(std::uint64_t number, std::uint64_t version, const Attributes& attributes,
               TimePoint now);
  // The server has refused to set these times, which wait no longer. nullopt: another client has
  // removed the file; else close(2) tells.
  void on_refused(std::uint64_t number, const SetAttributes& times,
                  const std::optional<nfs::client::Error>& why);
  // Nothing was heard of it: they are not due again before a pause, which grows.
  void on_unheard(std::uint64_t number, TimePoint now);
  // So many bytes were written; the server has set the time of the modification.
  void on_write(std::uint64_t number, std::uint64_t offset, std::uint64_t size);
  // The server has changed the content, and with it perhaps the time of the modification: an
  // earlier one that waits becomes that of now.
  void on_change(std::uint64_t number);
  // The server changes it in a way that is not known.
  void outdate(std::uint64_t number);

  // The attributes, as far as they need not be asked for: the kernel asks before each chown(2).
  std::optional<Attributes> known(std::uint64_t number, TimePoint now) const;
  // The server's attributes, with the times that wait in their place.
  Attributes shown(std::uint64_t number, Attributes attributes) const;

  // Why the server refused times that were set last.
  nfs::client::Outcome<Ok> refusal(std::uint64_t number) const;

  // Times that wait until on_set() or on_refused(); nullopt: there are none.
  struct Waiting {
    std::uint64_t number = 0;
    nfs::client::Handle handle{};
    SetAttributes times{};
  };
  std::optional<Waiting> waiting(std::uint64_t number) const;
  // Files whose times wait, and that were made, or whose times came last, until then.
  std::vector<std::uint64_t> due(TimePoint until) const;
  bool any_waits() const;

 private:
  struct File {
    nfs::client::Handle handle;
    Attributes attributes;
    TimePoint as_of;
    TimePoint waits_since;
    std::uint64_t version = 0;
    Duration pause{};
    bool outdated = false;
    bool written = false;  // since the time of its modification was known
    std::optional<nfs::client::Error> refusal{};
    nfs::client::SetTime accessed{}, modified{};  // that wait
  };
  File* find(std::uint64_t number);
  bool fresh(const File& file, TimePoint now) const;
  static void know(File& file, const Attributes& attributes, TimePoint now);

  Duration valid_;
  std::uint64_t versions_ = 0;
  std::unordered_map<std::uint64_t, File> files_;
};

}  // namespace stag::fuse
