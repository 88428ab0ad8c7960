/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What releases of DPDK before 24.11, which this is written for, call otherwise or have not. Debian bookworm has 22.11. */
#ifndef VS_BEFORE_H
#define VS_BEFORE_H

#include <inttypes.h>
#include <stdio.h>

#include <rte_telemetry.h>
#include <rte_version.h>
#include <rte_vhost.h>

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define RTE_TEL_UINT_VAL RTE_TEL_U64_VAL
#define rte_tel_data_add_array_uint rte_tel_data_add_array_u64
#define rte_tel_data_add_dict_uint rte_tel_data_add_dict_u64

static inline int rte_tel_data_add_dict_uint_hex(struct rte_tel_data *data, const char *name, uint64_t value, uint8_t bits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%0*" PRIx64, bits / 4, value);
	return rte_tel_data_add_dict_string(data, name, text);
}
#endif

#if RTE_VERSION < RTE_VERSION_NUM(23, 7, 0, 0)
/* There each vhost-user port offers as many queues as librte_vhost can have at most. */
static inline int rte_vhost_driver_set_max_queue_num(const char *path __rte_unused, uint32_t queue_pairs __rte_unused)
{
	return 0;
}
#endif

#endif
