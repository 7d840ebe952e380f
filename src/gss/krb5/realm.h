// The realm of this host. May block (files, DNS). Thread: any.
#pragma once

#include <string>

namespace stag::gss::krb5 {

// That of krb5.conf, else whatever the library finds; empty: there is none.
std::string default_realm();

}  // namespace stag::gss::krb5
