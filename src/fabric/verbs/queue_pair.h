// All that a connection has at its device: a queue pair, its share of completion queues, its
// receives, its domain. Given back together, in the order that the device demands.
#pragma once

#include <algorithm>
#include <memory>

#include "fabric/verbs/loop_device.h"
#include "fabric/verbs/verbs_loop.h"
#include "fabric/verbs/work.h"

namespace stag::fabric {

struct QueuePairSizes {
  std::uint32_t sends = 0;         // slots of the send queue
  std::uint32_t receives = 0;      // messages that the peer may send
  bool receives_later = false;     // most of them once it has sent the first one
  std::uint32_t receive_size = 0;  // bytes of the longest
};

class QueuePair {
 public:
  // Makes the queue pair of `id`, which has an address and a device. Receives are posted before
  // this returns.
  static Result<std::unique_ptr<QueuePair>, Reason> make(std::shared_ptr<LoopDevice> device,
                                                         const CmId& id, QueuePairUser& user,
                                                         const QueuePairSizes& sizes);
  ~QueuePair();

  // From here on the device touches no memory of this queue pair's, and nothing is delivered.
  // Idempotent.
  void destroy();

  // From now on `user` gets what happens here, but not the events of the id.
  void belongs_to(QueuePairUser& user) { device_->replace(id_->qp->qp_num, user); }
  // Whether it may have a shared receive that its device gives back when it has failed.
  bool awaits_last_receive() const { return created_ && connected_ && !had_last_receive_; }
  // The peer may send from now on.
  void on_connected() { connected_ = shared_ != nullptr; }
  void on_last_receive() { had_last_receive_ = true; }

  SendBatch& batch() { return device_->batch(); }
  std::byte* inline_bytes() { return device_->inline_bytes(); }
  // Delivers what has completed by now; may be the end of this.
  void drain();
  Domain& domain() const { return *domain_; }
  const DeviceTraits& traits() const { return device_->traits(); }
  ibv_qp* get() const { return id_->qp; }
  std::uint32_t slots() const { return slots_; }
  std::uint32_t max_inline() const { return max_inline_; }
  std::uint32_t max_pieces() const { return max_pieces_; }
  // Bytes that are copied into blocks; longer ones are registered where they lie.
  std::size_t max_copied() const { return max_copied_; }
  // The peer has sent its first message: there are receives for all that it may send from now on,
  // or the connection cannot go on.
  Result<Ok, Reason> reserve_receives();
  // Gives a receive's block back, to be filled again. False when the device takes no more.
  bool consumed(RegisteredBlock* block);
  // The same where the queue pair has failed, and takes none.
  void flushed(RegisteredBlock* block);

 private:
  QueuePair(std::shared_ptr<LoopDevice> device, std::shared_ptr<Domain> domain, rdma_cm_id* id)
      : device_(std::move(device)), domain_(std::move(domain)), id_(id) {}
  Result<Ok, Reason> create(QueuePairUser& user, const QueuePairSizes& sizes);
  Result<Ok, Reason> prepare_receives(const QueuePairSizes& sizes);
  Result<Ok, Reason> create_at_device();
  Result<Ok, Reason> reserve_up_to(std::uint32_t count);
  bool post(RegisteredBlock* block);

  const std::shared_ptr<LoopDevice> device_;
  const std::shared_ptr<Domain> domain_;
  rdma_cm_id* const id_;
  SharedReceives* shared_ = nullptr;
  std::unique_ptr<BlockPool> own_;  // of receives, where they are not shared
  Completions completions_;
  std::uint32_t slots_ = 0, receives_ = 0, max_inline_ = 0, max_pieces_ = 0;
  std::size_t max_copied_ = 0;
  std::uint32_t reserved_ = 0;  // of shared receives
  bool created_ = false, admitted_ = false;
  bool connected_ = false, had_last_receive_ = false;  // of shared receives
};

}  // namespace stag::fabric
