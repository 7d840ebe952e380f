/* stag.h: ONC RPC programs over RDMA (RPC-over-RDMA version 1, on software iWARP or RDMA devices)
 * and over TCP, from C and from languages that can call C.
 *
 * A program is a number, a version and a table of procedures. Arguments and results are bytes that
 * the caller encodes and decodes (XDR, RFC 4506). A procedure may say that its arguments, or its
 * results, end with one variable-length opaque: the bulk. The library encodes its length and pad,
 * and moves its data by RDMA where that pays: data of arguments is read from the caller's memory,
 * data of results is written into it. Arguments that are, in a .x file,
 *
 *     struct PUT_ARGS { unsigned slot; opaque data<>; };
 *
 * have STAG_ARGUMENTS_BULK and an arguments_head of 4.
 *
 * Memory: what a call refers to is the caller's, registered for that call alone or by
 * stag_memory_register() for many, and stays as it is until the call has ended; then no peer can
 * reach it any more (RFC 8166 sections 4.4.1 and 8.1). What the library returns is freed by the
 * function that is named beside it.
 *
 * Threads: every function may be called from any thread, many at a time, on the same object, except
 * that the last one (stag_disconnect, stag_stop, stag_stop_within, stag_memory_release, the reply
 * to a request) comes after all others have returned. Completions, handlers and stag_place run
 * on a thread of the library, which serves other calls meanwhile: they do not block. There they may
 * begin calls and reply, but not call a function that blocks, of whatever client or server:
 * stag_connect, stag_disconnect, stag_call_wait, stag_ping, stag_serve, stag_stop, stag_stop_within
 * and those of registered memory return STAG_WRONG_THREAD.
 *
 * Errors: functions return a stag_status; `error`, where it is not null, receives the same with a
 * sentence. Nothing is thrown.
 *
 * Versions: `size` of every struct is its sizeof as the caller was compiled. Members beyond it
 * count as zero, which is the default of each; members that the library does not know must be zero.
 * A `size` that was not set is STAG_INVALID; a stag_error without one is left as it is.
 */
#ifndef STAG_H
#define STAG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stag_status {
  STAG_OK = 0,
  STAG_INVALID = 1,      /* an argument of the function is wrong: the text says which */
  STAG_NO_MEMORY = 2,    /* here, not at the peer */
  STAG_UNREACHABLE = 3,  /* the call was not sent: there is no connection (`reason` says why), or it
                            did not take the call in time, as over RDMA while others wait for the
                            server ("TimedOut") */
  STAG_TIMED_OUT = 4,    /* it was sent, and its reply has not come, also where the connection was
                            lost and none could be made again (`reason`): whether it was executed
                            is not known */
  STAG_CANCELLED = 5,    /* by stag_call_cancel() or stag_disconnect(): whether it was executed is
                            not known */
  STAG_REFUSED = 6,      /* the server answered with an error of RPC: `accept_stat` */
  STAG_MALFORMED = 7,    /* the server's reply cannot be decoded */
  STAG_TOO_LONG = 8,     /* results longer than their memory, and the lengths that they have are
                            set where they came: over RDMA they do not, as a rule, and both are 0;
                            or arguments longer than the server takes. Results that are too long
                            are those of a call that was executed; over TCP, where nobody knows
                            whose they are, all calls in progress end with them. */
  STAG_WRONG_THREAD = 9, /* a function that blocks was called on a thread of the library */
  STAG_FAILED = 10,      /* anything else */
  STAG_BUSY = 11         /* registered memory is in use by a call or a reply */
} stag_status;

typedef struct stag_error {
  size_t size;
  int32_t status;       /* stag_status */
  uint32_t accept_stat; /* of STAG_REFUSED: accept_stat of RFC 5531 section 9; 0 when the call was
                           denied */
  char reason[64];      /* a name that stays the same: "ConnectionRefused"; may be empty */
  char text[256];       /* a sentence for people */
} stag_error;

/* -- programs -- */

enum {
  STAG_ARGUMENTS_BULK = 1, /* the arguments are arguments_head bytes and an opaque */
  STAG_RESULTS_BULK = 2,   /* the results are results_head bytes and an opaque, or at most those */
  STAG_ONCE = 4            /* a repeated call gets the same reply and is not executed again; results
                              longer than 512 KiB are not kept: it gets SYSTEM_ERR instead */
};

typedef struct stag_procedure {
  size_t size;
  uint32_t number; /* 1 to 4095; procedure 0 (NULL) is there without being named */
  uint32_t flags;
  uint32_t arguments_head; /* bytes, a multiple of 4; with STAG_ARGUMENTS_BULK only */
  uint32_t results_head;   /* bytes, a multiple of 4; with STAG_RESULTS_BULK only */
} stag_procedure;

/* Copied by the functions that take it. */
typedef struct stag_program {
  size_t size;
  uint32_t program;
  uint32_t version;
  const stag_procedure* procedures; /* all of the same `size` */
  size_t procedure_count;
} stag_program;

typedef enum stag_transport {
  STAG_RDMA = 0,       /* software iWARP */
  STAG_TCP = 1,        /* no RDMA: record marking (RFC 5531 section 11) */
  STAG_RDMA_DEVICE = 2 /* a device of this machine, through rdma-core */
} stag_transport;

/* -- clients -- */

typedef struct stag_client stag_client;
/* Memory that is registered for many calls or replies: below. */
typedef struct stag_memory stag_memory;

typedef struct stag_connect_options {
  size_t size;
  uint32_t transport;          /* stag_transport */
  uint32_t timeout_ms;         /* of one call; 0: 60 seconds */
  uint32_t connect_timeout_ms; /* of one attempt; 0: 10 seconds */
  uint32_t
      auth_sys; /* not 0: AUTH_SYS with the ids below, which servers cannot check; else AUTH_NONE */
  uint32_t uid;
  uint32_t gid;
} stag_connect_options;

/* Blocks until `host` (a name or a numeric address) is connected. A connection that is lost later
 * is made again by itself, and the calls in progress are repeated. `options` may be null. On
 * STAG_OK *client is freed by stag_disconnect(). */
int stag_connect(const char* host, uint16_t port, const stag_program* program,
                 const stag_connect_options* options, stag_client** client, stag_error* error);

/* Ends calls that were begun and have not ended (STAG_CANCELLED), waits for their completions, and
 * closes. Null is ignored. */
int stag_disconnect(stag_client* client);

/* One call. Lives, with all it refers to, until the call has ended. One that ends early over
 * software iWARP, by a time-out or stag_call_cancel(), before the server has read all of a bulk of
 * more than 1 MiB, costs the connection, which is made again. */
typedef struct stag_call {
  size_t size;
  uint32_t procedure;
  uint32_t timeout_ms; /* 0: that of the client */
  const void*
      arguments; /* XDR, a multiple of 4 bytes; with STAG_ARGUMENTS_BULK arguments_head bytes */
  size_t arguments_length;
  const void* bulk; /* with STAG_ARGUMENTS_BULK; as much as the server takes: if it is stag_serve()
                       16 MiB over RDMA, and over TCP 4 MiB with the arguments and the header */
  size_t bulk_length;
  void* results; /* receives the results without bulk */
  size_t results_capacity;
  void* results_bulk;           /* with STAG_RESULTS_BULK; content undefined when the call fails */
  size_t results_bulk_capacity; /* of which by an RDMA device at most 16 MiB are used */
  /* Set by the library. */
  size_t results_length;
  size_t results_bulk_length;
  /* Set by the caller: registered memory of this client in which `bulk`, and `results_bulk` with
   * its capacity, lie; null: they are registered for this call, unless they lie in some all the
   * same, which is not counted as a use then. */
  stag_memory* bulk_memory;
  stag_memory* results_bulk_memory;
} stag_call;

/* Blocks until `call` has ended. */
int stag_call_wait(stag_client* client, stag_call* call, stag_error* error);

/* Runs on the client's thread, once, when a call that was begun has ended. `error` is valid until
 * it returns. */
typedef void stag_completion(void* context, stag_call* call, const stag_error* error);

/* Returns at once. Unless it returns STAG_OK, `done` is not called. In a completion that runs
 * because of stag_disconnect it returns STAG_CANCELLED. */
int stag_call_begin(stag_client* client, stag_call* call, stag_completion* done, void* context,
                    stag_error* error);

/* Has a call that was begun end early, as STAG_CANCELLED, unless it ends otherwise meanwhile: its
 * completion says which, and comes in any case. Returns at once: what the call refers to is the
 * caller's again with the completion, not before. Nothing happens if `call` is none of those in
 * progress. The server may execute the call all the same. */
int stag_call_cancel(stag_client* client, const stag_call* call);

/* Calls procedure 0 (NULL) and blocks until the answer comes. */
int stag_ping(stag_client* client, stag_error* error);

/* -- servers -- */

typedef struct stag_server stag_server;
typedef struct stag_request stag_request;

/* Runs on a thread of the server for each call of a procedure. The request, and what is asked of
 * it, is valid until it is replied to, which is done exactly once: in the handler, or later on any
 * thread. */
typedef void stag_handler(void* context, stag_request* request);

/* Where the bulk of a call's arguments is to be placed. `size` is that of the library. */
typedef struct stag_placement {
  size_t size;
  uint32_t procedure;
  const void* arguments; /* those without bulk; null when there are none */
  size_t arguments_length;
  size_t bulk_length; /* bytes that will be placed, at least 1: no pad */
  /* Set by the program. `buffer` null, as it is before: the bulk lies in memory of the library. */
  void* buffer;
  size_t capacity; /* bytes of `buffer` */
  /* Called with `release_context`, once for each `buffer`, when the library needs it no more. */
  void (*release)(void* context);
  void* release_context;
  /* Registered memory of this server, with STAG_MEMORY_WRITE, in which `buffer` lies; null: it is
   * registered for this call. In use until `release` is called. */
  stag_memory* memory;
} stag_placement;

/* Asks the program for memory for the bulk of one call's arguments. Runs on a thread of the server,
 * as a handler does, with the handler's context, and like one neither blocks nor calls what blocks:
 * at most once for each call, before its handler, which finds the bulk in `buffer`, in one piece.
 *
 * Bulk that comes in a Read chunk of its own, of however many segments, is placed there by RDMA:
 * a device writes it itself (short segments by way of the library's memory, where `memory` is
 * null), software iWARP takes it from its socket. Other bulk is there already and copied once: what
 * comes in the message, as all of it does over TCP, and what comes with arguments so long that they
 * are in a Read chunk themselves.
 *
 * Who calls is only claimed yet, and the handler need not follow: the connection may end, the call
 * be malformed or a repetition of one with STAG_ONCE. `release` follows in any case, on a thread of
 * the server, when nothing writes to `buffer` any more: behind the reply, or behind the last RDMA
 * Read of a connection that has ended, and before stag_stop() returns. Where there was no handler
 * the content is undefined. `release` is never called inside stag_reply().
 *
 * A buffer that cannot be used is released at once, and the bulk lies in memory of the library: it
 * is shorter than bulk_length, or does not lie in `memory`, which may be another server's or not to
 * be written to. One without a `release` is not used. The same happens, without this function being
 * called, where there is no memory for the record of its answer. */
typedef void stag_place(void* context, stag_placement* placement);

typedef struct stag_serve_options {
  size_t size;
  uint32_t transport; /* stag_transport */
  uint32_t threads;   /* 0: one; handlers run on all of them at a time */
  stag_place* place;  /* null: the library has memory for all bulk */
  /* Connections at a time, and those of one client's address; further ones are turned away. 0:
   * 16384 over RDMA and 4096 over TCP, and of one address a quarter of them. However many are set,
   * the process's limit of open files (ulimit -n), as it is when the server begins, is not used up
   * by them: they may take half of it, or where it is larger than 8192 all but 4096. A device's
   * take none. */
  uint32_t max_connections;
  uint32_t max_connections_per_client;
} stag_serve_options;

/* Listens at a numeric address or name of this machine, "::" or "0.0.0.0" for all of its addresses;
 * port 0 lets the system choose. On STAG_OK *server is freed by stag_stop(). */
int stag_serve(const char* host, uint16_t port, const stag_program* program, stag_handler* handler,
               void* context, const stag_serve_options* options, stag_server** server,
               stag_error* error);

uint16_t stag_server_port(const stag_server* server);

/* Closes all connections and waits until every request has been replied to. Null is ignored. */
int stag_stop(stag_server* server);

/* The same, but gives up after `timeout_ms`: STAG_TIMED_OUT when requests are still without a
 * reply. Then the server closes its connections and begins no call any more, and is still there:
 * the requests are to be replied to, and the server to be stopped by this or by stag_stop(). Where
 * all have their reply it may take a second longer, for peers that do not take what was sent. */
int stag_stop_within(stag_server* server, uint32_t timeout_ms);

uint32_t stag_request_procedure(const stag_request* request);
/* The arguments without bulk. Null when there are none. */
const void* stag_request_arguments(const stag_request* request, size_t* length);
const void* stag_request_bulk(const stag_request* request, size_t* length);
/* The release_context of the stag_placement in whose buffer the bulk lies; null: it lies in memory
 * of the library. */
void* stag_request_placed(const stag_request* request);

typedef struct stag_caller {
  size_t size;
  uint32_t flavor; /* of RFC 5531: 0 AUTH_NONE, 1 AUTH_SYS: uid and gid are the client's claim */
  uint32_t uid;
  uint32_t gid;
  char address[64]; /* "192.0.2.1:1023" */
} stag_caller;

int stag_request_caller(const stag_request* request, stag_caller* caller);

typedef struct stag_results {
  size_t size;
  const void* results; /* XDR, a multiple of 4 bytes; copied */
  size_t results_length;
  const void* bulk; /* with STAG_RESULTS_BULK, behind exactly results_head bytes; null: the results
                       have no opaque */
  size_t bulk_length;
  /* Null: the bulk is copied. Else it is sent from where it lies, and `release` is called with
   * `release_context`, once, when the server needs it no more: on any thread, maybe before
   * stag_reply() has returned, but never by it, so that it may take a lock that is held around
   * stag_reply(). Not when the reply is not STAG_OK, nor where `bulk` is null. */
  void (*release)(void* context);
  void* release_context;
  /* Registered memory of this server in which the bulk lies, which has a `release` then; null: it
   * is registered for this reply. In use until `release` is called, which may not have returned
   * yet when it can be released. */
  stag_memory* memory;
} stag_results;

/* Sends the results, without waiting for that. Unless it returns STAG_OK the request still wants a
 * reply, for which stag_stop() waits: a handler that cannot reply (STAG_NO_MEMORY) refuses. */
int stag_reply(stag_request* request, const stag_results* results);

enum { STAG_PROC_UNAVAIL = 3, STAG_GARBAGE_ARGS = 4, STAG_SYSTEM_ERR = 5 };
/* Replies with an accept_stat of RFC 5531 section 9. */
int stag_refuse(stag_request* request, uint32_t accept_stat);

/* -- registered memory -- */

/* An RDMA device knows memory only when it is registered, which pins its pages: two system calls
 * for each call whose bulk is large. Memory that a program uses again and again is registered once,
 * and named in stag_call and stag_results, where bulk lies in any part of it. Each call opens no
 * more than its own part to its peer, with one right, under a handle of its own, and closes it
 * before it ends, as without registered memory; a peer that reaches for it later loses the
 * connection.
 *
 * What it saves: at devices with memory windows (of type 2, as mlx5 and rxe have them) all
 * registering but the first, and a copy of the results, which otherwise go through memory of the
 * library where a call may end early. Such a call that ends early while the server still writes
 * costs the connection, which is made again. At other devices each call is registered by itself all
 * the same, and only the copy is saved, at the same cost; software iWARP and TCP have nothing to
 * save: registered memory may be used there without a difference.
 *
 * What a device has registered ends with its last connection of that client, or of that thread of
 * the server, and until the next one the pages are not pinned: the first call over that one
 * registers the memory again by itself, and waits meanwhile. Should the device refuse that, calls
 * are made as at devices without windows.
 */
enum {
  STAG_MEMORY_READ = 1, /* bulk of arguments, and of a server's results, lies there */
  STAG_MEMORY_WRITE = 2 /* bulk of results, and of arguments at a server, is placed there */
};

/* Registers `length` bytes, which stay mapped until they are released, with rights to `access`
 * (STAG_MEMORY_...). Blocks, and calls of the client or server wait meanwhile, while a device pins
 * every page; one that has no connection yet does so with the first call. STAG_INVALID: an argument
 * is wrong, or the memory is not mapped. STAG_NO_MEMORY: no more may be pinned, or none is left
 * ("VerbsMemlockTooLow", "OutOfMemory"). STAG_FAILED: what else the device says ("VerbsDeviceFull":
 * it has no memory keys left; "VerbsFailed": it refuses, as memory that may only be read and is to
 * be written, or cannot do it). On STAG_OK *registered is freed by
 * stag_memory_release(), before or after its client or server. */
int stag_memory_register(stag_client* client, void* memory, size_t length, uint32_t access,
                         stag_memory** registered, stag_error* error);
int stag_server_memory_register(stag_server* server, void* memory, size_t length, uint32_t access,
                                stag_memory** registered, stag_error* error);

/* Ends the registration: from then on the memory is the caller's alone. STAG_BUSY as long as a call
 * that names it has not ended, or a reply from it or bulk placed in it has not been released:
 * nothing is changed then. Null is ignored. */
int stag_memory_release(stag_memory* registered);

/* "0.1.0": of the library that runs, not of this header. */
const char* stag_version(void);

#ifdef __cplusplus
}
#endif

#endif
