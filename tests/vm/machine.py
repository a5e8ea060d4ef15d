"""Virtual machines with RDMA: soft-RoCE (the kernel's rdma_rxe) in a Debian kernel under qemu, which emulates the processor, so
that neither KVM nor a card is needed. A machine's root is this one's, read-only; what it runs is what was built here.

Made once, in ~/.cache/tutti-vm: the kernel of the distribution, downloaded but not installed, and a first file system of a
few modules. What is missing of qemu and its helpers is installed where that may be.
"""
import gzip
import lzma
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tutti-vm"
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "modprobe": "kmod", "cpio": "cpio",
            "rdma": "iproute2", "ibv_devinfo": "ibverbs-utils", "strip": "binutils"}
PROVIDERS = "ibverbs-providers"  # what libibverbs needs for soft-RoCE
MODULES = """virtio_pci virtio_console 9pnet_virtio 9p overlay virtio_net dummy veth
             crc32_generic crc32c_generic libcrc32c rdma_rxe rdma_ucm""".split()
APPLETS = "sh mount mkdir cat insmod echo chroot".split()


class CannotRun(Exception):
    """The machine lacks something."""


def path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def quiet(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, PATH=path()), **more)
    if done.returncode != 0:
        raise CannotRun(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def install_missing():
    missing = {package for program, package in PROGRAMS.items() if shutil.which(program, path=path()) is None}
    if not list(Path("/usr/lib").glob("*/libibverbs/librxe*")):
        missing.add(PROVIDERS)
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotRun(f"not installed, and not to be had without root and apt: {', '.join(sorted(missing))}")
    quiet("apt-get", "update", "-q")
    quiet("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-q", "-y", "--no-install-recommends",
          *sorted(missing))


def kernel_package():
    """The newest kernel that the distribution's own package for this processor depends on."""
    for line in quiet("apt-cache", "depends", "linux-image-amd64").splitlines():
        if line.strip().startswith("Depends: linux-image-"):
            return line.split()[1]
    raise CannotRun("apt knows no linux-image-amd64")


def uncompressed(image):
    """The kernel proper in a bzImage: qemu enters it at once, and no time goes into unpacking it slowly."""
    for magic, unpack in ((b"\xfd7zXZ\0", lambda data: lzma.LZMADecompressor().decompress(data)),
                          (b"\x1f\x8b\x08", gzip.decompress)):
        at = image.find(magic)
        while at >= 0:
            try:
                kernel = unpack(image[at:])
            except (lzma.LZMAError, OSError, EOFError):
                kernel = b""
            if kernel.startswith(b"\x7fELF"):
                return kernel
            at = image.find(magic, at + 1)
    raise CannotRun("the kernel is packed in a way that is not known here")


def make_modules(tree, version, folder):
    """Those that are wanted, and what they need, in the order in which they are loaded."""
    order = []
    for module in MODULES:
        listed = quiet("modprobe", "-d", str(tree), "-S", version, "--show-depends", module)
        for file in (line.split()[1] for line in listed.splitlines() if line.startswith("insmod ")):
            name = Path(file).name.removesuffix(".xz")
            if name in order:
                continue
            order.append(name)
            data = Path(file).read_bytes()
            (folder / name).write_bytes(lzma.decompress(data) if file.endswith(".xz") else data)
            quiet("strip", "-g", str(folder / name))
    (folder / "order").write_text("\n".join(order) + "\n")


def make_first_file_system(tree, version, result):
    with tempfile.TemporaryDirectory(dir=CACHE) as made:
        root = Path(made)
        for name in ("bin", "modules", "proc", "sys", "dev", "below", "layer", "root"):
            (root / name).mkdir()
        shutil.copy(shutil.which("busybox", path=path()), root / "bin/busybox")
        for applet in APPLETS:
            (root / "bin" / applet).symlink_to("busybox")
        shutil.copy(HERE / "guest_init", root / "init")
        (root / "init").chmod(0o755)
        make_modules(tree, version, root / "modules")
        names = "\n".join(sorted(str(one.relative_to(root)) for one in root.rglob("*")))
        packed = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=names.encode(), capture_output=True,
                                check=True, env=dict(os.environ, PATH=path()))
        result.write_bytes(packed.stdout)


def prepare():
    """The folder with `kernel` and `first`; made if it is not there, which takes a minute."""
    if os.uname().machine != "x86_64":
        raise CannotRun(f"machines of {os.uname().machine} have not been tried")
    CACHE.mkdir(parents=True, exist_ok=True)
    install_missing()
    package = kernel_package()
    made = CACHE / package
    if not (made / "kernel").exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as draft:
            quiet("apt-get", "download", package, cwd=draft)
            quiet("dpkg-deb", "-x", str(next(Path(draft).glob("*.deb"))), f"{draft}/tree")
            version = package.removeprefix("linux-image-")
            quiet("depmod", "-b", f"{draft}/tree", version)
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            shutil.copytree(f"{draft}/tree/lib/modules", made / "lib/modules")
            (made / "kernel").write_bytes(uncompressed(next(Path(f"{draft}/tree/boot").glob("vmlinuz-*")).read_bytes()))
    # By its own inputs: a changed guest_init is another one.
    first = made / "first"
    newest = max(Path(__file__).stat().st_mtime, (HERE / "guest_init").stat().st_mtime)
    if not first.exists() or first.stat().st_mtime < newest:
        make_first_file_system(made, package.removeprefix("linux-image-"), first)
    return made


class Machine:
    """One virtual machine, which runs one command of bash, and ends with it."""

    def __init__(self, command, variables=None, address="10.77.0.1", network=None, processors=2, mebibytes=1024):
        """`network`: None for a machine by itself; "listen=127.0.0.1:PORT" or "connect=…" for one end of a wire."""
        made = prepare()
        self.folder = Path(tempfile.mkdtemp(prefix="tutti-vm-"))
        shutil.copy(HERE / "guest_main", self.folder / "guest")
        lines = [f"export {name}={shlex.quote(value)}" for name, value in (variables or {}).items()]
        (self.folder / "command").write_text("\n".join([f"SHARED={self.folder}", *lines, command]) + "\n")
        words = ["console=ttyS0", "quiet", "panic=-1", "mitigations=off", "no_timer_check", "tsc=reliable",
                 "clocksource=tsc", "cryptomgr.notests", "audit=0", "nowatchdog", "net.ifnames=0",
                 f"tutti_shared={self.folder}", f"tutti_address={address}"]
        shares = (("/", "hostroot", ",readonly=on,multidevs=remap"), (str(self.folder), "shared", ""))
        options = ["-accel", "tcg", "-cpu", "max", "-smp", str(processors), "-m", str(mebibytes), "-nodefaults",
                   "-no-user-config", "-display", "none", "-no-reboot", "-kernel", str(made / "kernel"), "-initrd",
                   str(made / "first"), "-serial", f"file:{self.folder}/console", "-append", " ".join(words),
                   "-device", "virtio-serial-pci", "-chardev", f"file,id=out,path={self.folder}/output",
                   "-device", "virtserialport,chardev=out,name=out"]
        for number, (source, tag, more) in enumerate(shares):
            options += ["-fsdev", f"local,id=share{number},path={source},security_model=none{more}",
                        "-device", f"virtio-9p-pci,fsdev=share{number},mount_tag={tag}"]
        if network:
            options += ["-netdev", f"socket,id=wire,{network}", "-device",
                        f"virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:77:00:{int(address.split('.')[-1]):02x}"]
        with open(self.folder / "qemu", "wb") as said:
            self.process = subprocess.Popen(["qemu-system-x86_64", *options], stdin=subprocess.DEVNULL, stdout=said,
                                            stderr=subprocess.STDOUT)

    def end(self, timeout=240):
        """Its status and what it printed. Raises CannotRun when it broke, and AssertionError when it took too long."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"a virtual machine has not ended within {timeout} s:\n{self.text('output')}") from None
        finally:
            output, status = self.text("output"), self.text("status").strip()
            broken = self.text("qemu") + self.text("console")[-2000:]
            shutil.rmtree(self.folder, ignore_errors=True)
        if not status:
            raise CannotRun(f"the virtual machine broke: {broken}")
        return int(status), output.replace("\r\n", "\n")

    def text(self, name):
        file = self.folder / name
        return file.read_text(errors="replace") if file.exists() else ""


def run(command, timeout=240, **options):
    return Machine(command, **options).end(timeout)
