// ExportSet: the exports of a running `stag serve`, opened from the operator's configuration and
// replaced when the configuration is reloaded.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/serve/ceph_export.h"
#include "cli/serve/export_line.h"
#include "cli/serve/host_lookup.h"
#include "cli/serve/host_names.h"
#include "cli/serve/shown_export.h"
#include "cli/serve/store_watch.h"
#include "cli/support/command.h"
#include "nfs/server/server.h"

namespace stag::cli {

// What keeps clients from a folder that can be opened.
struct FolderDoubts {
  bool closed = false;        // to the user as whom everything is done
  std::string unserved_file;  // vfs::posix::file_of_another_device()
};

// Used on one thread at a time; blocks, for all folders no longer than the stores' patience, unless
// one hangs that has answered a moment before.
class ExportSet {
 public:
  // `nfs` and `stores` outlive it. Tables that file systems need are kept in `state_directory`.
  ExportSet(nfs::NfsServer& nfs, StoreWatch& stores, std::string state_directory)
      : nfs_(nfs), stores_(stores), state_directory_(std::move(state_directory)) {}

  struct Trouble {
    std::string sentence;
    Exit exit = Exit::Failed;
  };
  // Serves exactly these exports from now on. An export with the same folder as before keeps its
  // file system, so that file handles and cookies stay valid; so does one whose folder does not
  // answer. Clients that are admitted by their names are looked up anew at their next call; of a
  // host without addresses those hold that the export served before has for it. Yields a
  // description of the changes. On failure nothing changes.
  Result<std::string, Trouble> replace(std::vector<ExportLine> lines);
  // Whether a server that starts could serve these exports, as far as can be tried without the
  // state directory, which another server may have, and without a mount of CephFS. Yields a
  // sentence for each of which nobody can tell, because its folder does not answer. Blocks
  // likewise.
  static Result<std::vector<std::string>, Trouble> rehearse(const std::vector<ExportLine>& lines,
                                                            StoreWatch& stores,
                                                            const std::string& state_directory);

  // Those that the name service does not know now.
  std::set<std::string> late_hosts() const;
  // Admits the hosts that have become known (cli/serve/late_hosts.h), and changes nothing else:
  // what has become of the folders is for a reload. A failure is logged.
  void take(const HostAnswers& answers);

  std::vector<ExportLine> lines() const;
  // What is served now. Any thread.
  ShownExports shown() const {
    const std::lock_guard lock(shown_mutex_);
    return shown_;
  }

 private:
  struct ServedExport {
    ExportLine line;
    std::shared_ptr<vfs::FileSystem> files;
    dev_t device = 0;                  // of the folder
    std::vector<std::string> names{};  // of the folder, for nfs::ExportSpec::folders
    FolderDoubts doubts{};
  };

  // Folders that do not answer, by the paths of their exports.
  using Silent = std::set<std::string>;
  Result<ServedExport, std::string> serve(ExportLine line, const Silent& silent) const;
  Result<ServedExport, std::string> serve_memory(ExportLine line) const;
  Result<ServedExport, std::string> serve_ceph(ExportLine line) const;
  Result<ServedExport, std::string> serve_folder(ExportLine line, const Silent& silent) const;
  // Null unless it was there before on the same folder and terms that make its file system.
  const ServedExport* same(const ExportLine& line) const;
  const ServedExport* find(const std::string& path) const;
  bool would_end_mount(const std::string& path, const CephPlace& next) const;
  void log_doubtful() const;
  std::string difference(const std::vector<ServedExport>& next) const;
  // Serves these from now on, or goes on as before.
  Result<Ok, Trouble> publish(std::vector<ServedExport> next);

  nfs::NfsServer& nfs_;
  StoreWatch& stores_;
  mutable CephAttempts ceph_attempts_;
  std::string state_directory_;
  const std::shared_ptr<nfs::ClientNames> names_ = system_client_names();
  std::vector<ServedExport> served_;
  mutable std::mutex shown_mutex_;
  ShownExports shown_ = std::make_shared<const std::vector<ShownExport>>();
};

}  // namespace stag::cli
