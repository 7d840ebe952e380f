// NFS version 4.0, 4.1 and 4.2 (RFC 7530, RFC 8881, RFC 7862) as a Protocol: a COMPOUND for each
// operation; creating a file takes up to three in version 4.0.
//
//   names          remove and rmdir check the type in the same COMPOUND: REMOVE itself does not
//   read, write    by the open that they are given, else with the anonymous stateid
//   open           holds an open (opens.cc); in version 4.0 by the name that the file was found by,
//                  without one it only checks the permissions
//   create         opens and closes at once
//   listings       have neither "." nor ".."
//   owners         numbers; a name of the server's domain is shown as nobody (65534), but root is 0
//   access control lists  those of POSIX are said by that of version 4 (nfs/client/acl.h)
#pragma once

#include "nfs/client/protocol/protocol.h"
#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {

class Nfs4 final : public Protocol {
 public:
  Nfs4(std::shared_ptr<SessionClient> client, const ProtocolOptions& options);

  // Finds the highest minor version that client and server speak, or takes options.minor; and makes
  // a session. NotSupported: there is none.
  static Task<Outcome<std::shared_ptr<Nfs4>>> connect(rpc::Channel& channel,
                                                      ProtocolOptions options);
  // With services that are there already: on the Channel's reverse direction, and where the client
  // listens.
  static Task<Outcome<std::shared_ptr<Nfs4>>> connect(rpc::Channel& channel,
                                                      ProtocolOptions options, Callbacks callbacks);
  // The root of the server's name space, with its attributes.
  Task<Outcome<Found>> root(OperationContext context);
  std::uint32_t minor() const { return client_->minor(); }
  bool called_back() const { return client_->wants_delegations(); }
  // Whether `other` leads to the same server as `first`, and carries calls of the client from now
  // on. `called_back`: it serves callbacks, too.
  Task<bool> joins(rpc::Channel& first, rpc::Channel& other, bool called_back = true);
  const v4::sessionid4& session_id() const { return client_->session().sessionid(); }

  rpc::Channel& channel() const override;
  std::shared_ptr<Protocol> with(const ProtocolOptions& options) const override;
  Task<void> close() override;
  void set_flush(Flush flush) override { client_->set_flush(std::move(flush)); }
  Duration lease() const override { return client_->session().lease(); }
  Task<Outcome<Ok>> ping(OperationContext context) override;

  Task<Outcome<Attributes>> getattr(OperationContext context, Handle object) override;
  Task<Outcome<std::optional<Attributes>>> setattr(OperationContext context, File object,
                                                   SetAttributes attributes,
                                                   std::optional<Time> guard) override;
  Task<Outcome<Found>> lookup(OperationContext context, Handle directory,
                              std::string_view name) override;
  Task<Outcome<std::uint32_t>> access(OperationContext context, Handle object,
                                      std::uint32_t asked) override;
  Task<Outcome<std::string>> readlink(OperationContext context, Handle symlink,
                                      std::optional<std::uint64_t> size) override;

  std::size_t reads_at_once() const override;
  Task<Outcome<std::vector<ReadPart>>> read_several(OperationContext context, File file,
                                                    std::vector<ReadRange> ranges) override;
  Task<Outcome<ReadPart>> read(OperationContext context, File file, std::uint64_t offset,
                               MutableBytes to) override;
  Task<Outcome<WritePart>> write(OperationContext context, File file, std::uint64_t offset,
                                 Bytes data, Stability stable) override;
  Task<Outcome<Verifier>> commit(OperationContext context, Handle file, std::uint64_t offset,
                                 std::uint32_t count) override;

  Task<Outcome<Made>> create(OperationContext context, Handle directory, std::string_view name,
                             SetAttributes attributes, CreateMode mode) override;
  // Those that open() gives without state have the number 0.
  Task<Outcome<Opened>> open(OperationContext context, Handle file, std::uint32_t asked) override;
  Task<Outcome<Made>> create_open(OperationContext context, Handle directory, std::string_view name,
                                  SetAttributes attributes, CreateMode mode,
                                  std::uint32_t asked) override;
  Task<Outcome<Ok>> close(OperationContext context, File file) override;
  bool has_locks() const override { return true; }
  std::vector<LockPiece> locks_within(const std::vector<File>& opens, LockOwner owner,
                                      FileLock range) const override;
  Task<Outcome<Ok>> lock(OperationContext context, File file, LockOwner owner,
                         FileLock wanted) override;
  Task<Outcome<Ok>> unlock(OperationContext context, File file, LockOwner owner,
                           FileLock range) override;
  Task<Outcome<std::optional<FileLock>>> test_lock(OperationContext context, File file,
                                                   LockOwner owner, FileLock wanted) override;
  Task<Outcome<Made>> mkdir(OperationContext context, Handle directory, std::string_view name,
                            SetAttributes attributes) override;
  Task<Outcome<Made>> symlink(OperationContext context, Handle directory, std::string_view name,
                              std::string target, SetAttributes attributes) override;
  Task<Outcome<Made>> mknod(OperationContext context, Handle directory, std::string_view name,
                            Special special, SetAttributes attributes) override;
  Task<Outcome<Ok>> remove(OperationContext context, Handle directory,
                           std::string_view name) override;
  Task<Outcome<Ok>> rmdir(OperationContext context, Handle directory,
                          std::string_view name) override;
  Task<Outcome<Ok>> rename(OperationContext context, Handle from_directory, std::string_view from,
                           Handle to_directory, std::string_view to) override;
  Task<Outcome<Ok>> link(OperationContext context, Handle file, Handle directory,
                         std::string_view name) override;

  Task<Outcome<ListedPart>> list(OperationContext context, Handle directory, ListPosition from,
                                 bool with_attributes, std::uint32_t size) override;

  Task<Outcome<FileSystemUsage>> usage(OperationContext context, Handle object) override;
  Task<Outcome<FileSystemInfo>> info(OperationContext context, Handle object) override;
  Task<Outcome<NameLimits>> name_limits(OperationContext context, Handle object) override;

  Task<Outcome<Acls>> acls(OperationContext context, Handle object,
                           std::uint32_t reply_max) override;
  Task<Outcome<Ok>> set_acls(OperationContext context, Handle object, Acls acls,
                             bool with_defaults) override;

  Task<Outcome<Nfs4Acl>> nfs4_acl(OperationContext context, Handle object,
                                  std::uint32_t reply_max) override;
  Task<Outcome<Ok>> set_nfs4_acl(OperationContext context, Handle object, Nfs4Acl acl) override;

  Task<Outcome<std::optional<std::uint64_t>>> seek(OperationContext context, Handle file,
                                                   std::uint64_t offset, Content what) override;
  Task<Outcome<SparsePart>> read_plus(OperationContext context, Handle file, std::uint64_t offset,
                                      MutableBytes to) override;
  Task<Outcome<Ok>> allocate(OperationContext context, File file, FileRange range) override;
  Task<Outcome<Ok>> deallocate(OperationContext context, File file, FileRange range) override;
  Task<Outcome<CopySource>> notify_copy(OperationContext context, File file,
                                        Address reader) override;
  // Version 4.1 and later (RFC 7862 4.6.2).
  Task<Outcome<ReadPart>> read_notified(OperationContext context, CopySource from,
                                        std::uint64_t offset, MutableBytes to) override;
  Task<Outcome<CopyPart>> copy(OperationContext context, CopySource from, FileRange range, File to,
                               std::uint64_t to_offset, const CopyWatch& watch) override;
  Task<Outcome<Ok>> clone(OperationContext context, Handle from, FileRange range, File to,
                          std::uint64_t to_offset) override;
  Task<Outcome<std::string>> xattr(OperationContext context, Handle object,
                                   std::string_view name) override;
  Task<Outcome<Ok>> set_xattr(OperationContext context, Handle object, std::string_view name,
                              Bytes value, XattrMode mode) override;
  Task<Outcome<std::vector<std::string>>> list_xattrs(OperationContext context,
                                                      Handle object) override;
  Task<Outcome<Ok>> remove_xattr(OperationContext context, Handle object,
                                 std::string_view name) override;

 private:
  Task<Outcome<Reply>> run(OperationContext context, Request& request);
  // Of an operation whose results say no more than that it was done; the last one is by the open
  // of `by`, if there is one.
  Task<Outcome<Ok>> done(OperationContext context, Request request, File by = {});
  // GETATTR; `asked` and `to` outlive the Task.
  Task<Outcome<Ok>> ask(OperationContext context, Handle object, const AskedAttributes& asked,
                        Values& to);
  // Type, mode and list of `object`; `got` outlives the Task.
  Task<Outcome<Ok>> read_list(OperationContext context, Handle object, std::uint32_t reply_max,
                              Values& got);
  Task<Outcome<Ok>> set_unless_directory(OperationContext context, Handle object, Nfs4Acl acl);
  Task<Outcome<Made>> make(OperationContext context, Handle directory, std::string_view name,
                           v4::createtype4 what, SetAttributes attributes);
  void give_back_removed(Reply& reply, std::size_t handle);
  Task<Outcome<Ok>> remove_checked(OperationContext context, Handle directory,
                                   std::string_view name, v4::nfs_opnum4 check, Status otherwise);
  struct Granted {
    Opened opened;
    std::uint64_t as_of = 0;
    std::uint64_t change = 0;
    v4::OPEN4resok results;
  };
  Task<Outcome<Granted>> hold_open(OperationContext context, Request request, std::size_t open,
                                   session::Opens::Id id, std::uint32_t share, bool with_change);
  void take_delegation(const Granted& granted);
  Task<void> close_nameless(OperationContext context, Reply& reply, std::size_t open,
                            session::Opens::Id id, std::uint32_t share);
  Task<Outcome<Opened>> open_named(OperationContext context, Handle file, Places::Place place,
                                   std::uint32_t share);
  // Version 4.0: a file was found there.
  void note_place(const std::optional<Handle>& file, const std::optional<Attributes>& attributes,
                  const Handle& directory, std::string_view name);
  Task<Outcome<std::optional<Opened>>> open_delegated(OperationContext context, Handle file,
                                                      std::uint32_t share);
  v4::OPEN4args creation(std::string_view name, const SetAttributes& attributes, CreateMode mode);
  v4::createhow4 how_to_create(const SetAttributes& attributes, CreateMode mode);

  // Copies (copies.cc).
  struct Look {
    std::uint64_t count = 0;  // bytes
    std::optional<v4::nfsstat4> complete{};
    bool forgotten = false;  // the server knows no such copy
  };
  Task<Outcome<v4::write_response4>> begin_copy(OperationContext context, const CopySource& from,
                                                FileRange range, File to, std::uint64_t to_offset);
  Task<Outcome<std::optional<CopyPart>>> rest_of_copy(OperationContext context, Handle to,
                                                      FileRange range,
                                                      const v4::write_response4& begun,
                                                      const CopyWatch& watch);
  Task<Outcome<std::optional<CopyPart>>> followed(OperationContext context, Offloads::Copy& copy,
                                                  FileRange range, const v4::write_response4& begun,
                                                  const CopyWatch& watch);
  Task<void> told_or_due(Offloads::Copy& copy, const CopyWatch& watch);
  Task<Outcome<Look>> look_at(OperationContext context, const Offloads::Copy& copy);
  Task<void> cancel_copy(OperationContext context, const Offloads::Copy& copy);
  Task<void> stop_copy(OperationContext context, const Offloads::Copy& copy,
                       const ProtocolOptions& options);

  std::shared_ptr<SessionClient> client_;
  ProtocolOptions options_;
  std::shared_ptr<const session::Opener> opener_;
};

}  // namespace stag::nfs::client::nfs4
