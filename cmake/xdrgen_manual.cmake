# xdrgen's manual page, of its --help. cmake -Dxdrgen=PROGRAM -Dversion=0.1.0 -Ddate=2026-11-23 -Dto=FILE -P xdrgen_manual.cmake, or included.
execute_process(COMMAND ${xdrgen} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\\" "\\e" help "${help}")
string(REPLACE "-" "\\-" help "${help}")
string(REGEX MATCH "^usage: ([^\n]*)\n+" usage "${help}")
string(LENGTH "${usage}" begin)
string(SUBSTRING "${help}" ${begin} -1 text)
file(WRITE ${to} ".TH XDRGEN 1 ${date} \"stag ${version}\" \"NFS over RDMA\"
.SH NAME
xdrgen \\- make C++ of the specification of an RPC program
.SH SYNOPSIS
${CMAKE_MATCH_1}
.SH DESCRIPTION
.nf
${text}.fi
.SH SEE ALSO
\\fBstag\\fR(1)
")
