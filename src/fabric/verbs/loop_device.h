// One device as one loop uses it: its completion queues, and the domain that connections share
// where the device allows. Completions are taken in turns of the loop: when the device's completion
// channel becomes readable, or, while the loop polls, without being told.
//
// It lives as long as one of the connections that use it, on the loop's thread.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "fabric/verbs/domain.h"
#include "net/descriptor.h"
#include "net/loop.h"

namespace stag::fabric {

// Who has a queue pair.
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
      std::shared_ptr<const VerbsFunctions> functions, std::shared_ptr<DeviceRegistry> registry,
      net::EpollLoop& loop, ibv_context* context, bool open_regions);
  ~LoopDevice();

  const VerbsFunctions& functions() const { return *functions_; }
  const DeviceTraits& traits() const { return traits_; }
  net::EpollLoop& loop() const { return loop_; }
  ibv_context* context() const { return context_; }

  // The domain for a new connection.
  Result<std::shared_ptr<Domain>, Reason> domain();

  // A completion queue that has room for `entries` more; they are its user's until it gives them
  // back, so that none can overrun.
  Result<Completions, Reason> reserve_completions(std::uint32_t entries);
  void release_completions(Completions completions);

  void add(std::uint32_t queue_pair, QueuePairUser& user) { users_.emplace(queue_pair, &user); }
  // Nothing of the queue pair is delivered any more. Before it is destroyed, so that the shared
  // receives it has used are known (a device may forget their completions with it), and once more
  // afterwards: another may get its number.
  void remove(std::uint32_t queue_pair);

  // Delivers all that has completed by now.
  void drain();
  // An asynchronous event of `queue_pair`; 0: of the device. From any loop's thread, by post.
  void on_async(std::uint32_t queue_pair, Reason reason);

 private:
  struct Queue {
    ibv_cq* queue = nullptr;
    std::uint32_t capacity = 0, reserved = 0;
    bool armed = false;
  };

  LoopDevice(std::shared_ptr<const VerbsFunctions> functions,
             std::shared_ptr<DeviceRegistry> registry, net::EpollLoop& loop, ibv_context* context);
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
  void deliver(const ibv_wc& completion);
  // Gives its block back to the shared queue.
  static void orphan(const ibv_wc& completion);
  void on_async_readable();

  std::shared_ptr<const VerbsFunctions> functions_;
  std::shared_ptr<DeviceRegistry> registry_;
  net::EpollLoop& loop_;
  ibv_context* const context_;
  DeviceTraits traits_;
  ibv_comp_channel* channel_ = nullptr;
  net::Descriptor completions_, async_events_;
  std::vector<Queue> queues_;
  std::deque<ibv_wc> backlog_;  // taken out of a queue, not yet delivered
  std::shared_ptr<Domain> shared_domain_;
  std::unordered_map<std::uint32_t, QueuePairUser*> users_;  // by number
  // Of those, some that were told lately.
  struct Recent {
    std::uint32_t queue_pair = 0;
    QueuePairUser* user = nullptr;
  };
  std::array<Recent, 16> recent_;
  bool draining_ = false;
  std::shared_ptr<LoopDevice> kept_;  // until the turn has ended
};

}  // namespace stag::fabric
