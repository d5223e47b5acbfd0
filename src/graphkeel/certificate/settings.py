"""Settings of the writer; limits of the checker are its own."""

from __future__ import annotations

from dataclasses import dataclass

from graphkeel.checker.exact import Work


@dataclass(frozen=True)
class WriterSettings:
    """Attributes:
    rounding: a rounding bound measured here is stated so many times as large, since another
        machine sums in another order.
    products: limit on the exact arithmetic of one statement, more than the checker allows.
    """

    rounding: float = 4.0
    products: int = 10**12

    def work(self) -> Work:
        """The limit on products, to be spent."""
        return Work(self.products)
