// Arguments for every operation, which are complete but need not make sense to the server.
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

constexpr std::uint64_t kNoClient = 0x5a5a5a5a5a5a5a5a;

Step of_names(nfs_opnum4 operation) {
  switch (operation) {
    case OP_ACCESS:
      return access(ACCESS4_READ);
    case OP_CREATE:
      return create("x", NF4DIR);
    case OP_GETATTR:
      return getattr(bits({kType}));
    case OP_LINK:
      return link("x");
    case OP_LOOKUP:
      return lookup("x");
    case OP_NVERIFY:
      return nverify(size_is(1));
    case OP_VERIFY:
      return verify(size_is(1));
    case OP_OPENATTR:
      return openattr();
    case OP_PUTFH:
      return at("root");
    case OP_READDIR:
      return readdir();
    case OP_REMOVE:
      return remove("x");
    case OP_RENAME:
      return rename("x", "y");
    case OP_SECINFO:
      return secinfo("x");
    case OP_SECINFO_NO_NAME:
      return secinfo_no_name(SECINFO_STYLE4_CURRENT_FH);
    case OP_SETATTR:
      return setattr("anonymous", mode_is(0644));
    case OP_GETXATTR:
      return plain(operation, &Op::opgetxattr, {"x"});
    case OP_SETXATTR:
      return plain(operation, &Op::opsetxattr, {SETXATTR4_EITHER, "x", {}});
    case OP_LISTXATTRS:
      return plain(operation, &Op::oplistxattrs, {0, 4096});
    case OP_REMOVEXATTR:
      return plain(operation, &Op::opremovexattr, {"x"});
    default:
      return plain(operation);
  }
}

Step of_data(nfs_opnum4 operation) {
  switch (operation) {
    case OP_READ:
      return read("anonymous", 0, 10);
    case OP_WRITE:
      return write("anonymous", 0, "data");
    case OP_COMMIT:
      return commit();
    case OP_ALLOCATE:
      return plain(operation, &Op::opallocate, {{}, 0, 10});
    case OP_DEALLOCATE:
      return plain(operation, &Op::opdeallocate, {{}, 0, 10});
    case OP_SEEK:
      return plain(operation, &Op::opseek, {{}, 0, NFS4_CONTENT_DATA});
    case OP_READ_PLUS:
      return plain(operation, &Op::opread_plus, {{}, 0, 10});
    case OP_IO_ADVISE:
      return plain(operation, &Op::opio_advise, {{}, 0, 10, {1}});
    case OP_COPY:
      return plain(operation, &Op::opcopy, {{}, {}, 0, 0, 10, true, true, {}});
    case OP_CLONE:
      return plain(operation, &Op::opclone, {{}, {}, 0, 0, 10});
    case OP_COPY_NOTIFY:
      return plain(operation, &Op::opoffload_notify, {});
    case OP_OFFLOAD_STATUS:
      return plain(operation, &Op::opoffload_status, {});
    case OP_OFFLOAD_CANCEL:
      return plain(operation, &Op::opoffload_cancel, {});
    case OP_WRITE_SAME:
      return plain(operation, &Op::opwrite_same, {});
    case OP_LAYOUTERROR:
      return plain(operation, &Op::oplayouterror, {});
    case OP_LAYOUTSTATS:
      return plain(operation, &Op::oplayoutstats, {});
    default:
      return of_names(operation);
  }
}

Step of_state(nfs_opnum4 operation) {
  switch (operation) {
    case OP_OPEN:
      return open({.name = "file", .access = kRead});
    case OP_OPEN_CONFIRM:
      return plain(operation, &Op::opopen_confirm, {});
    case OP_OPEN_DOWNGRADE:
      return plain(operation, &Op::opopen_downgrade, {{}, 0, kRead, 0});
    case OP_CLOSE:
      return plain(operation, &Op::opclose, {});
    case OP_LOCK:
      return {operation, [](Scene&, Op& to) {
                to.oplock().length = 10;
                to.oplock().locker.lock_owner() = {};
              }};
    case OP_LOCKT:
      return lockt(READ_LT, 0, 10);
    case OP_LOCKU:
      return plain(operation, &Op::oplocku, {READ_LT, 0, {}, 0, 10});
    case OP_DELEGRETURN:
      return plain(operation, &Op::opdelegreturn, {});
    case OP_DELEGPURGE:
      return plain(operation, &Op::opdelegpurge, {kNoClient});
    case OP_RENEW:
      return plain(operation, &Op::oprenew, {kNoClient});
    case OP_SETCLIENTID:
      return plain(operation, &Op::opsetclientid, {});
    case OP_SETCLIENTID_CONFIRM:
      return plain(operation, &Op::opsetclientid_confirm, {kNoClient, {}});
    case OP_RELEASE_LOCKOWNER:
      return {operation,
              [](Scene& scene, Op& to) { to.oprelease_lockowner() = {scene.owner("nobody")}; }};
    case OP_TEST_STATEID:
      return test_stateid({"garbage"});
    case OP_FREE_STATEID:
      return free_stateid("garbage");
    default:
      return of_data(operation);
  }
}

Step of_layouts(nfs_opnum4 operation) {
  switch (operation) {
    case OP_GETDEVICEINFO:
      return {operation, [](Scene&, Op& to) {
                to.opgetdeviceinfo().gdia_layout_type = LAYOUT4_NFSV4_1_FILES;
              }};
    case OP_GETDEVICELIST:
      return {operation, [](Scene&, Op& to) {
                to.opgetdevicelist().gdla_layout_type = LAYOUT4_NFSV4_1_FILES;
              }};
    case OP_LAYOUTCOMMIT:
      return {operation, [](Scene&, Op& to) {
                to.oplayoutcommit().loca_layoutupdate.lou_type = LAYOUT4_NFSV4_1_FILES;
              }};
    case OP_LAYOUTGET:
      return {operation, [](Scene&, Op& to) {
                to.oplayoutget().loga_layout_type = LAYOUT4_NFSV4_1_FILES;
                to.oplayoutget().loga_iomode = LAYOUTIOMODE4_READ;
              }};
    case OP_LAYOUTRETURN:
      return {operation, [](Scene&, Op& to) {
                LAYOUTRETURN4args& args = to.oplayoutreturn();
                args.lora_layout_type = LAYOUT4_NFSV4_1_FILES;
                args.lora_iomode = LAYOUTIOMODE4_READ;
                args.lora_layoutreturn.lr_returntype = LAYOUTRETURN4_ALL;
              }};
    default:
      return of_state(operation);
  }
}

}  // namespace

Step sample(nfs_opnum4 operation) {
  switch (operation) {
    case OP_BACKCHANNEL_CTL:
      return plain(operation, &Op::opbackchannel_ctl,
                   {0x40000000, std::vector<callback_sec_parms4>(1)});
    case OP_BIND_CONN_TO_SESSION:
      return plain(operation, &Op::opbind_conn_to_session, {{}, CDFC4_FORE, false});
    case OP_EXCHANGE_ID:
      return {operation,
              [](Scene& scene, Op& to) { to.opexchange_id() = scene.client.owner_args(); }};
    case OP_CREATE_SESSION:
      return plain(operation, &Op::opcreate_session, {});
    case OP_DESTROY_SESSION:
      return plain(operation, &Op::opdestroy_session, {});
    case OP_DESTROY_CLIENTID:
      return plain(operation, &Op::opdestroy_clientid, {kNoClient});
    case OP_RECLAIM_COMPLETE:
      return plain(operation, &Op::opreclaim_complete, {true});
    case OP_SEQUENCE:
      return plain(operation, &Op::opsequence, {});
    case OP_SET_SSV:
      return plain(operation, &Op::opset_ssv, {});
    case OP_GET_DIR_DELEGATION:
      return plain(operation, &Op::opget_dir_delegation, {});
    case OP_WANT_DELEGATION:
      return {operation, [](Scene&, Op& to) {
                to.opwant_delegation().wda_want = OPEN4_SHARE_ACCESS_WANT_READ_DELEG;
                to.opwant_delegation().wda_claim.dc_claim = CLAIM_FH;
              }};
    default:
      return of_layouts(operation);
  }
}

}  // namespace stag::conform::nfs4
