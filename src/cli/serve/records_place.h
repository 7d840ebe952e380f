// Where the records of version 4 clients are kept in a Ceph cluster, as the operator writes it:
//   ceph:POOL[/NAMESPACE][?conf=FILE][&id=NAME]
#pragma once

#include <optional>
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

// A state directory whose server keeps its records in a cluster says so, by the name of the place
// in a file: a server that adopts the clients by that directory finds them. Without conf= and id=,
// which are of the machine, and which the directory of another one must not choose here.
//
// `place` null: they are in the directory. Blocking.
Result<Ok, std::string> note_records_place(const std::string& directory,
                                           const nfs::recovery::RadosPlace* place);
// nullopt: it names none, which is also so of a server of an earlier version. Blocking.
Result<std::optional<nfs::recovery::RadosPlace>, std::string> noted_records_place(
    const std::string& directory);

}  // namespace stag::cli
