// Owners of the library's objects.
#pragma once

#include <gssapi/gssapi.h>

#include <utility>

namespace stag::gss::krb5 {

template <class Handle, OM_uint32 (*kRelease)(OM_uint32*, Handle*)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    OM_uint32 minor = 0;
    if (handle_ != Handle{}) kRelease(&minor, &handle_);
  }
  Handle get() const { return handle_; }
  // For functions that make one, or change it.
  Handle* out() { return &handle_; }

 private:
  Handle handle_{};
};

using Name = Owned<gss_name_t, gss_release_name>;
using Credential = Owned<gss_cred_id_t, gss_release_cred>;

}  // namespace stag::gss::krb5
