// One operation that this server asks of a client behind CB_SEQUENCE, and what its answer means
// (RFC 8881 20, RFC 7862 16).
//
// Thread: that of Callbacks, which owns it.
#pragma once

#include <compare>
#include <cstdint>

#include "base/loop.h"
#include "nfs/state/files.h"
#include "nfs/v4/callback/callback_call.h"

namespace stag::nfs::nfs4 {

// What is asked once at a time: of one delegation that it is given back and what its file is like,
// of one copy that it has ended.
struct CallbackKey {
  enum class Kind : std::uint8_t { Recall, Getattr, Offload };
  Kind kind = Kind::Recall;
  std::array<std::byte, 12> other{};  // of the stateid, whatever its seqid
  friend auto operator<=>(const CallbackKey&, const CallbackKey&) = default;
};

class PendingCallback {
 public:
  enum class Next : std::uint8_t {
    Answered,  // it is not sent again, and stays until it is over
    Ended,
    Later,  // it is sent again
  };

  PendingCallback(state::ClientId of, const state::SlotRef& by, const state::FileKey& about)
      : clientid(of), caused_by(by), export_id(about.via) {}
  virtual ~PendingCallback() = default;
  PendingCallback(const PendingCallback&) = delete;

  virtual void fill(v4::nfs_cb_argop4& operation) const = 0;
  // CB_SEQUENCE succeeded. Of a retry whose answer the client did not keep: NFS4_OK.
  virtual Next answered(const CallbackOutcome& outcome, TimePoint now) = 0;
  // Whether no caller wants it any more; looked at once a second.
  virtual bool is_over(TimePoint now) = 0;

  const state::ClientId clientid;
  // The client's request that it is about: the client waits for its Reply if it has not got it yet
  // (RFC 8881 2.10.6.3).
  const state::SlotRef caused_by;
  const std::uint32_t export_id;  // of its file
};

}  // namespace stag::nfs::nfs4
