"""An attribute that is computed when first asked for, then kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Kept = TypeVar("Kept")


class once(Generic[Kept]):  # noqa: N801  (used like `property`)
    """`functools.cached_property` without the lock that it takes before Python 3.12.

    The lock costs as much as a small numpy call, and a frame asks for a dozen such attributes.
    """

    def __init__(self, compute: Callable[[Any], Kept]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> once[Kept]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> Kept: ...

    def __get__(self, owner: Any, kind: type) -> once[Kept] | Kept:
        if owner is None:
            return self
        value = self._compute(owner)
        owner.__dict__[self._name] = value  # found there from now on, before this descriptor
        return value
