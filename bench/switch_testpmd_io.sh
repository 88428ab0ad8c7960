#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# DPDK's testpmd as a switch that does not look at the packets (io), between the two virtio-user ports of another.
#
#   switch_testpmd_io.sh up PMD PEER HOUSE  start: its forwarding thread on CPU PMD, the other's on PEER, all else on HOUSE; wait for packets
#   switch_testpmd_io.sh insist                 let nobody take the CPUs of the threads that forward
#   switch_testpmd_io.sh sample COUNT SECONDS   print COUNT times, SECONDS apart, the time and the number of packets
#   switch_testpmd_io.sh down               end all that was started
run=/run/vsprof-testpmd-io
. "$(dirname "$0")/switch_common.sh"

up() {
    prepare
    start_testpmd "$2" "$3"
    # It does not make the second before somebody has connected to the first.
    await testpmd test -S $run/v0.sock
    start switch "$1,$3" "$testpmd" --lcores "0@$3,1@$1" "${eal[@]}" --file-prefix=vsprof-switch --single-file-segments -m 128 \
        --vdev "net_vhost0,iface=$run/v0.sock,client=1" --vdev "net_vhost1,iface=$run/v1.sock,client=1" \
        -- --auto-start --no-mlockall --forward-mode=io --total-num-mbufs=8192 --txd=1024 --rxd=1024 --burst=32
    await switch grep -q "io packet forwarding" $run/switch.log
    circulate
}

down() { end testpmd switch; }

act "$1" "up insist sample down" "${@:2}"
