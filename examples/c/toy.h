/* A toy program: slots that keep bytes.
 *
 *   program TOY { version TOY_V1 {
 *     unsigned PUT(struct { unsigned slot; opaque data<>; }) = 1;           how many bytes are kept now
 *     struct { unsigned found; opaque data<>; } GET(unsigned slot) = 2;     without data where nothing is found
 *   } = 1; } = 0x20000002; */
#include <stag.h>

enum { TOY_PUT = 1, TOY_GET = 2 };

static const stag_procedure toy_procedures[] = {
    {sizeof(stag_procedure), TOY_PUT, STAG_ARGUMENTS_BULK, 4, 0},
    {sizeof(stag_procedure), TOY_GET, STAG_RESULTS_BULK, 0, 4},
};
static const stag_program toy_program = {sizeof(stag_program), 0x20000002, 1, toy_procedures, 2};
