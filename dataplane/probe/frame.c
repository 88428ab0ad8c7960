/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frame.h"

#define UDP 17
#define LIFETIME 64
#define DISCARD 9 /* the port of RFC 863's discard service: nobody answers */

#define FIRST_FLOW 0x0afd0000u /* 10.253.0.0 */

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* The internet checksum (RFC 1071) of an IPv4 header without options. */
static uint16_t checksum(const uint8_t header[20])
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

void frame_lay_out(uint8_t *frame, uint16_t bytes, const uint8_t target[6], const uint8_t source[6])
{
	/* The addresses that the project's endpoints 1 and 2 have. */
	static const uint8_t addresses[8] = {10, 77, 0, 1, 10, 77, 0, 2};
	uint8_t *ip = frame + 14, *udp = ip + 20;

	memset(frame, 0, bytes);
	memcpy(frame, target, 6);
	memcpy(frame + 6, source, 6);
	put16(frame + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 2, (uint16_t)(bytes - 14));
	ip[8] = LIFETIME;
	ip[9] = UDP;
	memcpy(ip + 12, addresses, sizeof(addresses));
	put16(ip + 10, checksum(ip));
	put16(udp, 1024);
	put16(udp + 2, DISCARD);
	put16(udp + 4, (uint16_t)(bytes - 34));
	/* A UDP checksum of 0 says that none was made (RFC 768): the stamp changes with each frame. */
}

static void set_target(uint8_t *ip, uint32_t target)
{
	put16(ip + 16, (uint16_t)(target >> 16));
	put16(ip + 18, (uint16_t)target);
	put16(ip + 10, 0);
	put16(ip + 10, checksum(ip));
}

void frame_set_addresses(uint8_t *frame, uint32_t source, uint32_t target)
{
	uint8_t *ip = frame + 14;

	put16(ip + 12, (uint16_t)(source >> 16));
	put16(ip + 14, (uint16_t)source);
	set_target(ip, target);
}

void frame_set_flow(uint8_t *frame, uint32_t flow)
{
	set_target(frame + 14, FIRST_FLOW + flow);
}
