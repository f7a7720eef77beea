"""Figure 1: the four greedy algorithms, training and test error against the number of modules."""
