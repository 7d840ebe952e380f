// The folder that a run works in, and what is in it (scene.h lists it).
#pragma once

#include <string>

#include "conform/nfs4/suite.h"

namespace stag::conform::nfs4 {

// A sentence why that failed, or nothing. `handles` has what was made, then too.
Task<std::string> make_fixtures(Client& client, const SuiteOptions& options, Handles& handles);
Task<std::string> make_own_folder(Scene& scene, std::string name);
// Removes the folder with all that is in it.
Task<std::string> remove_fixtures(Client& client, const SuiteOptions& options,
                                  const Handles& handles);

}  // namespace stag::conform::nfs4
