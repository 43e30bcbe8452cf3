"""Many runs of one experiment: combinations of its options, on several processes or machines, in one table."""
