#include "net/system_error.h"

#include <cerrno>
#include <system_error>

namespace stag::net {

Reason reason_of_errno(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ENOENT:  // a Unix socket that nobody made
      return Reason::ConnectionRefused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case EAFNOSUPPORT:
      return Reason::HostUnreachable;
    case ETIMEDOUT:
      return Reason::ConnectTimedOut;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
      return Reason::ConnectionReset;
    case EBADF:
    case ENOTCONN:
    case ESHUTDOWN:
      return Reason::SocketClosed;
    case EADDRINUSE:
      return Reason::AddressInUse;
    case EADDRNOTAVAIL:
      return Reason::AddressNotAvailable;
    case EACCES:
    case EPERM:
      return Reason::BindNotPermitted;
    case EMFILE:
    case ENFILE:
      return Reason::TooManyOpenFiles;
    case ENOMEM:
    case ENOBUFS:
      return Reason::OutOfMemory;
    case EMSGSIZE:
      return Reason::DatagramTooLong;
    default:
      trace(Reason::SocketFailed, {}, std::generic_category().message(error));
      return Reason::SocketFailed;
  }
}

}  // namespace stag::net
