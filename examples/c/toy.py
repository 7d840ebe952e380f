#!/usr/bin/env python3
"""toy.py PORT SLOT [TEXT]: the toy client in Python, by ctypes; toy.py --serve: the server, which prints its port and ends with its standard input."""
import ctypes as c
import struct
import sys

stag = c.CDLL("libstag.so.0")


class Sized(c.Structure):
    """Every struct of stag.h begins with its size."""

    def __init__(self, **members):
        super().__init__(size=c.sizeof(self), **members)


class Error(Sized):
    _fields_ = [("size", c.c_size_t), ("status", c.c_int32), ("accept_stat", c.c_uint32), ("reason", c.c_char * 64), ("text", c.c_char * 256)]


class Procedure(Sized):
    _fields_ = [("size", c.c_size_t), ("number", c.c_uint32), ("flags", c.c_uint32), ("arguments_head", c.c_uint32), ("results_head", c.c_uint32)]


class Program(Sized):
    _fields_ = [
        ("size", c.c_size_t), ("program", c.c_uint32), ("version", c.c_uint32), ("procedures", c.POINTER(Procedure)), ("procedure_count", c.c_size_t)
    ]


class Call(Sized):
    _fields_ = [
        ("size", c.c_size_t), ("procedure", c.c_uint32), ("timeout_ms", c.c_uint32), ("arguments", c.c_char_p), ("arguments_length", c.c_size_t),
        ("bulk", c.c_void_p), ("bulk_length", c.c_size_t), ("results", c.c_void_p), ("results_capacity", c.c_size_t), ("results_bulk", c.c_void_p),
        ("results_bulk_capacity", c.c_size_t), ("results_length", c.c_size_t), ("results_bulk_length", c.c_size_t), ("bulk_memory", c.c_void_p),
        ("results_bulk_memory", c.c_void_p)
    ]


class Results(Sized):
    _fields_ = [
        ("size", c.c_size_t), ("results", c.c_char_p), ("results_length", c.c_size_t), ("bulk", c.c_char_p), ("bulk_length", c.c_size_t),
        ("release", c.c_void_p), ("release_context", c.c_void_p), ("memory", c.c_void_p)
    ]


HANDLER = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)
stag.stag_connect.argtypes = [c.c_char_p, c.c_uint16, c.POINTER(Program), c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(Error)]
stag.stag_disconnect.argtypes = [c.c_void_p]
stag.stag_call_wait.argtypes = [c.c_void_p, c.POINTER(Call), c.POINTER(Error)]
stag.stag_memory_register.argtypes = [c.c_void_p, c.c_void_p, c.c_size_t, c.c_uint32, c.POINTER(c.c_void_p), c.POINTER(Error)]
stag.stag_memory_release.argtypes = [c.c_void_p]
stag.stag_serve.argtypes = [c.c_char_p, c.c_uint16, c.POINTER(Program), HANDLER, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(Error)]
stag.stag_server_port.argtypes = stag.stag_stop.argtypes = stag.stag_request_procedure.argtypes = [c.c_void_p]
for function in stag.stag_request_arguments, stag.stag_request_bulk:
    function.argtypes = [c.c_void_p, c.POINTER(c.c_size_t)]
    function.restype = c.c_void_p
stag.stag_reply.argtypes = [c.c_void_p, c.POINTER(Results)]
stag.stag_refuse.argtypes = [c.c_void_p, c.c_uint32]

PUT, GET = 1, 2
ARGUMENTS_BULK, RESULTS_BULK, GARBAGE_ARGS, SYSTEM_ERR = 1, 2, 4, 5
MEMORY_READ, MEMORY_WRITE = 1, 2
PROCEDURES = (Procedure * 2)(Procedure(number=PUT, flags=ARGUMENTS_BULK, arguments_head=4), Procedure(number=GET, flags=RESULTS_BULK, results_head=4))
TOY = Program(program=0x20000002, version=1, procedures=PROCEDURES, procedure_count=2)


class Failed(Exception):
    pass


class Client:
    """A connection, for one thread, with memory that all its calls move their bulk through; its functions raise Failed with the library's sentence."""

    def __init__(self, host, port):
        self.client, self.memory, self.registered = c.c_void_p(), c.create_string_buffer(1 << 20), c.c_void_p()
        self.check(stag.stag_connect, host.encode(), port, TOY, None, self.client)
        try:
            self.check(stag.stag_memory_register, self.client, self.memory, len(self.memory), MEMORY_READ | MEMORY_WRITE, self.registered)
        except Failed:
            self.close()
            raise

    def check(self, function, *arguments):
        error = Error()
        if function(*arguments, error) != 0:
            raise Failed(error.text.decode())

    def call(self, procedure, slot, **bulk):
        arguments, results = struct.pack(">I", slot), c.create_string_buffer(4)
        call = Call(procedure=procedure, arguments=arguments, arguments_length=4, results=c.addressof(results), results_capacity=4, **bulk)
        self.check(stag.stag_call_wait, self.client, call)
        return struct.unpack(">I", results.raw)[0], call.results_bulk_length

    def put(self, slot, data):
        if len(data) > len(self.memory):
            raise Failed("that is longer than a MiB")
        c.memmove(self.memory, data, len(data))
        return self.call(PUT, slot, bulk=c.addressof(self.memory), bulk_length=len(data), bulk_memory=self.registered)[0]

    def get(self, slot):
        at = c.addressof(self.memory)
        found, length = self.call(GET, slot, results_bulk=at, results_bulk_capacity=len(self.memory), results_bulk_memory=self.registered)
        return self.memory[:length] if found else None

    def close(self):
        stag.stag_memory_release(self.registered)
        stag.stag_disconnect(self.client)


def received(function, request):
    length = c.c_size_t()
    at = function(request, length)
    return c.string_at(at, length.value) if at else b""


def server():
    """What stag_serve() is given; called on a thread of the library, which ctypes makes one of Python's."""
    slots = {}

    def results_of(request):
        slot = struct.unpack(">I", received(stag.stag_request_arguments, request))[0]
        if stag.stag_request_procedure(request) == PUT:
            slots[slot] = received(stag.stag_request_bulk, request)
            return Results(results=struct.pack(">I", len(slots[slot])), results_length=4)
        data = slots.get(slot)
        return Results(results=struct.pack(">I", data is not None), results_length=4, bulk=data, bulk_length=len(data or b""))

    def serve(_, request):
        # A request without a reply would be waited for by stag_stop(): it is refused whatever has gone wrong, as memory that runs out.
        refusal = SYSTEM_ERR
        try:
            if stag.stag_reply(request, results_of(request)) == 0:
                return
        except struct.error:
            refusal = GARBAGE_ARGS
        except Exception:
            pass
        stag.stag_refuse(request, refusal)

    return HANDLER(serve)


def main():
    if sys.argv[1:] == ["--serve"]:
        handler, at, error = server(), c.c_void_p(), Error()
        if stag.stag_serve(b"127.0.0.1", 0, TOY, handler, None, None, at, error) != 0:
            sys.exit(f"toy.py: {error.text.decode()}")
        print(stag.stag_server_port(at), flush=True)
        try:
            sys.stdin.read()
        except KeyboardInterrupt:
            pass
        finally:
            # Until then the library's threads call `handler`, which an interpreter that ends cannot bear.
            stag.stag_stop(at)
        return
    client = Client("127.0.0.1", int(sys.argv[1]))
    if len(sys.argv) > 3:
        client.put(int(sys.argv[2]), sys.argv[3].encode())
    elif (data := client.get(int(sys.argv[2]))) is not None:
        print(data.decode())
    client.close()


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"toy.py: {failure}")
