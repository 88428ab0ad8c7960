#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# vsprof's own vhost-switch between the two virtio-user ports of one testpmd, with its defaults: own rings, a table of addresses.
#
#   switch_vhost_switch.sh up PMD PEER HOUSE  start: its worker on CPU PMD, testpmd's on PEER, all else on HOUSE; wait for packets
#   switch_vhost_switch.sh insist                 let nobody take the CPUs of the threads that forward
#   switch_vhost_switch.sh sample COUNT SECONDS   print COUNT times, SECONDS apart, the time and the number of packets
#   switch_vhost_switch.sh down               end all that was started
run=/run/vsprof-vhost-switch-loop
. "$(dirname "$0")/switch_common.sh"

up() {
    prepare
    start_testpmd "$2" "$3"
    # It does not make the second before somebody has connected to the first.
    await testpmd test -S $run/v0.sock
    start switch "$1,$3" /usr/local/bin/vhost-switch --lcores "0@$3,1@$1" --file-prefix=vsprof-switch --in-memory --no-pci \
        --force-max-simd-bitwidth=256 -- --port=v0,path=$run/v0.sock --port=v1,path=$run/v1.sock --control=$run/control
    await switch grep -q "vhost-switch: ready" $run/switch.log
    # What testpmd sends out of its port N has address N of its own list, and is to go to the other port.
    tell "learn v0 02:00:00:00:00:01"
    tell "learn v1 02:00:00:00:00:00"
    circulate
}

# One command to vhost-switch's control socket, which says ok.
tell() {
    python3 -S -c '
import socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.settimeout(20)
    asked.connect(sys.argv[1])
    asked.sendall(sys.argv[2].encode() + b"\n")
    answer = asked.makefile().readline()
sys.exit(None if answer.startswith("ok") else answer or "no answer")
' $run/control "$1"
}

down() { end testpmd switch; }

act "$1" "up insist sample down" "${@:2}"
