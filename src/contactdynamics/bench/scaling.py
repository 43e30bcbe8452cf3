"""A model of what a step costs on many processes, from what `cdyn bench ranks` has measured on few.

Two ways to divide a scene: *built*, processes have contacts and bodies of their own, by the slabs of the sweeps;
*blocks*, they would divide them in all three directions. Only the first one exists. A cube of grains of one size, S
sweeps a step, work divided evenly:

    one      T = r N + S c k N
    built    T = T(one) / p + S x     p <= N^(1/3) / 4: two slabs, two diameters each
    blocks   T = T(one) / p + S x     1000 grains a process

    x = (R + log2 p) a + 48 B / b

c: a contact in a sweep, k contacts a grain, r: all else, for a grain and a step. The exchange x of a sweep has R rounds
of messages, of even and odd slabs or of 8 colours of blocks, and a sum over all processes; B grains are on the borders
of a process, two cuts of N^(2/3) or six faces of (N / p)^(2/3), 48 bytes each. a: latency, b: bandwidth of a process.
"""

import math
from typing import NamedTuple

ROW = 48.0  # bytes of a body in a message
WAYS = ("built", "blocks")


class Costs(NamedTuple):
    """What was measured on one process."""

    contact: float  # s, one contact in one sweep
    rest: float  # s, all else, for a grain and a step
    contacts: float  # for a grain
    sweeps: float  # a step


class Network(NamedTuple):
    """What a message costs a process."""

    name: str
    latency: float  # s
    bandwidth: float  # bytes/s, of a process


# 200 Gb/s for the 64 cores of a node (De Sensi et al. 2020), 2 us; 1.5 GB/s and 5 us for a node of one core (Brightwell
# et al. 2005: what Red Storm was built for, the longest way).
NETWORKS = (Network("Slingshot, 64 cores a port", 2e-6, 25e9 / 64), Network("SeaStar, one core a node", 5e-6, 1.5e9))


def fitted(one: dict) -> Costs:
    """The costs from the steps of one process, as `bench.ranks` tells them."""
    seconds, grains = one["seconds"], one["bodies"]
    rest = sum(seconds.values()) - seconds["solve"]
    contact = seconds["solve"] / (one["sweeps"] * one["contacts"])
    return Costs(contact, rest / grains, one["contacts"] / grains, one["sweeps"])


def most(way: str, grains: float) -> float:
    """Processes at most among which the scene can be divided."""
    return grains / 1000.0 if way == "blocks" else round(grains ** (1 / 3) / 4.0, 6)


def step_seconds(way: str, costs: Costs, network: Network, grains: float, processes: float) -> float:
    """Seconds of a step."""
    own, alone = grains / processes, (costs.rest + costs.sweeps * costs.contact * costs.contacts) * grains
    if processes == 1:
        return alone
    rounds, border = (8, 6 * own ** (2 / 3)) if way == "blocks" else (2, 2 * grains ** (2 / 3))
    exchange = (rounds + math.log2(processes)) * network.latency + ROW * border / network.bandwidth
    return alone / processes + costs.sweeps * exchange


def efficiency(way: str, costs: Costs, network: Network, grains: float, processes: float) -> float:
    """How much of the time of ``processes`` is well spent: T(1) / (p T(p))."""
    alone = step_seconds(way, costs, network, grains, 1)
    return alone / (processes * step_seconds(way, costs, network, grains, processes))


def draw(results: dict, out) -> None:
    """``ranks.png``: strong and weak scaling by the model, and what was measured."""
    import matplotlib.pyplot as plt

    cases = results["cases"]
    costs = fitted(cases["1 process"][0])
    figure, (strong, weak) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    colours, lines = {"built": "C3", "blocks": "C0"}, ("-", "--")
    for network, line in zip(NETWORKS, lines, strict=True):
        for way in WAYS:
            count = [2.0**n for n in range(1, 18) if 2.0**n <= most(way, 1e9)]
            speed = [efficiency(way, costs, network, 1e9, p) * p for p in count]
            strong.loglog(count, speed, line, color=colours[way], label=f"{way}, {network.name}")
            own = 1e4
            count = [2.0**n for n in range(1, 18) if 2.0**n <= most(way, own * 2.0**n)]
            value = [efficiency(way, costs, network, own * p, p) for p in count]
            weak.semilogx(count, value, line, color=colours[way])
    strong.loglog([1, 1e5], [1, 1e5], ":", color="grey", label="all the time well spent")
    found = {int(name.split()[0]): told for name, told in cases.items() if name.endswith("processes")}
    one = cases["1 process"][0]["cpu"]
    strong.loglog(list(found), [one / max(e["cpu"] for e in told) for told in found.values()], "k*",
                  label=f"measured by CPU, {results['grains']} grains")  # fmt: skip
    strong.set(xlabel="processes", ylabel="times faster than one", title="10⁹ grains")
    weak.set(
        xlabel="processes", ylabel="share of the time that is well spent", title="10⁴ grains a process", ylim=(0, 1.05)
    )
    strong.legend(frameon=False, fontsize=7)
    figure.savefig(out / "ranks.png", dpi=150)
    plt.close(figure)
