// Offloads: copies that a server goes on with after it has answered COPY (RFC 7862 sections 4.8,
// 15.2), each with a stateid of its own. It tells of the end by CB_OFFLOAD (16.1).
//
// The callback may be there before the answer to COPY (RFC 8881 section 2.10.6.3): as long as a
// COPY is unanswered, the server is asked to come again with what is not known here. Nothing is
// kept of it.
//
// Thread: the Channel's loop. Memory: a pointer for each copy that somebody waits for.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/cancel.h"
#include "nfs/proto/nfs4.h"

namespace stag::nfs::client::nfs4 {

class Offloads {
 public:
  // A COPY that is not answered yet.
  class Asking {
   public:
    explicit Asking(Offloads& offloads) : offloads_(offloads) { ++offloads_.asking_; }
    ~Asking() { --offloads_.asking_; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    Offloads& offloads_;
  };

  // A copy that goes on.
  struct Copy {
    Copy(Offloads& offloads, v4::nfs_fh4 to, const v4::stateid4& named)
        : owner(offloads), file(std::move(to)), stateid(named) {
      owner.copies_.push_back(this);
    }
    ~Copy() { std::erase(owner.copies_, this); }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    Offloads& owner;
    const v4::nfs_fh4 file;
    const v4::stateid4 stateid;
    std::optional<v4::offload_info4> end{};  // what the server said of it
    CancelSource* told = nullptr;            // resumes the waiter for that
  };

  // As long as it lives, `source` is cancelled when the server tells of the copy.
  class Listening {
   public:
    Listening(Copy& copy, CancelSource& source) : copy_(copy) { copy_.told = &source; }
    ~Listening() { copy_.told = nullptr; }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    Copy& copy_;
  };

  // CB_OFFLOAD: what is answered.
  v4::nfsstat4 on_end(const v4::CB_OFFLOAD4args& args);

 private:
  std::vector<Copy*> copies_;
  std::size_t asking_ = 0;
};

}  // namespace stag::nfs::client::nfs4
