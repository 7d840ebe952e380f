// A queue pair whose connection has ended, until its device has given back the shared receive that
// the queue pair may have taken for a message of which it got a part: what it has when it is
// destroyed is lost to all that share (InfiniBand's specification, 10.3.1). The device says when
// nothing more comes (IBV_EVENT_QP_LAST_WQE_REACHED); one that says nothing is not waited for long.
#pragma once

#include <memory>

#include "fabric/verbs/queue_pair.h"
#include "fabric/verbs/verbs_loop.h"

namespace stag::fabric {

class RetiredQueuePair final : public std::enable_shared_from_this<RetiredQueuePair>,
                               private QueuePairUser,
                               private CmUser {
 public:
  // Made together with the connection, whose end asks for no memory.
  explicit RetiredQueuePair(net::EpollLoop& loop) : loop_(loop) {}

  // From now on its time limit owns it, and so the loop at the longest. False: there is no memory
  // for one, and nothing has happened.
  bool limit_time() noexcept;
  // The bytes of a request, which the device may still look at.
  void keep(RegisteredBlock* block) {
    block->next = blocks_;
    blocks_ = block;
  }
  // `place`: how the connection's listener counts it.
  void begin(CmId id, std::unique_ptr<QueuePair> queue_pair, std::shared_ptr<void> place);

 private:
  void on_completion(const ibv_wc& completion) override;
  void on_device_failure(Reason reason) override;
  void on_cm(CmNotice notice) override;
  void finish();

  net::EpollLoop& loop_;
  CmId id_;  // outlives its queue pair
  std::unique_ptr<QueuePair> queue_pair_;
  RegisteredBlock* blocks_ = nullptr;  // linked
  std::shared_ptr<void> place_;
  Timer limit_;
};

}  // namespace stag::fabric
