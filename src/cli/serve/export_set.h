// The exports of a running `stag serve`: from what the operator wrote to file systems that are
// served, and to others when he has written something else.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/serve/export_line.h"
#include "cli/serve/store_watch.h"
#include "cli/support/command.h"
#include "nfs/server/server.h"

namespace stag::cli {

// Used on one thread at a time; blocks, for each folder no longer than the stores' patience.
class ExportSet {
 public:
  // `nfs` and `stores` outlive it. Tables that file systems need are kept in `state_directory`.
  ExportSet(nfs::NfsServer& nfs, StoreWatch& stores, std::string state_directory)
      : nfs_(nfs), stores_(stores), state_directory_(std::move(state_directory)) {}

  struct Trouble {
    std::string sentence;
    Exit exit = Exit::Failed;
  };
  // Serves these and no others from now on. An export that was there already with the same folder
  // stays the same file system, so that clients go on with their handles and cookies; so does one
  // whose folder does not answer. Yields what
  // has changed, in words. On failure nothing changes.
  Result<std::string, Trouble> replace(std::vector<ExportLine> lines);

  std::vector<ExportLine> lines() const;

 private:
  struct ServedExport {
    ExportLine line;
    std::shared_ptr<vfs::FileSystem> files;
    dev_t device = 0;                  // of the folder
    std::vector<std::string> names{};  // of the folder, for nfs::ExportSpec::folders
  };

  static Result<Ok, Trouble> check(const std::vector<ExportLine>& lines);
  Result<ServedExport, std::string> serve(ExportLine line) const;
  Result<ServedExport, std::string> serve_memory(ExportLine line) const;
  Result<ServedExport, std::string> serve_folder(ExportLine line) const;
  // Null unless it was there before on the same folder and terms that make its file system.
  const ServedExport* same(const ExportLine& line) const;
  const ServedExport* find(const std::string& path) const;
  std::string difference(const std::vector<ServedExport>& next) const;

  nfs::NfsServer& nfs_;
  StoreWatch& stores_;
  std::string state_directory_;
  std::vector<ServedExport> served_;
};

}  // namespace stag::cli
