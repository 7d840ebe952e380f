// A stub of RDMA: devices, and the network between them, inside one process. It stands behind the
// table of functions that fabric/verbs calls (fabric/verbs/verbs_functions.h), so that everything
// above it runs where no RDMA device is.
//
// Deterministic and without threads: a work request is performed inside the call that posts it, or
// inside the one that posts the receive it waits for; connection events are queued at once. Event
// channels are eventfds, which a loop can watch. Any thread may call, as with rdma-core itself.
//
// It behaves as the manual pages of rdma-core and, where those are silent, as the InfiniBand
// specification and Linux's rxe and siw say: states of queue pairs, slots of a send queue, which
// come back with the poll of a later signalled completion, shared receive queues, one-shot
// notification, rights of regions and windows, flushed errors, receiver-not-ready, private data
// padded as InfiniBand pads it. What a program must not do (an overrun completion queue, an id
// destroyed with unacknowledged events) is recorded in misuses().
//
// One network exists at a time: the functions have no argument that could name it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric::stub {

// One device.
struct StubOptions {
  std::string name = "stub0";
  // An iWARP device: Reads end after what was posted behind them, no padding of private data, one
  // SGE for a Read whose sink needs the right of remote writing, a broken queue pair ends the
  // connection, a Send without a receive breaks it, and a Send With Invalidate may name any handle
  // of the protection domain.
  bool iwarp = false;
  bool port_active = true;
  std::vector<std::string> addresses = {"127.0.0.1", "::1"};
  ibv_device_attr attributes{};
  std::uint32_t max_inline = 512;
  // Of an inline request only the first SGE leaves, as with Intel's libraries.
  bool inline_first_sge = false;
  // Whether the device's library in user space has what the flags tell: windows, and the requests
  // that bind and invalidate them, here or at the peer.
  bool windows_in_library = true;
  // Bytes that may be registered; more fails with ENOMEM, as RLIMIT_MEMLOCK has it.
  std::uint64_t memlock = ~std::uint64_t{0};
};
// RoCE by Linux's rdma_rxe: memory windows of type 2, shared receive queues, 32 SGEs.
StubOptions rxe_like();
// iWARP by Linux's siw: no windows, 6 SGEs, 80 bytes inline.
StubOptions siw_like();
// RoCE by Broadcom's bnxt_re with rdma-core 44: its driver tells of windows that its library lacks.
StubOptions bnxt_re_like();

struct Network;

class StubNetwork {
 public:
  explicit StubNetwork(std::vector<StubOptions> devices);
  // Everything made with the functions has been destroyed before.
  ~StubNetwork();
  StubNetwork(const StubNetwork&) = delete;
  StubNetwork& operator=(const StubNetwork&) = delete;

  std::shared_ptr<const VerbsFunctions> functions() const;

  // Work requests posted meanwhile are performed at release().
  void hold();
  void release();
  // While true, no RDMA Read of an iWARP device is answered; what is posted after it goes on, as
  // with Linux's siw.
  void hold_reads(bool held);
  // The peer of the queue pair that was made first has no receive for it any more.
  void starve_first_queue_pair();
  // Nothing arrives any more: work requests end with RETRY_EXC_ERR, connection requests are never
  // answered.
  void lose_packets(bool lost);
  // While true, who was accepted cannot say that the answer has come (InfiniBand's RTU): the other
  // side's connection is established when it notifies RDMA-CM of a first message.
  void lose_ready_to_use(bool lost);
  // So many connection requests meet a connection of the same queue pair, from before its machine
  // failed, and are turned down. Not on iWARP.
  void find_stale_connections(int requests);
  // While true, the device file may not be opened (EACCES).
  void forbid(bool forbidden);
  // While true, no GID table has an address: RDMA-CM finds no device by any.
  void lack_gids(bool lacking);
  void set_port(bool active);
  // The devices are unplugged: their queue pairs fail, ids are told DEVICE_REMOVAL, and listeners
  // at their addresses hear nothing more, also when they come back.
  void remove_devices();
  // Of those the ones that are still open: the library has not been asked for the devices since, or
  // an id is there.
  std::size_t open_removed_devices() const;
  // The same devices are plugged in again.
  void restore_devices();

  // Asynchronous events: of the queue pair that was made first; of a completion queue, a shared
  // receive queue or the device.
  void tell_of_first_queue_pair(ibv_event_type type);
  void tell_of_device(ibv_event_type type);
  // Events of RDMA-CM for every id.
  void tell_ids(rdma_cm_event_type type);

  // Each connected queue pair with shared receives has taken one for a message that goes on. When
  // it fails it gives that back, and says that it has the last, in end_messages(); one that is
  // destroyed before never does.
  void begin_messages();
  void end_messages();
  std::size_t queue_pairs() const;
  // Receives that are in shared queues.
  std::size_t shared_receives() const;

  // Called as a function of the stub begins (true) and ends: so that a test which lets memory run
  // out can spare the stub's own.
  void when_inside(void (*told)(bool inside));

  // Faults. Calls of the functions that can fail are counted; the `n`th from now (1: the next)
  // fails as the system would, with ENOMEM. 0: none does.
  void fail_call(std::uint64_t n);
  // The next call of that one fails; where other threads call the device at the same time.
  void fail_next(std::string function);
  std::uint64_t calls() const;
  // The name of the function that was made to fail last; empty when none was.
  const std::string& failed_call() const;

  // Objects that exist: protection domains, regions, windows, queues, queue pairs, channels, ids.
  std::size_t objects() const;
  // Bytes that are registered at all devices, in whole pages.
  std::uint64_t locked_bytes() const;
  // Handles by which a peer could reach memory of this process now: remote rights of regions and
  // windows.
  std::size_t remote_handles() const;
  // What no program may do and this one did.
  const std::vector<std::string>& misuses() const;

 private:
  std::unique_ptr<Network> network_;
};

}  // namespace stag::fabric::stub
