// Copier: copies files and trees from one CopyEndpoint to another, several files at a time. A file
// that fails is reported and skipped; the copy goes on, unless the reason would fail every file.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/task_group.h"
#include "cli/copy/copy_endpoint.h"
#include "cli/copy/exclusion.h"
#include "cli/copy/folded_name.h"
#include "cli/copy/remover.h"
#include "cli/support/descent.h"

namespace stag::cli {

// What a copy has of its source.
struct Preserve {
  bool mode = false, owner = false, times = false;
  bool links = false;  // names of one file are names of one file again
  ExtraKinds extras{};
  ExtraKinds required{};  // of these: a side that has none of the kind is a failure
};

// When a file that is there already is taken for the copy.
enum class Same : std::uint8_t { Never, SizeAndTime, Content };

// Paths in the destination, behind what is folded of them.
using JustMade = std::set<std::pair<std::string, std::string>>;

struct CopyOptions {
  bool recursive = false;
  bool directories = false;  // sources are directories, or links to them
  bool specials = false;     // devices, sockets and FIFOs are made anew
  Preserve preserve{};
  bool keep_existing = false;       // nothing that is there is replaced
  bool newer_only = false;          // nothing that is as new as its source is replaced
  Same same = Same::Never;          // what is the same is not copied again
  std::uint32_t modify_window = 0;  // seconds that times may differ by, and are the same
  bool in_place = false;            // files have their names from the start
  // A file with several names is replaced under the one that is copied to, and is not written in
  // place: the others stay what they are.
  bool replace_linked = false;
  bool go_on = false;                     // what is there of a file is its beginning, in place
  bool remove_others = false;             // what is in a directory that its source does not have
  std::uint64_t max_delete = UINT64_MAX;  // of what is removed for that
  bool dry_run = false;                   // nothing is changed
  Exclusion exclusion{};
  std::size_t files_in_flight = 8;  // each with several blocks in flight
  std::uint32_t mask = 022;         // umask for modes that are not preserved
  bool one_server =
      false;  // source and destination are on one server, so that their handles can be compared
  // A source with more files and directories than this is taken to be endless, and the copy fails.
  // Zero: no limit.
  std::uint64_t max_entries = 0;
  // Where sources may have one name: what this run has made of them, which no later one replaces,
  // as with cp(1). Outlives the Copier.
  JustMade* just_made = nullptr;
  std::string outside_exports{};  // why the destination is read-only; empty: as it says
};

class Copier {
 public:
  using Complain = std::function<void(const std::string& sentence)>;
  // Is told of each file, symbolic link and special file that was copied, each directory that was
  // made, and what is there and gets another mode or time, from where and to where, or of what was
  // removed: `from` is empty then.
  using Announce = std::function<void(const std::string& from, const std::string& to)>;
  struct Target {
    CopyObject directory;
    std::string name;                      // empty: the contents go into `directory` itself
    std::optional<CopyObject> existing{};  // the object that has that name now
  };
  // The name that the further ones become links to.
  struct FirstName {
    Target target;         // without what was replaced
    bool is_copy = false;  // this run has made it one, or found it the same
  };
  using FileId = std::pair<std::uint64_t, std::uint64_t>;  // fsid and file_id
  // Of the files with several names of one server, or of this machine.
  using FirstNames = std::map<FileId, FirstName>;
  // All outlive the Task. `first_names` are those of `from`, of earlier Copiers to `to`, too.
  // `announce` may be empty.
  Copier(Run& run, CopyEndpoint& from, CopyEndpoint& to, const CopyOptions& options,
         FirstNames& first_names, Progress& progress, Complain complain, Announce announce = {});

  // Copies the object `source` to `destination`: into it, as `name`, if that is a directory, else
  // to exactly that path. With an empty `name` the entries of `source` go into that directory.
  // Files may be in flight when it ends: one of Progress::unlisted is less then.
  Task<void> copy(std::string source, std::string name, std::string destination);
  // co_await settled(): suspends until no file is in flight. For whoever cannot call complete(): it
  // takes no memory.
  auto settled() { return files_.join(); }
  // Awaits the transfers in flight, makes hard links, and gives directories their final modes and
  // times. Called at the end.
  Task<void> complete();

  bool all_well() const { return failures_ == 0; }

 private:
  struct Finished {
    CopyObject directory;
    Finish finish;
    std::optional<CopyObject> source{};  // where its Extras are
    bool fresh = false;                  // this run has made it
  };

  // A further name of a file of several links.
  struct Link {
    CopyObject source;
    Target target;
  };
  // By what a file was written in place.
  struct Claim {
    FileId source;
    std::string path;  // of the file that was written
  };

  // Whether something of an earlier source may have the same name in the destination.
  bool may_collide(const std::string& name);
  Task<void> counted(Task<void> copying);
  Task<void> copy_source(std::string source, std::string name, std::string destination);
  Task<void> copy_named_file(CopyObject source, std::string name, std::string destination);
  Task<Outcome<std::optional<CopyObject>>> find_destination(std::string path);
  Task<Outcome<Target>> target_of(const CopyObject& source, std::string name,
                                  std::string destination);
  Task<Outcome<Target>> inside(CopyObject directory, std::string name);
  Task<void> copy_object(CopyObject source, Target target);
  // Whether one more object is within the limit of entries.
  bool count(const CopyObject& found);
  bool excluded(std::string_view path, Kind kind) const;
  // Whether the file is another name of one that is copied already: that is a link then.
  bool is_further_name(const CopyObject& source, const Target& target);
  // `fresh`: nothing can be in the directory yet. `alike`: earlier names in it that the destination
  // may take for the same.
  Task<void> copy_member(CopyObject directory, Member member, bool fresh,
                         std::vector<std::string> alike);
  // Fails where `name` stands in `directory` for what one of `alike` stands for.
  Task<Outcome<Ok>> check_own_name(CopyObject directory, std::string name,
                                   std::vector<std::string> alike);
  // Whether both are one object because `directory` takes the names for one.
  Task<Outcome<bool>> is_one_name(CopyObject directory, const CopyObject& object, std::string name,
                                  const std::optional<CopyObject>& other, std::string other_name);
  // Whether the listing of `directory` has both names.
  Task<Outcome<bool>> lists_both(CopyObject directory, std::string one, std::string other);
  // Suspends until what was begun has its name.
  Task<void> settle_names();
  Task<void> make_links();
  Task<void> copy_directory(CopyObject source, Target target);
  // Whether this run copies to `directory`, whose end is in complete().
  bool made_here(const CopyObject& directory) const;
  // Whether what is of another kind at `target` could be replaced by a copy of `source`; false
  // where it is told why not.
  Task<Outcome<bool>> can_be_had(const CopyObject& source, const Target& target);
  // The same of a device, socket or FIFO.
  Task<Outcome<bool>> can_be_made(const CopyObject& source, const Target& target);
  // Removes what stands at `target` if it is of another kind; false: it is still there.
  Task<bool> clear(const CopyObject& source, Target& target);
  // The names of one directory of the source.
  struct SourceNames {
    std::set<std::string> all;
    std::set<std::string> excluded;
    NameGroups groups;  // of `all`
  };
  Task<void> remove_others(const CopyObject& source, CopyObject directory, SourceNames names);
  // The names of the source by those of `listed`, which is in `directory`, that stand for the same
  // objects in another spelling.
  using OtherSpellings = std::map<std::string, std::string>;
  Task<Outcome<OtherSpellings>> other_spellings(CopyObject directory, const SourceNames& names,
                                                const std::vector<Member>& listed);
  // Gives what is called `name` the spelling of the source.
  Task<Outcome<Ok>> respell(CopyObject directory, std::string name, std::string spelling);
  // The name of another object of the source's directory that stands for what is at `target`, by
  // its own spelling; empty: there is none.
  Task<Outcome<std::string>> own_spelling(const CopyObject& source, const Target& target);
  // Whether what is there gets another mode or time. Not: another owner, for which many have no
  // right, so that each further run would tell of it.
  bool differs(const Finish& finish, const CopyObject& existing) const;
  // Whether `existing`, of the destination, is `wanted`, as far as it could be kept there.
  bool is_kept(const nfs::client::Time& existing, const nfs::client::Time& wanted) const;
  // The time that the destination has where it cannot have `time`.
  nfs::client::Time carried(nfs::client::Time time) const;
  // Once in a run.
  void tell_of_times(const CopyObject& source);
  void finish_later(const CopyObject& source, const CopyObject& directory, bool fresh);
  std::uint32_t filling_mode(const CopyObject& source) const;
  Task<void> finish_directory(Finished directory);
  Task<CopyObject> opened(CopyObject directory);
  Task<Outcome<CopyObject>> directory_for(const CopyObject& source, const Target& target);
  // Whether the first directory of a source is what it is copied to.
  Task<bool> is_onto_itself(const CopyObject& source, const Target& target);
  // Whether `source` is the directory that is copied to.
  Task<Outcome<bool>> is_copy(CopyObject source);
  // The same of another one of the destination.
  Task<Outcome<bool>> is_same(CopyObject source, CopyObject directory);
  // Whether it is the source.
  Task<Outcome<bool>> is_source(CopyObject directory);
  // Of what holds no data: false where nothing is to be made, because what is there stays, with the
  // attributes that the copy would have, or is in the way.
  Task<bool> is_to_be_made(const CopyObject& source, const Target& target);
  // Counts what fails without a sentence of its own.
  void tell_of_untold();
  // What a symbolic link says.
  Task<Outcome<std::string>> symlink_text(CopyObject source);
  Task<void> copy_symlink(CopyObject source, Target target);
  Task<void> copy_special(CopyObject source, Target target);
  // Tells of a special file that cannot be made. As with rsync(1), what nobody but root may make
  // fails no copy of a tree.
  void leave_out(const CopyObject& source, const std::string& obstacle) const;
  Task<void> copy_file(CopyObject source, Target target);
  // Whether a new file in place of `existing` would lack what this one has beside its mode.
  Task<Outcome<bool>> has_extras(CopyObject existing);
  // Takes what stays of an existing file off the bytes that are expected.
  Task<Outcome<TempFilePlan>> plan_of(const CopyObject& source, const Target& target);
  // False: what has come to the place of `target` meanwhile is left alone.
  Task<Outcome<bool>> move_file(const CopyObject& source, const Target& target);
  // As to_.temp_file(), if nothing else is possible in place; null: another name of `source` has
  // written that file.
  Task<Outcome<std::unique_ptr<TempFile>>> open_target(const CopyObject& source,
                                                       const Target& target, TempFilePlan plan);
  // Fails where what is at `target`, and would be written in place, seems to be `source`.
  Task<Outcome<Ok>> check_other_file(const CopyObject& source, const Target& target);
  Failure<nfs::client::Error> same_file_refused(const CopyObject& source,
                                                const CopyObject& existing) const;
  // Notes that `existing` is written in place, or fails where that would mix two sources. False:
  // it is written from another name of `source`.
  Outcome<bool> claim(const CopyObject& source, const CopyObject& existing);
  // As move_file().
  Task<Outcome<bool>> filled_and_published(const CopyObject& source, const Target& target,
                                           TempFile& temp_file, std::uint64_t kept);
  // Those of `source`, given to what `adopt` writes to; `existing` is that, unless it is new.
  using Adopt = std::function<Task<Outcome<Ok>>(Extras)>;
  Task<Outcome<Ok>> pass_extras(CopyObject source, std::optional<CopyObject> existing, Adopt adopt);
  // Where `existing` has an access control list and `source` has none, `extras` gets that of the
  // mode.
  Task<void> take_lists_away(Extras& extras, const CopyObject& source, const CopyObject& existing);
  // Once in a run, of each kind.
  void tell_left_out(const CopyObject& source, const ExtraKinds& kinds,
                     const nfs::client::Error& why);
  // An error where this run has made what is at `target`.
  Task<Outcome<Ok>> check_just_made(const Target& target);
  // The same by another spelling.
  Task<Outcome<Ok>> check_made_alike(const Target& target);
  void note_just_made(const Target& target);
  // `target` is a copy of `source` now, to which its further names may be linked.
  void note_copy(const CopyObject& source, const Target& target);
  // Whether `existing` stays whatever is in it.
  bool left_alone(const CopyObject& source, const CopyObject& existing) const;
  // The same of what stands at `target` by now, as long as that may matter.
  Task<Outcome<bool>> left_alone_by_now(const CopyObject& source, const Target& target);
  // Whether `existing` stays as it is.
  Task<Outcome<bool>> stays(const CopyObject& source, const CopyObject& existing);
  // How much of `existing` is the beginning of `source`, and durable.
  Task<Outcome<std::uint64_t>> kept_of(const CopyObject& source, const CopyObject& existing);
  Task<void> make_link(Link link);
  // Gives what stays the attributes that its copy would have, and counts it.
  Task<Outcome<Ok>> adjust(const CopyObject& source, CopyObject existing);
  Task<Outcome<Ok>> give(const CopyObject& source, CopyObject existing, Finish finish);
  // Leaves the time of its last change alone where it has them already.
  Task<Outcome<Ok>> adopt_news(CopyObject existing, Extras extras);
  void announce(const CopyObject& source, const Target& target) const;

  Finish finish_of(const CopyObject& source, const std::optional<CopyObject>& existing) const;
  void fail(const std::string& path, const nfs::client::Error& error);
  // Whether `error` says that there is no space, which what is removed may give.
  bool is_full(const nfs::client::Error& error) const;
  void fail(const std::string& path, const std::string& why);
  bool stopped() const { return hopeless_ || endless_ || run_.cancel.cancelled(); }

  Run& run_;
  CopyEndpoint& from_;
  CopyEndpoint& to_;
  const CopyOptions options_;
  Progress& progress_;
  const Complain complain_;
  const Announce announce_;
  TaskGroup files_;
  Descent descent_;
  Remover remover_;
  std::set<std::string> names_;                             // of the sources so far, folded
  bool unnamed_ = false;                                    // one of them has none
  std::optional<std::pair<std::string, CopyObject>> into_;  // the last destination and what it is
  std::string source_path_;                                 // of the present source
  FirstNames& first_names_;
  std::vector<Link> links_;
  std::map<FileId, Claim> written_in_place_;
  std::vector<Finished> finished_;         // parents before their entries
  std::optional<CopyObject> root_;         // the first directory that was copied to
  std::optional<CopyObject> source_root_;  // what is copied to it
  std::uint64_t entries_ = 0;              // that were found in directories
  std::uint64_t kept_bytes_ = 0;           // of paths, in finished_
  std::size_t failures_ = 0;
  std::size_t without_memory_ = 0;   // failures that are yet to be told
  std::size_t untold_ = 0;           // the same, of what another one has told the reason
  std::size_t untried_sources_ = 0;  // behind the one that no other can follow
  bool untried_ = false;             // the same of what is in a source
  ExtraKinds told_left_out_;
  bool told_of_times_ = false;
  bool hopeless_ = false;
  bool full_ = false;         // until something is removed, no more data is copied
  bool told_full_ = false;    // once in a run
  bool unreachable_ = false;  // a server does not answer
  bool endless_ = false;
};

// The last component of `path`, without trailing '/'; empty for "/", "." and "..".
std::string base_name(const std::string& path);

}  // namespace stag::cli
