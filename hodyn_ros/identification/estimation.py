"""Base parameters by weighted least squares, with standard deviations.

Rows are whitened by an autoregression of their residuals, scaled by these and by what the
deviations of the derivatives add, and left out where they miss by far; this is repeated until it
settles. Parameters in which equations are not linear take steps of Gauss and Newton meanwhile.
Sources: Gautier and Khalil 1990, "Direct calculation of minimum set of inertial parameters of
serial robots"; Cochrane and Orcutt 1949 on the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.errors import IdentificationError
from hodyn_ros.identification.equations import (
    STRIBECK_VELOCITIES,
    Equations,
    Rows,
    Structure,
)
from hodyn_ros.identification.recording import Flags, Stretch
from hodyn_ros.names import listed

# Of all rows; without delay; last step over deviations.
_PASSES, _HELD, _SETTLED = (10, 3, 0.02)
_MEMORY = 3  # rows that the noise of a row depends on
_LAGS = 60  # rows over which residuals that come again are looked for
_OUTLIER = 4.5  # standard deviations
_MEDIAN = 1.4826  # standard deviation over the median magnitude
# Errors of encoders, which are all that is in rows of springs, follow the motion: at frequencies
# at which joints move they are larger than their spectrum elsewhere lets expect.
_ENCODERS = 2.0
_ROUNDING = 1e-13  # noise over the largest effort that counts as rounding
_RANK = 1e-6  # of directions that recordings show at all, over the best one
_UNSEEN = 1e-3  # share of a parameter in the others
_LEAST_SHOWN = 0.25  # of the parameters
_LONGEST_DELAY, _LATE = 0.1, 2e-4  # s
_STRIBECK_STEP = 0.5  # of the logarithm of the velocity
_MUCH = 0.01  # share of rows that is worth a remark
_DOUBT, _NAMED = 0.05, 6  # deviation over a torque that is worth one, and names in it
_ALIKE, _OTHER_UNIT = 0.8, 4.0  # correlation, and factor that is hardly one of the masses


class IdentifiedParameter(NamedTuple):
    """A base parameter: one of the robot's parameters, or a combination named after one.

    Attributes
    ----------
    group : str
        One of `GROUPS`.
    value : float
        In `unit`.
    unit : str
        SI.
    """

    group: str
    """Such as 'bodies' or 'viscous'."""
    name: str
    """Of the parameter that it is named after, such as 'panda_joint2 ixx'."""
    value: float
    std: float
    """Infinite where the recordings do not show it."""
    unit: str
    is_alone: bool
    """Whether it is that parameter itself; otherwise others are in it, see `mapping`."""
    share: float
    """RMS of its part of the efforts, relative to that of the efforts."""


class _Noise(NamedTuple):
    """Noise of rows of one kind, of n joints."""

    size: Array
    """Standard deviation, shape (n,)."""
    memory: Array
    """How it follows from that of the rows before, shape (n, _MEMORY)."""
    gain: Array
    """Part of the standard deviation that is new in each row, shape (n,)."""


class Estimation:
    """Base parameters z of equations along stretches.

    Parameters
    ----------
    equations : Equations
    structure : Structure
        Which b base parameters there are.
    stretches : sequence of Stretch
    passes : int
        Steps at most; they end when they are small beside the deviations.

    Attributes
    ----------
    z : ndarray, shape (b,)
        Base parameters; zero for those in which the equations are not linear, see
        `estimates`.
    columns : list of Column
        Parameters that the base parameters are named after.
    covariance : ndarray, shape (b, b)
    information : ndarray, shape (directions, b)
        Square root of the information on z, of the directions that recordings show.
    is_shown : ndarray of bool, shape (b,)
        Whether the recordings show a parameter.
    used, dropped : int
        Rows that could be used, and those of them that miss by far.

    Raises
    ------
    IdentificationError
        If there are too few rows, the joints hardly move, or efforts seem to be far behind
        the positions.
    """

    def __init__(
        self,
        equations: Equations,
        structure: Structure,
        stretches: Sequence[Stretch],
        passes: int = _PASSES,
    ) -> None:
        self.equations, self.structure, self.stretches = equations, structure, stretches
        self.z = structure.mapping @ equations.known
        self.columns = [equations.columns[i] for i in structure.independent]
        self.noise: dict[str, _Noise] = {}
        self.dropped = self.used = 0
        self._half = np.zeros((len(self.z), 1))
        late = np.array(
            [column.group == 'delay' for column in self.columns], dtype=np.bool_
        )
        for number in range(passes):
            # Rows that no law of friction describes, where joints stick, look like a delay until
            # the noise is known and they are left out.
            self._held = late & (not late.all() and number < min(_HELD, passes - 1))
            if number:
                self.noise = self._judged()
            largest = self._step()
            self._move()
            if number > _HELD and largest < _SETTLED:
                break

    def _rows(self) -> Iterator[tuple[Rows, Array]]:
        """Rows of all stretches, by the base parameters, with what these leave."""
        for stretch in self.stretches:
            for rows in self.equations.rows(stretch):
                X = np.where(self._held, 0.0, rows.X[..., self.structure.independent])
                yield rows._replace(X=X), rows.y - X @ self.z

    def _judged(self) -> dict[str, _Noise]:
        """Noise of each kind of rows: what the parameters leave, and what they have taken of it.

        The residuals of least squares have the covariance of the noise less that of X @ z, which
        is added again, lag by lag.
        """
        left: dict[str, list[tuple[Rows, Array, list[Array]]]] = {}
        for rows, rest in self._rows():
            part = rows.X @ self._half
            taken = [
                (part[k:] * part[: len(part) - k]).sum(axis=2) for k in range(_MEMORY + 1)
            ]
            left.setdefault(rows.kind, []).append((rows._replace(X=rest), rest, taken))
        found = {}
        for kind, parts in left.items():
            n = parts[0][1].shape[1]
            size, memory, gain = np.full(n, np.inf), np.zeros((n, _MEMORY)), np.ones(n)
            for j in range(n):
                columns = [
                    np.stack([rest, r.variance, r.signal, taken[0]])[:, r.is_used[:, j], j]
                    for r, rest, taken in parts
                ]
                values, added, signal, lacking = np.concatenate(columns, axis=1)
                if len(values) < 10 * _MEMORY:
                    continue
                typical = (_MEDIAN * np.median(np.abs(values))) ** 2 + lacking.mean()
                least = (_ROUNDING * np.abs(signal).max()) ** 2 + 1e-300
                size[j] = np.sqrt(max(typical - np.median(added), 0.04 * typical, least))
                series, given_back = [], []
                for rows, rest, taken in parts:
                    spread = np.sqrt(size[j] ** 2 + rows.variance[:, j])
                    relative = np.clip(rest[:, j] / spread, -_OUTLIER, _OUTLIER)
                    series.append(np.where(rows.is_used[:, j], relative, np.nan))
                    pairs = [
                        spread[k:] * spread[: len(spread) - k] for k in range(_MEMORY + 1)
                    ]
                    given_back.append([t[:, j] / pair for t, pair in zip(taken, pairs)])
                memory[j], gain[j] = _autoregression(series, given_back)
            if kind == 'spring':
                gain *= _ENCODERS
            found[kind] = _Noise(size, memory, gain)
        return found

    def _weighted(self, rows: Rows, rest: Array) -> Array:
        """White rows with what is left of them, shape (count, b + 1).

        Parameters
        ----------
        rows : Rows
            By the base parameters.
        rest : ndarray, shape (M, n)
            What these leave.

        Returns
        -------
        ndarray, shape (count, b + 1)
            While the noise is not known, rows over the size of their efforts. Then rows less
            what those before let expect of their noise, over the deviation that is new; the
            first rows behind a gap are left out.
        """
        both = np.concatenate([rows.X, rest[..., None]], axis=2)
        if rows.kind not in self.noise:
            power = (np.where(rows.is_used, rows.signal, 0.0) ** 2).sum(axis=0)
            spread = np.sqrt(power / np.maximum(rows.is_used.sum(axis=0), 1))
            weights = 1.0 / np.sqrt(
                np.where(spread > 0.0, spread, 1.0) ** 2 + rows.variance
            )
            return np.asarray((both * weights[..., None])[rows.is_used])
        used = self.is_kept(rows, rest)
        self.used += int(rows.is_used.sum())
        self.dropped += int(rows.is_used.sum() - used.sum())
        white, fine = self._whitened(rows, used, both)
        return np.asarray(white[fine])

    def _whitened(self, rows: Rows, used: Flags, values: Array) -> tuple[Array, Flags]:
        """Values (M, n, ...) of rows, white and of deviation 1, and which are known, (M, n)."""
        noise = self.noise[rows.kind]
        both = values / np.sqrt(noise.size**2 + rows.variance)[..., None]
        white, fine = both.copy(), used.copy()
        for k in range(1, _MEMORY + 1):
            white[k:] -= noise.memory[:, k - 1, None] * both[:-k]
            fine[k:] &= used[:-k]
        fine[:_MEMORY] = False
        return white / noise.gain[:, None], fine

    def lasting(self) -> Array:
        """Correlations of white residuals over many rows, over those of noise, shape (n,).

        About 1 where they are noise, whatever its memory: an autoregression takes that away. More
        where they come again with the motion. Source: Box and Pierce 1970.

        Returns
        -------
        ndarray, shape (n,)
            The largest of all kinds of rows.
        """
        series: dict[str, list[Array]] = {}
        for rows, rest in self._rows():
            white, fine = self._whitened(rows, self.is_kept(rows, rest), rest[..., None])
            known = np.where(fine, white[..., 0], np.nan)
            series.setdefault(rows.kind, []).append(known)
        found = np.zeros(self.equations.model.n_joints)
        for parts in series.values():
            lags = range(1, min(_LAGS, max(map(len, parts)) // 3) + 1)
            total = np.zeros_like(found)
            power = np.nansum(np.concatenate(parts) ** 2, axis=0)
            count = np.isfinite(np.concatenate(parts)).sum(axis=0)
            variance = np.maximum(power / np.maximum(count, 1), 1e-300)
            for k in lags:
                products = np.concatenate([part[k:] * part[:-k] for part in parts])
                pairs = np.maximum(np.isfinite(products).sum(axis=0), 1)
                total += np.nansum(products, axis=0) ** 2 / (pairs * variance**2)
            found = np.maximum(found, total / max(len(lags), 1))
        return found

    def is_kept(self, rows: Rows, rest: Array) -> Flags:
        """Which rows are used and do not miss by far, shape (M, n).

        Parameters
        ----------
        rows : Rows
            Of one kind.
        rest : ndarray, shape (M, n)
            What the parameters leave of them.

        Returns
        -------
        ndarray of bool, shape (M, n)
        """
        spread = np.sqrt(self.noise[rows.kind].size ** 2 + rows.variance)
        kept: Flags = rows.is_used & (np.abs(rest) < _OUTLIER * spread)
        return kept

    def _step(self) -> float:
        """Take a step of least squares; the largest one over its standard deviation.

        Returns
        -------
        float
            Over the parameters that are shown.

        Raises
        ------
        IdentificationError
            If there are too few rows, or the recordings show too few parameters.
        """
        b, count = len(self.z), 0
        gram = np.zeros((b + 1, b + 1))
        self.dropped = self.used = 0
        for rows, rest in self._rows():
            weighted = self._weighted(rows, rest)
            gram += weighted.T @ weighted
            count += len(weighted)
        if count < max(2 * b, 1) or not b:
            raise IdentificationError(
                f'After filtering there are {count} rows for {b} parameters; record longer (with '
                'joints that move: friction is not seen at rest), or estimate fewer parameters.'
            )
        # What the normal equations lose of the digits, the next step finds again.
        sizes = np.sqrt(np.diag(gram)[:b])
        scale = np.where(sizes > 0.0, sizes, 1.0)
        values, vectors = np.linalg.eigh(gram[:b, :b] / np.outer(scale, scale))
        good = values > _RANK**2 * values[-1]
        s, V = np.sqrt(values[good]), vectors[:, good]
        half = V / s / scale[:, None]
        along = half.T @ gram[:b, b]
        step = half @ along
        if self.noise:  # else rows are not in units of it
            self._half = half
        self.covariance = half @ half.T
        self.information = (V * s).T * scale
        unseen = np.abs(vectors[:, ~good]).max(axis=1, initial=0.0)
        self.is_shown = (sizes > 0.0) & (unseen < _UNSEEN)
        if self.is_shown.mean() < _LEAST_SHOWN:
            raise IdentificationError(
                f'The recordings show {self.is_shown.sum()} of {b} parameters: joints hardly '
                'move. Record a motion that shows them (hodyn excite), or estimate fewer.'
            )
        self.z = self.z + step
        std = np.sqrt(np.diag(self.covariance))[self.is_shown]
        return float(
            (np.abs(step[self.is_shown]) / np.maximum(std, 1e-300)).max(initial=0.0)
        )

    def _move(self) -> None:
        """Make delay and tilt, in which equations are not linear, part of the equations."""
        linear = self.equations.is_linear[self.structure.independent]
        names = self.equations.model.joint_names
        for place in np.flatnonzero(self.is_shown & ~linear).tolist():
            column, change, state = (
                self.columns[place],
                float(self.z[place]),
                self.equations.state,
            )
            if column.name == 'delay':
                state = state._replace(delay=state.delay + change)
                if abs(state.delay) > _LONGEST_DELAY:
                    raise _late(state.delay)
            elif column.name == 'stribeck_velocity':
                ends = np.log(STRIBECK_VELOCITIES[[0, -1]])
                velocity = state.log_velocity.copy()
                j = names.index(column.owner)
                step = np.clip(change, -_STRIBECK_STEP, _STRIBECK_STEP)
                velocity[j] = np.clip(velocity[j] + step, *ends)
                state = state._replace(log_velocity=velocity)
            self.equations.state = state
        angles = np.zeros(2)  # of which a planar robot shows one
        for place, column in enumerate(self.columns):
            if column.group == 'gravity':
                angles[int(column.name[-1]) - 1] = self.z[place]
        if angles.any():
            self.equations = self.equations.tilted(angles)
        levels = np.zeros(len(names))
        for place, column in enumerate(self.columns):
            if column.name == 'stribeck':
                levels[names.index(column.owner)] = self.z[place]
        self.equations.state = self.equations.state._replace(level=levels)
        self.z = np.where(linear, self.z, 0.0)

    @property
    def estimates(self) -> Array:
        """Base parameters with those in which the equations are not linear, shape (b,)."""
        z, state = self.z.copy(), self.equations.state
        for place, column in enumerate(self.columns):
            if column.name == 'delay':
                z[place] = state.delay
            elif column.name == 'stribeck_velocity':
                j = self.equations.model.joint_names.index(column.owner)
                z[place] = np.exp(state.log_velocity[j])
            elif column.group == 'gravity':
                z[place] = state.tilt[int(column.name[-1]) - 1]
        return z

    @property
    def std(self) -> Array:
        """Standard deviations of the estimates, infinite where nothing shows them, shape (b,)."""
        std = np.sqrt(np.diag(self.covariance))
        is_log = [column.name == 'stribeck_velocity' for column in self.columns]
        std = np.where(is_log, std * np.abs(self.estimates), std)
        return np.where(self.is_shown, std, np.inf)

    @cached_property
    def sizes(self) -> Array:
        """RMS of the columns of the base parameters in some row, over that of the effort there.

        Returns
        -------
        ndarray, shape (b,)
            Per unit of the parameter.
        """
        parts: dict[str, Array] = {}
        sizes: dict[str, Array] = {}
        for rows, _ in self._rows():
            used = rows.is_used[..., None]
            part = (np.where(used, rows.X, 0.0) ** 2).sum(axis=0)
            size = (np.where(rows.is_used, rows.signal, 0.0) ** 2).sum(axis=0)
            parts[rows.kind] = parts.get(rows.kind, 0.0) + part
            sizes[rows.kind] = sizes.get(rows.kind, 0.0) + size
        found = [parts[kind] / np.maximum(sizes[kind], 1e-300)[:, None] for kind in parts]
        return np.asarray(np.sqrt(np.max(found, axis=(0, 1))))

    def parameters(self) -> tuple[IdentifiedParameter, ...]:
        """Estimates with their deviations.

        Returns
        -------
        tuple of IdentifiedParameter
            The b base parameters.
        """
        std = self.std
        lumped = np.abs(self.structure.mapping).sum(axis=1) > 1.0 + 1e-6
        return tuple(
            IdentifiedParameter(c.group, str(c), value, s, c.unit, not several, share)
            for c, value, s, several, share in zip(
                self.columns,
                self.estimates.tolist(),
                std.tolist(),
                lumped.tolist(),
                (self.sizes * np.abs(self.estimates)).tolist(),
            )
        )

    def described(self, what: str) -> str:
        """What the groups that are estimated come out as, behind what they are.

        Parameters
        ----------
        what : str
            Such as 'a payload'.

        Returns
        -------
        str
            Such as 'a payload of 0.98 kg at panda_link8'; `what` alone where there is
            nothing to add.
        """
        values, link = self.estimates, self.equations.payload_link
        by_name = {
            column.name: value for column, value in zip(self.columns, values.tolist())
        }
        if 'mass' in by_name and self.columns[0].group == 'payload':
            mass = by_name['mass']
            return (
                f'{what} of {mass:.2g} kg at {link}'
                if mass > 0.0
                else (f'{-mass:.2g} kg less at {link}')
            )
        if self.equations.groups == ('gravity',):
            tilt = np.degrees(np.hypot(*self.equations.state.tilt))
            return f'{what}, by {tilt:.2g} degrees'
        if self.equations.groups == ('delay',):
            late = 1e3 * self.equations.state.delay
            return (
                f'efforts that come {abs(late):.2g} ms {"late" if late > 0.0 else "early"}'
            )
        return what

    def remarks(self) -> list[str]:
        """What one should know of how it went.

        Returns
        -------
        list of str
            On rows that were left out, a delay, and parameters that are not shown or not
            certain.
        """
        remarks = []
        if self.dropped > _MUCH * self.used:
            remarks.append(
                f'{100.0 * self.dropped / self.used:.2g} % of the rows miss by more than '
                f'{_OUTLIER:g} standard deviations and were left out: contact, or friction that '
                'the laws do not describe.'
            )
        for place, column in enumerate(self.columns):
            std = np.sqrt(self.covariance[place, place])
            late = self.equations.state.delay
            if column.group == 'delay' and abs(late) > max(5.0 * std, _LATE):
                remarks.append(
                    f'Efforts are {1e3 * late:.3g} ms (+- {1e3 * std:.2g}) behind the positions; '
                    'that is taken into account.'
                )
        hidden = [str(c) for c, shown in zip(self.columns, self.is_shown) if not shown]
        if hidden:
            remarks.append(
                f'The recordings do not show {listed(hidden)}: record a motion that does '
                '(hodyn excite).'
            )
        doubt = self.sizes * np.where(self.is_shown, self.std, 0.0)
        worst = [str(self.columns[k]) for k in np.argsort(-doubt) if doubt[k] > _DOUBT]
        if worst:
            others = f' and {len(worst) - _NAMED} more' * (len(worst) > _NAMED)
            remarks.append(
                f'The deviations of {listed(worst[:_NAMED])}{others} are worth more than '
                f'{100.0 * _DOUBT:.0f} % of a torque: record longer, or a livelier motion '
                '(hodyn excite).'
            )
        return remarks


def _autoregression(
    series: Sequence[Array], taken: Sequence[Sequence[Array]]
) -> tuple[Array, float]:
    """Weights (_MEMORY,) of values before in series with gaps (NaN); the deviation that is new.

    `taken` is what each product at a lag lacks.

    Parameters
    ----------
    series : sequence of ndarray, shape (M,)
        Over their deviations.
    taken : sequence of sequences of ndarray
        For each of them and each lag k, shape (M - k,).

    Returns
    -------
    weights : ndarray, shape (3,)
    deviation : float
        Relative to that of the series.
    """
    from scipy.linalg import solve_toeplitz

    lags = []
    for k in range(_MEMORY + 1):
        products = [s[k:] * s[: len(s) - k] + t[k] for s, t in zip(series, taken)]
        lags.append(float(np.nanmean(np.concatenate(products))))
    gamma = np.array(lags)
    gamma[1:] *= 1.0 - 1e-3  # nothing follows exactly
    weights = np.asarray(solve_toeplitz(gamma[:-1], gamma[1:]))
    left = float(gamma[0] - weights @ gamma[1:])
    if not 1e-6 * gamma[0] < left <= gamma[0]:  # too few values
        return np.zeros(_MEMORY), float(np.sqrt(gamma[0]))
    return weights, float(np.sqrt(left))


def _late(delay: float) -> IdentificationError:
    """Error for efforts that are too far behind the positions, or ahead of them [s]."""
    return IdentificationError(
        f'Efforts seem to be {delay:.2g} s behind the positions, expected at most '
        f'{_LONGEST_DELAY} s. Are both stamped by the same clock, and is this a recording of this '
        'robot?'
    )


def scale_remarks(plain: Equations, stretches: Sequence[Stretch]) -> list[str]:
    """Sentences on efforts that look like other units or signs; `plain` estimates nothing.

    An `IdentificationError` is raised if no joint with a notable effort agrees with the model.

    Parameters
    ----------
    plain : Equations
        Without groups, of the given model.
    stretches : sequence of Stretch

    Returns
    -------
    list of str
        Empty if nothing looks so.

    Raises
    ------
    IdentificationError
        If no joint with a notable effort agrees with the model.
    """
    power, own, common = np.zeros((3, plain.model.n_joints))
    for stretch in stretches:
        for _, *both, used in plain.efforts(stretch):
            measured, computed = (np.where(used, values, 0.0) for values in both)
            pairs = (measured, measured), (computed, computed), (measured, computed)
            sums = [(a * b).sum(axis=0) for a, b in pairs]
            power, own, common = power + sums[0], own + sums[1], common + sums[2]
    scale = common / np.maximum(own, 1e-300)
    alike = np.abs(common) > _ALIKE * np.sqrt(power * own)
    alike &= own > 1e-3 * own.max(initial=0.0)
    off = alike & ((np.abs(scale) > _OTHER_UNIT) | (np.abs(scale) < 1.0 / _OTHER_UNIT))
    turned = alike & (scale < 0.0)
    names, remarks = plain.model.joint_names, []
    if off.any():
        factors = listed(f'{names[j]} {scale[j]:.3g}' for j in np.flatnonzero(off))
        remarks.append(
            f'Measured efforts are those of the model times a factor that no mass explains (of '
            f'{factors}): are they currents, torques of the motors before the gear, or in other '
            'units? Multiply them by what is missing.'
        )
    if turned.any():
        turned_names = listed(names[j] for j in np.flatnonzero(turned))
        remarks.append(f'Measured efforts of {turned_names} have the opposite sign.')
    if remarks and not (alike & ~off & ~turned).any():
        raise IdentificationError(' '.join(remarks))
    return remarks
