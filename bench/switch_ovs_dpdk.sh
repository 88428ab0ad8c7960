#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# OVS-DPDK between the two virtio-user ports of one testpmd, which sends back whatever it receives: packets circulate, and need no
# generator.
#
#   switch_ovs_dpdk.sh up PMD PEER HOUSE  start: poll-mode thread on CPU PMD, testpmd's on PEER, all else on HOUSE; wait for packets
#   switch_ovs_dpdk.sh idle               hold the packets back: from now on the poll-mode thread finds nothing
#   switch_ovs_dpdk.sh window COMMAND…    run COMMAND; print the time and the poll-mode thread's counts before and behind it
#   switch_ovs_dpdk.sh down               end all that was started
set -eu
run=/run/vsprof-ovs-dpdk
testpmd=/var/lib/vsprof/guest/dpdk-testpmd
appctl="ovs-appctl --timeout=30 --target=$run/vswitchd.ctl"
export OVS_RUNDIR=$run OVS_LOGDIR=$run OVS_DBDIR=$run
# The lab's processor has no AVX-512. One that has it shall take the same paths through the C library and DPDK.
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512BW,-AVX512VL
eal="--no-pci --in-memory --force-max-simd-bitwidth=256"

# Start COMMAND on CPU $2 as process $1; its output goes to a file of that name.
start() {
    name=$1
    # Without a terminal or a session in common: what ends this script ends none of it.
    setsid taskset -c "$2" "${@:3}" 0<> $run/input > "$run/$name.log" 2>&1 &
    echo $! > "$run/$name.pid"
}

alive() { [ -f "$run/$1.pid" ] && kill -0 "$(cat "$run/$1.pid")" 2> /dev/null; }

# Wait for process $1 until COMMAND succeeds.
await() {
    name=$1
    shift
    for _ in {1..600}; do
        if "$@" > /dev/null 2>&1; then return; fi
        alive "$name" || break
        sleep 0.1
    done
    echo "switch_ovs_dpdk.sh: $name: waited for '$*'; its log ends with:" >&2
    tail -n 15 "$run/$name.log" >&2
    exit 1
}

up() {
    # Half a switch helps nobody.
    trap '[ $? = 0 ] || down' EXIT
    rm -rf $run
    mkdir -p $run
    # Open for reading and writing, a fifo has no end that testpmd could take for its user's good-bye.
    mkfifo $run/input
    start_switch "$1" "$3"
    start_testpmd "$2" "$3"
    # Both ports are there when OVS has connected to both sockets.
    for port in v0 v1; do await vswitchd linked $port; done
    # 8 bursts of 32 from each port.
    echo "start tx_first 8" > $run/input
    await testpmd circulating
}

start_switch() {
    ovsdb-tool create $run/conf.db /usr/share/openvswitch/vswitch.ovsschema
    start ovsdb "$2" ovsdb-server $run/conf.db --remote=punix:$run/db.sock --unixctl=$run/ovsdb.ctl
    await ovsdb test -S $run/db.sock
    ovs-vsctl --no-wait init -- set Open_vSwitch . other_config:dpdk-init=true "other_config:dpdk-extra=\"$eal\"" \
        'other_config:dpdk-socket-mem="512"' 'other_config:dpdk-socket-limit="512"' "other_config:dpdk-lcore-mask=$(mask "$2")" "other_config:pmd-cpu-mask=$(mask "$1")"
    start vswitchd "$2" /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk unix:$run/db.sock --unixctl=$run/vswitchd.ctl
    await vswitchd $appctl version
    ovs-vsctl --timeout=60 add-br loop -- set bridge loop datapath_type=netdev
    for port in v0 v1; do
        ovs-vsctl --timeout=60 add-port loop $port -- set Interface $port type=dpdkvhostuserclient \
            "options:vhost-server-path=\"$run/$port.sock\""
    done
    ovs-ofctl del-flows loop
    # By address, as a learning switch would: a flow of a port alone would take OVS's short cut for such.
    ovs-ofctl add-flow loop in_port=v0,ip,nw_dst=198.18.0.0/16,actions=output:v1
    ovs-ofctl add-flow loop in_port=v1,ip,nw_dst=198.18.0.0/16,actions=output:v0
}

start_testpmd() {
    # The main lcore is the command line's; the other forwards.
    start testpmd "$1,$2" $testpmd --lcores "0@$2,1@$1" $eal --single-file-segments -m 128 \
        --vdev "net_virtio_user0,path=$run/v0.sock,server=1,queue_size=1024" \
        --vdev "net_virtio_user1,path=$run/v1.sock,server=1,queue_size=1024" \
        -- --interactive --no-mlockall --forward-mode=io --total-num-mbufs=8192 --txd=1024 --rxd=1024 --burst=32 --txonly-multi-flow
}

mask() { printf '0x%x' $((1 << $1)); }
linked() { [ "$(ovs-vsctl get Interface "$1" link_state)" = up ]; }
packets() { $appctl dpif-netdev/pmd-perf-show -nh | awk '/Rx packets:/ { n += $3 } END { print n + 0 }'; }
resting() { [ "$(packets)" = "$(packets)" ]; }
circulating() { [ "$(packets)" -gt 10000 ]; }

idle() {
    echo stop > $run/input
    await vswitchd resting
}

counts() {
    printf 'microseconds=%s ' "${EPOCHREALTIME/./}"
    $appctl dpif-netdev/pmd-perf-show -nh | awk '/ Iterations:/ { polls += $2 } /- idle iterations:/ { idle += $4 }
        /Rx packets:/ { packets += $3 } END { printf "packets=%d idle=%d polls=%d\n", packets, idle, polls }'
}

window() {
    counts
    # An event that perf does not know is no reason to end: what was not counted is left out.
    "$@" || echo "exit status $?"
    counts
}

down() {
    for name in testpmd vswitchd ovsdb; do
        if alive $name; then kill -KILL "$(cat $run/$name.pid)"; fi
        for _ in {1..100}; do
            alive $name || break
            sleep 0.1
        done
    done
    rm -rf $run
}

action=$1
shift
case $action in
    up | idle | window | down) "$action" "$@" ;;
    *) echo "switch_ovs_dpdk.sh: no action '$action': use up, idle, window or down" >&2 && exit 2 ;;
esac
