// RDMA-CM on one loop: the event channel that its connections' ids share, and the devices they
// use. It lives as long as an owner has an id on it, on the loop's thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "fabric/verbs/loop_device.h"
#include "fabric/verbs/verbs_options.h"
#include "net/descriptor.h"
#include "net/loop.h"

namespace stag::fabric {

// An event of RDMA-CM, copied so that it could be acknowledged at once.
struct CmNotice {
  rdma_cm_event_type type{};
  int status = 0;
  rdma_cm_id* id = nullptr;  // of a CONNECT_REQUEST: the new one
  std::uint8_t responder_resources = 0, initiator_depth = 0;
  std::uint8_t private_size = 0;
  std::array<std::byte, 255> private_octets{};  // the first `private_size`

  Bytes private_data() const { return {private_octets.data(), private_size}; }
};

// The owner of an id.
class CmUser {
 public:
  // May destroy the user.
  virtual void on_cm(CmNotice notice) = 0;
  // A user that ignores every notice.
  static CmUser& nobody();

 protected:
  ~CmUser() = default;
};

// An id with one owner. It keeps the channel of its events, which librdmacm uses until the id is
// destroyed: an id may wait on another loop, or be destroyed, when its loop has no use for RDMA-CM
// any more.
class CmId {
 public:
  CmId() = default;
  CmId(std::shared_ptr<const VerbsFunctions> functions, std::shared_ptr<rdma_event_channel> channel,
       rdma_cm_id* id)
      : functions_(std::move(functions)), channel_(std::move(channel)), id_(id) {}
  CmId(CmId&& other) noexcept
      : functions_(std::move(other.functions_)),
        channel_(std::move(other.channel_)),
        id_(std::exchange(other.id_, nullptr)) {}
  CmId& operator=(CmId&& other) noexcept {
    std::swap(functions_, other.functions_);
    std::swap(channel_, other.channel_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~CmId() {
    if (id_ != nullptr) functions_->destroy_id(id_);
  }

  rdma_cm_id* get() const { return id_; }
  rdma_cm_id* operator->() const { return id_; }
  const std::shared_ptr<rdma_event_channel>& channel() const { return channel_; }
  // To whom events are told from now on; on the thread of its channel.
  void belongs_to(CmUser& user) const { id_->context = &user; }
  // Its events come by `channel` from now on; false when they cannot.
  bool migrate(const std::shared_ptr<rdma_event_channel>& channel) {
    if (channel_ == channel) return true;
    if (functions_->migrate_id(id_, channel.get()) != 0) return false;
    channel_ = channel;
    return true;
  }

 private:
  std::shared_ptr<const VerbsFunctions> functions_;
  std::shared_ptr<rdma_event_channel> channel_;
  rdma_cm_id* id_ = nullptr;
};

// A channel of RDMA-CM's events that nobody waits at.
Result<std::shared_ptr<rdma_event_channel>, Reason> open_channel(
    const std::shared_ptr<const VerbsFunctions>& functions);
// Whether the options allow the device; null is none yet, and allowed.
bool allows(const VerbsFunctions& functions, const VerbsOptions& options, ibv_context* context);
// Whether there is a device that they allow.
bool finds_allowed(const VerbsFunctions& functions, const VerbsOptions& options);

struct VerbsShared;

class VerbsLoop {
 public:
  // That of `loop`, made when there is none: on `channel`, or on a new one where that is null.
  static Result<std::shared_ptr<VerbsLoop>, Reason> of(
      const std::shared_ptr<VerbsShared>& shared, net::EpollLoop& loop,
      std::shared_ptr<rdma_event_channel> channel = nullptr);
  ~VerbsLoop();

  net::EpollLoop& loop() const { return loop_; }
  const VerbsFunctions& functions() const;
  const VerbsOptions& options() const;
  bool allows(ibv_context* context) const;
  bool finds_allowed() const;

  Result<CmId, Reason> make_id(CmUser& user);
  // The owner of the id that a CONNECT_REQUEST has brought.
  CmId own_requested(rdma_cm_id* id) const;
  Result<std::shared_ptr<LoopDevice>, Reason> device(ibv_context* context);
  // Whether its events come here.
  bool has(const CmId& id) const { return id.channel() == channel_; }
  // Takes over an id that came on another loop's channel.
  bool adopt(CmId& id) { return id.migrate(channel_); }

 private:
  VerbsLoop(std::shared_ptr<VerbsShared> shared, net::EpollLoop& loop)
      : shared_(std::move(shared)), loop_(loop) {}
  Result<Ok, Reason> open(std::shared_ptr<rdma_event_channel> channel);
  void on_readable();
  void tell(rdma_cm_event& event);
  void close_removed_devices();

  std::shared_ptr<VerbsShared> shared_;
  net::EpollLoop& loop_;
  std::shared_ptr<rdma_event_channel> channel_;
  net::Descriptor events_;
  std::map<ibv_context*, std::weak_ptr<LoopDevice>> devices_;
  Timer closing_;
  std::weak_ptr<VerbsLoop> self_;
};

// What all loops of a fabric share. Any thread.
struct VerbsShared {
  std::shared_ptr<const VerbsFunctions> functions;
  VerbsOptions options;
  std::mutex mutex;
  std::map<net::EpollLoop*, std::weak_ptr<VerbsLoop>> loops;  // guarded by mutex
};

}  // namespace stag::fabric
