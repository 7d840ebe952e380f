#include "nfs/client/protocol/error.h"

#include <utility>

namespace stag::nfs::client {
namespace {

std::string cannot(Doing doing) {
  std::string text = "cannot " + std::string(doing.verb);
  if (!doing.name.empty()) text += " '" + std::string(doing.name) + "'";
  return text + ": ";
}

Error make(Error::Kind kind, std::string sentence) {
  Error error;
  error.kind = kind;
  error.sentence = std::move(sentence);
  return error;
}

std::string_view words(mount3::mountstat3 status) {
  switch (status) {
    case mount3::MNT3_OK:
      return "no error";
    case mount3::MNT3ERR_PERM:
    case mount3::MNT3ERR_ACCES:
      return "the server does not let this client mount it; check its export options";
    case mount3::MNT3ERR_NOENT:
      return "the server exports no such directory; see what it does with 'stag info HOST'";
    case mount3::MNT3ERR_IO:
      return "the server had an input/output error";
    case mount3::MNT3ERR_NOTDIR:
      return "it is not a directory";
    case mount3::MNT3ERR_INVAL:
      return "the server calls the path invalid";
    case mount3::MNT3ERR_NAMETOOLONG:
      return "the path is too long";
    case mount3::MNT3ERR_NOTSUPP:
      return "the server's MOUNT service does not support this";
    case mount3::MNT3ERR_SERVERFAULT:
      return "the server's MOUNT service failed";
  }
  return "the server gave an unknown status";
}

// What the user can do about it; empty where the words say it.
std::string_view advice(v3::nfsstat3 status) {
  switch (status) {
    case v3::NFS3ERR_NOENT:
      return "; check the path";
    case v3::NFS3ERR_ACCES:
      return "; check owner and mode, and the options of the export";
    case v3::NFS3ERR_NOSPC:
    case v3::NFS3ERR_DQUOT:
      return "; make room there";
    case v3::NFS3ERR_ROFS:
      return "; have it exported with rw, or choose another one";
    default:
      return "";
  }
}

}  // namespace

std::string_view words(v3::nfsstat3 status) {
  switch (status) {
    case v3::NFS3_OK:
      return "no error";
    case v3::NFS3ERR_PERM:
      return "only the owner or root may do that";
    case v3::NFS3ERR_NOENT:
      return "no such file or directory";
    case v3::NFS3ERR_IO:
      return "the server had an input/output error";
    case v3::NFS3ERR_NXIO:
      return "no such device on the server";
    case v3::NFS3ERR_ACCES:
      return "permission denied";
    case v3::NFS3ERR_EXIST:
      return "it exists already";
    case v3::NFS3ERR_XDEV:
      return "the two are on different file systems";
    case v3::NFS3ERR_NODEV:
      return "no such device";
    case v3::NFS3ERR_NOTDIR:
      return "not a directory";
    case v3::NFS3ERR_ISDIR:
      return "it is a directory";
    case v3::NFS3ERR_INVAL:
      return "the server calls an argument invalid";
    case v3::NFS3ERR_FBIG:
      return "the file would become larger than the server allows";
    case v3::NFS3ERR_NOSPC:
      return "no space left on the server";
    case v3::NFS3ERR_ROFS:
      return "the export is read-only";
    case v3::NFS3ERR_MLINK:
      return "the file has too many links";
    case v3::NFS3ERR_NAMETOOLONG:
      return "the name is too long";
    case v3::NFS3ERR_NOTEMPTY:
      return "the directory is not empty";
    case v3::NFS3ERR_DQUOT:
      return "the disk quota on the server is used up";
    case v3::NFS3ERR_STALE:
      return "it is gone from the server (stale file handle)";
    case v3::NFS3ERR_REMOTE:
      return "too many levels of remote in the path";
    case v3::NFS3ERR_BADHANDLE:
      return "the server does not know its file handle";
    case v3::NFS3ERR_NOT_SYNC:
      return "it was changed by somebody else in the meantime";
    case v3::NFS3ERR_BAD_COOKIE:
      return "the directory changed while it was listed; list it again";
    case v3::NFS3ERR_NOTSUPP:
      return "the server does not support this";
    case v3::NFS3ERR_TOOSMALL:
      return "the request is too small for the server";
    case v3::NFS3ERR_SERVERFAULT:
      return "the server failed";
    case v3::NFS3ERR_BADTYPE:
      return "the server does not support this type of file";
    case v3::NFS3ERR_JUKEBOX:
      return "the server is still not ready to serve this; try again later";
  }
  return "the server gave an unknown status";
}

Error Error::of_url(std::string sentence) {
  return make(Kind::Url, std::move(sentence));
}

Error Error::of_call(Doing doing, rpc::CallError call) {
  Error error = make(Kind::Call, cannot(doing) + call.message());
  error.call = std::move(call);
  return error;
}

Error Error::of_mount(std::string_view path, mount3::mountstat3 status) {
  Error error = make(Kind::Mount, cannot({"mount", path}) + std::string(words(status)));
  error.mount_status = status;
  return error;
}

Error Error::of_status(Doing doing, v3::nfsstat3 status) {
  Error error = make(Kind::Nfs, cannot(doing) + std::string(words(status)));
  error.sentence += advice(status);
  error.status = status;
  return error;
}

Error Error::of_protocol(Doing doing, std::string_view what) {
  return make(Kind::Protocol, cannot(doing) + "the server " + std::string(what));
}

Error Error::of_links(std::string sentence) {
  return make(Kind::Links, std::move(sentence));
}

Error Error::of_local(std::string sentence) {
  return make(Kind::Local, std::move(sentence));
}

}  // namespace stag::nfs::client
