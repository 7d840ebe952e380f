// The files of an SQLite database that other users may not read, though they may pass through its
// directory.
#pragma once

#include <string>

namespace stag {

// What follows the name of a database in the names of its files; the database itself is the last.
inline constexpr const char* kSqliteFiles[] = {"-wal", "-shm", "-journal", ""};

// Before SQLite opens the database: SQLite would create it with the mode that the umask leaves, and
// a process that opens it before its mode changes reads on. Where it cannot be created, SQLite says
// why. An existing one is not opened: close() would end the locks that another connection of this
// process has on it.
void create_private(const std::string& database);
// After that: SQLite gives its further files the mode of the database; those that a crash left have
// one already.
void make_private(const std::string& database);

}  // namespace stag
