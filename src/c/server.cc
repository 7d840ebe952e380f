// Servers of the C API.
#include "rpc/server.h"

#include <atomic>

#include "c/lent.h"
#include "c/memory.h"
#include "c/placing.h"
#include "c/serving.h"
#include "c/support.h"
#include "endpoint/listener.h"
#include "endpoint/quiet.h"

using namespace stag;

namespace stag::c {
namespace {

const endpoint::Loops& loops_of(const stag_server& server);

// What is wrong with the registered memory of a reply at `server`; empty: nothing.
std::string_view fault_of_memory(const stag_results& results, const stag_server& server) {
  if (results.memory != nullptr && results.release == nullptr)
    return "results in registered memory have no release";
  return memory_fault(results.memory, loops_of(server), bytes_at(results.bulk, results.bulk_length),
                      STAG_MEMORY_READ);
}

}  // namespace
}  // namespace stag::c

// A Call that waits for its reply, in the frame of the coroutine that serves it.
//
// Thread: the Call's loop until the handler runs; then the one that replies, which hands over to
// the loop.
struct stag_request {
  stag_request(rpc::CallContext& context, const stag_procedure& of, const stag_server* at)
      : call(context), procedure(of), server(at) {}

  // False when the arguments are not as the program says. Bulk that was not placed as it came is
  // placed by `placer`.
  bool decode(xdr::Decoder& from, const rpc::ReducedItems& items, const c::Placer& placer) {
    const bool has_bulk = (procedure.flags & STAG_ARGUMENTS_BULK) != 0;
    const std::size_t head = has_bulk ? procedure.arguments_head : from.remaining();
    Rope data;
    if (head % 4 != 0 || !from.inline_bytes(arguments, static_cast<std::uint32_t>(head)))
      return false;
    if (has_bulk && !from.opaque(c::kArgumentsBulk, data)) return false;
    if (!from.finish().ok() || !items.all_taken()) return false;
    bulk = call.placement_asked()
               ? data.flatten()
               : placer.copy(procedure.number, arguments, data, c::loops_of(*server));
    return true;
  }

  // What is wrong with `with`; empty: nothing.
  std::string_view fault_of(const stag_results& with) const {
    const bool may_have_bulk = (procedure.flags & STAG_RESULTS_BULK) != 0;
    if (with.results_length % 4 != 0) return "the results are no multiple of 4 bytes";
    if (may_have_bulk && with.results_length > procedure.results_head)
      return "the results are longer than results_head";
    if ((with.results == nullptr && with.results_length != 0) ||
        (with.bulk == nullptr && with.bulk_length != 0))
      return "the results are a null pointer";
    if (with.bulk == nullptr) return {};
    if (!may_have_bulk) return "the procedure's results have no bulk";
    if (with.results_length != procedure.results_head)
      return "the results in front of the bulk are not as long as results_head";
    if (with.bulk_length > 0xffff'fffcu) return "the bulk is 4 GiB or longer";
    return c::fault_of_memory(with, *server);
  }

  // Hands `outcome` to the loop. The last use of this object, unless it throws.
  void finish(rpc::HandlerOutcome with) {
    outcome = with;
    State before = State::Running;
    if (state.compare_exchange_strong(before, State::Replied, std::memory_order_acq_rel)) return;
    call.loop().post([waiter = waiter] { waiter.resume(); });
  }

  // co_await replied(): suspends until finish() was called.
  auto replied() {
    struct Awaiter {
      stag_request& request;
      bool await_ready() const {
        return request.state.load(std::memory_order_acquire) == State::Replied;
      }
      bool await_suspend(std::coroutine_handle<> by) {
        request.waiter = by;
        State before = State::Running;
        return request.state.compare_exchange_strong(before, State::Waiting,
                                                     std::memory_order_acq_rel);
      }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }

  enum class State : std::uint8_t { Running, Waiting, Replied };
  rpc::CallContext& call;
  const stag_procedure& procedure;
  const stag_server* const server;
  Bytes arguments{};
  Buffer bulk{};
  // Of the reply.
  rpc::HandlerOutcome outcome{};
  Buffer results{};
  // Goes with this object, on the loop: a Rope keeps no Buffer without bytes, and a caller that
  // lends some has them back in no call of stag_reply().
  Buffer lent{};
  std::optional<Rope> results_bulk{};
  std::coroutine_handle<> waiter{};
  std::atomic<State> state{State::Running};
};

namespace stag::c {
namespace {

class CHandler final : public rpc::Handler {
 public:
  CHandler(const stag_procedure& procedure, const stag_server* server, stag_handler* handler,
           void* context, const Placer& placer)
      : procedure_(procedure),
        server_(server),
        handler_(handler),
        context_(context),
        placer_(placer) {}

  Eventual<rpc::HandlerOutcome> run(rpc::CallContext& call, xdr::Decoder& arguments,
                                    const rpc::ReducedItems& items,
                                    xdr::Encoder& results) override {
    return serve(call, arguments, items, results);
  }
  bool places() const override { return placer_ && (procedure_.flags & STAG_ARGUMENTS_BULK) != 0; }
  // Of a chunk that is not the bulk the handler is not to know.
  Buffer place(xdr::Decoder& from, std::uint32_t position, std::uint32_t length) override {
    Bytes arguments;
    std::uint32_t size = 0;
    if (!places() || !from.inline_bytes(arguments, procedure_.arguments_head) || !from.u32(size) ||
        from.position() != position || size == 0)
      return {};
    if (length != size && length != size + xdr_pad(size)) return {};
    return placer_.ask(procedure_.number, arguments, size, loops_of(*server_));
  }

 private:
  Task<rpc::HandlerOutcome> serve(rpc::CallContext& call, xdr::Decoder& arguments,
                                  const rpc::ReducedItems& items, xdr::Encoder& results) {
    stag_request request(call, procedure_, server_);
    if (!request.decode(arguments, items, placer_))
      co_return rpc::HandlerOutcome{
          oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS)};
    handler_(context_, &request);
    co_await request.replied();
    if (request.outcome.encoded) {
      results.fixed_opaque(request.results.bytes());
      if (request.results_bulk)
        results.opaque(kResultsBulk, *request.results_bulk);
      else if ((procedure_.flags & STAG_RESULTS_BULK) != 0)
        results.absent(kResultsBulk);
    }
    co_return request.outcome;
  }

  const stag_procedure& procedure_;
  const stag_server* const server_;
  stag_handler* handler_;
  void* context_;
  const Placer placer_;
};

}  // namespace
}  // namespace stag::c

// Thread: any, but none of the listener's to destroy it.
struct stag_server {
  stag_server(const stag_program* table, stag_handler* handler, void* context,
              const c::Placer& placer)
      : program(table) {
    rpc::Program served(program.program(), program.version(), program.binding());
    for (const stag_procedure& each : program.procedures())
      served.add(each.number, std::make_unique<c::CHandler>(each, this, handler, context, placer));
    server.add(std::move(served));
  }

  c::ProgramTable program;
  rpc::Server server;
  std::shared_ptr<endpoint::Loops> loops;
  std::optional<endpoint::Listener> listener;
};

namespace stag::c {
namespace {

const endpoint::Loops& loops_of(const stag_server& server) {
  return *server.loops;
}

void limit_connections(endpoint::ListenOptions& listen, const stag_serve_options& options) {
  if (options.max_connections != 0)
    listen.tcp.max_connections = listen.rdma.max_connections = options.max_connections;
  if (options.max_connections_per_client != 0)
    listen.tcp.max_connections_per_peer = listen.rdma.max_connections_per_peer =
        options.max_connections_per_client;
}

stag_error serve(const Address& at, const stag_serve_options& options,
                 endpoint::ListenOptions listen, std::unique_ptr<stag_server> made,
                 stag_server** server) {
  if (!made->program.error().empty()) return error_of(STAG_INVALID, made->program.error());
  if (options.transport > STAG_RDMA_DEVICE)
    return error_of(STAG_INVALID, "there is no such transport");
  if (options.transport == STAG_TCP) listen.transport = endpoint::Transport::Tcp;
  if (options.transport == STAG_RDMA_DEVICE) listen.fabric = endpoint::FabricKind::Verbs;
  limit_connections(listen, options);
  auto loops = endpoint::Loops::start(std::max(options.threads, 1u));
  if (!loops) return error_of(loops.error(), to_string(at));
  listen.loops = made->loops = *std::move(loops);
  auto listener = endpoint::listen(made->server, at, std::move(listen));
  if (!listener) return error_of(listener.error(), to_string(at));
  made->listener.emplace(*std::move(listener));
  *server = made.release();
  return no_error();
}

void reply(stag_request& request, const stag_results& with) {
  request.results = Buffer::copy_of(bytes_at(with.results, with.results_length));
  const Bytes bulk = bytes_at(with.bulk, with.bulk_length);
  Lent* lent = nullptr;
  if (with.bulk != nullptr && with.release != nullptr) {
    lent = new Lent;
    lent->begin(with.release, with.release_context, with.memory);
    request.lent = Buffer(lent, bulk);
    request.results_bulk = Rope(request.lent);
  } else if (with.bulk != nullptr) {
    request.results_bulk = Rope::copy_of(bulk);
  }
  try {
    request.finish({.status = {}, .drop = false, .encoded = true});
  } catch (...) {
    if (lent != nullptr) lent->forget();
    request.results_bulk.reset();
    request.lent = {};
    throw;
  }
}

// Closes the connections, lets no call begin, and waits for those in progress.
bool ends_within(stag_server& server, Duration limit) {
  server.server.stop_serving();
  server.listener->begin_close();
  net::EpollLoop& loop = server.loops->at(0);
  return endpoint::wait_on(
      loop, [&] { return endpoint::quiet_within(loop, server.server, loop.now() + limit); });
}

const void* piece(Bytes bytes, std::size_t* length) {
  if (length != nullptr) *length = bytes.size();
  return bytes.empty() ? nullptr : bytes.data();
}

}  // namespace

int serve_with(const endpoint::ListenOptions& listen, const char* host, std::uint16_t port,
               const stag_program* program, stag_handler* handler, void* context,
               const stag_serve_options* options, stag_server** server, stag_error* error) {
  return guard(error, [&] {
    if (host == nullptr || program == nullptr || handler == nullptr || server == nullptr)
      return error_of(STAG_INVALID, "host, program, handler or server is null");
    if (*host == '\0') return error_of(STAG_INVALID, "host is empty");
    if (!has_size(options)) return error_of(STAG_INVALID, "the options' size is not set");
    if (const auto wrong = wrong_thread()) return *wrong;
    const stag_serve_options with = known(options);
    auto made =
        std::make_unique<stag_server>(program, handler, context, Placer(with.place, context));
    return serve({host, port}, with, listen, std::move(made), server);
  });
}

}  // namespace stag::c

int stag_serve(const char* host, uint16_t port, const stag_program* program, stag_handler* handler,
               void* context, const stag_serve_options* options, stag_server** server,
               stag_error* error) {
  return c::serve_with({}, host, port, program, handler, context, options, server, error);
}

uint16_t stag_server_port(const stag_server* server) {
  return server->listener->address().port;
}

int stag_stop(stag_server* server) {
  return c::guard(nullptr, [server] {
    if (server == nullptr) return c::no_error();
    if (const auto wrong = c::wrong_thread()) return *wrong;
    delete server;
    return c::no_error();
  });
}

int stag_stop_within(stag_server* server, uint32_t timeout_ms) {
  return c::guard(nullptr, [server, timeout_ms] {
    if (server == nullptr) return c::no_error();
    if (const auto wrong = c::wrong_thread()) return *wrong;
    if (!c::ends_within(*server, std::chrono::milliseconds(timeout_ms)))
      return c::error_of(STAG_TIMED_OUT, "requests have not been replied to");
    delete server;
    return c::no_error();
  });
}

int stag_server_memory_register(stag_server* server, void* memory, size_t length, uint32_t access,
                                stag_memory** registered, stag_error* error) {
  return c::guard(error, [&] {
    if (server == nullptr) return c::error_of(STAG_INVALID, "server is null");
    return c::register_memory(server->loops, c::memory_at(memory, length), access, registered);
  });
}

uint32_t stag_request_procedure(const stag_request* request) {
  return request->procedure.number;
}

const void* stag_request_arguments(const stag_request* request, size_t* length) {
  return c::piece(request->arguments, length);
}

const void* stag_request_bulk(const stag_request* request, size_t* length) {
  return c::piece(request->bulk.bytes(), length);
}

void* stag_request_placed(const stag_request* request) {
  return c::placed_context(request->bulk);
}

int stag_request_caller(const stag_request* request, stag_caller* caller) {
  return c::guard(nullptr, [&] {
    if (!c::has_size(caller)) return c::error_of(STAG_INVALID, "the caller's size is not set");
    const rpc::Caller& who = request->call.caller();
    stag_caller known{};
    known.flavor = static_cast<std::uint32_t>(who.flavor);
    known.uid = who.uid;
    known.gid = who.gid;
    const std::string address = to_string(request->call.origin().peer);
    std::memcpy(known.address, address.data(), std::min(address.size(), sizeof known.address - 1));
    c::give(known, caller);
    return c::no_error();
  });
}

int stag_reply(stag_request* request, const stag_results* results) {
  return c::guard(nullptr, [&] {
    if (!c::has_size(results)) return c::error_of(STAG_INVALID, "the results' size is not set");
    const stag_results with = c::known(results);
    if (const auto fault = request->fault_of(with); !fault.empty())
      return c::error_of(STAG_INVALID, fault);
    c::reply(*request, with);
    return c::no_error();
  });
}

int stag_refuse(stag_request* request, uint32_t accept_stat) {
  return c::guard(nullptr, [&] {
    if (accept_stat != STAG_PROC_UNAVAIL && accept_stat != STAG_GARBAGE_ARGS &&
        accept_stat != STAG_SYSTEM_ERR)
      return c::error_of(STAG_INVALID, "there is no such accept_stat for handlers");
    const auto stat = static_cast<oncrpc::AcceptStat>(accept_stat);
    request->finish({oncrpc::ReplyStatus::accepted(stat)});
    return c::no_error();
  });
}

const char* stag_version(void) {
  return STAG_VERSION;
}
