#include "nfs/client/attributes.h"

namespace stag::nfs::client {
namespace {

v3::time_how how(SetTime::How how) {
  switch (how) {
    case SetTime::How::Keep:
      return v3::DONT_CHANGE;
    case SetTime::How::Now:
      return v3::SET_TO_SERVER_TIME;
    case SetTime::How::To:
      return v3::SET_TO_CLIENT_TIME;
  }
  return v3::DONT_CHANGE;
}

}  // namespace

v3::sattr3 to_sattr3(const SetAttributes& attributes) {
  v3::sattr3 out;
  out.mode.set_it = attributes.mode.has_value();
  if (attributes.mode) out.mode.mode() = *attributes.mode;
  out.uid.set_it = attributes.uid.has_value();
  if (attributes.uid) out.uid.uid() = *attributes.uid;
  out.gid.set_it = attributes.gid.has_value();
  if (attributes.gid) out.gid.gid() = *attributes.gid;
  out.size.set_it = attributes.size.has_value();
  if (attributes.size) out.size.size() = *attributes.size;
  out.atime.set_it = how(attributes.accessed.how);
  if (out.atime.set_it == v3::SET_TO_CLIENT_TIME) out.atime.atime() = attributes.accessed.time;
  out.mtime.set_it = how(attributes.modified.how);
  if (out.mtime.set_it == v3::SET_TO_CLIENT_TIME) out.mtime.mtime() = attributes.modified.time;
  return out;
}

}  // namespace stag::nfs::client
