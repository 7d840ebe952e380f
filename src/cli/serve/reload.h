// Reload: what `stag serve` does on SIGHUP: reads its configuration file again, changes what can be
// changed while it serves, and says of every other setting that it has to be started again.
#pragma once

#include <map>
#include <string>

#include "cli/serve/export_set.h"
#include "cli/serve/options.h"

namespace stag::cli {

// Used on one thread at a time; blocks.
class Reload {
 public:
  // Both outlive it. The file's settings are taken as they are now.
  Reload(const ServeOptions& options, ExportSet& exports);
  void operator()();

 private:
  // By their keys, as one text each.
  using Settings = std::map<std::string, std::string>;
  static Result<Settings, std::string> settings_of(const ConfigFile& file);

  // `value` empty: the file does not say it any more.
  void apply(const std::string& key, const std::string& value) const;
  // False: they stay as they were, and the log says why.
  bool replace_exports() const;

  const ServeOptions& options_;
  ExportSet& exports_;
  Settings in_file_;
};

}  // namespace stag::cli
