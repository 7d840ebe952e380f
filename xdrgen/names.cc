#include "xdrgen/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace xdrgen {
namespace {

constexpr std::array<std::string_view, 103> kKeywords = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return",
    "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
    "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
    "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
    "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
    "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
    "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
    "while", "xor", "xor_eq",
    // Macros of the language's headers.
    "errno", "stdin", "stdout", "stderr", "NULL", "EOF", "TRUE", "FALSE", "assert", "linux",
    "unix"};

// Macros of the system's headers that the generated code includes, as far as specifications are
// likely to have the same names.
constexpr std::array<std::string_view, 204> kMacros = {
    // <errno.h>
    "E2BIG", "EACCES", "EADDRINUSE", "EADDRNOTAVAIL", "EADV", "EAFNOSUPPORT", "EAGAIN", "EALREADY",
    "EBADE", "EBADF", "EBADFD", "EBADMSG", "EBADR", "EBADRQC", "EBADSLT", "EBFONT", "EBUSY",
    "ECANCELED", "ECHILD", "ECHRNG", "ECOMM", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET",
    "EDEADLK", "EDEADLOCK", "EDESTADDRREQ", "EDOM", "EDOTDOT", "EDQUOT", "EEXIST", "EFAULT",
    "EFBIG", "EHOSTDOWN", "EHOSTUNREACH", "EHWPOISON", "EIDRM", "EILSEQ", "EINPROGRESS", "EINTR",
    "EINVAL", "EIO", "EISCONN", "EISDIR", "EISNAM", "EKEYEXPIRED", "EKEYREJECTED", "EKEYREVOKED",
    "EL2HLT", "EL2NSYNC", "EL3HLT", "EL3RST", "ELIBACC", "ELIBBAD", "ELIBEXEC", "ELIBMAX",
    "ELIBSCN", "ELNRNG", "ELOOP", "EMEDIUMTYPE", "EMFILE", "EMLINK", "EMSGSIZE", "EMULTIHOP",
    "ENAMETOOLONG", "ENAVAIL", "ENETDOWN", "ENETRESET", "ENETUNREACH", "ENFILE", "ENOANO",
    "ENOBUFS", "ENOCSI", "ENODATA", "ENODEV", "ENOENT", "ENOEXEC", "ENOKEY", "ENOLCK", "ENOLINK",
    "ENOMEDIUM", "ENOMEM", "ENOMSG", "ENONET", "ENOPKG", "ENOPROTOOPT", "ENOSPC", "ENOSR", "ENOSTR",
    "ENOSYS", "ENOTBLK", "ENOTCONN", "ENOTDIR", "ENOTEMPTY", "ENOTNAM", "ENOTRECOVERABLE",
    "ENOTSOCK", "ENOTSUP", "ENOTTY", "ENOTUNIQ", "ENXIO", "EOPNOTSUPP", "EOVERFLOW", "EOWNERDEAD",
    "EPERM", "EPFNOSUPPORT", "EPIPE", "EPROTO", "EPROTONOSUPPORT", "EPROTOTYPE", "ERANGE",
    "EREMCHG", "EREMOTE", "EREMOTEIO", "ERESTART", "ERFKILL", "EROFS", "ESHUTDOWN",
    "ESOCKTNOSUPPORT", "ESPIPE", "ESRCH", "ESRMNT", "ESTALE", "ESTRPIPE", "ETIME", "ETIMEDOUT",
    "ETOOMANYREFS", "ETXTBSY", "EUCLEAN", "EUNATCH", "EUSERS", "EWOULDBLOCK", "EXDEV", "EXFULL",
    // Sizes, and what files are opened and searched with.
    "CHAR_MAX", "CHAR_MIN", "SCHAR_MAX", "SCHAR_MIN", "SHRT_MAX", "SHRT_MIN", "INT_MAX", "INT_MIN",
    "LONG_MAX", "LONG_MIN", "LLONG_MAX", "LLONG_MIN", "INT8_MAX", "INT8_MIN", "INT16_MAX",
    "INT16_MIN", "INT32_MAX", "INT32_MIN", "INT64_MAX", "INT64_MIN", "UCHAR_MAX", "USHRT_MAX",
    "UINT_MAX", "ULONG_MAX", "ULLONG_MAX", "UINT8_MAX", "UINT16_MAX", "UINT32_MAX", "UINT64_MAX",
    "SIZE_MAX", "SSIZE_MAX", "CHAR_BIT", "PATH_MAX", "NAME_MAX", "LINE_MAX", "IOV_MAX", "PIPE_BUF",
    "NGROUPS_MAX", "HOST_NAME_MAX", "LOGIN_NAME_MAX", "TTY_NAME_MAX", "MAX_INPUT", "MAX_CANON",
    "XATTR_NAME_MAX", "XATTR_SIZE_MAX", "XATTR_LIST_MAX", "BUFSIZ", "FILENAME_MAX", "SEEK_SET",
    "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE", "F_OK", "R_OK", "W_OK", "X_OK", "F_LOCK",
    "F_TEST", "F_TLOCK", "F_ULOCK", "BIG_ENDIAN", "LITTLE_ENDIAN", "BYTE_ORDER", "RAND_MAX",
    "EXIT_SUCCESS", "EXIT_FAILURE", "RENAME_EXCHANGE", "RENAME_NOREPLACE", "RENAME_WHITEOUT"};

// Names generated code uses itself.
constexpr std::array<std::string_view, 12> kOurs = {"std",    "stag",   "xdr",     "item",
                                                    "encode", "decode", "encoder", "decoder",
                                                    "value",  "inner",  "element", "to_string"};

}  // namespace

std::string cpp_name(std::string_view name) {
  std::string result(name);
  const bool taken = std::ranges::find(kKeywords, name) != kKeywords.end() ||
                     std::ranges::find(kMacros, name) != kMacros.end() ||
                     std::ranges::find(kOurs, name) != kOurs.end();
  if (taken) result += '_';
  return result;
}

std::string member_name(const Named& outer, const Field& field) {
  return field.name == outer.name ? outer.name + "_" : cpp_name(field.name);
}

TypeNames::TypeNames(std::string name_space) : name_space_(std::move(name_space)) {
  const bool inside = name_space_ == "stag" || name_space_.starts_with("stag::");
  runtime_ = inside ? "xdr::" : "stag::xdr::";
}

std::string TypeNames::constant(const std::string& name,
                                const std::set<std::string>& hidden) const {
  const std::string spelt = cpp_name(name);
  return hidden.contains(name) ? fmt::format("::{}::{}", name_space_, spelt) : spelt;
}

std::string TypeNames::bound(const Type& type, const std::set<std::string>& hidden) const {
  const bool number =
      !type.bound_text.empty() && type.bound_text[0] >= '0' && type.bound_text[0] <= '9';
  return number ? type.bound_text : constant(type.bound_text, hidden);
}

std::string TypeNames::spell(const Named& named, const std::set<std::string>& hidden) const {
  return constant(named.name, hidden);
}

std::string TypeNames::spell(const Type& type, const std::set<std::string>& hidden) const {
  const auto element = [&] { return spell(*type.element, hidden); };
  switch (type.kind) {
    case Kind::Void:
      return runtime_ + "Void";
    case Kind::Int:
      return "std::int32_t";
    case Kind::UnsignedInt:
      return "std::uint32_t";
    case Kind::Hyper:
      return "std::int64_t";
    case Kind::UnsignedHyper:
      return "std::uint64_t";
    case Kind::Float:
      return "float";
    case Kind::Double:
      return "double";
    case Kind::Quadruple:
      return runtime_ + "Quadruple";
    case Kind::Bool:
      return "bool";
    case Kind::Enum:
    case Kind::Struct:
    case Kind::Union:
    case Kind::Alias:
      return spell(*type.named, hidden);
    case Kind::FixedOpaque:
      return fmt::format("std::array<std::byte, {}>", bound(type, hidden));
    case Kind::BoundedOpaque:
      return fmt::format("{}BoundedOpaque<{}>", runtime_, bound(type, hidden));
    case Kind::Opaque:
      return runtime_ + "Opaque";
    case Kind::String:
      return "std::string";
    case Kind::Array:
      return fmt::format("std::array<{}, {}>", element(), bound(type, hidden));
    case Kind::Vector:
    case Kind::List:
      return fmt::format("std::vector<{}>", element());
    case Kind::Optional:
      return fmt::format("{}<{}>", is_boxed(type) ? runtime_ + "Box" : "std::optional", element());
  }
  return {};
}

}  // namespace xdrgen
