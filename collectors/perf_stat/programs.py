# SPDX-License-Identifier: GPL-2.0-or-later
"""Two tiny programs for x86-64 Linux, as bytes, for a testbed need not have a compiler.

Both are static, so that nothing but the instructions listed here runs in user mode: no loader, no library.
"""

import struct

BASE = 0x400000
HEADERS = 64 + 56
"""Bytes of the ELF header and of one program header, behind which the code begins."""
MACHINE = "x86_64"
INSTRUCTIONS = 1_000_000
RDPMC_READS = 100_000


def counted(instructions: int = INSTRUCTIONS) -> bytes:
    """A program of exactly so many instructions (even, 6 or more) in user mode: 2 in each round of its loop, and 4 beside it.

    dec and jnz may be fused into one operation; as instructions retired they are two, by Intel's and by AMD's manuals.
    """
    rounds = (instructions - 4) // 2
    return _elf(
        b"\xb9" + struct.pack("<I", rounds)  #    mov ecx, rounds
        + b"\xff\xc9"  #                   again: dec ecx
        b"\x75\xfc"  #                            jnz again
        b"\x31\xff"  #                            xor edi, edi
        b"\xb8\x3c\x00\x00\x00"  #                mov eax, 60          exit(0)
        b"\x0f\x05"  #                            syscall
    )  # fmt: skip


def rdpmc(reads: int = RDPMC_READS) -> bytes:
    """A program that counts its own cycles, reads the counter ``reads`` times by rdpmc, and writes the time before and after.

    It writes two struct timespec of CLOCK_MONOTONIC (32 bytes). Exit status 1: no counter (perf_event_open failed), 2: it could not
    be mapped, 3: it did not run, so that there is nothing to read. Where rdpmc is not allowed, SIGSEGV ends it. The place of the
    counter's number in the mapped page is that of perf_event_open(2): ``index`` at byte 12, one above the counter.
    """
    code = (
        b"\xb8\x2a\x01\x00\x00"  #                mov eax, 298         perf_event_open
        b"\x48\x8d\x3d\xa4\x00\x00\x00"  #        lea rdi, [rip+attr]
        b"\x31\xf6"  #                            xor esi, esi         this process,
        b"\x48\xc7\xc2\xff\xff\xff\xff"  #        mov rdx, -1          on any CPU,
        b"\x49\xc7\xc2\xff\xff\xff\xff"  #        mov r10, -1          in no group
        b"\x45\x31\xc0"  #                        xor r8d, r8d
        b"\x0f\x05"  #                            syscall
        b"\x85\xc0"  #                            test eax, eax
        b"\xb3\x01"  #                            mov bl, 1
        b"\x78\x6e"  #                            js fail
        b"\x41\x89\xc0"  #                        mov r8d, eax
        b"\xb8\x09\x00\x00\x00"  #                mov eax, 9           mmap
        b"\x31\xff"  #                            xor edi, edi
        b"\xbe\x00\x10\x00\x00"  #                mov esi, 4096
        b"\xba\x01\x00\x00\x00"  #                mov edx, 1           PROT_READ
        b"\x41\xba\x01\x00\x00\x00"  #            mov r10d, 1          MAP_SHARED
        b"\x45\x31\xc9"  #                        xor r9d, r9d
        b"\x0f\x05"  #                            syscall
        b"\x48\x3d\x00\xf0\xff\xff"  #            cmp rax, -4096
        b"\xb3\x02"  #                            mov bl, 2
        b"\x77\x45"  #                            ja fail
        b"\x44\x8b\x68\x0c"  #                    mov r13d, [rax+12]   index
        b"\xb3\x03"  #                            mov bl, 3
        b"\x41\xff\xcd"  #                        dec r13d
        b"\x78\x3a"  #                            js fail
        b"\x48\x83\xec\x20"  #                    sub rsp, 32
        b"\x48\x89\xe6"  #                        mov rsi, rsp
        b"\xe8\x38\x00\x00\x00"  #                call now
        b"\xbb" + struct.pack("<I", reads) +  #   mov ebx, reads
        b"\x44\x89\xe9"  #                 again: mov ecx, r13d
        b"\x0f\x33"  #                            rdpmc
        b"\xff\xcb"  #                            dec ebx
        b"\x75\xf7"  #                            jnz again
        b"\x48\x8d\x74\x24\x10"  #                lea rsi, [rsp+16]
        b"\xe8\x20\x00\x00\x00"  #                call now
        b"\xb8\x01\x00\x00\x00"  #                mov eax, 1           write(1, both times)
        b"\xbf\x01\x00\x00\x00"  #                mov edi, 1
        b"\x48\x89\xe6"  #                        mov rsi, rsp
        b"\xba\x20\x00\x00\x00"  #                mov edx, 32
        b"\x0f\x05"  #                            syscall
        b"\x31\xdb"  #                            xor ebx, ebx
        b"\xb8\x3c\x00\x00\x00"  #          fail: mov eax, 60          exit(bl)
        b"\x0f\xb6\xfb"  #                        movzx edi, bl
        b"\x0f\x05"  #                            syscall
        b"\xb8\xe4\x00\x00\x00"  #           now: mov eax, 228         clock_gettime(CLOCK_MONOTONIC, rsi)
        b"\xbf\x01\x00\x00\x00"  #                mov edi, 1
        b"\x0f\x05"  #                            syscall
        b"\xc3"  #                                ret
        b"\x0f\x1f\x40\x00"  #                    nop
    )  # fmt: skip
    # struct perf_event_attr, 64 bytes: type (hardware) and size; config (cycles), sample_period, sample_type, read_format;
    # exclude_kernel and exclude_hv, which an unprivileged program needs; the rest.
    return _elf(code + struct.pack("<IIQQQQQQQ", 0, 64, 0, 0, 0, 0, 0x60, 0, 0))


def _elf(code: bytes) -> bytes:
    """A static ELF file of one segment that is read and executed, and begins with ``code``. System V ABI, Object Files."""
    size = HEADERS + len(code)
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)  # 64 bits, little-endian, version 1
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, BASE + HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, size, size, 0x1000)
    return identity + header + segment + code
