"""The emulator: the exercises of its chapter, which has no ladder of its own."""
