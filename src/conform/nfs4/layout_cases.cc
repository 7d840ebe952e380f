// Layouts that a server does not have, which pNFS leaves to it (RFC 8881 12, 18.40, 18.42-44).
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

constexpr auto kNoType = static_cast<layouttype4>(4711);

Step get_device(layouttype4 type) {
  return {OP_GETDEVICEINFO, [type](Scene&, Op& to) {
            to.opgetdeviceinfo().gdia_device_id.fill(std::byte{0x5a});
            to.opgetdeviceinfo().gdia_layout_type = type;
            to.opgetdeviceinfo().gdia_maxcount = 4096;
          }};
}

Step get_layout(std::string state, layouttype4 type, layoutiomode4 mode) {
  return {OP_LAYOUTGET, [=](Scene& scene, Op& to) {
            LAYOUTGET4args& args = to.oplayoutget();
            args.loga_layout_type = type;
            args.loga_iomode = mode;
            args.loga_length = ~std::uint64_t{0};
            args.loga_stateid = scene.stateid(state);
            args.loga_maxcount = 4096;
          }};
}

Step commit_layout(layouttype4 type) {
  return {OP_LAYOUTCOMMIT, [type](Scene&, Op& to) {
            to.oplayoutcommit().loca_layoutupdate.lou_type = type;
            to.oplayoutcommit().loca_length = 10;
          }};
}

Step return_layout(layouttype4 type) {
  return {OP_LAYOUTRETURN, [type](Scene&, Op& to) {
            LAYOUTRETURN4args& args = to.oplayoutreturn();
            args.lora_layout_type = type;
            args.lora_iomode = LAYOUTIOMODE4_ANY;
            args.lora_layoutreturn.lr_returntype = LAYOUTRETURN4_FSID;
          }};
}

Script of_layout(std::string note, Step step, Statuses expect) {
  const bool device = step.number == OP_GETDEVICEINFO;
  return {.note = std::move(note),
          .minors = kSessions,
          .before = device ? std::vector<Steps>{} : std::vector<Steps>{a_file()},
          .steps = device ? Steps{std::move(step)} : Steps{at("f"), std::move(step)},
          .expect = std::move(expect)};
}

}  // namespace

// Of a file that has no layouts a server may say that first.
Scripts layout_cases() {
  return {
      of_layout("a layout type that nobody knows", get_device(kNoType),
                {NFS4ERR_UNKNOWN_LAYOUTTYPE, NFS4ERR_INVAL}),
      of_layout("a device that nobody named", get_device(LAYOUT4_NFSV4_1_FILES),
                {NFS4ERR_NOENT, NFS4ERR_INVAL, NFS4ERR_UNKNOWN_LAYOUTTYPE}),
      of_layout("a layout type that nobody knows", get_layout("f", kNoType, LAYOUTIOMODE4_READ),
                {NFS4ERR_UNKNOWN_LAYOUTTYPE, NFS4ERR_LAYOUTUNAVAILABLE}),
      of_layout("for anything", get_layout("f", LAYOUT4_NFSV4_1_FILES, LAYOUTIOMODE4_ANY),
                {NFS4ERR_BADIOMODE, NFS4ERR_LAYOUTUNAVAILABLE, NFS4ERR_UNKNOWN_LAYOUTTYPE}),
      of_layout("a layout type that nobody knows", commit_layout(kNoType),
                {NFS4ERR_UNKNOWN_LAYOUTTYPE, NFS4ERR_LAYOUTUNAVAILABLE, NFS4ERR_BADLAYOUT}),
      of_layout("a layout type that nobody knows", return_layout(kNoType),
                {NFS4ERR_UNKNOWN_LAYOUTTYPE, NFS4ERR_LAYOUTUNAVAILABLE}),
  };
}

}  // namespace stag::conform::nfs4
