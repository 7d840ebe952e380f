#include "nfs/v4/ops/secinfo_entry.h"

#include <span>

#include "nfs/export/exports.h"

namespace stag::nfs::nfs4 {

namespace {

// Of Kerberos V5, 1.2.840.113554.1.2.2 (RFC 1964), as the contents of its encoding.
constexpr unsigned char kKerberosOid[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02};

v4::rpc_gss_svc_t service_of(oncrpc::AuthFlavor flavor) {
  if (flavor == oncrpc::AuthFlavor::KRB5I) return v4::RPC_GSS_SVC_INTEGRITY;
  if (flavor == oncrpc::AuthFlavor::KRB5P) return v4::RPC_GSS_SVC_PRIVACY;
  return v4::RPC_GSS_SVC_NONE;
}

}  // namespace

v4::secinfo4 secinfo_entry(oncrpc::AuthFlavor flavor) {
  v4::secinfo4 entry;
  if (!is_kerberos(flavor)) {
    entry.flavor = static_cast<std::uint32_t>(flavor);
    return entry;
  }
  entry.flavor = v4::RPCSEC_GSS;
  entry.flavor_info().oid = Rope::copy_of(std::as_bytes(std::span(kKerberosOid)));
  entry.flavor_info().service = service_of(flavor);
  return entry;
}

}  // namespace stag::nfs::nfs4
