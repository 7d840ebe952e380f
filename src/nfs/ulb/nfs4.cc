#include "nfs/ulb/nfs4.h"

#include "nfs/proto/nfs4.h"

namespace stag::nfs::ulb {

namespace {

constexpr std::array kNfs4{
    rpc::bind<v4::NFSPROC4_COMPOUND>({v4::item::WRITE4args_data, v4::item::createtype4_linkdata},
                                     {v4::item::READ4resok_data, v4::item::READLINK4resok_link})
        .paired(rpc::Pairing::ByIndex),
};

}  // namespace

rpc::Binding nfs4() {
  return rpc::Binding(kNfs4);
}

std::span<const xdr::ItemId> nfs4_result_items() {
  return kNfs4[0].results.ids();
}

}  // namespace stag::nfs::ulb
