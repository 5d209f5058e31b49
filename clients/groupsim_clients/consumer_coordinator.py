"""What a consumer adds to membership: subscription, assignment, callbacks (``ConsumerCoordinator``).

This module has the coordinator's part of ``poll()`` (CP-01 to CP-10), what goes into a JoinGroup, and
closing. The steps around a join and before leaving are in ``join_steps``, the leader's step is in
``leader``, committing and fetching offsets in ``offsets``.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupsim.protocol.consumer_protocol import Subscription, encode_subscription
from groupsim.protocol.messages import JoinGroupRequestProtocol, JoinGroupResponseMember
from groupsim_clients.abstract_coordinator import AbstractCoordinator
from groupsim_clients.assignors import Assignor, RebalanceProtocol
from groupsim_clients.behaviour import Behaviour
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import ConfigError, JavaError
from groupsim_clients.generation import Generation
from groupsim_clients.join_steps import JoinSteps
from groupsim_clients.leader import Leader
from groupsim_clients.listener import ListenerInvoker
from groupsim_clients.metadata_snapshot import MetadataSnapshot
from groupsim_clients.network_client import NetworkClient
from groupsim_clients.offsets import Offsets
from groupsim_clients.subscription_state import SubscriptionState, topics_text
from groupsim_clients.timing import Context, Steps, Timer

__all__ = ["ConsumerCoordinator", "common_protocol"]

_SIMPLE = frozenset({"range", "roundrobin"})


def common_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol | None:
    """The highest rebalance protocol that all assignors support (CJ-25); None without assignors.

    Raises:
        ConfigError: they have none in common (K-02).

    """
    if not assignors:
        return None
    common = set(assignors[0].supported_protocols)
    for assignor in assignors:
        common &= set(assignor.supported_protocols)
    if not common:
        names = tuple(assignor.name for assignor in assignors)
        raise ConfigError(
            "partition.assignment.strategy",
            names,
            "Specified assignors do not have commonly supported rebalance protocol (K-02)",
        )
    return max(common)


class ConsumerCoordinator(AbstractCoordinator):
    """The consumer's coordinator."""

    def __init__(
        self,
        ctx: Context,
        config: ConsumerConfig,
        behaviour: Behaviour,
        *,
        client: NetworkClient,
        subscriptions: SubscriptionState,
        assignors: Sequence[Assignor],
    ) -> None:
        super().__init__(ctx, config, behaviour, client)
        self.subscriptions = subscriptions
        self.assignors = tuple(assignors)
        self.protocol = common_protocol(assignors)
        self.metadata = client.metadata
        self.is_leader = False
        self.joined_subscription: frozenset[str] | None = None
        self.metadata_snapshot = self.new_snapshot()
        self.assignment_snapshot: MetadataSnapshot | None = None
        self.group_metadata = Generation(-1, "", None)
        self.invoker = ListenerInvoker(ctx, subscriptions, lambda: self.generation.generation_id)
        self.offsets = Offsets(self, subscriptions)
        self.invoker.blocks_heartbeats = int(behaviour.callbacks_block_heartbeats)
        self.downgraded = False
        """The group has gone from COOPERATIVE to EAGER; cleared by the step that answers it."""
        self._death_told = False
        self.leader = Leader(self)
        self._steps = JoinSteps(self)
        self.metadata.request_update(reset_backoff=True)

    # -- poll ------------------------------------------------------------------------------------

    def poll(self, timer: Timer, *, wait_for_join: bool) -> Steps[bool]:
        """The coordinator's part of ``poll()`` (CP-01). False: returned early.

        Raises:
            JavaError: whatever the user is to see.

        """
        self.maybe_update_subscription_metadata()
        self.offsets.invoke_completed()
        if self.subscriptions.has_auto_assigned:
            if self.protocol is None:  # K-04
                raise JavaError.illegal_state(
                    "User configured partition.assignment.strategy to empty while trying to "
                    "subscribe for group protocol to auto assign partitions"
                )
            if self.dead is not None:
                self._after_death(self.dead)
                return True
            self.poll_heartbeat()
            if self.behaviour.heartbeats_only_in_poll:
                yield from self.heartbeat_between_messages(timer)
            if self.coordinator_unknown() and not (
                yield from self.ensure_coordinator_ready(timer)
            ):  # CP-02
                return False
            if self.rejoin_needed_or_pending():
                if self.subscriptions.has_pattern and not (yield from self._refresh_pattern(timer)):
                    return False
                if self.behaviour.existing_topics_only and not self._topics_now():
                    return False
                join_timer = timer if wait_for_join else Timer(self.ctx, 0)  # CP-03
                if not (yield from self.ensure_active_group(join_timer)):
                    return False
        else:
            self.client.poll_now()
        self.offsets.maybe_auto_commit()
        return True

    def _after_death(self, error: JavaError) -> None:
        """A fatal error ended the instance: everything is gone, nothing is joined any more.

        Raises:
            JavaError: the error, the first time.

        """
        self.client.poll_now()
        if self._death_told:
            return
        self._death_told = True
        held = self.subscriptions.assigned()
        if held:
            self.subscriptions.assign(())
            self.invoker.gave_up("lost", held)
        raise error

    def _refresh_pattern(self, timer: Timer) -> Steps[bool]:
        if self.metadata.allowed_now():  # CP-08
            self.metadata.request_update(reset_backoff=True)
        if not (yield from self.client.ensure_fresh_metadata(timer)):
            return False
        self.maybe_update_subscription_metadata()
        return True

    def rejoin_needed_or_pending(self) -> bool:
        """Whether to join: metadata changed (leader), subscription changed, or wanted (CP-04 to
        CP-07).
        """
        if not self.subscriptions.has_auto_assigned or self.dead is not None:
            return False
        at_assignment = self.assignment_snapshot
        if at_assignment is not None and not at_assignment.matches(self.metadata_snapshot):
            self.request_rejoin_if_necessary(
                "cached metadata has changed",
                f"cached metadata has changed from {at_assignment} at the beginning of the rebalance "
                f"to {self.metadata_snapshot}",
            )
            return True
        joined, now = self.joined_subscription, self._topics_now()
        if joined is not None and joined != now:
            self.request_rejoin_if_necessary(
                "subscription has changed",
                f"subscription has changed from {topics_text(joined)} at the beginning of the rebalance "
                f"to {topics_text(now)}",
            )
            return True
        return super().rejoin_needed_or_pending()

    @property
    def cooperative(self) -> bool:
        """Whether the rebalance protocol is COOPERATIVE."""
        return self.protocol is RebalanceProtocol.COOPERATIVE

    def protocol_chosen(self, name: str) -> None:
        """Take the protocol of the assignor that the group has chosen, if this client does so."""
        if not self.behaviour.protocol_follows_group:
            return
        chosen = max(self.assignor(name).supported_protocols)
        self.downgraded = self.cooperative and chosen is RebalanceProtocol.EAGER
        self.protocol = chosen

    def _topics_now(self) -> frozenset[str]:
        """The topics to join with."""
        topics = self.subscriptions.subscription
        if not self.behaviour.existing_topics_only:
            return topics
        return frozenset(topic for topic in topics if topic in self.metadata.topics)

    def maybe_update_subscription_metadata(self) -> None:
        """Take a newer metadata version in: pattern, then snapshot (CP-01)."""
        if self.metadata.update_version > self.metadata_snapshot.version:
            if self.subscriptions.has_pattern:
                self.update_pattern_subscription()
            self.metadata_snapshot = self.new_snapshot()

    def update_pattern_subscription(self) -> None:
        """Subscribe to the topics that match now."""
        topics = [t for t in self.metadata.topics if self.subscriptions.matches_pattern(t)]
        if self.subscriptions.subscribe_from_pattern(topics):
            self.metadata.request_update_for_new_topics()

    def new_snapshot(self) -> MetadataSnapshot:
        """The topics of interest as metadata has them now (CP-05)."""
        return MetadataSnapshot(
            self.subscriptions.metadata_topics(),
            self.metadata.topics,
            self.metadata.update_version,
            self.config.client_rack,
        )

    # -- joining ---------------------------------------------------------------------------------

    def protocols(self) -> tuple[JoinGroupRequestProtocol, ...]:
        """One entry for each assignor; also records the joined subscription (CJ-24)."""
        self.joined_subscription = self._topics_now()
        topics = tuple(sorted(self.joined_subscription))
        return tuple(
            JoinGroupRequestProtocol(
                name=assignor.name,
                metadata=encode_subscription(
                    Subscription(
                        topics=topics,
                        user_data=assignor.subscription_user_data(topics),
                        owned_partitions=self.subscriptions.assigned(),
                        generation_id=self._generation_for(assignor),
                        rack_id=self.config.client_rack,
                    ),
                    self._version_for(assignor),
                ),
            )
            for assignor in self.assignors
        )

    def _generation_for(self, assignor: Assignor) -> int:
        if assignor.name in _SIMPLE and not self.behaviour.simple_generation:
            return -1
        return self.generation.generation_id

    def _version_for(self, assignor: Assignor) -> int:
        version = self.behaviour.cooperative_subscription_version
        if version is not None and assignor.name == "cooperative-sticky":
            return version
        return self.behaviour.subscription_version

    def assignor(self, name: str | None) -> Assignor:
        """The assignor of that name.

        Raises:
            JavaError: the group has chosen one that this client does not have.

        """
        for assignor in self.assignors:
            if assignor.name == name:
                return assignor
        raise JavaError.illegal_state(f"Coordinator selected invalid assignment protocol: {name}")

    def on_join_prepare(self, timer: Timer, generation_id: int, member_id: str) -> Steps[bool]:
        """Commit, then give up what is lost or revoked (CJ-12)."""
        return self._steps.prepare(timer, generation_id, member_id)

    def on_leader_elected(
        self, protocol: str, members: Sequence[JoinGroupResponseMember], *, skip_assignment: bool
    ) -> Steps[dict[str, bytes]]:
        """Assign for the whole group (CS-03)."""
        return self.leader.assign_group(protocol, members, skip_assignment=skip_assignment)

    def on_join_complete(self, generation: Generation, assignment: bytes) -> Steps[None]:
        """Take the assignment in, with callbacks (CC-01)."""
        return self._steps.complete(generation, assignment)

    def on_leave_prepare(self) -> Steps[None]:
        """Give everything up before leaving (CL-05)."""
        return self._steps.leave()

    # -- closing ---------------------------------------------------------------------------------

    def close(self, timer: Timer) -> Steps[None]:
        """Last commit, waiting commits, then leave (CL-06)."""
        self.client.wakeups_disabled = True
        failure = None
        try:
            yield from self.offsets.close(timer)
        except JavaError as error:
            failure = error
        yield from self.close_membership(timer)
        if failure is not None:
            raise failure
