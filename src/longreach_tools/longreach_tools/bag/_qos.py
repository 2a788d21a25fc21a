"""
Quality of service of recordings, recorders and players.

DDS discovery reports reliability, durability, deadline, lifespan and liveliness of a publisher,
but not kind and depth of its history: a recording stores these as ``unknown``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosbags.interfaces import Qos, QosTime

# A recorder must not lose messages while it writes or the machine is busy: this depth is 10 s of a
# topic with 1 kHz. The middleware allocates memory only as messages arrive.
RECORDER_DEPTH = 10_000

# Of images and the like, which have megabytes each: these would be gigabytes while the disk is
# slow. Messages that are lost are counted. 64 images of 5 megapixels are 320 MB.
LARGE_DEPTH = 64
LARGE_TYPES = {f'sensor_msgs/msg/{name}' for name in ('Image', 'CompressedImage', 'PointCloud2')}

# Largest history of a player for slow subscribers. DDS sends a lost message again only when the
# loss is detected, which can take seconds.
PLAYER_DEPTH = 10_000

# rosbag2 and rclpy represent an infinite duration by the largest number of nanoseconds.
_INFINITE = 2**63 - 1


def recorded(profile: Any) -> Qos:
    """Convert an rclpy QoSProfile to the form stored in a recording."""
    from rosbags.interfaces import (
        Qos,
        QosDurability,
        QosHistory,
        QosLiveliness,
        QosReliability,
        QosTime,
    )

    def time(duration: Any) -> QosTime:
        return QosTime(*divmod(duration.nanoseconds, 1_000_000_000))

    return Qos(
        QosHistory[profile.history.name],
        profile.depth,
        QosReliability[profile.reliability.name],
        QosDurability[profile.durability.name],
        time(profile.deadline),
        time(profile.lifespan),
        QosLiveliness[profile.liveliness.name],
        time(profile.liveliness_lease_duration),
        profile.avoid_ros_namespace_conventions,
    )


def subscription_profile(offered: Sequence[Qos], typename: str = '') -> Any:
    """
    Return the rclpy QoSProfile by which one subscription hears all of these publishers.

    Reliable if all are, transient local if all are. Without any publisher: reliable and volatile,
    so that the first message of the usual publisher is heard; the caller asks again when the
    publishers are known.
    """
    from rclpy.qos import (
        QoSDurabilityPolicy,
        QoSHistoryPolicy,
        QoSProfile,
        QoSReliabilityPolicy,
    )

    reliable = all(qos.reliability.name == 'RELIABLE' for qos in offered)
    latched = bool(offered) and all(qos.durability.name == 'TRANSIENT_LOCAL' for qos in offered)
    make_profile: Any = QoSProfile
    return make_profile(
        history=QoSHistoryPolicy.KEEP_LAST,
        depth=LARGE_DEPTH if typename in LARGE_TYPES else RECORDER_DEPTH,
        reliability=(
            QoSReliabilityPolicy.RELIABLE if reliable else QoSReliabilityPolicy.BEST_EFFORT
        ),
        durability=(
            QoSDurabilityPolicy.TRANSIENT_LOCAL if latched else QoSDurabilityPolicy.VOLATILE
        ),
    )


def is_looser(profile: Any, other: Any) -> bool:
    """Return whether one rclpy QoSProfile hears publishers that another does not hear."""
    return bool(
        (profile.reliability != other.reliability and profile.reliability.name == 'BEST_EFFORT')
        or (profile.durability != other.durability and profile.durability.name == 'VOLATILE')
    )


def publisher_profile(offers: Sequence[Qos], count: int) -> Any:
    """
    Return the rclpy QoSProfile that one player offers in place of the recorded publishers.

    Where they differ it offers the strongest, which matches every subscription that any of them
    matched. Without a record: reliable, volatile.
    """
    from rclpy.duration import Duration
    from rclpy.qos import (
        QoSDurabilityPolicy,
        QoSHistoryPolicy,
        QoSLivelinessPolicy,
        QoSProfile,
        QoSReliabilityPolicy,
    )

    effort = offers and all(qos.reliability.name == 'BEST_EFFORT' for qos in offers)
    latched = any(qos.durability.name == 'TRANSIENT_LOCAL' for qos in offers)
    make_profile: Any = QoSProfile
    profile = make_profile(
        history=QoSHistoryPolicy.KEEP_LAST,
        depth=max(1, min(count, PLAYER_DEPTH)),
        reliability=(
            QoSReliabilityPolicy.BEST_EFFORT if effort else QoSReliabilityPolicy.RELIABLE
        ),
        durability=(
            QoSDurabilityPolicy.TRANSIENT_LOCAL if latched else QoSDurabilityPolicy.VOLATILE
        ),
    )
    if offers:
        # Deadline and lease that a subscription requests must be offered. Lifespan is left out:
        # messages that are replayed slowly would expire.
        profile.deadline = Duration(nanoseconds=min(_nanoseconds(q.deadline) for q in offers))
        profile.liveliness_lease_duration = Duration(
            nanoseconds=min(_nanoseconds(q.liveliness_lease_duration) for q in offers)
        )
        if any(qos.liveliness.name == 'MANUAL_BY_TOPIC' for qos in offers):
            profile.liveliness = QoSLivelinessPolicy.MANUAL_BY_TOPIC
    return profile


def summary(offers: Sequence[Qos]) -> str:
    """Return the QoS of a recorded topic in words."""
    if not offers:
        return 'not recorded'

    def words(qos: Qos) -> str:
        parts = [qos.reliability.name, qos.durability.name]
        if qos.depth:
            parts.append(f'depth {qos.depth}')
        if _nanoseconds(qos.deadline) < _INFINITE:
            parts.append(f'deadline {_nanoseconds(qos.deadline) * 1e-9:g} s')
        return ', '.join(parts).lower().replace('_', ' ')

    return ' / '.join(dict.fromkeys(words(qos) for qos in offers))


def _nanoseconds(time: QosTime) -> int:
    """Return a duration [ns]; zero stands for unspecified, which is infinite."""
    total = time.sec * 1_000_000_000 + time.nsec
    return min(total, _INFINITE) if total > 0 else _INFINITE
