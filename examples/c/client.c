/* toy_client PORT SLOT [TEXT]: puts the text into a slot of the toy server; without a text, prints what is there. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toy.h"

static int put(stag_client* client, uint32_t slot, const char* text, stag_error* error) {
  uint32_t kept = 0;
  stag_call call = {.size = sizeof call,
                    .procedure = TOY_PUT,
                    .arguments = &slot,
                    .arguments_length = sizeof slot,
                    .bulk = text,
                    .bulk_length = strlen(text),
                    .results = &kept,
                    .results_capacity = sizeof kept};
  return stag_call_wait(client, &call, error);
}

/* A program that gets many things registers the memory for them once. */
static int get(stag_client* client, uint32_t slot, stag_error* error) {
  static char memory[1 << 20];
  uint32_t found = 0;
  stag_memory* registered;
  int status = stag_memory_register(client, memory, sizeof memory, STAG_MEMORY_WRITE, &registered, error);
  if (status != STAG_OK) return status;
  stag_call call = {.size = sizeof call,
                    .procedure = TOY_GET,
                    .arguments = &slot,
                    .arguments_length = sizeof slot,
                    .results = &found,
                    .results_capacity = sizeof found,
                    .results_bulk = memory,
                    .results_bulk_capacity = sizeof memory,
                    .results_bulk_memory = registered};
  status = stag_call_wait(client, &call, error);
  if (status == STAG_OK && found != 0) printf("%.*s\n", (int)call.results_bulk_length, memory);
  stag_memory_release(registered);
  return status;
}

int main(int argc, char** argv) {
  stag_error error = {.size = sizeof error};
  stag_client* client;
  if (argc < 3) {
    fprintf(stderr, "toy_client PORT SLOT [TEXT]\n");
    return 2;
  }
  int status = stag_connect("127.0.0.1", (uint16_t)atoi(argv[1]), &toy_program, NULL, &client, &error);
  if (status == STAG_OK) {
    const uint32_t slot = htonl((uint32_t)atoi(argv[2]));
    status = argc > 3 ? put(client, slot, argv[3], &error) : get(client, slot, &error);
    stag_disconnect(client);
  }
  if (status != STAG_OK) fprintf(stderr, "toy_client: %s\n", error.text);
  return status == STAG_OK ? 0 : 1;
}
