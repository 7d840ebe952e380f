#include "conform/conform.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "cli/commands.h"
#include "cli/commands/conform_callbacks.h"
#include "cli/commands/conform_place.h"
#include "cli/support/escape.h"
#include "cli/support/output.h"
#include "cli/support/remote.h"
#include "conform/nfs4/suite.h"
#include "conform/report.h"
#include "conform/rpcrdma/suite.h"
#include "nfs/client/session/endpoint_discovery.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Url;

constexpr std::uint32_t kMinors = 3;
constexpr std::string_view kOtherMinor = "NFS4ERR_MINOR_VERS_MISMATCH";

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

// What the run shows while it goes on: failures as they come, and on a terminal where it is.
class Narrator final : public conform::Observer {
 public:
  Narrator(bool quiet, bool verbose, std::size_t all)
      : quiet_(quiet), verbose_(verbose), all_(all), terminal_(isatty(STDERR_FILENO) == 1) {}
  ~Narrator() { clear(); }

  void on_begin(const conform::Title& title) override {
    at_ = title.full().substr(0, kWidth);
    draw("");
  }
  // The case waits for a lease to run out.
  void on_wait(std::chrono::seconds left) {
    draw(fmt::format(" (waits {} s at most)", left.count()));
  }
  void on_result(conform::Result result) override {
    const conform::Outcome outcome = result.verdict.outcome;
    if (!quiet_ && (verbose_ || outcome == conform::Outcome::Fail)) {
      clear();
      put("{:<7} {} ({})\n", to_string(outcome), result.title.full(), result.title.section);
      if (!result.verdict.detail.empty()) put("        {}\n", escaped(result.verdict.detail));
    }
    results_.push_back(std::move(result));
  }
  const std::vector<conform::Result>& results() const { return results_; }
  void clear() {
    if (drawn_) write_error("\r\x1b[K");
    drawn_ = false;
  }

 private:
  static constexpr std::size_t kWidth = 100;

  void draw(const std::string& more) {
    if (!terminal_) return;
    write_error(fmt::format("\r[{}/{}] {}{}\x1b[K", results_.size() + 1, all_, at_, more));
    drawn_ = true;
  }

  const bool quiet_, verbose_;
  const std::size_t all_;
  const bool terminal_;
  bool drawn_ = false;
  std::string at_;
  std::vector<conform::Result> results_;
};

class Conform final : public Command {
 public:
  About about() const override {
    return {
        "conform", "ask a server whether it does what the RFCs say, case by case",
        "  stag conform nfs4 nfs://server/data?proto=tcp\n"
        "  stag conform --minor 1 --filter '*.LOCK.*' nfs4 nfs://server/data\n"
        "  stag conform --junit result.xml --export /data rpcrdma server\n"
        "  stag conform --list nfs4\n",
        "SUITE is nfs4 (NFS versions 4.0, 4.1 and 4.2, over RDMA or TCP) or rpcrdma "
        "(RPC-over-RDMA:\nRFC 8166, 8167 and 8797; what needs files uses version 4.0). The "
        "cases work in a folder of\ntheir own, which they make in the export and remove in "
        "the end; they must be allowed to.\nA case passes, fails, or is skipped because the "
        "server does not offer what the RFC leaves\nto it. Errors that no client can provoke "
        "are listed with the reason. Exit code 1: a case\nhas failed. With --slow-cases it also "
        "asks what "
        "becomes of leases that run out:\none or two cases of each minor version, each of which "
        "waits for a lease of the server, and\ntwo at most. What version 4.0 asks of a client it "
        "asks where the URL says callback=ADDRESS,\nan address of this machine to which the "
        "server can connect.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.text(
        "--export", export_, "PATH",
        "the folder to work in, as clients of version 4 name it [the URL's path; without one "
        "the first export in which a folder can be made]");
    arguments.choice("--minor", minor_, {"0", "1", "2", "all"}, "the minor version of NFS 4");
    arguments.text("--filter", filter_, "GLOB", "only cases with such a name (--list shows them)");
    arguments.flag("--list", list_, "print the cases and do not run them");
    arguments.flag("--dangerous", dangerous_, "run cases that are known to end some servers, too");
    arguments.flag("--slow-cases", slow_,
                   "run cases that wait for a lease of the server to run out, too");
    arguments.flag("-v,--verbose", verbose_, "print every case, not failures only");
    arguments.flag("--json", json_, "an object with every case");
    arguments.text("--junit", junit_, "FILE", "write every case to FILE, as JUnit's XML");
    remote_.declare(arguments);
    arguments.positional_choice("SUITE", suite_, {"nfs4", "rpcrdma"}, "which rules");
    arguments.positional("HOST", host_, "name, address or URL of the server", false);
  }
  Exit run() override {
    if (host_.empty() && !list_) return misused("HOST is missing");
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  using Suites = std::vector<std::unique_ptr<conform::Suite>>;

  std::string_view left_behind() const override { return "a folder may remain in the export"; }

  std::string url_text() const {
    if (Url::looks_like(host_)) return host_;
    const bool ipv6 = std::ranges::count(host_, ':') > 1 && !host_.starts_with('[');
    const std::string host = host_.empty() ? "unknown" : host_;
    return ipv6 ? fmt::format("nfs://[{}]/", host) : fmt::format("nfs://{}/", host);
  }

  Task<Exit> work(Run& run) {
    const Outcome<Url> url = Url::parse(url_text());
    if (!url) co_return not_begun(url.error());
    path_ = parts_of(export_.empty() ? url->path : export_);
    label_ =
        fmt::format("stag-conform-{}-{:x}", getpid(), run.loop.now().time_since_epoch().count());
    Outcome<rpc::Credentials> credentials = nfs_credentials(*url);
    if (!credentials) co_return not_begun(credentials.error());
    credentials_ = *std::move(credentials);
    if (path_.empty() && !list_) {
      const std::optional<Exit> end = co_await find_place(run);
      if (end) co_return *end;
    }
    if (suite_ == "rpcrdma") co_return co_await work_on_rdma(run, *url);
    const std::unique_ptr<rpc::Connector> connector = nfs_connector(run.loop, *url, remote_);
    conform::nfs4::Callbacks callbacks(run.loop, run.cancel);
    std::unique_ptr<rpc::Channel> channel;
    if (!list_) {
      const Outcome<Address> server = co_await address_of(run, *url);
      if (!server) co_return not_begun(server.error());
      rpc::CallResult<std::unique_ptr<rpc::Channel>> connected =
          co_await connector->connect(*server, run.cancel);
      if (!connected)
        co_return not_begun(Error::of_call({"reach the server", {}}, connected.error()));
      channel = *std::move(connected);
      channel->serve_reverse(callbacks.service());
    }
    Suites suites;
    for (std::uint32_t minor = 0; minor < kMinors; ++minor)
      if (minor_ == "all" || minor_ == std::to_string(minor))
        suites.push_back(conform::nfs4::make_suite(
            channel.get(), nfs4_options(run, *url, minor, callbacks), run.cancel));
    std::string where;
    if (channel) where = channel->where();
    const Exit exit = co_await perform(run, suites, std::move(where));
    suites.clear();
    if (channel) co_await channel->close();
    co_return exit;
  }

  // The root of version 4 is a folder of nobody's as a rule.
  Task<std::optional<Exit>> find_place(Run& run) {
    const Outcome<std::optional<std::vector<std::string>>> found =
        co_await place_to_work(run, url_text(), remote_, label_);
    if (run.cancel.cancelled()) co_return not_begun("interrupted");
    if (found && *found) {
      path_ = **found;
      complain(
          fmt::format("works in '/{}'; --export PATH names another folder", fmt::join(path_, "/")));
      co_return std::nullopt;
    }
    const std::string why = found ? "in no export a folder can be made" : explained(found.error());
    constexpr std::string_view kRemedy = "name one that can be written to, by --export PATH";
    if (suite_ == "nfs4") co_return not_begun(fmt::format("{}; {}", why, kRemedy));
    complain(fmt::format("cases that need a file are skipped: {}; {}", why, kRemedy));
    co_return std::nullopt;
  }

  conform::nfs4::SuiteOptions nfs4_options(Run& run, const Url& url, std::uint32_t minor,
                                           conform::nfs4::Callbacks& callbacks) {
    conform::nfs4::SuiteOptions options{minor,
                                        path_,
                                        credentials_,
                                        std::chrono::seconds(remote_.timeout),
                                        fmt::format("{}-{}", label_, minor),
                                        &callbacks,
                                        {},
                                        {}};
    if (url.callback)
      options.make_place = [&loop = run.loop, at = *url.callback] {
        return make_callback_place(loop, at);
      };
    options.on_wait = [this](std::chrono::seconds left) {
      if (narrator_ != nullptr) narrator_->on_wait(left);
    };
    return options;
  }

  Task<Outcome<Address>> address_of(Run& run, const Url& url) {
    const std::unique_ptr<rpc::Connector> tcp = tcp_connector(run.loop, remote_);
    nfs::client::ProtocolOptions asking;
    asking.cancel = run.cancel;
    co_return co_await nfs::client::find_nfs(*tcp, url, asking);
  }

  Task<Exit> work_on_rdma(Run& run, const Url& url) {
    if (url.protocol == Url::Protocol::Tcp) co_return misused("rpcrdma does not go with proto=tcp");
    if (url.security != Url::Security::Sys) co_return misused("rpcrdma goes with sec=sys only");
    const std::unique_ptr<fabric::Fabric> fabric = rdma_fabric(run.loop, url, remote_);
    conform::rpcrdma::SuiteOptions options{
        {}, path_, credentials_, std::chrono::seconds(remote_.timeout), label_};
    if (!list_) {
      Outcome<Address> server = co_await address_of(run, url);
      if (!server) co_return not_begun(server.error());
      options.server = *std::move(server);
    }
    const std::string where = "rdma " + to_string(options.server);
    Suites suites;
    suites.push_back(conform::rpcrdma::make_suite(*fabric, std::move(options), run.cancel));
    co_return co_await perform(run, suites, where);
  }

  Task<Exit> perform(Run& run, const Suites& suites, std::string where) {
    const conform::Selection selection{filter_, dangerous_, slow_};
    std::size_t all = 0;
    for (const auto& suite : suites)
      all += static_cast<std::size_t>(std::ranges::count_if(
          suite->cases(), [&](const conform::Case& one) { return selection.has(one); }));
    if (all == 0) co_return not_begun(fmt::format("no case is called like '{}'", filter_));
    if (list_) co_return list(suites, selection);
    Narrator narrator(json_, verbose_, all);
    narrator_ = &narrator;
    std::string trouble;
    for (const auto& suite : suites) {
      std::string own = co_await conform::run(*suite, selection, run.loop, run.cancel, narrator);
      if (own.ends_with(kOtherMinor) && minor_ == "all")
        skip_all(*suite, selection, narrator);
      else if (trouble.find(own) == std::string::npos)
        trouble = conform::joined(std::move(trouble), own);
      if (run.cancel.cancelled()) break;
    }
    narrator.clear();
    narrator_ = nullptr;
    if (run.cancel.cancelled()) trouble = conform::joined("interrupted", trouble);
    co_return conclude(narrator.results(), where, trouble);
  }

  // A program that reads the report finds why no case was run, and not what an earlier run has
  // left.
  Exit not_begun(const std::string& trouble) const {
    return list_ ? failed(trouble) : conclude({}, host_, trouble);
  }
  Exit not_begun(const Error& error) const {
    const bool misuse = error.kind == Error::Kind::Url || error.sentence.empty();
    if (list_ || misuse) return failed(error);
    return not_begun(error.cancelled() ? "interrupted" : explained(error));
  }

  static void skip_all(const conform::Suite& suite, const conform::Selection& selection,
                       Narrator& narrator) {
    for (const conform::Case& one : suite.cases())
      if (selection.has(one) && one.listed.empty())
        narrator.on_result(
            {one.title, conform::Verdict::skip("the server does not offer this minor version"), 0});
  }

  Exit conclude(const std::vector<conform::Result>& results, const std::string& where,
                const std::string& trouble) const {
    const conform::Counts counts = conform::count(results);
    if (json_)
      put("{}", conform::json(where, results, trouble));
    else
      put("{}: {} passed, {} failed, {} skipped, {} listed\n", where, counts.pass, counts.fail,
          counts.skipped, counts.listed);
    if (!junit_.empty() && !written(junit_, conform::junit(results, trouble)))
      return failed(fmt::format("cannot write '{}'", junit_));
    if (!trouble.empty()) return failed(trouble);
    return counts.fail == 0 ? Exit::Done : Exit::Failed;
  }

  static bool written(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    return !file.fail();
  }

  static Exit list(const Suites& suites, const conform::Selection& selection) {
    for (const auto& suite : suites)
      for (const conform::Case& one : suite->cases()) {
        if (!selection.has(one)) continue;
        put("{} ({}){}{}\n", one.title.full(), one.title.section,
            one.listed.empty() ? "" : ": listed, ", one.listed);
      }
    return Exit::Done;
  }

  RemoteOptions remote_{.timeout = 10};
  std::string suite_, host_;
  std::string export_, filter_ = "*", junit_, minor_ = "all";
  bool list_ = false, dangerous_ = false, slow_ = false, verbose_ = false, json_ = false;
  Narrator* narrator_ = nullptr;  // while cases run
  std::vector<std::string> path_;
  rpc::Credentials credentials_;
  std::string label_;
};

}  // namespace

std::unique_ptr<Command> make_conform() {
  return std::make_unique<Conform>();
}

}  // namespace stag::cli
