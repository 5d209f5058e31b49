"""The map that iterates as Java's does, while keys come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groupsim.protocol.java import JavaHashMap


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(0, 2))))
def test_order_is_that_of_a_fresh_sort(steps: list[tuple[bool, int, int]]) -> None:
    """A-06, PR-20: what is kept between changes never shows."""
    kept: JavaHashMap[int] = JavaHashMap()
    asked = 0
    for add, number, look in steps:
        key = f"member-{number}"
        if add:
            kept[key] = number
        else:
            kept.discard(key)
        fresh: JavaHashMap[int] = JavaHashMap()
        fresh._capacity = kept.capacity
        for name in kept._spreads:  # in insertion order
            fresh._spreads[name] = kept._spreads[name]
            dict.__setitem__(fresh, name, 0)
        fresh._order = None
        if look:
            asked += 1
            order = fresh.java_order()
            assert kept.first() == (order[0] if order else None)
            if look == 2:
                assert list(kept) == order
    assert asked <= len(steps)


def test_first_of_a_shrinking_map_needs_no_sorting() -> None:
    """PR-20: thousands of leaders that go one after the other."""
    names: JavaHashMap[None] = JavaHashMap()
    for number in range(5000):
        names[f"member-{number}"] = None
    order = list(names)
    kept = names._order
    for name in order:
        assert names.first() == name
        del names[name]
        assert names._order is kept
    assert names.first() is None
    names.clear()
    assert list(names) == []
