# Which commit is built, as C++: cmake -Droot=DIR -Dto=FILE.cc -P commit.cmake. FILE is as old as it was where the commit is the same.
# An archive of git's says it in commit.txt (.gitattributes). A source without git has none, and a .git further up is another project's.
file(STRINGS ${root}/cmake/commit.txt commit LIMIT_COUNT 1)
if(commit MATCHES "^[0-9a-f]+$")
  string(SUBSTRING ${commit} 0 12 commit)
else()
  set(commit "")
  if(EXISTS ${root}/.git)
    execute_process(COMMAND git --no-optional-locks -C ${root} describe --always --dirty --abbrev=12 --exclude=*
      OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
file(CONFIGURE OUTPUT ${to} @ONLY CONTENT [[#include "cli/support/commit.h"

namespace stag::cli {

std::string_view commit() {
  return "@commit@";
}

}  // namespace stag::cli
]])
