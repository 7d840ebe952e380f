// Decoders that xdrgen made, tried with any bytes: what decodes encodes again, to bytes that decode
// to the same value.
#pragma once

#include "base/buffer.h"
#include "base/check.h"
#include "input.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::fuzz {

template <class T, class Decode, class Encode>
void try_value(const Buffer& message, Decode decode, Encode encode) {
  xdr::Decoder decoder(message);
  T value{};
  if (!decode(decoder, value)) return;
  xdr::Encoder encoder;
  encode(encoder, value);
  xdr::Stream stream = std::move(encoder).finish();
  STAG_CHECK(stream.ok());
  xdr::Decoder second(stream.rope().flatten());
  T again{};
  STAG_CHECK(decode(second, again) && again == value);
}

// The arguments and the results of a procedure.
template <class P>
void try_procedure(const Buffer& message) {
  try_value<typename P::Args>(message, P::decode_args, P::encode_args);
  try_value<typename P::Results>(message, P::decode_results, P::encode_results);
}

using Try = void (*)(const Buffer&);

// The first byte chooses, the others are the message.
template <class Tries>
void try_one_of(const Tries& tries, const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::uint8_t choice = input.octet();
  tries[choice % tries.size()](Buffer::copy_of(input.rest()));
}

}  // namespace stag::fuzz
