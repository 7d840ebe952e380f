#include "nfs/client/protocol/error.h"

#include <utility>

namespace stag::nfs::client {
namespace {

std::string cannot(OperationContext context) {
  std::string text = "cannot " + std::string(context.verb);
  if (!context.name.empty()) text += " '" + std::string(context.name) + "'";
  return text + ": ";
}

Error make(Error::Kind kind, std::string sentence) {
  Error error;
  error.kind = kind;
  error.sentence = std::move(sentence);
  return error;
}

std::string_view mount_words(Status status) {
  switch (status) {
    case Status::Ok:
      return "no error";
    case Status::NotOwner:
    case Status::Access:
      return "the server does not let this client mount it; check its export options";
    case Status::NoEntry:
      return "the server exports no such directory; see what it does with 'stag info HOST'";
    case Status::Io:
      return "the server had an input/output error";
    case Status::NotDirectory:
      return "it is not a directory";
    case Status::Invalid:
      return "the server calls the path invalid";
    case Status::NameTooLong:
      return "the path is too long";
    case Status::NotSupported:
      return "the server's MOUNT service does not support this";
    case Status::ServerFault:
      return "the server's MOUNT service failed";
    default:
      return "the server gave an unknown status";
  }
}

// What the user can do about it; empty if words() says enough.
std::string_view advice(Status status) {
  switch (status) {
    case Status::NoEntry:
      return "; check the path";
    case Status::Access:
      return "; check owner and mode, and the options of the export";
    case Status::NoSpace:
    case Status::QuotaExceeded:
      return "; make room there";
    case Status::ReadOnly:
      return "; have it exported with rw, or choose another one";
    default:
      return "";
  }
}

}  // namespace

std::string_view words(Status status) {
  switch (status) {
    case Status::Ok:
      return "no error";
    case Status::NotOwner:
      return "only the owner or root may do that";
    case Status::NoEntry:
      return "no such file or directory";
    case Status::Io:
      return "the server had an input/output error";
    case Status::NoDeviceOrAddress:
      return "no such device on the server";
    case Status::Access:
      return "permission denied";
    case Status::Exists:
      return "it exists already";
    case Status::CrossDevice:
      return "the two are on different file systems";
    case Status::NoDevice:
      return "no such device";
    case Status::NotDirectory:
      return "not a directory";
    case Status::IsDirectory:
      return "it is a directory";
    case Status::Invalid:
      return "the server calls an argument invalid";
    case Status::FileTooBig:
      return "the file would become larger than the server allows";
    case Status::NoSpace:
      return "no space left on the server";
    case Status::ReadOnly:
      return "the export is read-only";
    case Status::TooManyLinks:
      return "the file has too many links";
    case Status::NameTooLong:
      return "the name is too long";
    case Status::NotEmpty:
      return "the directory is not empty";
    case Status::QuotaExceeded:
      return "the disk quota on the server is used up";
    case Status::Stale:
      return "it is gone from the server (stale file handle)";
    case Status::Remote:
      return "too many levels of remote in the path";
    case Status::BadHandle:
      return "the server does not know its file handle";
    case Status::NotSync:
      return "it was changed by somebody else in the meantime";
    case Status::BadCookie:
      return "the directory changed while it was listed; list it again";
    case Status::NotSupported:
      return "the server does not support this";
    case Status::TooSmall:
      return "the request is too small for the server";
    case Status::ServerFault:
      return "the server failed";
    case Status::BadType:
      return "the server does not support this type of file";
    case Status::Delay:
      return "the server is still not ready to serve this; try again later";
    case Status::NoXattr:
      return "it has no such extended attribute";
    case Status::XattrTooBig:
      return "the extended attribute is too big for the server";
    case Status::Locked:
      return "somebody else has locked it";
    case Status::StateLost:
      return "the server has given up this open, or a lock by it; close the file, and begin again";
    case Status::Unknown:
      break;
  }
  return "the server gave an unknown status";
}

Error Error::of_url(std::string sentence) {
  return make(Kind::Url, std::move(sentence));
}

Error Error::of_call(OperationContext context, rpc::CallError call) {
  Error error = make(Kind::Call, cannot(context) + call.message());
  error.call = std::move(call);
  return error;
}

Error Error::of_mount(std::string_view path, Status status) {
  Error error = make(Kind::Mount, cannot({"mount", path}) + std::string(mount_words(status)));
  error.status = status;
  return error;
}

Error Error::of_status(OperationContext context, Status status) {
  Error error = make(Kind::Nfs, cannot(context) + std::string(words(status)));
  error.sentence += advice(status);
  error.status = status;
  return error;
}

Error Error::of_protocol(OperationContext context, std::string_view what) {
  return make(Kind::Protocol, cannot(context) + "the server " + std::string(what));
}

Error Error::of_links(std::string sentence) {
  return make(Kind::Links, std::move(sentence));
}

Error Error::of_local(std::string sentence) {
  return make(Kind::Local, std::move(sentence));
}

}  // namespace stag::nfs::client
