/* libnfs_load SERVER DIRECTORY NFSPORT MOUNTPORT MILLISECONDS SAMPLES -- the loads of `stag bench`, done by libnfs over TCP
 * against any NFSv3 server. DIRECTORY may be mounted and written to. Prints one JSON object {"name": value, ...}: microseconds for round
 * trips, operations per second for rates, GB/s for bandwidth; medians over the samples.
 */
/* libnfs.h needs it and does not say so. */
#include <sys/time.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum operation { NULL_CALL, GETATTR, READ, WRITE };
enum figure { ROUND_TRIP, RATE, BANDWIDTH };

struct plan {
  const char *name;
  enum figure figure;
  enum operation operation;
  size_t bytes;
  unsigned depth;
};

static const struct plan plans[] = {
    {"null_rtt", ROUND_TRIP, NULL_CALL, 0, 1},      {"write_4k_rtt", ROUND_TRIP, WRITE, 4096, 1},
    {"null_rate_32", RATE, NULL_CALL, 0, 32},       {"getattr_rate_32", RATE, GETATTR, 0, 32},
    {"rand_read_4k_32", RATE, READ, 4096, 32},      {"rand_write_4k_32", RATE, WRITE, 4096, 32},
    {"read_1m", BANDWIDTH, READ, 1 << 20, 4},       {"write_1m", BANDWIDTH, WRITE, 1 << 20, 4},
    {"read_64k", BANDWIDTH, READ, 64 << 10, 4},     {"write_64k", BANDWIDTH, WRITE, 64 << 10, 4},
};

#define FILE_BYTES (64u << 20)
/* Large blocks go through BULK_BYTES of the file, which bench/peers/run takes from src/bench/load. */
#define BULK_FROM (64u << 10)
#define MOST_SAMPLES 64

static struct rpc_context *rpc;
static struct nfs_fh3 file;
static char handle[NFS3_FHSIZE];
static char data[1 << 20];
/* READs land here, as they land in the memory of any program that wants them. */
static char sink[1 << 20];

static const struct plan *running;
static double end_of_sample;
static unsigned in_flight;
static unsigned long done;
static unsigned next_random = 1;
static unsigned long next_block;

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void die(const char *what, const char *why) {
  fprintf(stderr, "libnfs_load: %s: %s\n", what, why);
  exit(1);
}

/* Until nothing is in flight. */
static void turn(const char *what) {
  while (in_flight > 0) {
    struct pollfd on = {rpc_get_fd(rpc), (short)rpc_which_events(rpc), 0};
    if (poll(&on, 1, 10000) <= 0) die(what, "the server does not answer");
    if (rpc_service(rpc, on.revents) < 0) die(what, rpc_get_error(rpc));
  }
}

static unsigned long offset_of_next(void) {
  if (running->bytes >= BULK_FROM) return next_block++ % (BULK_BYTES / running->bytes) * running->bytes;
  const unsigned long blocks = FILE_BYTES / running->bytes;
  next_random = next_random * 1664525 + 1013904223;
  return (next_random >> 8) % blocks * running->bytes;
}

static void start(void);

static void finished(struct rpc_context *context, int status, void *result, void *unused) {
  (void)context;
  (void)unused;
  if (status != RPC_STATUS_SUCCESS) die(running->name, status == RPC_STATUS_ERROR ? (char *)result : "cancelled");
  if (running->operation == READ) {
    const READ3res *res = result;
    if (res->status != NFS3_OK || res->READ3res_u.resok.count != running->bytes) die(running->name, "a READ failed");
    memcpy(sink, res->READ3res_u.resok.data.data_val, running->bytes);
  }
  if (running->operation == WRITE) {
    const WRITE3res *res = result;
    if (res->status != NFS3_OK || res->WRITE3res_u.resok.count != running->bytes) die(running->name, "a WRITE failed");
  }
  --in_flight;
  ++done;
  if (now() < end_of_sample) start();
}

static int call(void) {
  switch (running->operation) {
    case NULL_CALL:
      return rpc_nfs3_null_async(rpc, finished, NULL);
    case GETATTR: {
      struct GETATTR3args args = {file};
      return rpc_nfs3_getattr_async(rpc, finished, &args, NULL);
    }
    case READ: {
      struct READ3args args = {file, offset_of_next(), (count3)running->bytes};
      return rpc_nfs3_read_async(rpc, finished, &args, NULL);
    }
    case WRITE: {
      struct WRITE3args args;
      memset(&args, 0, sizeof args);
      args.file = file;
      args.offset = offset_of_next();
      args.count = (count3)running->bytes;
      args.stable = UNSTABLE;
      args.data.data_len = (u_int)running->bytes;
      args.data.data_val = data;
      return rpc_nfs3_write_async(rpc, finished, &args, NULL);
    }
  }
  return -1;
}

static void start(void) {
  if (call() != 0) die(running->name, "libnfs refused the call");
  ++in_flight;
}

static double sample(double seconds) {
  const double begin = now();
  end_of_sample = begin + seconds;
  done = 0;
  for (unsigned i = 0; i < running->depth; ++i) start();
  turn(running->name);
  const double took = now() - begin;
  switch (running->figure) {
    case ROUND_TRIP:
      return took / (double)done * 1e6;
    case RATE:
      return (double)done / took;
    case BANDWIDTH:
      return (double)done * (double)running->bytes / took / 1e9;
  }
  return 0;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void keep(const char *bytes, u_int length) {
  if (length > sizeof handle) die("file handle", "too long");
  memcpy(handle, bytes, length);
  file.data.data_len = length;
  file.data.data_val = handle;
}

static void connected(struct rpc_context *context, int status, void *result, void *unused) {
  (void)context;
  (void)unused;
  if (status != RPC_STATUS_SUCCESS) die("connect", status == RPC_STATUS_ERROR ? (char *)result : "cancelled");
  --in_flight;
}

static void mounted(struct rpc_context *context, int status, void *result, void *unused) {
  const struct mountres3 *res = result;
  (void)context;
  (void)unused;
  if (status != RPC_STATUS_SUCCESS || res->fhs_status != MNT3_OK) die("mount", "refused");
  keep(res->mountres3_u.mountinfo.fhandle.fhandle3_val, res->mountres3_u.mountinfo.fhandle.fhandle3_len);
  --in_flight;
}

static void created(struct rpc_context *context, int status, void *result, void *unused) {
  const CREATE3res *res = result;
  (void)context;
  (void)unused;
  if (status != RPC_STATUS_SUCCESS || res->status != NFS3_OK || !res->CREATE3res_u.resok.obj.handle_follows)
    die("create", "refused");
  const nfs_fh3 *made = &res->CREATE3res_u.resok.obj.post_op_fh3_u.handle;
  keep(made->data.data_val, made->data.data_len);
  --in_flight;
}

static void connect_to(const char *server, int port, int program) {
  if (rpc != NULL) rpc_destroy_context(rpc);
  rpc = rpc_init_context();
  in_flight = 1;
  if (rpc_connect_port_async(rpc, server, port, program, 3, connected, NULL) != 0) die("connect", rpc_get_error(rpc));
  turn("connect");
}

static void create_file(void) {
  static char name[] = "libnfs-load";
  struct CREATE3args args;
  memset(&args, 0, sizeof args);
  args.where.dir = file;
  args.where.name = name;
  args.how.mode = UNCHECKED;
  args.how.createhow3_u.obj_attributes.mode.set_it = 1;
  args.how.createhow3_u.obj_attributes.mode.set_mode3_u.mode = 0600;
  in_flight = 1;
  if (rpc_nfs3_create_async(rpc, created, &args, NULL) != 0) die("create", rpc_get_error(rpc));
  turn("create");
}

static void prepare(const char *server, char *directory, int nfs_port, int mount_port) {
  connect_to(server, mount_port, MOUNT_PROGRAM);
  in_flight = 1;
  if (rpc_mount3_mnt_async(rpc, mounted, directory, NULL) != 0) die("mount", rpc_get_error(rpc));
  turn("mount");
  connect_to(server, nfs_port, NFS_PROGRAM);
  create_file();
  /* Every block of the file exists before any is read. */
  static const struct plan whole = {"write", BANDWIDTH, WRITE, 1 << 20, 1};
  running = &whole;
  end_of_sample = 0;
  for (unsigned at = 0; at < FILE_BYTES; at += 1 << 20) {
    start();
    turn("write");
  }
}

int main(int argc, char **argv) {
  if (argc != 7) {
    fprintf(stderr, "usage: libnfs_load SERVER DIRECTORY NFSPORT MOUNTPORT MILLISECONDS SAMPLES\n");
    return 2;
  }
  const double seconds = atof(argv[5]) / 1000;
  const int samples = atoi(argv[6]);
  if (seconds <= 0 || samples < 1 || samples > MOST_SAMPLES) die(argv[5], "no such duration or number of samples");
  memset(data, 'x', sizeof data);
  prepare(argv[1], argv[2], atoi(argv[3]), atoi(argv[4]));
  printf("{");
  for (size_t i = 0; i < sizeof plans / sizeof *plans; ++i) {
    double values[MOST_SAMPLES];
    running = &plans[i];
    sample(seconds / 4);
    for (int n = 0; n < samples; ++n) values[n] = sample(seconds);
    qsort(values, (size_t)samples, sizeof *values, by_value);
    printf("%s\"%s\": %.3f", i == 0 ? "" : ", ", running->name, values[samples / 2]);
    fflush(stdout);
  }
  printf("}\n");
  return 0;
}
