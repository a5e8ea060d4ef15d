"""Refuses a system call to this process and its children, as tight containers do."""
import ctypes
import os
import struct

CALLS = {"x86_64": {"memfd_create": 319, "process_vm_readv": 310, "fchmod": 91}, "aarch64": {"memfd_create": 279, "process_vm_readv": 270, "fchmod": 52}}


def refuse(name, argument=0, value=None):
    """From now on the call of that name gets EPERM, by a filter (linux/filter.h); where `value` is given only if its argument of that
    number, from 0, is this value (of its lower 32 bits)."""
    call = CALLS[os.uname().machine][name]
    pr_set_no_new_privs, pr_set_seccomp, filter_mode = 38, 22, 2
    condition = [] if value is None else [
        (0x20, 0, 0, 16 + 8 * argument),  # load the argument
        (0x15, 0, 1, value)]              # is it this value?
    instructions = [
        (0x20, 0, 0, 0),                        # load the call's number
        (0x15, 0, 1 + len(condition), call),    # is it this one?
        *condition,
        (0x06, 0, 0, 0x50001),                  # then an error, EPERM
        (0x06, 0, 0, 0x7FFF0000)]               # else allowed
    code = b"".join(struct.pack("HBBI", *one) for one in instructions)
    room = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HP", len(instructions), ctypes.addressof(room)))
    system = ctypes.CDLL(None, use_errno=True)
    if system.prctl(pr_set_no_new_privs, 1, 0, 0, 0) != 0 or system.prctl(pr_set_seccomp, filter_mode, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")
