// Operations that take the stateid of an open, a lock or a delegation.
#include "conform/nfs4/steps.h"

namespace stag::conform::nfs4 {

Step allocate(std::string state, std::uint64_t offset, std::uint64_t length) {
  return with_state(v4::OP_ALLOCATE, &Op::opallocate, &v4::ALLOCATE4args::aa_stateid,
                    std::move(state), {{}, offset, length});
}
Step deallocate(std::string state, std::uint64_t offset, std::uint64_t length) {
  return with_state(v4::OP_DEALLOCATE, &Op::opdeallocate, &v4::DEALLOCATE4args::da_stateid,
                    std::move(state), {{}, offset, length});
}
Step seek(std::string state, std::uint64_t offset, v4::data_content4 what) {
  return with_state(v4::OP_SEEK, &Op::opseek, &v4::SEEK4args::sa_stateid, std::move(state),
                    {{}, offset, what});
}
Step read_plus(std::string state, std::uint64_t offset, std::uint32_t count) {
  return with_state(v4::OP_READ_PLUS, &Op::opread_plus, &v4::READ_PLUS4args::rpa_stateid,
                    std::move(state), {{}, offset, count});
}
Step io_advise(std::string state) {
  return with_state(v4::OP_IO_ADVISE, &Op::opio_advise, &v4::IO_ADVISE4args::iaa_stateid,
                    std::move(state), {{}, 0, 10, {1}});
}
Step write_same(std::string state) {
  v4::WRITE_SAME4args args;
  args.wsa_stable = v4::FILE_SYNC4;
  args.wsa_adb = {0, 8, 4, 8, 0, ~std::uint32_t{0}, Rope::copy_of(bytes_of("patterns"))};
  return with_state(v4::OP_WRITE_SAME, &Op::opwrite_same, &v4::WRITE_SAME4args::wsa_stateid,
                    std::move(state), args);
}
Step copy(std::string from, std::string to, std::uint64_t offset, std::uint64_t count) {
  return {v4::OP_COPY,
          [=](Scene& scene, Op& made) {
            made.opcopy() = {
                scene.stateid(from), scene.stateid(to), offset, 0, count, true, true, {}};
          },
          [](Scene& scene, const OpResult& result) {
            scene.numbers["written"] = result.opcopy().cr_resok4().cr_response.wr_count;
          }};
}
Step clone(std::string from, std::string to, std::uint64_t offset, std::uint64_t count) {
  return {v4::OP_CLONE, [=](Scene& scene, Op& made) {
            made.opclone() = {scene.stateid(from), scene.stateid(to), offset, 0, count};
          }};
}

Step copy_notify(std::string state) {
  v4::netloc4 reader;
  reader.nl_type = v4::NL4_NETADDR;
  reader.nl_addr() = {"tcp", "127.0.0.1.8.1"};
  Step step = with_state(v4::OP_COPY_NOTIFY, &Op::opoffload_notify,
                         &v4::COPY_NOTIFY4args::cna_src_stateid, std::move(state), {{}, reader});
  step.take = [](Scene& scene, const OpResult& result) {
    scene.states["notice"] = result.opcopy_notify().resok4().cnr_stateid;
  };
  return step;
}

Step by_stateid(v4::nfs_opnum4 operation, std::string state) {
  switch (operation) {
    case v4::OP_READ:
      return read(std::move(state), 0, 4);
    case v4::OP_WRITE:
      return write(std::move(state), 0, "data");
    case v4::OP_SETATTR:
      return setattr(std::move(state), size_is(4));
    case v4::OP_OPEN_DOWNGRADE:
      return open_downgrade(std::move(state), kRead);
    case v4::OP_CLOSE:
      return close(std::move(state));
    case v4::OP_LOCKU:
      return locku(std::move(state));
    case v4::OP_ALLOCATE:
      return allocate(std::move(state), 0, 10);
    case v4::OP_DEALLOCATE:
      return deallocate(std::move(state), 0, 10);
    case v4::OP_SEEK:
      return seek(std::move(state), 0, v4::NFS4_CONTENT_DATA);
    case v4::OP_READ_PLUS:
      return read_plus(std::move(state), 0, 10);
    case v4::OP_IO_ADVISE:
      return io_advise(std::move(state));
    case v4::OP_WRITE_SAME:
      return write_same(std::move(state));
    case v4::OP_COPY_NOTIFY:
      return copy_notify(std::move(state));
    default:
      return lock({.open = std::move(state), .held = "l"});
  }
}

}  // namespace stag::conform::nfs4
