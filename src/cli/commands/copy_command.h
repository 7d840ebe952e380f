// A command that copies from sources to a destination: `cp` and `sync`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/copy/copier.h"
#include "cli/copy/progress_line.h"
#include "cli/support/arguments.h"
#include "cli/support/remote.h"

namespace stag::cli {

class CopyCommand : public Command {
 protected:
  // --exclude, -j, -v, --max-entries, --stats, --json, and the options about the server.
  void declare_copying(Arguments& arguments);
  // Called by run(): misuse, if neither is a URL.
  std::optional<Exit> check_paths(const std::vector<std::string>& sources,
                                  const std::string& destination) const;
  // Copies them in the order given. Several sources need a directory as destination.
  Task<Exit> copy_all(Run& run, std::vector<std::string> sources, std::string destination);
  // Further figures, for --stats and --json.
  CopyOptions options_;
  // The contents of a directory go into the destination, not the directory itself.
  bool contents_only_ = false;

 private:
  // One end of the copy: remote, with its session, or local.
  struct End {
    std::unique_ptr<Remote> remote{};
    std::unique_ptr<CopyEndpoint> side{};
    std::string path{};
  };
  // The present sources, which are reached by one End: their files are in flight together.
  struct Stage {
    End from;
    std::unique_ptr<Copier> copier{};
  };
  struct Work;

  std::string_view left_behind() const override;
  Task<Outcome<End>> open(Run& run, std::string path, Progress& progress);
  static Task<Outcome<End>> open_device(Run& run, std::string path, Progress& progress);
  Task<Exit> copy_sources(Work& work);
  Task<Exit> begin_stage(Work& work, std::string source);
  Task<Exit> end_stage(Work& work);
  static Task<bool> is_export(const End& from, std::string path);
  // Where `source` is for the present Stage; nullopt: it needs another one.
  Task<std::optional<std::string>> path_in_stage(Work& work, std::string source);
  Task<Exit> check_destination(Work& work);
  Exit failed_by(const Run& run, const nfs::client::Error& error) const;
  void report(const Progress& progress, double seconds) const;
  void print_moved() const;

  rpc::rdma::TransferStats transfer_stats_;
  RemoteOptions remote_{.transfer_stats = &transfer_stats_};
  // Adds what the files of --exclude-from say to `excluded_`.
  std::optional<Exit> read_exclusions();

  std::vector<std::string> excluded_, exclusion_files_;
  std::uint32_t jobs_ = 8;
  // The same limit as that of `ls` and `rm -r` (decision 0013).
  std::uint64_t max_entries_ = nfs::client::Listing::kMostKept;
  bool verbose_ = false, stats_ = false, json_ = false;
};

}  // namespace stag::cli
