# SPDX-License-Identifier: GPL-2.0-or-later
# Snakemake's part of `vsprof sweep`: each run of a campaign is a job. See runner/sweep.py.
# A machine that several runs share is a resource of its own, of which there is one, and each of these runs takes it.
rule all:
    input:
        expand("jobs/{run}.done", run=config["runs"].split()),


rule run:
    output:
        touch("jobs/{run}.done"),
    threads: int(config["cpus"])
    resources:
        mem_mb=int(config["memory_mib"]),
        runtime=int(config["minutes"]),
        **{
            machine: lambda wildcards, machine=machine: int(config["machine_of"][wildcards.run] == machine)
            for machine in set(config["machine_of"].values())
        },
    shell:
        "{config[vsprof]} job . {wildcards.run} {config[options]} > jobs/{wildcards.run}.log 2>&1"
