// The objects behind the stub's functions, and what its .cc files share. Each begins with the
// structure of rdma-core that the caller sees. Everything happens under the network's mutex.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "fabric/verbs/stub/stub_network.h"

namespace stag::fabric::stub {

struct Device;
struct Id;
struct Qp;

// A descriptor that is readable as long as something is queued behind it.
class Signal {
 public:
  Signal();
  ~Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  int fd() const { return fd_; }
  void raise();
  void clear();
  // Whether its owner has made it non-blocking.
  bool nonblocking() const;

 private:
  const int fd_;
  bool raised_ = false;
};

struct Context : ibv_context {
  Device* owner = nullptr;
  bool removed = false;        // its device; one that comes back has another context
  bool known_removed = false;  // by the library
  Signal async_signal;
  std::deque<ibv_async_event> async_events;
};

struct Pd : ibv_pd {
  int children = 0;
};

struct Mr : ibv_mr {
  int access = 0;
  bool valid = true;  // false once a peer on iWARP invalidated it
  int bound = 0;      // windows
};

struct Mw : ibv_mw {
  std::uint32_t current_key = 0;  // the device's; rkey is what the program believes it is
  Mr* region = nullptr;           // null: not bound
  ibv_mw_bind_info binding{};
  Qp* qp = nullptr;  // type 2B: only through this one
};

struct Cq;
struct CompletionChannel : ibv_comp_channel {
  Signal signal;
  std::deque<Cq*> events;
  int queues = 0;
};

// A completion, and how many slots of its send queue come back when it is polled.
struct Entry {
  ibv_wc completion{};
  unsigned slots = 0;
};

struct Cq : ibv_cq {
  enum class Armed { No, Solicited, Any };
  std::deque<Entry> entries;
  Armed armed = Armed::No;
  int queues = 0;
  unsigned unacknowledged = 0;
};

struct Receive {
  std::uint64_t id = 0;
  std::vector<ibv_sge> memory;
};

struct Srq : ibv_srq {
  std::uint32_t limit = 0;
  std::uint32_t low = 0;  // fewer are reported, once; zero: not
  std::deque<Receive> receives;
  int queues = 0;
};

struct Request {
  ibv_send_wr work{};
  std::vector<ibv_sge> memory;
  std::vector<std::byte> bytes;  // inline
  std::uint32_t window_key = 0;  // what the window's key was, by the program, before this binding
};

struct Qp : ibv_qp {
  ibv_qp_cap limits{};
  bool signal_all = false;
  Id* id = nullptr;
  Qp* remote = nullptr;
  std::uint8_t rnr_retry = 7;
  bool starved = false;  // of receives at its peer
  std::deque<Request> sends;
  std::deque<Request> reads;  // on iWARP: those that wait for their answers
  std::deque<Receive> receives;
  std::optional<Receive> taken;  // of a shared queue, for a message that goes on
  unsigned slots = 0;            // of the send queue, in use
  unsigned unreported = 0;       // of those, performed without a completion
  unsigned told = 0;             // asynchronous events that the user got and has not acknowledged
};

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  bool wildcard() const { return host == "0.0.0.0" || host == "::"; }
};

struct CmChannel;
struct CmEvent : rdma_cm_event {
  std::vector<std::byte> private_data;
  Id* subject = nullptr;  // has to live until it is acknowledged
};
struct CmChannel : rdma_event_channel {
  Signal signal;
  std::deque<CmEvent*> events;
  int ids = 0;
};

struct Id : rdma_cm_id {
  enum class State { Idle, Listening, Connecting, Requested, Connected, Ended };
  State state = State::Idle;
  Device* device = nullptr;
  Id* remote = nullptr;
  rdma_conn_param wishes{};          // of connect()
  bool awaits_ready_to_use = false;  // it has accepted
  int unacknowledged = 0;

  CmChannel& events() { return *static_cast<CmChannel*>(channel); }
  Qp* queue_pair() { return static_cast<Qp*>(qp); }
};

struct Device {
  explicit Device(StubOptions its);
  void plug_in();
  Context& context() { return contexts.back(); }

  StubOptions options;
  ibv_device device{};
  std::list<Context> contexts;           // the last is today's
  std::map<std::uint32_t, Mr*> regions;  // by key
  std::map<std::uint32_t, Mw*> windows;  // the bound ones, by R_key
  std::uint64_t locked = 0;              // bytes
  bool removed = false;
};

struct Network {
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;
  std::set<Qp*> queue_pairs;
  std::set<Id*> ids;
  bool held = false, reads_held = false, lost = false, forbidden = false, gids_lacking = false;
  bool ready_to_use_lost = false;
  int stale_requests = 0;
  int inside = 0;  // functions that have begun and not ended
  void (*when_inside)(bool) = nullptr;
  std::uint64_t calls = 0, failing_call = 0;
  std::string failing_function, failed;
  std::size_t objects = 0;
  std::set<Srq*> shared_queues;
  std::uint32_t next_number = 1;
  std::uint16_t next_port = 49152;
  std::vector<std::string> misuses;
};

// The network, locked as long as this lives.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  Network* operator->() const { return &network_; }

 private:
  Network& network_;
  const std::lock_guard<std::recursive_mutex> lock_;
};

Device& device_of(ibv_context* context);
// Whether this call of `name` is the one that is made to fail; errno says why then.
bool made_to_fail(const char* name);
// Records what no program may do.
void misuse(const std::string& what);
// Tells the device of `context`.
void report_async(ibv_context* context, ibv_event_type type, Qp* qp);
// Something made at `context` is given back. librdmacm closes the context of a device that was
// removed when the last id there has gone.
void expect_open(ibv_context* context);

// stub_memory.cc
Pd& pd_of(ibv_pd* pd);
ibv_wc_status check_local(Qp& qp, const std::vector<ibv_sge>& memory, int right);
// Whether a peer of `qp` may use `key` with `right`.
bool remote_access(Qp& qp, std::uint32_t key, std::uint64_t address, std::uint64_t length,
                   int right);
ibv_wc_status bind_window(Qp& qp, const Request& request);
// Ends a window's binding, or on iWARP a region's validity. False: no such handle.
bool invalidate(Qp& qp, std::uint32_t key);
void fill_memory_functions(VerbsFunctions& functions, ibv_context_ops& operations);

// stub_queues.cc
void push_completion(ibv_cq* cq, const Entry& entry, bool solicited);
Receive take_receive(Srq& srq);
void fill_queue_functions(VerbsFunctions& functions, ibv_context_ops& operations);

// stub_qp.cc
Qp* make_qp(Id& id, ibv_pd* pd, const ibv_qp_init_attr& wishes);
void unmake_qp(Qp& qp);
void fail_qp(Qp& qp);
// A queue pair that has failed gives back the shared receive that it has taken.
void end_message(Qp& qp);
void join(Qp& a, Qp& b);
// Performs what can be performed.
void advance(Qp& qp);
void advance_all();
void fill_qp_functions(VerbsFunctions& functions, ibv_context_ops& operations);

// stub_execute.cc: nothing when it has to wait for a receive.
std::optional<ibv_wc_status> execute(Qp& qp, const Request& request);

// stub_listing.cc
void fill_listing_functions(VerbsFunctions& functions);

// stub_cm.cc
// The connection of a broken queue pair ends where the device says so (iWARP).
void end_connection(Id& id);
void report_cm(Id& id, rdma_cm_event_type type, int status, Bytes private_data = {});
void fill_cm_functions(VerbsFunctions& functions);

}  // namespace stag::fabric::stub
