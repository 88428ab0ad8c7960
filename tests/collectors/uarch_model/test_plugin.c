/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's side of the model, with a QEMU that does nothing: what is seen while the model is being entered is a part, for code that
 * was translated before runs on unseen. Nothing of it may be taken for the whole.
 */
#include "plugin.c"

#include "check.h"

#define FAR 0xffff888000000000ull

/* A processor's registers. A handle is the address of one. */
static uint64_t values[REG_COUNT];
static qemu_plugin_reg_descriptor described[REG_COUNT];
static GArray all_registers = {.data = (char *)described, .len = REG_COUNT};
static uint8_t bytes[16];
static GByteArray byte_array = {.data = bytes};

GArray *qemu_plugin_get_registers(void)
{
    for (int i = 0; i < REG_COUNT; i++)
        described[i] = (qemu_plugin_reg_descriptor){.handle = (void *)&values[i], .name = register_names[i]};
    return &all_registers;
}

int qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *to)
{
    memcpy(to->data, handle, 8);
    return 8;
}

GByteArray *g_byte_array_new(void)
{
    return &byte_array;
}

GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int length)
{
    array->len = length;
    return array;
}

char *g_array_free(GArray *array, int free_segment)
{
    (void)array, (void)free_segment;
    return NULL;
}

/* All processors of this QEMU always stand still. */
void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_simple_cb_t cb)
{
    cb(id);
}

/* It translates nothing, and calls nobody. */
#define NOTHING(name, ...)                                                                                                     \
    void name(__VA_ARGS__)                                                                                                     \
    {                                                                                                                          \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(qemu_plugin_register_vcpu_idle_cb, qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t cb)
NOTHING(qemu_plugin_register_vcpu_resume_cb, qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t cb)
NOTHING(qemu_plugin_register_vcpu_tb_trans_cb, qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t cb)
NOTHING(qemu_plugin_register_vcpu_tb_exec_cb, struct qemu_plugin_tb *tb, qemu_plugin_vcpu_udata_cb_t cb, enum qemu_plugin_cb_flags flags,
        void *data)
NOTHING(qemu_plugin_register_vcpu_insn_exec_cb, struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t cb,
        enum qemu_plugin_cb_flags flags, void *data)
NOTHING(qemu_plugin_register_vcpu_mem_cb, struct qemu_plugin_insn *insn, qemu_plugin_vcpu_mem_cb_t cb, enum qemu_plugin_cb_flags flags,
        enum qemu_plugin_mem_rw rw, void *data)

#define NEVER(type, name, ...)                                                                                                 \
    type name(__VA_ARGS__)                                                                                                     \
    {                                                                                                                          \
        fprintf(stderr, "%s was called\n", __func__);                                                                          \
        exit(1);                                                                                                               \
    }
NEVER(size_t, qemu_plugin_tb_n_insns, const struct qemu_plugin_tb *tb)
NEVER(uint64_t, qemu_plugin_tb_vaddr, const struct qemu_plugin_tb *tb)
NEVER(struct qemu_plugin_insn *, qemu_plugin_tb_get_insn, const struct qemu_plugin_tb *tb, size_t index)
NEVER(size_t, qemu_plugin_insn_data, const struct qemu_plugin_insn *insn, void *to, size_t length)
NEVER(size_t, qemu_plugin_insn_size, const struct qemu_plugin_insn *insn)
NEVER(uint64_t, qemu_plugin_insn_vaddr, const struct qemu_plugin_insn *insn)
NEVER(unsigned int, qemu_plugin_mem_size_shift, qemu_plugin_meminfo_t info)
NEVER(struct qemu_plugin_hwaddr *, qemu_plugin_get_hwaddr, qemu_plugin_meminfo_t info, uint64_t vaddr)
NEVER(bool, qemu_plugin_hwaddr_is_io, const struct qemu_plugin_hwaddr *address)
NEVER(uint64_t, qemu_plugin_hwaddr_phys_addr, const struct qemu_plugin_hwaddr *address)
NEVER(qemu_plugin_mem_value, qemu_plugin_mem_get_value, qemu_plugin_meminfo_t info)

static uint64_t stores(void)
{
    uint64_t sum = 0;

    for (int mode = 0; mode < MODE_COUNT; mode++)
        sum += cores[0]->counters[mode].stores;
    return sum;
}

int main(void)
{
    static uint8_t ram[1 << 16];
    const struct block block = {.pc = 0xffffffff81000000ull, .length = 4, .instructions = 1};
    FILE *out = fopen("/dev/null", "w");

    CHECK(out);
    vcpu_count = 1;
    profile = default_profile();
    profile_known = true;
    memory = (struct memory){.low = ram, .low_bytes = sizeof(ram)};
    command_state("model", out);
    CHECK(change_wanted && state == OFF);

    /* STOS is seen, then much that is not, then a block that is: RDI and CR3 were changed in between. */
    values[REG_CR3] = 0x1000;
    values[REG_RDI] = 0x5000;
    on_block(0, (void *)&block);
    on_repeat(0, (void *)1);
    values[REG_RDI] = FAR;
    on_block(0, (void *)&block);
    EQUAL(stores(), 0);
    EQUAL(cores[0]->space.root, 0x1000);
    values[REG_CR3] = 0x2000;

    on_resume(0, 0);
    CHECK(!change_wanted && state == MODEL);
    on_block(0, (void *)&block);
    EQUAL(cores[0]->space.root, 0x2000);
    on_repeat(0, (void *)1);
    values[REG_RDI] += 16;
    on_block(0, (void *)&block);
    EQUAL(stores(), 16);
    model_free(model);
    fclose(out);
    return 0;
}
