"""A man in the middle of every TCP connection of a job: the ranks are made to call him (redirect.c), and he calls the
rank that was meant. Counts what passes, records the callers' hellos, and does one wrong thing to one byte or stretch."""
import random
import select
import socket
import threading

HELLO = 8 + 32 + 48 + 1 + 16  # the longest first message of a caller; then, after the answer, its last one
PROOF = 16


class Interloper:
    """kind: None, "flip", "repeat" or "drop"; at: the number of the byte, counted over all that passes."""

    def __init__(self, ports, by, kind=None, at=0, seed=0):
        self.kind, self.at, self.random = kind, at, random.Random(seed)
        self.passed, self.done = 0, False
        self.hellos = []  # of (port, what a caller said first)
        self.lock, self.stopping = threading.Lock(), False
        self.listeners = [(self._listen(port + by), port) for port in ports]
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    @staticmethod
    def _listen(port):
        listener = socket.create_server(("127.0.0.1", port), backlog=128)
        listener.setblocking(False)
        return listener

    def close(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()
        for listener, _ in self.listeners:
            listener.close()

    def _accept(self):
        ports = {listener: port for listener, port in self.listeners}
        while not self.stopping:
            for listener in select.select(list(ports), [], [], 0.05)[0]:
                caller, _ = listener.accept()
                caller.setblocking(True)
                thread = threading.Thread(target=self._serve, args=(caller, ports[listener]), daemon=True)
                self.threads.append(thread)
                thread.start()

    def _serve(self, caller, port):
        with caller:
            try:
                callee = socket.create_connection(("127.0.0.1", port), timeout=5)
            except OSError:
                return
            with callee:
                for end in (caller, callee):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._pass_on(caller, callee, port)

    def _pass_on(self, caller, callee, port):
        said = b""
        try:
            while not self.stopping:
                for end in select.select([caller, callee], [], [], 0.05)[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    if end is caller and len(said) < HELLO + PROOF:
                        said += data
                        if len(said) >= HELLO + PROOF:
                            self.hellos.append((port, said[:HELLO + PROOF]))
                    (callee if end is caller else caller).sendall(self._bend(data))
        except OSError:
            return

    def _bend(self, data):
        with self.lock:
            start, self.passed = self.passed, self.passed + len(data)
            if self.kind is None or self.done or self.passed <= self.at:
                return data
            self.done = True
            at = self.at - start
            if self.kind == "flip":
                return data[:at] + bytes([data[at] ^ (1 << self.random.randrange(8))]) + data[at + 1:]
            stretch = data[at:at + self.random.choice((1, 24, 80, 596, 5000))]
            if self.kind == "repeat":
                return data[:at] + stretch + data[at:]
            return data[:at] + data[at + len(stretch):]
