"""The qualities of service that Longreach uses, by name."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy


def _reliable(depth: int, durability: DurabilityPolicy) -> QoSProfile:
    """Return a reliable profile that keeps the last ``depth`` messages."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=durability,
    )


# Samples, commands, states. Reliable: a closed loop in lockstep needs every message. Deep, because
# a simulation that runs faster than real time can be seconds ahead of a recorder that was not
# scheduled; the recorder then still finds every message.
STREAM = _reliable(1000, DurabilityPolicy.VOLATILE)

# The same with durability transient local, so that a recorder also gets what was published before
# it had discovered the publisher. Volatile subscribers match as well.
LATCHED_STREAM = _reliable(10_000, DurabilityPolicy.TRANSIENT_LOCAL)

# Set points: the latest one counts, and none may be lost.
SET_POINT = _reliable(10, DurabilityPolicy.VOLATILE)

# As ROS expects of /clock: only the latest time matters. Offered as reliable, so that reliable and
# best-effort subscribers match.
CLOCK = _reliable(1, DurabilityPolicy.VOLATILE)

# Transient local, so that nothing is missing at the start of a recording.
DIAGNOSTICS = _reliable(100, DurabilityPolicy.TRANSIENT_LOCAL)

# What changes seldom, such as loads: who comes late also gets the changes before.
CHANGES = _reliable(100, DurabilityPolicy.TRANSIENT_LOCAL)

# Markers: a viewer that starts late gets the latest ones.
VISUAL = _reliable(1, DurabilityPolicy.TRANSIENT_LOCAL)

# The same as deep as STREAM, because a recorder needs all drawings. A viewer that starts late gets
# the kept ones, too.
LATCHED_DRAWINGS = _reliable(1000, DurabilityPolicy.TRANSIENT_LOCAL)

# As tf2 expects of /tf and /tf_static.
TRANSFORMS = _reliable(100, DurabilityPolicy.VOLATILE)
STATIC_TRANSFORMS = VISUAL

# Images with their camera_info: few, because each has megabytes. Offered as reliable, so that all
# subscribers match; subscribed to as best effort, so that every driver matches, or as reliable
# where no image may be lost.
IMAGES = _reliable(5, DurabilityPolicy.VOLATILE)
LATEST_IMAGES = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=5, reliability=ReliabilityPolicy.BEST_EFFORT
)


def stream(latched: bool) -> QoSProfile:
    """Return what a publisher of samples, commands or states offers."""
    return LATCHED_STREAM if latched else STREAM


def drawings(latched: bool) -> QoSProfile:
    """Return what a publisher of drawings offers."""
    return LATCHED_DRAWINGS if latched else VISUAL
