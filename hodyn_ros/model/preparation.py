"""What is made from a model once and kept with it, and made in advance on request."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

Preparation = Callable[[Any, int], None]
F = TypeVar('F', bound=Preparation)

_preparations: list[Preparation] = []


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

    def warm_up(self, order: int = 2) -> None:
        """Prepare what a computation would otherwise prepare when it is first asked for.

        After it, `inverse_dynamics` with orders up to this one runs compiled code from the first
        call on. Without it, calls are answered by slower code until the compiled one, made in the
        background, is ready; a control loop should not have to share the processor with that.

        Parameters
        ----------
        order : int
            Highest derivative of the efforts that will be asked for. Above 4, NumPy computes.
        """
        for preparation in _preparations:
            preparation(self, order)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop('derived', None)
        return state
