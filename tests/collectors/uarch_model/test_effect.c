/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What instructions read and write, of encodings that the assembler made; and of bytes that are none. */
#include "effect.h"

#include "assembled.h"
#include "check.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };
#define G(n) IN_REGISTER(n)
#define V(n) IN_VECTOR(n)
#define F IN_ALL_FLAGS

static void is(const uint8_t *code, const char *text, uint64_t reads, uint64_t address, uint64_t writes, uint8_t latency)
{
	struct effect e = effect_of(code + 1, code[0]);

	if (e.known && e.reads == reads && e.address == address && e.writes == writes && e.latency == latency)
		return;
	fprintf(stderr, "%s: known %d, reads %" PRIx64 ", address %" PRIx64 ", writes %" PRIx64 ", latency %u\n", text, e.known, e.reads,
		e.address, e.writes, e.latency);
	exit(1);
}

#define IS(text, reads, address, writes, latency) is(ASSEMBLED(INSTRUCTION(text)), text, reads, address, writes, latency)
#define NOTHING(text) IS(text, 0, 0, 0, 0)

static void is_store(const uint8_t *code, const char *text)
{
	struct effect e = effect_of(code + 1, code[0]);

	if (e.known && e.stores_vector && !e.writes)
		return;
	fprintf(stderr, "%s stores no vector\n", text);
	exit(1);
}

#define STORE(text) is_store(ASSEMBLED(INSTRUCTION(text)), text)

static void is_unknown(const uint8_t *code, const char *text)
{
	if (!effect_of(code + 1, code[0]).known)
		return;
	fprintf(stderr, "%s is known\n", text);
	exit(1);
}

#define UNKNOWN(text) is_unknown(ASSEMBLED(INSTRUCTION(text)), text)

static void arithmetic(void)
{
	IS("add rax, rbx", G(RAX) | G(RBX), 0, G(RAX) | F, 1);
	IS("add r9, r15", G(R9) | G(R15), 0, G(R9) | F, 1);
	IS("sub ecx, 1", G(RCX), 0, G(RCX) | F, 1);
	IS("and eax, 0x12345", G(RAX), 0, G(RAX) | F, 1);
	IS("add rdx, [rsi + rdi * 8 + 16]", G(RDX), G(RSI) | G(RDI), G(RDX) | F, 1);
	IS("add [rsi], rdx", G(RDX), G(RSI), F, 1);
	IS("adc rax, rbx", G(RAX) | G(RBX) | IN_CARRY, 0, G(RAX) | F, 1);
	IS("sbb rax, 0", G(RAX) | IN_CARRY, 0, G(RAX) | F, 1);
	IS("cmp rax, [rbp - 8]", G(RAX), G(RBP), F, 1);
	IS("test r12, r12", G(R12), 0, F, 1);
	IS("test al, 1", G(RAX), 0, F, 1);
	IS("inc r8", G(R8), 0, G(R8) | IN_FLAGS, 1);
	IS("dec dword ptr [rax]", 0, G(RAX), IN_FLAGS, 1);
	IS("neg rdi", G(RDI), 0, G(RDI) | F, 1);
	IS("not rdi", G(RDI), 0, G(RDI), 1);
	IS("imul rax, rbx", G(RAX) | G(RBX), 0, G(RAX) | F, 3);
	IS("imul rax, [rbx], 7", 0, G(RBX), G(RAX) | F, 3);
	IS("mul rcx", G(RAX) | G(RCX), 0, G(RAX) | G(RDX) | F, 3);
	IS("div r10", G(RAX) | G(RDX) | G(R10), 0, G(RAX) | G(RDX) | F, 10);
	IS("shl rax, 3", G(RAX), 0, G(RAX) | F, 1);
	IS("shr rdx, 1", G(RDX), 0, G(RDX) | F, 1);
	IS("sar rdx, cl", G(RDX) | G(RCX) | F, 0, G(RDX) | F, 1);
	IS("rol rdx, 5", G(RDX), 0, G(RDX) | IN_CARRY, 1);
	IS("rcl rdx, 1", G(RDX) | IN_CARRY, 0, G(RDX) | IN_CARRY, 1);
	IS("shld rax, rbx, 4", G(RAX) | G(RBX), 0, G(RAX) | F, 1);
	IS("popcnt rax, rbx", G(RBX), 0, G(RAX) | F, 1);
	IS("bswap r11", G(R11), 0, G(R11), 1);
	IS("bt rax, 3", G(RAX), 0, G(RAX) | F, 1);
	IS("crc32 rax, qword ptr [rsi]", G(RAX), G(RSI), G(RAX), 3);
	IS("andn rax, rbx, rcx", G(RBX) | G(RCX), 0, G(RAX) | F, 1);
	IS("blsr rax, rbx", G(RBX), 0, G(RAX) | F, 1);
	IS("shlx rax, rbx, rcx", G(RBX) | G(RCX), 0, G(RAX), 1);
	IS("pext rax, rbx, rcx", G(RBX) | G(RCX), 0, G(RAX), 3);
	IS("mulx rax, rbx, rcx", G(RDX) | G(RCX), 0, G(RAX) | G(RBX), 3);
	IS("rorx rax, rbx, 7", G(RBX), 0, G(RAX), 1);
	IS("adcx rax, rbx", G(RAX) | G(RBX) | IN_CARRY, 0, G(RAX) | IN_CARRY, 1);
}

static void zero_waits_for_nothing(void)
{
	IS("xor eax, eax", 0, 0, G(RAX) | F, 1);
	IS("sub r9, r9", 0, 0, G(R9) | F, 1);
	IS("xor eax, ebx", G(RAX) | G(RBX), 0, G(RAX) | F, 1);
	IS("xor al, al", G(RAX), 0, G(RAX) | F, 1);
	IS("pxor xmm3, xmm3", 0, 0, V(3), 1);
	IS("vpxor ymm3, ymm4, ymm4", 0, 0, V(3), 1);
	IS("vpxor ymm3, ymm3, ymm4", V(3) | V(4), 0, V(3), 1);
}

static void moves(void)
{
	IS("mov rax, rbx", G(RBX), 0, G(RAX), 0);
	IS("mov rax, [rax]", 0, G(RAX), G(RAX), 0);
	IS("mov rax, [rip + 8]", 0, 0, G(RAX), 0);
	IS("mov rax, fs:[0x28]", 0, 0, G(RAX), 0);
	IS("mov rax, [rsp + 8]", 0, G(RSP), G(RAX), 0);
	IS("mov rax, [r12 + r13]", 0, G(R12) | G(R13), G(RAX), 0);
	IS("mov eax, 7", 0, 0, G(RAX), 1);
	IS("mov al, [rsi]", G(RAX), G(RSI), G(RAX), 1);
	IS("mov ax, bx", G(RAX) | G(RBX), 0, G(RAX), 1);
	IS("movzx eax, byte ptr [rsi]", 0, G(RSI), G(RAX), 1);
	IS("movsxd rax, ebx", G(RBX), 0, G(RAX), 1);
	IS("lea rax, [rbx + rcx * 4 + 3]", G(RBX) | G(RCX), 0, G(RAX), 1);
	IS("cmove rax, rbx", G(RAX) | G(RBX) | F, 0, G(RAX), 1);
	IS("sete al", G(RAX) | F, 0, G(RAX), 1);
	IS("xchg rax, rbx", G(RAX) | G(RBX), 0, G(RAX) | G(RBX), 0);
	IS("pop r13", 0, G(RSP), G(R13), 0);
	IS("cdqe", G(RAX), 0, G(RAX), 1);
	IS("cqo", G(RAX), 0, G(RDX), 1);
	NOTHING("mov [rax], rbx");
	NOTHING("mov qword ptr [rax], 7");
	NOTHING("push rbx");
	NOTHING("nop word ptr [rax + rax]");
	NOTHING("pause");
	NOTHING("prefetcht0 [rax]");
	NOTHING("je 1b");
	NOTHING("call rax");
	NOTHING("ret");
}

static void vectors(void)
{
	IS("paddd xmm1, xmm2", V(1) | V(2), 0, V(1), 1);
	IS("vpaddd ymm9, ymm10, ymm11", V(10) | V(11), 0, V(9), 1);
	IS("movdqu xmm1, [rax + rcx]", 0, G(RAX) | G(RCX), V(1), 0);
	IS("vmovdqa ymm1, ymm2", V(2), 0, V(1), 0);
	IS("movaps xmm2, xmm9", V(9), 0, V(2), 0);
	IS("pcmpeqb xmm1, [rdi]", V(1), G(RDI), V(1), 1);
	IS("pmovmskb eax, xmm1", V(1), 0, G(RAX), 2);
	IS("movq rax, xmm1", V(1), 0, G(RAX), 1);
	IS("movq xmm1, rax", G(RAX), 0, V(1), 1);
	IS("vextracti128 xmm1, ymm2, 1", V(2), 0, V(1), 1);
	IS("vinserti128 ymm1, ymm2, xmm3, 1", V(2) | V(3), 0, V(1), 1);
	IS("vpermq ymm1, ymm2, 3", V(2), 0, V(1), 1);
	IS("vpbroadcastb ymm1, xmm2", V(2), 0, V(1), 1);
	IS("pmovzxbw xmm1, [rax]", 0, G(RAX), V(1), 1);
	IS("vpalignr ymm1, ymm2, ymm3, 4", V(2) | V(3), 0, V(1), 1);
	IS("pinsrq xmm1, rax, 1", V(1) | G(RAX), 0, V(1), 1);
	IS("pextrq rax, xmm1, 1", V(1), 0, G(RAX), 2);
	IS("movd xmm1, [rax]", 0, G(RAX), V(1), 1);
	IS("movsd xmm1, xmm2", V(1) | V(2), 0, V(1), 1);
	IS("movsd xmm1, [rax]", 0, G(RAX), V(1), 0);
	IS("movaps xmm9, xmm2", V(2), 0, V(9), 0);
	IS("ptest xmm1, xmm2", V(1) | V(2), 0, F, 2);
	IS("pshufd xmm1, xmm2, 3", V(2), 0, V(1), 1);
	IS("pshufb xmm1, xmm2", V(1) | V(2), 0, V(1), 1);
	IS("psllq xmm1, 3", V(1), 0, V(1), 1);
	IS("vpsrldq xmm1, xmm2, 3", V(2), 0, V(1), 1);
	IS("addsd xmm1, xmm2", V(1) | V(2), 0, V(1), 3);
	IS("vmulps ymm1, ymm2, [rax]", V(2), G(RAX), V(1), 3);
	IS("vfmadd231ps ymm1, ymm2, ymm3", V(1) | V(2) | V(3), 0, V(1), 4);
	IS("cvtsi2sd xmm1, rax", V(1) | G(RAX), 0, V(1), 3);
	IS("cvttsd2si rax, xmm1", V(1), 0, G(RAX), 3);
	IS("ucomisd xmm1, xmm2", V(1) | V(2), 0, F, 1);
	IS("pclmulqdq xmm1, xmm2, 0", V(1) | V(2), 0, V(1), 4);
	IS("aesenc xmm1, xmm2", V(1) | V(2), 0, V(1), 4);
	STORE("movdqu [rax], xmm1");
	STORE("vmovdqa [rax], ymm1");
	STORE("movntdq [rax], xmm1");
	STORE("movq [rax], xmm1");
	NOTHING("vzeroupper");
}

/* A loop with one of these has no chain. */
static void left_out(void)
{
	UNKNOWN("lock add [rax], rbx");
	UNKNOWN("lock cmpxchg [rax], rbx");
	UNKNOWN("xchg [rax], rbx");
	UNKNOWN("rdtsc");
	UNKNOWN("cpuid");
	UNKNOWN("fadd st, st(1)");
	UNKNOWN("lfence");
	UNKNOWN("lodsb");
	UNKNOWN("syscall");
	UNKNOWN("vpaddd zmm1, zmm2, zmm3");
	UNKNOWN("pcmpestri xmm1, xmm2, 0");
}

#define FUSES(text, expected)                                                  \
	do {                                                                   \
		const uint8_t *code = ASSEMBLED(INSTRUCTION(text));            \
		if (effect_fuses(code + 1, code[0]) != (expected)) {           \
			fprintf(stderr, "%s: fuses: %d\n", text, !(expected)); \
			exit(1);                                               \
		}                                                              \
	} while (0)

static void with_a_branch_behind(void)
{
	FUSES("cmp rax, rbx", true);
	FUSES("cmp rax, [rbx]", true);
	FUSES("cmp [rbx], rax", true);
	FUSES("cmp eax, 1000", true);
	FUSES("cmp r9, 1", true);
	FUSES("cmp byte ptr [rbx], 1", false); /* a constant, and memory */
	FUSES("test rax, rax", true);
	FUSES("test [rbx], al", true);
	FUSES("test al, 1", true);
	FUSES("test ecx, 1000", true);
	FUSES("test dword ptr [rbx], 1", false);
	FUSES("add rax, rbx", true);
	FUSES("sub rax, 1", true);
	FUSES("and eax, [rbx]", true);
	FUSES("add [rbx], rax", false); /* it stores */
	FUSES("inc r10", true);
	FUSES("dec ecx", true);
	FUSES("dec qword ptr [rbx]", false);
	FUSES("xor eax, eax", false);
	FUSES("adc rax, rbx", false);
	FUSES("not rax", false);
	FUSES("call rax", false);
	FUSES("mov rax, rbx", false);
	FUSES("lock dec qword ptr [rbx]", false);
	FUSES("bt rax, rbx", false);
	FUSES("vptest ymm0, ymm1", false);
}

/* Whatever it is, no byte behind its end is read: the sanitizer would find it. */
static void any_bytes(void)
{
	struct random random = {99};

	for (int i = 0; i < 300000; i++) {
		uint8_t length = (uint8_t)random_below(&random, 16), *bytes = malloc(length ? length : 1);
		CHECK(bytes);
		for (int j = 0; j < length; j++)
			bytes[j] = random_once_in(&random, 3) ? (uint8_t[]){0x0f, 0x66, 0x48, 0xc5, 0xc4, 0xf3}[random_below(&random, 6)]
							      : (uint8_t)random_below(&random, 256);
		struct effect e = effect_of(bytes, length);
		CHECK(((e.reads | e.address | e.writes) >> PLACES) == 0);
		CHECK(e.loads || !e.address);
		CHECK(e.known || !e.writes);
		effect_fuses(bytes, length);
		free(bytes);
	}
}

int main(void)
{
	arithmetic();
	zero_waits_for_nothing();
	moves();
	vectors();
	left_out();
	with_a_branch_behind();
	any_bytes();
	return 0;
}
