// Delegations: files that the server has delegated to this client for reading, or for reading and
// writing (RFC 8881 section 10.4), each with the one open that it came with, which all who open the
// file for no more than that share. While a delegation is held nobody else changes the file: its
// attributes are remembered, and it is opened and closed without a call. Data is written to the
// server as ever; of a file that is delegated for writing the server may ask how large it is now.
//
// Thread: the Channel's loop. Memory: kMost files.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "nfs/client/protocol/types.h"
#include "nfs/session/opens.h"

namespace stag::nfs::client::nfs4 {

class Delegations {
 public:
  using OpenId = session::Opens::Id;
  static constexpr std::size_t kMost = 1024;

  // What the server may ask for of a file that is delegated for writing (CB_GETATTR, 10.4.3).
  struct Written {
    std::uint64_t change = 0;  // of the file when it was delegated
    bool modified = false;
    std::optional<std::uint64_t> size{};  // nullopt: not known
  };
  // Due: to be given back, which nobody does yet: there was no memory for it.
  enum class State : std::uint8_t { Held, Due, Returning, Returned };
  struct Delegation {
    File file;  // with the open
    v4::stateid4 stateid{};
    std::uint32_t access = 0;          // OPEN4_SHARE_ACCESS_* of the open
    std::optional<Written> written{};  // of one for writing
    std::uint32_t users = 0;
    State state = State::Held;
    std::optional<Attributes> attributes{};
    std::uint64_t as_of = 0;  // changes() when they were asked for
  };

  // One more user of the open of a file that is delegated, for `access`; null: it is not.
  Delegation* use(const Handle& file, std::uint32_t access);
  // One user less. False: there is no such open, or this was the last user of
  // one without a delegation, and it is to be closed.
  bool release(OpenId open);
  bool is_used(OpenId open) const;
  // A delegated file that nobody has open: its open is closed before it is given back.
  bool is_idle(OpenId open) const;
  // The server has delegated a file that is open, for one user. False: it was
  // delegated before.
  bool add(const File& file, const v4::stateid4& stateid, std::uint32_t access,
           std::optional<Written> written);
  // Whether this very delegation is known.
  bool knows(const v4::stateid4& stateid) const;

  // Attributes that nobody has changed. This client's own changes are told by
  // on_change().
  const Attributes* attributes(const Handle& file) const;
  void remember(const Handle& file, const Attributes& attributes, std::uint64_t as_of);
  std::uint64_t changes() const { return changes_; }
  void on_change() { ++changes_; }

  // What this client has done to a file: written up to `end`, made it that long, or something that
  // may have changed the size (nullopt).
  void on_write(const Handle& file, std::uint64_t end);
  void on_resize(const Handle& file, std::optional<std::uint64_t> size);
  // `change` and size of a file that is delegated for writing, where the size is known.
  struct Now {
    std::uint64_t change = 0;
    std::uint64_t size = 0;
  };
  std::optional<Now> now(const Handle& file) const;

  // One that is held, or due, to be given back now: the file with its open, and the stateid. The
  // oldest is the one held that was not used for longest, and rather one that nobody has open.
  struct Return {
    File file;
    v4::stateid4 stateid{};
    bool for_writing = false;
  };
  std::optional<Return> take(const Handle& file);
  std::optional<Return> take(const v4::stateid4& stateid);
  std::optional<Return> take(OpenId open);
  std::optional<Return> take_oldest();
  // It could not be given back for want of memory.
  void on_not_returned(OpenId open);
  std::size_t due() const { return due_; }
  std::optional<Return> take_due();
  // Whether one with this stateid is on its way back.
  bool returning(const v4::stateid4& stateid) const;
  // It was given back. True: nobody has the file open, and the open is to be
  // closed.
  bool on_returned(OpenId open);
  std::size_t held() const { return held_; }
  // Of all that are held, or on their way back.
  std::vector<v4::stateid4> stateids() const;

  // The server has lost everything. Yields the opens that nobody uses.
  std::vector<OpenId> on_restart();

 private:
  using Entry = std::list<Delegation>::iterator;
  static std::string key(const Handle& file);
  std::optional<Return> take(Entry entry);
  Written* written(const Handle& file);
  void unlist(Entry entry);
  void erase(Entry entry);

  std::list<Delegation> entries_;  // the latest used first
  std::unordered_map<std::string, Entry> by_file_;
  std::unordered_map<OpenId, Entry> by_open_;
  std::size_t held_ = 0;
  std::size_t due_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace stag::nfs::client::nfs4
