"""A peer with somebody else's Noise joins a job of tutti's and exchanges records with a real rank.

The hello is dissononce's (Debian's python3-dissononce), and so nothing of it is tutti's own; the records behind it are
sealed by the cryptography package. The peer is rank 1 of 2: it is placed by the root, calls rank 0, which is a process
of all_reduce_perf, gives it its share of the table and gets the table back.
"""
import hashlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    from dissononce.exceptions.decrypt import DecryptFailedException
    from dissononce.dh.x25519.public import PublicKey
    from dissononce.dh.x25519.x25519 import X25519DH
    from dissononce.extras.meta.protocol.factory import NoiseProtocolFactory
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError as missing:
    # Debian's package is one for Debian's Python, which CMake may not have found.
    if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3") and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print(f"needs python3-dissononce ({missing})")
    sys.exit(77)

BIN = os.environ["TUTTI_BIN_DIR"]
PATIENCE = 30 * float(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
MAGIC = b"tuttiHi\x04"
WANTS_ENCRYPTION, HAS_AES = 1, 2
HELLO, PLACE, TREE, GATHER_UP, GATHER_DOWN, ALIVE = 1, 2, 5, 7, 8, 22  # Kind in src/wire/messages.h


def hashed(label, key=b""):
    return hashlib.blake2b(label, key=key, digest_size=32).digest()


def block(data):
    return struct.pack("<I", len(data)) + data


class Reader:
    def __init__(self, data):
        self.rest = data

    def take(self, count):
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def value(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def block(self):
        return self.take(self.value("I"))

    def person(self):
        person = {"rank": self.value("i"), "host": self.block(), "pid": self.value("q"), "key": self.take(32),
                  "listener": self.value("Q"), "unix": self.block(), "addresses": []}
        for _ in range(self.value("H")):
            v6, port, _, ip = self.value("B"), self.value("H"), self.value("I"), self.block()
            person["addresses"].append((v6, port, ip))
        return person


class UniqueId:
    def __init__(self, raw):
        fields = Reader(raw[4:])
        self.raw, self.secret, self.job = raw, fields.take(16), fields.value("Q")
        self.addresses = []
        for _ in range(fields.value("B")):
            tag, port = fields.value("B"), fields.value("H")
            fields.take(4 if tag == 7 else 0)
            self.addresses.append((tag != 4, port, fields.take(16 if tag != 4 else 4)))


class Records:
    """The records of one direction: numbered from 0."""

    def __init__(self, key):
        self.cipher, self.number = AESGCM(key), 0

    def nonce(self):
        self.number += 1
        return struct.pack("<Q4x", self.number - 1)

    def seal(self, data):
        return self.cipher.encrypt(self.nonce(), data, b"")

    def open(self, data):
        return self.cipher.decrypt(self.nonce(), data, b"")


class Peer:
    """A connection whose hello has been done by dissononce. With `keys`, our own pair and the other's public key."""

    def __init__(self, unique_id, listener, port, flags, secret=None, keys=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        psk = hashed(b"tutti hello psk", unique_id.secret if secret is None else secret)
        pattern = "IKpsk1" if keys else "NNpsk0"
        protocol = NoiseProtocolFactory().get_noise_protocol(f"Noise_{pattern}_25519_ChaChaPoly_BLAKE2b")
        noise = protocol.create_handshakestate()
        own, other = (keys[0], PublicKey(keys[1])) if keys else (None, None)
        noise.initialize(protocol.pattern, True, MAGIC + struct.pack("<QQ", unique_id.job, listener), s=own, rs=other,
                         psks=(psk,))
        first = bytearray()
        noise.write_message(bytes([flags]), first)
        self.socket.sendall(MAGIC + first)
        answer = self.receive(len(MAGIC) + 32 + 1 + 16)
        assert answer[:len(MAGIC)] == MAGIC
        payload = bytearray()
        up, down = noise.read_message(answer[len(MAGIC):], payload)
        self.flags = flags & payload[0]
        keys = [hashed(b"tutti control", state._key) for state in (up, down)]  # pylint: disable=protected-access
        self.socket.sendall(up.encrypt_with_ad(b"", b""))
        sealed = self.flags & WANTS_ENCRYPTION
        self.out, self.back = (Records(key) if sealed else None for key in keys)

    def receive(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("hung up")
            data += more
        return data

    def say(self, kind, payload):
        header = b"Tf" + bytes([1, kind]) + struct.pack("<I", len(payload))
        for part in (header, payload):
            if part:
                self.socket.sendall(self.out.seal(part) if self.out else part)

    def hear(self):
        tag = 16 if self.back else 0
        while True:
            header = self.receive(8 + tag)
            header = self.back.open(header) if self.back else header
            count = struct.unpack("<I", header[4:])[0]
            payload = self.receive(count + tag) if count else b""
            payload = self.back.open(payload) if self.back and count else payload
            if header[3] != ALIVE:
                return header[3], payload


def has_aes():
    with open("/proc/cpuinfo", encoding="ascii") as told:
        words = told.read().split()
    return "aes" in words and "pclmulqdq" in words


class Job:
    """Rank 0, and what a person called rank 1 says of itself."""

    def __init__(self, folder, encrypt):
        self.root = subprocess.Popen([os.path.join(BIN, "tutti_make_id")], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        self.id = UniqueId(bytes.fromhex(self.root.stdout.readline()))
        path = os.path.join(folder, "id")
        with open(path, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(self.id.raw.hex())
        environment = dict(os.environ, TUTTI_ID_FILE=path, TUTTI_RANK="0", TUTTI_SIZE="2", TUTTI_UNIX_SOCKETS="0",
                           TUTTI_ENCRYPT=str(int(encrypt)), TUTTI_JOIN_TIMEOUT_MS=str(int(PATIENCE * 1000)))
        self.process = subprocess.Popen([os.path.join(BIN, "all_reduce_perf"), "-b", "8", "-e", "8", "-n", "1"],
                                        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.keys = X25519DH().generate_keypair()
        endpoint = self.keys.public.data + struct.pack("<Q", 7) + block(b"") + struct.pack("<H", 0)
        self.person = struct.pack("<i", 1) + block(b"elsewhere") + struct.pack("<q", os.getpid()) + endpoint
        self.record = self.person + block(b"a card that says nothing")
        self.hello = struct.pack("<iqq", 2, int(PATIENCE * 1000), 0) + self.person + struct.pack("<H", 0)
        self.hello += hashed(self.record) + block(b"")

    def end(self):
        self.root.communicate("")
        self.process.kill()
        return self.process.communicate()[1]


class NoisePeer(unittest.TestCase):
    def join(self, flags, forges=False):
        with tempfile.TemporaryDirectory() as folder:
            job = Job(folder, flags & WANTS_ENCRYPTION)
            try:
                root = Peer(job.id, job.id.job, job.id.addresses[0][1], flags)
                self.assertEqual(root.flags & WANTS_ENCRYPTION, flags & WANTS_ENCRYPTION)
                root.say(HELLO, job.hello)
                kind, payload = root.hear()
                self.assertEqual(kind, PLACE, payload)
                place = Reader(payload)
                place.value("Q")
                self.assertEqual(place.block(), b"", "the id has a secret: none is handed over")
                self.assertEqual(place.value("B"), 1)
                parent = place.person()
                self.assertEqual((parent["rank"], parent["pid"]), (0, job.process.pid))
                self.check_strangers(job, parent)
                if forges:
                    self.forge(job, parent)
                else:
                    self.exchange(job, parent, flags)
            finally:
                said = job.end()
        return said

    def exchange(self, job, parent, flags):
        port, listener = parent["addresses"][0][1], parent["listener"]
        impostor = Peer(job.id, listener, port, flags, keys=(X25519DH().generate_keypair(), parent["key"]))
        impostor.say(TREE, job.hello)
        with self.assertRaises(ConnectionError):
            impostor.hear()
        peer = Peer(job.id, listener, port, flags, keys=(job.keys, parent["key"]))
        peer.say(TREE, job.hello)
        peer.say(GATHER_UP, struct.pack("<Q", 0) + block(struct.pack("<i", 1) + block(job.record)))
        kind, payload = peer.hear()
        self.assertEqual(kind, GATHER_DOWN, payload)
        table = Reader(payload)
        self.assertEqual(table.value("Q"), 0)
        theirs, mine = table.block(), table.block()
        self.assertEqual(mine, job.record)
        self.assertEqual(Reader(theirs).person()["pid"], job.process.pid)

    def forge(self, job, parent):
        """As a rank in the tree that gives out something of its own for what a rank below it has said."""
        peer = Peer(job.id, parent["listener"], parent["addresses"][0][1], 0, keys=(job.keys, parent["key"]))
        peer.say(TREE, job.hello)
        record = job.record.replace(*self.forged(job))
        self.assertNotEqual(record, job.record)
        peer.say(GATHER_UP, struct.pack("<Q", 0) + block(struct.pack("<i", 1) + block(record)))
        job.process.wait(PATIENCE)

    def check_strangers(self, job, parent):
        port, listener = parent["addresses"][0][1], parent["listener"]
        right, wrong = (job.keys, parent["key"]), (job.keys, job.keys.public.data)
        for named, secret, keys in ((listener, bytes(16), right), (listener ^ 1, None, right), (listener, None, wrong)):
            with self.assertRaises((ConnectionError, DecryptFailedException)):
                Peer(job.id, named, port, 0, secret, keys)

    def test_a_record_that_was_changed_is_noticed(self):
        for what in ("key", "host", "card"):
            with self.subTest(what):
                self.forged = {"key": lambda job: (job.keys.public.data, os.urandom(32)),
                               "host": lambda job: (b"elsewhere", b"somewhere"),
                               "card": lambda job: (b"says nothing", b"says a lie..")}[what]
                self.assertIn("a rank in the tree has changed the table of all ranks", self.join(0, forges=True))

    def test_joins_in_the_clear(self):
        self.join(0)

    @unittest.skipUnless(has_aes(), "needs a processor with AES")
    def test_joins_sealed(self):
        self.join(WANTS_ENCRYPTION | HAS_AES)


if __name__ == "__main__":
    sys.exit(unittest.main(warnings="ignore"))
