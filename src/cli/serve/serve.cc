#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <new>
#include <optional>

#include "base/failure.h"
#include "base/reason.h"
#include "cli/commands.h"
#include "cli/serve/announcement.h"
#include "cli/serve/child_report.h"
#include "cli/serve/control.h"
#include "cli/serve/copy_sources.h"
#include "cli/serve/departure.h"
#include "cli/serve/device_ports.h"
#include "cli/serve/drain.h"
#include "cli/serve/hand_over.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/listeners.h"
#include "cli/serve/loop_watch.h"
#include "cli/serve/observing.h"
#include "cli/serve/preflight.h"
#include "cli/serve/process.h"
#include "cli/serve/refreshing.h"
#include "cli/serve/service_manager.h"
#include "cli/serve/services.h"
#include "cli/support/escape.h"
#include "cli/support/log.h"
#include "cli/support/output.h"
#include "net/open_files.h"
#include "net/signals.h"

namespace stag::cli {
namespace {

// A predecessor that its time limit ends has the lock up to that moment, and then takes some more.
constexpr Duration kMargin = std::chrono::seconds(10);

// For the service manager, where systemd takes no notice of a message above 4096 bytes, be it only
// its status that is so long.
constexpr std::size_t kMost = 1000;

std::string status_of(const ExportSet& exports) {
  const std::vector<ExportLine> lines = exports.lines();
  std::string names;
  for (const ExportLine& line : lines) {
    const std::string name = escaped(line.path);
    if (names.size() + name.size() > kMost)
      return fmt::format("Serving {} exports:{} ...", lines.size(), names);
    names += ' ' + name;
  }
  return "Serving" + names;
}

std::string status_of(const ExportSet& exports, const Result<Ok, std::string>& reloaded) {
  if (reloaded) return status_of(exports);
  const std::string_view why = reloaded.error();
  return fmt::format("The last reload failed: {}; {}", escaped(why.substr(0, kMost)),
                     status_of(exports));
}

// As complain() prints a sentence, which had no terminal before it.
std::string for_terminal(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text += escaped(lines.substr(0, end)) + '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

class Serve final : public Command {
 public:
  About about() const override {
    return {"serve", "export folders, or memory, over RPC-over-RDMA and TCP",
            "  stag serve --export /data=/srv/data,ro --export /scratch=memory\n"
            "  stag serve --config /etc/stag/stag.toml\n"};
  }
  void declare(Arguments& arguments) override { options_.declare(arguments); }
  ConfigFile* config_file() override { return &options_.config; }
  Exit run() override;

 private:
  // nullopt: no server answers at any place.
  Result<std::optional<TakeOver>, std::string> ask_predecessor() const;
  // The lock of the state directory, of which a predecessor lets go when it has ended. It serves on
  // if anything is in the way that preflight() finds.
  Result<StateLock, ExportSet::Trouble> take_state(const std::vector<ExportLine>& lines,
                                                   StoreWatch& stores);
  // The error is one sentence.
  Result<Ok, std::string> enough_to_serve(std::size_t exports) const;
  // --check.
  Exit check(StoreWatch& stores) const;
  // In a process of its own: a folder that hangs may keep it.
  Exit check_here(const Result<std::vector<ExportsText>, std::string>& texts,
                  StoreWatch& stores) const;
  // Closes what others have passed and no listener wants: it may be in the way of one.
  Result<Ok, std::string> close_unclaimed_sockets();
  // From the exports to the end of the last call. Calls `leave` before it waits for that.
  Exit serve(StoreWatch& stores, std::vector<ExportLine> lines, const std::function<void()>& leave);
  // Until a signal or a command ends it.
  void serve(net::EpollLoop& loop, Services& services, const Listeners& listeners);
  Result<Ok, std::string> listen(Observing& observing, Listeners& listeners,
                                 const ExportLine& first);
  // What serves, and ends in turn.
  struct Running {
    net::EpollLoop& loop;
    Services& services;
    Listeners& listeners;
    Refreshing& refreshing;
    std::unique_ptr<Control>& control;
  };
  void end(const Running& running);
  CopySources::Fabric copy_fabric() const { return {options_.uses_devices(), options_.device}; }
  // What version 4 does without being called.
  void start(net::EpollLoop& loop, nfs::nfs4::Nfs4Server& nfs4, rpc::Connector& connector,
             CopySources& sources) const;
  // Finishes the Calls in progress and begins no other.
  void drain(net::EpollLoop& loop, Services& services);
  static void ignore_statistics_signals();
  static void wind_up(net::EpollLoop& loop, nfs::nfs4::Nfs4Server& nfs4);
  void on_signal(int signal, net::EpollLoop& loop, Refreshing& refreshing);
  void told_ready(const ExportSet& exports, const Result<Ok, std::string>& reloaded);
  void begin_log() const { start_log(options_.log_level, options_.log_form()); }
  // That SIGHUP reads again.
  bool has_files() const { return options_.config.given() || options_.exports_are_in_file(); }
  Exit refused(const ExportSet::Trouble& trouble) const {
    complain(trouble.sentence);
    return trouble.exit;
  }
  // How long the end may take.
  Duration limit() const { return std::chrono::seconds(drain_ + options_.store_patience); }

  ServeOptions options_;
  std::optional<CopyFromHosts> copy_hosts_;
  std::atomic<std::uint32_t> drain_ = 0;  // seconds; a reload changes it on its thread
  ServiceManager manager_{"", std::nullopt};
  ServedSockets sockets_;
  std::optional<DevicePorts> ports_;  // of a successor, until its listeners have them
  Drain* draining_ = nullptr;         // on the loop
};

Exit Serve::run() {
  if (const auto checked = options_.check(); !checked) return misused(checked.error());
  drain_ = options_.drain;
  StoreWatch stores{std::chrono::seconds(options_.store_patience), options_.limits.waiting_bytes()};
  if (options_.check_only) return check(stores);
  // A start may take minutes, and what has changed by then is read when it serves.
  if (has_files()) net::hold_signal(SIGHUP);
  Result<std::vector<ExportLine>, ExportSet::Trouble> lines =
      options_.read_exports(options_.config.at_begin());
  if (!lines) return refused(lines.error());
  ask_for_hosts(*lines);
  begin_log();
  copy_hosts_.emplace(options_.copy_from.line());
  manager_ = ServiceManager::from_environment();
  raise_open_files_limit();
  sockets_.inherit(net::sockets_from_service_manager());
  std::optional<StateLock> held;
  if (const auto enough = enough_to_serve(lines->size()); !enough) return failed(enough.error());
  const auto complain_of_stores = [&] {
    const std::string busy = stores.busy();
    offer_error("stag serve: ends before the last calls have" +
                (busy.empty() ? "" : ": no answer from the file system below " + escaped(busy)));
  };
  // A successor begins when the lock is free, maybe before this process is gone.
  std::optional<Departure> departure(std::in_place, complain_of_stores, [&] { held.reset(); });
  const auto leave = [&] { departure->begin(limit()); };
  auto taken = take_state(*lines, stores);
  if (taken) held.emplace(*std::move(taken));
  const Exit exit = taken ? serve(stores, *std::move(lines), leave) : refused(taken.error());
  leave();
  stores.finish();
  departure.reset();
  return exit;
}

Result<Ok, std::string> Serve::enough_to_serve(std::size_t exports) const {
  // A service manager tries again, because that may come late at boot.
  if (exports == 0)
    return Failure{std::string(
        "nothing to serve yet: all exports have mp, and wait for what is mounted there")};
  const std::uint64_t needed = open_files_needed(options_.loops, exports);
  if (net::open_files_limit() >= needed) return Ok{};
  return Failure{
      fmt::format("this process may open {} files, and {} are needed; raise the limit "
                  "(LimitNOFILE=, ulimit -Hn)",
                  net::open_files_limit(), needed)};
}

Exit Serve::check(StoreWatch& stores) const {
  Result<std::vector<ExportsText>, std::string> texts = std::vector<ExportsText>();
  const auto report = report_of_child(
      // The file may be one that is open here, as /dev/stdin is.
      [&] { texts = options_.read_exports_files(); },
      [&] {
        const Exit exit = check_here(texts, stores);
        return ChildEnd{exit, !stores.busy().empty()};
      });
  if (!report) return failed(report.error());
  write_error(::isatty(STDERR_FILENO) == 1 ? for_terminal(report->text) : report->text);
  return report->exit;
}

Exit Serve::check_here(const Result<std::vector<ExportsText>, std::string>& texts,
                       StoreWatch& stores) const {
  const auto lines = options_.exports(options_.config.at_begin(), texts);
  if (!lines) return refused(lines.error());
  begin_log();
  raise_open_files_limit();
  const auto checked = check_configuration(options_, *lines, stores);
  return checked ? Exit::Done : refused(checked.error());
}

Result<std::optional<TakeOver>, std::string> Serve::ask_predecessor() const {
  for (const std::string& place : Control::places(options_.control, options_.state)) {
    auto asked = TakeOver::ask(place, options_.state);
    if (!asked || *asked) return asked;
  }
  return std::optional<TakeOver>();
}

Result<StateLock, ExportSet::Trouble> Serve::take_state(const std::vector<ExportLine>& lines,
                                                        StoreWatch& stores) {
  std::optional<TakeOver> predecessor;
  if (options_.take_over) {
    auto asked = ask_predecessor();
    if (!asked) return Failure{ExportSet::Trouble{asked.error()}};
    predecessor = *std::move(asked);
  }
  Duration wait{};
  if (predecessor) {
    sockets_.inherit(predecessor->take_sockets());
    if (options_.uses_devices()) ports_.emplace(options_, Listeners::make_loops(options_));
    const auto ready =
        preflight(options_, lines, stores, {sockets_, ports_ ? &*ports_ : nullptr, *predecessor});
    if (!ready) return Failure{ready.error()};
    wait = predecessor->go() + kMargin;
  }
  // Another directory is no way out of it: clients' handles are good with this one only.
  std::string if_in_use = "it may be ending: wait for that";
  if (!options_.take_over)
    if_in_use += ", or replace it by --take-over (a second server has a --state of its own)";
  else if (!predecessor)
    if_in_use += fmt::format(" (--take-over: no server answers at {})",
                             fmt::join(Control::places(options_.control, options_.state), " or "));
  const auto meanwhile = [this] {
    if (ports_) ports_->listen_where_free();
  };
  auto lock = StateLock::take(options_.state, wait, if_in_use, meanwhile);
  if (lock && predecessor) meanwhile();
  if (lock) return *std::move(lock);
  return Failure{ExportSet::Trouble{lock.error()}};
}

Result<Ok, std::string> Serve::close_unclaimed_sockets() {
  if (const auto claimed = Listeners::claim(options_, sockets_); !claimed) return claimed;
  const std::vector<std::string> closed = sockets_.close_unclaimed();
  for (const std::string& address : closed) log_notice(Event::InheritedSocketUnused, address);
  // Its copies would go on listening. It gets all that there are when the server is ready.
  if (!closed.empty()) manager_.keep({});
  return Ok{};
}

// Other servers log statistics on these signals; an operator who tries that must not end this one.
void Serve::ignore_statistics_signals() {
  for (const int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
}

Exit Serve::serve(StoreWatch& stores, std::vector<ExportLine> lines,
                  const std::function<void()>& leave) {
  net::EpollLoop loop;
  const ExportLine first = lines.front();
  const auto services = Services::open(options_, stores, std::move(lines));
  if (!services) return refused(services.error());
  ExportSet& exports = (*services)->exports();
  HandOver hand_over(
      sockets_, (*services)->observing(), options_.state, [this] { return limit(); },
      [&loop] { loop.post([&loop] { loop.stop(); }); });
  const auto tap = std::make_shared<fabric::capture::Tap>();
  auto control = Control::open(options_.control, options_.state, **services, hand_over, tap);
  if (!control) return failed(control.error());
  fmt::print("{}", announcement(exports.lines(), options_.hosts));
  ignore_statistics_signals();
  // Before the ready line is printed.
  const StoreRounds rounds(
      loop, [&] { stores.look(loop.now()); }, [&] { (*services)->close_unused(); });
  Listeners listeners(options_, (*services)->server(), sockets_, tap);
  Refreshing refreshing(
      loop, options_,
      {.services = **services,
       .copy_hosts = *copy_hosts_,
       .begin = [&] { manager_.reloading(); },
       .take_on =
           [&](const ServeOptions& now) {
             listeners.change(now);
             (*services)->change(now);
             drain_ = now.drain;
             copy_hosts_->replace(now.copy_from.line());
           },
       .done = [&](const Result<Ok, std::string>& reloaded) { told_ready(exports, reloaded); }});
  const std::initializer_list<int> none{}, reload{SIGHUP};
  const net::SignalWatch watch(
      loop, {SIGINT, SIGTERM, SIGHUP}, [&](int signal) { on_signal(signal, loop, refreshing); },
      has_files() ? reload : none);
  const auto connector = callback_connector(loop);
  CopySources sources(loop, *copy_hosts_, copy_fabric());
  if (options_.nfs4) start(loop, (*services)->nfs4(), *connector, sources);
  const Result<Ok, std::string> listening = listen((*services)->observing(), listeners, first);
  if (listening)
    serve(loop, **services, listeners);
  else
    complain(listening.error());
  leave();
  end({loop, **services, listeners, refreshing, *control});
  return listening ? Exit::Done : Exit::Failed;
}

Result<Ok, std::string> Serve::listen(Observing& observing, Listeners& listeners,
                                      const ExportLine& first) {
  if (auto started = observing.start_metrics(); !started) return started;
  if (auto closed = close_unclaimed_sockets(); !closed) return closed;
  const auto opened = listeners.open(first, ports_ ? &*ports_ : nullptr);
  ports_.reset();
  return opened;
}

void Serve::end(const Running& running) {
  net::EpollLoop& loop = running.loop;
  nfs::nfs4::Nfs4Server& nfs4 = running.services.nfs4();
  running.refreshing.end();
  manager_.stopping("Finishing the calls in progress", limit());
  nfs4.stop_copies_from_servers();
  // A successor that has copies of the sockets goes on listening.
  sockets_.close();
  running.listeners.stop_accepting();
  drain(loop, running.services);
  if (running.control != nullptr) running.control->stop();
  wind_up(loop, nfs4);
  // It uses all that goes now.
  running.refreshing.wait();
  running.listeners.close();
  nfs4.stop_callbacks();
  running.services.remove_idle_records();
  // Last: it waits for what an administrator has asked for.
  running.control = nullptr;
  running.services.observing().stop_metrics();
}

void Serve::start(net::EpollLoop& loop, nfs::nfs4::Nfs4Server& nfs4, rpc::Connector& connector,
                  CopySources& sources) const {
  nfs4.watch_leases(loop);
  if (options_.callbacks.wanted()) nfs4.start_callbacks(loop, &connector, &sources);
}

void Serve::serve(net::EpollLoop& loop, Services& services, const Listeners& listeners) {
  services.locking().start();
  std::optional<LoopWatch> watch;
  if (manager_.watchdog()) {
    std::vector<Loop*> loops = listeners.loops();
    loops.push_back(&services.locking().loop());
    // Three chances: one report that is late is no alarm.
    watch.emplace(loop, std::move(loops), *manager_.watchdog() / 3, [this] { manager_.alive(); });
  }
  manager_.ready(status_of(services.exports()));
  manager_.keep(sockets_.copies());
  loop.run();
}

// The service manager waits for it, whatever there is no memory to say with it.
void Serve::told_ready(const ExportSet& exports, const Result<Ok, std::string>& reloaded) {
  std::string status;
  try {
    status = status_of(exports, reloaded);
  } catch (const std::bad_alloc&) {
    trace_exception(Reason::TaskFailed, "reload");
  }
  manager_.ready(status);
}

void Serve::on_signal(int signal, net::EpollLoop& loop, Refreshing& refreshing) {
  if (signal == SIGHUP && has_files()) return refreshing.ask();
  if (draining_ != nullptr) return draining_->hurry();
  loop.stop();
}

void Serve::drain(net::EpollLoop& loop, Services& services) {
  rpc::Server& server = services.server();
  services.end_waits();
  bool drained = false;
  Drain drain(loop, server, std::chrono::seconds(drain_), [&] {
    drained = true;
    loop.stop();
  });
  draining_ = &drain;
  while (!drained) loop.run();
  draining_ = nullptr;
  if (const std::size_t left = server.active_calls(); left != 0)
    log_notice(Event::CallsUnfinished, {}, fmt::format("{} of them", left));
}

// While the files of what is in progress, and the connections to tell of it, are there.
void Serve::wind_up(net::EpollLoop& loop, nfs::nfs4::Nfs4Server& nfs4) {
  bool wound_up = false;
  nfs4.wind_up([&] {
    wound_up = true;
    loop.stop();
  });
  while (!wound_up) loop.run();
}

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace stag::cli
