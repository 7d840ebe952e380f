#include "nfs/client/v4/copy_notice.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace stag::nfs::client::nfs4 {
namespace {

constexpr std::size_t kSeqidSize = sizeof(v4::stateid4::seqid);
static_assert(kSeqidSize + v4::NFS4_OTHER_SIZE == sizeof(CopyNotice::stateid));

ServerLocation to_location(v4::netloc4& from) {
  using Kind = ServerLocation::Kind;
  switch (from.nl_type) {
    case v4::NL4_NAME:
      return {Kind::Name, std::move(from.nl_name()), {}};
    case v4::NL4_URL:
      return {Kind::Url, std::move(from.nl_url()), {}};
    case v4::NL4_NETADDR:
      break;
  }
  v4::netaddr4& address = from.nl_addr();
  return {Kind::Address, std::move(address.na_r_addr), std::move(address.na_r_netid)};
}

v4::netloc4 to_netloc4(const ServerLocation& from) {
  v4::netloc4 to;
  switch (from.kind) {
    case ServerLocation::Kind::Name:
      to.nl_type = v4::NL4_NAME;
      to.nl_name() = from.where;
      break;
    case ServerLocation::Kind::Url:
      to.nl_type = v4::NL4_URL;
      to.nl_url() = from.where;
      break;
    case ServerLocation::Kind::Address:
      to.nl_type = v4::NL4_NETADDR;
      to.nl_addr() = {from.netid, from.where};
  }
  return to;
}

}  // namespace

CopyNotice to_copy_notice(const v4::stateid4& stateid) {
  CopyNotice notice;
  store_be(notice.stateid.data(), stateid.seqid);
  std::ranges::copy(stateid.other, notice.stateid.begin() + kSeqidSize);
  return notice;
}

CopyNotice to_copy_notice(v4::COPY_NOTIFY4resok answer) {
  CopyNotice notice = to_copy_notice(answer.cnr_stateid);
  for (v4::netloc4& location : answer.cnr_source_server)
    notice.locations.push_back(to_location(location));
  return notice;
}

v4::stateid4 stateid_of(const CopyNotice& notice) {
  v4::stateid4 stateid;
  stateid.seqid = load_be<std::uint32_t>(notice.stateid.data());
  std::copy(notice.stateid.begin() + kSeqidSize, notice.stateid.end(), stateid.other.begin());
  return stateid;
}

std::vector<v4::netloc4> locations_of(const CopyNotice& notice) {
  std::vector<v4::netloc4> locations;
  for (const ServerLocation& location : notice.locations) locations.push_back(to_netloc4(location));
  return locations;
}

}  // namespace stag::nfs::client::nfs4
