#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A Linux bridge between the two ends of a veth pair: it receives each packet from one end and sends it into the other, again and again.
# All in softirq of one CPU, of the kernel that this script finds.
#
#   switch_linux_bridge.sh up CPU [hooks]  make it, let packets go on CPU; wait until they circulate. hooks: with netfilter's hooks in the
#                                          bridge, where a module has them: four calls for each packet that find no rule
#   switch_linux_bridge.sh insist          let nobody take the CPU of what counts
#   switch_linux_bridge.sh sample COUNT SECONDS  print COUNT times, SECONDS apart, the time and the number of packets
#   switch_linux_bridge.sh down            take it away
set -eu

up() {
    # Half a switch helps nobody.
    trap '[ $? = 0 ] || down' EXIT
    [ "${2-}" != hooks ] || modprobe br_netfilter
    ip link add vsleft type veth peer name vsright
    ip link add vsloop type bridge
    for port in vsleft vsright; do
        ip link set $port master vsloop up
        # It would learn from each packet that the address is elsewhere now. What is for everybody (IPv6's neighbours, for example) would
        # go round for ever in both directions, at the cost of those that count.
        bridge link set dev $port learning off flood off mcast_flood off bcast_flood off
    done
    # iptables has no say here.
    for hook in /proc/sys/net/bridge/bridge-nf-call-*; do
        if [ -w "$hook" ]; then echo 0 > "$hook"; fi
    done
    ip link set vsloop up
    ip address add 198.18.0.1/24 dev vsloop
    # Who is asked for by ARP would have to answer.
    ip neighbour add 198.18.0.2 lladdr 02:00:00:00:00:02 dev vsloop
    bridge fdb replace 02:00:00:00:00:02 dev vsleft master static
    # shellcheck disable=SC2016  # the inner shell's variable
    taskset -c "$1" bash -c 'for port in {1..256}; do printf %018d "$port" > "/dev/udp/198.18.0.2/$port"; done'
    first=$(packets)
    sleep 0.2
    [ "$(packets)" -gt $((first + 10000)) ] || { echo "$0: packets do not circulate" >&2 && exit 1; }
}

# The time, and how many packets vsleft has sent, $1 times, $2 seconds apart.
sample() { python3 -S "$(dirname "$0")/sample_packets.py" "$1" "$2" interface=vsleft; }
packets() { sample 1 0 | sed -E 's/.*packets=([0-9]+).*/\1/'; }

# The kernel's thread that forwards is not this script's to choose for, and has its own CPU. Who counts comes first: see switch_common.sh.
insist() { touch /run/vsprof-insists; }

down() {
    rm -f /run/vsprof-insists
    for link in vsleft vsloop; do
        if ip link show $link > /dev/null 2>&1; then ip link delete $link; fi
    done
}

action=$1
shift
case $action in
    up | insist | sample | down) "$action" "$@" ;;
    *) echo "switch_linux_bridge.sh: no action '$action': use up, insist, sample or down" >&2 && exit 2 ;;
esac
