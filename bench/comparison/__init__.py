"""The parts of `bench/compare`. Run `bench/compare --help`."""
