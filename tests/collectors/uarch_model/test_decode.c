/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions as assemblers write them, and bytes that are none. */
#include "decode.h"

#include <string.h>

#include "check.h"

/* Decode a copy of just so many bytes: a byte read beyond them is found by the sanitizer. */
static struct decoded decode_exactly(const void *bytes, size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);

	CHECK(copy);
	memcpy(copy, bytes, length);
	struct decoded decoded = decode(copy, length);
	free(copy);
	return decoded;
}

#define DECODE(bytes) decode_exactly(bytes, sizeof(bytes) - 1)

static void kind_is(struct decoded d, enum branch_kind kind, int64_t displacement, const char *assembly)
{
	if (d.kind == kind && d.displacement == displacement && d.special == SPECIAL_NONE && !d.atomic)
		return;
	fprintf(stderr, "%s: kind %d to %" PRId64 "\n", assembly, d.kind, d.displacement);
	exit(1);
}

#define KIND(bytes, kind, displacement, assembly) kind_is(DECODE(bytes), kind, displacement, assembly)

static void branches(void)
{
	KIND("\x74\x10", BRANCH_CONDITIONAL, 16, "je");
	KIND("\x70\x80", BRANCH_CONDITIONAL, -128, "jo");
	KIND("\x7f\xfe", BRANCH_CONDITIONAL, -2, "jg");
	KIND("\x2e\x74\x10", BRANCH_CONDITIONAL, 16, "je with a hint");
	KIND("\xe2\xf0", BRANCH_CONDITIONAL, -16, "loop");
	KIND("\xe3\x05", BRANCH_CONDITIONAL, 5, "jrcxz");
	KIND("\x0f\x84\x00\x01\x00\x00", BRANCH_CONDITIONAL, 256, "je, near");
	KIND("\x0f\x8f\xff\xff\xff\xff", BRANCH_CONDITIONAL, -1, "jg, near");
	KIND("\xeb\xfe", BRANCH_JUMP, -2, "jmp, short");
	KIND("\xe9\x00\x00\x00\x80", BRANCH_JUMP, INT32_MIN, "jmp");
	KIND("\xe8\x78\x56\x34\x12", BRANCH_CALL, 0x12345678, "call");
	KIND("\xff\xe0", BRANCH_INDIRECT, 0, "jmp *%rax");
	KIND("\x41\xff\xe3", BRANCH_INDIRECT, 0, "jmp *%r11");
	KIND("\x3e\xff\xe0", BRANCH_INDIRECT, 0, "notrack jmp *%rax");
	KIND("\xff\x25\x00\x10\x00\x00", BRANCH_INDIRECT, 0, "jmp *0x1000(%rip)");
	KIND("\xff\xd0", BRANCH_INDIRECT_CALL, 0, "call *%rax");
	KIND("\x41\xff\x54\x24\x08", BRANCH_INDIRECT_CALL, 0, "call *8(%r12)");
	KIND("\xc3", BRANCH_RETURN, 0, "ret");
	KIND("\xf3\xc3", BRANCH_RETURN, 0, "repz ret");
	KIND("\xc2\x08\x00", BRANCH_RETURN, 0, "ret $8");
	KIND("\x0f\x05", BRANCH_OTHER, 0, "syscall");
	KIND("\x48\x0f\x07", BRANCH_OTHER, 0, "sysretq");
	KIND("\x0f\x34", BRANCH_OTHER, 0, "sysenter");
	KIND("\xf4", BRANCH_NONE, 0, "hlt");
	KIND("\xcc", BRANCH_OTHER, 0, "int3");
	KIND("\xcd\x80", BRANCH_OTHER, 0, "int $0x80");
	KIND("\x48\xcf", BRANCH_OTHER, 0, "iretq");
	KIND("\xf3\xa4", BRANCH_REPEAT, 0, "rep movsb");
	KIND("\xf3\x48\xab", BRANCH_REPEAT, 0, "rep stosq");
	KIND("\xf2\xae", BRANCH_REPEAT, 0, "repnz scasb");
	KIND("\x66\xf3\x6f", BRANCH_REPEAT, 0, "rep outsw");
}

static void no_branches(void)
{
	KIND("", BRANCH_NONE, 0, "nothing");
	KIND("\x90", BRANCH_NONE, 0, "nop");
	KIND("\x0f\x1f\x00", BRANCH_NONE, 0, "nopl (%rax)");
	KIND("\xf3\x0f\x1e\xfa", BRANCH_NONE, 0, "endbr64");
	KIND("\x48\x89\xe5", BRANCH_NONE, 0, "mov %rsp,%rbp");
	KIND("\xff\xc0", BRANCH_NONE, 0, "inc %eax");
	KIND("\xff\x08", BRANCH_NONE, 0, "decl (%rax)");
	KIND("\xff\x30", BRANCH_NONE, 0, "push (%rax)");
	KIND("\xa4", BRANCH_NONE, 0, "movsb");
	KIND("\xa8\x01", BRANCH_NONE, 0, "test $1,%al");
	KIND("\xf3\x0f\x10\x00", BRANCH_NONE, 0, "movss (%rax),%xmm0");
	KIND("\xc5\xf8\x77", BRANCH_NONE, 0, "vzeroupper");
	KIND("\x0f\x20\xd8", BRANCH_NONE, 0, "mov %cr3,%rax");
	KIND("\x44\x0f\x22\xc0", BRANCH_NONE, 0, "mov %rax,%cr8");
	KIND("\x0f\x01\xf8", BRANCH_NONE, 0, "swapgs");
	KIND("\x0f\x01\x10", BRANCH_NONE, 0, "lgdt (%rax)");
	/* Immediates that look like branches. */
	KIND("\x48\xb8\xe8\xe9\xeb\xc3\x0f\x84\x74\xff", BRANCH_NONE, 0, "movabs $0xff74840fc3ebe9e8,%rax");
	/* Cut short. */
	KIND("\x74", BRANCH_NONE, 0, "half a je");
	KIND("\xe8\x01\x02\x03", BRANCH_NONE, 0, "most of a call");
	KIND("\x0f\x84\x01\x02\x03", BRANCH_NONE, 0, "most of a je");
	KIND("\xff", BRANCH_NONE, 0, "half a jmp *%rax");
	KIND("\x0f", BRANCH_NONE, 0, "0x0f");
	KIND("\x66\x66\x66", BRANCH_NONE, 0, "prefixes");
	KIND("\x66\x48", BRANCH_NONE, 0, "prefixes and REX");
}

static void special_instructions(void)
{
	EQUAL(DECODE("\x0f\x22\xd8").special, SPECIAL_CR3);     /* mov %rax,%cr3 */
	EQUAL(DECODE("\x41\x0f\x22\xdc").special, SPECIAL_CR3); /* mov %r12,%cr3 */
	EQUAL(DECODE("\x0f\x22\xe0").special, SPECIAL_CR4);     /* mov %rax,%cr4 */
	EQUAL(DECODE("\x0f\x22\xc0").special, SPECIAL_NONE);    /* mov %rax,%cr0 */
	EQUAL(DECODE("\x0f\x01\xd8").special, SPECIAL_VMRUN);
	EQUAL(DECODE("\x0f\x01\xd8").kind, BRANCH_OTHER);
	EQUAL(DECODE("\x0f\x01\xd9").special, SPECIAL_NONE); /* vmmcall */
	EQUAL(DECODE("\xf3\x90").special, SPECIAL_PAUSE);
	EQUAL(DECODE("\x90").special, SPECIAL_NONE);

	EQUAL(DECODE("\x0f\x01\x38").special, SPECIAL_INVLPG); /* invlpg (%rax) */
	EQUAL(DECODE("\x0f\x01\x38").address_register, 0);
	EQUAL(DECODE("\x0f\x01\x3f").address_register, 7);      /* (%rdi) */
	EQUAL(DECODE("\x41\x0f\x01\x39").address_register, 9);  /* (%r9) */
	EQUAL(DECODE("\x41\x0f\x01\x3f").address_register, 15); /* (%r15) */
	/* By two registers, or relative to the instruction: the kernel has none of these. */
	EQUAL(DECODE("\x0f\x01\x3c\x24").special, SPECIAL_NONE);
	EQUAL(DECODE("\x0f\x01\x3d\x00\x10\x00\x00").special, SPECIAL_NONE);
	EQUAL(DECODE("\x0f\x01\x78\x08").special, SPECIAL_NONE);

	CHECK(DECODE("\xf0\x0f\xb1\x0a").atomic); /* lock cmpxchg %ecx,(%rdx) */
	CHECK(DECODE("\x3e\xf0\x48\xff\x00").atomic);
	CHECK(!DECODE("\x87\x00").atomic); /* xchg has none of its own */

	CHECK(DECODE("\xe4\x60").port && DECODE("\xe5\x60").port && DECODE("\xe6\x80").port && DECODE("\xe7\x80").port);
	CHECK(DECODE("\xec").port && DECODE("\xed").port && DECODE("\xee").port && DECODE("\x66\xef").port);
	CHECK(DECODE("\x6c").port && DECODE("\x6d").port && DECODE("\xf3\x6e").port && DECODE("\xf3\x6f").port);
	/* Neighbours, and the same bytes as second ones. */
	CHECK(!DECODE("\xe2\xf0").port && !DECODE("\xe8\x00\x00\x00\x00").port && !DECODE("\xeb\x00").port &&
		!DECODE("\x68\x00\x00\x00\x00").port);
	CHECK(!DECODE("\x0f\x6f\x00").port && !DECODE("\x0f\xe4\xc1").port && !DECODE("\xf4").port);
}

/* Never too small: an access over the end of a line would pass for one within it. */
static void the_most_bytes_of_an_access(void)
{
	EQUAL(DECODE("\x8a\x07").bytes, 1);              /* mov (%rdi),%al */
	EQUAL(DECODE("\x40\x88\x37").bytes, 1);          /* mov %sil,(%rdi) */
	EQUAL(DECODE("\x80\x3f\x00").bytes, 1);          /* cmpb $0,(%rdi) */
	EQUAL(DECODE("\x02\x07").bytes, 1);              /* add (%rdi),%al */
	EQUAL(DECODE("\x48\x0f\xb6\x07").bytes, 1);      /* movzbq (%rdi),%rax */
	EQUAL(DECODE("\x0f\x94\x07").bytes, 1);          /* sete (%rdi) */
	EQUAL(DECODE("\xa4").bytes, 1);                  /* movsb */
	EQUAL(DECODE("\x0f\xb7\x07").bytes, 2);          /* movzwl (%rdi),%eax */
	EQUAL(DECODE("\x48\x0f\xbf\x07").bytes, 2);      /* movswq (%rdi),%rax */
	EQUAL(DECODE("\x8b\x07").bytes, 4);              /* mov (%rdi),%eax */
	EQUAL(DECODE("\x66\x89\x07").bytes, 4);          /* mov %ax,(%rdi), in 16-bit code a double word */
	EQUAL(DECODE("\x03\x07").bytes, 4);              /* add (%rdi),%eax */
	EQUAL(DECODE("\x63\x07").bytes, 4);              /* movsxd (%rdi),%eax */
	EQUAL(DECODE("\x0f\x44\x07").bytes, 4);          /* cmove (%rdi),%eax */
	EQUAL(DECODE("\xf0\x0f\xc1\x07").bytes, 4);      /* lock xadd %eax,(%rdi) */
	EQUAL(DECODE("\x48\x8b\x07").bytes, 8);          /* mov (%rdi),%rax */
	EQUAL(DECODE("\x49\x0f\x44\x07").bytes, 8);      /* cmove (%r15),%rax */
	EQUAL(DECODE("\x53").bytes, 8);                  /* push %rbx */
	EQUAL(DECODE("\xe8\x00\x00\x00\x00").bytes, 8);  /* call */
	EQUAL(DECODE("\xff\x30").bytes, 8);              /* push (%rax) */
	EQUAL(DECODE("\xdd\x00").bytes, 8);              /* fldl (%rax) */
	EQUAL(DECODE("\x0f\x10\x07").bytes, 16);         /* movups (%rdi),%xmm0 */
	EQUAL(DECODE("\xf3\x0f\x6f\x07").bytes, 16);     /* movdqu (%rdi),%xmm0 */
	EQUAL(DECODE("\xc5\xfe\x6f\x07").bytes, 16);     /* vmovdqu (%rdi),%ymm0 */
	EQUAL(DECODE("\xc4\xe2\x7d\x5a\x07").bytes, 16); /* vbroadcasti128 (%rdi),%ymm0 */
	EQUAL(DECODE("\x62\xf1\x7e\x48\x6f\x07").bytes, 16);
	EQUAL(DECODE("\x48\x0f\xc7\x0f").bytes, 16); /* cmpxchg16b (%rdi) */
	EQUAL(DECODE("\x0f").bytes, 16);             /* cut short */
}

static void repeated_is(struct decoded d, enum repeat repeat, int bytes)
{
	EQUAL(d.repeat, repeat);
	EQUAL(d.bytes, bytes);
}

static void repeated_copies_and_fills(void)
{
	repeated_is(DECODE("\xf3\xa4"), REPEAT_MOVS, 1);
	repeated_is(DECODE("\xf2\xa4"), REPEAT_MOVS, 1);
	repeated_is(DECODE("\xf3\x66\xa5"), REPEAT_MOVS, 2);
	repeated_is(DECODE("\xf3\xa5"), REPEAT_MOVS, 4);
	repeated_is(DECODE("\xf3\x48\xa5"), REPEAT_MOVS, 8);
	repeated_is(DECODE("\x66\xf3\x48\xa5"), REPEAT_MOVS, 8);
	repeated_is(DECODE("\xf3\xaa"), REPEAT_STOS, 1);
	repeated_is(DECODE("\xf3\x48\xab"), REPEAT_STOS, 8);
	/* Not repeated, others, or with addresses that are not all of two registers. */
	EQUAL(DECODE("\xa4").repeat, REPEAT_NONE);
	EQUAL(DECODE("\xf3\xae").repeat, REPEAT_NONE);     /* repz scasb */
	EQUAL(DECODE("\xf3\x6c").repeat, REPEAT_NONE);     /* rep insb */
	EQUAL(DECODE("\x67\xf3\xa4").repeat, REPEAT_NONE); /* by %esi and %edi */
	EQUAL(DECODE("\xf3\x65\xa4").repeat, REPEAT_NONE); /* from %gs:(%rsi) */
	EQUAL(DECODE("\x64\xf3\x48\xa5").repeat, REPEAT_NONE);
}

/* As mark.S has them. */
static void marks(void)
{
	struct decoded d = DECODE("\x0f\x1f\x80\x01\x50\x73\x76"); /* nopl 0x76735001(%rax) */

	EQUAL(d.special, SPECIAL_MARK);
	EQUAL(d.mark, MARK_BEGIN);
	EQUAL(d.kind, BRANCH_NONE);
	d = DECODE("\x0f\x1f\x80\x02\x50\x73\x76");
	EQUAL(d.special, SPECIAL_MARK);
	EQUAL(d.mark, MARK_END);
	EQUAL(DECODE("\x0f\x1f\x80\x03\x50\x73\x76").mark, MARK_PROBES);
	EQUAL(DECODE("\x0f\x1f\x80\x04\x50\x73\x76").special, SPECIAL_NONE);
	EQUAL(DECODE("\x0f\x1f\x80\x00\x00\x00\x00").special, SPECIAL_NONE); /* what compilers pad with */
	EQUAL(DECODE("\x0f\x1f\x84\x01\x50\x73\x76\x00").special, SPECIAL_NONE);
	EQUAL(DECODE("\x0f\x1f\x80\x01\x50\x73").special, SPECIAL_NONE);
}

#define SLOW(bytes, what) EQUAL(DECODE(bytes).slow, what)

static void slow_instructions(void)
{
	SLOW("\x0f\x31", SLOW_RDTSC);
	SLOW("\x0f\x01\xf9", SLOW_RDTSCP);
	SLOW("\x0f\xae\xe8", SLOW_LFENCE);
	SLOW("\x0f\xae\xf0", SLOW_MFENCE);
	SLOW("\x0f\xae\xf8", SLOW_NONE); /* SFENCE: nothing waits for it */
	SLOW("\x9d", SLOW_POPF);
	SLOW("\x9c", SLOW_NONE);                  /* PUSHF */
	SLOW("\x48\x0f\xae\x27", SLOW_XSAVE);     /* xsave64 (%rdi) */
	SLOW("\x48\x0f\xae\x77\x40", SLOW_XSAVE); /* xsaveopt64 0x40(%rdi) */
	SLOW("\x48\x0f\xc7\x67\x40", SLOW_XSAVE); /* xsavec64 */
	SLOW("\x48\x0f\xc7\x6f\x40", SLOW_XSAVE); /* xsaves64 */
	SLOW("\x0f\xae\x07", SLOW_XSAVE);         /* fxsave */
	SLOW("\x0f\xae\x0f", SLOW_XRSTOR);        /* fxrstor */
	SLOW("\x48\x0f\xae\x2f", SLOW_XRSTOR);
	SLOW("\x48\x0f\xc7\x1f", SLOW_XRSTOR); /* xrstors64 */
	SLOW("\xf3\x48\x0f\xae\xd0", SLOW_WRFSBASE);
	SLOW("\xf3\x48\x0f\xae\xdb", SLOW_WRFSBASE); /* wrgsbase */
	SLOW("\xf3\x48\x0f\xae\xc0", SLOW_NONE);     /* rdfsbase */
	SLOW("\x66\x0f\xae\x37", SLOW_NONE);         /* clwb */
	SLOW("\x66\x0f\xae\x3f", SLOW_NONE);         /* clflushopt */
	SLOW("\x0f\xae\x17", SLOW_NONE);             /* ldmxcsr */
	SLOW("\x0f\xc7\x0f", SLOW_NONE);             /* cmpxchg8b */
	SLOW("\x0f\xc7\xf0", SLOW_NONE);             /* rdrand */
	SLOW("\x0f\x01\xd0", SLOW_NONE);             /* xgetbv */
	SLOW("\x48\x89\xc3", SLOW_NONE);
	SLOW("\x0f\xae", SLOW_XSAVE); /* cut off: what it may have been; it runs nowhere */
}

#define LINE(code, ...)                                            \
	do {                                                       \
		struct operand expected = {__VA_ARGS__};           \
		struct decoded d = DECODE(code);                   \
		EQUAL(d.special, SPECIAL_PREFETCH);                \
		EQUAL(d.line.base, expected.base);                 \
		EQUAL(d.line.index, expected.index);               \
		EQUAL(d.line.scale, expected.scale);               \
		EQUAL(d.line.way, expected.way);                   \
		EQUAL(d.line.displacement, expected.displacement); \
	} while (0)

/* As GNU as writes them. */
static void prefetches(void)
{
	LINE("\x0f\x18\x08", 0, NO_REGISTER, 1, 0, 0);                       /* prefetcht0 (%rax) */
	LINE("\x0f\x18\x07", 7, NO_REGISTER, 1, 0, 0);                       /* prefetchnta (%rdi) */
	LINE("\x0f\x18\x16", 6, NO_REGISTER, 1, ASK_FAR, 0);                 /* prefetcht1 (%rsi) */
	LINE("\x0f\x18\x1e", 6, NO_REGISTER, 1, ASK_FAR, 0);                 /* prefetcht2 (%rsi) */
	LINE("\x0f\x0d\x0a", 2, NO_REGISTER, 1, ASK_OWN, 0);                 /* prefetchw (%rdx) */
	LINE("\x0f\x0d\x02", 2, NO_REGISTER, 1, 0, 0);                       /* prefetch (%rdx) */
	LINE("\x41\x0f\x18\x4d\x40", 13, NO_REGISTER, 1, 0, 64);             /* prefetcht0 0x40(%r13) */
	LINE("\x41\x0f\x18\x4c\x24\xc0", 12, NO_REGISTER, 1, 0, -64);        /* prefetcht0 -0x40(%r12) */
	LINE("\x0f\x18\x8b\x00\x10\x00\x00", 3, NO_REGISTER, 1, 0, 0x1000);  /* prefetcht0 0x1000(%rbx) */
	LINE("\x42\x0f\x18\x4c\xf8\x08", 0, 15, 8, 0, 8);                    /* prefetcht0 0x8(%rax,%r15,8) */
	LINE("\x42\x0f\x0d\x0c\x20", 0, 12, 1, ASK_OWN, 0);                  /* prefetchw (%rax,%r12,1) */
	LINE("\x0f\x18\x0c\x4d\xff\xff\xff\xff", NO_REGISTER, 1, 2, 0, -1);  /* prefetcht0 -0x1(,%rcx,2) */
	EQUAL(DECODE("\x0f\x18\x0d\x00\x10\x00\x00").special, SPECIAL_NONE); /* prefetcht0 0x1000(%rip) */
	EQUAL(DECODE("\x65\x0f\x18\x08").special, SPECIAL_NONE);             /* prefetcht0 %gs:(%rax) */
	EQUAL(DECODE("\x67\x0f\x18\x08").special, SPECIAL_NONE);             /* prefetcht0 (%eax) */
	EQUAL(DECODE("\x0f\x18\x20").special, SPECIAL_NONE);                 /* a NOP of that group */
	EQUAL(DECODE("\x0f\x18\xc8").special, SPECIAL_NONE);                 /* with a register */
	EQUAL(DECODE("\x0f\x18\x48").special, SPECIAL_NONE);                 /* cut off */
}

static void any_bytes(void)
{
	struct random random = {1};
	static const uint8_t likely[] = {
		0x0f, 0xff, 0xf0, 0xf3, 0x66, 0x48, 0x41, 0x01, 0x1f, 0x80, 0x22, 0xd8, 0xe8, 0x74, 0xa4, 0x18, 0x0d, 0x04, 0x44};
	uint8_t bytes[LONGEST_INSTRUCTION];

	for (int i = 0; i < 200000; i++) {
		size_t length = random_below(&random, LONGEST_INSTRUCTION + 1);
		for (size_t b = 0; b < length; b++)
			bytes[b] = random_below(&random, 2) ? likely[random_below(&random, sizeof(likely))]
							    : (uint8_t)random_below(&random, 256);
		struct decoded d = decode_exactly(bytes, length);
		CHECK(d.kind <= BRANCH_OTHER && d.special <= SPECIAL_PREFETCH && d.slow <= SLOW_WRFSBASE);
		CHECK(d.bytes && d.bytes <= 16 && !(d.bytes & (d.bytes - 1)));
		CHECK(d.repeat == REPEAT_NONE || (d.kind == BRANCH_REPEAT && d.bytes <= 8));
		CHECK(d.address_register >= 0 && d.address_register < 16);
		CHECK((d.mark != MARK_NONE) == (d.special == SPECIAL_MARK));
		CHECK(d.displacement == 0 || (d.kind >= BRANCH_CONDITIONAL && d.kind <= BRANCH_CALL));
		CHECK(d.special != SPECIAL_PREFETCH || (d.line.base >= NO_REGISTER && d.line.base < 16));
		CHECK(d.special != SPECIAL_PREFETCH || (d.line.index >= NO_REGISTER && d.line.index < 16 && d.line.index != 4));
	}
}

int main(void)
{
	branches();
	no_branches();
	special_instructions();
	marks();
	slow_instructions();
	the_most_bytes_of_an_access();
	repeated_copies_and_fills();
	prefetches();
	any_bytes();
	return 0;
}
