/* libtirpc_side OUT -- the values of this specification as rpcgen and libtirpc encode them, one
 * line each: index, type, bytes in hexadecimal. */
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include ORACLE_HEADER
#include "rng.h"

enum { kValues = 10000, kArena = 1 << 20 };

struct oracle_type {
  const char* name;
  void (*encode)(struct rng* rng, XDR* xdrs);
};

static char arena[kArena];
static size_t arena_used;

static void expect(int holds) {
  if (holds) return;
  fprintf(stderr, "libtirpc refused a value\n");
  exit(1);
}

/* Zeroed memory until the next value. */
static void* take(size_t size) {
  void* at = arena + arena_used;
  arena_used += (size + 15) / 16 * 16;
  expect(arena_used <= sizeof arena);
  return memset(at, 0, size);
}

static char* draw_bytes(struct rng* rng, void* to, uint32_t length) {
  for (uint32_t i = 0; i < length; ++i) ((char*)to)[i] = (char)draw_u32(rng);
  return to;
}

static char* draw_string(struct rng* rng, uint32_t most) {
  const uint32_t length = draw_below(rng, most + 1);
  char* text = take(length + 1);
  for (uint32_t i = 0; i < length; ++i) text[i] = (char)('!' + draw_below(rng, 94));
  return text;
}

#include ORACLE_BUILDERS

int main(int argc, char** argv) {
  static char bytes[kArena];
  FILE* out = argc == 2 ? fopen(argv[1], "w") : NULL;
  expect(out != NULL);
  const uint32_t count = sizeof types / sizeof types[0];
  for (uint32_t i = 0; i < kValues; ++i) {
    struct rng rng = rng_of_value(i);
    XDR xdrs;
    arena_used = 0;
    xdrmem_create(&xdrs, bytes, sizeof bytes, XDR_ENCODE);
    types[i % count].encode(&rng, &xdrs);
    fprintf(out, "%u %s ", i, types[i % count].name);
    for (uint32_t at = 0; at < xdr_getpos(&xdrs); ++at)
      fprintf(out, "%02x", (unsigned char)bytes[at]);
    fprintf(out, "\n");
  }
  return fclose(out) == 0 ? 0 : 1;
}
