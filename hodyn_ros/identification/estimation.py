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

from hodyn_ros.errors import IdentificationError
from hodyn_ros.identification.equations import (
    NONLINEAR,
    Channels,
    Equations,
    Nonlinear,
    Parameter,
    Places,
    Rows,
    Structure,
)
from hodyn_ros.identification.gram import Gram
from hodyn_ros.identification.recording import Flags, Stretch
from hodyn_ros.names import FRICTION, listed, number
from hodyn_ros.typing import Array

# Of all rows; without delay; last step over deviations.
_PASSES, _HELD, _SETTLED = (10, 3, 0.02)
_MEMORY = 3  # rows that the noise of a row depends on
_PART = 0.5  # s, of recordings that are left out
_LEAST_OTHERS = (
    0.25  # share of the information that other parts have, for an estimate by them
)
_OUTLIER = 4.5  # standard deviations
_MEDIAN = 1.4826  # standard deviation over the median magnitude
# Errors of encoders, which are all that is in rows of springs, follow the motion: at frequencies
# at which joints move they are larger than their spectrum elsewhere lets expect.
_ENCODERS = 2.0
_ROUNDING = 1e-13  # noise over the largest effort that counts as rounding
_RANK = 1e-6  # of directions that recordings show at all, over the best one
_UNSEEN = 1e-3  # share of a parameter in the others
_LEAST_SEEN = 0.25  # of the parameters
_LONGEST_DELAY, _LATE = 0.1, 2e-4  # s
_MUCH = 0.01  # share of rows that is worth a remark
_DOUBT, _NAMED = 0.05, 6  # deviation over a torque that is worth one, and names in it
_LEAST_SHOWN = 1e-8  # deviation that is written without an exponent
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

    Examples
    --------
    >>> from hodyn_ros.identification import IdentifiedParameter
    >>> found = IdentifiedParameter(
    ...     'viscous', 'elbow viscous', 0.4123, 0.0021, 'N m s/rad', is_alone=True, share=0.1
    ... )
    >>> found.text
    '0.4123 +- 0.0021'
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

    @property
    def text(self) -> str:
        """Value with its deviation, to the digits that this leaves.

        Returns
        -------
        str
            Such as '0.412 +- 0.003 + ...', where the last stands for other parameters in it.
        """
        combined = '' if self.is_alone else ' + ...'
        if not _LEAST_SHOWN < self.std < np.inf:
            return f'{number(self.value)} +- {number(self.std, 2)}{combined}'
        digits = max(0, 1 - int(np.floor(np.log10(self.std))))
        return f'{self.value:.{digits}f} +- {self.std:.{digits}f}{combined}'


class _Noise(NamedTuple):
    """Noise of the rows of C channels."""

    size: Array
    """Standard deviation, shape (C,)."""
    memory: Array
    """How it follows from that of the rows before, shape (C, _MEMORY)."""
    gain: Array
    """Part of the standard deviation that is new in each row, shape (C,)."""


class Estimation:
    """Base parameters z of equations along stretches.

    Parameters
    ----------
    equations : Equations
    groups : sequence of str
        What is asked for, of `GROUPS`.
    measured : sequence of str
        'effort', 'motor_torque' or both.
    rows : sequence of Rows
        Of the channels of what is measured; changed in place.

    Attributes
    ----------
    equations : Equations
        With gravity as it is found, as the rows have it.
    channels : Channels
    structure : Structure
        Which b base parameters there are.
    z : ndarray, shape (b,)
        Base parameters, with logarithms where these are searched; see `estimates`.
    columns : list of Parameter
        Parameters that the base parameters are named after.
    asked_columns : list of Parameter
        The P parameters that are asked for.
    places : list of int
        Of `columns` among these.
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
        groups: Sequence[str],
        measured: Sequence[str],
        rows: Sequence[Rows],
    ) -> None:
        self.equations: Equations = equations
        self.rows: list[Rows] = list(rows)
        self.channels: Channels = equations.channels(measured)
        self.asked: Places = equations.asked(groups)
        self.structure: Structure = equations.structure(self.asked, measured)
        self.has_friction: bool = not set(groups).isdisjoint(FRICTION)
        self.z: Array = self.structure.mapping @ equations.known[self.asked]
        self.columns: list[Parameter] = [
            equations.columns[i] for i in self.structure.independent
        ]
        self.places: list[int] = [
            self.asked.tolist().index(i) for i in self.structure.independent
        ]
        self.asked_columns: list[Parameter] = [equations.columns[i] for i in self.asked]
        self._is_linear = equations.is_linear[self.structure.independent]
        kinds = [NONLINEAR.get(column.name, Nonlinear()) for column in self.columns]
        self._kinds = np.reshape(kinds, (-1, len(Nonlinear._fields))).T
        self.noise: _Noise | None = None
        self.dropped: int = 0
        self.used: int = 0
        self._half = np.zeros((len(self.z), 1))
        late = np.array(
            [column.group == 'delay' for column in self.columns], dtype=np.bool_
        )
        for done in range(_PASSES):
            # Rows that no law of friction describes, where joints stick, look like a delay until
            # the noise is known and they are left out.
            self._held = late & (not late.all() and done < _HELD)
            if done:
                self.noise = self._judged()
            step, largest = self._step()
            self._take(step)
            if done > _HELD and largest < _SETTLED:
                break

    def of(self, name: str) -> Places:
        """Places of a quantity of joints or bodies among what is asked for; maybe none."""
        found = [
            k
            for k, column in enumerate(self.asked_columns)
            if name == column.name or name == column.group and name in ('bodies', 'payload')
        ]
        return np.array(found, dtype=np.intp)

    def of_base(self, z: Array) -> Array:
        """All parameters: base parameters, zeros for others that are asked for, known ones."""
        beta = self.equations.known.copy()
        beta[self.asked[self.equations.is_linear[self.asked]]] = 0.0
        beta[self.structure.independent] = z
        return beta

    def left(self, rows: Rows, beta: Array) -> Array:
        """What parameters (P,) leave of rows, shape (M, C)."""
        return self.equations.left(rows, beta, self.has_friction)

    def rows_of(self, stretch: Stretch) -> Rows:
        """Rows of a stretch, linearized at the estimates."""
        rows = self.equations.rows(stretch, self.channels)
        self.equations.linearize(rows, self.of_base(self.z), self.channels)
        return rows

    def is_used(self, rows: Rows) -> Flags:
        """Which rows tell of what is asked for, shape (M, C)."""
        return rows.is_used & (rows.is_moving | (not self.has_friction))

    def _parts(self) -> Iterator[tuple[Rows, Array, Array]]:
        """Rows of all stretches, columns of the base parameters, and what these leave."""
        beta = self.of_base(self.z)
        for rows in self.rows:
            X = np.where(self._held, 0.0, rows.X[..., self.structure.independent])
            yield rows, X, self.left(rows, beta)

    def _judged(self) -> _Noise:
        """Noise of the rows: what the parameters leave, and what they have taken of it.

        The residuals of least squares have the covariance of the noise less that of X @ z, which
        is added again, lag by lag.
        """
        parts = []
        for rows, X, rest in self._parts():
            part = X @ self._half
            taken = [
                (part[k:] * part[: len(part) - k]).sum(axis=2) for k in range(_MEMORY + 1)
            ]
            parts.append((rows, self.is_used(rows), rest, taken))
        count = len(self.channels.kinds)
        size, memory, gain = (
            np.full(count, np.inf),
            np.zeros((count, _MEMORY)),
            np.ones(count),
        )
        for c in range(count):
            columns = [
                np.stack([rest, r.variance, r.signal, taken[0]])[:, used[:, c], c]
                for r, used, rest, taken in parts
            ]
            values, added, signal, lacking = np.concatenate(columns, axis=1)
            if len(values) < 10 * _MEMORY:
                continue
            typical = (_MEDIAN * np.median(np.abs(values))) ** 2 + lacking.mean()
            least = (_ROUNDING * np.abs(signal).max()) ** 2 + 1e-300
            size[c] = np.sqrt(max(typical - np.median(added), 0.04 * typical, least))
            series, given_back = [], []
            for rows, used, rest, taken in parts:
                spread = np.sqrt(size[c] ** 2 + rows.variance[:, c])
                relative = np.clip(rest[:, c] / spread, -_OUTLIER, _OUTLIER)
                series.append(np.where(used[:, c], relative, np.nan))
                pairs = [spread[k:] * spread[: len(spread) - k] for k in range(_MEMORY + 1)]
                given_back.append([t[:, c] / pair for t, pair in zip(taken, pairs)])
            memory[c], gain[c] = _autoregression(series, given_back)
        gain[self.channels.kinds == 'spring'] *= _ENCODERS
        return _Noise(size, memory, gain)

    def _weighted(self, rows: Rows, X: Array, rest: Array) -> tuple[Array, Flags]:
        """White rows with what is left of them, (M, C, b + 1), and which of them count.

        While the noise is not known, they are rows over the size of their efforts. Then they are
        rows less what those before let expect of their noise, over the deviation that is new; the
        first rows behind a gap are left out.
        """
        both = np.concatenate([X, rest[..., None]], axis=2)
        used = self.is_used(rows)
        if self.noise is None:
            power = (np.where(used, rows.signal, 0.0) ** 2).sum(axis=0)
            spread = np.sqrt(power / np.maximum(used.sum(axis=0), 1))
            spread = np.where(spread > 0.0, spread, 1.0)
            return both / np.sqrt(spread**2 + rows.variance)[..., None], used
        kept = self.is_kept(rows, rest)
        self.used += int(used.sum())
        self.dropped += int(used.sum() - kept.sum())
        return self._whitened(rows, kept, both)

    def _whitened(self, rows: Rows, used: Flags, values: Array) -> tuple[Array, Flags]:
        """Values (M, C, ...) of rows, white and of deviation 1, and which are known, (M, C)."""
        assert self.noise is not None
        noise, fine = self.noise, used.copy()
        both = values / np.sqrt(noise.size**2 + rows.variance)[..., None]
        white = both.copy()
        for k in range(1, _MEMORY + 1):
            white[k:] -= noise.memory[:, k - 1, None] * both[:-k]
            fine[k:] &= used[:-k]
        fine[:_MEMORY] = False
        return white / noise.gain[:, None], fine

    def jackknife(self) -> Array:
        """Standard deviations as estimates without parts of the recordings scatter, shape (b,).

        Whatever the errors depend on, the parts of half a second that are left out one by one
        differ by it; what is the same in all of them, no part tells. Source: Bell and McCaffrey
        2002, "Bias reduction in standard errors for linear regression with multi-stage samples".

        Returns
        -------
        ndarray, shape (b,)
            In the units of `covariance`.
        """
        variance, half = np.zeros(len(self.z)), self._half
        for rows, X, rest in self._parts():
            both = np.concatenate([X, rest[..., None]], axis=2)
            white, fine = self._whitened(rows, self.is_kept(rows, rest), both)
            white = np.where(fine[..., None], white, 0.0)
            pieces = max(2, round(float(np.ptp(rows.stretch.times)) / _PART))
            for part in np.array_split(white, pieces):
                own = part[..., :-1].reshape(-1, len(self.z)) @ half
                score = own.T @ part[..., -1].ravel()
                rest_of_all, vectors = np.linalg.eigh(np.eye(half.shape[1]) - own.T @ own)
                shares = np.maximum(rest_of_all, _LEAST_OTHERS)
                variance += (half @ (vectors @ (vectors.T @ score / shares))) ** 2
        return np.asarray(np.sqrt(variance))

    def is_kept(self, rows: Rows, rest: Array) -> Flags:
        """Which rows are used and do not miss by far, shape (M, C).

        Parameters
        ----------
        rows : Rows
        rest : ndarray, shape (M, C)
            What the parameters leave of them.

        Returns
        -------
        ndarray of bool, shape (M, C)
        """
        assert self.noise is not None
        spread = np.sqrt(self.noise.size**2 + rows.variance)
        kept: Flags = self.is_used(rows) & (np.abs(rest) < _OUTLIER * spread)
        return kept

    def _step(self) -> tuple[Array, float]:
        """Solve least squares.

        Returns
        -------
        step : ndarray, shape (b,)
            Change of the base parameters.
        largest : float
            Over the standard deviation, of the parameters that are shown.

        Raises
        ------
        IdentificationError
            If there are too few rows, or the recordings show too few parameters.
        """
        b, sums = len(self.z), Gram()
        self.dropped = self.used = 0
        for rows, X, rest in self._parts():
            white, fine = self._weighted(rows, X, rest)
            sums.add(white, fine.astype(float))
        gram, count = sums.form.sum(axis=0), int(sums.count.sum())
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
        if self.noise is not None:  # else rows are not in units of it
            self._half = half
        self.covariance: Array = half @ half.T
        self.information: Array = (V * s).T * scale
        unseen = np.abs(vectors[:, ~good]).max(axis=1, initial=0.0)
        self.is_shown: Flags = (sizes > 0.0) & (unseen < _UNSEEN)
        if self.is_shown.mean() < _LEAST_SEEN:
            raise IdentificationError(
                f'The recordings show {self.is_shown.sum()} of {b} parameters: joints hardly '
                'move. Record a motion that shows them (hodyn excite), or estimate fewer.'
            )
        std = np.sqrt(np.diag(self.covariance))[self.is_shown]
        relative = np.abs(step[self.is_shown]) / np.maximum(std, 1e-300)
        return step, float(relative.max(initial=0.0))

    def _take(self, step: Array) -> None:
        """Take a step (b,), as large as a search takes it, and linearize there."""
        _, largest, lower, upper, _ = self._kinds
        before = self.of_base(self.z)
        step = np.where(self._is_linear | self.is_shown, step, 0.0)
        self.z = np.clip(self.z + np.clip(step, -largest, largest), lower, upper)
        beta = self.of_base(self.z)
        if abs(delay := self.equations.delay(beta)) > _LONGEST_DELAY:
            raise _late(delay)
        if (angles := (beta - before)[self.equations.places['gravity']]).any():
            self.equations = self.equations.tilted(angles)
            self.rows = [self.rows_of(rows.stretch) for rows in self.rows]
        else:
            for rows in self.rows:
                self.equations.linearize(rows, beta, self.channels)

    @property
    def estimates(self) -> Array:
        """Base parameters in their units, shape (b,)."""
        values: Array = self.z.copy()
        is_logarithm = self._kinds[-1] > 0.0
        values[is_logarithm] = np.exp(values[is_logarithm])
        return values

    @property
    def std(self) -> Array:
        """Standard deviations of the estimates, infinite where nothing shows them, shape (b,)."""
        std = np.sqrt(np.diag(self.covariance))
        std = np.where(self._kinds[-1] > 0.0, std * self.estimates, std)
        return np.where(self.is_shown, std, np.inf)

    @cached_property
    def sizes(self) -> Array:
        """RMS of the columns of the base parameters in some channel over that of its effort.

        Returns
        -------
        ndarray, shape (b,)
            Per unit of the parameter.
        """
        parts, sizes = np.zeros((len(self.channels.kinds), len(self.z))), 0.0
        for rows, X, _ in self._parts():
            used = self.is_used(rows)
            parts = parts + (np.where(used[..., None], X, 0.0) ** 2).sum(axis=0)
            sizes = sizes + (np.where(used, rows.signal, 0.0) ** 2).sum(axis=0)
        return np.asarray(np.sqrt((parts.T / np.maximum(sizes, 1e-300)).max(axis=1)))

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
            late = self.z[place]
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


def measured_and_computed(
    equations: Equations, channels: Channels, rows: Rows
) -> tuple[Array, Array]:
    """Efforts of channels as they are measured, and as the given parameters make them.

    Those of elastic joints are computed from the torque of the links, whatever their deflection
    says.

    Parameters
    ----------
    equations : Equations
    channels : Channels
    rows : Rows

    Returns
    -------
    measured, computed : ndarray, shape (M, C)
        [N m] or [N]
    """
    left = equations.left(rows, equations.known)
    of_links = np.zeros((len(left), equations.model.n_joints))
    springs = channels.kinds == 'spring'
    of_links[:, channels.joints[springs]] = left[:, springs]
    return rows.signal, rows.signal - left + of_links[:, channels.joints]


def scale_remarks(
    equations: Equations, measured: Sequence[str], rows: Sequence[Rows]
) -> list[str]:
    """Sentences on efforts that look like other units or signs.

    Parameters
    ----------
    equations : Equations
    measured : sequence of str
    rows : sequence of Rows

    Returns
    -------
    list of str
        Empty if nothing looks so.

    Raises
    ------
    IdentificationError
        If no joint with a notable effort agrees with the model.
    """
    channels, n = equations.channels(measured), equations.model.n_joints
    sums = np.zeros((3, n))
    for each in rows:
        efforts, computed = measured_and_computed(equations, channels, each)
        used = each.is_used & (channels.kinds != 'spring')
        a, b = (np.where(used, values, 0.0) for values in (efforts, computed))
        products = np.stack(
            [(x * y).sum(axis=0) for x, y in ((a, a), (b, b), (a, b))], axis=1
        )
        sums += channels.by_joint(products, n).T
    power, own, common = sums
    scale = common / np.maximum(own, 1e-300)
    alike = np.abs(common) > _ALIKE * np.sqrt(power * own)
    alike &= own > 1e-3 * own.max(initial=0.0)
    off = alike & ((np.abs(scale) > _OTHER_UNIT) | (np.abs(scale) < 1.0 / _OTHER_UNIT))
    turned = alike & (scale < 0.0)
    names, remarks = equations.model.joint_names, []
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
