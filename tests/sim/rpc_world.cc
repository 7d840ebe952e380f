#include "rpc_world.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "seeds.h"

namespace stag::testing {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const std::array kTable = [] {
  std::array<rpc::ProcedureBinding, kBlobTable.size() + 1> table{};
  std::copy(kBlobTable.begin(), kBlobTable.end(), table.begin());
  table.back() = rpc::bind<Take>({}, {kBlobData}, [](const Wanted& wanted) {
                   return rpc::ReplyBound{kBlobFrame, {{kBlobData, wanted.length}}};
                 }).once_only();
  return table;
}();
const rpc::Binding kBinding{kTable};

template <class T>
Task<bool> closing(T* object) {
  co_await object->close();
  co_return true;
}

}  // namespace

RpcWorld::RpcWorld(std::uint64_t seed)
    : random_(seed), loop_(random_.next()), network_(loop_, sim_options(random_)) {
  faults_ = network_.options().faults;
  start_server();
  const std::uint64_t hosts = 1 + random_.below(3);
  for (std::uint64_t i = 0; i < hosts; ++i) add_host();
}

RpcWorld::~RpcWorld() {
  for (auto& host : hosts_) loop_.run(closing(&*host->channel));
  loop_.run(closing(&*server_));
  // Handlers of lost connections run on; nothing of theirs may be left.
  loop_.run_until_idle();
  EXPECT_EQ(server_program_.active_calls(), 0u);
  EXPECT_EQ(network_.open_connections(), 0u);
}

fabric::SimOptions RpcWorld::sim_options(fabric::Random& random) {
  fabric::SimOptions options;
  options.seed = random.next();
  options.latency = microseconds(1 + random.below(100));
  options.time_per_mib = microseconds(random.below(3000));
  options.max_private_copy = random.chance(500) ? 1000 : 1 << 20;
  options.remote_invalidation = random.chance(700);
  options.discards = random.chance(600);
  options.faults = random_faults(random);
  return options;
}

rpc::rdma::TransportOptions RpcWorld::transport_options() {
  rpc::rdma::TransportOptions options;
  options.inline_size = 1024u << random_.below(5);
  options.remote_invalidation = random_.chance(500);
  options.max_segments = static_cast<std::uint32_t>(1 + random_.below(16));
  options.inbound_reads = static_cast<std::uint32_t>(1 + random_.below(16));
  options.outbound_reads = static_cast<std::uint32_t>(1 + random_.below(16));
  return options;
}

rpc::Program RpcWorld::program() {
  rpc::Program program(kBlobProgram, 1, kBinding);
  program.add<Store>(store_blob)
      .add<StoreWhole>(store_blob)
      .add<FetchWhole>(fetch_blob)
      .add<Fetch>([this](rpc::CallContext& c, Wanted w) { return fetch_slowly(c, w); })
      .add<Take>([this](rpc::CallContext& c, Wanted w) { return take(c, w); })
      .add<Echo>(
          [this](rpc::CallContext& c, Blob b) { return echo_and_call_back(c, std::move(b)); });
  return program;
}

void RpcWorld::start_server() {
  server_program_.add(program());
  rpc::rdma::ServerOptions options;
  options.seed = 7;
  options.transport = transport_options();
  options.credits = static_cast<std::uint32_t>(1 + random_.below(32));
  server_.emplace(server_program_, options);
  auto address = server_->listen(network_, {"server", 20049});
  address_ = *address;
}

void RpcWorld::add_host() {
  auto host = std::make_unique<Host>();
  rpc::rdma::ChannelOptions options;
  options.transport = transport_options();
  options.credits = static_cast<std::uint32_t>(1 + random_.below(32));
  options.connect_timeout = milliseconds(100);
  options.reconnect_for = minutes(60);
  options.seed = random_.next() | 1;
  host->channel.emplace(network_, address_, options);
  if (random_.chance(500)) {
    host->reverse_program.emplace();
    host->reverse_program->add(blob_program());
    host->channel->serve_reverse(*host->reverse_program);
  }
  hosts_.push_back(std::move(host));
}

void RpcWorld::run() {
  for (auto& host : hosts_) {
    const std::uint64_t workers = 1 + random_.below(5);
    for (std::uint64_t i = 0; i < workers; ++i) workers_.add(work(host.get(), 6));
  }
  const auto finished = [this] { return workers_.running() == 0; };
  if (!loop_.run_until(finished, seconds(1))) {
    // Where no connection lives long enough, the network gets well in the end.
    network_.set_faults({});
    ASSERT_TRUE(loop_.run_until(finished, minutes(30))) << workers_.running() << " workers stuck";
  }
  for (const auto& [seed, times] : taken_)
    EXPECT_EQ(times, 1) << "a call that must run once ran " << times << " times";
}

Task<void> RpcWorld::work(Host* host, int calls) {
  rpc::ClientOptions options;
  options.timeout = Duration(0);
  rpc::Client client(*host->channel, kBinding, {}, options);
  for (int i = 0; i < calls; ++i) co_await call_something(client);
}

std::uint32_t RpcWorld::length() {
  switch (random_.below(4)) {
    case 0:
      return static_cast<std::uint32_t>(random_.below(16));
    case 1:
      return static_cast<std::uint32_t>(random_.below(2000));
    case 2:
      return static_cast<std::uint32_t>(random_.below(20'000));
    default:
      return static_cast<std::uint32_t>(random_.below(random_.chance(50) ? 1'500'000 : 70'000));
  }
}

Task<void> RpcWorld::call_something(rpc::Client client) {
  const std::uint32_t seed = next_seed_++;
  const std::uint32_t size = length();
  switch (random_.below(6)) {
    case 0:
      return call<Store>(client, {seed, pattern(seed, size)});
    case 1:
      return call<Fetch>(client, {seed, size});
    case 2:
      return call<StoreWhole>(client, {seed, pattern(seed, size)});
    case 3:
      return call<FetchWhole>(client, {seed, size});
    case 4:
      return call<Echo>(client, {seed, pattern(seed, size)});
    default:
      return call<Take>(client, {seed, size});
  }
}

RpcWorld::Plan RpcWorld::plan() {
  Plan plan;
  const Duration moment = microseconds(1 + random_.below(3000));
  if (random_.chance(100)) {
    plan.timeout = moment;
  } else if (random_.chance(100)) {
    plan.cancel_after = moment;
  }
  return plan;
}

namespace {

// A call whose time is over before it was sent says why there was no connection.
bool ends_by_time(Reason reason) {
  return reason == Reason::TimedOut || reason == Reason::ConnectionRefused;
}

bool loses_connections(const fabric::Faults& faults) {
  return faults.kill_at_step != 0 || faults.kill_permille != 0 || faults.kill_after ||
         faults.fail_send != 0 || faults.fail_write != 0 || faults.fail_read != 0 ||
         faults.lose_ack != 0;
}

}  // namespace

// Of what must run once, long results are not kept for a call that is made again.
bool RpcWorld::ran_before(std::uint32_t taken, const rpc::CallError& error) const {
  return loses_connections(faults_) && taken_.count(taken) != 0 &&
         error.kind == rpc::CallError::Kind::Answered &&
         error.status == oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::SYSTEM_ERR);
}

// Only what was asked for may go wrong; lost connections are the Channel's business.
void RpcWorld::check(const Plan& plan, const rpc::CallError& error) const {
  const bool asked_for = (plan.timeout != Duration(0) && ends_by_time(error.reason)) ||
                         (plan.cancel_after != Duration(0) && error.reason == Reason::Cancelled) ||
                         ((faults_.fail_expose != 0 || faults_.fail_expose_permille != 0) &&
                          error.reason == Reason::RegistrationsExhausted);
  EXPECT_TRUE(asked_for) << error.message() << " (" << to_string(error.reason) << "), timeout "
                         << plan.timeout.count() << " ns, cancel after "
                         << plan.cancel_after.count() << " ns";
}

// `args` ends with this frame: what the fabric still reads of them then is found by the address
// sanitizer.
template <class P>
Task<void> RpcWorld::call(rpc::Client client, typename P::Args args) {
  const Plan plan = this->plan();
  CancelSource cancel;
  rpc::CallOptions options;
  options.cancel = cancel;
  if (plan.timeout != Duration(0)) options.timeout = plan.timeout;
  Timer canceller;
  if (plan.cancel_after != Duration(0))
    canceller = loop_.after(plan.cancel_after, [&cancel] { cancel.cancel(); });
  auto calling = client.call<P>(args, options);
  auto result = co_await std::move(calling);
  if (!result) {
    if (!std::is_same_v<P, Take> || !ran_before(args.seed, result.error()))
      check(plan, result.error());
    co_return;
  }
  if constexpr (std::is_same_v<typename P::Results, Stored>) {
    EXPECT_TRUE(result->intact);
    EXPECT_EQ(result->length, args.data.size());
  } else if constexpr (std::is_same_v<typename P::Args, Blob>) {
    EXPECT_TRUE(result->data == args.data);
  } else {
    EXPECT_TRUE(result->data == pattern(args.seed, args.length));
  }
}

Task<Blob> RpcWorld::take(rpc::CallContext& context, Wanted wanted) {
  ++taken_[wanted.seed];
  if (random_.chance(300)) co_await sleep_for(context.loop(), milliseconds(random_.below(200)));
  co_return Blob{wanted.seed, pattern(wanted.seed, wanted.length)};
}

Task<Blob> RpcWorld::fetch_slowly(rpc::CallContext& context, Wanted wanted) {
  if (random_.chance(300)) co_await sleep_for(context.loop(), microseconds(random_.below(5000)));
  co_return Blob{wanted.seed, pattern(wanted.seed, wanted.length)};
}

// Calls the client back on the way, where it serves Calls (RFC 8167).
Task<Blob> RpcWorld::echo_and_call_back(rpc::CallContext& context, Blob blob) {
  const std::shared_ptr<rpc::Channel> channel = context.reverse_channel();
  if (channel != nullptr && random_.chance(500)) {
    rpc::Client client(*channel, kBinding);
    rpc::CallOptions options;
    options.timeout = milliseconds(20);
    const Wanted wanted{blob.seed, length()};
    auto calling = client.call<Fetch>(wanted, options);
    auto result = co_await std::move(calling);
    if (result) {
      EXPECT_TRUE(result->data == pattern(wanted.seed, wanted.length));
    }
  }
  co_return blob;
}

}  // namespace stag::testing
