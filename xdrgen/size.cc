#include "xdrgen/size.h"

#include <algorithm>

namespace xdrgen {
namespace {

constexpr std::uint64_t kLimit = std::numeric_limits<std::uint32_t>::max();

std::optional<std::uint32_t> fit(std::uint64_t size) {
  if (size >= kLimit) return std::nullopt;
  return static_cast<std::uint32_t>(size);
}

Size add(const Size& a, const Size& b) {
  Size sum;
  sum.least =
      static_cast<std::uint32_t>(std::min(kLimit, std::uint64_t{a.least} + std::uint64_t{b.least}));
  sum.most = std::nullopt;
  if (a.most && b.most) sum.most = fit(std::uint64_t{*a.most} + *b.most);
  return sum;
}

// `count` elements; both factors are below 2^32, so the product does not overflow.
Size times(std::uint32_t count, const Size& one) {
  Size product;
  product.least = static_cast<std::uint32_t>(std::min(kLimit, std::uint64_t{count} * one.least));
  product.most = one.most ? fit(std::uint64_t{count} * *one.most) : std::nullopt;
  return product;
}

std::uint64_t padded(std::uint64_t length) {
  return (length + 3) / 4 * 4;
}

}  // namespace

Size Sizes::of(const Type& type) {
  switch (type.kind) {
    case Kind::Void:
      return {0, 0};
    case Kind::Int:
    case Kind::UnsignedInt:
    case Kind::Float:
    case Kind::Bool:
      return {4, 4};
    case Kind::Hyper:
    case Kind::UnsignedHyper:
    case Kind::Double:
      return {8, 8};
    case Kind::Quadruple:
      return {16, 16};
    case Kind::Enum:
    case Kind::Struct:
    case Kind::Union:
    case Kind::Alias:
      return of(*type.named);
    case Kind::FixedOpaque: {
      const std::uint64_t length = padded(type.bound);
      return {static_cast<std::uint32_t>(std::min(kLimit, length)), fit(length)};
    }
    case Kind::BoundedOpaque:
    case Kind::Opaque:
    case Kind::String:
      return {4, fit(4 + padded(type.bound))};
    case Kind::Array:
      return times(type.bound, of(*type.element));
    case Kind::Vector:
      return {4, add({4, 4}, times(type.bound, of(*type.element))).most};
    case Kind::Optional:
      return {4, add({4, 4}, of(*type.element)).most};
    case Kind::List:
      return {4, std::nullopt};
  }
  return {};
}

Size Sizes::of(const Named& named) {
  if (const auto at = known_.find(&named); at != known_.end()) return at->second;
  // What is asked for again meanwhile contains itself.
  known_[&named] = {0, std::nullopt};
  return known_[&named] = compute(named);
}

Size Sizes::compute(const Named& named) {
  if (const auto* alias = std::get_if<Alias>(&named.body)) return of(*alias->field.type);
  if (std::holds_alternative<Enum>(named.body)) return {4, 4};
  if (const auto* structure = std::get_if<Struct>(&named.body)) {
    Size sum{0, 0};
    for (const Field& field : structure->fields) sum = add(sum, of(*field.type));
    return sum;
  }
  const auto& unions = std::get<Union>(named.body);
  Size widest{std::numeric_limits<std::uint32_t>::max(), 0};
  for (const Arm& arm : unions.arms) {
    const Size size = of(*arm.field.type);
    widest.least = std::min(widest.least, size.least);
    if (!size.most) widest.most = std::nullopt;
    if (widest.most) widest.most = std::max(*widest.most, *size.most);
  }
  return add({4, 4}, widest);
}

}  // namespace xdrgen
