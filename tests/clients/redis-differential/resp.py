"""A connection that speaks RESP2 and RESP3 and shows replies with their exact types."""

import socket


class Lost(Exception):
    """The server closed the connection."""


class Error(str):
    """An error reply."""


class Simple(str):
    """A reply like +OK."""


class Connection:
    """One connection; `ask` sends a command and returns its reply."""

    def __init__(self, port, timeout=20):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.input = b""

    def ask(self, *parts):
        self.send(*parts)
        return self.reply()

    def send(self, *parts):
        out = [b"*%d\r\n" % len(parts)]
        for part in parts:
            part = part if isinstance(part, bytes) else str(part).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(part), part))
        self.socket.sendall(b"".join(out))

    def close(self):
        self.socket.close()

    def _more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise Lost()
        self.input += data

    def _line(self):
        while b"\r\n" not in self.input:
            self._more()
        line, self.input = self.input.split(b"\r\n", 1)
        return line

    def _take(self, size):
        while len(self.input) < size + 2:
            self._more()
        data, self.input = self.input[:size], self.input[size + 2 :]
        return data

    def reply(self):
        """One reply as nested tuples: the sign of its type, then what it holds."""
        line = self._line()
        sign, rest = line[:1].decode(), line[1:]
        if sign == "+":
            return Simple(rest.decode())
        if sign == "-":
            return Error(rest.decode("utf-8", "replace"))
        if sign == ":":
            return int(rest)
        if sign in ",#(":
            return (sign, rest.decode())
        if sign == "_":
            return ("_",)
        if sign in "$=":
            return (sign + "-1",) if rest == b"-1" else self._take(int(rest))
        if sign in "*~>":
            return (sign + "-1",) if rest == b"-1" else [sign, *(self.reply() for _ in range(int(rest)))]
        if sign == "%":
            return [sign, *(self.reply() for _ in range(2 * int(rest)))]
        raise ValueError(f"unknown reply {line!r}")
