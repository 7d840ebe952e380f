// One connection over a queue pair of an RDMA device.
//
// Sending. Short messages go inline; messages and Writes up to 64 KiB are copied into registered
// blocks, which short ones share, longer ones are registered where they lie for as long as they are
// on their way. What the send queue has no slot for waits here, in order. Every sixteenth request
// is signalled, and every one that the user waits for. What is posted while a message is delivered
// leaves with the next message, in one call, or when the delivery has ended; so does what has
// waited for slots.
//
// Memory. Each exposure has a registration of its own with the one right that is needed. Where the
// device has memory windows, the region itself has no remote right: a window of this queue pair
// opens it, and is invalidated by the peer or by revoke(). Elsewhere the region has the right, in a
// domain of this connection's own, and revoke() deregisters it. With VerbsOptions::open_regions it
// is copied instead.
//
// Events come from turns of the loop only: completions and RDMA-CM events.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/key_table.h"
#include "base/unique_function.h"
#include "fabric/fabric.h"
#include "fabric/stall_watch.h"
#include "fabric/verbs/open_regions.h"
#include "fabric/verbs/queue_pair.h"
#include "fabric/verbs/retired_queue_pair.h"
#include "fabric/verbs/verbs_loop.h"
#include "fabric/verbs/work.h"

namespace stag::fabric {

class VerbsConnection final : public Connection, private QueuePairUser, private CmUser {
 public:
  // RFC 8797 and RDMA-CM: what was agreed on when the connection came up, or why it did not.
  using OnSetup = UniqueFunction<void(Reason)>;

  // Takes over `id`, which has its address and device, with its queue pair and receives.
  static Result<std::unique_ptr<VerbsConnection>, Reason> make(std::shared_ptr<VerbsLoop> loop,
                                                               CmId id, bool active,
                                                               const ConnectOptions& options);
  ~VerbsConnection() override;

  // Asks the peer, or answers it: once. `on_setup` is called in a later turn; it does not destroy
  // this. Failing at once is the result.
  Result<Ok, Reason> set_up(const ConnectOptions& options, const CmNotice* request,
                            OnSetup on_setup);
  // How its listener counts it.
  void keep(std::shared_ptr<void> place) { place_ = std::move(place); }

  void start(Events& events) override;
  void close(Reason reason) override;
  Loop& loop() override { return loop_->loop(); }
  const Parameters& parameters() const override { return parameters_; }
  Bytes peer_private_data() const override { return private_data_; }
  Address peer_address() const override { return peer_; }
  Address local_address() const override { return local_; }
  const Traffic& traffic() const override { return traffic_; }
  std::uint64_t progress_mark() const override { return progress_; }
  void add_receive_credit(ReceiveCredit more) override;
  Result<RemoteMemory, Reason> expose_source(Bytes memory) override;
  Result<RemoteMemory, Reason> expose_sink(MutableBytes memory) override;
  Revocation revoke(std::uint32_t handle) override;
  // The device cannot drop what is written: a peer that goes on loses the connection.
  Revocation abandon(std::uint32_t handle) override { return revoke(handle); }
  void send(Rope message, std::optional<std::uint32_t> invalidate, Flow flow, Token token) override;
  void send_copy(std::span<const Bytes> parts, std::optional<std::uint32_t> invalidate, Flow flow,
                 Token token) override;
  void write(Rope source, RemoteMemory sink, Flow flow, Token token) override;
  void read(RemoteMemory source, MutableBytes sink, Flow flow, Token token) override;

 private:
  // Closing: no more events of the peer's; what is posted still leaves.
  enum class State : std::uint8_t { Open, Closing, Ended };
  struct Registration {
    ibv_mr* region = nullptr;
    ibv_mw* window = nullptr;
    bool revoking = false;
  };
  struct Arrived {
    RegisteredBlock* block = nullptr;
    std::uint32_t length = 0;
    std::optional<std::uint32_t> invalidated;
  };
  struct Anchor {
    VerbsConnection* connection;
  };

  VerbsConnection(std::shared_ptr<VerbsLoop> loop, CmId id, bool active,
                  const ConnectOptions& options);
  const VerbsFunctions& functions() const { return loop_->functions(); }
  void later(void (VerbsConnection::*step)());

  // CmUser
  void on_cm(CmNotice notice) override;
  void on_setup_event(const CmNotice& notice);
  void established(const CmNotice& notice);

  // verbs_transmit.cc
  // The passive side is silent before the peer's first message, and both are before start().
  bool may_speak() const { return (active_ || heard_) && events_ != nullptr; }
  bool has_slot() const { return posted_.size() < queue_pair_->slots(); }
  void post(Work& work);
  // Gives back what belongs to `work` where there is no memory.
  void make_room_for(PostedWork& work, bool now);
  void pump();
  void submit(Work& work);
  bool may_wait(const Work& work) const;
  void put_aside(const ibv_send_wr& request);
  void stop_collecting() {
    collecting_ = false;
    if (batched_) post_batch();
  }
  void post_batch();
  void post_requests(ibv_send_wr* first);
  // Puts a message or a Write of `size` bytes into the request itself or into blocks; false when
  // there are none left.
  bool copy_into(Work& work, std::span<const Bytes> parts, std::size_t size);
  bool join_inline(Work& work, std::span<const Bytes> parts, std::size_t size);
  bool copy_into_blocks(Work& work, std::span<const Bytes> parts, std::size_t size);
  bool copy_into_shared_block(Work& work, std::span<const Bytes> parts, std::size_t size);
  // Has `work` use kept memory; false when `memory` is not, or not with that access.
  bool use_kept(Work& work, Bytes memory, int access);
  bool register_for(Work& work, Bytes memory, int access);
  void post_send(Work& work, std::optional<std::uint32_t> invalidate, Token token);
  void write_registered(const Rope& source, RemoteMemory sink, Token token);
  // Fails what was asked for, and with it the connection.
  void refuse(Token token, Reason reason);
  void post_late(Token token);

  // verbs_memory.cc
  Result<RemoteMemory, Reason> expose(std::byte* memory, std::size_t size, bool writable);
  Result<RemoteMemory, Reason> open_window(ibv_mr* region, std::byte* memory, std::size_t size,
                                           bool writable);
  void forget(const Registration* registration);
  // The next block of `work` that no other request uses; null when it has no more.
  RegisteredBlock* take_block(PostedWork& work);
  void release(PostedWork& work);

  // verbs_completion.cc
  void on_completion(const ibv_wc& completion) override;
  void on_device_failure(Reason reason) override;
  void on_receive(const ibv_wc& completion);
  void on_sent(const ibv_wc& completion);
  void deliver(const Arrived& arrived);
  void complete(PostedWork& posted);

  // verbs_ending.cc
  void begin_events();
  void close_when_sent();
  void end_later(Reason reason);
  // The queue pair has failed for a reason that is not known yet.
  void expect_end();
  // A request has failed. What the peer sent before may be in another queue, and is delivered
  // first.
  void fail(Reason reason);
  void end_failed();
  void end_now();
  void end(Reason reason);
  void give_back_memory();
  // Of its queue pair. It destroys it, or has it retire, if nothing that is not ours is in the
  // device's hands.
  void end_device_use();
  void release_id();
  void tell_end();
  void watch_peer();
  void look_at_peer();

  std::shared_ptr<VerbsLoop> loop_;
  CmId id_;
  std::unique_ptr<QueuePair> queue_pair_;
  std::shared_ptr<RetiredQueuePair> retired_;  // to be; null where receives are not shared
  std::unique_ptr<OpenRegions> open_regions_;  // null: each exposure is registered by itself
  const bool active_;
  const std::uint32_t max_registration_;
  Parameters parameters_;
  std::vector<std::byte> private_data_;
  Address peer_, local_;
  std::string where_;  // the peer's address, for the log
  std::shared_ptr<void> place_;
  std::shared_ptr<Anchor> anchor_;
  OnSetup on_setup_;

  Events* events_ = nullptr;
  State state_ = State::Open;
  Reason reason_ = Reason::None;   // why it closes or has ended
  Reason failure_ = Reason::None;  // of a request; the end is on its way
  bool close_due_ = false;         // a later turn than close()'s has come
  bool end_expected_ = false;
  bool end_told_ = false;
  bool heard_ = false;       // the peer's first message
  bool collecting_ = false;  // requests may wait for those behind them
  bool batched_ = false;     // some do, in the device's batch
  Timer close_limit_;

  ReceiveCredit credit_;
  const std::uint32_t receives_max_;
  std::deque<Arrived> early_;  // before start()

  Ring<PostedWork> posted_;  // the first is request number first_
  // Up to passed_ all have ended but Reads.
  std::uint64_t first_ = 0, passed_ = 0;
  std::uint32_t unsignalled_ = 0;  // the last of them
  Ring<Work> pending_;
  // The block that short messages and Writes share, and the bytes of it that are used. Null as soon
  // as no request uses it.
  RegisteredBlock* filling_ = nullptr;
  std::size_t filled_ = 0;
  KeyTable<Registration> registrations_;  // by handle
  std::vector<Token> late_;               // posted after the end

  const Duration stall_limit_;
  StallWatch taking_, answering_;
  Timer stall_timer_;
  // Reads that all before them have left behind, and those of them that are answered; bytes of
  // requests that have ended.
  std::uint64_t reads_passed_ = 0, reads_answered_ = 0, completed_bytes_ = 0;
  std::uint64_t progress_ = 0;  // whatever has completed
  Traffic traffic_;
};

}  // namespace stag::fabric
