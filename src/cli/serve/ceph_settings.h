// What stands behind '?' of a place in a Ceph cluster: NAME=VALUE[&NAME=VALUE]...
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace stag::cli {

using CephSettings = std::initializer_list<std::pair<std::string_view, std::string*>>;

// Sets those of `known` that `text` has a value for. The error is one sentence: which word is none
// of them, and `what_there_is`.
Result<Ok, std::string> read_ceph_settings(std::string_view text, CephSettings known,
                                           std::string_view what_there_is);

}  // namespace stag::cli
