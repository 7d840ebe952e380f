// A copy from one file to another, piece by piece (RFC 7862 15.2). Within one export the store
// copies by itself; where it cannot, and between two exports, the data passes through the server,
// as that of another server does.
//
// Thread: the caller's loop. Everything a piece waits for is the store's.
#pragma once

#include <optional>

#include "nfs/export/kept_export.h"
#include "nfs/v4/ops/read_ahead.h"

namespace stag::nfs::nfs4 {

class FileCopy {
 public:
  // `range` as in vfs. The objects are valid as long as the FileCopy, or until keep().
  FileCopy(ExportObject from, ExportObject to, const vfs::CopyRange& range)
      : from_(std::move(from)),
        to_(std::move(to)),
        range_(range),
        within_store_(from_.export_ == to_.export_) {}

  // From another server's file: read_from() goes before the first step.
  FileCopy(ExportObject to, const vfs::CopyRange& range) : to_(std::move(to)), range_(range) {}

  // NFS4_OK, or why nothing is to be copied; it ends after `most` bytes. Bytes beyond the size that
  // `source` has now are not asked for, whatever it says later. It outlives reading().
  Task<v4::nfsstat4> read_from(SourceFile& source, std::uint64_t most);
  // Null: not from a source.
  ReadAhead* reading() const { return reading_.get(); }
  // Copies the next piece, of a MiB or what the store takes at once. NFS4_OK, or why the copy ends
  // early; what was copied before stays. Not from a source.
  Task<v4::nfsstat4> step();
  // The same from a source in two steps, the first of which may take long.
  Task<SourceFile::Answer<Rope>> next_piece();
  Task<v4::nfsstat4> write_piece(Rope data);

  bool done() const { return done_; }
  // Bytes copied so far, from the start of the range on, and how durably.
  std::uint64_t count() const { return count_; }
  vfs::Stability committed() const { return committed_; }
  // The next pieces belong to this loop, and take that client's share of the store's workers. The
  // Call that asked for them may end.
  void go_on_at(Loop& loop, const void* client) {
    for (ExportObject* const object : {&from_, &to_}) {
      object->loop = &loop;
      object->connection = client;
      object->worker_time = nullptr;
    }
  }
  // The next pieces are of the same files as these, which are valid at this moment; of their
  // exports it keeps what it needs. go_on_at() follows.
  void keep(ExportObject from, ExportObject to) {
    KeptExportPtr from_export = keep_export(from), to_export = keep_export(to);
    from_ = std::move(from), from_export_ = std::move(from_export);
    to_ = std::move(to), to_export_ = std::move(to_export);
  }
  // There is no next piece.
  void end() {
    from_export_.reset();
    to_export_.reset();
  }
  const ExportObject& from() const { return from_; }
  const ExportObject& to() const { return to_; }

 private:
  vfs::CopyRange rest() const;
  void advance(std::uint64_t bytes, vfs::Stability committed);
  Task<v4::nfsstat4> pass_through();
  Task<v4::nfsstat4> write(std::uint64_t offset, Rope data);
  // What a store refused.
  Task<v4::nfsstat4> status_of(vfs::Status refusal) const;

  ExportObject from_;
  ExportObject to_;
  KeptExportPtr from_export_{}, to_export_{};  // theirs, from keep() on
  vfs::CopyRange range_;
  bool within_store_ = false;
  std::shared_ptr<ReadAhead> reading_{};
  bool to_the_end_ = false;  // of the source, wherever that is by then
  bool done_ = false;
  std::uint64_t count_ = 0;
  vfs::Stability committed_ = vfs::Stability::FileSync;
};

}  // namespace stag::nfs::nfs4
