"""A proxy between a client and a server that speak software iWARP: subclasses change, drop and add FPDUs, so that a right server looks
wrong."""
import contextlib
import socket
import struct

import harness

MPA_HEADER = 20  # bytes in front of the private data
SEND = 3, 4, 5, 6  # RDMAP: Send, and those with Invalidate or Solicited Event


def fpdu(ulpdu):
    """Without a checksum."""
    return struct.pack(">H", len(ulpdu)) + ulpdu + bytes(-(len(ulpdu) + 2) % 4 + 4)


def pack(*words):
    return struct.pack(f">{len(words)}I", *words)


class FpduProxy(harness.Proxy):
    """Forwards. `changed` counts what was not forwarded as it came."""

    def __init__(self, port):
        self.changed = 0
        super().__init__(port, "down", 1 << 62)

    def mpa(self, private_data):
        """The private data of a client, in the same length."""
        return private_data

    def up(self, ulpdu):
        """What goes on to the server in place of this ULPDU of a client."""
        return [self.sent(ulpdu, self.call)]

    def down(self, ulpdu):
        """The same to the client."""
        return [self.sent(ulpdu, self.reply)]

    def call(self, words, rest):
        """A message in a Send of a client: its words, and the bytes behind these. None: as it was."""

    def reply(self, words, rest):
        """The same of the server."""

    @staticmethod
    def sent(ulpdu, change):
        if ulpdu[0] & 0x80 or (ulpdu[1] & 0xF) not in SEND:
            return ulpdu
        head, message = ulpdu[:18], ulpdu[18:]
        whole = len(message) // 4 * 4
        changed = change(list(struct.unpack(f">{whole // 4}I", message[:whole])), message[whole:])
        return ulpdu if changed is None else head + changed

    def _forward(self, source, target, direction):
        change = self.up if direction == "up" else self.down
        waiting, begun = b"", False
        try:
            while data := source.recv(65536):
                waiting += data
                if not begun:
                    if len(waiting) < MPA_HEADER or len(waiting) < (size := MPA_HEADER + struct.unpack(">H", waiting[18:20])[0]):
                        continue
                    private_data = waiting[MPA_HEADER:size]
                    told = self.mpa(private_data) if direction == "up" else private_data
                    self.changed += told != private_data
                    target.sendall(waiting[:MPA_HEADER] + told)
                    waiting, begun = waiting[size:], True
                while len(waiting) >= 2:
                    length = struct.unpack(">H", waiting[:2])[0]
                    size = len(fpdu(bytes(length)))
                    if len(waiting) < size:
                        break
                    ulpdu = waiting[2 : 2 + length]
                    waiting = waiting[size:]
                    instead = change(ulpdu)
                    self.changed += instead != [ulpdu]
                    target.sendall(b"".join(map(fpdu, instead)))
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for each in (source, target):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
