/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ports.h"

#include <err.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#define RECEIVE_RING 512
/* Short: what still lies in it when the switch dies may be delivered by the next one, late. */
#define SEND_RING 256
#define POOL 4095
#define CACHE 128

static void open_one(uint16_t port, struct rte_mempool *pool, struct rte_ether_addr *mac)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t receive = RECEIVE_RING, send = SEND_RING;

	if (rte_eth_dev_info_get(port, &info))
		errx(2, "port %u says nothing of itself", port);
	/* virtio-user takes up a connection that was lost only if somebody listens to changes of the link. */
	conf.intr_conf.lsc = !!(*info.dev_flags & RTE_ETH_DEV_INTR_LSC);
	if (rte_eth_dev_configure(port, 1, 1, &conf) || rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive, &send) ||
		rte_eth_rx_queue_setup(port, 0, receive, SOCKET_ID_ANY, NULL, pool) ||
		rte_eth_tx_queue_setup(port, 0, send, SOCKET_ID_ANY, NULL) || rte_eth_dev_start(port) || rte_eth_macaddr_get(port, mac))
		errx(1, "port %u (%s) can't be set up: look at the lines before", port, rte_dev_name(info.device));
	/* A port that only takes frames for its own address would do as well; not every driver can. */
	rte_eth_promiscuous_enable(port);
}

void ports_open(struct ports *ports)
{
	unsigned found = rte_eth_dev_count_avail();

	if (found < 1 || found > PORTS_MOST)
		errx(2,
			"found %u ports, need 1 that sends and receives, or 1 of each: say -a with a network card's PCI address, or --vdev "
			"net_virtio_user0,… twice",
			found);
	ports->count = (uint16_t)found;
	ports->receiver = ports->count - 1;
	ports->pool = rte_pktmbuf_pool_create("frames", POOL, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!ports->pool)
		errx(1, "no memory for %d frames: give more by -m", POOL);
	for (uint16_t port = 0; port < ports->count; port++)
		open_one(port, ports->pool, &ports->mac[port]);
}

void ports_close(const struct ports *ports)
{
	for (uint16_t port = 0; port < ports->count; port++) {
		rte_eth_dev_stop(port);
		rte_eth_dev_close(port);
	}
}
