// ACCESS, GETATTR, SETATTR, VERIFY and NVERIFY (RFC 8881 5, 18.1, 18.7, 18.15, 18.30, 18.31).
#include "conform/nfs4/cases.h"
#include "conform/nfs4/checks.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

constexpr std::uint32_t kAllAccess = 0x3f;

std::string has_all(Scene& scene, const bitmap4& asked) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::uint32_t came =
        i < scene.attributes.attrmask.size() ? scene.attributes.attrmask[i] : 0;
    if ((came & asked[i]) != asked[i]) return "REQUIRED attributes are missing";
    if ((came & ~asked[i]) != 0) return "attributes came that were not asked for";
  }
  return {};
}

std::string has_required(Scene& scene, const COMPOUND4res&) {
  return has_all(scene, bits({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19}));
}

std::string has_none(Scene& scene, const COMPOUND4res&) {
  for (const std::uint32_t word : scene.attributes.attrmask)
    if (word != 0) return "an attribute came that no RFC knows";
  return {};
}

std::string only_asked(Scene&, const COMPOUND4res& results) {
  const ACCESS4resok& ok = results.resarray.back().opaccess().resok4();
  const std::uint32_t asked = ACCESS4_READ | ACCESS4_DELETE;
  return ((ok.supported | ok.access) & ~asked) == 0 ? "" : "bits came that were not asked for";
}

Steps many(std::size_t count, const Step& step) {
  Steps steps(count, step);
  steps.insert(steps.begin(), at("file"));
  return steps;
}

Scripts reading() {
  return {
      {.note = "of a file", .steps = {at("file"), access(kAllAccess)}},
      {.note = "of a folder", .steps = {at("dir"), access(kAllAccess)}},
      {.note = "answers what was asked",
       .steps = {at("file"), access(ACCESS4_READ | ACCESS4_DELETE)},
       .check = only_asked},
      {.note = "bits that no RFC knows",
       .steps = {at("file"), access(1u << 20)},
       .expect = {NFS4ERR_INVAL, NFS4_OK}},
      {.note = "the REQUIRED attributes",
       .steps = {at("file"), getattr(bits({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19}))},
       .check = has_required,
       .section = "8881 5.6"},
      {.note = "more than a reply takes, or a COMPOUND",
       .minors = k40,
       .steps = many(300, getattr(bits({kType, kSize, kFileid, kMode, kOwner}))),
       .expect = {NFS4ERR_RESOURCE, NFS4_OK},
       .earlier = true},
      {.note = "none", .steps = {at("file"), getattr({})}},
      {.note = "one that no RFC knows is left out",
       .steps = {at("file"), getattr(bits({kUnknown}))},
       .check = has_none},
      {.note = "one that can only be set",
       .steps = {at("file"), getattr(bits({kTimeModifySet}))},
       .expect = {NFS4ERR_INVAL}},
      {.note = "of a file that this user may not read",
       .steps = {at("secret"), getattr(bits({kType, kSize}))},
       .expect = {NFS4_OK, NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "of a file that this user may not read",
       .steps = {at("secret"), access(kAllAccess)},
       .expect = {NFS4_OK, NFS4ERR_ACCESS},
       .stranger = true},
  };
}

Scripts setting() {
  return {
      {.note = "the mode",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})}},
       .steps = {at("f"), setattr("anonymous", mode_is(0640))},
       .proof = {{at("f"), getattr(bits({kMode}))}, NFS4_OK, attributes_are(mode_is(0640))}},
      {.note = "nothing", .steps = {at("file"), setattr("anonymous", {})}},
      {.note = "the size, with an open",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})}},
       .steps = {at("f"), setattr("f", size_is(10))},
       .proof = {{at("f"), getattr(bits({kSize}))}, NFS4_OK, attributes_are(size_is(10))}},
      {.note = "a size that no store takes",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})}},
       .steps = {at("f"), setattr("f", size_is(kLast))},
       .expect = {NFS4ERR_FBIG, NFS4ERR_INVAL}},
      {.note = "the size of a folder",
       .steps = {at("dir"), setattr("anonymous", size_is(10))},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_INVAL}},
      {.note = "the size of a FIFO",
       .steps = {at("fifo"), setattr("anonymous", size_is(10))},
       .expect = {NFS4ERR_INVAL, NFS4ERR_WRONG_TYPE, NFS4ERR_BAD_STATEID}},
      {.note = "the size, with an open for reading",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})},
                  {own(), open({.name = "f", .access = kRead, .owner = "reader", .as = "r"})}},
       .steps = {at("f"), setattr("r", size_is(10))},
       .expect = {NFS4ERR_OPENMODE}},
  };
}

Scripts refused_setting() {
  return {
      {.note = "one that no RFC knows",
       .steps = {at("file"), setattr("anonymous", attribute(kUnknown, 1))},
       .expect = {NFS4ERR_ATTRNOTSUPP}},
      {.note = "one that cannot be set",
       .steps = {at("file"), setattr("anonymous", type_is(NF4REG))},
       .expect = {NFS4ERR_INVAL}},
      {.note = "of another user's file",
       .steps = {at("file"), setattr("anonymous", mode_is(0666))},
       .expect = {NFS4ERR_PERM, NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "the size of another user's file",
       .steps = {at("secret"), setattr("anonymous", size_is(0))},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "an owner that nobody knows",
       .steps = {at("file"), setattr("anonymous", owner_is("nobody knows@stag.invalid"))},
       .expect = {NFS4ERR_BADOWNER, NFS4ERR_PERM}},
      {.note = "an owner with a zero byte",
       .steps = {at("file"), setattr("anonymous", owner_is(std::string("a\0b@c", 5)))},
       .expect = {NFS4ERR_BADCHAR, NFS4ERR_BADOWNER, NFS4ERR_INVAL, NFS4ERR_PERM}},
      {.note = "values that end too early",
       .steps = {at("file"), setattr("anonymous", truncated(mode_is(0644)))},
       .expect = {NFS4ERR_BADXDR}},
      {.note = "a value that is not allowed",
       .steps = {at("file"), setattr("anonymous", mode_is(0xffffffff))},
       .expect = {NFS4ERR_INVAL, NFS4_OK}},
  };
}

Scripts comparing(bool negative) {
  const auto same = negative ? nverify_same : verify_same;
  const auto compare = negative ? nverify : verify;
  const nfsstat4 if_same = negative ? NFS4ERR_SAME : NFS4_OK;
  const nfsstat4 if_not = negative ? NFS4_OK : NFS4ERR_NOT_SAME;
  const std::vector<Steps> known{{at("file"), getattr(bits({kType, kSize, kFileid}))}};
  return {
      {.note = "attributes that are the same",
       .before = known,
       .steps = {at("file"), same()},
       .expect = {if_same}},
      {.note = "attributes that differ",
       .before = known,
       .steps = {at("dir"), same()},
       .expect = {if_not}},
      {.note = "of a file that this user may not read",
       .before = {{at("secret"), getattr(bits({kType, kSize, kFileid}))}},
       .steps = {at("secret"), same()},
       .expect = {if_same, NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "an owner with a zero byte",
       .steps = {at("file"), compare(owner_is(std::string("a\0b@c", 5)))},
       .expect = {NFS4ERR_BADCHAR, NFS4ERR_BADOWNER, NFS4ERR_INVAL, if_not}},
      {.note = "one that can only be set",
       .steps = {at("file"), compare(attribute(kTimeModifySet, 0))},
       .expect = {NFS4ERR_INVAL}},
      {.note = "rdattr_error",
       .steps = {at("file"), compare(attribute(11, 0))},
       .expect = {NFS4ERR_INVAL}},
      {.note = "one that no RFC knows",
       .steps = {at("file"), compare(attribute(kUnknown, 0))},
       .expect = {NFS4ERR_ATTRNOTSUPP}},
      {.note = "values that end too early",
       .steps = {at("file"), compare(truncated(type_is(NF4REG)))},
       .expect = {NFS4ERR_BADXDR, NFS4ERR_INVAL, if_not}},
  };
}

}  // namespace

Scripts attribute_cases() {
  Scripts all = reading();
  append(all, setting());
  append(all, refused_setting());
  append(all, comparing(false));
  append(all, comparing(true));
  return all;
}

}  // namespace stag::conform::nfs4
