/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports of DPDK's own drivers: NICs, af_packet, tap, memif, null … */
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "plane.h"

enum { DESCRIPTORS = 1024 };

struct dpdk {
	uint16_t id;
	uint32_t longest; /* frame that it takes, without FCS */
	bool ours;        /* we made the device, and take it away */
};

static uint16_t dpdk_receive(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t most)
{
	struct dpdk *dpdk = port->own;

	return port_drop_runts(&port->received[queue], frames, rte_eth_rx_burst(dpdk->id, queue, frames, most));
}

/* A device may keep a frame until it has sent it, and read it by DMA: never a guest's own memory (zero copy). */
static struct rte_mbuf *ours(struct rte_mbuf *frame, struct rte_mempool *pool)
{
	struct rte_mbuf *copy;

	if (likely(!RTE_MBUF_HAS_EXTBUF(frame)))
		return frame;
	copy = rte_pktmbuf_copy(frame, pool, 0, UINT32_MAX);
	if (copy != NULL)
		rte_pktmbuf_free(frame);
	return copy;
}

/* Frames that are all short enough. */
static uint16_t send_short(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t count, struct send_counters *sent)
{
	struct dpdk *dpdk = port->own;
	uint64_t bytes[HELD_MOST + 1];
	uint16_t taken;

	bytes[0] = 0;
	for (uint16_t i = 0; i < count; i++) {
		struct rte_mbuf *frame = ours(frames[i], port->pool);

		if (frame == NULL) {
			count = i;
			break;
		}
		frames[i] = frame;
		/* The driver frees what it takes: lengths must be read before. */
		bytes[i + 1] = bytes[i] + frame->pkt_len;
	}
	taken = rte_eth_tx_burst(dpdk->id, queue, frames, count);
	sent->packets += taken;
	sent->bytes += bytes[taken];
	return taken;
}

/* What a device does with a frame that is longer than it takes is its own: some drivers count an error, some hang. */
static uint16_t dpdk_send(struct port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t count, struct send_counters *sent)
{
	const struct dpdk *dpdk = port->own;
	uint16_t done = 0;

	while (done < count) {
		uint16_t end = done, taken;

		while (end < count && likely(frames[end]->pkt_len <= dpdk->longest))
			end++;
		taken = end > done ? send_short(port, queue, frames + done, end - done, sent) : 0;
		done += taken;
		if (done < end)
			break;
		if (unlikely(done < count)) {
			sent->too_long++;
			rte_pktmbuf_free(frames[done++]);
		}
	}
	return done;
}

static bool dpdk_arm(struct port *port, uint16_t queue, bool on)
{
	struct dpdk *dpdk = port->own;

	if (on)
		rte_eth_dev_rx_intr_enable(dpdk->id, queue);
	else
		rte_eth_dev_rx_intr_disable(dpdk->id, queue);
	/* Drivers that can't tell say an error: then the notification must do. */
	return on && rte_eth_rx_queue_count(dpdk->id, queue) > 0;
}

static int dpdk_wake_fd(struct port *port, uint16_t queue)
{
	struct dpdk *dpdk = port->own;

	return rte_eth_dev_rx_intr_ctl_q_get_fd(dpdk->id, queue);
}

static void dpdk_close(struct port *port)
{
	struct dpdk *dpdk = port->own;
	struct rte_eth_dev_info info;
	int found = rte_eth_dev_info_get(dpdk->id, &info);

	rte_eth_dev_stop(dpdk->id);
	rte_eth_dev_close(dpdk->id);
	if (dpdk->ours && found == 0)
		rte_dev_remove(info.device);
	rte_free(dpdk);
}

static const struct port_driver dpdk_driver = {
	.kind = "dpdk",
	.receive = dpdk_receive,
	.send = dpdk_send,
	.arm = dpdk_arm,
	.wake_fd = dpdk_wake_fd,
	.close = dpdk_close,
};

/* The device's name is what stands before its arguments. */
static int find_device(struct port *port, struct dpdk *dpdk, struct why *why)
{
	char name[sizeof(port->spec.device)];

	strcpy(name, port->spec.device);
	name[strcspn(name, ",")] = '\0';
	if (rte_eth_dev_get_port_by_name(name, &dpdk->id) == 0)
		return 0;
	if (rte_dev_probe(port->spec.device) != 0 || rte_eth_dev_get_port_by_name(name, &dpdk->id) != 0)
		return refuse(why,
			"port %s: DPDK found no device %s: name a PCI device bound to vfio-pci, or a driver such as net_tap0,iface=x",
			port->name, port->spec.device);
	dpdk->ours = true;
	return 0;
}

static int set_up_queues(struct port *port, uint16_t id, uint16_t senders)
{
	for (uint16_t queue = 0; queue < port->queues; queue++)
		if (rte_eth_rx_queue_setup(id, queue, DESCRIPTORS, rte_eth_dev_socket_id(id), NULL, port->pool) != 0)
			return -1;
	for (uint16_t queue = 0; queue < senders; queue++)
		if (rte_eth_tx_queue_setup(id, queue, DESCRIPTORS, rte_eth_dev_socket_id(id), NULL) != 0)
			return -1;
	return 0;
}

/* By its MTU, with a VLAN tag beside the header. */
static uint32_t longest_frame(uint16_t id)
{
	uint16_t mtu;

	if (rte_eth_dev_get_mtu(id, &mtu) != 0)
		mtu = RTE_ETHER_MTU;
	return mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
}

/* Receive-side scaling: what comes is spread over the queues by a hash of addresses and ports, as far as the device reads them. */
static void spread(struct rte_eth_conf *conf, uint64_t readable)
{
	uint64_t read = readable & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);

	if (read == 0)
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = read;
}

static int start_device(struct port *port, uint16_t id, struct why *why)
{
	struct rte_eth_conf conf = {.intr_conf = {.rxq = plane.options.rx != RX_POLL}};
	struct rte_eth_dev_info info;
	uint16_t most;

	if (rte_eth_dev_info_get(id, &info) != 0)
		return refuse(why, "port %s: DPDK can't describe the device %s", port->name, port->spec.device);
	most = RTE_MIN(info.max_rx_queues, info.max_tx_queues);
	if (port->spec.queues > most)
		return refuse(why, "port %s: queues=%u: %s has %u at most", port->name, port->spec.queues, port->spec.device, most);
	port->queues = port->spec.queues;
	if (port->queues > 1)
		spread(&conf, info.flow_type_rss_offloads);
	port->node = rte_eth_dev_socket_id(id);
	port->pool = plane_pool(port->node);
	if (rte_eth_dev_configure(id, port->queues, port->queues, &conf) != 0)
		return refuse(why, "port %s: %s does not take %u queues%s", port->name, port->spec.device, port->queues,
			plane.options.rx == RX_POLL ? "" : " with receive interrupts: its driver may have none; use --rx poll");
	if (set_up_queues(port, id, port->queues) != 0 || rte_eth_dev_start(id) != 0)
		return refuse(why, "port %s: %s does not start (see DPDK's words above)", port->name, port->spec.device);
	/* Not all drivers can; those that can't see all frames anyway. */
	rte_eth_promiscuous_enable(id);
	if (plane.options.rx != RX_POLL && rte_eth_dev_rx_intr_enable(id, 0) != 0)
		return refuse(why, "port %s: the driver of %s has no receive interrupts: use --rx poll", port->name, port->spec.device);
	return 0;
}

int dpdk_open(struct port *port, struct why *why)
{
	struct dpdk *dpdk = rte_zmalloc("dpdk", sizeof(*dpdk), 0);

	if (dpdk == NULL)
		return refuse(why, "port %s: no memory for it: give DPDK more (-m)", port->name);
	port->own = dpdk;
	port->driver = &dpdk_driver;
	if (find_device(port, dpdk, why) != 0) {
		rte_free(dpdk);
		return -1;
	}
	if (start_device(port, dpdk->id, why) != 0) {
		dpdk_close(port);
		return -1;
	}
	dpdk->longest = longest_frame(dpdk->id);
	port->polled = port->taking = (UINT32_C(1) << port->queues) - 1;
	port->up = true;
	return 0;
}
