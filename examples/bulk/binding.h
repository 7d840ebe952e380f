// What may travel by RDMA: the data of both procedures (RFC 8166 section 6). Client and server use
// the same table.
#pragma once

#include <stag/rpc/binding.h>

#include <array>

#include "bulk.h"

namespace bulk {

// Of a reply without its data: offset and length.
inline constexpr std::uint32_t kPlain = 16;

inline constexpr std::array kTable{
    stag::rpc::bind<FETCH>(
        {}, {item::block_data},
        [](const block_at& args) {
          return stag::rpc::ReplyBound{kPlain, {{item::block_data, args.length}}};
        }),
    stag::rpc::bind<STORE>({item::block_data}).once_only(),
};
inline constexpr stag::rpc::Binding kBinding{kTable};

}  // namespace bulk
