// Reload: what `stag serve` does on SIGHUP: reads its configuration file again, changes what can be
// changed while it serves, and says of every other setting that is not as the server has it that it
// has to be started again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/observe/observation.h"
#include "cli/serve/export_set.h"
#include "cli/serve/options.h"

namespace stag::cli {

// The source that the log names for what comes of a reload.
inline constexpr std::string_view kReloadSource = "SIGHUP";

// Used on one thread at a time; blocks.
class Reload {
 public:
  // What of the server is changed.
  struct Running {
    ExportSet& exports;
    Observation& observation;
    // Takes on what Listeners::change() and Services::change() do, `drain` and `copy_from`.
    std::function<void(const ServeOptions&)> take_on;
  };
  // All outlive it. The server runs with `options`. When `ending` is requested, the reload does not
  // wait for the name service, and changes nothing.
  Reload(const ServeOptions& options, Running server, std::stop_token ending);
  // Fails with one sentence, and then nothing has changed.
  Result<Ok, std::string> operator()();

 private:
  Result<Ok, std::string> read_again();
  // By their keys.
  using Settings = std::map<std::string, Setting>;
  // What the command line says holds, and exports say themselves what has changed.
  Settings relevant(const std::vector<Setting>& all) const;
  struct Trial {
    std::unique_ptr<ServeOptions> options;
    std::map<std::string, std::string> values;  // as OptionValues has them
  };
  // What a start with these settings would be told. Fails, with one sentence, where it would.
  Result<Trial, std::string> try_out(const std::vector<Setting>& all) const;

  // The keys whose values are others than those that run, those that are gone among them. Another
  // spelling of a value, or of what is preset, is no other value.
  std::vector<std::string> changes(const Settings& settings, const Trial& now) const;
  // Takes on what can be, and says so; returns the other keys, which await a restart.
  std::vector<std::string> apply(const Settings& settings, const Trial& now);
  // Has the server do as `now` says of this key. False: it cannot while it runs.
  bool take_on(const std::string& key, const ServeOptions& now) const;
  // They stay as they were where it fails.
  Result<Ok, std::string> replace_exports(const std::vector<Setting>& settings) const;

  const ServeOptions& options_;
  const Running server_;
  const std::stop_token ending_;
  Settings running_;
  std::map<std::string, std::string> values_;  // that run, by all keys; as Trial::values
};

}  // namespace stag::cli
