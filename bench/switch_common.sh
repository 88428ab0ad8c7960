# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What the scripts of DPDK's switches have in common (sourced): processes, and the one testpmd between whose two virtio-user ports a
# switch stands. testpmd sends back whatever it receives: packets circulate, and need no generator. $run is the script's own folder.
set -eu
: "${run:?}"
testpmd=/var/lib/vsprof/guest/dpdk-testpmd
# The lab's processor has no AVX-512. One that has it shall take the same paths through the C library and DPDK.
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512BW,-AVX512VL
eal=(--no-pci --in-memory --force-max-simd-bitwidth=256)
# By which DPDK's telemetry of the testpmd in the middle is found.
peer=vsprof-peer

# Linux may share out CPUs by session: a niceness counts inside its own alone, and each session has one among the others.
before_others='[ ! -w /proc/self/autogroup ] || echo -20 > /proc/self/autogroup'

# Start COMMAND on CPU $2 as process $1; its output goes to a file of that name, and it reads from a fifo of that name.
start() {
    name=$1
    # Open for reading and writing, a fifo has no end that testpmd could take for its user's good-bye.
    mkfifo "$run/$name.input"
    # Without a terminal or a session in common: what ends this script ends none of it.
    setsid bash -c "$before_others"'; exec "$@"' bash taskset -c "$2" "${@:3}" 0<> "$run/$name.input" > "$run/$name.log" 2>&1 &
    echo $! > "$run/$name.pid"
}

alive() { [ -f "$run/$1.pid" ] && kill -0 "$(cat "$run/$1.pid")" 2> /dev/null; }

# Those that were started, and have ended by themselves.
gone() {
    for pid in "$run"/*.pid; do
        name=$(basename "$pid" .pid)
        alive "$name" || echo "$name"
    done
}

# Wait for process $1 until COMMAND succeeds, as long as that and the others live: what they do for each other may be what is waited for.
await() {
    waited_for=$1
    shift
    for _ in {1..600}; do
        if "$@" > /dev/null 2>&1; then return; fi
        [ -z "$(gone)" ] || break
        sleep 0.1
    done
    for name in $({ gone && echo "$waited_for"; } | sort -u); do
        echo "$0: $name$(alive "$name" || echo " has ended"): waited for '$*'; its log ends with:"
        tail -n 15 "$run/$name.log"
    done >&2
    exit 1
}

# An empty folder. Half a switch helps nobody: what fails later takes all down.
prepare() {
    trap '[ $? = 0 ] || down' EXIT
    rm -rf "$run"
    mkdir -p "$run"
}

# testpmd's forwarding thread on CPU $1, all else of it on $2: it listens at v0.sock and v1.sock.
start_testpmd() {
    # The main lcore is the command line's; the other forwards.
    start testpmd "$1,$2" "$testpmd" --lcores "0@$2,1@$1" "${eal[@]}" --file-prefix=$peer --single-file-segments -m 128 \
        --vdev "net_virtio_user0,path=$run/v0.sock,server=1,queue_size=1024" \
        --vdev "net_virtio_user1,path=$run/v1.sock,server=1,queue_size=1024" \
        -- --interactive --no-mlockall --forward-mode=io --total-num-mbufs=8192 --txd=1024 --rxd=1024 --burst=32 --txonly-multi-flow
}

# Let packets go, 8 bursts of 32 from each port, and wait for them to come round.
circulate() {
    echo "start tx_first 8" > "$run/testpmd.input"
    await testpmd circulating
}

mask() { printf '0x%x' $((1 << $1)); }
packets() { counts | sed -E 's/.*packets=([0-9]+).*/\1/'; }
circulating() { [ "$(packets)" -gt 10000 ]; }

# The time, and what the testpmd in the middle has received, $1 times, $2 seconds apart.
sample() { python3 -S "$(dirname "$0")/sample_packets.py" "$1" "$2" telemetry=/var/run/dpdk/$peer/dpdk_telemetry.v2; }
counts() { sample 1 0; }

# From now on nobody takes the CPUs from the threads that forward, but those that count, for a moment. Natively alone: that is not for long.
# Those that count do it themselves, where they find the file. The shells stay behind, and get the twentieth part of a CPU that Linux leaves
# to such: when a shell that comes before the others reaps a child, the kernel may wait, in a loop, for somebody else to be done with the
# child's /proc, who never gets that CPU. Seen on Linux 6.18, for ten minutes.
insist() {
    touch /run/vsprof-insists
    for pid in "$run"/*.pid; do
        for task in /proc/"$(cat "$pid")"/task/*; do
            priority=2
            case $(cat "$task/comm") in dpdk-worker* | pmd-*) priority=1 ;; esac
            chrt --fifo --pid $priority "${task##*/}"
        done
    done
}

window() {
    counts
    # An event that perf does not know is no reason to end: what was not counted is left out.
    "$@" || echo "exit status $?"
    counts
}

# End all of processes NAME….
end() {
    for name in "$@"; do
        if alive "$name"; then kill -KILL "$(cat "$run/$name.pid")"; fi
        for _ in {1..100}; do
            alive "$name" || break
            sleep 0.1
        done
    done
    rm -rf "$run" /run/vsprof-insists
}

# Do action $1, if it is one of those in the list $2.
act() {
    case " $2 " in
        *" $1 "*) "$1" "${@:3}" ;;
        *) echo "$0: no action '$1': use $2" >&2 && exit 2 ;;
    esac
}
