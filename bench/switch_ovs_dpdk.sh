#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# OVS-DPDK between the two virtio-user ports of one testpmd.
#
#   switch_ovs_dpdk.sh up PMD PEER HOUSE  start: poll-mode thread on CPU PMD, testpmd's on PEER, all else on HOUSE; wait for packets
#   switch_ovs_dpdk.sh idle               hold the packets back: from now on the poll-mode thread finds nothing
#   switch_ovs_dpdk.sh window COMMAND…    run COMMAND; print the time and the poll-mode thread's counts before and behind it
#   switch_ovs_dpdk.sh insist             let nobody take the CPUs of the threads that forward
#   switch_ovs_dpdk.sh sample COUNT SECONDS  print COUNT times, SECONDS apart, the time and how many packets testpmd has received
#   switch_ovs_dpdk.sh down               end all that was started
run=/run/vsprof-ovs-dpdk
. "$(dirname "$0")/switch_common.sh"
export OVS_RUNDIR=$run OVS_LOGDIR=$run OVS_DBDIR=$run

appctl() { ovs-appctl --timeout=30 --target=$run/vswitchd.ctl "$@"; }

up() {
    prepare
    start_switch "$1" "$3"
    start_testpmd "$2" "$3"
    # Both ports are there when OVS has connected to both sockets.
    for port in v0 v1; do await vswitchd linked $port; done
    circulate
}

start_switch() {
    ovsdb-tool create $run/conf.db /usr/share/openvswitch/vswitch.ovsschema
    start ovsdb "$2" ovsdb-server $run/conf.db --remote=punix:$run/db.sock --unixctl=$run/ovsdb.ctl
    await ovsdb test -S $run/db.sock
    ovs-vsctl --no-wait init -- set Open_vSwitch . other_config:dpdk-init=true "other_config:dpdk-extra=\"${eal[*]}\"" \
        'other_config:dpdk-socket-mem="512"' 'other_config:dpdk-socket-limit="512"' "other_config:dpdk-lcore-mask=$(mask "$2")" "other_config:pmd-cpu-mask=$(mask "$1")"
    start vswitchd "$2" /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk unix:$run/db.sock --unixctl=$run/vswitchd.ctl
    await vswitchd appctl version
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

linked() { [ "$(ovs-vsctl get Interface "$1" link_state)" = up ]; }
resting() { [ "$(packets)" = "$(packets)" ]; }

idle() {
    echo stop > $run/testpmd.input
    await vswitchd resting
}

# Its own: they tell polls in vain apart.
counts() {
    printf 'microseconds=%s ' "${EPOCHREALTIME/./}"
    appctl dpif-netdev/pmd-perf-show -nh | awk '/ Iterations:/ { polls += $2 } /- idle iterations:/ { idle += $4 }
        /Rx packets:/ { packets += $3 } END { printf "packets=%d idle=%d polls=%d\n", packets, idle, polls }'
}

down() { end testpmd vswitchd ovsdb; }

act "$1" "up insist sample idle window down" "${@:2}"
