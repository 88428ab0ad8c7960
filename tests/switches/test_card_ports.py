# SPDX-License-Identifier: GPL-2.0-or-later
"""What `ss` tells of AF_XDP's sockets: captured in the lab (iproute2 6.15), with one more of another driver."""

from hypothesis import given
from hypothesis import strategies as st

from vsprof.switches import card_ports

LISTED = """\
Recv-Q Send-Q Local Address:Port Peer Address:Port
0      0            phy-xdp:q0               *     ino:7399 sk:1
\trx(entries:2048)
\ttx(entries:2048)
\tumem(id:0,size:788752640,num_pages:192567,chunk_size:3008,headroom:896,ifindex:4,qid:0,zc:0,refs:1)
\tfr(entries:4096)
\tcr(entries:2048)
\tstats(rx dropped:0,rx invalid:0,rx queue full:0,rx fill ring empty:0,tx invalid:0,tx ring empty:0)
0      0            out-xdp:q0               *     ino:7401 sk:2
\trx(entries:2048)
\tumem(id:1,size:788752640,num_pages:192567,chunk_size:3008,headroom:896,ifindex:5,qid:0,zc:1,refs:1)
"""


def test_each_socket_says_whether_its_frames_are_copied():
    assert card_ports.copies(LISTED) == {"phy-xdp": "copy", "out-xdp": "zero copy"}
    assert card_ports.copies(LISTED.split("\tumem", maxsplit=1)[0]) == {}


@given(st.text())
def test_anything_else_is_no_socket(text):
    assert isinstance(card_ports.copies(text), dict)
