"""The qualities of service that Longreach uses, by name."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

__all__ = ['CLOCK', 'DIAGNOSTICS', 'LOCKSTEP', 'SET_POINT', 'STREAM', 'VISUAL', 'stream']

# Samples, commands, states. Reliable: a closed loop in lockstep stands still without every one.
# Deep, because a simulation that runs faster than real time can be seconds ahead of a recorder
# which the scheduler has set aside; a late reader then still finds everything.
STREAM = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1000,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)

# What a publisher offers in lockstep: the same, and latched, so that a recorder that is discovered
# late also gets what it has missed. Whoever does not ask for latched messages still hears it.
LOCKSTEP = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=10_000,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)

# A set point is an order: the latest counts, and none may be lost.
SET_POINT = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=10,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)

# As ROS expects of /clock: only the newest time is of use. Offered as reliable, so that both
# kinds of readers match.
CLOCK = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)

# Latched, so that nothing is missing at the start of a recording.
DIAGNOSTICS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=100,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)

# Markers: a viewer that starts late sees the latest ones.
VISUAL = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)


def stream(lockstep: bool) -> QoSProfile:
    """Return what a publisher of samples, commands or states offers."""
    return LOCKSTEP if lockstep else STREAM
