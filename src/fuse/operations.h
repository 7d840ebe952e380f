// Operations: what the kernel asks of a mounted file system, done by an NFS server. One coroutine a
// request; each answers its request itself.
//
// Consistency is close-to-open, as NFS has it: open(2) asks the server for the attributes, and what
// the kernel has cached of the file is used only if they are those of the open before. A write has
// reached the server when it returns, and stable storage after fsync(2) or close(2).
//
// Thread: the loop of the Mount. The FileSystem outlives the Operations, and these their Tasks.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/cancel.h"
#include "base/loop.h"
#include "base/task.h"
#include "base/task_group.h"
#include "fuse/buffers.h"
#include "fuse/changes.h"
#include "fuse/closes.h"
#include "fuse/directory.h"
#include "fuse/inodes.h"
#include "fuse/invalidations.h"
#include "fuse/made_directories.h"
#include "fuse/new_files.h"
#include "fuse/ongoing.h"
#include "fuse/open_files.h"
#include "fuse/removals.h"
#include "fuse/request.h"
#include "fuse/settling.h"
#include "fuse/silly_files.h"
#include "fuse/turns.h"
#include "fuse/unstable_writes.h"
#include "nfs/client/file_system.h"

namespace stag::fuse {

struct OperationOptions {
  double valid = 1;        // seconds for which the kernel may use attributes and names unasked
  bool direct = false;     // the kernel caches no data
  bool seeks = false;      // the version has SEEK, though a file system may lack it
  bool lists = false;      // the kernel judges who may do what, by access control lists, too
  std::uint64_t home = 0;  // as for stat_of()
  std::uint64_t own = 0;   // no other mount has it: a part of names that this one makes up
};

// How the kernel came to a WRITE.
struct WriteKind {
  bool append = false;  // of a file that was opened with O_APPEND
  bool cached = false;  // of pages that a program has changed in a mapping
  bool sync = false;    // of a file that was opened with O_SYNC or O_DSYNC, or by such a write(2)
  bool unprivileged = false;  // by a user who is not root, where the server hears of root
};

class Operations {
 public:
  // Bytes that are kept until the server has put them on stable storage.
  static constexpr std::size_t kMostUnstable = std::size_t{32} << 20;

  // The kernel reads at most as much as one of `data` holds; what it writes is in `requests`.
  Operations(Loop& loop, nfs::client::FileSystem& files, const nfs::client::Handle& root,
             Buffers& data, Buffers& requests, const OperationOptions& options);

  Invalidations& invalidations() { return invalidations_; }

  void set_on_long_waits(LongWaits::Tell tell) { context_.long_waits.set_tell(std::move(tell)); }

  void set_on_given_up(UnstableWrites::OnGivenUp tell) {
    unstable_writes_.set_on_given_up(std::move(tell));
  }

  // Runs a function once all was read that the kernel has asked for so far.
  using WhenRead = UniqueFunction<void(Loop::Function)>;
  void set_when_read(WhenRead when_read) { when_read_ = std::move(when_read); }

  // Names (names.cc).
  Task<void> lookup(fuse_req_t request, std::uint64_t parent, std::string name);
  Task<void> mknod(fuse_req_t request, std::uint64_t parent, std::string name, mode_t mode,
                   dev_t device);
  Task<void> mkdir(fuse_req_t request, std::uint64_t parent, std::string name, mode_t mode);
  Task<void> symlink(fuse_req_t request, std::string target, std::uint64_t parent,
                     std::string name);
  Task<void> link(fuse_req_t request, std::uint64_t file, std::uint64_t parent, std::string name);

  // Names that are taken from objects (removing.cc).
  Task<void> unlink(fuse_req_t request, std::uint64_t parent, std::string name);
  Task<void> rmdir(fuse_req_t request, std::uint64_t parent, std::string name);
  Task<void> rename(fuse_req_t request, std::uint64_t parent, std::string name,
                    std::uint64_t new_parent, std::string new_name);
  void forget(std::uint64_t number, std::uint64_t lookups) noexcept;

  // Attributes (attributes.cc).
  Task<void> getattr(fuse_req_t request, std::uint64_t number);
  // Where these have an open: `opened` is its number, 0 where there is none.
  Task<void> setattr(fuse_req_t request, std::uint64_t number, std::uint64_t opened,
                     struct stat wanted, int to_set);
  Task<void> access(fuse_req_t request, std::uint64_t number, int mask);
  Task<void> readlink(fuse_req_t request, std::uint64_t number);
  Task<void> statfs(fuse_req_t request, std::uint64_t number);

  // Data (data.cc). `data` is in `memory`, which goes to `used` in the end.
  Task<void> create(fuse_req_t request, std::uint64_t parent, std::string name, mode_t mode,
                    fuse_file_info info);
  Task<void> open(fuse_req_t request, std::uint64_t number, fuse_file_info info);
  void release(fuse_req_t request, std::uint64_t number, std::uint64_t opened) noexcept;
  Task<void> read(fuse_req_t request, std::uint64_t number, std::uint64_t opened, std::size_t size,
                  std::uint64_t offset);
  Task<void> write(fuse_req_t request, std::uint64_t number, std::uint64_t opened,
                   std::uint64_t offset, Memory memory, Bytes data, Buffers& used, WriteKind kind);
  Task<void> fsync(fuse_req_t request, std::uint64_t number, std::uint64_t opened);
  Task<void> flush(fuse_req_t request, std::uint64_t number, fuse_file_info info);  // locks.cc

  // What is kept of writes to the file is on stable storage, or lost. False: it is kept on.
  Task<bool> make_safe(nfs::client::Handle file);

  // Locks (locks.cc); only where FileSystem::has_locks().
  Task<void> getlk(fuse_req_t request, std::uint64_t number, fuse_file_info info,
                   struct flock lock);
  Task<void> setlk(fuse_req_t request, std::uint64_t number, fuse_file_info info, struct flock lock,
                   bool waits);
  Task<void> flock(fuse_req_t request, std::uint64_t number, fuse_file_info info, int how);

  // Extended attributes, holes and copies (version42.cc).
  Task<void> getxattr(fuse_req_t request, std::uint64_t number, std::string name, std::size_t most);
  Task<void> setxattr(fuse_req_t request, std::uint64_t number, std::string name, std::string value,
                      int flags);
  Task<void> listxattr(fuse_req_t request, std::uint64_t number, std::size_t most);
  Task<void> removexattr(fuse_req_t request, std::uint64_t number, std::string name);
  Task<void> lseek(fuse_req_t request, std::uint64_t number, std::uint64_t offset, int whence);
  Task<void> fallocate(fuse_req_t request, std::uint64_t number, std::uint64_t opened, int mode,
                       std::uint64_t offset, std::uint64_t length);
  Task<void> copy_file_range(fuse_req_t request, std::uint64_t source, std::uint64_t source_offset,
                             std::uint64_t target, std::uint64_t target_opened,
                             std::uint64_t target_offset, std::uint64_t length);

  // Directories (directories.cc).
  Task<void> opendir(fuse_req_t request, std::uint64_t number, fuse_file_info info);
  Task<void> readdir(fuse_req_t request, std::uint64_t number, std::size_t size,
                     std::uint64_t offset, std::uint64_t opened, bool plus);
  void releasedir(fuse_req_t request, std::uint64_t opened);

  // The kernel writes what programs have changed in mappings, while somebody answers it.
  Task<void> write_changed_pages();

  // The mount has ended: nobody waits for a lock any more.
  void stop() { stop_.cancel(); }
  // Then nobody closes what is open, nor removes what was removed while it was open. Until `end`
  // what was written is made safe first.
  Task<void> close_all(CancelToken end);
  // That part of it, which may begin while others ask for something yet.
  Task<void> make_written_safe(CancelToken end);
  const UnstableWrites& unstable_writes() const { return unstable_writes_; }

 private:
  // Spaces of the kernel's numbers of lock owners.
  enum class LockKind : std::uint8_t { Posix, Flock };

  bool is_direct(int flags) const;
  std::uint64_t add_open(std::uint64_t number, const nfs::client::File& file,
                         const fuse_file_info& info);
  bool flushes(int flags) const;
  // The handle of an inode; empty, and the request has failed, where the kernel forgot it.
  nfs::client::Handle handle_of(Request& request, std::uint64_t number);
  // With the open that the kernel means.
  nfs::client::File file_of(Request& request, std::uint64_t number, std::uint64_t opened);
  static nfs::client::LockOwner owner_of(LockKind kind, std::uint64_t number);
  Task<Turns::Turn> turn_of_locks(std::uint64_t number, nfs::client::LockOwner owner);
  Task<void> lock_file(Request& request, std::uint64_t number, std::uint64_t opened,
                       nfs::client::LockOwner owner, nfs::client::FileLock wanted, bool waits);
  // Answers the request where the lock is granted.
  Task<nfs::client::Outcome<Ok>> try_lock(Request& request, std::uint64_t number,
                                          std::uint64_t opened, nfs::client::LockOwner owner,
                                          nfs::client::FileLock wanted);
  // What is known of the attributes is not used any more.
  void outdate(const Request& request, std::uint64_t number);
  // Undoes that: the owner had locked these pieces of the range `before`.
  Task<void> take_back(nfs::client::File file, nfs::client::LockOwner owner,
                       nfs::client::FileLock locked, std::vector<nfs::client::LockPiece> before);
  Task<void> commit_and_unlock(Request& request, std::uint64_t number, std::uint64_t opened,
                               nfs::client::LockOwner owner, nfs::client::FileLock range);
  // In the owner's turn.
  Task<void> unlock(Request& request, std::uint64_t number, nfs::client::LockOwner owner,
                    nfs::client::FileLock range);
  // Whether the server's file, as it says, lacks what this mount has written: lost by a restart.
  bool lacks_writes(std::uint64_t number,
                    const nfs::client::Outcome<nfs::client::Attributes>& attributes) const;
  // What may be lost is written again; the attributes of then.
  Task<nfs::client::Outcome<nfs::client::Attributes>> written_again(std::uint64_t number,
                                                                    nfs::client::Handle file);
  // Fills `to`, or reads to the end of the file; yields the bytes.
  Task<nfs::client::Outcome<std::size_t>> read_all(nfs::client::File file, std::uint64_t offset,
                                                   MutableBytes to);
  enum class Tell : std::uint8_t { Once, Again };
  // Opens a file that may be about to lose its name.
  Task<nfs::client::Outcome<nfs::client::Opened>> open_there(std::uint64_t number,
                                                             nfs::client::Handle file,
                                                             std::uint32_t asked);
  // What came of a commit for those who have the file open by `opened`: also an earlier failure
  // that they were not told.
  nfs::client::Outcome<Ok> told(std::uint64_t number, std::uint64_t opened,
                                nfs::client::Outcome<Ok> committed, Tell tell);
  // Whether the file had setuid or setgid when it was opened, or its mode was set here.
  bool has_set_ids(std::uint64_t number);
  void remember_mode(std::uint64_t number, std::uint32_t mode);
  Task<void> outdate_cached(const Request& request, std::uint64_t number, std::uint64_t opened,
                            std::uint64_t offset);
  // The server's attributes at the begin of a direct write; one that is `unprivileged` takes setuid
  // and setgid away.
  Task<nfs::client::Outcome<nfs::client::Attributes>> begin_direct(const Request& request,
                                                                   std::uint64_t number,
                                                                   nfs::client::Handle file,
                                                                   bool unprivileged);
  Task<nfs::client::Outcome<nfs::client::Attributes>> without_set_ids(
      const Request& request, std::uint64_t number, nfs::client::Handle file,
      nfs::client::Attributes before);
  // What was written to the file is on stable storage, and its times are set; or what those who
  // have it open by `opened` are to be told.
  Task<nfs::client::Outcome<Ok>> sync(std::uint64_t number, std::uint64_t opened);
  // Empties a file that was opened with O_TRUNC.
  Task<nfs::client::Outcome<nfs::client::Attributes>> truncated(std::uint64_t number,
                                                                nfs::client::Handle file);
  fuse_entry_param entry_of(const nfs::client::Node& node, std::uint64_t number) const;
  // Answers with an object of the server, `name` in the directory `parent`, that the kernel may
  // know from now on; yields its number, or 0.
  std::uint64_t answer(Request& request, std::uint64_t parent, const std::string& name,
                       const nfs::client::Outcome<nfs::client::Node>& node);
  // The same of a new object.
  std::uint64_t answer_made(Request& request, std::uint64_t parent, const std::string& name,
                            const nfs::client::Outcome<nfs::client::Node>& node);
  void answer(Request& request, std::uint64_t number,
              const nfs::client::Outcome<nfs::client::Attributes>& attributes);
  // The kernel asks again before it uses them again.
  void answer_once(Request& request, std::uint64_t number,
                   const nfs::client::Attributes& attributes);
  // There is no such name, which the kernel may remember for `valid` seconds.
  void answer_absent(Request& request, double valid) const;
  static void answer(Request& request, const nfs::client::Outcome<Ok>& done);

  // Before the data of a file is changed: behind changes that killed programs have left. False,
  // and nothing begins, where the request was given up by then.
  Task<bool> begin_change(Request& request, std::uint64_t number);

  // Answers with an access control list, or the one that what is new in a directory begins with.
  Task<void> answer_list(Request& request, nfs::client::Handle object, bool defaults,
                         std::size_t most);

  // Sets one of these; empty: takes it away.
  Task<void> set_list(Request& request, std::uint64_t number, nfs::client::Handle object,
                      bool defaults, std::vector<nfs::client::AclEntry> list);

  // The turn to change a new file: what sets its times is not overtaken by what else does.
  Task<std::optional<Turns::Turn>> turn_of_change(std::uint64_t number);
  Task<std::optional<Turns::Turn>> turn_of_write(std::uint64_t number);

  // Counts as an open of a file, unless it is kept, until this is destroyed.
  class Use {
   public:
    Use(Operations& all, std::uint64_t number);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // It goes on counting.
    void keep() { number_ = 0; }

   private:
    Operations& all_;
    std::uint64_t number_;
  };
  struct Removing;
  // How a file gets a silly name. By a link it has its name until something else has it: whatever
  // becomes of the removal, nothing is to be undone.
  enum class Keep : std::uint8_t { ByRename, ByLink };
  // Before the server is asked to take the name: a file that is open, and would lose its last one,
  // gets a silly one.
  Task<nfs::client::Outcome<Ok>> begin(Removing& removing, Keep how);
  Task<nfs::client::Outcome<std::optional<nfs::client::Node>>> found_to_keep(DirectoryName name,
                                                                             bool contended);
  Task<nfs::client::Outcome<Keep>> way_to_keep(nfs::client::Handle directory);
  Task<nfs::client::Outcome<Ok>> keep(Removing& removing, nfs::client::Node file, Keep how);
  SillyName silly_name(std::uint64_t number, const nfs::client::Handle& directory,
                       std::uint64_t file_id);
  Task<nfs::client::Outcome<Ok>> link_silly(nfs::client::Handle file, SillyName silly);
  Task<nfs::client::Outcome<Ok>> rename_to_silly(nfs::client::Handle file, DirectoryName name,
                                                 SillyName silly);
  // Undoes rename_to_silly().
  Task<void> give_name_back(std::uint64_t number, DirectoryName name);
  // After it.
  void end(Removing& removing, bool done);
  // A program has closed the file. If it was the last one of a removed file, the name that keeps
  // it is to be removed.
  std::optional<SillyFiles::Removal> closed(std::uint64_t number) noexcept;
  // The same of one that counted as an open.
  void unused(std::uint64_t number) noexcept;
  // A program has closed what it had open by `opened`. What is left to be done for that goes on by
  // itself.
  void begin_close(std::uint64_t number, std::uint64_t opened) noexcept;
  Task<void> prepare_close(std::uint64_t number, const OpenFiles::Open& open);
  Task<void> remove(SillyFiles::Removal removal);
  // The server has said that the directory `name` in `parent` is not empty; `before` it was asked,
  // removed files had names in these. Waits for those to end that no program has open any more;
  // whether any did.
  Task<bool> emptied(nfs::client::Handle parent, std::string name,
                     std::vector<nfs::client::Handle> before);
  struct Listed;
  // With the times of a new file that have waited.
  struct stat stat_of_listed(const nfs::client::Entry& entry) const;
  double valid_of(const Listed& listed, std::uint64_t parent, const nfs::client::Entry& entry);
  bool add(Listed& listed, std::uint64_t parent, const nfs::client::Entry& entry,
           std::uint64_t next, bool plus);

  RequestContext context_;
  nfs::client::FileSystem& files_;
  Buffers& buffers_;
  OperationOptions options_;
  // These hear of each inode that goes.
  MadeDirectories made_directories_;
  Removals removals_;
  Inodes inodes_;
  OpenFiles open_files_;
  SillyFiles silly_files_;
  // READs and WRITEs of the kernel that were not answered yet. It tells the last close(2) of a file
  // only after those that it makes by itself (read-ahead, pages of mappings, asynchronous I/O) are
  // answered: until then a file that is closed may look open.
  Ongoing transfers_;
  Invalidations invalidations_;
  Ongoing unlocks_;  // of what was closed
  Changes changes_;
  UnstableWrites unstable_writes_;
  NewFiles new_files_;
  Turns turns_;
  Turns lock_turns_;
  Turns appends_;  // each goes where the one before has ended
  Settling settling_;
  Closes closes_;
  TaskGroup background_;
  CancelSource stop_;
  WhenRead when_read_;
  std::unordered_map<std::uint64_t, std::shared_ptr<OpenDirectory>> directories_;
  std::uint64_t next_directory_ = 1;
  std::uint64_t silly_names_ = 0;
};

}  // namespace stag::fuse
