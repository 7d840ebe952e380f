// stag_side THEIRS -- compares, value by value, what this project encodes with what libtirpc wrote
// into THEIRS, and what it decodes from those bytes with the value they came from.
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include ORACLE_HEADER
#include "tests/oracle/rng.h"

namespace {

constexpr std::uint32_t kValues = 10'000;

struct Row {
  std::string name;
  std::function<std::string(rng)> encode;
  // Whether the bytes decode to the value drawn from the generator.
  std::function<bool(rng, const std::string&)> matches;
};

std::string draw_text(rng* rng, std::uint32_t length) {
  std::string text(length, '\0');
  for (char& c : text) c = static_cast<char>(draw_u32(rng));
  return text;
}

[[maybe_unused]] stag::Rope draw_rope(rng* rng, std::uint32_t length) {
  return stag::Rope::copy_of(stag::bytes_of(draw_text(rng, length)));
}

template <std::size_t N>
[[maybe_unused]] void draw_bytes(rng* rng, std::array<std::byte, N>& to) {
  const std::string text = draw_text(rng, N);
  std::ranges::copy(stag::bytes_of(text), to.begin());
}

std::string draw_string(rng* rng, std::uint32_t most) {
  std::string text(draw_below(rng, most + 1), '\0');
  for (char& c : text) c = static_cast<char>('!' + draw_below(rng, 94));
  return text;
}

template <class T, class Encode, class Decode>
Row row(const char* name, T (*build)(rng*), Encode encode, Decode decode) {
  Row result;
  result.name = name;
  result.encode = [build, encode](rng numbers) {
    stag::xdr::Encoder encoder;
    encode(encoder, build(&numbers));
    const stag::xdr::Stream stream = std::move(encoder).finish();
    return std::string(stream.ok() ? stag::text_of(stream.rope().flatten().bytes()) : "refused");
  };
  result.matches = [build, decode](rng numbers, const std::string& bytes) {
    stag::xdr::Decoder decoder(stag::Buffer::copy_of(stag::bytes_of(bytes)));
    T value{};
    return decode(decoder, value) && decoder.finish().ok() && value == build(&numbers);
  };
  return result;
}

using namespace ORACLE_NAMESPACE;
#include ORACLE_BUILDERS

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

bool agrees(std::uint32_t index, const std::string& line) {
  std::istringstream words(line);
  std::uint32_t their_index = 0;
  std::string name, hex;
  words >> their_index >> name >> hex;
  const Row& type = types[index % types.size()];
  const std::string theirs = from_hex(hex);
  const bool same = their_index == index && name == type.name &&
                    type.encode(rng_of_value(index)) == theirs &&
                    type.matches(rng_of_value(index), theirs);
  if (!same) std::cerr << "value " << index << ", a " << type.name << ", differs\n";
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream theirs(argc == 2 ? argv[1] : "");
  std::uint32_t compared = 0, different = 0;
  for (std::string line; std::getline(theirs, line) && different < 10; ++compared)
    if (!agrees(compared, line)) ++different;
  std::cout << compared << " values of " << types.size() << " types compared, " << different
            << " differ\n";
  return compared == kValues && different == 0 ? 0 : 1;
}
