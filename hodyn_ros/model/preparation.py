"""What is made from a model once and kept with it, and made in advance on request."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cached_property
from typing import Any, TypeVar

Preparation = Callable[[Any, int], None]
F = TypeVar('F', bound=Preparation)

_preparations: list[Preparation] = []

preparing: ContextVar[bool] = ContextVar('preparing', default=False)
"""Whether what is asked for is to be made now, not in the background."""


def on_warm_up(preparation: F) -> F:
    """Have a function called with the model and the order by `Prepared.warm_up`."""
    _preparations.append(preparation)
    return preparation


class Prepared:
    """Base class of a model that others keep things with."""

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """What has been made from this model: not part of it, and not copied with it."""
        return {}

    def warm_up(self, order: int = 2, *calls: Callable[[], object]) -> None:
        """Prepare what a computation would otherwise prepare when it is first asked for.

        After it, `inverse_dynamics` with orders up to this one runs compiled code from the first
        call on. Without it, calls are answered by slower code until the compiled one, made in the
        background, is ready; a control loop should not have to share the processor with that.

        Parameters
        ----------
        order : int
            Highest derivative of the efforts that will be asked for. Above 4, NumPy computes.
        calls : callable
            Further computations to prepare, as functions without arguments that are called once:
            `model.warm_up(2, lambda: forward_kinematics(model, motion, 'tool', 'hybrid'))`.
            Whatever they compute with this model is compiled for the link, the expression and the
            number K of derivatives that they ask for; the numbers do not matter.
        """
        for preparation in _preparations:
            preparation(self, order)
        token = preparing.set(True)
        try:
            for call in calls:
                call()
        finally:
            preparing.reset(token)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop('derived', None)
        return state
