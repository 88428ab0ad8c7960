#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Keeps a private view of this host: network, mounts, and the lab's tree as root. Started under `unshare --net --mount` by testbeds/native.py.
#
#   private.sh FOLDER TREE CGROUP [SHARED…]
#
# Prints "ready", waits until its standard input ends (the runner closed it, or died), then ends every process of CGROUP and
# undoes what the file FOLDER/undo lists. SHARED: folders of the host that are seen, not written, at the same path. Interfaces, bridges and mounts need no undoing: they go with the namespaces.
set -u
folder=$1 tree=$2 cgroup=$3
shift 3
root=$folder/root

undo() {
    # The signals of a terminal or of a service manager that ends all of us must not cut this short.
    trap '' INT TERM HUP
    [ -e "$cgroup/cgroup.kill" ] && echo 1 > "$cgroup/cgroup.kill"
    for _ in $(seq 100); do
        rmdir "$cgroup" 2>/dev/null && break
        sleep 0.05
    done
    [ -e "$folder/undo" ] && bash "$folder/undo"
    umount --recursive --lazy "$root" 2>/dev/null
    umount --lazy "$folder/memory" 2>/dev/null
    # Never recursively: whatever should still be mounted here is the host's own.
    rm -f "$folder/undo" "$folder/keeper"
    rmdir "$root" "$folder/memory" "$folder"
}

enter() {
    set -e
    mount --make-rprivate /
    mkdir -p "$root" "$folder/memory"
    mount -t tmpfs -o mode=755 vsprof "$folder/memory"
    mkdir "$folder/memory/upper" "$folder/memory/work"
    mount -t overlay -o "lowerdir=$tree,upperdir=$folder/memory/upper,workdir=$folder/memory/work" overlay "$root"
    mount --rbind /proc "$root/proc"
    # A new one shows the interfaces of the private network.
    mount -t sysfs sysfs "$root/sys"
    mount -t tmpfs -o mode=755 vsprof "$root/run"
    mount -t tmpfs vsprof "$root/tmp"
    mkdir -p "$root/run/netns"
    # What the host's kernel can do without is left out: the facts and the collectors say so.
    mount -t tracefs tracefs "$root/sys/kernel/tracing" 2>/dev/null || true
    mount -t debugfs debugfs "$root/sys/kernel/debug" 2>/dev/null || true
    mount -t bpf bpf "$root/sys/fs/bpf" 2>/dev/null || true
    [ -d "/lib/modules/$(uname -r)" ] && mount --bind /lib/modules "$root/usr/lib/modules"
    devices
    for part; do
        [ -d "$part" ] || continue
        mkdir -p "$root$part"
        mount --bind "$part" "$root$part"
        mount -o remount,bind,ro "$root$part"
    done
    chroot "$root" ip link set lo up
    set +e
}

# Devices of its own, so that the mount point of the hugepages is none of the host's.
devices() {
    mount -t tmpfs -o mode=755,dev vsprof "$root/dev"
    mkdir -p "$root/dev/pts" "$root/dev/shm" "$root/dev/hugepages" "$root/dev/net"
    for node in null zero full random urandom tty ptmx kvm vhost-net net/tun cpu_dma_latency; do
        [ -e "/dev/$node" ] || continue
        touch "$root/dev/$node"
        mount --bind "/dev/$node" "$root/dev/$node"
    done
    for part in vfio cpu; do
        [ -d "/dev/$part" ] || continue
        mkdir "$root/dev/$part"
        mount --rbind "/dev/$part" "$root/dev/$part"
    done
    mount --bind /dev/pts "$root/dev/pts"
    mount -t tmpfs vsprof "$root/dev/shm"
    mount -t hugetlbfs vsprof "$root/dev/hugepages"
    ln -s /proc/self/fd "$root/dev/fd"
}

trap undo EXIT
enter "$@"
echo ready
cat > /dev/null
