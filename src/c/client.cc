// Clients of the C API.
#include "endpoint/client.h"

#include <utility>

#include "base/task_group.h"
#include "c/memory.h"
#include "c/support.h"

using namespace stag;

namespace stag::c {

// A call in progress, in the frame of the coroutine that makes it. Thread: the client's loop.
class CallInProgress {
 public:
  CallInProgress(stag_client& client, const stag_call& call);
  ~CallInProgress();
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;

  CancelToken token() { return cancel_; }
  // Ends `call` if it is in progress at the client.
  static void cancel(stag_client& client, const stag_call* call);

 private:
  stag_client& client_;
  const stag_call& call_;
  CancelSource cancel_;
  CancelCallback at_end_;  // of the client
  CallInProgress *next_, **link_;
};

}  // namespace stag::c

// Thread: any; `tasks`, `ending` and `calls` on the loop.
struct stag_client {
  explicit stag_client(const stag_program* table) : program(table) {}

  c::ProgramTable program;
  std::shared_ptr<endpoint::Loops> loops;
  CancelSource ending;
  c::CallInProgress* calls = nullptr;  // the first, which links to the others
  TaskGroup tasks;                     // calls that were begun
  std::optional<endpoint::Client> connection;

  net::EpollLoop& loop() const { return connection->loop(); }
};

namespace stag::c {

CallInProgress::CallInProgress(stag_client& client, const stag_call& call)
    : client_(client),
      call_(call),
      at_end_(client.ending, [this] { cancel_.cancel(); }),
      next_(client.calls),
      link_(&client.calls) {
  if (next_ != nullptr) next_->link_ = &next_;
  client.calls = this;
}

CallInProgress::~CallInProgress() {
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
}

void CallInProgress::cancel(stag_client& client, const stag_call* call) {
  for (CallInProgress* each = client.calls; each != nullptr; each = each->next_)
    if (&each->call_ == call) return each->cancel_.cancel();
}

namespace {

std::uint32_t as_size(std::size_t length) {
  return static_cast<std::uint32_t>(std::min<std::size_t>(length, 0xffff'fffcu));
}

// One call with its arguments, and what becomes of its results.
class Exchange : public rpc::Client::AnyExchange {
 public:
  // All of it outlives the Exchange.
  Exchange(const stag_client& client, const stag_procedure& procedure, stag_call& call,
           const rpc::CallOptions& options)
      : AnyExchange(client.connection->rpc(), client.program.program(), client.program.version(),
                    procedure.number, options),
        procedure_(procedure),
        call_(call) {
    encoder_.fixed_opaque(bytes_at(call.arguments, call.arguments_length));
    if (has(STAG_ARGUMENTS_BULK))
      encoder_.opaque(kArgumentsBulk, Rope::borrow(bytes_at(call.bulk, call.bulk_length)));
    message_.reply.payload_max = as_size(call.results_capacity);
    if (has(STAG_RESULTS_BULK)) {
      message_.reply.payload_max = procedure.results_head + 4;  // and the length of the opaque
      message_.reply.items.push_back({kResultsBulk, as_size(bulk_memory().size())});
    }
  }

  stag_error results(Result<rpc::ReplyMessage, rpc::CallError>& reply) {
    call_.results_length = 0;
    call_.results_bulk_length = 0;
    const auto fault = read(reply, [this](xdr::Decoder& from) { return take_results(from); });
    if (fault) return error_of(*fault);
    if (too_long_) return error_of(STAG_TOO_LONG, "the results are longer than their memory");
    return no_error();
  }

 private:
  bool has(std::uint32_t flag) const { return (procedure_.flags & flag) != 0; }
  MutableBytes bulk_memory() const {
    return memory_at(call_.results_bulk, call_.results_bulk_capacity);
  }

  bool take_results(xdr::Decoder& from) {
    std::size_t head = from.remaining();
    if (has(STAG_RESULTS_BULK)) head = std::min<std::size_t>(head, procedure_.results_head);
    Bytes plain;
    if (!from.inline_bytes(plain, static_cast<std::uint32_t>(head))) return false;
    place(plain);
    if (!has(STAG_RESULTS_BULK)) return true;
    return from.remaining() > 0 ? take_bulk(from) : (from.absent(kResultsBulk), true);
  }
  bool take_bulk(xdr::Decoder& from) {
    Rope data;
    if (!from.opaque(kResultsBulk, data)) return false;
    call_.results_bulk_length = data.size();
    if (data.size() <= bulk_memory().size())
      rpc::copy_into(data, bulk_memory());
    else
      too_long_ = true;
    return true;
  }
  void place(Bytes plain) {
    call_.results_length = plain.size();
    if (plain.size() > memory_at(call_.results, call_.results_capacity).size())
      too_long_ = true;
    else if (!plain.empty())
      std::memcpy(call_.results, plain.data(), plain.size());
  }

  const stag_procedure& procedure_;
  stag_call& call_;
  bool too_long_ = false;
};

// Bytes of arguments with their bulk: with an RPC header they are to stay below 4 GiB.
constexpr std::size_t kMostArguments = 0xffff'0000u;

// What is wrong with the registered memory of `call`; empty: nothing.
std::string_view fault_of_memory(const stag_client& client, const stag_call& call) {
  const std::string_view fault = memory_fault(
      bulk_memory(call), *client.loops, bytes_at(call.bulk, call.bulk_length), STAG_MEMORY_READ);
  if (!fault.empty()) return fault;
  return memory_fault(results_memory(call), *client.loops,
                      bytes_at(call.results_bulk, call.results_bulk_capacity), STAG_MEMORY_WRITE);
}

// What is wrong with `call`; empty: nothing.
std::string_view fault_of(const stag_client& client, const stag_call& call,
                          const stag_procedure* procedure) {
  if (!has_size(&call)) return "the call's size is not set";
  if (procedure == nullptr) return "the program has no such procedure";
  const bool bulk = (procedure->flags & STAG_ARGUMENTS_BULK) != 0;
  if (call.arguments_length % 4 != 0) return "the arguments are no multiple of 4 bytes";
  if (bulk && call.arguments_length != procedure->arguments_head)
    return "the arguments are not as long as the procedure's arguments_head";
  if (!bulk && call.bulk_length != 0) return "the procedure's arguments have no bulk";
  if (call.bulk_length > kMostArguments ||
      call.arguments_length > kMostArguments - call.bulk_length)
    return "the arguments are as long as 4 GiB less 64 KiB, or longer";
  if ((call.arguments == nullptr && call.arguments_length != 0) ||
      (call.bulk == nullptr && call.bulk_length != 0))
    return "the arguments are a null pointer";
  return fault_of_memory(client, call);
}

void end_uses(const stag_call& call) noexcept {
  end_use(bulk_memory(call));
  end_use(results_memory(call));
}

// That a call uses its registered memory, on the thread that makes or begins it.
class Uses {
 public:
  explicit Uses(const stag_call& call) : call_(&call) {
    begin_use(bulk_memory(call));
    begin_use(results_memory(call));
  }
  ~Uses() {
    if (call_ != nullptr) end_uses(*call_);
  }
  Uses(const Uses&) = delete;
  Uses& operator=(const Uses&) = delete;
  // The code that completes the call ends them.
  void last_until_the_completion() { call_ = nullptr; }

 private:
  const stag_call* call_;
};

std::optional<Duration> timeout_of(const stag_call& call) {
  if (call.timeout_ms == 0) return std::nullopt;
  return std::chrono::milliseconds(call.timeout_ms);
}

Task<stag_error> exchange(stag_client& client, const stag_procedure& procedure, stag_call& call) {
  const rpc::ResultBuffer memory{kResultsBulk,
                                 memory_at(call.results_bulk, call.results_bulk_capacity)};
  rpc::CallOptions options;
  CallInProgress in_progress(client, call);
  options.timeout = timeout_of(call);
  options.cancel = in_progress.token();
  if ((procedure.flags & STAG_RESULTS_BULK) != 0) options.result_buffers = {&memory, 1};
  Exchange one(client, procedure, call, options);
  Result<rpc::ReplyMessage, rpc::CallError> reply = co_await one.send();
  co_return one.results(reply);
}

const stag_error kNoMemory = error_of(STAG_NO_MEMORY, "there is no memory");

// Throws nothing: the waiting caller is told.
Task<stag_error> perform(stag_client& client, const stag_procedure& procedure, stag_call& call) {
  try {
    co_return co_await exchange(client, procedure, call);
  } catch (...) {
  }
  co_return kNoMemory;
}

Task<> perform_and_tell(stag_client& client, const stag_procedure& procedure, stag_call& call,
                        stag_completion* done, void* context) {
  stag_error error = kNoMemory;
  try {
    error = co_await exchange(client, procedure, call);
  } catch (...) {
  }
  end_uses(call);
  done(context, &call, &error);
}

void begin(stag_client& client, const stag_procedure& procedure, stag_call& call,
           stag_completion* done, void* context) {
  try {
    client.tasks.add(perform_and_tell(client, procedure, call, done, context));
  } catch (...) {  // none of it has begun
    end_uses(call);
    done(context, &call, &kNoMemory);
  }
}

Task<> drain(stag_client& client) {
  client.ending.cancel();
  co_await client.tasks.join();
}

endpoint::ConnectOptions options_of(const stag_connect_options& from, const ProgramTable& program) {
  endpoint::ConnectOptions options;
  options.binding = program.binding();
  if (from.transport == STAG_TCP) options.connector.transport = endpoint::Transport::Tcp;
  if (from.transport == STAG_RDMA_DEVICE) options.connector.fabric = endpoint::FabricKind::Verbs;
  if (from.timeout_ms != 0) options.client.timeout = std::chrono::milliseconds(from.timeout_ms);
  if (from.connect_timeout_ms != 0) {
    options.connector.rdma.connect_timeout = std::chrono::milliseconds(from.connect_timeout_ms);
    options.connector.tcp.connect_timeout = std::chrono::milliseconds(from.connect_timeout_ms);
  }
  if (from.auth_sys != 0) options.credentials = rpc::Credentials::sys("", from.uid, from.gid);
  return options;
}

stag_error connect(const Address& server, const stag_program* program,
                   const stag_connect_options& options, stag_client** client) {
  if (options.transport > STAG_RDMA_DEVICE)
    return error_of(STAG_INVALID, "there is no such transport");
  auto made = std::make_unique<stag_client>(program);
  if (!made->program.error().empty()) return error_of(STAG_INVALID, made->program.error());
  auto loops = endpoint::Loops::start();
  if (!loops) return error_of(loops.error(), to_string(server));
  made->loops = *std::move(loops);
  endpoint::ConnectOptions connecting = options_of(options, made->program);
  connecting.loops = made->loops;
  auto connection = endpoint::connect(server, std::move(connecting));
  if (!connection) return error_of(connection.error());
  made->connection.emplace(*std::move(connection));
  *client = made.release();
  return no_error();
}

}  // namespace
}  // namespace stag::c

int stag_connect(const char* host, uint16_t port, const stag_program* program,
                 const stag_connect_options* options, stag_client** client, stag_error* error) {
  return c::guard(error, [&] {
    if (host == nullptr || client == nullptr || program == nullptr)
      return c::error_of(STAG_INVALID, "host, program or client is null");
    if (!c::has_size(options)) return c::error_of(STAG_INVALID, "the options' size is not set");
    if (const auto wrong = c::wrong_thread()) return *wrong;
    return c::connect({host, port}, program, c::known(options), client);
  });
}

int stag_disconnect(stag_client* client) {
  return c::guard(nullptr, [client] {
    if (client == nullptr) return c::no_error();
    if (const auto wrong = c::wrong_thread()) return *wrong;
    endpoint::finish_on(client->loop(), [client] { return c::drain(*client); });
    delete client;
    return c::no_error();
  });
}

int stag_call_wait(stag_client* client, stag_call* call, stag_error* error) {
  return c::guard(error, [&] {
    if (client == nullptr || call == nullptr) return c::error_of(STAG_INVALID, "null");
    const stag_procedure* const procedure = client->program.find(call->procedure);
    if (const auto fault = c::fault_of(*client, *call, procedure); !fault.empty())
      return c::error_of(STAG_INVALID, fault);
    if (const auto wrong = c::wrong_thread()) return *wrong;
    const c::Uses uses(*call);
    return endpoint::wait_on(client->loop(),
                             [&] { return c::perform(*client, *procedure, *call); });
  });
}

int stag_call_begin(stag_client* client, stag_call* call, stag_completion* done, void* context,
                    stag_error* error) {
  return c::guard(error, [&] {
    if (client == nullptr || call == nullptr || done == nullptr)
      return c::error_of(STAG_INVALID, "null");
    const stag_procedure* const procedure = client->program.find(call->procedure);
    if (const auto fault = c::fault_of(*client, *call, procedure); !fault.empty())
      return c::error_of(STAG_INVALID, fault);
    if (client->loop().on_thread() && client->ending.cancelled())
      return c::error_of(STAG_CANCELLED, "stag_disconnect() was called");
    c::Uses uses(*call);
    client->loop().post([client, procedure, call, done, context] {
      c::begin(*client, *procedure, *call, done, context);
    });
    uses.last_until_the_completion();
    return c::no_error();
  });
}

int stag_call_cancel(stag_client* client, const stag_call* call) {
  return c::guard(nullptr, [client, call] {
    if (client == nullptr || call == nullptr) return c::error_of(STAG_INVALID, "null");
    client->loop().post([client, call] { c::CallInProgress::cancel(*client, call); });
    return c::no_error();
  });
}

int stag_memory_register(stag_client* client, void* memory, size_t length, uint32_t access,
                         stag_memory** registered, stag_error* error) {
  return c::guard(error, [&] {
    if (client == nullptr) return c::error_of(STAG_INVALID, "client is null");
    return c::register_memory(client->loops, c::memory_at(memory, length), access, registered);
  });
}

int stag_ping(stag_client* client, stag_error* error) {
  return c::guard(error, [&] {
    if (client == nullptr) return c::error_of(STAG_INVALID, "null");
    if (const auto wrong = c::wrong_thread()) return *wrong;
    const auto answer =
        client->connection->ping(client->program.program(), client->program.version());
    return answer.ok() ? c::no_error() : c::error_of(answer.error());
  });
}
