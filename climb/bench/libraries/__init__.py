"""The vendor's libraries as peers, one module per library.

Every module imports its library when a peer is prepared, so that the modules can be imported without a GPU. A library
that is missing, or that cannot solve a size, raises :class:`~climb.bench.problem.PeerUnavailable`: the record and
``climb report`` then say why there is no time.
"""

from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.description import describe, description, dotted, prepared

__all__ = ["Prepared", "describe", "description", "dotted", "fastest", "prepared"]
