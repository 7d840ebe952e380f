#include "nfs/client/protocol/error.h"

#include <array>
#include <cstddef>
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
    case Status::WrongSecurity:
      return "the server takes no calls by this security flavor there; see which with 'stag info "
             "HOST', and name one in the URL (sec=)";
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
    case Status::WrongSecurity:
      return "; see which with 'stag info HOST', and name one in the URL (sec=)";
    case Status::Moved:
      return "; name that server in the URL";
    default:
      return "";
  }
}

struct Phrase {
  Status status;
  std::string_view words;
};

// In the order of Status, without Unknown.
constexpr auto kPhrases = std::to_array<Phrase>({
    {Status::Ok, "no error"},
    {Status::NotOwner, "only the owner or root may do that"},
    {Status::NoEntry, "no such file or directory"},
    {Status::Io, "the server had an input/output error"},
    {Status::NoDeviceOrAddress, "no such device on the server"},
    {Status::Access, "permission denied"},
    {Status::Exists, "it exists already"},
    {Status::CrossDevice, "the two are on different file systems"},
    {Status::NoDevice, "no such device"},
    {Status::NotDirectory, "not a directory"},
    {Status::IsDirectory, "it is a directory"},
    {Status::Invalid, "the server calls an argument invalid"},
    {Status::FileTooBig, "the file would become larger than the server allows"},
    {Status::NoSpace, "no space left on the server"},
    {Status::ReadOnly, "the export is read-only"},
    {Status::TooManyLinks, "the file has too many links"},
    {Status::NameTooLong, "the name is too long"},
    {Status::NotEmpty, "the directory is not empty"},
    {Status::QuotaExceeded, "the disk quota on the server is used up"},
    {Status::Stale, "it is gone from the server (stale file handle)"},
    {Status::Remote, "too many levels of remote in the path"},
    {Status::BadHandle, "the server does not know its file handle"},
    {Status::NotSync, "it was changed by somebody else in the meantime"},
    {Status::BadCookie, "the directory changed while it was listed; list it again"},
    {Status::NotSupported, "the server does not support this"},
    {Status::TooSmall, "the request is too small for the server"},
    {Status::ServerFault, "the server failed"},
    {Status::BadType, "the server does not support this type of file"},
    {Status::Delay, "the server is still not ready to serve this; try again later"},
    {Status::NoXattr, "it has no such extended attribute"},
    {Status::XattrTooBig, "the extended attribute is too big for the server"},
    {Status::Locked, "somebody else has locked it"},
    {Status::StateLost,
     "the server has given up this open, or a lock by it; close the file, and begin again"},
    {Status::InUse, "somebody else has it open or locked, and denies this meanwhile"},
    {Status::Moved,
     "the server says that this is on another server now (a referral), which stag does not follow"},
    {Status::WrongSecurity, "the server takes no calls by this security flavor there"},
});

constexpr bool all_have_words() {
  for (std::size_t i = 0; i < kPhrases.size(); ++i)
    if (kPhrases[i].status != static_cast<Status>(i)) return false;
  return kPhrases.size() == static_cast<std::size_t>(Status::Unknown);
}
static_assert(all_have_words());

}  // namespace

std::string_view words(Status status) {
  const auto index = static_cast<std::size_t>(status);
  return index < kPhrases.size() ? kPhrases[index].words : "the server gave an unknown status";
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
