#include "rpcbind/lookup.h"

#include <algorithm>
#include <optional>

#include "rpc/with_channel.h"
#include "rpcbind/rpcbind.h"
#include "rpcbind/universal_address.h"

namespace stag::rpcbind {
namespace {

using rpc::CallError;
using rpc::CallResult;
using Registrations = CallResult<std::vector<Registration>>;
using Lookup = CallResult<Found>;

std::vector<Registration> registrations_of(const rpcblist_ptr& list) {
  std::vector<Registration> all;
  all.reserve(list.size());
  for (const rpcb_entry& entry : list) {
    const rpcb& map = entry.rpcb_map;
    all.push_back({map.r_prog, map.r_vers, map.r_netid, map.r_addr, map.r_owner});
  }
  return all;
}

Failure<CallError> not_registered(const rpc::Channel& channel) {
  return Failure{CallError::transport(Reason::RpcProgramNotRegistered, channel.where())};
}

Lookup found_at(const std::string& netid, const std::string& universal,
                const rpc::Channel& channel) {
  const std::optional<Address> address = from_universal(universal);
  if (address && address->port != 0) return Found{netid, address->port};
  trace(Reason::RpcbindAddressMalformed, channel.where(), universal);
  return Failure{CallError::malformed(Reason::RpcbindAddressMalformed, channel.where())};
}

Lookup pick(const std::vector<Registration>& list, const Question& question,
            const rpc::Channel& channel) {
  for (const std::string& netid : question.netids)
    for (const Registration& entry : list)
      if (entry.program == question.program && entry.version == question.version &&
          entry.netid == netid)
        return found_at(netid, entry.address, channel);
  return not_registered(channel);
}

// The transport of this channel: GETADDR answers for its services only.
std::string_view transport_of(const rpc::Channel& channel) {
  return channel.kind() == rpc::TransportKind::Udp ? kUdp : kTcp;
}

bool is_of(std::string_view netid, std::string_view transport) {
  return netid == transport ||
         (netid.starts_with(transport) && netid.substr(transport.size()) == "6");
}

// A port mapper of version 2 knows IPv4 only.
std::optional<std::uint32_t> protocol_of(std::string_view netid) {
  if (netid == kTcp) return IPPROTO_TCP;
  if (netid == kUdp) return IPPROTO_UDP;
  return std::nullopt;
}

bool declined(const CallError& error) {
  return error.kind == CallError::Kind::Answered;
}

// The universal address, empty when there is none.
template <class Procedure>
Task<CallResult<std::string>> get_address(rpc::Client client, const Question& question,
                                          const std::string& netid, rpc::CallOptions options) {
  rpcb asked;
  asked.r_prog = question.program;
  asked.r_vers = question.version;
  asked.r_netid = netid;
  co_return co_await client.call<Procedure>(asked, options);
}

// Asks for one netid, without the list. RpcProgramNotRegistered also when rpcbind cannot answer for
// that netid.
Task<Lookup> ask_for(rpc::Channel& channel, const Question& question, const std::string& netid,
                     rpc::CallOptions options) {
  rpc::Client client(channel);
  if (is_of(netid, transport_of(channel))) {
    CallResult<std::string> address =
        co_await get_address<RPCBPROC_GETADDR>(client, question, netid, options);
    if (!address && declined(address.error()))
      address = co_await get_address<RPCB3PROC_GETADDR>(client, question, netid, options);
    if (address && !address->empty()) co_return found_at(netid, *address, channel);
    if (!address && !declined(address.error())) co_return Failure{address.error()};
  }
  const std::optional<std::uint32_t> protocol = protocol_of(netid);
  if (!protocol) co_return not_registered(channel);
  const mapping asked{question.program, question.version, *protocol, 0};
  const CallResult<std::uint32_t> port = co_await client.call<PMAPPROC_GETPORT>(asked, options);
  if (!port) co_return Failure{port.error()};
  if (*port == 0) co_return not_registered(channel);
  if (*port > 0xffff) co_return found_at(netid, {}, channel);
  co_return Found{netid, static_cast<std::uint16_t>(*port)};
}

// Ends the lookup when it takes too long or when the caller cancels it.
class Deadline {
 public:
  Deadline(Loop& loop, const Options& options)
      : end_(loop.now() + options.timeout),
        timer_(loop.after(options.timeout,
                          [this] {
                            over_ = true;
                            stop_.cancel();
                          })),
        caller_(options.cancel, [this] { stop_.cancel(); }) {}

  CancelToken token() { return stop_; }
  rpc::CallOptions call_options(const Loop& loop) {
    rpc::CallOptions options;
    options.timeout = std::max<Duration>(end_ - loop.now(), std::chrono::milliseconds(1));
    options.cancel = stop_;
    return options;
  }
  // The reason behind a cancelled call is the time, when it was that.
  CallError explain(CallError error) const {
    if (over_ && error.reason == Reason::Cancelled) error.reason = Reason::TimedOut;
    return error;
  }

 private:
  CancelSource stop_;
  TimePoint end_;
  bool over_ = false;
  Timer timer_;
  CancelCallback caller_;
};

}  // namespace

std::string netid(std::string_view transport, bool ipv6) {
  return std::string(transport) + (ipv6 ? "6" : "");
}

std::vector<std::string> netids_for(std::string_view transport, std::string_view host) {
  const bool ipv6 = is_ipv6(host);
  return {netid(transport, ipv6), netid(transport, !ipv6)};
}

bool same(const Registration& a, const Registration& b) {
  return a.program == b.program && a.version == b.version && a.netid == b.netid &&
         a.address == b.address;
}

Task<Registrations> list(rpc::Channel& channel, rpc::CallOptions options) {
  rpc::Client client(channel);
  CallResult<rpcblist_ptr> all = co_await client.call<RPCBPROC_DUMP>(xdr::Void{}, options);
  if (!all && declined(all.error()))
    all = co_await client.call<RPCB3PROC_DUMP>(xdr::Void{}, options);
  if (!all) co_return Failure{all.error()};
  co_return registrations_of(*all);
}

Task<Lookup> lookup(rpc::Channel& channel, Question question, rpc::CallOptions options) {
  const Registrations all = co_await list(channel, options);
  if (all) co_return pick(*all, question, channel);
  if (!declined(all.error())) co_return Failure{all.error()};
  for (const std::string& netid : question.netids) {
    Lookup found = co_await ask_for(channel, question, netid, options);
    const bool absent = !found && found.error().reason == Reason::RpcProgramNotRegistered;
    if (!absent) co_return found;
  }
  co_return not_registered(channel);
}

Task<Lookup> lookup(rpc::Connector& connector, std::string host, Question question,
                    Options options) {
  Loop& loop = connector.loop();
  Deadline deadline(loop, options);
  const Address at{std::move(host), options.port};
  const auto ask = [&](rpc::Channel& channel) {
    return lookup(channel, std::move(question), deadline.call_options(loop));
  };
  Task<rpc::ConnectedChannel> connecting = connector.connect(at, deadline.token());
  const CallResult<Lookup> answer = co_await rpc::with_channel(std::move(connecting), ask);
  if (!answer) co_return Failure{deadline.explain(answer.error())};
  if (!*answer) co_return Failure{deadline.explain(answer->error())};
  co_return *answer;
}

}  // namespace stag::rpcbind
