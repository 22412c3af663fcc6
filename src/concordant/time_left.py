"""How long work takes: what a stage of it says by its steps, and what is left of all that a command does.

Each command has a plan of its pieces of work and what each usually takes, by what is known of the log. A formula may be
wrong by a factor (``UNTRIED``): by it alone all that can be said is between what and what the time left lies. Steps
that are done tell more, and so does an earlier run of the same command (``Before``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import TypeVar

from concordant import stages
from concordant.stages import SURE, WIDE, Aside, Stage, middle_of

T = TypeVar("T")
TRUST = 0.25
"""Which share of what is to come the pieces that are over have to be before their factor counts half."""
AGAIN = re.compile(r"(.*) \((\d+)\)")
"""The name of a piece that came more than once, and the how manieth it was."""
BEYOND = 0.5
"""What is left of a piece that takes longer than it was thought to, of the seconds beyond these."""
SLOWER = 2.0
"""By how much a machine may be slower, or faster, than a usual one."""
UNTRIED = 3.0
"""By which factor the formula of a plan may be wrong."""
PARTED = 1.2
"""The same of a piece of which a part tells how long it takes."""
SEEN, OTHER, OTHERS, GROWN = 1.15, 0.1, 1.3, 0.3
"""The same of what was seen in an earlier run; how much it matters that this one read something else, by which factor
more that may be wrong, and by which power of how much more there is to do."""
FAR = 4.0
"""How much sooner or later than an earlier run one may be as far, at most, that this says anything."""
NEAR = 0.35
"""How far what is known of a log may be from that of an earlier run, as a logarithm, that it took about as long."""
STEADY = 1.1
"""By which factor steps that are done may be wrong about others."""
ROUGHLY = 1.25
"""By which factor the speed of the machine may seem to have changed when it has not."""
MANY = 100
"""Stages with steps that are kept at most."""
BLIND = 4.0
"""Seconds more that a first run may take where no steps tell: of what is quick a formula may be wrong by any factor."""
LITTLE = 0.05
"""Seconds that are little beside what pieces usually take."""
PART = " > "
"""What stands in a plan between a piece and a part of it."""


Cost = Callable[[Mapping[str, float]], float]
"""Seconds that a piece of work takes on a usual machine, of what is known: rows, distinct judgments, queries, …"""


@dataclass(frozen=True)
class Before:
    """An earlier run of the same command with the same options, on what may be another log."""

    thought: Mapping[str, Mapping[str, float]]
    """By the piece that went on, and how often more became known in it, what was then usual of all pieces."""
    took: Mapping[str, float]
    """Seconds of each piece that came."""
    after: Mapping[str, float]
    """Seconds between the end of each and the next piece, or the end of all."""
    course: Mapping[str, Sequence[tuple[float, float]]]
    """Of pieces with steps, which share of them was done after how many seconds."""
    began: Mapping[str, int]
    """How often each piece began."""
    known: Mapping[str, float]
    """How much there was to do, and, by the names of pieces with steps, how many these were."""
    slower: float = 1.0
    """How much longer its machine took than a usual one."""
    same: bool = True
    """Whether it read what is read now, by its name."""
    size: float = 0.0
    """Bytes of what it read."""


@dataclass(frozen=True)
class Expected:
    """How many seconds a piece of work takes, and by which factor that may be wrong."""

    seconds: float
    sure: float
    seen: bool = False
    """Whether an earlier run tells."""
    more: float = 1.0
    """How many times as long as in that."""
    course: Sequence[tuple[float, float]] = ()
    """Which share of its steps was done when, there."""
    whole: float = 0.0
    """How many steps these were."""
    near: bool = True
    """Whether there was about as much to do."""


class Whole:
    """All that a command does: its pieces of work by the names of their stages, and what each usually takes.

    A stage inside a piece is a part of it, whatever its name; a piece that comes twice is one. A plan may name a part,
    too, ``"piece > part"``, with what it takes in all steps of the piece: its own steps tell how long the piece takes.
    """

    def __init__(self) -> None:
        self.plan: dict[str, Cost] = {}
        self.known: dict[str, float] = {}
        self.usual: dict[str, float | None] = {}
        """Seconds of a usual machine, None where what they depend on is not known yet."""
        self.took: dict[str, float] = {}
        self.after: dict[str, float] = {}
        """Seconds between the end of a piece and the next one."""
        self.began: dict[str, int] = {}
        """How often a piece began."""
        self._steps: dict[str, float] = {}
        """How many steps pieces had."""
        self.course: dict[str, list[tuple[float, float]]] = {}
        """Of pieces with steps, which share of them was done when."""
        self.thought: dict[str, dict[str, float]] = {}
        """What was usual of all pieces, by the one that went on, and how often more became known in it."""
        self.slower, self.untried = 1.0, UNTRIED
        """How much longer this machine takes than a usual one; by which factor a formula may be wrong."""
        self.before: Sequence[Before] = ()
        """Earlier runs, the last one first."""
        self.size = 0.0
        """Bytes of what is read."""
        self.now: Stage | None = None
        """The piece that goes on."""
        self._last, self._moment, self._since = "", "", stages.clock()
        self._idle = self._since
        self._parts: dict[str, Cost] = {}
        self._part: tuple[Stage, float] | None = None
        """The part of it that goes on, and what that usually takes."""
        self._pace: float | None = None
        """How much longer the last part took than it usually does."""
        self._inside: list[Stage] = []
        self._kept: dict[str, int] = {}
        """How often pieces came that are to come again, and, in the one that goes on, stages inside it."""

    def know(self, counts: Mapping[str, float], plan: Mapping[str, Cost] | None = None) -> None:
        """Take note of how much there is to do, and of pieces that are to come (again, where they came before)."""
        self.known |= counts
        for name in [name for name in plan or {} if name in self.took]:
            self._keep(name)
        self._parts |= {name: cost for name, cost in (plan or {}).items() if PART in name}
        pieces = {name: cost for name, cost in (plan or {}).items() if PART not in name}
        self.plan |= {name: cost for name, cost in pieces.items() if name in self.plan}
        now = None if self.now is None else self.now.what
        begun = {name: cost for name, cost in self.plan.items() if name in self.took or name == now}
        fresh = {name: cost for name, cost in pieces.items() if name not in self.plan}
        self.plan = begun | fresh | self.plan  # what a later plan adds comes before what is still to come
        for name, cost in self.plan.items():
            try:
                self.usual[name] = cost(self.known)
            except KeyError:
                self.usual[name] = None
        self._think()

    def _think(self) -> None:
        """Keep what is usual as far as is known now."""
        at = self._at
        self._moment = next(name for number in count() if (name := f"{at} #{number}") not in self.thought)
        self.thought[self._moment] = {name: seconds for name, seconds in self.usual.items() if seconds is not None}

    @property
    def _at(self) -> str:
        """Where the work is: at a piece, or at the last one that is over."""
        return self._last if self.now is None else self.now.what

    def _keep(self, name: str) -> None:
        """Keep what a piece took, which is to come again."""
        self._kept[name] = self._kept.get(name, 0) + 1
        kept = f"{name} ({self._kept[name]})"
        self.took, self.usual = _renamed(self.took, name, kept), _renamed(self.usual, name, kept)
        self.after, self.course = _renamed(self.after, name, kept), _renamed(self.course, name, kept)
        self.began, self._steps = _renamed(self.began, name, kept), _renamed(self._steps, name, kept)
        self._last = kept if self._last == name else self._last

    def begin(self, one: Stage) -> None:
        """Take note that a stage begins; where it is a piece, those that are planned before it are over."""
        if self.now is None and one.what in self.plan:
            self._rest()
            self.now, self.began[one.what] = one, self.began.get(one.what, 0) + 1
            for name in takewhile(lambda name: name != one.what, self.plan):
                if name not in self.took:
                    self.took[name], self.plan[name], self.usual[name] = 0.0, lambda _: 0.0, 0.0
            self._think()
        elif self.now is not None:
            name = f"{self.now.what}{PART}{one.what}"
            cost = self._parts.get(name)
            if cost is not None and not any(each.total for each in self._inside):  # of a step, not one of many in it
                share = self.now.step / self.now.total if self.now.total else 1.0
                self._part = one, cost(self.known) * share
            if not self._inside:
                self._kept[name] = self._kept.get(name, 0) + 1
            self._inside.append(one)

    def end(self, one: Stage) -> None:
        """Take note that a stage is over."""
        if self.now is one:
            self.now, self.took[one.what] = None, self.took.get(one.what, 0.0) + one.worked
            self._inside, self._pace = [], None
            self._last, self._idle = one.what, stages.clock()
            self._keep_steps(one.what, one, 0.0)
        elif one in self._inside:
            if one is self._inside[0] and self.now is not None:
                self._keep_steps(self._name_of(one), one, one.began - self.now.began)
            self._inside.remove(one)
        if self._part is not None and self._part[0] is one:
            usual, self._part = self._part[1], None
            self._pace = one.worked / usual if usual else None

    def _keep_steps(self, name: str, one: Stage, since: float) -> None:
        """Take note of when its steps were done."""
        if one.course and len(self.course) < MANY:
            self.course[name], self._steps[name] = one.shares(since), one.done

    def _rest(self) -> None:
        """Take note of how long nothing went on that is a piece."""
        self.after[self._last] = self.after.get(self._last, 0.0) + stages.clock() - self._idle

    def _name_of(self, one: Stage) -> str:
        """The name of a stage in the piece that goes on, of several of one name with the how manieth it is."""
        name = f"{self._at}{PART}{one.what}"
        return f"{name} #{self._kept.get(name, 0)}"

    def over(self) -> Before:
        """Return all of it as an earlier run: the command is done."""
        if self.now is None:
            self._rest()
        for name in [name for name in self._kept if name in self.took]:
            self._keep(name)
        known = self.known | self._steps
        return Before(self.thought, self.took, self.after, self.course, self.began, known, self.slower, True, self.size)

    @property
    def pace(self) -> float | None:
        """By which factor the piece that goes on takes longer than usual, by a part of it; None where none tells."""
        if self._part is None:
            return self._pace
        one, usual = self._part
        left = one.remaining
        return self._pace if left is None or not usual else (one.worked + left) / usual

    def _alike(self) -> tuple[Before, float] | None:
        """The earlier run that had about as much to do, and the logarithm of how much more there is now."""
        found: list[tuple[float, int, float]] = []
        for place, one in enumerate(self.before):
            then = one.thought.get(self._moment, {})
            both = [(now, then[name]) for name, now in self.usual.items() if now is not None and name in then]
            more = math.log((sum(now for now, _ in both) + LITTLE) / (sum(past for _, past in both) + LITTLE))
            if not both and self.size and one.size:
                more = math.log(self.size / one.size)
            found.append((abs(more) + (not one.same) * OTHER, place, more))
        least = min(found, default=None)
        return None if least is None else (self.before[least[1]], least[2])

    def _expected(self, name: str, alike: tuple[Before, float] | None) -> Expected | None:
        """What a piece took in an earlier run, by how much more there is to do, else what it usually takes."""
        usual = self.usual.get(name)
        if alike is not None:
            one, more = alike
            then, known = one.thought.get(self._moment, {}).get(name), self._then(name, one)
            if known in one.took or then is not None:
                if usual is not None and then is not None:
                    more = math.log((usual + LITTLE) / (then + LITTLE))
                sure = SEEN * (1.0 if one.same else OTHERS) * math.exp(GROWN * abs(more))
                factor = math.exp(more) * _softly(self.slower / one.slower)
                steps, whole = self._guide(known), one.known.get(self._guide(known), 0.0)
                course = one.course.get(steps, ()) if one.began.get(known, 1) == 1 else ()
                near = max(abs(more), self._apart(one)) <= NEAR
                sure = min(sure, UNTRIED) if near else UNTRIED
                return Expected(one.took.get(known, 0.0) * factor, sure, True, factor, course, whole, near)
        return None if usual is None else Expected(self.slower * usual, self._sure)

    @property
    def _sure(self) -> float:
        """By which factor a formula may be wrong: by as much as others of this command were, if that is more."""
        took = dict(self.took) | ({} if self.now is None else {self.now.what: self.now.worked})
        beyond = [
            seconds / max(self.slower * usual, LITTLE)
            for name, seconds in took.items()
            if seconds > SURE and (usual := self.usual.get(name)) is not None
        ]
        return max(self.untried, *beyond) if self.untried >= UNTRIED and beyond else self.untried

    def _apart(self, one: Before) -> float:
        """How far what is known of the log is from what was known of that of an earlier run, at most; a logarithm."""
        both = [(now, one.known[name]) for name, now in self.known.items() if name in one.known]
        return max((abs(math.log((max(now, 0.0) + 1.0) / (max(then, 0.0) + 1.0))) for now, then in both), default=0.0)

    def _then(self, name: str, one: Before) -> str:
        """What a piece was called in an earlier run: one that came several times with the how manieth it was."""
        again = f"{name} ({self._kept.get(name, 0) + 1})"
        return again if again in one.took else name

    def _guide(self, name: str) -> str:
        """The name of the steps that tell how far the piece that goes on is, its own or of a stage inside it."""
        inner = self._inside[0] if self._inside else None
        if self.now is None or self.now.total or inner is None or not inner.total:
            return name
        return self._name_of(inner).replace(self.now.what, name, 1)

    def _besides(self, one: Before) -> list[str]:
        """Pieces of an earlier run that no plan names yet, or that come again."""
        named = {self._at, *self.usual, *self.took}
        found = []
        for name in one.took:
            again = AGAIN.fullmatch(name)
            if int(again[2]) > self._kept.get(again[1], 0) + 1 if again and name not in named else name not in named:
                found.append(name)
        return found

    def _often(self, name: str, alike: tuple[Before, float] | None) -> tuple[int, int]:
        """How often a piece began in an earlier run, and will still begin by that: it may do so again and again."""
        times = 0 if alike is None else alike[0].began.get(self._then(name, alike[0]), 0)
        return times, max(times - self.began.get(name, 0), 0)

    def _gap(self, name: str, alike: tuple[Before, float] | None) -> float:
        """Seconds after a piece until the next one, each time, by an earlier run."""
        if alike is None:
            return 0.0
        return alike[0].after.get(self._then(name, alike[0]), 0.0) / max(self._often(name, alike)[0], 1)

    def _longer(self, spent: Sequence[tuple[float, float]], ahead: float) -> float:
        """By which factor what is to come takes longer; less of it, where the machine's share is known by itself."""
        factor = _factor(spent, ahead)
        return factor if self.slower == 1.0 else math.sqrt(factor)

    def _going_on(self, expected: Expected | None, longer: float) -> tuple[float, float] | None:
        """The least and the most that may be left of the piece that goes on.

        Where an earlier run tells, what it took, by how much sooner or later it was as far; else what its steps say,
        where they are equal and some are done, or a part of it, else what is expected, at least what one inside says.
        """
        now = self.now
        if now is None:
            return 0.0, 0.0
        done, span, pace = self.took.get(now.what, 0.0) + now.worked, now.span, self.pace
        span = None if span is None else (span[0] / STEADY, span[1] * STEADY)
        if expected is None or (now.foreseen and span is not None and middle_of(span) is not None):
            return span
        rest, sure, usual = longer * expected.seconds, expected.sure, self.usual.get(now.what)
        steady = span is not None and middle_of(span) is not None  # on another log steps say more
        if expected.seen and (expected.near or not steady):
            rest, at = self._as_before(now, expected, longer)
            done -= at
        elif pace is not None and usual:
            rest, sure = pace * usual, PARTED
        least, most = max(rest / sure - done, 0.0), rest * sure - done
        if done > rest:  # it takes longer than it was thought to, and the less is known of it the longer
            most = max(most, BEYOND * (done - rest), done * ((sure - 1.0) if sure < UNTRIED else UNTRIED))
        if expected.seen and (expected.near or not steady):
            return least, max(least, most)
        if span is not None:  # what may be wrong by far narrows down nothing
            trusted = sure < UNTRIED
            least, most = (min(max(end, span[0]), span[1]) for end in (least, most)) if trusted else span
        inner = next((left for one in self._inside if (left := one.remaining) is not None), None)
        if span is None and inner is not None:
            least = max(least, inner / WIDE**0.5)
        return least, max(least, most)

    def _as_before(self, now: Stage, expected: Expected, longer: float) -> tuple[float, float]:
        """Seconds of the piece that goes on after it was as far as said last, by when an earlier run was; and when."""
        share, at = now.last(expected.whole)
        if not now.total and self._inside:
            share, at = self._inside[0].last(expected.whole)
            at += self._inside[0].began - now.began
        if not expected.course or not 0 < share <= 1:
            return longer * expected.seconds, 0.0
        end = [(1.0, expected.seconds / expected.more)] if expected.course[-1][0] < 1 else []
        shares, seconds = zip((0.0, 0.0), *expected.course, *end, strict=True)
        place = next(place for place, one in enumerate(shares) if one >= share)
        part = (share - shares[place - 1]) / (shares[place] - shares[place - 1])
        then = expected.more * (seconds[place - 1] + part * (seconds[place] - seconds[place - 1]))
        weight = then / (then + TRUST * max(expected.seconds - then, 0.0) or 1.0)
        later = min(max(at / max(then, 1e-9), 1 / FAR), FAR)
        return (expected.seconds - then) * longer ** (1.0 - weight) * later**weight, at

    @property
    def between(self) -> tuple[float, float] | None:
        """The least and the most seconds that may be left of all pieces; None while nobody knows of one to come.

        Each takes what is expected of it, times the factor by which the pieces so far took longer or shorter, which
        weighs the more the less is to come.
        """
        if not self.usual or Aside.going_on:
            return None
        now, alike = self.now, self._alike()
        ahead_of = [name for name in self.usual if name not in self.took and (not now or now.what != name)]
        ahead_of += [] if alike is None else self._besides(alike[0])
        ahead = [found for name in ahead_of if (found := self._expected(name, alike)) is not None]
        if len(ahead) < len(ahead_of):
            return None
        over = [name for name in self.took if not now or now.what != name]
        past = [(self.took[name], self._expected(name, alike)) for name in over]
        spent = [(took, found.seconds) for took, found in past if found is not None and found.seconds]
        expected = None if now is None else self._expected(now.what, alike)
        to_come = sum(one.seconds for one in ahead)
        own = 0.0 if expected is None else expected.seconds
        here = self._going_on(expected, self._longer(spent, to_come + own))
        if here is None:
            return None
        if now is not None and own and now.what not in self.took:
            middle = math.sqrt((here[0] + 1.0) * (here[1] + 1.0)) - 1.0
            told = now.remaining is not None
            spent += [(now.worked + middle, own)] if told else []
        factor = self._longer(spent, to_come)
        idle = sum(self._gap(name, alike) * self._often(name, alike)[1] for name in {*ahead_of, *over, self._at})
        for name, (_, found) in zip(over, past, strict=True):
            times, again = self._often(name, alike)
            ahead += [replace(found, seconds=found.seconds * again / times)] if found and found.seen and again else []
        gone = 0.0 if now else stages.clock() - self._idle
        idle += max(self._gap(self._at, alike) - gone, 0.0)
        foreseen = now is not None and now.foreseen
        if alike is None and self.untried >= UNTRIED and not foreseen:  # some work no plan knows, or it comes again
            again = any(times > 1 for times in self.began.values())
            here = here[0], here[1] + 2.0 * (stages.clock() - self._since if again else gone * (gone > SURE))
        steps = now is not None and now.span is not None
        if alike is None and self.untried >= UNTRIED and not foreseen and not steps:
            here = here[0], here[1] + BLIND
        least = here[0] + idle / SEEN + factor * sum(one.seconds / one.sure for one in ahead)
        return least, here[1] + idle * SEEN + factor * sum(one.seconds * one.sure for one in ahead)

    @property
    def remaining(self) -> float | None:
        """Seconds that are left of all pieces; None where what is known is not enough to be right within 1.5."""
        return middle_of(self.between)


def _renamed(table: dict[str, T], name: str, other: str) -> dict[str, T]:
    """The same table, in which a piece, and what is part of it, is called otherwise."""
    return {
        one.replace(name, other, 1) if one == name or one.startswith(name + PART) else one: value
        for one, value in table.items()
    }


def _softly(slower: float) -> float:
    """How much longer a machine takes, where it is far from as fast as it was: how fast it is, is measured roughly."""
    return min(max(1.0, slower / ROUGHLY), slower * ROUGHLY)


def _factor(spent: Sequence[tuple[float, float]], ahead: float) -> float:
    """By which factor pieces took longer than they usually do; the more is to come, the less a few of them count.

    What took many times as long is not the machine's doing.
    """
    trust = max(SURE, TRUST * ahead)
    took = sum(min(max(seconds, usual / SLOWER), usual * SLOWER) for seconds, usual in spent)
    return (trust + took) / (trust + sum(usual for _, usual in spent))
