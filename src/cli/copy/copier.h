// Copier: copies files and trees from one CopyEndpoint to another, several files at a time. A file
// that fails is reported and skipped; the copy goes on, unless the reason would fail every file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/task_group.h"
#include "cli/copy/copy_endpoint.h"
#include "cli/support/descent.h"

namespace stag::cli {

struct CopyOptions {
  bool recursive = false;
  bool preserve = false;            // owner, mode and times
  std::size_t files_in_flight = 8;  // each with several blocks in flight
  std::uint32_t mask = 022;         // umask for modes that are not preserved
  bool one_server =
      false;  // source and destination are on one server, so that their handles can be compared
  // A source with more files and directories than this is taken to be endless, and the copy fails.
  // Zero: no limit.
  std::uint64_t max_entries = 0;
};

class Copier {
 public:
  using Complain = std::function<void(const std::string& sentence)>;
  // All outlive the Task.
  Copier(Run& run, CopyEndpoint& from, CopyEndpoint& to, const CopyOptions& options,
         Progress& progress, Complain complain);

  // Copies the object `source` to `destination`: into it, as `name`, if that is a directory, else
  // to exactly that path. With an empty `name` the entries of `source` go into that directory.
  Task<void> copy(std::string source, std::string name, std::string destination);
  // Awaits the transfers in flight and gives directories their final modes and times. Called once,
  // at the end.
  Task<void> complete();

  bool all_well() const { return failures_ == 0; }

 private:
  struct Target {
    CopyObject directory;
    std::string name;                      // empty: the contents go into `directory` itself
    std::optional<CopyObject> existing{};  // the object that has that name now
  };
  struct Finished {
    CopyObject directory;
    Finish finish;
  };

  Task<Outcome<Target>> target_of(const CopyObject& source, std::string name,
                                  std::string destination);
  Task<Outcome<Target>> inside(CopyObject directory, std::string name);
  Task<void> copy_object(CopyObject source, Target target);
  // Whether one more object is within the limit of entries.
  bool count(const CopyObject& found);
  // `fresh`: nothing can be in the directory yet.
  Task<void> copy_member(CopyObject directory, Member member, bool fresh);
  Task<void> copy_directory(CopyObject source, Target target);
  void finish_later(const CopyObject& source, const CopyObject& directory, bool fresh);
  std::uint32_t filling_mode(const CopyObject& source) const;
  Task<Outcome<CopyObject>> directory_for(const CopyObject& source, const Target& target);
  bool is_copy(const CopyObject& source) const;
  Task<void> copy_symlink(CopyObject source, Target target);
  Task<void> copy_file(CopyObject source, Target target);
  Task<Outcome<Ok>> move_file(const CopyObject& source, const Target& target);
  Task<Outcome<Ok>> filled_and_published(const CopyObject& source, TempFile& temp_file);

  Finish finish_of(const CopyObject& source, const std::optional<CopyObject>& existing) const;
  void fail(const std::string& path, const nfs::client::Error& error);
  void fail(const std::string& path, const std::string& why);
  bool stopped() const { return hopeless_ || endless_ || run_.cancel.cancelled(); }

  Run& run_;
  CopyEndpoint& from_;
  CopyEndpoint& to_;
  const CopyOptions options_;
  Progress& progress_;
  const Complain complain_;
  TaskGroup files_;
  Descent descent_;
  std::vector<Finished> finished_;  // parents before their entries
  std::optional<CopyObject> root_;  // the first directory that was copied to
  std::uint64_t entries_ = 0;       // that were found in directories
  std::uint64_t kept_bytes_ = 0;    // of paths, in finished_
  std::size_t failures_ = 0;
  bool hopeless_ = false;
  bool endless_ = false;
};

// The last component of `path`, without trailing '/'; empty for "/", "." and "..".
std::string base_name(const std::string& path);

}  // namespace stag::cli
