#include "gss/krb5/status.h"

#include <gssapi/gssapi_krb5.h>
#include <krb5/krb5.h>

#include <algorithm>

namespace stag::gss::krb5 {
namespace {

struct Meaning {
  krb5_error_code code;
  Reason reason;
};

constexpr Meaning kMeanings[] = {
    {KRB5_CC_NOTFOUND, Reason::GssNoTicket},
    {KRB5_FCC_NOFILE, Reason::GssNoTicket},
    {KRB5KRB_AP_ERR_TKT_EXPIRED, Reason::GssTicketExpired},
    {KRB5KRB_AP_ERR_SKEW, Reason::GssClockSkew},
    {KRB5KRB_AP_ERR_TKT_NYV, Reason::GssClockSkew},
    {KRB5KDC_ERR_WRONG_REALM, Reason::GssWrongRealm},
    {KRB5_REALM_UNKNOWN, Reason::GssWrongRealm},
    {KRB5_ERR_HOST_REALM_UNKNOWN, Reason::GssWrongRealm},
    {KRB5_REALM_CANT_RESOLVE, Reason::GssKdcUnreachable},
    {KRB5_KDC_UNREACH, Reason::GssKdcUnreachable},
    {KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN, Reason::GssServerUnknown},
    {KRB5_KT_NOTFOUND, Reason::GssNoKeytab},
    {KRB5KRB_AP_WRONG_PRINC, Reason::GssServerKeyWrong},
    {KRB5KRB_AP_ERR_NOT_US, Reason::GssServerKeyWrong},
    {KRB5KRB_AP_ERR_BAD_INTEGRITY, Reason::GssServerKeyWrong},
    {KRB5_KT_KVNONOTFOUND, Reason::GssServerKeyWrong},
    {KRB5KRB_AP_ERR_BADKEYVER, Reason::GssServerKeyWrong},
    {KRB5KRB_AP_ERR_NOKEY, Reason::GssServerKeyWrong},
};

void append(std::string& to, OM_uint32 code, int type) {
  OM_uint32 minor = 0, more = 0;
  do {
    GssBuffer text;
    gss_OID mechanism = type == GSS_C_MECH_CODE ? gss_mech_krb5 : GSS_C_NO_OID;
    if (GSS_ERROR(gss_display_status(&minor, code, type, mechanism, &more, text.out()))) return;
    if (!to.empty()) to += ": ";
    to += text_of(text.bytes());
  } while (more != 0);
}

}  // namespace

Major major_of(OM_uint32 major) {
  if (GSS_ERROR(major)) return static_cast<Major>(GSS_ROUTINE_ERROR(major));
  return (major & GSS_S_CONTINUE_NEEDED) != 0 ? Major::CONTINUE_NEEDED : Major::COMPLETE;
}

Reason reason_of(OM_uint32 major, OM_uint32 minor, Reason otherwise) {
  const auto code = static_cast<krb5_error_code>(minor);
  const auto found = std::ranges::find(kMeanings, code, &Meaning::code);
  if (found != std::end(kMeanings)) return found->reason;
  if (GSS_ROUTINE_ERROR(major) == GSS_S_CREDENTIALS_EXPIRED) return Reason::GssTicketExpired;
  return otherwise;
}

bool is_repeated(OM_uint32 major, OM_uint32 minor) {
  return static_cast<krb5_error_code>(minor) == KRB5KRB_AP_ERR_REPEAT ||
         (major & GSS_S_DUPLICATE_TOKEN) != 0 || GSS_ROUTINE_ERROR(major) == GSS_S_NO_CONTEXT;
}

Error error_of(OM_uint32 major, OM_uint32 minor, Reason otherwise) {
  Error error{reason_of(major, minor, otherwise), {}};
  // Of these the library's sentence says that another one is better.
  const OM_uint32 routine = GSS_ROUTINE_ERROR(major);
  const bool is_vague = routine == GSS_S_FAILURE || routine == GSS_S_NO_CRED;
  if (minor == 0 || !is_vague) append(error.detail, major, GSS_C_GSS_CODE);
  if (minor != 0) append(error.detail, minor, GSS_C_MECH_CODE);
  return error;
}

GssBuffer::~GssBuffer() {
  OM_uint32 minor = 0;
  gss_release_buffer(&minor, &buffer_);
}

}  // namespace stag::gss::krb5
