/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loops as the assembler encodes them, of which it is known by hand how long each time round takes. */
#include "chain.h"

#include "assembled.h"
#include "check.h"

#define I(text) INSTRUCTION(text)

typedef uint32_t (*takes_t)(const struct chain *chain, const struct profile *profile);

static uint32_t cycles(takes_t takes, const uint8_t *code)
{
	static struct chain chain;

	chain_begin(&chain);
	for (; *code; code += 1 + code[0])
		chain_add(&chain, code + 1, code[0]);
	struct profile profile = default_profile();
	return takes(&chain, &profile);
}

#define ONCE(takes, instructions) EQUAL(cycles(chain_once, ASSEMBLED(instructions)), takes)
#define KNOWN(after, instructions) EQUAL(cycles(chain_condition, ASSEMBLED(instructions)), after)
#define TAKES(per_round, instructions) EQUAL(cycles(chain_cycles, ASSEMBLED(instructions)), (per_round) * CHAIN_ROUNDS)

int main(void)
{
	/* A counter. */
	TAKES(1, I("dec rcx") I("jne 1b"));
	/* A chain of pointers, as that of the benchmark: the counter beside it takes no time. */
	TAKES(4, I("mov rdx, [rdx]") I("sub rax, 1") I("cmp rax, -1") I("jne 1b"));
	TAKES(5, I("mov rdx, [rdx + 8]") I("add rdx, 16") I("test rdx, rdx") I("jne 1b"));
	/* One sum; two sums; a sum of what is loaded, at addresses that do not wait for it. */
	TAKES(3, I("add rax, rbx") I("add rax, rbx") I("add rax, rbx") I("dec rcx") I("jne 1b"));
	TAKES(2, I("add rax, rbx") I("add rdx, rbx") I("add rax, rbx") I("add rdx, rbx") I("dec rcx") I("jne 1b"));
	TAKES(2, I("add rax, [rsi]") I("add rdx, [rsi + 8]") I("add rax, [rsi + 16]") I("add rdx, [rsi + 24]") I("add rsi, 32")
			 I("cmp rsi, rdi") I("jne 1b"));
	/* By way of other registers, and moves, which take no time. */
	TAKES(3, I("mov rbx, rax") I("imul rbx, rdx") I("mov rax, rbx") I("dec rcx") I("jne 1b"));
	/* Two registers that change places: each goes through the multiplication every second time. */
	TAKES(2, I("mov rbx, rax") I("lea rax, [rdx + 1]") I("imul rdx, rbx, 3") I("dec rcx") I("jne 1b"));
	/* Marsaglia's generator: three shifts and three XORs, one after the other. */
	TAKES(6, I("mov rcx, rax") I("shl rcx, 13") I("xor rax, rcx") I("mov rcx, rax") I("shr rcx, 7") I("xor rcx, rax") I("mov rax, rcx")
			 I("shl rax, 17") I("xor rax, rcx") I("dec rdx") I("jne 1b"));
	/* Long numbers: through the carry, which neither LEA nor DEC touches. */
	TAKES(1, I("mov rax, [rsi]") I("adc rax, [rdx]") I("mov [rdi], rax") I("lea rsi, [rsi + 8]") I("lea rdx, [rdx + 8]")
			 I("lea rdi, [rdi + 8]") I("dec rcx") I("jne 1b"));
	TAKES(2, I("adc rax, rbx") I("adc rdx, rbx") I("dec rcx") I("jne 1b"));
	/* A checksum. */
	TAKES(3, I("crc32 rax, qword ptr [rsi]") I("add rsi, 8") I("cmp rsi, rdi") I("jb 1b"));
	/* A hash by multiplication: (h ^ byte) * prime. */
	TAKES(4, I("movzx edx, byte ptr [rsi]") I("xor rax, rdx") I("imul rax, rax, 403") I("inc rsi") I("cmp rsi, rdi") I("jne 1b"));
	/* What becomes zero each time, and what is loaded afresh, waits for nothing. */
	TAKES(1, I("xor eax, eax") I("add rax, rbx") I("add rax, rbx") I("add rax, rbx") I("dec rcx") I("jne 1b"));
	TAKES(1, I("mov rax, [rsi]") I("imul rax, rax") I("mov [rsi], rax") I("add rsi, 8") I("dec rcx") I("jne 1b"));
	/* A byte of a register is put into the rest of it. */
	TAKES(5, I("mov al, [rax]") I("dec rcx") I("jne 1b"));
	/* Vectors: a sum of floating-point numbers, a comparison that ends the loop. */
	TAKES(3, I("addsd xmm0, [rsi]") I("add rsi, 8") I("cmp rsi, rdi") I("jne 1b"));
	TAKES(4, I("vfmadd231ps ymm0, ymm1, [rsi]") I("add rsi, 32") I("cmp rsi, rdi") I("jne 1b"));
	TAKES(1, I("movdqu xmm0, [rsi]") I("pcmpeqb xmm0, xmm1") I("pmovmskb eax, xmm0") I("add rsi, 16") I("test eax, eax") I("je 1b"));
	/* A copy: one vector a cycle is stored. Where it is loaded from does not matter. */
	TAKES(4, I("vmovdqu ymm0, [rsi]") I("vmovdqu ymm1, [rsi + 32]") I("vmovdqu ymm2, [rsi + 64]") I("vmovdqu ymm3, [rsi + 96]")
			 I("sub rsi, -128") I("vmovdqa [rdi], ymm0") I("vmovdqa [rdi + 32], ymm1") I("vmovdqa [rdi + 64], ymm2")
				 I("vmovdqa [rdi + 96], ymm3") I("sub rdi, -128") I("cmp rdi, rdx") I("jb 1b"));
	TAKES(1, I("mov [rdi], rax") I("mov [rdi + 8], rax") I("add rdi, 16") I("cmp rdi, rdx") I("jb 1b"));
	/* What is not known could write anything: no chain is claimed. */
	TAKES(0, I("imul rax, rax") I("cpuid") I("dec rcx") I("jne 1b"));
	TAKES(0, I("lock add [rsi], rax") I("dec rcx") I("jne 1b"));
	TAKES(0, I("nop"));
	/* Once through: whatever comes first needs what is at hand. */
	ONCE(0, I("nop"));
	ONCE(1, I("add rax, rbx") I("add rcx, rdx"));
	ONCE(3, I("add rax, rbx") I("add rax, rdx") I("add rax, rsi"));
	ONCE(9, I("mov rdx, [rdx]") I("mov rax, [rdx]") I("test rax, rax") I("jne 1b"));
	/* The condition of the branch at the end, and not what else goes on. */
	KNOWN(1, I("imul rax, rbx") I("cmp rcx, rdx") I("jne 1b"));
	KNOWN(4, I("imul rax, rbx") I("test rax, rax") I("jne 1b"));
	KNOWN(5, I("cmp byte ptr [rsi], 0") I("jne 1b"));
	KNOWN(10, I("mov rdx, [rdx]") I("mov rax, [rdx]") I("add rax, 1") I("test rax, rax") I("jne 1b"));
	KNOWN(0, I("mov rdx, [rdx]") I("jne 1b"));
	/* What is not known is passed over. */
	ONCE(2, I("add rax, rbx") I("cpuid") I("add rax, rdx"));
	return 0;
}
