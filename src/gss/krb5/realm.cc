#include "gss/krb5/realm.h"

#include <krb5.h>

namespace stag::gss::krb5 {

std::string default_realm() {
  krb5_context context = nullptr;
  if (krb5_init_context(&context) != 0) return {};
  char* realm = nullptr;
  std::string found;
  if (krb5_get_default_realm(context, &realm) == 0) {
    found = realm;
    krb5_free_default_realm(context, realm);
  }
  krb5_free_context(context);
  return found;
}

}  // namespace stag::gss::krb5
