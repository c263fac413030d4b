"""Light speed: the ladders copy, read, fma and intensity, which measure a GPU's limits, exercises, and an exhibit."""
