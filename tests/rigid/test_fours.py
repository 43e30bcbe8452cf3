"""Four numbers at once (`rigid.fours`) against NumPy, and four contacts at once against one after the other."""

import numpy as np
import pytest

from contactdynamics._jit import kernel
from contactdynamics.rigid import fours, order
from contactdynamics.rigid.equations import (
    diagonal_books,
    diagonal_fill,
    diagonal_measure,
    diagonal_rows,
    diagonal_sweep,
)
from contactdynamics.rigid.equations.contract import Mobility
from contactdynamics.rigid.fetch import lines
from contactdynamics.rigid.search.pairs import pair_arrays
from contactdynamics.rigid.step import Step
from contactdynamics.scenes.materials import COLUMNS, FRICTION_1
from contactdynamics.state import DRIVEN, FREE

FLAT = {2: 2.0, 3: 2.5}  # m r^2 / I of disks and spheres


@kernel
def _law(a, b, f):
    """All operations, of numbers or of fours."""
    x = (a + b) * f - 2.0 * b / (a * a + 1.0)
    return fours.larger(fours.smaller(x, 3.0 - a), 0.0) + fours.root(b * b + 1.0) - fours.unsigned(x - f)


@kernel
def _by_fours(table, rows, f, out):
    """Write what `_law` gives for columns 0 and 5 of four rows, lane by lane, and their sum; spreads column 3."""
    c = fours.columns_of_8(table, rows[0], rows[1], rows[2], rows[3])
    found = _law(c[0], c[5], f)
    out[0], out[1], out[2], out[3] = fours.lanes(found)
    out[4] = fours.total(found + fours.spread(0.5))
    side = fours.put_side_by_side(out[0], out[1], out[2], out[3])
    fours.set_columns_of_8(table, rows[0], rows[1], rows[2], rows[3], (c[7], c[1], c[2], side, c[4], c[5], c[6], c[0]))


@kernel
def _by_ones(a, b, f):
    return _law(a, b, f)


@kernel
def _apart(a, b, masses):
    one = fours.put_side_by_side(masses[a[0]], masses[a[1]], masses[a[2]], masses[a[3]])
    two = fours.put_side_by_side(masses[b[0]], masses[b[1]], masses[b[2]], masses[b[3]])
    return fours.apart((a[0], a[1], a[2], a[3]), (b[0], b[1], b[2], b[3]), one, two)


@pytest.mark.parametrize("seed", range(5))
def test_fours_do_what_four_numbers_do_one_by_one(seed):
    rng = np.random.default_rng(seed)
    table, rows = rng.normal(size=(9, 8)), rng.permutation(9)[:4].astype(np.uint32)
    before, out = table.copy(), np.empty(5)
    _by_fours(table, rows, 1.5, out)
    for place, row in enumerate(rows):
        assert out[place] == _by_ones(before[row, 0], before[row, 5], 1.5)  # to the bit
    assert out[4] == pytest.approx(out[:4].sum() + 2.0, rel=1e-14)
    wanted = before.copy()
    wanted[rows, 0], wanted[rows, 3], wanted[rows, 7] = before[rows, 7], out[:4], before[rows, 0]
    np.testing.assert_array_equal(table, wanted)


def test_rows_of_four_come_and_go_as_columns():
    table, last = np.arange(20.0).reshape(5, 4), np.zeros((5, 4))

    @kernel
    def copy(table, last):
        fours.set_columns_of_4(last, 4, 1, 0, 2, fours.columns_of_4(table, 4, 1, 0, 2))

    copy(table, last)
    np.testing.assert_array_equal(last[[4, 1, 0, 2]], table[[4, 1, 0, 2]])
    assert not last[3].any()


def test_contacts_are_apart_where_no_free_body_is_in_two_of_them():
    rng, masses, seen = np.random.default_rng(3), np.ones(12), set()
    masses[:4] = 0.0  # nothing moves these
    for _ in range(300):
        a, b = rng.integers(0, 12, 4).astype(np.uint32), rng.integers(0, 12, 4).astype(np.uint32)
        b = np.where(a == b, (b + 1) % 12, b).astype(np.uint32)
        free = [k for k in (*a, *b) if masses[k] > 0.0]
        # two bodies of one contact differ, and are not compared
        wanted = len(set(free)) == len(free)
        assert bool(_apart(a, b, masses)) == wanted
        seen.add(wanted)
    assert seen == {True, False}


def _contacts(rng, count, bodies, planes):
    """Random contacts of ``bodies`` balls, the first ``planes`` of which do not move; rows of velocities."""
    contacts, rows = diagonal_rows.diagonal_contacts(count), lines(bodies)
    rows[:, :6], rows[:, 6], rows[:, 7] = rng.normal(size=(bodies, 6)), rng.uniform(0.5, 2.0, bodies), 1.0
    rows[:planes, 6] = 0.0
    contacts.a[:] = rng.integers(0, bodies, count)
    contacts.b[:] = planes + rng.integers(0, bodies - planes, count)
    contacts.b[:] = np.where(
        contacts.a == contacts.b, planes + (contacts.b + 1 - planes) % (bodies - planes), contacts.b
    )
    normal = rng.normal(size=(count, 3))
    contacts.row[:, :3] = normal / np.linalg.norm(normal, axis=1)[:, None]
    contacts.row[:, 3:6] = rng.uniform(0, 1, count)[:, None] * contacts.row[:, :3]
    contacts.row[:, 6], contacts.row[:, 7] = rng.normal(size=count) * 0.1, rng.uniform(0, 0.8, count)
    contacts.sink[:] = rng.uniform(0.0, 3.0, count)
    return contacts, rows


# Many bodies: contacts are solved four at once; few: one after the other, for they have bodies in common.
@pytest.mark.parametrize(("count", "bodies"), [(3, 40), (4, 4000), (203, 4000), (203, 60), (40, 8)])
@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.6])
def test_a_sweep_by_fours_is_one_contact_after_the_other(count, bodies, beta):
    rng = np.random.default_rng(count + bodies)
    contacts, rows = _contacts(rng, count, bodies, 3)
    mobility, last = Mobility(np.zeros((0, 3, 3)), FLAT[3], 3), rng.normal(size=(count, 4))
    row, one, kept, change = contacts.row.copy(), rows.copy(), last.copy(), 0.0
    some = rng.permutation(count).astype(np.uint32)
    for k in range(count):
        change += diagonal_sweep.sweep_contacts(one, mobility, contacts, some[k : k + 1], beta, kept)
    wanted, contacts.row[:] = contacts.row.copy(), row
    assert diagonal_sweep.sweep_contacts(rows, mobility, contacts, some, beta, last) == pytest.approx(change, rel=1e-12)
    np.testing.assert_allclose(contacts.row, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows, one, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(last[:, :3], kept[:, :3])


@pytest.mark.parametrize("count", [1, 4, 203])
def test_the_residual_by_fours_has_the_bits_of_one_contact_after_the_other(count):
    rng = np.random.default_rng(count)
    contacts, rows = _contacts(rng, count, 30, 3)
    mobility, some = Mobility(np.zeros((0, 3, 3)), FLAT[2], 2), rng.permutation(count).astype(np.uint32)
    shares, alone = np.empty((count, 2)), np.empty((count, 2))
    found = diagonal_measure.measure_contacts(rows, mobility, contacts, some, shares)
    opening, power, sums = contacts.opening.copy(), contacts.power.copy(), np.zeros(8)
    losses = np.empty(count)
    for k in some:
        one = diagonal_measure.measure_contacts(rows, mobility, contacts, np.array([k], np.uint32), alone)
        sums += np.array(one)
        losses[k] = one[3]
    np.testing.assert_array_equal(shares, alone)
    np.testing.assert_array_equal(opening, contacts.opening)
    np.testing.assert_array_equal(power, contacts.power)
    assert found[2] == losses.argmax()
    assert found[3] == losses.max()
    assert found[7] == sums[7]
    assert np.array(found)[[0, 1, 4, 5, 6]] == pytest.approx(sums[[0, 1, 4, 5, 6]], rel=1e-12)
    assert 0 < found[7] < count or count < 200  # some sink, some do not


def _pairs(rng, contacts, laws):
    """Pairs for random contacts, in another order; the last ones are of planes. Also the pair of each contact."""
    count = len(contacts.a)
    pairs, places = pair_arrays(count)._replace(balls=2 * count // 3), rng.permutation(count).astype(np.uint32)
    pairs.a[places], pairs.b[places] = contacts.a, contacts.b
    pairs.normal[places], pairs.gap[:] = contacts.row[:, :3], rng.normal(size=count) * 1e-3
    pairs.impulse[:], pairs.lost[:] = rng.normal(size=(count, 3)), rng.uniform(0.0, 1e-2, count)
    pairs.law[:] = np.where(rng.uniform(size=count) < 0.9, 0, rng.integers(0, laws, count))  # mostly the same
    contacts.pair[:] = places
    return pairs, places


@pytest.mark.parametrize("anticipate", [False, True])
@pytest.mark.parametrize(("count", "bodies"), [(1, 40), (4, 4000), (203, 4000), (203, 12)])
def test_filling_by_fours_is_one_contact_after_the_other(count, bodies, anticipate):
    rng = np.random.default_rng(count + bodies)
    (contacts, rows), laws = _contacts(rng, count, bodies, 3), np.zeros((3, COLUMNS))
    rows[:, 7], laws[:, FRICTION_1] = rng.uniform(0.5, 2.0, bodies), rng.uniform(0.1, 0.9, 3)
    pairs, places = _pairs(rng, contacts, 3)
    mobility, step = Mobility(np.zeros((0, 3, 3)), FLAT[3], 3), Step(0, 1e-3, 0.0, anticipate, False, rows, rows.copy())
    found = {}
    for fill in (diagonal_fill.fill_some, diagonal_fill.fill_fours):
        out, free = diagonal_rows.diagonal_contacts(count), step.free.copy()
        found[fill] = fill(pairs, step, free, laws, mobility, places, 0, count, out), free, out
    (alone, one, wanted), (scale, four, out) = found.values()
    assert scale == pytest.approx(alone, rel=1e-12)
    np.testing.assert_allclose(four, one, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(four[:, 6:], step.free[:, 6:])
    for name in ("pair", "a", "b", "status"):
        np.testing.assert_array_equal(getattr(out, name), getattr(wanted, name))
    np.testing.assert_allclose(out.row, wanted.row, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(out.sink, wanted.sink, rtol=1e-14, atol=1e-14)  # a difference


@pytest.mark.parametrize("count", [1, 4, 203])
def test_keeping_by_fours_is_one_contact_after_the_other(count):
    rng = np.random.default_rng(count)
    contacts, rows = _contacts(rng, count, 60, 9)
    pairs, _ = _pairs(rng, contacts, 3)
    row, sliding = contacts.row, rng.uniform(size=count) < 0.5
    side = np.cross(row[:, :3], rng.normal(size=(count, 3)))
    push = np.linalg.norm(row[:, 3:6], axis=1) * row[:, 7] * np.where(sliding, 1.0, 0.3) / np.linalg.norm(side, axis=1)
    row[:, 3:6] += push[:, None] * side
    row[::5, 3:6] = 0.0
    before, kind = rows + rng.normal(size=rows.shape) * [1, 1, 1, 1, 1, 1, 0, 0], np.where(rows[:, 6] > 0, FREE, DRIVEN)
    every, mobility = np.arange(count, dtype=np.uint32), Mobility(np.zeros((0, 3, 3)), FLAT[3], 3)
    diagonal_measure.measure_contacts(rows, mobility, contacts, every, np.empty((count, 2)))
    step, found = Step(0.0, 1e-3, 0.0, False, False, before, before), []
    for fours_ in (False, True):
        kept, works = pairs._replace(memory=pairs.memory.copy(), status=pairs.status.copy()), np.zeros((3, 4))
        given = rows, contacts, FLAT[3], 0.5, kept, 0, count
        if fours_:
            sums = diagonal_books.keep_fours(step, rows, kind, True, kept, contacts, FLAT[3], 0.5, 0, count, works)
        else:
            sums = *diagonal_books.store_some(*given), diagonal_books.book_some(
                step, rows, kind, kept, contacts, 0, count, works
            )  # fmt: skip
        found.append((kept, contacts.status.copy(), works, sums))
    (one, status, works, sums), (four, again, by_fours, more) = found
    np.testing.assert_array_equal(four.memory, one.memory)
    np.testing.assert_array_equal(four.status, one.status)
    np.testing.assert_array_equal(again, status)
    assert count < 200 or len(set(status.tolist())) == 3  # some open, stick, slide
    np.testing.assert_allclose(by_fours, works, rtol=1e-12, atol=1e-13)
    assert more == pytest.approx(sums, rel=1e-12)
    assert works[:, 3].any() or count < 200  # of driven bodies


@pytest.mark.parametrize("length", [*range(1, 14), 100, 2003])
def test_contacts_in_a_row_come_from_distant_places(length):
    out = np.empty(length, dtype=np.int64)
    order.interleave(np.arange(length), out)
    assert sorted(out) == list(range(length))
    stride = (length + order.STREAMS - 1) // order.STREAMS
    if length % order.STREAMS == 0:
        assert (np.diff(np.sort(out.reshape(-1, order.STREAMS)), axis=1) == stride).all()
