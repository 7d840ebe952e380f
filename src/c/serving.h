// Servers of the C API on devices that their program cannot name, as tests have them.
#pragma once

#include <cstdint>

#include "c/stag.h"
#include "endpoint/listener.h"

namespace stag::c {

// What stag_serve() does, with a `listen` of which `options` replace the transport and the loops.
// Thread and errors: as there.
int serve_with(const endpoint::ListenOptions& listen, const char* host, std::uint16_t port,
               const stag_program* program, stag_handler* handler, void* context,
               const stag_serve_options* options, stag_server** server, stag_error* error);

}  // namespace stag::c
