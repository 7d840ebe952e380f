// systemd's journal as the reader of standard error: it takes the priority of a line from the
// number in front of it (sd-daemon(3)); all others are informational.
#pragma once

#include <string>

namespace stag::cli {

// Whether the journal reads this descriptor, as $JOURNAL_STREAM says (systemd.exec(5)). It does not
// where a process with that environment has sent its output elsewhere.
bool is_journal(int fd);
// "<3>", to be written in front of a line; empty where the journal does not read. `priority` is one
// of syslog(3).
std::string journal_prefix(int fd, int priority);

// What is written to this descriptor is passed on to the journal: it takes its place. Before any
// thread is started.
void pass_for_journal(int fd);

}  // namespace stag::cli
