// NFS version 3 (RFC 1813), and NFSACL version 3 beside it, as a Protocol: a procedure for each
// operation.
#pragma once

#include "nfs/client/protocol/protocol.h"
#include "nfs/client/protocol/retrying_client.h"
#include "nfs/proto/nfs3.h"

namespace stag::nfs::client::nfs3 {

class Nfs3 final : public Protocol {
 public:
  Nfs3(rpc::Channel& channel, const ProtocolOptions& options);

  rpc::Channel& channel() const override;
  std::shared_ptr<Protocol> with(const ProtocolOptions& options) const override;
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

  Task<Outcome<ReadPart>> read(OperationContext context, File file, std::uint64_t offset,
                               MutableBytes to) override;
  Task<Outcome<WritePart>> write(OperationContext context, File file, std::uint64_t offset,
                                 Bytes data, Stability stable) override;
  Task<Outcome<Verifier>> commit(OperationContext context, Handle file, std::uint64_t offset,
                                 std::uint32_t count) override;

  Task<Outcome<Made>> create(OperationContext context, Handle directory, std::string_view name,
                             SetAttributes attributes, CreateMode mode) override;
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

 private:
  Task<Outcome<ListedPart>> list_names(OperationContext context, const v3::nfs_fh3& directory,
                                       const ListPosition& from, std::uint32_t size);
  Task<Outcome<ListedPart>> list_attributes(OperationContext context, const v3::nfs_fh3& directory,
                                            const ListPosition& from, std::uint32_t size);

  RetryingClient client_;
  RetryingClient acl_client_;
};

}  // namespace stag::nfs::client::nfs3
