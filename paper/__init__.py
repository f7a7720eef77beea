"""The paper's experiments, each from one command; not part of the wheel."""
