# SPDX-License-Identifier: GPL-2.0-or-later
"""The event catalogue: what the PMU of each known processor counts, and the metrics made of it; docs/adding-a-pmu-event.md.

Each folder here is a microarchitecture, and holds JSON files in the format of perf's own pmu-events; mapfile.csv says which
folder is which processor's. Three folders are no microarchitecture: ``common`` (metrics for all), ``software`` (the kernel's
own events) and ``generic`` (perf's generic names, for a processor that the catalogue doesn't know). Read catalogue.py first::

    catalogue.load()              # what is known of this host's processor
        processor.py              # which processor is it, and which folder
        entries.py                # one event, one metric
        terms/expression.py       # a metric's formula
    probe.py                      # can it be counted here?
    importer.py                   # vendors' lists as files of the user's own
        forms.py                  # the forms in which vendors give them
"""
