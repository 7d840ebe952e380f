/* toy_server [PORT]: serves the toy program on loopback until its standard input ends; prints its port. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toy.h"

enum { SLOTS = 16 };

/* One thread serves, so that no lock is needed. */
static struct {
  unsigned char* data;
  size_t length;
} slots[SLOTS];

/* A request without a reply would be waited for by stag_stop(): where there is no memory for the results it is refused, which takes none. */
static void reply(stag_request* request, const stag_results* results) {
  if (stag_reply(request, results) != STAG_OK) stag_refuse(request, STAG_SYSTEM_ERR);
}

static void put(stag_request* request, unsigned slot) {
  size_t length;
  const void* data = stag_request_bulk(request, &length);
  unsigned char* copy = malloc(length + 1);
  if (copy == NULL) {
    stag_refuse(request, STAG_SYSTEM_ERR);
    return;
  }
  if (length > 0) memcpy(copy, data, length);
  free(slots[slot].data);
  slots[slot].data = copy;
  slots[slot].length = length;
  const uint32_t kept = htonl((uint32_t)length);
  const stag_results results = {.size = sizeof results, .results = &kept, .results_length = sizeof kept};
  reply(request, &results);
}

static void get(stag_request* request, unsigned slot) {
  const uint32_t found = htonl(slots[slot].data != NULL);
  /* The bulk is copied, because a PUT may replace it before it has left; `release` spares the copy of what stays. */
  const stag_results results = {.size = sizeof results,
                                .results = &found,
                                .results_length = sizeof found,
                                .bulk = slots[slot].data,
                                .bulk_length = slots[slot].length};
  reply(request, &results);
}

static void serve(void* context, stag_request* request) {
  size_t length;
  const void* arguments = stag_request_arguments(request, &length);
  uint32_t slot = SLOTS;
  (void)context;
  if (length == sizeof slot) {
    memcpy(&slot, arguments, sizeof slot);
    slot = ntohl(slot);
  }
  if (slot >= SLOTS)
    stag_refuse(request, STAG_GARBAGE_ARGS);
  else if (stag_request_procedure(request) == TOY_PUT)
    put(request, slot);
  else
    get(request, slot);
}

int main(int argc, char** argv) {
  const int port = argc > 1 ? atoi(argv[1]) : 20049;
  stag_error error = {.size = sizeof error};
  stag_server* server;
  if (stag_serve("127.0.0.1", (uint16_t)port, &toy_program, serve, NULL, NULL, &server, &error) != STAG_OK) {
    fprintf(stderr, "toy_server: %s\n", error.text);
    return 1;
  }
  printf("%d\n", stag_server_port(server));
  fflush(stdout);
  while (getchar() != EOF) {
  }
  stag_stop(server);
  for (int i = 0; i < SLOTS; ++i) free(slots[i].data);
  return 0;
}
