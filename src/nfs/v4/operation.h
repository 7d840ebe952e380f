// An operation of NFSv4 as a row of the table: what it needs and how it is decoded, run and encoded
// (RFC 8881 section 18, RFC 7862 section 15).
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/eventual.h"
#include "nfs/v4/argument_memory.h"
#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Which filehandles an operation needs (NFS4ERR_NOFILEHANDLE).
enum class Needs : std::uint8_t { Nothing, Current, CurrentAndSaved };

// Where in a COMPOUND an operation may stand (RFC 8881 2.10.2, 18.46.3).
enum class Place : std::uint8_t {
  InSession,  // after SEQUENCE
  First,      // SEQUENCE itself
  Alone,      // without a session too, but then as the only one
  OnlyOne,    // as the only one, always
};

struct Operation {
  std::uint32_t number = 0;
  std::string_view name;
  Needs needs = Needs::Nothing;
  // Its answer where the current filehandle is a folder of the pseudo file system; NFS4_OK: it
  // knows them itself.
  v4::nfsstat4 on_pseudo = v4::NFS4_OK;
  Place place = Place::InSession;
  // Of one that changes something: bytes of its longest result. It runs only where that fits.
  std::uint32_t modifies_with = 0;
  // The eligible item of its results; where it brings none, a Write chunk is passed over.
  xdr::ItemId item = xdr::kNoItem;

  // Null: malformed. What was made belongs to the memory, but for end().
  void* (*decode)(xdr::Decoder&, ArgumentMemory&) = nullptr;
  // Null: nothing is to be done.
  void (*destroy)(void* arguments) = nullptr;
  void end(void* arguments) const {
    if (destroy != nullptr) destroy(arguments);
  }
  // Encodes the result behind its operation number.
  Eventual<v4::nfsstat4> (*run)(Compound&, void* arguments, xdr::Encoder&) = nullptr;
  // Encodes the result of one that does not run.
  void (*refuse)(xdr::Encoder&, v4::nfsstat4) = nullptr;
};

// The row of a number. Null: no minor version of this server has it (OP_ILLEGAL).
const Operation* find_operation(std::uint32_t minor, std::uint32_t number);
// Null: version 4.0 has the row of the later versions, or none.
const Operation* find_v40_operation(std::uint32_t number);

namespace detail {

template <class T>
struct Awaited {
  using Type = T;
};
template <class T>
struct Awaited<Task<T>> {
  using Type = T;
};
template <class T>
struct Awaited<Eventual<T>> {
  using Type = T;
};

template <class F>
struct Signature;
template <class R, class A>
struct Signature<R (*)(Compound&, A&)> {
  using Returned = R;
  using Arguments = A;
  template <auto function>
  static R call(Compound& compound, void* arguments) {
    return function(compound, *static_cast<A*>(arguments));
  }
};
template <class R>
struct Signature<R (*)(Compound&)> {
  using Returned = R;
  using Arguments = xdr::Void;
  template <auto function>
  static R call(Compound& compound, void*) {
    return function(compound);
  }
};

// Arguments in the memory of their COMPOUND.
template <class Arguments>
struct Decoded {
  static void* make(xdr::Decoder& decoder, ArgumentMemory& memory) {
    static_assert(alignof(Arguments) <= alignof(std::max_align_t));
    void* place = memory.take(sizeof(Arguments), alignof(Arguments));
    if (place == nullptr) {
      if (!decoder.charge(sizeof(Arguments))) return nullptr;
      place = memory.allocate(sizeof(Arguments), alignof(Arguments));
    }
    auto* made = new (place) Arguments();
    if (decode_value(decoder, *made)) return made;
    made->~Arguments();
    return nullptr;
  }
  static bool decode_value(xdr::Decoder& decoder, Arguments& to) {
    if constexpr (std::is_same_v<Arguments, xdr::Void>)
      return decoder.ok();
    else
      return decode(decoder, to);
  }
  static constexpr auto destroy() -> void (*)(void*) {
    if constexpr (std::is_trivially_destructible_v<Arguments>)
      return nullptr;
    else
      return [](void* arguments) { static_cast<Arguments*>(arguments)->~Arguments(); };
  }
};

template <auto status, auto function>
struct Glue {
  using Types = Signature<decltype(function)>;
  using Arguments = typename Types::Arguments;
  using Results = typename Awaited<typename Types::Returned>::Type;

  static Eventual<v4::nfsstat4> run(Compound& compound, void* arguments, xdr::Encoder& encoder) {
    if constexpr (std::is_same_v<Results, typename Types::Returned>) {
      return encoded(encoder, Types::template call<function>(compound, arguments));
    } else {
      Eventual<Results> results = Types::template call<function>(compound, arguments);
      if (results.ready()) return encoded(encoder, results.value());
      return encoded_later(encoder, std::move(results));
    }
  }
  static v4::nfsstat4 encoded(xdr::Encoder& encoder, const Results& results) {
    encode(encoder, results);
    return results.*status;
  }
  static Task<v4::nfsstat4> encoded_later(xdr::Encoder& encoder, Eventual<Results> results) {
    co_return encoded(encoder, co_await std::move(results));
  }
  static void refuse(xdr::Encoder& encoder, v4::nfsstat4 with) {
    Results results{};
    results.*status = with;
    encode(encoder, results);
  }
};

template <class A, Eventual<v4::nfsstat4> (*function)(Compound&, A&, xdr::Encoder&)>
constexpr Operation encoding_operation(Operation row) {
  row.decode = Decoded<A>::make;
  row.destroy = Decoded<A>::destroy();
  row.run = [](Compound& compound, void* arguments, xdr::Encoder& encoder) {
    return function(compound, *static_cast<A*>(arguments), encoder);
  };
  return row;
}

template <class A>
A arguments_of(Eventual<v4::nfsstat4> (*)(Compound&, A&, xdr::Encoder&));

}  // namespace detail

// `status` is the member of the results that has it; `function` is Results(Compound&, Arguments&),
// with a Task or an Eventual of Results where it waits, or without arguments where the operation
// has none.
template <auto status, auto function>
constexpr Operation operation(Operation row) {
  using Made = detail::Glue<status, function>;
  using Decoded = detail::Decoded<typename Made::Arguments>;
  row.decode = Decoded::make;
  row.destroy = Decoded::destroy();
  row.run = Made::run;
  row.refuse = Made::refuse;
  return row;
}
// `function` encodes its results itself; with an error they are its status alone.
template <auto function>
constexpr Operation encoding_operation(Operation row) {
  using Arguments = decltype(detail::arguments_of(function));
  return detail::encoding_operation<Arguments, function>(row);
}

}  // namespace stag::nfs::nfs4
