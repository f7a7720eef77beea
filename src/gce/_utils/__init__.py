"""Utilities of all packages: parameter checks, threads, compiled loops, random numbers, text."""
