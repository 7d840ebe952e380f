// UnstableWrites: what programs wrote to the files of a mount and the server has not yet put on
// stable storage. It is kept here until COMMIT has said that the server did, and written again if
// the server lost it by a restart (RFC 1813 3.3.7, 3.3.21; RFC 8881 18.3, 18.32). Without it each
// write(2) would wait for the server's disk.
//
// While anything is kept of a file its number stands for it, so that a program that opens it finds
// what is kept, also where the kernel has forgotten the file meanwhile.
//
// Thread: the loop of the Mount. The FileSystem, the Inodes and the Buffers outlive it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/cancel.h"
#include "base/loop.h"
#include "base/task.h"
#include "base/task_group.h"
#include "base/unique_function.h"
#include "fuse/buffers.h"
#include "fuse/inodes.h"
#include "fuse/waiters.h"
#include "nfs/client/file_system.h"

namespace stag::fuse {

class UnstableWrites {
 public:
  // Of memory that what is kept of one write takes beside its data, or a little more.
  static constexpr std::size_t kPieceBytes = 320;

  // Keeps what takes up to `most` bytes; memory of the kernel's requests goes back to `requests`.
  UnstableWrites(nfs::client::FileSystem& files, Inodes& inodes, Buffers& requests,
                 std::size_t most)
      : files_(files), inodes_(inodes), requests_(requests), most_(most) {}

  // Hears of data that is given up: bytes of the file, which nobody has open, and why COMMIT got no
  // Reply.
  using OnGivenUp =
      UniqueFunction<void(const Inode& file, std::size_t bytes, const nfs::client::Error& why)>;
  void set_on_given_up(OnGivenUp on_given_up) { on_given_up_ = std::move(on_given_up); }

  // Writes `data` to the file that the kernel knows as `number`, and yields how much of it. `data`
  // is in `memory`, which is empty afterwards where it is kept. Where there is no room it is
  // stable, and a COMMIT of the file of which most is kept begins, for those that come later: no
  // write waits for the COMMIT of another file. The first write after a commit() is stable: most
  // files are written in one piece, and so are most records before an fsync(2).
  Task<nfs::client::Outcome<std::size_t>> write(std::uint64_t number, nfs::client::File file,
                                                std::uint64_t offset, Memory& memory, Bytes data);
  // All that was written to the file is on stable storage, or lost. Where no Reply came it is kept,
  // to be committed again, while a program has the file open. Else it is given up: close(2) has
  // failed, and by the time that the server answers others may have written the file.
  Task<nfs::client::Outcome<Ok>> commit(std::uint64_t number);
  // How often data of the file was lost, and why the last time. Each program that has it open is to
  // be told, whichever it was that waited for the COMMIT. Known until forget().
  std::uint64_t failures(std::uint64_t number) const;
  const nfs::client::Error& failure(std::uint64_t number) const;
  // What was written by `closed`, which is about to be closed at the server, is written again by
  // `other`, an open for writing that stays; null: there is none, and the server checks who writes.
  void on_close(std::uint64_t number, const nfs::client::File& closed,
                const nfs::client::File* other);
  // No program has the file open any more.
  void forget(std::uint64_t number);
  // Where the data ends that is kept of a file; 0: there is none.
  std::uint64_t kept_end(std::uint64_t number) const;
  // Whether the server may have lost some of it since it was written: a connection was lost, or the
  // verifiers of two WRITEs differ. What it says of the file counts after a commit() only.
  bool is_doubtful(std::uint64_t number) const;
  // The same. False: no Reply came, and what is kept may be written again.
  Task<bool> make_safe(std::uint64_t number);
  // Makes the data of all files safe, at the end of the mount; again and again where no Reply
  // comes, until `end`. Nothing that this has begun goes on afterwards. One at a time.
  Task<void> make_all_safe(Loop& loop, CancelToken end);

  std::size_t kept_bytes() const { return kept_; }

 private:
  // What was written at one place. Its memory counts as kept.
  struct Piece {
    Piece(UnstableWrites& writes, std::uint64_t number, const nfs::client::File& file,
          std::uint64_t offset, Bytes data)
        : owner(writes), inode(writes.inodes_, number), file(file), offset(offset), data(data) {}
    ~Piece();
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

    // Moves the data into memory of its own, or takes that of the request; false: there is none.
    bool keep(Memory& request);
    // Takes over the data of `next`, if that is written behind this at the same place and may be
    // lost with it only, and there is room.
    bool join(const Piece& next);
    // On stable storage once COMMIT has yielded `now`.
    bool safe(const nfs::client::Verifier& now) const {
      return !unstable || (!lost && verifier == now);
    }

    UnstableWrites& owner;
    Inodes::Reference inode;
    nfs::client::File file;
    std::uint64_t offset;
    Bytes data;
    Memory memory{};
    std::size_t kept = 0;      // bytes of data
    std::size_t used = 0;      // bytes of memory
    std::size_t capacity = 0;  // of memory that is no request's
    bool of_request = false;
    bool unstable = false;  // some of it is in the server's memory only
    bool lost = false;      // the server has restarted between two WRITEs of it
    nfs::client::Verifier verifier{};
    std::uint64_t connections_lost = 0;  // of the Channel, when the first of it was unstable
  };
  using Pieces = std::list<Piece>;
  // The record of one file, from its first write on until a commit() finds nothing to do.
  struct Written {
    // In the order written. Behind an unstable one stable ones are kept, too: they are newer.
    Pieces pieces{};
    std::uint64_t end = 0;  // of the pieces
    // When the first unstable one was written, and by which start of the server.
    std::optional<nfs::client::Verifier> verifier{};
    std::uint64_t connections_lost = 0;
    bool mixed = false;         // not all are by that start
    std::uint32_t writing = 0;  // WRITEs in flight
    bool next_is_stable = true;
    bool committing = false;
    bool rewriting = false;      // no WRITE begins meanwhile: old data must not end up over new
    std::uint64_t failures = 0;  // that lost data
    std::optional<nfs::client::Error> failure{};
    std::optional<nfs::client::Error> unheard{};  // why the last COMMIT had no Reply
    Waiters waiters{};                            // for any of the above to change
  };
  using Shared = std::shared_ptr<Written>;
  static_assert(sizeof(Piece) + 64 <= kPieceBytes);
  struct Writing;
  struct Committing;

  bool has_room(std::size_t size) const { return used_ + kPieceBytes + size <= most_; }
  static void add(Written& written, Pieces& one);
  static void append(Written& written, Pieces& one);
  static void remove(Written& written, Pieces::iterator end);
  void give_up_unheard(std::uint64_t number, Written& written) noexcept;
  static void note_loss(Written& written, const nfs::client::Error& error);
  Task<nfs::client::Outcome<std::size_t>> send(Piece& piece, nfs::client::Stability stability);
  Task<nfs::client::Outcome<Ok>> commit_pieces(Written& written);
  Task<nfs::client::Outcome<Ok>> write_again(Written& written);
  const Written* find(std::uint64_t number) const;
  // The file of which most is kept, of those without a COMMIT in progress; 0: there is none.
  std::uint64_t find_largest() const;
  void ask_for_room(std::uint64_t number);
  Task<void> make_room(std::uint64_t number);
  Task<void> made_safe(std::uint64_t number, Loop& loop, CancelToken end);

  nfs::client::FileSystem& files_;
  Inodes& inodes_;
  Buffers& requests_;
  std::size_t most_;
  std::size_t kept_ = 0;  // bytes of data
  std::size_t used_ = 0;  // bytes of memory
  std::unordered_map<std::uint64_t, Shared> files_written_;
  OnGivenUp on_given_up_;
  bool making_room_ = false;
  TaskGroup tasks_;
};

}  // namespace stag::fuse
