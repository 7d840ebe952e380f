# Copies the headers of `folders`, from `source` and `generated`, to `include`, and turns their includes of each other
# from "rpc/client.h" into <stag/rpc/client.h>: so no include path of a user ever finds our rpc/ before the system's.
# The inside of a loop (its comment says so) stays out.
foreach(folder ${folders})
  file(GLOB headers ${source}/${folder}/*.h ${source}/${folder}/*.def ${generated}/${folder}/*.h)
  foreach(header ${headers})
    file(READ ${header} text)
    if(text MATCHES "included by .cc files of net.")
      continue()
    endif()
    string(REGEX REPLACE "#include \"([a-z0-9_]+/[^\"]+)\"" "#include <stag/\\1>" text "${text}")
    cmake_path(GET header FILENAME name)
    file(WRITE ${include}/${folder}/${name} "${text}")
  endforeach()
endforeach()
