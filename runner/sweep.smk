# SPDX-License-Identifier: GPL-2.0-or-later
# Snakemake's part of `vsprof sweep`: each run of a campaign is a job. See runner/sweep.py.
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
    shell:
        "{config[vsprof]} job . {wildcards.run} {config[options]} > jobs/{wildcards.run}.log 2>&1"
