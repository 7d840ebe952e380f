// One device as one loop uses it: its completion queues, and the domain that connections share
// where the device allows. Completions are taken in turns of the loop: when the device's completion
// channel becomes readable, or, while the loop polls, without being told.
//
// It lives as long as one of the connections that use it, on the loop's thread.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "fabric/verbs/domain.h"
#include "fabric/verbs/work.h"
#include "net/descriptor.h"
#include "net/loop.h"

namespace stag::fabric {

// The owner of a queue pair.
class QueuePairUser {
 public:
  // From a turn of the loop. The user is not destroyed inside.
  virtual void on_completion(const ibv_wc& completion) = 0;
  // The device reports that the queue pair or the whole device has failed; all completions that
  // came before have been delivered.
  virtual void on_device_failure(Reason reason) = 0;

 protected:
  ~QueuePairUser() = default;
};

class DeviceRegistry;

class LoopDevice final : public std::enable_shared_from_this<LoopDevice>, private net::Reader {
 public:
  static Result<std::shared_ptr<LoopDevice>, Reason> open(
      std::shared_ptr<const VerbsFunctions> functions, net::EpollLoop& loop, ibv_context* context,
      bool open_regions);
  ~LoopDevice();

  const VerbsFunctions& functions() const { return *functions_; }
  const DeviceTraits& traits() const { return traits_; }
  net::EpollLoop& loop() const { return loop_; }
  ibv_context* context() const { return context_; }

  // The domain for a new connection.
  Result<std::shared_ptr<Domain>, Reason> domain();

  // A completion queue that has room for `entries` more, made where none has; they are its user's
  // until it gives them back, so that none can overrun.
  Result<Completions, Reason> reserve_completions(std::uint32_t entries);
  void release_completions(Completions completions);

  void add(std::uint32_t queue_pair, QueuePairUser& user) {
    users_.emplace(queue_pair, User{&user, failures_});
  }
  // Its completions and failures are told to `user` from now on.
  void replace(std::uint32_t queue_pair, QueuePairUser& user);
  // Nothing of the queue pair is delivered any more. Before it is destroyed, so that the shared
  // receives it has used are known (a device may forget their completions with it), and once more
  // afterwards: another may get its number.
  void remove(std::uint32_t queue_pair);

  // The last queue pair that used a queue of shared receives has gone: what is registered there is
  // given back in a later turn.
  void drop_unused_receives_later() noexcept;

  // The sends of the connection whose turn it is: empty before and afterwards.
  SendBatch& batch() { return batch_; }
  // The bytes of an inline request until it is posted, which is at once.
  static constexpr std::uint32_t kMostInline = 256;
  std::byte* inline_bytes() { return inline_bytes_.data(); }

  // Delivers all that has completed by now: at one queue, or, null, at all of them.
  void drain(ibv_cq* only = nullptr);
  // An asynchronous event of `queue_pair`; 0: of the device. From any loop's thread, by post.
  void on_async(std::uint32_t queue_pair, Reason reason);
  // There are few receives in that queue. In the same way.
  void on_receives_low(const ibv_srq* queue);

 private:
  struct Queue {
    ibv_cq* queue = nullptr;
    std::uint32_t capacity = 0, reserved = 0;
    bool armed = false;
  };

  LoopDevice(std::shared_ptr<const VerbsFunctions> functions, net::EpollLoop& loop,
             ibv_context* context);
  Result<Ok, Reason> prepare(bool open_regions);
  // The completion channel.
  void on_readable() override;
  void take_events();
  // Asks for notification where it was spent; false when it was, so that what completed meanwhile
  // has to be looked for.
  bool arm();
  void later(void (LoopDevice::*step)());
  void fail() { on_async(0, Reason::VerbsFailed); }
  // Delivers up to about `most` completions. Part: there may be more.
  enum class Polled { Nothing, All, Part };
  Polled poll(int most);
  void deliver_backlog();
  // Room for all that is reserved.
  void make_backlog_room(std::uint32_t more);
  // The number of completions that it delivered.
  static constexpr int kBatch = 32;
  int deliver_batch(const Queue& queue);
  void drain(Queue queue);
  void go_on();
  void drop_unused_receives();
  void deliver(const ibv_wc& completion);
  void on_out_of_memory(std::uint32_t queue_pair);
  // Gives its block back to the shared queue.
  static void orphan(const ibv_wc& completion);
  void on_async_readable();

  std::shared_ptr<const VerbsFunctions> functions_;
  DeviceRegistry& registry_;
  net::EpollLoop& loop_;
  ibv_context* const context_;
  DeviceTraits traits_;
  ibv_comp_channel* channel_ = nullptr;
  net::Descriptor completions_, async_events_;
  std::vector<Queue> queues_;
  std::size_t next_queue_ = 0;  // the queue to be polled next
  // Taken out of the queues; the last backlog_left_ are not yet delivered. It has room for as many
  // as were reserved, which is all that there can be.
  std::vector<ibv_wc> backlog_;
  std::size_t backlog_left_ = 0;
  std::shared_ptr<Domain> shared_domain_;
  struct User {
    QueuePairUser* user = nullptr;
    std::uint32_t failures_told = 0;
  };
  std::unordered_map<std::uint32_t, User> users_;  // by number of the queue pair
  std::uint32_t failures_ = 0;                     // of the device
  // Of those, some that were told lately.
  struct Recent {
    std::uint32_t queue_pair = 0;
    QueuePairUser* user = nullptr;
  };
  std::array<Recent, 16> recent_;
  SendBatch batch_;
  std::array<std::byte, kMostInline> inline_bytes_;
  bool draining_ = false;
  std::shared_ptr<LoopDevice> kept_;  // until the turn has ended
};

}  // namespace stag::fabric
