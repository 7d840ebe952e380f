#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/pause.h"
#include "cli/commands.h"
#include "cli/support/json.h"
#include "cli/support/output.h"
#include "cli/support/remote.h"
#include "nfs/client/session/endpoint_discovery.h"
#include "nfs/proto/nfs3.h"
#include "rpc/client_security.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Url;

// The NULL procedure with bytes behind its header, which most servers ignore. A server that checks
// them answers GARBAGE_ARGS, which measures the same round trip.
template <std::uint32_t Version>
struct PaddedNull {
  using Args = std::vector<std::byte>;
  using Results = xdr::Void;
  static constexpr std::uint32_t program = nfs::v3::NFS_PROGRAM;
  static constexpr std::uint32_t version = Version;
  static constexpr std::uint32_t number = 0;
  static constexpr std::string_view name = "NULL";
  static constexpr std::optional<std::uint32_t> max_args_size = std::nullopt;
  static constexpr std::optional<std::uint32_t> max_results_size = 0;
  static void encode_args(xdr::Encoder& encoder, const Args& args) { encoder.fixed_opaque(args); }
  static bool decode_args(xdr::Decoder&, Args&) { return true; }
  static void encode_results(xdr::Encoder&, const Results&) {}
  static bool decode_results(xdr::Decoder&, Results&) { return true; }
};

struct Summary {
  std::uint64_t sent = 0;
  std::vector<double> times{};  // of the answered calls, microseconds

  double at(double share) const {
    const auto last = static_cast<double>(times.size() - 1);
    return times[static_cast<std::size_t>(std::ceil(share * last))];
  }
  double average() const {
    return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  }
};

class Ping final : public Command {
 public:
  About about() const override {
    return {
        "ping", "time RPC NULL round trips", "  stag ping -c 5 nfs://server/data\n",
        "Without -c it goes on until it is interrupted, and exits with 0 if a call was answered.\n"
        "Interrupted before all calls of -c are made it exits as every command does.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.number("-c,--count", count_, 0, 1u << 30, "calls to make; 0: until interrupted");
    arguments.size("-s,--size", size_, 0, 1u << 20, "extra bytes in each call");
    arguments.number("-i,--interval", interval_, 0, 1u << 20, "milliseconds between calls");
    arguments.flag("--json", json_, "the summary only, as an object");
    remote_.declare(arguments);
    arguments.positional("URL", url_, "server; its path does not matter");
  }
  Exit run() override {
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  Task<Exit> work(Run& run) {
    const Outcome<Url> url = Url::parse(url_);
    if (!url) co_return failed(url.error());
    const std::unique_ptr<rpc::Connector> connector = nfs_connector(run.loop, *url, remote_);
    const std::unique_ptr<rpc::Connector> tcp = tcp_connector(run.loop, remote_);
    nfs::client::ProtocolOptions asking;
    asking.timeout = std::chrono::seconds(remote_.timeout);
    asking.cancel = run.cancel;
    const Outcome<Address> at = co_await nfs::client::find_nfs(*tcp, *url, asking);
    if (!at) co_return failed(at.error());
    const rpc::ConnectedChannel channel = co_await connect_patiently(run, *connector, *at, remote_);
    if (!channel) co_return failed(Error::of_call({"reach the server", {}}, channel.error()));
    Outcome<rpc::Credentials> credentials = nfs_credentials(*url);
    if (!credentials) co_return failed(credentials.error());
    Summary summary;
    rpc::Client client(**channel, {}, *credentials);
    co_await call_all(run, client, url->version.value_or(3), summary);
    if (credentials->security() != nullptr) co_await credentials->security()->end(**channel);
    co_await (*channel)->close();
    std::sort(summary.times.begin(), summary.times.end());
    report(summary, (*channel)->where());
    if (complete(summary)) co_return Exit::Done;
    co_return run.cancel.cancelled() ? failed("interrupted") : Exit::Failed;
  }

  // Without --count the command runs until it is interrupted, and has then succeeded.
  bool complete(const Summary& summary) const {
    return !summary.times.empty() && summary.sent >= count_;
  }

  static Task<rpc::CallResult<xdr::Void>> null(rpc::Client& client, std::uint32_t version,
                                               const std::vector<std::byte>& padding,
                                               rpc::CallOptions options) {
    if (version == 2) return client.call<PaddedNull<2>>(padding, options);
    if (version == 4) return client.call<PaddedNull<4>>(padding, options);
    return client.call<PaddedNull<3>>(padding, options);
  }

  Task<void> call_all(Run& run, rpc::Client& client, std::uint32_t version, Summary& summary) {
    const std::vector<std::byte> padding(size_);
    for (std::uint64_t i = 1; !run.cancel.cancelled() && (count_ == 0 || i <= count_); ++i) {
      if (i > 1) co_await pause(run.loop, std::chrono::milliseconds(interval_), run.cancel);
      if (run.cancel.cancelled()) co_return;
      rpc::CallOptions options;
      options.timeout = std::chrono::seconds(remote_.timeout);
      options.cancel = run.cancel;
      const TimePoint begin = run.loop.now();
      const auto answer = co_await null(client, version, padding, options);
      const std::chrono::duration<double, std::micro> took = run.loop.now() - begin;
      const bool answered = answer || answer.error().kind == rpc::CallError::Kind::Answered;
      // A call cut short by Ctrl-C is neither answered nor lost.
      if (!answered && run.cancel.cancelled()) co_return;
      ++summary.sent;
      if (answered) summary.times.push_back(took.count());
      if (json_) continue;
      if (answered)
        put("{}: seq={} time={:.1f} us\n", client.channel().where(), i, took.count());
      else
        put("seq={}: {}\n", i, answer.error().message());
      if (!flush_out()) co_return;
    }
  }

  void report(const Summary& summary, const std::string& where) const {
    const bool any = !summary.times.empty();
    if (json_) {
      Json json;
      json.set("server", where)
          .set("sent", summary.sent)
          .set("answered", std::uint64_t{summary.times.size()});
      if (any)
        json.set("min_us", summary.times.front())
            .set("avg_us", summary.average())
            .set("p99_us", summary.at(0.99))
            .set("max_us", summary.times.back());
      put("{}\n", json.text());
      return;
    }
    put("{} calls, {} answered", summary.sent, summary.times.size());
    if (any)
      put("; min/avg/p99/max = {:.1f}/{:.1f}/{:.1f}/{:.1f} us", summary.times.front(),
          summary.average(), summary.at(0.99), summary.times.back());
    put("\n");
  }

  RemoteOptions remote_;
  std::uint32_t count_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t interval_ = 1000;
  bool json_ = false;
  std::string url_;
};

}  // namespace

std::unique_ptr<Command> make_ping() {
  return std::make_unique<Ping>();
}

}  // namespace stag::cli
