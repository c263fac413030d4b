"""Mutation testing: plant one mistake at a time, and see whether a test notices.

``operators`` makes mutants of a text (``cuda``: by tokens; ``python``: by syntax tree), ``choosing`` draws some of them
with a seed, ``noticing`` says which tests should notice a mutant of a file, ``running`` runs those tests in ``copies``
of the repository, ``survivors`` knows why some survive (``survivors.json``), ``summary`` prints the results.
``compiled`` and ``same_python`` find mutants that are the same program. Tests that compare hashes of sources do not
take part. Tests that plant their own faults by text do not either.
"""

from climb.validation.mutation.mutants import Mutant

__all__ = ["Mutant"]
