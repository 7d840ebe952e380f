// Signals of programs that wait for the server, as Linux tells them of each thread in /proc.
// Signals of timers, children and terminals that change their size are handled when the operation
// is done, as where a local disk is slow: few programs expect EINTR from files.
#pragma once

#include <sys/types.h>

#include <iosfwd>

namespace stag::fuse {

// Whether a thread with this /proc/TID/status is to wait no more: a signal is pending that ends the
// program (signal(7)), or by which a user asks it to end (SIGHUP, SIGINT, SIGQUIT, SIGTERM). True
// as well where nothing of signals is in it.
bool is_to_end(std::istream& status);

// The same of a thread by its number, as the kernel has it in requests. True as well where nothing
// can be known of it: it is in no namespace that is seen from here (0), or /proc hides it.
bool is_to_end(pid_t thread);

}  // namespace stag::fuse
