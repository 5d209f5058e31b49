"""What the client knows of topics, and when it asks again (``Metadata``, ``ConsumerMetadata``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from groupsim_clients.assignors.base import PartitionInfo
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import JavaError
from groupsim_clients.timing import FOREVER, Context, ExponentialBackoff

if TYPE_CHECKING:
    from groupsim_clients.subscription_state import SubscriptionState

__all__ = ["Metadata"]

_STALE = frozenset(  # InvalidMetadataException: ask again
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
_NEVER = -FOREVER


class Metadata:
    """Topics with their partitions, a version that grows with each answer, and the refresh times.

    The backoff of Java (retry backoff after a failure or after an answer that brought nothing new)
    is drawn once when it begins and not at every look, which is the same to an observer.
    """

    def __init__(
        self, ctx: Context, config: ConsumerConfig, subscriptions: SubscriptionState
    ) -> None:
        self._ctx = ctx
        self._config = config
        self._subscriptions = subscriptions
        self._max_age_ms = config.metadata_max_age_ms
        self._backoff = ExponentialBackoff(
            ctx, config.retry_backoff_ms, config.retry_backoff_max_ms, "metadata-backoff"
        )
        self.topics: Mapping[str, tuple[PartitionInfo, ...]] = {}
        self.brokers = 0
        self.update_version = 1  # the bootstrap addresses count as an update
        self._request_version = 0
        self._need_full_update = True
        self._need_partial_update = False
        self._last_success_ms = _NEVER
        self._allow_at_ms = _NEVER
        self._attempts = 0
        self._equivalent = 0
        self._epochs: dict[tuple[str, int], int] = {}
        # what the last answer said of a topic, by its identity: answers that say the same are often
        # the same value, and a topic may have thousands of partitions
        self._taken: dict[
            str,
            tuple[
                MetadataResponseTopic,
                tuple[MetadataResponseBroker, ...],
                tuple[PartitionInfo, ...],
            ],
        ] = {}
        self._error: JavaError | None = None
        self.fatal_error: JavaError | None = None

    @property
    def update_requested(self) -> bool:
        """Whether somebody wants fresh metadata."""
        return self._need_full_update or self._need_partial_update

    def request_update(self, *, reset_backoff: bool) -> int:
        """Want an update; returns the version known now."""
        self._need_full_update = True
        if reset_backoff and self._equivalent:
            self._equivalent = 0
            self._allow_at_ms = min(
                self._allow_at_ms, self._last_success_ms + self._config.retry_backoff_ms
            )
        return self.update_version

    def request_update_for_new_topics(self) -> int:
        """Want an update at once because the topics of interest changed."""
        self._allow_at_ms = _NEVER
        self._need_partial_update = True
        self._equivalent = 0
        self._request_version += 1
        return self.update_version

    def next_update_ms(self) -> int:
        """When the next request is due (a time; it may be past)."""
        allow_at_ms = self._allow_at_ms
        if self._need_full_update or self._need_partial_update:
            return allow_at_ms
        due_ms = self._last_success_ms + self._max_age_ms
        return max(due_ms, allow_at_ms)

    def allowed_now(self) -> bool:
        """Whether the refresh backoff lets a request out now (CP-08)."""
        return self._ctx.now_ms >= self._allow_at_ms

    def request(self) -> tuple[MetadataRequest, int]:
        """The request to send and the request version it answers."""
        topics = None
        if not self._subscriptions.has_pattern:
            topics = tuple(sorted(self._subscriptions.metadata_topics()))
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=self._config.allow_auto_create_topics
        )
        return request, self._request_version

    def update(self, response: MetadataResponse, request_version: int) -> None:
        """Take an answer in."""
        now_ms = self._ctx.now_ms
        if not response.brokers:  # a broker that is starting: ask again later
            self.failed_update()
            return
        expired = now_ms >= self._last_success_ms + self._max_age_ms
        self._need_partial_update = request_version < self._request_version
        self._need_full_update = False
        self._last_success_ms = now_ms
        self._attempts = 0
        self.update_version += 1
        self._equivalent = 1 if expired else self._equivalent + 1
        self.brokers = len(response.brokers)
        racks = {broker.node_id: broker.rack for broker in response.brokers}
        kept: dict[str, tuple[PartitionInfo, ...]] = {}
        for topic in response.topics:
            self._take_topic(topic, response.brokers, racks, kept)
        self.topics = kept
        self._set_errors(response)
        wait_ms = self._backoff.backoff(max(0, self._equivalent - 1))
        self._allow_at_ms = now_ms + wait_ms

    def failed_update(self) -> None:
        """The request failed: back off."""
        self._attempts += 1
        self._equivalent = 0
        self._allow_at_ms = self._ctx.now_ms + self._backoff.backoff(self._attempts - 1)

    def maybe_throw(self) -> None:
        """Throw an error that an answer brought, once (CN-04)."""
        error = self.fatal_error or self._error
        self.fatal_error = self._error = None
        if error is not None:
            raise error

    def _take_topic(
        self,
        topic: MetadataResponseTopic,
        brokers: tuple[MetadataResponseBroker, ...],
        racks: Mapping[int, str | None],
        kept: dict[str, tuple[PartitionInfo, ...]],
    ) -> None:
        if not self._retains(topic):
            return
        taken = self._taken.get(topic.name)
        if taken is not None and taken[0] is topic and taken[1] is brokers:
            kept[topic.name] = taken[2]  # the very value of the last answer: nothing is new
            return
        if topic.error_code in _STALE:
            self.request_update(reset_backoff=False)
        if topic.error_code != ErrorCode.NONE:
            return
        stale = False
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            if partition.leader_epoch > self._epochs.get(key, -1):
                self._epochs[key] = partition.leader_epoch
                self._equivalent = 0
            if partition.error_code in _STALE:
                stale = True
                self.request_update(reset_backoff=False)
        in_order = sorted(topic.partitions, key=lambda partition: partition.partition_index)
        kept[topic.name] = tuple(
            PartitionInfo(racks=tuple(racks.get(node) for node in partition.replica_nodes))
            for partition in in_order
        )
        if not stale:
            self._taken[topic.name] = (topic, brokers, kept[topic.name])

    def _retains(self, topic: MetadataResponseTopic) -> bool:
        if self._subscriptions.needs_metadata(topic.name):
            return True
        if topic.is_internal and self._config.exclude_internal_topics:
            return False
        return self._subscriptions.matches_pattern(topic.name)

    def _set_errors(self, response: MetadataResponse) -> None:
        self._error = None
        bad = [t.name for t in response.topics if t.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION]
        if bad:
            self._error = JavaError("InvalidTopicException", f"Invalid topics: {bad}")
        bad = [
            t.name for t in response.topics if t.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ]
        if bad:
            self._error = JavaError(
                "TopicAuthorizationException", f"Not authorized to access topics: {bad}"
            )
