#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The kernel's OVS datapath, or its bridge, in User-Mode Linux: a Linux kernel as a program, so that the same kernel runs, and can be
# counted, wherever this script does. Packets circulate: the datapath receives each from one end of a veth pair and sends it into the
# other, again and again.
#
#   switch_user_mode_linux.sh up FOLDER CPU DATAPATH  boot it on CPU out of FOLDER (linux.uml, order, modules), with DATAPATH ovs or
#                                          bridge; wait until packets circulate
#   switch_user_mode_linux.sh window COMMAND…   run COMMAND; print the time and the number of packets before and behind it
#   switch_user_mode_linux.sh insist            let nobody take its CPU
#   switch_user_mode_linux.sh sample COUNT SECONDS  print COUNT times, SECONDS apart and more, the time and the number of packets
#   switch_user_mode_linux.sh down              end it
set -eu
run=/run/vsprof-user-mode-linux
console=$run/console

# --- Inside: this same file is the init of the kernel in user mode ------------------------------------------------------------

loop_ovs() {
    ip address add 198.18.0.1/24 dev left
    # Who is asked for by ARP would have to answer.
    ip neighbour add 198.18.0.2 lladdr 02:00:00:00:00:02 dev left
    ovs-dpctl add-dp loop
    ovs-dpctl add-if loop left
    ovs-dpctl add-if loop right
    # As ovs-vswitchd would have written it for a flow of IPv4 from port 2 to port 1. No daemon: nothing else is to run.
    ovs-dpctl add-flow loop 'recirc_id(0),in_port(2),eth(),eth_type(0x0800),ipv4(frag=no)' 1
}

# As switch_linux_bridge.sh, which says why.
loop_bridge() {
    ip link add loop type bridge
    for port in left right; do
        ip link set $port master loop
        bridge link set dev $port learning off flood off mcast_flood off bcast_flood off
    done
    ip link set loop up
    ip address add 198.18.0.1/24 dev loop
    ip neighbour add 198.18.0.2 lladdr 02:00:00:00:00:02 dev loop
    bridge fdb replace 02:00:00:00:00:02 dev left master static
}

inside() {
    # Nobody inherits a PATH from a kernel.
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin
    mount -t proc proc /proc
    mount -t sysfs sys /sys
    # Open vSwitch's tools want to write there; the root is read-only.
    mount -t tmpfs tmpfs /var/log
    while read -r module; do insmod "$1/modules/$module"; done < "$1/order"
    ip link add left type veth peer name right
    ip link set left up
    ip link set right up
    "loop_$2"
    for port in {1..256}; do
        # 60 bytes without FCS.
        printf %018d "$port" > "/dev/udp/198.18.0.2/$port"
    done
    echo circulating
    while read -r command; do
        read -r packets < /sys/class/net/left/statistics/tx_packets
        echo "$command ${EPOCHREALTIME/./} $packets"
    done
}

# --- Outside ------------------------------------------------------------------------------------------------------------------

alive() { [ -f $run/pid ] && kill -0 "$(cat $run/pid)" 2> /dev/null; }

# Wait until the console has a line that begins with $1; print the last one.
await() {
    for _ in {1..1200}; do
        if line=$(grep -a "^$1" $console | tail -n 1) && [ -n "$line" ]; then
            printf '%s\n' "$line" | tr -d '\r'
            return
        fi
        alive || break
        sleep 0.1
    done
    echo "switch_user_mode_linux.sh: no '$1' on the console, which ends with:" >&2
    tail -n 15 $console >&2
    exit 1
}

up() {
    # Half a switch helps nobody.
    trap '[ $? = 0 ] || down' EXIT
    rm -rf $run
    mkdir -p $run
    mkfifo $run/input
    # Opened for reading and writing, a fifo has no end at which the console would close. A terminal would be none of a test's business.
    # Linux may share out CPUs by session; this one comes before the others.
    TMPDIR=/dev/shm setsid bash -c '[ ! -w /proc/self/autogroup ] || echo -20 > /proc/self/autogroup; exec "$@"' bash \
        taskset -c "$2" "$1/linux.uml" mem=64M uml_dir=$run umid=uml rootfstype=hostfs rootflags=/ ro \
        quiet con=null con0=fd:0,fd:1 init="$(realpath "$0")" inside "$1" "$3" 0<> $run/input > $console 2>&1 &
    echo $! > $run/pid
    await circulating
}

counts() {
    # A word of its own for each question: the console has the answers to all before.
    asked=counts${EPOCHREALTIME/./}
    echo "$asked" > $run/input
    await "$asked " | { read -r _ microseconds packets && echo "microseconds=$microseconds packets=$packets idle=0 polls=0"; }
}

sample() {
    for ((i = 0; i < $1; i++)); do
        sleep "$2"
        counts
    done
}

# Each of its processes.
insist() { for pid in $(pgrep --session "$(cat $run/pid)"); do chrt --fifo --all-tasks --pid 1 "$pid"; done; }

window() {
    counts
    # An event that perf does not know is no reason to end: what was not counted is left out.
    "$@" || echo "exit status $?"
    counts
}

down() {
    # All of it: each of its processes is one of ours.
    if alive; then kill -KILL -- "-$(cat $run/pid)"; fi
    rm -rf $run
}

action=$1
shift
case $action in
    inside | up | insist | sample | window | down) "$action" "$@" ;;
    *) echo "switch_user_mode_linux.sh: no action '$action': use up, insist, sample, window or down" >&2 && exit 2 ;;
esac
