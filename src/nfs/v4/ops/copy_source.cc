#include "nfs/v4/ops/copy_source.h"

#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/ops/offloads.h"
#include "rpcbind/universal_address.h"

namespace stag::nfs::nfs4 {

namespace {

using Denied = Failure<v4::nfsstat4>;

// Addresses of one source that are tried.
constexpr std::size_t kMostPlaces = 4;

// nullopt: in a form that this server does not look at. A name would be anybody's.
std::optional<SourcePlace> place_of(const v4::netloc4& location) {
  if (location.nl_type != v4::NL4_NETADDR) return std::nullopt;
  const v4::netaddr4& address = location.nl_addr();
  const bool rdma = address.na_r_netid == "rdma" || address.na_r_netid == "rdma6";
  if (!rdma && address.na_r_netid != "tcp" && address.na_r_netid != "tcp6") return std::nullopt;
  const auto at = rpcbind::from_universal(address.na_r_addr);
  if (!at || at->host.empty() || at->port == 0) return std::nullopt;
  return SourcePlace{*at, rdma};
}

Result<std::vector<SourcePlace>, v4::nfsstat4> places_of(const Compound& compound,
                                                         const SourceServers& sources,
                                                         const v4::COPY4args& args) {
  std::vector<SourcePlace> places;
  for (const v4::netloc4& location : args.ca_source_server) {
    std::optional<SourcePlace> place = place_of(location);
    if (!place || places.size() == kMostPlaces) continue;
    if (sources.admits(place->at.host))
      places.push_back(*std::move(place));
    else
      note_limit(compound, Reason::Nfs4CopySourceRefused, compound.life()->clientid,
                 to_string(place->at));
  }
  if (places.empty()) return Denied{v4::NFS4ERR_OFFLOAD_DENIED};
  return places;
}

// By the special ones anybody reads what the source lets this server read.
bool is_special(const v4::stateid4& stateid) {
  return stateid.other == state::kBypassStateid.other || stateid.other == v4::stateid4{}.other;
}

}  // namespace

// What Kerberos says of the client's user is not for AUTH_SYS to repeat.
Result<CopySource, v4::nfsstat4> source_of(const Compound& compound, const Offloads* offloads,
                                           const v4::COPY4args& args) {
  const auto* const file = std::get_if<ForeignHandle>(&compound.saved());
  if (file == nullptr) return Denied{v4::NFS4ERR_STALE};
  const SourceServers* const sources = offloads == nullptr ? nullptr : offloads->sources();
  if (sources == nullptr || compound.admission().call().caller().name != nullptr)
    return Denied{v4::NFS4ERR_OFFLOAD_DENIED};
  if (is_special(args.ca_src_stateid)) return Denied{v4::NFS4ERR_BAD_STATEID};
  auto places = places_of(compound, *sources, args);
  if (!places) return Denied{places.error()};
  CopySource source{*std::move(places), {}, false};
  source.args.file = v4::nfs_fh4(file->bytes);
  source.args.stateid = args.ca_src_stateid;
  source.args.user = compound.object().credentials;
  return source;
}

}  // namespace stag::nfs::nfs4
