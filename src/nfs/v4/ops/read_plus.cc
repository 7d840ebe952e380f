// READ_PLUS (RFC 7862 15.10). Its results are never moved by Write chunks (RFC 8267 6.1).
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/read_plus_segments.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::READ_PLUS4res> read_plus(Compound& compound, v4::READ_PLUS4args& args) {
  const ExportObject file = compound.object();
  const std::uint64_t room = compound.results_left();
  Permitted permitted = check_stateid_to_read(compound, file, args.rpa_stateid);
  if (is_delayed(permitted))
    permitted =
        co_await check_stateid_in_time(compound, file, args.rpa_stateid, state::Touch::Read);
  if (!permitted) co_return v4::READ_PLUS4res{permitted.error(), {}};
  v4::READ_PLUS4res results;
  ReadPlusSegments segments(file, args.rpa_offset, args.rpa_count, room);
  if (const auto fault = co_await segments.find(results.rp_resok4()))
    co_return v4::READ_PLUS4res{co_await read_status(file, *fault), {}};
  compound.note_moved(segments.read_bytes());
  co_return results;
}

}  // namespace stag::nfs::nfs4
