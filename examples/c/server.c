/* toy_server [PORT]: serves the toy program on loopback until its standard input ends; prints its port. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toy.h"

enum { SLOTS = 16 };

/* One thread serves, so that no lock is needed. */
typedef struct block {
  int users;
  size_t length;
  unsigned char data[];
} block;
static block* slots[SLOTS];

static void drop(void* at) {
  block* of = at;
  if (of != NULL && --of->users == 0) free(of);
}

static block* new_block(size_t length) {
  block* made = malloc(sizeof *made + length);
  if (made != NULL) *made = (block){.users = 1, .length = length};
  return made;
}

/* The data of a PUT is placed where it stays. The library drops it when it is done with it, whether there was a PUT to keep it or not. */
static void place(void* context, stag_placement* placement) {
  block* made = new_block(placement->bulk_length);
  (void)context;
  if (made == NULL) return;
  placement->buffer = made->data;
  placement->capacity = made->length;
  placement->release = drop;
  placement->release_context = made;
}

/* A request without a reply would be waited for by stag_stop(): where there is no memory for the results it is refused, which takes none. */
static void reply(stag_request* request, const stag_results* results) {
  if (stag_reply(request, results) != STAG_OK) stag_refuse(request, STAG_SYSTEM_ERR);
}

static void put(stag_request* request, unsigned slot) {
  size_t length;
  block* placed = stag_request_placed(request);
  stag_request_bulk(request, &length);
  if (placed != NULL)
    ++placed->users;
  else if (length == 0) /* no bytes are placed anywhere */
    placed = new_block(0);
  if (placed == NULL) {
    stag_refuse(request, STAG_SYSTEM_ERR);
    return;
  }
  drop(slots[slot]);
  slots[slot] = placed;
  const uint32_t kept = htonl((uint32_t)length);
  const stag_results results = {.size = sizeof results, .results = &kept, .results_length = sizeof kept};
  reply(request, &results);
}

static void get(stag_request* request, unsigned slot) {
  block* found = slots[slot];
  const uint32_t is_found = htonl(found != NULL);
  stag_results results = {.size = sizeof results, .results = &is_found, .results_length = sizeof is_found};
  if (found != NULL) {
    /* Sent from where it lies, which a PUT that replaces it meanwhile does not change. */
    ++found->users;
    results.bulk = found->data;
    results.bulk_length = found->length;
    results.release = drop;
    results.release_context = found;
  }
  if (stag_reply(request, &results) == STAG_OK) return;
  stag_refuse(request, STAG_SYSTEM_ERR);
  drop(found);
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
  const stag_serve_options options = {.size = sizeof options, .place = place};
  stag_server* server;
  if (stag_serve("127.0.0.1", (uint16_t)port, &toy_program, serve, NULL, &options, &server, &error) != STAG_OK) {
    fprintf(stderr, "toy_server: %s\n", error.text);
    return 1;
  }
  printf("%d\n", stag_server_port(server));
  fflush(stdout);
  while (getchar() != EOF) {
  }
  stag_stop(server);
  for (int i = 0; i < SLOTS; ++i) drop(slots[i]);
  return 0;
}
