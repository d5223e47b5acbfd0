"""Limits of the format: no honest file reaches them, and no reader goes beyond them."""

from fractions import Fraction

MAX_BYTES = 256 << 20  # of a file
LARGEST = 2.0**400  # no honest weight is larger, and exact products of such numbers stay short
MAX_PRODUCTS = 10**11  # of integers, for a whole file; some hours
MOST_PRODUCTS = 1 << 32  # of numbers, in one product of matrices
MOST_BITS = 1 << 32  # of one network: half a gigabyte
MOST_NUMBERS = 1 << 22  # of the weights between the units of a row, with their zeros
LONGEST_PRODUCT = 1 << 14  # bits of a product of one weight of every layer
HIGHEST = 400  # bits before the point of what is squared; in a chain of squares they double
MOST_WORDS = 4096  # of a model with message passing
MOST_STEPS = 10**4  # of steering that are recorded
LONGEST = 10**5  # steps into the hole; a longer bound is not worth stating
LOOSE = Fraction(1, 8)  # of the size of Y: a δ beyond that would say nothing
SHARED = 8  # leaves below a node that make a view of their own worth its work
MOST_KEPT = 1 << 12  # supports, of a tree
