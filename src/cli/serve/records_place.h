// Where the records of version 4 clients are kept in a Ceph cluster, as the operator writes it:
//   ceph:POOL[/NAMESPACE][?conf=FILE][&id=NAME]
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "nfs/recovery/rados.h"

namespace stag::cli {

// Whether it is meant as such a place, not as a directory.
bool is_records_place(std::string_view text);
// Fails with one sentence.
Result<nfs::recovery::RadosPlace, std::string> parse_records_place(std::string_view text);
bool same_records(const nfs::recovery::RadosPlace& one, const nfs::recovery::RadosPlace& other);

}  // namespace stag::cli
