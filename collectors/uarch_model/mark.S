/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mark begin | mark end: run in the emulated host (or a guest of it), marks a window's border by an instruction that does
 * nothing anywhere else. mark probes: probes are read from here to the begin, and from the end on. No library and no start-up
 * code: a window should not count its own ruler.
 */
    .globl _start
_start:
    mov 16(%rsp), %rsi          /* argv[1]; NULL without arguments */
    mov $1, %edi
    test %rsi, %rsi
    jz leave
    xor %edi, %edi
    cmpb $'b', (%rsi)
    je begin
    cmpb $'p', (%rsi)
    je probes
    nopl 0x76735002(%rax)
    jmp leave
probes:
    nopl 0x76735003(%rax)
    jmp leave
begin:
    nopl 0x76735001(%rax)
leave:
    mov $60, %eax               /* exit */
    syscall
    .section .note.GNU-stack, "", @progbits
