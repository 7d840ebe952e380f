/* tirpc_null MILLISECONDS SAMPLES -- round trips of a NULL call between two processes that use libtirpc over TCP on the
 * loopback, without rpcbind: what ONC RPC costs today. Prints {"null_rtt": microseconds}, the median over the samples.
 */
#include <rpc/rpc.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM 0x20000099
#define VERSION 1

/* Encodes and decodes nothing; xdr_void itself has another type than the macros want. */
static bool_t nothing(XDR *stream, ...) {
  (void)stream;
  return TRUE;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void answer(struct svc_req *request, SVCXPRT *transport) {
  if (request->rq_proc != NULLPROC)
    svcerr_noproc(transport);
  else
    svc_sendreply(transport, nothing, NULL);
}

static void serve(int listener) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  SVCXPRT *transport = svc_vc_create(listener, 0, 0);
  if (transport == NULL || !svc_reg(transport, PROGRAM, VERSION, answer, NULL)) exit(1);
  svc_run();
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double sample(CLIENT *client, double seconds) {
  const struct timeval patience = {10, 0};
  const double begin = now();
  unsigned long done = 0;
  do {
    if (clnt_call(client, NULLPROC, nothing, NULL, nothing, NULL, patience) != RPC_SUCCESS) {
      clnt_perror(client, "clnt_call");
      exit(1);
    }
    ++done;
  } while (now() - begin < seconds);
  return (now() - begin) / (double)done * 1e6;
}

int main(int argc, char **argv) {
  if (argc != 3 || atof(argv[1]) <= 0 || atoi(argv[2]) < 1 || atoi(argv[2]) > 64) {
    fprintf(stderr, "usage: tirpc_null MILLISECONDS SAMPLES\n");
    return 2;
  }
  const double seconds = atof(argv[1]) / 1000;
  const int samples = atoi(argv[2]);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&at, length) != 0 || listen(listener, 1) != 0) die("listen");
  if (getsockname(listener, (struct sockaddr *)&at, &length) != 0) die("getsockname");
  const pid_t server = fork();
  if (server == 0) serve(listener);
  int socket_of_client = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(socket_of_client, (struct sockaddr *)&at, length) != 0) die("connect");
  struct netbuf to = {sizeof at, sizeof at, &at};
  CLIENT *client = clnt_vc_create(socket_of_client, &to, PROGRAM, VERSION, 0, 0);
  if (client == NULL) {
    clnt_pcreateerror("clnt_vc_create");
    return 1;
  }
  double values[64];
  sample(client, seconds / 4);
  for (int i = 0; i < samples; ++i) values[i] = sample(client, seconds);
  qsort(values, (size_t)samples, sizeof *values, by_value);
  printf("{\"null_rtt\": %.3f}\n", values[samples / 2]);
  kill(server, SIGTERM);
  return 0;
}
