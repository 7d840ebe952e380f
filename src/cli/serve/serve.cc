#include <fmt/format.h>

#include <csignal>
#include <optional>

#include "base/reason.h"
#include "cli/commands.h"
#include "cli/serve/announcement.h"
#include "cli/serve/control.h"
#include "cli/serve/departure.h"
#include "cli/serve/listeners.h"
#include "cli/serve/options.h"
#include "cli/serve/process.h"
#include "cli/serve/reloads.h"
#include "cli/serve/services.h"
#include "cli/support/log.h"
#include "net/signals.h"

namespace stag::cli {
namespace {

class Serve final : public Command {
 public:
  About about() const override {
    return {"serve", "export folders, or memory, over RPC-over-RDMA and TCP",
            "  stag serve --export /data=/srv/data,ro --export /scratch=memory\n"
            "  stag serve --config /etc/stag.toml\n"};
  }
  void declare(Arguments& arguments) override { options_.declare(arguments); }
  ConfigFile* config_file() override { return &options_.config; }
  Exit run() override;

 private:
  // From the exports to the end of the last call. Calls `leave` before it waits for that.
  Exit serve(StoreWatch& stores, std::vector<ExportLine> lines, const std::function<void()>& leave);
  // On SIGHUP; blocks.
  void reload(ExportSet& exports) const;

  ServeOptions options_;
};

Exit Serve::run() {
  if (const auto checked = options_.check(); !checked) return misused(checked.error());
  Result<std::vector<ExportLine>, std::string> lines = options_.read_exports();
  if (!lines) return misused(lines.error());
  start_log(options_.log_level, options_.log_format == "json" ? LogFormat::Json : LogFormat::Text);
  raise_open_files_limit();
  Result<StateLock, std::string> lock = StateLock::take(options_.state);
  if (!lock) return failed(lock.error());
  std::optional<StateLock> held(*std::move(lock));
  StoreWatch stores{std::chrono::seconds(options_.store_patience), options_.limits.waiting_bytes()};
  std::optional<Departure> departure(std::in_place, [&] {
    const std::string busy = stores.busy();
    complain("ends before the last calls have" +
             (busy.empty() ? "" : ": no answer from the file system below " + busy));
    held.reset();
  });
  const auto leave = [&] { departure->begin(stores.patience()); };
  const Exit exit = serve(stores, *std::move(lines), leave);
  leave();
  stores.finish();
  departure.reset();
  return exit;
}

Exit Serve::serve(StoreWatch& stores, std::vector<ExportLine> lines,
                  const std::function<void()>& leave) {
  const ExportLine first = lines.front();
  const auto services = Services::open(options_, stores, std::move(lines));
  if (!services) {
    complain(services.error().sentence);
    return services.error().exit;
  }
  nfs::nfs4::Nfs4Server& nfs4 = (*services)->nfs4();
  auto control = Control::open(options_.control, options_.state, nfs4, (*services)->locking());
  if (!control) return failed(control.error());
  fmt::print("{}", announcement((*services)->exports().lines(), options_.hosts));
  // Other servers log statistics on these signals; an operator who tries that must not end this
  // one.
  for (const int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  // Before the ready line is printed.
  net::EpollLoop loop;
  const StoreRounds rounds(loop, stores);
  Reloads reloads(loop, [&] { reload((*services)->exports()); });
  const net::SignalWatch watch(loop, {SIGINT, SIGTERM, SIGHUP}, [&](int signal) {
    if (signal == SIGHUP && options_.exports_are_in_file())
      reloads.ask();
    else
      loop.stop();
  });
  const auto connector = callback_connector(loop);
  if (options_.nfs4 && options_.callbacks.wanted()) nfs4.start_callbacks(loop, connector.get());
  Listeners listeners(options_, (*services)->server());
  const auto listening = listeners.open(first);
  if (listening) {
    (*services)->locking().start();
    loop.run();
  } else {
    complain(listening.error());
  }
  leave();
  *control = nullptr;
  // While their files and the connections to tell of them are there.
  bool wound_up = false;
  nfs4.wind_up([&] {
    wound_up = true;
    loop.stop();
  });
  while (!wound_up) loop.run();
  listeners.close();
  nfs4.stop_callbacks();
  (*services)->recovery().drain();
  return listening ? Exit::Done : Exit::Failed;
}

void Serve::reload(ExportSet& exports) const {
  Result<std::vector<ExportLine>, std::string> lines = options_.read_exports();
  if (!lines) return trace(Reason::ExportsReloadFailed, "SIGHUP", lines.error());
  if (const std::string why = options_.kerberos.obstacle(*lines); !why.empty())
    return trace(Reason::ExportsReloadFailed, "SIGHUP", why);
  const auto replaced = exports.replace(*std::move(lines));
  if (!replaced) return trace(Reason::ExportsReloadFailed, "SIGHUP", replaced.error().sentence);
  trace(Reason::NfsExportsChanged, "SIGHUP", *replaced);
  fmt::print("exports: {}\n", *replaced);
  std::fflush(stdout);
}

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace stag::cli
