// Scene: what the steps of one case share: the client, filehandles, stateids and values under the
// names that the case gives them, and the sequence numbers of version 4.0's owners.
//
// Filehandles that every case finds (fixtures of the run): "root", "work", "file" (100 bytes),
// "dir" (empty), "full" (has "inner"), "link", "fifo", "private" (mode 0700), "secret" (mode 0600),
// "gone" (was removed), "own" (an empty folder of this case alone).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conform/nfs4/client.h"

namespace stag::conform::nfs4 {

using Handles = std::map<std::string, v4::nfs_fh4, std::less<>>;

// What the fixture "file" contains.
inline constexpr std::string_view kContent =
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
    "456789";

class Elapsed;

class Scene {
 public:
  // `label` is unique among the cases of the client: owners begin with it.
  Scene(Client& client, const Handles& fixtures, std::string label)
      : client(client), label(std::move(label)), fixtures_(fixtures) {}

  Client& client;
  const std::string label;
  Handles handles{};
  std::map<std::string, v4::stateid4, std::less<>> states{};
  std::map<std::string, v4::verifier4, std::less<>> verifiers{};
  std::map<std::string, std::uint64_t, std::less<>> numbers{};
  v4::fattr4 attributes{};              // of the last GETATTR
  std::vector<std::string> opened{};    // names of files that are open, each a handle and a stateid
  std::vector<std::string> locked{};    // names of lock stateids
  std::set<std::string> unconfirmed{};  // names of opened files that need OPEN_CONFIRM
  Elapsed* elapsed = nullptr;           // of the run; only where a case has its own client
  std::string trouble{};                // a step that names what the scene does not have

  std::uint32_t minor() const { return client.minor(); }
  // Of a client of this case alone, beside `client`.
  ClientOptions other_client(std::string_view name, bool called_back = false) const;
  const v4::nfs_fh4& handle(std::string_view name);
  // "anonymous", "bypass", "current", "invalid", "garbage", the name of a stateid, "old NAME" and
  // "future NAME".
  v4::stateid4 stateid(std::string_view name);
  // The owner that the case calls `name`, and its next sequence number (version 4.0 only, else 0).
  v4::state_owner4 owner(std::string_view name) const;
  v4::seqid4 seqid(std::string_view owner) const;
  void advance(std::string_view owner) { ++seqids_[std::string(owner)]; }
  // The open owner or the lock owner that a stateid was made for, also of "old NAME".
  const std::string& owner_of(std::string_view state);
  void made_for(const std::string& state, const std::string& owner) { owner_of_[state] = owner; }

 private:
  const Handles& fixtures_;
  std::map<std::string, v4::seqid4, std::less<>> seqids_{};
  std::map<std::string, std::string, std::less<>> owner_of_{};
};

}  // namespace stag::conform::nfs4
