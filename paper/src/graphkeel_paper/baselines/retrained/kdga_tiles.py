"""KDGA's edge predictor without its N × N matrices: the same loss, sample and gradients, tile by
tile.

With h the predictor's embedding, M = h hᵀ, the original evaluates on dense matrices

    loss   = norm · mean BCE(M, A)                        (edges weighted up)
    P      = α M / max M + (1 − α) A                      edge probabilities
    S      = relaxed Bernoulli(P), rounded; upper triangle mirrored, unit diagonal
    y      = D^-1/2 S D^-1/2 z                            twice, once per layer of the teacher

with straight-through gradients into M. Three facts make that cheap in memory: M is symmetric, so
the pairs above the diagonal are enough; max M = max ‖h_i‖² (Cauchy–Schwarz); the rounded S is
sparse, while its gradient, which is not, has the low rank of z and y and can be formed tile by
tile. The noise of a tile comes from a generator seeded by the tile, so that the backward pass draws
again what the forward pass drew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

# Probabilities and noise are clamped there, as torch's distribution does.
EPSILON = torch.finfo(torch.float32).eps


@dataclass(frozen=True)
class _Tile:
    """Rows × columns of the matrix; only its pairs above the diagonal count."""

    index: int
    rows: slice
    columns: slice
    edge_rows: Tensor  # the edges above the diagonal, counted from the tile's corner
    edge_columns: Tensor

    @property
    def diagonal(self) -> bool:
        return self.rows == self.columns

    def upper(self, values: Tensor) -> Tensor:
        """Pairs on and below the diagonal become zero, in place."""
        return values.triu_(1) if self.diagonal else values

    def uniforms(self, seed: int, dtype: torch.dtype) -> Tensor:
        """The tile's noise: the same at every call with the same seed."""
        shape = (self.rows.stop - self.rows.start, self.columns.stop - self.columns.start)
        drawn = np.random.Generator(np.random.SFC64([seed, self.index])).random(
            shape, dtype=np.float32
        )
        return torch.from_numpy(drawn).to(dtype).clamp_(EPSILON, 1 - EPSILON)


class Tiles:
    """All pairs i ≤ j of a graph's nodes, in tiles, with the graph's edges sorted into them."""

    def __init__(self, edge_index: Tensor, n_nodes: int, *, size: int = 1024) -> None:
        self.n_nodes, self.size = n_nodes, size
        low, high = edge_index.min(dim=0).values, edge_index.max(dim=0).values
        codes = torch.unique((low * n_nodes + high)[low != high])
        self.low, self.high = codes // n_nodes, codes % n_nodes
        ones = 2 * len(codes) + n_nodes  # the adjacency has a unit diagonal
        pairs = n_nodes * n_nodes
        self.edge_weight = (pairs - ones) / ones
        self.scale = pairs / (2 * (pairs - ones)) / pairs  # norm / N²
        self._tiles = tuple(self._cut())

    def _cut(self) -> Iterator[_Tile]:
        count = -(-self.n_nodes // self.size)
        home = (self.low // self.size) * count + self.high // self.size
        order = torch.argsort(home, stable=True)
        starts = torch.searchsorted(home[order], torch.arange(count * count + 1))
        for i in range(count):
            for j in range(i, count):
                here = order[starts[i * count + j] : starts[i * count + j + 1]]
                rows, columns = self._span(i), self._span(j)
                yield _Tile(
                    i * count + j,
                    rows,
                    columns,
                    self.low[here] - rows.start,
                    self.high[here] - columns.start,
                )

    def _span(self, i: int) -> slice:
        return slice(i * self.size, min((i + 1) * self.size, self.n_nodes))

    def __iter__(self) -> Iterator[_Tile]:
        return iter(self._tiles)


def edge_loss(hidden: Tensor, tiles: Tiles) -> Tensor:
    """norm · mean BCE(h hᵀ, A), for h ≥ 0."""
    return _EdgeLoss.apply(hidden, tiles)


class _EdgeLoss(torch.autograd.Function):
    """The loss is a number, so its gradient can be formed in the same sweep and scaled later."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, tiles: Tiles) -> Tensor:
        total, gradient = _diagonal_loss(hidden, tiles)
        for tile in tiles:
            logits = hidden[tile.rows] @ hidden[tile.columns].T
            total += _tile_loss(tile, logits, tiles)
            _add_products(gradient, hidden, tile, tile.upper(_tile_slope(tile, logits, tiles)))
        ctx.save_for_backward(gradient)
        return hidden.new_tensor(total)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.saved_tensors[0], None


def _diagonal_loss(hidden: Tensor, tiles: Tiles) -> tuple[float, Tensor]:
    """The diagonal's share of the loss (every node is its own edge), and its gradient."""
    own = hidden.square().sum(dim=1)
    weight = tiles.scale * tiles.edge_weight
    total = float(F.softplus(-own).sum(dtype=torch.float64)) * weight
    return total, -2 * weight * torch.sigmoid(-own)[:, None] * hidden


def _tile_loss(tile: _Tile, logits: Tensor, tiles: Tiles) -> float:
    """Both mirror images of the pairs above the diagonal. softplus(M) = M + log(1 + e^-M), stable
    for M ≥ 0."""
    terms = (-logits).exp_().log1p_()
    edges = tile.edge_rows, tile.edge_columns
    absent = tile.upper(terms + logits).sum(dtype=torch.float64)
    present = terms[edges].sum(dtype=torch.float64) * tiles.edge_weight
    wrongly_absent = (terms[edges] + logits[edges]).sum(dtype=torch.float64)
    return 2 * tiles.scale * float(absent - wrongly_absent + present)


def _tile_slope(tile: _Tile, logits: Tensor, tiles: Tiles) -> Tensor:
    """Derivative of the loss by the logit of a pair, its mirror image included."""
    slope = torch.sigmoid(logits)
    edges = tile.edge_rows, tile.edge_columns
    slope[edges] = -tiles.edge_weight * (1 - slope[edges])
    return slope.mul_(2 * tiles.scale)


def _add_products(gradient: Tensor, hidden: Tensor, tile: _Tile, slope: Tensor) -> None:
    """M_ij = h_i·h_j: the slope by M_ij goes to both nodes."""
    gradient[tile.rows].addmm_(slope, hidden[tile.columns])
    gradient[tile.columns].addmm_(slope.T, hidden[tile.rows])


class SampledGraph:
    """One draw of the augmented graph, differentiable in the h ≥ 0 that it was drawn from. Alpha is
    the predictor's share in the edge probabilities, the temperature that of the relaxed Bernoulli;
    `loss` is norm · mean BCE(h hᵀ, A), from the same sweep."""

    def __init__(
        self, hidden: Tensor, tiles: Tiles, alpha: float, temperature: float, seed: int
    ) -> None:
        # The autograd graph refers to the draw; the draw must not refer back, or neither would ever
        # be freed.
        self._draw = _Draw(tiles, alpha, temperature, seed, hidden.dtype)
        peak = hidden.square().sum(dim=1).max()
        self.loss, self._token = _Sample.apply(hidden, peak, self._draw)

    def product(self, values: Tensor) -> Tensor:
        """D^-1/2 S D^-1/2 values."""
        return _SampledProduct.apply(self._token, values, self._draw)

    @property
    def kept_edges(self) -> Tensor:
        """Edges of the original graph that were drawn again, both ways, and every node with itself;
        shape (2, K)."""
        one_way = torch.cat(self._draw.kept, dim=1)
        loops = torch.arange(self._draw.tiles.n_nodes).repeat(2, 1)
        return torch.cat([one_way, one_way.flip(0), loops], dim=1)

    @property
    def n_edges(self) -> int:
        return int(sum(len(rows) for rows in self._draw.rows))


class _Draw:
    """The numbers of a draw: the sparse S, and what its products leave for the gradient."""

    def __init__(
        self, tiles: Tiles, alpha: float, temperature: float, seed: int, dtype: torch.dtype
    ) -> None:
        self.tiles, self.alpha, self.temperature, self.seed = tiles, alpha, temperature, seed
        self.rows: list[Tensor] = []
        self.columns: list[Tensor] = []
        self.kept: list[Tensor] = []
        self._left: list[Tensor] = []  # the gradient by S_ij is Σ left_i·right_j + shift_i
        self._right: list[Tensor] = []
        self._shift = torch.zeros(tiles.n_nodes, dtype=dtype)

    def keep(self, tile: _Tile, drawn: Tensor) -> None:
        rows, columns = drawn.nonzero(as_tuple=True)
        self.rows.append(rows + tile.rows.start)
        self.columns.append(columns + tile.columns.start)
        again = drawn[tile.edge_rows, tile.edge_columns]
        corner = torch.tensor([[tile.rows.start], [tile.columns.start]])
        self.kept.append(torch.stack([tile.edge_rows[again], tile.edge_columns[again]]) + corner)

    def close(self, dtype: torch.dtype) -> None:
        """Every tile has been drawn: build S and its degrees."""
        n = self.tiles.n_nodes
        rows, columns = torch.cat(self.rows).numpy(), torch.cat(self.columns).numpy()
        upper = sparse.coo_matrix(
            (np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(n, n)
        ).tocsr()
        self._matrix = (upper + upper.T + sparse.identity(n, dtype=np.float32)).tocsr()
        self._degrees = torch.from_numpy(np.asarray(self._matrix.sum(axis=1)).ravel()).to(dtype)
        self._scale = self._degrees.rsqrt()

    def normalised_product(self, values: Tensor) -> Tensor:
        scaled = (self._scale[:, None] * values).numpy()
        return self._scale[:, None] * torch.from_numpy(self._matrix @ scaled).to(values.dtype)

    def note(self, gradient: Tensor, values: Tensor, product: Tensor, back: Tensor) -> None:
        """The gradient by S that one product y = Ŝ z adds, its normalisation included."""
        self._left.append(self._scale[:, None] * gradient)
        self._right.append(self._scale[:, None] * values)
        self._shift -= ((gradient * product).sum(dim=1) + (values * back).sum(dim=1)) / (
            2 * self._degrees
        )

    def slope_factors(self) -> tuple[Tensor, Tensor]:
        """Rows whose inner products are the gradient by a pair's S_ij and S_ji together."""
        one = torch.ones_like(self._shift)[:, None]
        shift = self._shift[:, None]
        return (
            torch.cat([*self._left, *self._right, shift, one], dim=1),
            torch.cat([*self._right, *self._left, one, shift], dim=1),
        )

    def probabilities(self, tile: _Tile, logits: Tensor, peak: Tensor) -> Tensor:
        mixed = logits * (self.alpha / peak)
        mixed[tile.edge_rows, tile.edge_columns] += 1 - self.alpha
        return mixed


@njit(cache=True, fastmath=True, nogil=True)
def _times_steepness(
    slopes: NDArray[Any],
    noise: NDArray[Any],
    probabilities: NDArray[Any],
    temperature: float,
    epsilon: float,
) -> None:  # pragma: no cover - compiled
    """Multiply slopes, in place, by the derivative of the relaxed sample by its probability.

    With odds o = (u/(1−u) · p/(1−p))^(1/T) the relaxed sample is o/(1+o), and its derivative
    o/(1+o)² / (T p (1−p)); zero where p is clamped. One pass over a tile instead of a dozen."""
    one = slopes.dtype.type(1.0)
    low, high = slopes.dtype.type(epsilon), slopes.dtype.type(1.0 - epsilon)
    for i in range(slopes.shape[0]):
        for j in range(slopes.shape[1]):
            u, p = noise[i, j], probabilities[i, j]
            q = min(max(p, low), high)
            if temperature == 1.0:
                spread = u * q + (one - u) * (one - q)
                steep = u * (one - u) / (spread * spread)
            else:
                odds = (u * q / ((one - u) * (one - q))) ** (1.0 / temperature)
                steep = odds / ((one + odds) * (one + odds)) / (temperature * q * (one - q))
            slopes[i, j] *= steep if q == p else slopes.dtype.type(0.0)


class _Sample(torch.autograd.Function):
    """h, max M -> the edge loss, and a token that ties the products to this node of the autograd
    graph.

    Autograd calls this backward after that of every product, so the products' parts are complete by
    then."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, peak: Tensor, draw: _Draw) -> tuple[Tensor, Tensor]:
        total, _ = _diagonal_loss(hidden, draw.tiles)
        for tile in draw.tiles:
            logits = hidden[tile.rows] @ hidden[tile.columns].T
            total += _tile_loss(tile, logits, draw.tiles)
            probabilities = draw.probabilities(tile, logits, peak).clamp_(EPSILON, 1 - EPSILON)
            # The relaxed sample exceeds one half where p > 1 − u, and 1 − u is exact in floating
            # point.
            draw.keep(tile, tile.upper(probabilities > 1 - tile.uniforms(draw.seed, hidden.dtype)))
        draw.close(hidden.dtype)
        ctx.draw = draw
        ctx.save_for_backward(hidden, peak)
        return hidden.new_tensor(total), hidden.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        draw: _Draw = ctx.draw
        hidden, peak = ctx.saved_tensors
        loss_weight = float(gradients[0])
        left, right = draw.slope_factors()
        gradient = loss_weight * _diagonal_loss(hidden, draw.tiles)[1]
        by_peak = 0.0
        for tile in draw.tiles:
            logits = hidden[tile.rows] @ hidden[tile.columns].T
            slope = (left[tile.rows] @ right[tile.columns].T).mul_(draw.alpha / peak)
            noise = tile.uniforms(draw.seed, hidden.dtype)
            probabilities = draw.probabilities(tile, logits, peak)
            _times_steepness(
                slope.numpy(), noise.numpy(), probabilities.numpy(), draw.temperature, EPSILON
            )
            tile.upper(slope)
            by_peak -= float((slope * logits).sum(dtype=torch.float64) / peak)
            slope.add_(tile.upper(_tile_slope(tile, logits, draw.tiles)), alpha=loss_weight)
            _add_products(gradient, hidden, tile, slope)
        return gradient, peak.new_tensor(by_peak), None


class _SampledProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, values: Tensor, draw: _Draw) -> Tensor:
        product = draw.normalised_product(values.detach())
        ctx.draw = draw
        ctx.save_for_backward(token, values, product)
        return product

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        token, values, product = ctx.saved_tensors
        back = ctx.draw.normalised_product(gradients[0])  # the matrix is symmetric
        ctx.draw.note(gradients[0], values, product, back)
        return torch.zeros_like(token), back, None
