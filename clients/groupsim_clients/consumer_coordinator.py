"""What a consumer adds to membership: subscription, assignment, callbacks (``ConsumerCoordinator``).

Committing and fetching offsets is in ``offsets``; this module has the prepare step (CJ-12 to CJ-18),
the leader's step (CS-03 to CS-12), the completion step (CC-01 to CC-11), leaving (CL-05) and the
coordinator's part of ``poll()`` (CP-01 to CP-10).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groupsim.protocol.consumer_protocol import (
    Assignment,
    SchemaError,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupsim.protocol.messages import JoinGroupRequestProtocol, JoinGroupResponseMember
from groupsim_clients.abstract_coordinator import AbstractCoordinator
from groupsim_clients.assignors import Assignor, GroupMember, RebalanceProtocol
from groupsim_clients.assignors.base import AssignorFailure, PartitionInfo
from groupsim_clients.behaviour import Behaviour
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import ConfigError, JavaError
from groupsim_clients.generation import Generation
from groupsim_clients.listener import ListenerInvoker
from groupsim_clients.network_client import NetworkClient
from groupsim_clients.offsets import Offsets
from groupsim_clients.subscription_state import SubscriptionState, partitions_text
from groupsim_clients.timing import FOREVER, Context, Steps, Timer

__all__ = ["ConsumerCoordinator", "MetadataSnapshot", "common_protocol"]

_SIMPLE = frozenset({"range", "roundrobin"})
_BUILT_IN = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


_NO_RACKS: frozenset[str | None] = frozenset()


class MetadataSnapshot:
    """Topics of interest as they were at one metadata version (CP-05).

    Per partition the set of its racks, empty when the client has no rack itself.
    """

    __slots__ = ("partitions", "version")

    def __init__(
        self,
        topics: Iterable[str],
        cluster: Mapping[str, tuple[PartitionInfo, ...]],
        version: int,
        rack: str | None,
    ) -> None:
        self.version = version
        self.partitions = {
            topic: (_NO_RACKS,) * len(cluster[topic])
            if rack is None
            else tuple(frozenset(info.racks) for info in cluster[topic])
            for topic in topics
            if topic in cluster
        }

    def matches(self, other: MetadataSnapshot) -> bool:
        """The same version, or the same content."""
        return self.version == other.version or self.partitions == other.partitions

    def __str__(self) -> str:
        """As Java prints it, topics sorted."""
        topics = []
        for topic in sorted(self.partitions):
            infos = ", ".join(
                f"racks={sorted(racks, key=str)}" if racks else "NO_RACKS"
                for racks in self.partitions[topic]
            )
            topics.append(f"{topic}=[{infos}]")
        return f"(version{self.version}: {{{', '.join(topics)}}})"


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
        self.metadata_snapshot = self._snapshot()
        self.assignment_snapshot: MetadataSnapshot | None = None
        self.group_metadata = Generation(-1, "", None)
        self.invoker = ListenerInvoker(ctx, subscriptions, lambda: self.generation.generation_id)
        self.offsets = Offsets(self, subscriptions)
        self.invoker.blocks_heartbeats = int(behaviour.callbacks_block_heartbeats)
        self._prepare_timer: Timer | None = None
        self._downgraded = False
        self._death_told = False
        self._own_plan: bytes | None = None
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
                f"subscription has changed from {_topics(joined)} at the beginning of the rebalance "
                f"to {_topics(now)}",
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
        chosen = max(self._assignor(name).supported_protocols)
        self._downgraded = self.cooperative and chosen is RebalanceProtocol.EAGER
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
            self.metadata_snapshot = self._snapshot()

    def update_pattern_subscription(self) -> None:
        """Subscribe to the topics that match now."""
        topics = [t for t in self.metadata.topics if self.subscriptions.matches_pattern(t)]
        if self.subscriptions.subscribe_from_pattern(topics):
            self.metadata.request_update_for_new_topics()

    def _snapshot(self) -> MetadataSnapshot:
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

    def on_join_prepare(self, timer: Timer, generation_id: int, member_id: str) -> Steps[bool]:
        """Commit, then give up what is lost or revoked (CJ-12 to CJ-18)."""
        if self._prepare_timer is None:
            self._prepare_timer = Timer(self.ctx, self.config.max_poll_interval_ms)
        if self.config.enable_auto_commit and not (
            yield from self._commit_before_join(timer, self._prepare_timer)
        ):
            return False
        error = None
        assigned = self.subscriptions.assigned()
        first = self.behaviour.revokes_before_first_join and not assigned
        if (generation_id == -1 or not member_id or self.loses_all) and not first:  # CJ-14
            if assigned:
                self.ctx.log(
                    "info",
                    "Giving away all assigned partitions as lost since generation/memberID has been "
                    "reset,indicating that consumer is in old state or no longer part of the group",
                )
                error = yield from self._give_up("lost", assigned, ())
        elif self.protocol is RebalanceProtocol.EAGER:  # CJ-15
            error = yield from self._give_up("revoked", assigned, ())
        else:  # CJ-16
            subscription = self.subscriptions.subscription
            dropped = tuple(p for p in assigned if p.topic not in subscription)
            if dropped or self.behaviour.revokes_at_session_end:
                kept = tuple(p for p in assigned if p.topic in subscription)
                error = yield from self._give_up("revoked", dropped, kept)
        self.is_leader = False  # CJ-17
        self.subscriptions.reset_group_subscription()
        if self.loses_all or not self.cooperative:
            self._unpaced()
        self.loses_all = False
        self._prepare_timer = None
        self.offsets.forget_prepare_commit()
        if error is not None:
            raise JavaError.from_callback(error)
        return True

    def _unpaced(self) -> None:
        """What was held is given up: no interval before the join that follows."""
        if self.behaviour.join_interval_ms:
            self.join_not_before_ms = 0

    def _commit_before_join(self, timer: Timer, prepare_timer: Timer) -> Steps[bool]:
        offsets = self.offsets
        if offsets.prepare_commit is None:
            if self.protocol is RebalanceProtocol.EAGER:
                offsets.advance_positions()  # what has been read so far counts
                self.subscriptions.mark_pending_revocation()
            offsets.start_prepare_commit()
        commit = offsets.prepare_commit
        if commit is None:
            return True
        poll_timer = timer if timer.remaining_ms < prepare_timer.remaining_ms else prepare_timer
        yield from self.client.poll_until(commit, poll_timer)
        finished = True
        if prepare_timer.expired:
            self.ctx.log(
                "error",
                "Asynchronous auto-commit of offsets failed: joinPrepare timeout. Will continue to join group",
            )
        elif not commit.done or commit.retriable:
            finished = False
        elif commit.error is not None:
            self.ctx.log(
                "error",
                f"Asynchronous auto-commit of offsets failed: {commit.error.detail}. Will continue to join group.",
            )
        if commit.done:
            offsets.forget_prepare_commit()
        if not finished:
            yield from poll_timer.sleep(self.config.retry_backoff_ms)
        return finished

    def _give_up(
        self,
        callback: str,
        partitions: tuple[TopicPartition, ...],
        kept: tuple[TopicPartition, ...],
    ) -> Steps[JavaError | None]:
        error = yield from self.invoker.invoke(callback, partitions)
        self.subscriptions.assign(kept)
        self.invoker.gave_up(callback, partitions)
        return error

    # -- leading ---------------------------------------------------------------------------------

    def on_leader_elected(
        self, protocol: str, members: Sequence[JoinGroupResponseMember], *, skip_assignment: bool
    ) -> Steps[dict[str, bytes]]:
        """Assign for the whole group (CS-03 to CS-11)."""
        assignor = self._assignor(protocol)
        group = self._group(members)
        topics = {topic for member in group for topic in member.subscription.topics}
        yield from self._update_group_subscription(topics)  # CS-05
        self.is_leader = True  # CS-06
        if skip_assignment:  # CS-07
            self.ctx.log(
                "info",
                "Skipped assignment for returning static leader at generation "
                f"{self.generation.generation_id}. The static leader will continue with its existing "
                "assignment.",
            )
            self.assignment_snapshot = self.metadata_snapshot
            if self.behaviour.plans_when_skipped:
                plan = self._assign(assignor, group)
                own = plan.get(self.generation.member_id, ())
                self._own_plan = self._encoded(own)
            return {}
        plan = self._assign(assignor, group)  # CS-08
        trusted = assignor.name == "cooperative-sticky" and self.behaviour.trusts_cooperative_sticky
        if self.protocol is RebalanceProtocol.COOPERATIVE and not trusted:
            _validate_cooperative(self.ctx, group, plan)  # CS-09
        if assignor.name not in _BUILT_IN or not self.behaviour.trusts_builtin_topics:
            yield from self._check_assigned_topics(plan, topics)  # CS-10
        self.assignment_snapshot = self.metadata_snapshot  # CS-11
        self.ctx.log(
            "info",
            f"Finished assignment for group at generation {self.generation.generation_id}: "
            + _plan_text(plan),
        )
        return {member_id: self._encoded(partitions) for member_id, partitions in plan.items()}

    def _encoded(self, partitions: tuple[TopicPartition, ...]) -> bytes:
        version = self.behaviour.assignment_version
        if version is None:
            version = self.behaviour.subscription_version
        return encode_assignment(Assignment(partitions=partitions), version)

    def _assign(
        self, assignor: Assignor, group: Sequence[GroupMember]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        try:
            return assignor.assign(self.metadata.topics, group)
        except AssignorFailure as error:
            raise JavaError(error.java_exception, error.detail, kafka=False) from error
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            # an assignor of the user's own: any runtime exception fails the join (CS-01)
            raise JavaError(type(error).__name__, str(error), kafka=False) from error

    def _group(self, members: Sequence[JoinGroupResponseMember]) -> tuple[GroupMember, ...]:
        if not self.behaviour.leaves_out_bad_members:
            return tuple(self._group_member(member) for member in members)  # CS-04
        group = []
        for member in members:
            try:
                group.append(self._group_member(member))
            except JavaError:
                self.ctx.log("error", f"Failed to parse metadata of member {member.member_id}")
        return tuple(group)

    def _group_member(self, member: JoinGroupResponseMember) -> GroupMember:
        try:
            subscription = decode_subscription(member.metadata)
        except SchemaError as error:
            raise JavaError("SchemaException", str(error)) from error
        return GroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            subscription=subscription,
        )

    def _assignor(self, name: str | None) -> Assignor:
        for assignor in self.assignors:
            if assignor.name == name:
                return assignor
        raise JavaError.illegal_state(f"Coordinator selected invalid assignment protocol: {name}")

    def _update_group_subscription(self, topics: Iterable[str]) -> Steps[None]:
        if self.subscriptions.group_subscribe(topics):
            self.metadata.request_update_for_new_topics()
        if not self.behaviour.leader_waits_for_metadata:
            self.metadata.request_update(reset_backoff=True)
            return
        if not (yield from self.client.ensure_fresh_metadata(Timer(self.ctx, FOREVER))):
            raise JavaError.timeout("metadata")
        self.maybe_update_subscription_metadata()

    def _check_assigned_topics(
        self, plan: Mapping[str, tuple[TopicPartition, ...]], topics: set[str]
    ) -> Steps[None]:
        assigned = {partition.topic for partitions in plan.values() for partition in partitions}
        if topics - assigned:
            self.ctx.log(
                "warn",
                "The following subscribed topics are not assigned to any members: "
                f"{_topics(topics - assigned)} ",
            )
        if assigned - topics:
            self.ctx.log(
                "info",
                "The following not-subscribed topics are assigned, and their metadata will be "
                f"fetched from the brokers: {_topics(assigned - topics)}",
            )
            yield from self._update_group_subscription(topics | assigned)

    # -- completing ------------------------------------------------------------------------------

    def on_join_complete(self, generation: Generation, assignment: bytes) -> Steps[None]:
        """Take the assignment in, with callbacks (CC-01 to CC-11)."""
        if self.behaviour.everybody_watches:
            self.subscriptions.reset_group_subscription()
            self.metadata_snapshot = self.assignment_snapshot = self._snapshot()
        elif not self.is_leader:  # CC-01
            self.assignment_snapshot = None
        assignor = self._assignor(generation.protocol_name)
        self.group_metadata = generation
        owned = self.subscriptions.assigned()
        decoded = _decode(assignment)  # CC-02
        assigned = tuple(sorted(set(decoded.partitions)))
        if not self.subscriptions.matches_subscription(assigned):  # CC-03
            self.request_rejoin(
                "received assignment does not match the current subscription",
                f"received assignment {partitions_text(decoded.partitions)} does not match the "
                f"current subscription {self.subscriptions.pretty()}; it is likely that the "
                "subscription has changed since we joined the group, will re-join with current "
                "subscription",
            )
            return
        if self._downgraded:
            owned = yield from self._give_up_after_downgrade(owned)
        held = set(owned)
        added = tuple(p for p in assigned if p not in held)  # CC-04
        error = None
        if self.protocol is RebalanceProtocol.COOPERATIVE:  # CC-05
            error = yield from self._revoke_moved(owned, set(assigned))
        self._widen_joined_subscription(assigned)  # CC-06
        hook_error = self._tell_assignor(assignor, decoded, generation.generation_id)  # CC-07
        error = error or hook_error
        self.offsets.restart_auto_commit()  # CC-08
        self.subscriptions.assign(assigned)  # CC-09
        if added or self.behaviour.tells_unchanged or not self.cooperative:
            raised = yield from self.invoker.invoke("assigned", added)  # CC-10
            error = error or raised
        else:
            self.invoker.unchanged()
        self._compare_own_plan(assignment)
        if error is not None:  # CC-11
            raise error if error.kafka else JavaError.from_callback(error)

    def _revoke_moved(
        self, owned: tuple[TopicPartition, ...], assigned: set[TopicPartition]
    ) -> Steps[JavaError | None]:
        revoked = tuple(p for p in owned if p not in assigned)
        if not revoked:
            return None
        kept = tuple(p for p in self.subscriptions.assignment if p in assigned)
        if self.behaviour.changes_before_revoking:
            self.subscriptions.assign(kept)
            self.invoker.gave_up("revoked", revoked)
        error = yield from self.invoker.invoke("revoked", revoked)
        self._unpaced()
        self.request_rejoin(
            "need to revoke partitions and re-join",
            f"need to revoke partitions {partitions_text(revoked)} as indicated by the current "
            "assignment and re-join",
        )
        if not self.behaviour.changes_before_revoking:
            self.subscriptions.assign(kept)
            self.invoker.gave_up("revoked", revoked)
        return error

    def _give_up_after_downgrade(
        self, owned: tuple[TopicPartition, ...]
    ) -> Steps[tuple[TopicPartition, ...]]:
        """The group has gone from COOPERATIVE to EAGER: revoke what an eager member would have."""
        self._downgraded = False
        if owned:
            error = yield from self._give_up("revoked", owned, ())
            if error is not None:
                raise JavaError.from_callback(error)
        return ()

    def _compare_own_plan(self, assignment: bytes) -> None:
        """A leader that was told to skip compares what it got with what it would have assigned."""
        own, self._own_plan = self._own_plan, None
        if own is not None and own != assignment:
            self.request_rejoin("the leader was reassigned an old plan")

    def _widen_joined_subscription(self, assigned: Sequence[TopicPartition]) -> None:
        joined = self.joined_subscription
        if not self.subscriptions.has_pattern or joined is None:
            return
        more = {partition.topic for partition in assigned} - joined
        if more:
            if self.subscriptions.subscribe_from_pattern(self.subscriptions.subscription | more):
                self.metadata.request_update_for_new_topics()
            self.joined_subscription = joined | more

    def _tell_assignor(
        self, assignor: Assignor, assignment: Assignment, generation_id: int
    ) -> JavaError | None:
        try:
            assignor.on_assignment(assignment, generation_id)
        except AssignorFailure as error:
            return JavaError(error.java_exception, error.detail, kafka=False)
        return None

    # -- leaving ---------------------------------------------------------------------------------

    def on_leave_prepare(self) -> Steps[None]:
        """One callback with everything, then nothing is assigned (CL-05).

        Raises:
            JavaError: what the callback threw, wrapped (CL-07).

        """
        dropped = self.subscriptions.assigned()
        if not self.subscriptions.has_auto_assigned or not dropped:
            return
        generation = self.generation
        lost = generation.generation_id == -1 or not generation.member_id or self.state.rebalancing
        error = yield from self._give_up("lost" if lost else "revoked", dropped, ())
        if error is not None:
            raise JavaError.from_callback(error)

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


def _decode(assignment: bytes) -> Assignment:
    if len(assignment) < 2:
        raise JavaError.illegal_state(
            "There are insufficient bytes available to read assignment from the sync-group response "
            f"(actual byte size {len(assignment)}) , this is not expected; it is possible that the "
            "leader's assign function is buggy and did not return any assignment for this member, or "
            "because static member is configured and the protocol is buggy hence did not get the "
            "assignment for this member"
        )
    try:
        return decode_assignment(assignment)
    except SchemaError as error:
        raise JavaError("SchemaException", str(error)) from error


def _validate_cooperative(
    ctx: Context,
    group: Sequence[GroupMember],
    plan: Mapping[str, tuple[TopicPartition, ...]],
) -> None:
    """Nothing may be taken from one member and given to another in the same plan (CS-09)."""
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member in group:
        if member.member_id in plan:
            owned, given = set(member.subscription.owned_partitions), set(plan[member.member_id])
            added |= given - owned
            revoked |= owned - given
    moved = sorted(added & revoked)
    if moved:
        ctx.log(
            "error",
            "With the COOPERATIVE protocol, owned partitions cannot be reassigned to other members; "
            f"however the assignor has reassigned partitions {partitions_text(moved)} which are still "
            "owned by some members",
        )
        raise JavaError.illegal_state(
            "Assignor supporting the COOPERATIVE protocol violates its requirements"
        )


def _topics(topics: Iterable[str]) -> str:
    return "[" + ", ".join(sorted(topics)) + "]"


def _plan_text(plan: Mapping[str, tuple[TopicPartition, ...]]) -> str:
    members = (
        f"{member_id}=Assignment(partitions={partitions_text(partitions)})"
        for member_id, partitions in plan.items()
    )
    return "{" + ", ".join(members) + "}"
