# SPDX-License-Identifier: GPL-2.0-or-later
# Snakemake's part of `vsprof sweep`: each run of a campaign is a job. See runner/sweep.py.
# A machine that several runs share is a resource of its own, of which there is one, and each of these runs takes it.
# Repetitions are blocks here, too: a rule each, the first of them first. What a sweep that is broken off leaves is whole repetitions.
rule all:
    input:
        expand("jobs/{run}.done", run=[run for block in config["blocks"] for run in block]),


for place, block in enumerate(config["blocks"]):

    rule:
        name:
            f"repetition_{place + 1}"
        output:
            touch("jobs/{run}.done"),
        wildcard_constraints:
            run="|".join(block),
        priority: len(config["blocks"]) - place
        threads: int(config["cpus"])
        resources:
            **{
                machine: lambda wildcards, machine=machine: int(config["machine_of"][wildcards.run] == machine)
                for machine in set(config["machine_of"].values())
            },
        shell:
            "{config[vsprof]} job . {wildcards.run} {config[options]} > jobs/{wildcards.run}.log 2>&1"
